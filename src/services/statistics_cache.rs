//! [`StatisticsCache`]: statistics of pieces of chunks, and finished documents of statistics, each under the versions that it
//! was computed from.

use std::sync::Arc;

use bytes::Bytes;

use crate::cache::ResponseCache;
use crate::reduce::statistics::Cells;

/// The caches of statistics. Entries do not go stale: a version is part of each key.
#[derive(Debug)]
pub(crate) struct StatisticsCache {
    cells: ResponseCache<Cells>,
    documents: ResponseCache<Bytes>,
}

impl StatisticsCache {
    /// Caches with this capacity together.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let half = capacity_bytes / 2;
        Self { cells: ResponseCache::new(half), documents: ResponseCache::new(half) }
    }

    /// The statistics of a piece.
    pub(crate) fn cells(&self, key: &str) -> Option<Arc<Cells>> {
        self.cells.get(key)
    }

    /// Caches the statistics of a piece.
    pub(crate) fn insert_cells(&self, key: &str, cells: &Cells) {
        let bytes = cells.memory_bytes();
        if self.cells.fits(bytes) {
            self.cells.insert(key, cells.clone(), bytes);
        }
    }

    /// A finished document.
    pub(crate) fn document(&self, tag: &str) -> Option<Arc<Bytes>> {
        self.documents.get(tag)
    }

    /// Caches a finished document.
    pub(crate) fn insert_document(&self, tag: &str, document: Bytes) {
        let bytes = document.len() as u64;
        if self.documents.fits(bytes) {
            self.documents.insert(tag, document, bytes);
        }
    }

    /// Removes everything.
    pub(crate) fn purge(&self) {
        self.cells.purge();
        self.documents.purge();
    }

    /// Removes about half of all entries.
    pub(crate) fn evict_half(&self) {
        self.cells.evict_half();
        self.documents.evict_half();
    }
}
