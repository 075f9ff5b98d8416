//! [`ResponseCache`]: a cache of responses, by request.
//!
//! The caller decides what a response is, and revalidates it before use.

use std::fmt;
use std::sync::Arc;

use super::weighted_cache::{CacheUsage, WeightedCache};

/// A cache of responses by request, which evicts the least used.
pub struct ResponseCache<T>(WeightedCache<Arc<str>, Weighed<T>>);

/// A response and its bytes of memory.
struct Weighed<T> {
    response: Arc<T>,
    bytes: u64,
}

impl<T> Weighed<T> {
    fn weigh(request: &Arc<str>, entry: &Self) -> u64 {
        entry.bytes.saturating_add(request.len() as u64)
    }
}

impl<T> Clone for Weighed<T> {
    fn clone(&self) -> Self {
        Self { response: Arc::clone(&self.response), bytes: self.bytes }
    }
}

impl<T: Send + Sync + 'static> ResponseCache<T> {
    /// A cache with this capacity, of which one response may take a tenth.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self(WeightedCache::new(capacity_bytes, Weighed::weigh))
    }

    /// A cache with this capacity, of which one response may take the `share`th part.
    #[must_use]
    pub fn with_largest(capacity_bytes: u64, share: u64) -> Self {
        Self(WeightedCache::with_largest(capacity_bytes, share, Weighed::weigh))
    }

    /// The last response to a request.
    #[must_use]
    pub fn get(&self, request: &str) -> Option<Arc<T>> {
        let entry = self.0.get(request);
        self.0.add_misses(usize::from(entry.is_none()));
        entry.map(|entry| entry.response)
    }

    /// Whether a response that takes this many bytes of memory is small enough for the cache.
    #[must_use]
    pub fn fits(&self, bytes: u64) -> bool {
        self.0.fits(bytes)
    }

    /// Removes about half of the responses.
    pub fn evict_half(&self) {
        self.0.evict_half();
    }

    /// Caches a response that takes this many bytes of memory.
    pub fn insert(&self, request: &str, response: T, bytes: u64) {
        let entry = Weighed { response: Arc::new(response), bytes };
        self.0.insert(&request.into(), &entry, self.0.generation());
    }

    /// Removes all responses, and returns how many they were. They are cheap to compute again from the other caches, so a
    /// purge does not select among them.
    pub fn purge(&self) -> u64 {
        self.0.purge(|_| true)
    }

    /// How much it holds, and how often that was used.
    #[must_use]
    pub fn usage(&self) -> CacheUsage {
        self.0.usage()
    }
}

impl<T> fmt::Debug for ResponseCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseCache").finish_non_exhaustive()
    }
}
