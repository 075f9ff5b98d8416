//! [`PartsAsked`]: which part of a chunk was asked for last, to tell when the chunk is worth decoding whole.
//!
//! To decode a whole chunk for one plane of it costs many times the plane, mostly for memory that nobody looks at again. So
//! the first request for a chunk decodes its own part, and so does whoever asks for the same part; a request for another
//! part shows that the chunk is being looked through, and has it decoded whole and remembered.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::array::ChunkLocation;

/// Chunks that are told apart: 8 bytes each. Newer ones take the places of older ones.
const PLACES: usize = 1 << 16;
/// The bits of an entry that name the chunk; the others name the part.
const CHUNK_BITS: u64 = !0 << 32;

/// The part of each chunk that was asked for last.
pub(super) struct PartsAsked {
    /// Made when a part is first asked for.
    entries: OnceLock<Box<[AtomicU64]>>,
    hasher: RandomState,
}

impl PartsAsked {
    pub(super) fn new() -> Self {
        Self { entries: OnceLock::new(), hasher: RandomState::new() }
    }

    /// Notes that a part of a chunk is asked for, and says whether another part of it was before.
    pub(super) fn is_another(&self, place: ChunkLocation<'_>, part: u64) -> bool {
        let hash = self.hasher.hash_one(place);
        let chunk = hash & CHUNK_BITS;
        // Never zero, which stands for any part once two were asked for.
        let part = (part & !CHUNK_BITS) | 1;
        let index = usize::try_from(hash % PLACES as u64).unwrap_or_default();
        let all = || std::iter::repeat_with(AtomicU64::default).take(PLACES).collect();
        let Some(entry) = self.entries.get_or_init(all).get(index) else { return false };
        let before = entry.load(Ordering::Relaxed);
        let is_another = before & CHUNK_BITS == chunk && before & !CHUNK_BITS != part;
        // Lost races cost a decoding more or less.
        entry.store(if is_another { chunk } else { chunk | part }, Ordering::Relaxed);
        is_another
    }

    /// Takes every chunk for one that was never asked for.
    pub(super) fn clear(&self) {
        for entry in self.entries.get().into_iter().flatten() {
            entry.store(0, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for PartsAsked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartsAsked").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::StoreKey;

    #[test]
    fn a_chunk_is_decoded_whole_once_a_second_part_of_it_is_asked_for() {
        let asked = PartsAsked::new();
        let key = StoreKey::parse("a/c/0").unwrap();
        let chunk = |start| ChunkLocation { mount: "m", key: &key, start };
        assert!(!asked.is_another(chunk(0), 2));
        assert!(!asked.is_another(chunk(0), 2), "the same part again");
        assert!(!asked.is_another(chunk(64), 4), "another chunk");
        assert!(asked.is_another(chunk(0), 4));
        assert!(asked.is_another(chunk(0), 2), "whichever part it is from then on");
        asked.clear();
        assert!(!asked.is_another(chunk(0), 4));
    }
}
