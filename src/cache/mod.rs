//! Remembering: decoded chunks, small answers made of them, chunks encoded anew, shard indexes, opened nodes, and stored
//! values in small parts.
//!
//! Everything is remembered under the version of the stored value it came from, so that nothing here can go stale: a
//! value that changed has another version, and what is remembered of the old one is no longer asked for and falls out.
//! Weights are bytes. A load is shared by all who want its result while it runs, and belongs to none of them
//! ([`CachedSource`]). Take this room away and the server is slower, never wrong.

mod caches;
mod encoded;
mod nodes;
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
pub use response_cache::ResponseCache;
pub use source::CachedSource;
pub use values::ValueCache;
pub use weighted_cache::CacheUsage;

use serde::{Deserialize, Serialize};

use crate::store::ZipBudget;

/// The part of what is for decoded chunks that is for small answers as they went out.
const ANSWERS_SHARE: u64 = 16;

/// Memory for caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheOptions {
    /// Decoded chunks, and small responses that are requested repeatedly.
    #[serde(with = "crate::units::size")]
    pub decoded_size: u64,
    /// Indexes of shards, and versions of cached chunks.
    #[serde(with = "crate::units::size")]
    pub index_size: u64,
    /// Opened nodes (arrays and groups), and documents derived from their metadata.
    #[serde(with = "crate::units::size")]
    pub node_size: u64,
    /// Stored values, or parts of them, of up to 256 KiB each, as they are stored.
    #[serde(with = "crate::units::size")]
    pub value_size: u64,
    /// Chunks that were re-encoded for `/rechunk`.
    #[serde(with = "crate::units::size")]
    pub encoded_size: u64,
    /// Directories of zip files, for all mounts together: some hundred bytes for each entry. They stay in memory as long as
    /// their mounts. A zip file whose directory does not fit is 501 `over-budget`, and its mount is not ready.
    #[serde(with = "crate::units::size")]
    pub zip_directory_size: u64,
}

impl CacheOptions {
    /// The bytes that are for small answers as they went out.
    #[must_use]
    pub const fn answers_bytes(&self) -> u64 {
        self.decoded_size / ANSWERS_SHARE
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            decoded_size: 256 << 20,
            index_size: 32 << 20,
            node_size: 64 << 20,
            value_size: 64 << 20,
            encoded_size: 64 << 20,
            zip_directory_size: ZipBudget::DEFAULT_BYTES,
        }
    }
}
