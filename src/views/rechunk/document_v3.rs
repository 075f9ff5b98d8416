//! The document of v3, `zarr.json` (Zarr core 3.1, "Metadata"): the model's own, but for what clients in use call types.

use serde_json::Value;

use super::rechunked::Rechunked;
use crate::views::spelling::spell_elements;

/// The `zarr.json` of an array.
pub(super) fn zarr_json(rechunked: &Rechunked) -> Value {
    let mut document = rechunked.metadata().to_document();
    if let Some(members) = document.as_object_mut() {
        spell_elements(members, &rechunked.data_type);
    }
    document
}
