//! [`CacheOptions`]: the capacities of the caches.

use serde::{Deserialize, Serialize};

use crate::store::ZipBudget;

/// The part of what is for decoded chunks that is for small answers as they went out.
const ANSWERS_SHARE: u64 = 16;

/// How much is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheOptions {
    /// Bytes of decoded chunks, and of small answers made of them that are asked for again.
    pub decoded_bytes: u64,
    /// Bytes of shard indexes, and of the versions of chunks that something is remembered of.
    pub index_bytes: u64,
    /// Bytes of opened nodes (arrays and groups), and of documents made of theirs.
    pub node_bytes: u64,
    /// Bytes of small stored values, as they are stored.
    pub value_bytes: u64,
    /// Bytes of chunks that were encoded anew.
    pub encoded_bytes: u64,
    /// Bytes of the directories of zip files, which stay as long as their mounts do.
    pub zip_directory_bytes: u64,
}

impl CacheOptions {
    /// The bytes that are for small answers as they went out.
    #[must_use]
    pub const fn answers_bytes(&self) -> u64 {
        self.decoded_bytes / ANSWERS_SHARE
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
