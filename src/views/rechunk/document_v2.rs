//! Documents of v2: `.zarray`, `.zgroup`, `.zattrs` (Zarr v2, "Metadata").
//!
//! Chunk keys have `/` between their numbers. The names of dimensions stand in the attribute in which xarray looks for
//! them. Those of v3 are next door.

use serde_json::{Value, json};

use super::rechunked_array::{ARRAY_DIMENSIONS, Rechunked, filter};
use crate::metadata::{ArrayMetadata, Attributes};

/// The `.zarray`; `None` if v2 has no word for the elements' type.
pub(super) fn zarray(rechunked: &Rechunked) -> Option<Value> {
    let data_type = &rechunked.data_type;
    Some(json!({
        "zarr_format": 2,
        "shape": rechunked.array().metadata().shape,
        "chunks": rechunked.chunk_shape,
        "dtype": rechunked.dtype()?,
        "compressor": rechunked.codec().in_v2(data_type),
        "fill_value": rechunked.fill_value.to_v2(data_type),
        "order": "C",
        "filters": filter(data_type).map(|filter| [filter]),
        "dimension_separator": "/",
    }))
}

/// The `.zattrs` of an array.
pub(super) fn zattrs(array: &ArrayMetadata) -> Attributes {
    let attributes = &array.attributes;
    let names = array.dimension_names.iter().flatten().map(Option::as_deref).collect::<Option<Vec<_>>>();
    // No dimension needs no name: xarray asks for the attribute all the same.
    let is_named = array.dimension_names.is_some() || array.shape.is_empty();
    if let Some(names) = names.filter(|_| is_named)
        && !attributes.contains_key(ARRAY_DIMENSIONS)
    {
        return attributes.with(ARRAY_DIMENSIONS, &json!(names));
    }
    attributes.clone()
}

/// The `.zgroup`.
pub(super) fn zgroup() -> Value {
    json!({ "zarr_format": 2 })
}
