//! [`DiskCacheOptions`]: where the disk cache is, and how much it may take.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::record::MAX_DATA;

/// Bytes that may wait to be written.
pub(super) const QUEUE_BYTES: u64 = 32 << 20;
/// The most concurrent reads.
pub(super) const MAX_CONCURRENCY: usize = 32;

/// A cache on a local disk, below those in memory: stored bytes of remote mounts, which stay over a restart. It is off without
/// `path`. A local disk pays: a file system of the network may be slower than the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskCacheOptions {
    /// Its directory, which is created if it is missing. One server at a time uses it; files of others in it stay unchanged.
    ///
    /// Example: `"/var/cache/zarrd"`
    pub path: Option<PathBuf>,
    /// Bytes that its files may take (at least 4 MiB).
    #[serde(with = "crate::units::size")]
    pub size: u64,
    /// Memory for its index: 192 bytes for each part of a value, of at most 256 KiB. Where it is too small for `size`, the disk is
    /// not filled. It counts only with `path`, and so do 40 MiB for bytes that wait to be
    /// written and records that are read.
    #[serde(with = "crate::units::size")]
    pub index_size: u64,
}

impl Default for DiskCacheOptions {
    fn default() -> Self {
        Self { path: None, size: 10 << 30, index_size: 64 << 20 }
    }
}

impl DiskCacheOptions {
    /// The smallest size.
    pub const MIN_SIZE: u64 = 4 << 20;
    /// The smallest memory for the index.
    pub const MIN_INDEX_SIZE: u64 = 64 << 10;

    /// The first setting that is out of its range, and what is wrong with it.
    #[must_use]
    pub fn first_error(&self) -> Option<(&'static str, String)> {
        if self.path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return Some(("path", "is empty".to_owned()));
        }
        if self.size < Self::MIN_SIZE {
            return Some(("size", "must be at least 4MiB".to_owned()));
        }
        (self.index_size < Self::MIN_INDEX_SIZE).then(|| ("index_size", "must be at least 64KiB".to_owned()))
    }

    /// Bytes of memory for what waits to be written and for records that are read.
    pub const IN_FLIGHT_BYTES: u64 = QUEUE_BYTES + (MAX_CONCURRENCY * MAX_DATA) as u64;
}
