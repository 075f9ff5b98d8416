//! The document of v3, `zarr.json` (Zarr core 3.1, "Metadata"): the model's own, but for what clients in use call types.

use super::rechunked_array::Rechunked;
use crate::views::client_names::spell_elements;

/// The text of the `zarr.json` of an array.
pub(super) fn zarr_json(rechunked: &Rechunked) -> String {
    rechunked.metadata().to_text_with(|members| {
        spell_elements(members, &rechunked.data_type);
    })
}
