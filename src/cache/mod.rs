//! Remembering: decoded chunks, small answers made of them, chunks encoded anew, shard indexes, opened nodes, and stored
//! values in small parts.
//!
//! Everything is remembered under the version of the stored value it came from, so that nothing here can go stale: a
//! value that changed has another version, and what is remembered of the old one is no longer asked for and falls out.
//! Weights are bytes. A load is shared by all who want its result while it runs, and belongs to none of them
//! ([`CachedSource`]). Take this room away and the server is slower, never wrong.

mod caches;
mod encoded;
mod generation;
mod nodes;
mod options;
mod parts_asked;
mod response_cache;
mod single_flight;
mod source;
mod uncached;
mod values;
mod version_index;
mod weighted_cache;

pub use caches::{CacheKind, Caches, Evictable};
pub use encoded::{EncodedCache, EncodedChunk, EncodedKey};
pub use nodes::BoundedNodeCache;
pub use options::CacheOptions;
pub use response_cache::ResponseCache;
pub use source::CachedSource;
pub use values::ValueCache;
pub use weighted_cache::CacheUsage;
