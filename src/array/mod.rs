//! Reading arrays: plan → snapshot → fetch (async) → decode (cpu) → assemble.
//!
//! Zarr core 3.1, "Chunk grids"; Zarr codecs, "sharding-indexed" (partial reads). A [`Plan`] gives the cost of a selection
//! from metadata alone. A [`Snapshot`] has the versions of its chunks, before any of their bytes are read, or with all
//! elements where these fit in one segment. A [`Reader`] returns the elements segment by segment, in bounded memory. It gets
//! decoded chunks from a [`ChunkSource`] and does not know whether that caches them: `cache` implements the trait from above.
//! A plan may carry a [`Reduction`](crate::reduce::Reduction): segments are then parts of the reduced result, and `reduced`
//! reads and reduces the windows of each; with an [`AxisReduction`](crate::reduce::AxisReduction), `reduced_axes` does. This module knows neither encoding formats of responses nor HTTP.
//!
//! # Steps of a read
//!
//! [`Reader`] splits a plan into segments. `assembly` schedules the chunks of one segment: it resolves each chunk, loads it,
//! and copies it. `chunk_reader` does these steps for a single chunk; `resolve` goes through shard indexes, `partial_chunk`
//! decides to decode some rows in place of a whole chunk, and `segment_buffer` holds the elements that chunks are copied to.
//! `stripes` divides a large copy among several threads.
//! [`DirectSource`] fetches and decodes; `range_load` does it for the inner chunks of a shard, and `fetching` has what both need.
//!
//! # Answers from memory without suspending
//!
//! Many reads find all of their chunks in a cache. A future for each chunk would be an allocation, with the state of all that
//! it might have to wait for. So some methods `x` have a twin `try_x`, by one rule:
//!
//! * `try_x` is not `async`. It neither suspends, nor waits for a disk or a network, nor joins a load in flight.
//! * If it returns a result, that is the result of `x`, no older than `x` would return it.
//! * If it returns none, that says nothing about the value. The caller then calls `x`, which does all that `try_x` does not.
//!
//! Where a step has several parts, the twins are not two versions of one function. `try_x` returns a `FromMemory`: either the
//! result, or a pending value with what was found so far. Only that value can be passed to `x`, which goes on from there.
//!
//! | from memory | else | a miss leaves |
//! |---|---|---|
//! | [`ChunkSource::try_fetch_or_lookup`] | [`ChunkSource::fetch_or_lookup`] | nothing |
//! | [`ChunkSource::try_elements`] | [`ChunkSource::elements`] | nothing |
//! | [`ChunkSource::try_shard_index`] | [`ChunkSource::shard_index`] | nothing |
//! | [`NodeOpener::try_find`] | [`NodeOpener::find`], which calls it first | nothing |
//! | `ChunkReader::try_resolve` | `ChunkReader::run` | a `PendingChunk` |
//! | `ChunkReader::try_load` | `ChunkReader::run` | a `ChunkLoad` |
//! | `Resolution::advance` | `Resolution::finish`, which calls it first | the `Resolution` itself |

mod assembly;
mod bound_array;
mod chains;
mod chunk_boxes;
mod chunk_reader;
mod chunk_source;
mod coalesce;
mod declared;
mod dependencies;
mod dependent;
mod direct;
mod error;
mod fetching;
mod from_memory;
mod gather_plan;
mod gathered;
mod jobs;
mod node;
mod open;
mod partial_chunk;
mod pieces;
mod plan;
mod range_load;
mod read;
mod read_context;
mod reduced;
mod reduced_axes;
mod resolve;
mod segment_buffer;
mod segment_reader;
mod segments;
mod snapshot;
mod stored;
mod stripes;
mod sum_memory;

pub use bound_array::Array;
pub use chunk_source::{ChunkLocation, ChunkSource, FetchBudget};
pub use declared::{Declared, DeclaredArrays};
pub use dependencies::Dependencies;
pub use direct::DirectSource;
pub use error::ArrayError;
pub use fetching::FetchOptions;
pub use node::{AbsentId, LoadFuture, NodeCache, NodeId, OpenNode, RenderedText, TextFuture, TextId};
pub use open::{CachedLookup, NodeOpener};
pub use pieces::{Pieces, Sampling};
pub use plan::{Plan, ReadLimits, Suggestions};
pub use read::Reader;
pub use read_context::{ReadContext, ReadObserver, ReadStats};
pub use snapshot::{ChunkVersions, Snapshot};
pub use stored::{CHEAP_REVALIDATION_WINDOW, ChunkData, ChunkLookup, StoredKey, StoredValue};
