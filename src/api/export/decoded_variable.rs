//! [`DecodedVariable`]: an array whose elements are decoded to the numbers that its CF attributes describe (CF conventions 1.12,
//! sections 2.5.1 and 8.1).
//!
//! It is what xarray makes of the array, but for times: files have no type for them, so they stay numbers of a unit since a date.

use std::sync::Arc;

use serde_json::json;

use crate::metadata::{ArrayMetadata, ZarrFormat};
use crate::reduce::{CfError, is_fill_missing};
use crate::render::CfDecoding;

/// The attributes by which elements are decoded.
const OF_DECODING: [&str; 5] = ["scale_factor", "add_offset", "_Unsigned", "_FillValue", "missing_value"];
/// Attributes with values of packed elements.
const OF_PACKED: [&str; 3] = ["valid_min", "valid_max", "valid_range"];

/// How an array is decoded, and what it is then.
#[derive(Debug)]
pub(crate) struct DecodedVariable {
    pub(crate) decoding: CfDecoding,
    /// The metadata with the type of the values, and without the attributes by which they were decoded.
    pub(crate) metadata: Arc<ArrayMetadata>,
}

impl DecodedVariable {
    /// The decoding of an array; `None` if its elements are the values.
    ///
    /// # Errors
    /// [`CfError::Missing`] if there are too many missing values.
    pub(crate) fn new(stored: &ArrayMetadata, is_coordinate: bool) -> Result<Option<Self>, CfError> {
        let is_filled = !is_coordinate && is_fill_missing(stored);
        if !is_filled && !OF_DECODING.iter().any(|name| stored.attributes.contains_key(name)) {
            return Ok(None);
        }
        let decoding = CfDecoding::to_numbers(stored, is_coordinate)?;
        let data_type = decoding.data_type();
        if decoding.is_identity() && data_type == stored.data_type {
            return Ok(None);
        }
        let is_packed =
            ["scale_factor", "add_offset"].iter().any(|name| stored.attributes.contains_key(name));
        let packed = OF_PACKED.into_iter().filter(|_| is_packed);
        let names: Vec<&str> = OF_DECODING.into_iter().chain(packed).collect();
        let mut attributes = stored.attributes.without(&names);
        if !data_type.is_integer() && !is_coordinate {
            attributes = attributes.with("_FillValue", &json!("NaN"));
        }
        let metadata = ArrayMetadata {
            data_type,
            attributes,
            // In that of v2, the fill value of packed elements would be the mark of missing values.
            zarr_format: ZarrFormat::V3,
            ..stored.clone()
        };
        Ok(Some(Self { decoding, metadata: Arc::new(metadata) }))
    }
}
