//! Rechunked views: a hierarchy with other chunks, another codec or other data types, as a recipe says.
//!
//! [`RechunkStore`] is a read-only store over another. It shows every array that can be opened as an array of Zarr v3
//! and of v2 at once; the requested documents decide which. Chunks are decoded and encoded on request (Zarr core 3.1;
//! Zarr v2). Its values depend only on the stored ones, so its versions are strong if those are. Keys outside of arrays
//! and groups are shown as they are stored. Elements are rounded only if the recipe names a type of less precision.

mod budget;
mod chunk_listing;
mod chunk_shape;
mod derived_chunk;
mod document_v2;
mod document_v3;
mod key_walk;
mod list;
mod list_item;
mod missing_value;
mod rechunked_array;
mod rechunker;
mod resolve_key;
mod spec;
mod store;
mod validations;
mod version_digest;
mod view;

pub use budget::RechunkBudget;
pub(super) use chunk_listing::ChunkListing;
pub(super) use derived_chunk::{DerivedChunk, chunk_info, shrink_to_fit};
pub(super) use document_v2::zgroup;
pub(super) use key_walk::{Walked, is_permanent, list_dir, list_prefix, unmade};
pub(super) use list::{items_of, items_of_known, list_group};
pub(super) use list_item::{ListItem, ListItems};
pub(super) use rechunked_array::{RechunkedArray, ShownElements};
pub use rechunker::{RechunkLimits, Rechunker};
pub(super) use resolve_key::{Candidate, NamedChunk, candidates, find_node};
pub use spec::{DataTypeSpec, RechunkSpec, RechunkSpecError};
pub(super) use version_digest::VersionDigest;
pub use view::RechunkStore;
pub(super) use view::{
    UnlimitedBudget, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA, absent_if_unsupported, array_text,
};
