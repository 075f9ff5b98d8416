//! [`RecentRequests`]: whether a request was made shortly before, to cache only what is requested again.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests that are distinguished, of 8 bytes each. Newer ones overwrite older ones.
const ENTRIES: usize = 1 << 14;

/// The last requests, by their hashes.
pub struct RecentRequests {
    entries: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl RecentRequests {
    /// No requests.
    #[must_use]
    pub fn new() -> Self {
        let entries = std::iter::repeat_with(AtomicU64::default).take(ENTRIES).collect();
        Self { entries, hasher: RandomState::new() }
    }

    /// Records a request, and returns whether it was made shortly before.
    #[must_use]
    pub fn is_repeated(&self, request: &str) -> bool {
        // Never zero, which stands for no request.
        let hash = self.hasher.hash_one(request) | 1;
        let index = usize::try_from((hash >> 1) % ENTRIES as u64).unwrap_or_default();
        self.entries.get(index).is_some_and(|entry| entry.swap(hash, Ordering::Relaxed) == hash)
    }
}

impl Default for RecentRequests {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for RecentRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecentRequests").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_repeated_until_many_others_were_made() {
        let recent = RecentRequests::new();
        assert!(!recent.is_repeated("/v1/data/m/a"));
        assert!(recent.is_repeated("/v1/data/m/a"));
        assert!(!recent.is_repeated("/v1/data/m/b"));
        for number in 0..20 * ENTRIES {
            assert!(!recent.is_repeated(&number.to_string()));
        }
        assert!(!recent.is_repeated("/v1/data/m/a"));
    }
}
