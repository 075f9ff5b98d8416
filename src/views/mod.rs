//! Views: what is stored, shown as something its clients can use better.
//!
//! A view is a read-only store over another store, so that whatever reads, lists and revalidates a store does the same
//! with a view. A key of it is a document that is made here, a key below or a part of one, or a key below as it is. The
//! version of what is made names the versions of what it is made of, and is strong if they are. Absent is absent.
//!
//! [`ViewKind::Plain`] shows what clients in use cannot open as what they can, and arrays that others declare (the
//! convention "dependent-arrays") as nodes of their own; [`ViewKind::Unshard`] shows sharded
//! arrays as arrays of their inner chunks on top of that (Zarr codecs, "sharding-indexed"). Nothing is decoded but
//! indexes, and nothing encoded: chunks are the stored bytes. Only [`rechunk`] decodes and encodes. Routes are not this
//! room's business.

mod chunk_walk;
mod client_names;
mod dependent_set;
mod document;
mod error;
mod geometry;
mod kind;
mod list;
mod listing_segment;
mod node_finder;
mod placeholder;
mod plain;
pub mod rechunk;
mod store;
#[cfg(test)]
mod test_arrays;
mod unshard;
mod view;
mod view_array;

pub use error::ViewError;
pub use kind::ViewKind;
pub use view::ViewStore;
