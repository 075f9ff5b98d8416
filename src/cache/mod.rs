//! Caches of decoded chunks, shard indexes, opened nodes, small stored values, re-encoded chunks and responses; and of
//! stored bytes of remote mounts, on a local disk.
//!
//! Every entry has the version of the stored value that it came from in its key, so no entry can be stale: a value that
//! changed has another version, and the entry of the old version is not requested any more and is evicted. Capacities are
//! bytes; the least used entries are evicted. Concurrent requests for one entry share one load (single flight), which no
//! single request can cancel. Without this module the server is slower, never wrong.

mod caches;
mod disk;
mod disk_report;
mod encoded;
mod generation;
mod long_values;
pub(crate) mod memory_file;
mod nodes;
mod options;
mod recent_parts;
mod recent_requests;
mod response_cache;
mod shared_reads;
mod single_flight;
mod source;
mod stale;
mod uncached;
mod values;
mod version_index;
mod weighted_cache;

pub use caches::{CacheKind, Caches, Evictable, PurgeOutcome};
pub use disk::{CachedMount, DiskCache, DiskCacheError, DiskCacheOptions};
pub use disk_report::{DiskReads, DiskReport};
pub use encoded::{EncodedCache, EncodedChunk, EncodedKey};
pub use nodes::BoundedNodeCache;
pub use options::CacheOptions;
pub use recent_requests::RecentRequests;
pub use response_cache::ResponseCache;
pub use shared_reads::SharedReads;
pub use source::CachedSource;
pub(crate) use stale::BackendAnswer;
pub use stale::{StaleCache, StaleLookups, StaleRequest, Staleness};
pub use values::ValueCache;
pub use weighted_cache::CacheUsage;
