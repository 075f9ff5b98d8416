//! Documents of v2: `.zarray`, `.zgroup`, `.zattrs` (Zarr v2, "Metadata").
//!
//! Chunk keys have `/` between their numbers. The names of dimensions are in the attribute that xarray reads. The
//! document of v3 is in `document_v3`.

use serde_json::{Value, json};

use super::rechunked_array::RechunkedArray;
use crate::codec::v2_filter;
use crate::metadata::Attributes;
use crate::metadata::v2::ARRAY_DIMENSIONS;

/// The `.zarray`; `None` if v2 has no name for the data type.
pub(in crate::views) fn zarray(rechunked: &RechunkedArray) -> Option<Value> {
    let data_type = &rechunked.data_type;
    Some(json!({
        "zarr_format": 2,
        "shape": rechunked.shown().shape,
        "chunks": rechunked.chunk_shape,
        "dtype": rechunked.v2_dtype()?,
        "compressor": rechunked.codec().to_v2(data_type),
        "fill_value": rechunked.missing_value.v2_fill_value(),
        "order": "C",
        "filters": v2_filter(data_type).map(|filter| [filter]),
        "dimension_separator": "/",
    }))
}

/// The `.zattrs` of an array.
pub(in crate::views) fn zattrs(rechunked: &RechunkedArray) -> Attributes {
    let array = rechunked.shown();
    let attributes = rechunked.missing_value.to_v2(&array.attributes);
    let names = array.dimension_names.iter().flatten().map(Option::as_deref).collect::<Option<Vec<_>>>();
    // xarray requires the attribute even if there are no dimensions.
    let is_named = array.dimension_names.is_some() || array.shape.is_empty();
    if let Some(names) = names.filter(|_| is_named)
        && !attributes.contains_key(ARRAY_DIMENSIONS)
    {
        return attributes.with(ARRAY_DIMENSIONS, &json!(names));
    }
    attributes
}

/// The `.zgroup`.
pub(in crate::views) fn zgroup() -> Value {
    json!({ "zarr_format": 2 })
}
