//! Writing elements of arrays: plan → bands → one line of writers per stored value → read, lay over, encode, store.
//!
//! Zarr core 3.1, "Chunk grids", "Codecs" and "Abstract store interface"; Zarr codecs, "sharding-indexed". A [`WritePlan`] says
//! from metadata alone whether a selection can be written, and divides it into bands that fit in memory. An [`ArrayWriter`] writes
//! one band at a time. `nodes` writes the documents of nodes. This module knows neither formats of bodies nor HTTP.
//!
//! # What a write promises
//!
//! A stored value (a chunk, or a shard with all its inner chunks) is replaced whole or not at all, and no write of elements is lost:
//!
//! - Writes of one value form a line in this process. Its head takes *all* writes that wait, lays them over the stored value in
//!   the order of their arrival, and stores the result once ([`ArrayWriter`]). While a value is being stored, writes collect: the
//!   busier a value, the more writes share one store request. A single write does not wait.
//! - The value is stored on the condition that it is still the version that was read (`If-Match`, or `If-None-Match: *`), so that
//!   no write of another process is lost either. If it is not, the line reads again.
//! - A write of all elements of a value reads none of its bytes. A chunk across the edge of the array is always read: the
//!   array may grow, and its new elements be written, while a write is in flight.
//! - The array's document is checked between the two, so that no value is stored in another array that was created at the path
//!   ([`ArrayIdentity`]).
//! - Of a shard, only the inner chunks that a write touches are decoded and encoded; the others are copied as they are stored.
//!
//! Several values are not one step: after a failure some may be stored ([`Written`]). Writing the same elements again is always
//! right.

mod append;
mod array_identity;
mod array_writer;
mod checks;
mod chunk_part;
mod each;
mod error;
mod guarded;
mod lease;
mod line;
mod nodes;
mod options;
mod overlay;
mod pause;
mod plan;
mod settled;
mod stored_chunk;
mod uncached;
mod written;

#[cfg(test)]
mod tests;

pub use append::{Append, AppendError, AppendWriter, Appended, GroupAppend, GroupPart};
pub use array_identity::ArrayIdentity;
pub use array_writer::ArrayWriter;
pub use checks::WriteChecks;
pub use chunk_part::ChunkPart;
pub use error::WriteError;
pub use lease::{AppendKey, LeaseError};
pub use nodes::{
    LikeArray, NewNode, NewValues, NodeCopy, NodeCopyError, NodeCopyFailure, NodeCopyPlan, NodeCreation,
    NodeDocuments, NodePatch, NodePlace, NodeTransfer, NodeWriteError, NodeWriter,
};
pub use options::WriteOptions;
pub(crate) use plan::STORED_CHUNKS;
pub use plan::WritePlan;
pub use stored_chunk::VersionCheck;
pub use written::Written;
