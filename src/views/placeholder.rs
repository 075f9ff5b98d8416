//! Placeholder codecs: they make arrays with unknown codecs usable for views.
//!
//! A view decodes shard indexes and no chunks. So the codecs inside of shards, or all codecs where there are no shards,
//! are replaced by a known codec. Codecs after the sharding codec are not replaced: such shards cannot be read in
//! parts.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::metadata::{ArrayMetadata, CodecMetadata, DataType};

const SHARDING: &str = "sharding_indexed";
const TRANSPOSE: &str = "transpose";

/// The metadata with known codecs in place of those that are not sharding codecs.
pub(crate) fn placeholder_metadata(array: &ArrayMetadata) -> Arc<ArrayMetadata> {
    let named = |codec: &CodecMetadata| (codec.name.clone(), codec.configuration.clone());
    let codecs = unknown_codecs(array.codecs.iter().map(named).collect(), &array.data_type);
    let codecs = codecs.into_iter().map(|(name, members)| CodecMetadata::new(&name, Value::Object(members)));
    Arc::new(ArrayMetadata { codecs: codecs.collect(), ..array.clone() })
}

/// Recursive in the nesting of shards, which is limited by the depth of a document.
fn unknown_codecs(
    codecs: Vec<(String, Map<String, Value>)>,
    data_type: &DataType,
) -> Vec<(String, Map<String, Value>)> {
    let mut codecs = codecs;
    if let Some((name, mut configuration)) = codecs.pop()
        && name == SHARDING
        && codecs.iter().all(|(name, _)| name == TRANSPOSE)
        && let Some(Value::Array(inner)) = configuration.get("codecs")
    {
        let inner = unknown_codecs(inner.iter().map(name_and_configuration).collect(), data_type);
        let document = inner
            .into_iter()
            .map(|(name, configuration)| json!({ "name": name, "configuration": configuration }));
        configuration.insert("codecs".to_owned(), document.collect());
        codecs.push((name, configuration));
        return codecs;
    }
    let mut configuration = Map::new();
    let name = match data_type {
        DataType::String => "vlen-utf8",
        other if other.is_variable() => "vlen-bytes",
        _ => {
            configuration.insert("endian".to_owned(), json!("little"));
            "bytes"
        }
    };
    vec![(name.to_owned(), configuration)]
}

fn name_and_configuration(codec: &Value) -> (String, Map<String, Value>) {
    let name = codec.as_str().or_else(|| codec.get("name")?.as_str()).unwrap_or_default();
    let configuration = codec.get("configuration").and_then(Value::as_object).cloned();
    (name.to_owned(), configuration.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkGrid;
    use crate::codec::{CodecChain, CodecLimits};
    use crate::metadata::v3::V3Node;
    use crate::metadata::{MetadataLimits, v3};

    fn array(data_type: &str, codecs: &Value) -> ArrayMetadata {
        let fill_value = if data_type == "uint16" { json!(0) } else { json!("") };
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [8, 8], "data_type": data_type, "fill_value": fill_value,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
            "chunk_key_encoding": "default", "codecs": codecs,
        });
        match v3::parse(document.to_string().as_bytes(), &MetadataLimits::default()) {
            Ok(V3Node::Array(array)) => array,
            other => panic!("{other:?}"),
        }
    }

    fn sharded(inner: &Value) -> Value {
        json!({"name": SHARDING, "configuration": {"chunk_shape": [2, 2], "codecs": inner,
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}})
    }

    /// The depth of the bound shards.
    fn depth(data_type: &str, codecs: &Value) -> usize {
        let array = array(data_type, codecs);
        let bind = |array: &ArrayMetadata| {
            let shape = ChunkGrid::new(&array.shape, &array.chunk_grid).first_chunk_shape();
            let limits = CodecLimits::default();
            CodecChain::bind(&array.codecs, &array.data_type, &shape, &array.fill_value, &limits)
        };
        assert!(bind(&array).is_err(), "{codecs}");
        let mut chain = Arc::new(bind(&placeholder_metadata(&array)).unwrap());
        let mut depth = 0;
        while let Some(sharding) = chain.sharding() {
            let inner = Arc::clone(sharding.inner_chain());
            chain = inner;
            depth += 1;
        }
        depth
    }

    #[test]
    fn keeps_shards_down_to_the_depth_of_known_codecs() {
        let transpose = json!({"name": TRANSPOSE, "configuration": {"order": [1, 0]}});
        for data_type in ["uint16", "string", "bytes"] {
            assert_eq!(depth(data_type, &json!(["x.unknown"])), 0);
            assert_eq!(depth(data_type, &json!([transpose, sharded(&json!(["x.unknown", "gzip"]))])), 1);
            let inner = sharded(&json!(["bytes", "x.unknown"]));
            assert_eq!(depth(data_type, &json!([sharded(&json!([transpose, inner]))])), 2);
            assert_eq!(depth(data_type, &json!([sharded(&json!(["x.unknown", inner]))])), 1);
            assert_eq!(depth(data_type, &json!([inner, "x.unknown"])), 0);
        }
    }
}
