//! [`ChunkWalk`]: the view chunks of the stored chunks of an array, in the order of their keys.
//!
//! Keys are ordered by their bytes, so 10 comes before 2, and the view chunks of one stored chunk are not adjacent. The
//! walk descends dimension by dimension, and in each through the numbers by their digits. It skips numbers below which
//! nothing is stored or requested, so its time depends on the stored chunks and not on the size of the array. It reads
//! no stored chunk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::view_array::ViewArray;
use crate::chunk::ChunkCoords;
use crate::key::StorePrefix;
use crate::store::ValueInfo;

/// Stored chunks by their coordinates.
pub(super) type StoredChunks = BTreeMap<ChunkCoords, ValueInfo>;

/// The requested keys of a listing: those with a prefix, from a lower bound on.
#[derive(Clone, Debug)]
pub(super) struct KeyFilter {
    /// The prefix of the keys. It need not end in a slash.
    pub(super) prefix: String,
    /// No requested key is before this text.
    pub(super) lower_bound: String,
}

impl KeyFilter {
    /// The keys below a prefix that come after a text.
    pub(super) fn after(prefix: &StorePrefix, after: &str) -> Self {
        // The first text after it, since no key contains a control character.
        let lower_bound = if after.is_empty() { String::new() } else { format!("{after}\0") };
        Self { prefix: prefix.to_string(), lower_bound }
    }

    /// Whether a key is requested.
    pub(super) fn matches(&self, key: &str) -> bool {
        key.starts_with(&self.prefix) && key >= self.lower_bound.as_str()
    }

    /// Whether any key that begins with this text may be requested.
    pub(super) fn may_match_below(&self, start: &str) -> bool {
        (start.starts_with(&self.prefix) || self.prefix.starts_with(start))
            && (start >= self.lower_bound.as_str() || self.lower_bound.starts_with(start))
    }
}

/// A walk over the view chunks of an array.
#[derive(Debug)]
pub(super) struct ChunkWalk {
    array: Arc<ViewArray>,
    stored: StoredChunks,
    filter: KeyFilter,
    /// For each dimension that the walk is in, the numbers that it has yet to visit, the next one last.
    pending: Vec<Vec<u64>>,
    /// The current number in each dimension but the last that the walk is in.
    coords: Vec<u64>,
    is_started: bool,
}

impl ChunkWalk {
    /// A walk over the requested keys of an array.
    pub(super) fn new(array: Arc<ViewArray>, stored: StoredChunks, filter: KeyFilter) -> Self {
        Self { array, stored, filter, pending: Vec::new(), coords: Vec::new(), is_started: false }
    }

    /// The array.
    pub(super) fn array(&self) -> &Arc<ViewArray> {
        &self.array
    }

    /// Raises the lower bound of the requested keys.
    pub(super) fn skip_to(&mut self, lower_bound: String) {
        self.filter.lower_bound = lower_bound;
    }

    /// Size and version of a stored chunk.
    pub(super) fn stored_info(&self, stored: &[u64]) -> Option<&ValueInfo> {
        self.stored.get(stored)
    }

    /// The coordinates and the key of the next view chunk whose stored chunk exists.
    pub(super) fn next(&mut self) -> Option<(ChunkCoords, String)> {
        let rank = self.array.geometry().rank();
        if !self.is_started {
            self.is_started = true;
            if rank == 0 {
                let key = self.array.key(&[]);
                let is_found = self.stored.contains_key(&Vec::new()) && self.filter.matches(&key);
                return is_found.then(|| (Vec::new(), key));
            }
            self.descend();
        }
        loop {
            let Some(number) = self.pending.last_mut()?.pop() else {
                self.pending.pop();
                self.coords.pop();
                continue;
            };
            self.push_longer(number);
            if !self.is_stored(number, number) {
                continue;
            }
            self.coords.push(number);
            if self.coords.len() == rank {
                let (coords, key) = (self.coords.clone(), self.array.key(&self.coords));
                self.coords.pop();
                if self.filter.matches(&key) {
                    return Some((coords, key));
                }
            } else if self.filter.may_match_below(&self.array.key_start(&self.coords)) {
                self.descend();
            } else {
                self.coords.pop();
            }
        }
    }

    /// Descends into the next dimension.
    fn descend(&mut self) {
        let mut numbers = Vec::with_capacity(10);
        numbers.extend((0..10).rev().filter(|&number| self.has_stored_with_digits(number)));
        self.pending.push(numbers);
    }

    /// Schedules the numbers that consist of this one and one more digit.
    fn push_longer(&mut self, number: u64) {
        if number == 0 {
            return;
        }
        let longer = (0..10).rev().filter_map(|digit| number.checked_mul(10)?.checked_add(digit));
        let longer: Vec<u64> = longer.filter(|&number| self.has_stored_with_digits(number)).collect();
        if let Some(pending) = self.pending.last_mut() {
            pending.extend(longer);
        }
    }

    /// Whether chunks are stored for any number that begins with the digits of this one.
    fn has_stored_with_digits(&self, number: u64) -> bool {
        let (mut first, mut last) = (number, number);
        loop {
            if self.is_stored(first, last) {
                return true;
            }
            let longer = first.checked_mul(10).filter(|&first| first > 0);
            let Some(longer) =
                longer.filter(|&first| first < self.array.geometry().chunk_count(self.coords.len()))
            else {
                return false;
            };
            first = longer;
            last = last.saturating_mul(10).saturating_add(9);
        }
    }

    /// Whether chunks are stored at the current numbers, for view chunks whose next coordinate is from `first` to
    /// `last`.
    fn is_stored(&self, first: u64, last: u64) -> bool {
        let (geometry, dim) = (self.array.geometry(), self.coords.len());
        let Some(end) = geometry.chunk_count(dim).checked_sub(1).filter(|&end| first <= end) else {
            return false;
        };
        let (first, last) = (geometry.stored_coord(dim, first), geometry.stored_coord(dim, last.min(end)));
        let mut start: ChunkCoords =
            self.coords.iter().enumerate().map(|(dim, &number)| geometry.stored_coord(dim, number)).collect();
        start.push(first);
        let found = self.stored.range(start.clone()..).next();
        found.is_some_and(|(coords, _)| {
            coords.get(..dim) == start.get(..dim) && coords.get(dim).is_some_and(|&number| number <= last)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Version;
    use crate::views::test_arrays::view_array;

    fn stored<const N: usize>(chunks: &[[u64; N]]) -> StoredChunks {
        let info = ValueInfo { size: 1, version: Version::strong("v"), modified: None };
        chunks.iter().map(|coords| (coords.to_vec(), info.clone())).collect()
    }

    fn keys(walk: ChunkWalk) -> Vec<String> {
        let mut walk = walk;
        std::iter::from_fn(|| walk.next()).map(|(_, key)| key).collect()
    }

    fn filter(prefix: &str, lower_bound: &str) -> KeyFilter {
        KeyFilter { prefix: prefix.to_owned(), lower_bound: lower_bound.to_owned() }
    }

    #[test]
    fn visits_keys_in_the_order_of_their_bytes() {
        for encoding in [("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")] {
            let array = Arc::new(view_array(&[24, 50], &[8, 20], Some(&[2, 2]), encoding, false));
            let chunks = stored(&[[0, 0], [0, 2], [2, 1], [3, 0]]);
            let mut expected: Vec<String> = (0..12_u64)
                .flat_map(|row| (0..25_u64).map(move |column| [row, column]))
                .filter(|[row, column]| chunks.contains_key(&vec![row / 4, column / 10]))
                .map(|coords| array.key(&coords))
                .collect();
            expected.sort();
            assert_eq!(expected.len(), 4 * 10 + 4 * 5 + 4 * 10);
            let walk = |prefix: &str, from: &str| {
                keys(ChunkWalk::new(Arc::clone(&array), chunks.clone(), filter(prefix, from)))
            };
            assert_eq!(walk("", ""), expected);
            for key in &expected {
                let later: Vec<_> = expected.iter().filter(|other| *other > key).cloned().collect();
                assert_eq!(walk("a/", &format!("{key}\0")), later);
                let start = key.rsplit_once(['/', '.']).unwrap().0;
                let below: Vec<_> =
                    expected.iter().filter(|other| other.starts_with(start)).cloned().collect();
                assert_eq!(walk(start, ""), below);
            }
        }
    }

    #[test]
    fn an_array_without_dimensions_has_one_chunk() {
        let array = Arc::new(view_array(&[], &[], Some(&[]), ("default", "/"), false));
        let walk = |chunks: StoredChunks, prefix: &str| {
            keys(ChunkWalk::new(Arc::clone(&array), chunks, filter(prefix, "")))
        };
        assert_eq!(walk(stored(&[[]]), "a/"), ["a/c"]);
        assert_eq!(walk(stored(&[[]]), "a/c/"), [""; 0]);
        assert_eq!(walk(StoredChunks::new(), "a/"), [""; 0]);
    }

    #[test]
    fn the_time_of_a_walk_depends_on_stored_chunks_only() {
        let edge = 1 << 62;
        let array = Arc::new(view_array(&[edge, edge], &[2, 2], Some(&[1, 1]), ("default", "/"), false));
        let far = edge / 2 - 1;
        let found = keys(ChunkWalk::new(array, stored(&[[0, far], [far, 5], [far + 1, 0]]), filter("", "")));
        assert_eq!(found.len(), 8);
        assert!(found.contains(&format!("a/c/{}/11", edge - 1)));
    }
}
