//! Arrays of views, for the tests of this module.

use std::sync::Arc;

use serde_json::json;

use super::kind::ViewKind;
use super::view_array::ViewArray;
use crate::array::Array;
use crate::codec::CodecLimits;
use crate::cpu::{ComputePool, ComputePoolOptions};
use crate::key::NodePath;
use crate::metadata::v3::V3Node;
use crate::metadata::{MetadataLimits, v3};
use crate::store::{StoreOptions, open};

/// An array of bytes at `a` in the view without shards. With `is_rebased`, its keys have the default encoding whatever
/// the stored one is.
pub(super) fn view_array(
    shape: &[u64],
    chunk_shape: &[u64],
    inner_shape: Option<&[u64]>,
    encoding: (&str, &str),
    is_rebased: bool,
) -> ViewArray {
    let sharding = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": inner_shape, "codecs": ["bytes"],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }}]);
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}},
        "chunk_key_encoding": {"name": encoding.0, "configuration": {"separator": encoding.1}},
        "codecs": if inner_shape.is_some() { sharding } else { json!(["bytes"]) },
    });
    let Ok(V3Node::Array(metadata)) = v3::parse(document.to_string().as_bytes(), &MetadataLimits::default())
    else {
        panic!("{document}")
    };
    let options = StoreOptions::default();
    let store =
        open("memory://", &options, &ComputePool::new(ComputePoolOptions::default()).unwrap()).unwrap();
    let path = NodePath::parse("a").unwrap();
    let limits = CodecLimits::default();
    let array = Array::bind("m".into(), store, path.clone(), Arc::new(metadata), &limits).unwrap();
    let array = Arc::new(array);
    if is_rebased {
        return ViewArray::for_declared(ViewKind::Unshard, path, &array);
    }
    ViewArray::for_node(ViewKind::Unshard, path.clone(), &array)
        .unwrap_or_else(|| ViewArray::unchanged(path, &array))
}
