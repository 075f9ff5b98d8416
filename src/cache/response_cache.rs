//! [`ResponseCache`]: small answers as they went out, by what was asked.
//!
//! What an answer is, and whether it is still true, is for whoever keeps it to say.

use std::fmt;
use std::sync::Arc;

use super::weighted_cache::{CacheUsage, WeightedCache};

/// Small answers by what was asked; the least used fall out.
pub struct ResponseCache<T>(WeightedCache<Arc<str>, Weighed<T>>);

/// An answer and its bytes of memory.
struct Weighed<T> {
    answer: Arc<T>,
    bytes: u64,
}

impl<T> Clone for Weighed<T> {
    fn clone(&self) -> Self {
        Self { answer: Arc::clone(&self.answer), bytes: self.bytes }
    }
}

impl<T: Send + Sync + 'static> ResponseCache<T> {
    /// Remembers so many bytes of answers.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self(WeightedCache::new(capacity_bytes, |asked: &Arc<str>, kept: &Weighed<T>| {
            kept.bytes.saturating_add(asked.len() as u64)
        }))
    }

    /// What was answered last.
    #[must_use]
    pub fn get(&self, asked: &str) -> Option<Arc<T>> {
        let kept = self.0.cached(asked);
        self.0.missed(usize::from(kept.is_none()));
        kept.map(|kept| kept.answer)
    }

    /// Whether an answer that takes so many bytes of memory is not too large to be remembered.
    #[must_use]
    pub fn fits(&self, bytes: u64) -> bool {
        self.0.fits(bytes)
    }

    /// Forgets about half.
    pub fn forget_half(&self) {
        self.0.evict_half();
    }

    /// Remembers an answer that takes so many bytes of memory.
    pub fn insert(&self, asked: &str, answer: T, bytes: u64) {
        let kept = Weighed { answer: Arc::new(answer), bytes };
        self.0.insert(&asked.into(), &kept, self.0.generation());
    }

    /// Forgets all of them: they are made again of what else is remembered, so none is worth telling apart.
    pub fn forget(&self) -> u64 {
        self.0.purge(|_| true)
    }

    /// What is remembered.
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
