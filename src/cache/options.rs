//! [`CacheOptions`]: the capacities of the caches.

use serde::{Deserialize, Serialize};

use crate::store::ZipBudget;

/// The bytes for decoded chunks divided by this are for small responses.
const RESPONSES_SHARE: u64 = 16;

/// The capacities of the caches, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheOptions {
    /// Bytes of decoded chunks, and of small responses that were computed from them.
    pub decoded_bytes: u64,
    /// Bytes of shard indexes, and of the versions of the chunks that are cached.
    pub index_bytes: u64,
    /// Bytes of opened nodes (arrays and groups), and of documents that were computed from theirs.
    pub node_bytes: u64,
    /// Bytes of small stored values.
    pub value_bytes: u64,
    /// Bytes of re-encoded chunks.
    pub encoded_bytes: u64,
    /// Bytes of the directories of zip files, which are in memory as long as their mounts exist.
    pub zip_directory_bytes: u64,
}

impl CacheOptions {
    /// The part of [`CacheOptions::decoded_bytes`] that is for small responses.
    #[must_use]
    pub const fn response_bytes(&self) -> u64 {
        self.decoded_bytes / RESPONSES_SHARE
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            decoded_bytes: 256 << 20,
            index_bytes: 32 << 20,
            node_bytes: 64 << 20,
            value_bytes: 64 << 20,
            encoded_bytes: 64 << 20,
            zip_directory_bytes: ZipBudget::DEFAULT_BYTES,
        }
    }
}
