//! Views: read-only stores that present another store in a form that more clients can use.
//!
//! A view implements the store interface, so listing, reading and revalidation work for it as for any store. Each key
//! of a view is a generated document, a stored value, or a part of a stored value. The version of a generated value
//! includes the versions of its sources, and is strong if they all are. A key without a value is absent.
//!
//! [`ViewKind::Plain`] rewrites documents that common clients cannot open. It also shows arrays that others declare
//! (the convention "dependent-arrays") as nodes of their own. [`ViewKind::Unshard`] additionally shows sharded arrays
//! as arrays of their inner chunks (Zarr codecs, "sharding-indexed"). Both decode shard indexes only and encode
//! nothing: chunks are the stored bytes. Only [`rechunk`] and [`pyramid`] decode and encode chunks. Routes belong to `http`.

mod chunk_walk;
mod client_names;
mod dependent_set;
mod derived_store;
mod document;
mod error;
mod geometry;
mod image_finder;
mod kind;
mod list;
mod listing_segment;
mod node_finder;
mod placeholder;
mod plain;
pub mod pyramid;
pub mod rechunk;
mod store;
#[cfg(test)]
mod test_arrays;
mod unshard;
mod view;
mod view_array;

pub use error::ViewError;
pub use image_finder::{Above, FoundAbove, ImageAbove, ImageFinder, LevelAbove, NodeAbove};
pub use kind::ViewKind;
pub use view::ViewStore;
