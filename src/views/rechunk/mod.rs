//! Rechunked views: a hierarchy with other chunks, another codec or other data types, as a recipe says.
//!
//! [`RechunkStore`] is a read-only store over another. It shows every array that can be opened as an array of Zarr v3
//! and of v2 at once; the requested documents decide which. Chunks are decoded and encoded on request (Zarr core 3.1;
//! Zarr v2). Its values depend only on the stored ones, so its versions are strong if those are. Keys outside of arrays
//! and groups are shown as they are stored. Elements are rounded only if the recipe names a type of less precision.

mod budget;
mod chunk_shape;
mod derived_chunk;
mod document_v2;
mod document_v3;
mod list;
mod missing_value;
mod rechunked_array;
mod rechunker;
mod resolve_key;
mod spec;
mod store;
mod view;

pub use budget::RechunkBudget;
pub use rechunker::{RechunkLimits, Rechunker};
pub use spec::{RechunkSpec, RechunkSpecError};
pub use view::RechunkStore;
