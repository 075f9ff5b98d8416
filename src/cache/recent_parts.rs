//! [`RecentParts`]: the part of each chunk that was requested last, to decide when to decode and cache a whole chunk.
//!
//! Decoding a whole chunk for one plane of it costs many times the plane, mostly for elements that are never requested. So
//! the first request for a chunk decodes its own part, and so does a request for the same part. A request for another part
//! shows that a client goes through the chunk, which is then decoded whole and cached.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::array::ChunkLocation;

/// Chunks that are distinguished, of 8 bytes each. Newer ones overwrite older ones.
const ENTRIES: usize = 1 << 16;
/// The bits of an entry that identify the chunk; the others identify the part.
const CHUNK_BITS: u64 = !0 << 32;

/// The part of each chunk that was requested last.
pub(super) struct RecentParts {
    /// Allocated by the first request for a part.
    entries: OnceLock<Box<[AtomicU64]>>,
    hasher: RandomState,
}

impl RecentParts {
    pub(super) fn new() -> Self {
        Self { entries: OnceLock::new(), hasher: RandomState::new() }
    }

    /// Records a request for a part of a chunk, and returns whether another part of it was requested before.
    pub(super) fn record_request(&self, location: ChunkLocation<'_>, part: u64) -> bool {
        let hash = self.hasher.hash_one(location);
        let chunk = hash & CHUNK_BITS;
        // Never zero, which stands for any part once two were requested.
        let part = (part & !CHUNK_BITS) | 1;
        let index = usize::try_from(hash % ENTRIES as u64).unwrap_or_default();
        let all = || std::iter::repeat_with(AtomicU64::default).take(ENTRIES).collect();
        let Some(entry) = self.entries.get_or_init(all).get(index) else { return false };
        let before = entry.load(Ordering::Relaxed);
        let is_another = before & CHUNK_BITS == chunk && before & !CHUNK_BITS != part;
        // A lost race only decodes a chunk once more or once less.
        entry.store(if is_another { chunk } else { chunk | part }, Ordering::Relaxed);
        is_another
    }

    /// Resets every chunk to one that was never requested.
    pub(super) fn clear(&self) {
        for entry in self.entries.get().into_iter().flatten() {
            entry.store(0, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for RecentParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecentParts").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::StoreKey;

    #[test]
    fn a_second_part_of_a_chunk_is_reported() {
        let parts = RecentParts::new();
        let key = StoreKey::parse("a/c/0").unwrap();
        let chunk = |start| ChunkLocation { mount: "m", key: &key, start };
        assert!(!parts.record_request(chunk(0), 2));
        assert!(!parts.record_request(chunk(0), 2), "the same part again");
        assert!(!parts.record_request(chunk(64), 4), "another chunk");
        assert!(parts.record_request(chunk(0), 4));
        assert!(parts.record_request(chunk(0), 2), "whichever part it is from then on");
        parts.clear();
        assert!(!parts.record_request(chunk(0), 4));
    }
}
