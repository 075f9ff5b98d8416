//! The document of v3, `zarr.json` (Zarr core 3.1, "Metadata"): that of the metadata model, with data types as clients
//! name them.

use super::rechunked_array::RechunkedArray;
use crate::views::client_names::use_client_names;

/// The text of the `zarr.json` of an array.
pub(in crate::views) fn zarr_json(rechunked: &RechunkedArray) -> String {
    rechunked.metadata().to_text_with(|members| {
        use_client_names(members, &rechunked.data_type);
    })
}
