//! [`Generation`]: the time between two purges of a cache.

use std::sync::atomic::{AtomicU64, Ordering};

/// The time between two purges of a cache. A load that began in one generation is not cached in the next: its result may
/// be older than the purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// Counts the purges of a cache.
#[derive(Debug, Default)]
pub(crate) struct GenerationCounter(AtomicU64);

impl GenerationCounter {
    /// The generation that loads begin in now.
    pub(crate) fn current(&self) -> Generation {
        Generation(self.0.load(Ordering::SeqCst))
    }

    /// Begins the next generation.
    pub(crate) fn advance(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
