//! Remembering: decoded chunks, shard indexes and opened nodes.
//!
//! Everything is remembered under the version of the stored value it came from, so that nothing here can go stale: a
//! value that changed has another version, and what is remembered of the old one is no longer asked for and falls out.
//! Weights are bytes. A load is shared by all who want its result while it runs, and belongs to none of them
//! ([`CachedSource`]). Take this room away and the server is slower, never wrong.

mod flights;
mod nodes;
mod source;

pub use nodes::NodeCache;
pub use source::CachedSource;

use serde::{Deserialize, Serialize};

/// How much is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheOptions {
    /// Bytes of decoded chunks.
    pub decoded_bytes: u64,
    /// Bytes of shard indexes.
    pub index_bytes: u64,
    /// Opened nodes (arrays and groups); one counts for one more with each KiB of its documents.
    pub nodes: u64,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { decoded_bytes: 256 << 20, index_bytes: 32 << 20, nodes: 10_000 }
    }
}

/// What an entry weighs beside its value: its key and the cache's own books, roughly.
const ENTRY_BYTES: u64 = 300;
/// One entry may be this part of a cache at most; a larger one would empty it for its own sake.
const LARGEST_SHARE: u64 = 10;

/// A weight for moka, whose weights are 32 bits wide; no entry of more than 4 GiB is ever remembered.
fn weight(value_bytes: usize) -> u32 {
    u32::try_from(value_bytes as u64 + ENTRY_BYTES).unwrap_or(u32::MAX)
}
