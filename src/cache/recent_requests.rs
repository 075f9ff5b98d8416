//! [`RecentRequests`]: how often a request was made recently, to cache only what is requested again.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests that are distinguished, of 8 bytes each. Newer ones overwrite older ones.
const ENTRIES: usize = 1 << 14;
/// The bits of an entry that count; the others are those of the hash.
const COUNT: u64 = 15;

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
        self.record(request) > 1
    }

    /// Records a request, and returns how often it was made recently, this time included. After 15 comes 2, and so on again.
    #[must_use]
    pub fn record<R: Hash + ?Sized>(&self, request: &R) -> u64 {
        let hash = self.hasher.hash_one(request);
        let index = usize::try_from((hash >> 4) % ENTRIES as u64).unwrap_or_default();
        let Some(entry) = self.entries.get(index) else { return 1 };
        let next = |last: u64| match last & COUNT {
            0 => hash & !COUNT | 1,
            _ if last | COUNT != hash | COUNT => hash & !COUNT | 1,
            COUNT => hash & !COUNT | 2,
            _ => last + 1,
        };
        // The closure never refuses.
        let last = entry.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        last.map_or(1, |last| next(last) & COUNT)
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

    #[test]
    fn a_request_is_counted_and_stays_a_repeated_one() {
        let recent = RecentRequests::new();
        let counted: Vec<u64> = (0..32).map(|_| recent.record(&("a", 1))).collect();
        let expected: Vec<u64> = (1..=15).chain(2..=15).chain(2..=4).collect();
        assert_eq!(counted, expected);
        assert_eq!(recent.record(&("a", 2)), 1);
    }
}
