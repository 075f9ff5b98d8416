//! [`CacheOptions`]: the capacities of the caches.

use serde::{Deserialize, Serialize};

use super::disk::DiskCacheOptions;
use crate::store::ContainerBudget;

/// The bytes for decoded chunks divided by this are for responses.
const RESPONSES_SHARE: u64 = 8;
/// The bytes for stored values divided by this are for the last lookups of values.
const LOOKUPS_SHARE: u64 = 8;

/// Memory for caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheOptions {
    /// Decoded chunks, and responses of up to 8 MiB that are requested repeatedly: a sixteenth is for those of more than 128 KiB,
    /// and a thirty-second each for shorter ones, for statistics and for labels of dimensions.
    #[serde(with = "crate::units::size")]
    pub decoded_size: u64,
    /// Indexes of shards, and versions of cached chunks.
    #[serde(with = "crate::units::size")]
    pub index_size: u64,
    /// Opened nodes (arrays and groups), and documents derived from their metadata.
    #[serde(with = "crate::units::size")]
    pub node_size: u64,
    /// Stored values, or parts of them, as they are stored: up to 256 KiB each, of remote mounts whose values may be older than a
    /// request up to 1 MiB. An eighth is for the last known versions of values of mounts whose `freshness` has `stale`. Of the
    /// rest, a quarter is for values of 1 to 8 MiB of local mounts that are requested often.
    #[serde(with = "crate::units::size")]
    pub value_size: u64,
    /// Chunks that were re-encoded for `/rechunk` and `/pyramid`.
    #[serde(with = "crate::units::size")]
    pub encoded_size: u64,
    /// Directories of zip files, for all mounts together: some hundred bytes for each entry. They stay in memory as long as
    /// their mounts. A zip file whose directory does not fit is 501 `over-budget`, and its mount is not ready.
    #[serde(with = "crate::units::size")]
    pub zip_directory_size: u64,
    /// Documents of references (kerchunk), and snapshots and manifests of Icechunk repositories, for all mounts together. Of a document,
    /// 32 bytes for each reference, its key, and each URL once; while it is read, also the document. Documents stay in memory as
    /// long as their mounts; snapshots and manifests are evicted for others. What does not fit is 502 `references-refused`, and the
    /// mount of such a document is not ready.
    #[serde(with = "crate::units::size")]
    pub references_size: u64,
    /// The cache on a local disk.
    pub disk: DiskCacheOptions,
}

impl CacheOptions {
    /// The part of [`CacheOptions::decoded_size`] that is for responses.
    #[must_use]
    pub const fn response_bytes(&self) -> u64 {
        self.decoded_size / RESPONSES_SHARE
    }

    /// The part of [`CacheOptions::value_size`] that is for the last lookups of values.
    #[must_use]
    pub const fn lookup_bytes(&self) -> u64 {
        self.value_size / LOOKUPS_SHARE
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
            zip_directory_size: ContainerBudget::DEFAULT_BYTES,
            references_size: ContainerBudget::DEFAULT_BYTES,
            disk: DiskCacheOptions::default(),
        }
    }
}
