//! Chunks in, elements out: plan → snapshot → fetch (async) → decode (cpu) → assemble.
//!
//! Zarr core 3.1, "Chunk grids"; Zarr codecs, "sharding-indexed" (partial reads). A selection's cost is known from
//! metadata alone ([`Plan`]); its versions are known before its bytes, or with them where all of them fit in one band
//! ([`Snapshot`]); its elements come band by band in bounded memory ([`Reader`]). Reads ask a [`ChunkSource`] for decoded
//! chunks and never learn whether there is a cache: `cache` implements the trait from above. Encoding formats and HTTP
//! are not this room's business.

mod assembly;
mod attempt;
mod bound_array;
mod chains;
mod chunk_reader;
mod chunk_source;
mod coalesce;
mod declared;
mod dependencies;
mod dependent;
mod direct;
mod error;
mod jobs;
mod node;
mod open;
mod partial_chunk;
mod plan;
mod read;
mod read_context;
mod resolve;
mod segment_buffer;
mod snapshot;
mod stored;

pub use bound_array::Array;
pub use chunk_source::{ChunkLocation, ChunkSource, FetchBudget};
pub use declared::{Declared, DeclaredArrays};
pub use dependencies::Dependencies;
pub use direct::{DirectSource, FetchOptions};
pub use error::ArrayError;
pub use node::{LoadFuture, NodeCache, NodeId, OpenNode, RenderedText, TextFuture, TextId};
pub use open::NodeOpener;
pub use plan::{Plan, ReadLimits, Suggestions};
pub use read::Reader;
pub use read_context::{ReadContext, ReadObserver, ReadStats};
pub use snapshot::{ChunkVersions, Snapshot};
pub use stored::{CHEAP_REVALIDATION_WINDOW, ChunkData, ChunkLookup, StoredKey, StoredValue};
