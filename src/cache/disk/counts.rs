//! [`DiskCounts`]: the reads of one mount.

use std::sync::atomic::AtomicU64;

/// Counts of the reads of one mount.
#[derive(Debug, Default)]
pub(super) struct DiskCounts {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) hit_bytes: AtomicU64,
}
