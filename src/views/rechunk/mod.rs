//! Rechunking: a hierarchy with other chunks, another codec or other data types, decided by a recipe alone.
//!
//! [`RechunkStore`] is a read-only store over another: every array that opens is shown as one of Zarr v3 and as one of v2
//! at once, by which documents are asked for, with chunks that are decoded and encoded on the way (Zarr core 3.1; Zarr
//! v2). What it gives is the same whenever what is stored is the same, so its versions are strong if those below are.
//! What is no array and no group is shown as it is stored. Elements are never rounded unless a type of less precision is
//! asked for by name.

mod budget;
mod chunk_shape;
mod derived_chunk;
mod document_v2;
mod document_v3;
mod list;
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
