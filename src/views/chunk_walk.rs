//! [`Walk`]: the chunks that a view shows of the stored ones, in the order of their keys.
//!
//! Keys are ordered by their bytes, so 10 comes before 2, and shown chunks of one stored chunk lie apart. The walk goes
//! down dimension by dimension, and at each through the numbers by their digits, and goes nowhere where nothing is
//! stored or wanted: it takes as long as what is stored is, however large the array. What is in a stored chunk is not
//! looked at.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::view_array::ViewArray;
use crate::chunk::ChunkCoords;
use crate::key::StorePrefix;
use crate::store::ValueInfo;

/// Stored chunks by their coordinates.
pub(super) type StoredChunks = BTreeMap<ChunkCoords, ValueInfo>;

/// Which keys are wanted: those that begin so, from one on.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// What they begin with.
    pub(super) prefix: String,
    /// None is before this text.
    pub(super) from: String,
}

impl Wanted {
    /// Those below a prefix that come after a text.
    pub(super) fn behind(prefix: &StorePrefix, after: &str) -> Self {
        // The first text behind it: no key has a control character.
        let from = if after.is_empty() { String::new() } else { format!("{after}\0") };
        Self { prefix: prefix.to_string(), from }
    }

    /// Whether a key is wanted.
    pub(super) fn has(&self, key: &str) -> bool {
        key.starts_with(&self.prefix) && key >= self.from.as_str()
    }

    /// Whether keys that begin with this text may be wanted.
    pub(super) fn has_below(&self, start: &str) -> bool {
        (start.starts_with(&self.prefix) || self.prefix.starts_with(start))
            && (start >= self.from.as_str() || self.from.starts_with(start))
    }
}

/// A walk over the shown chunks of an array.
#[derive(Debug)]
pub(super) struct Walk {
    shown: Arc<ViewArray>,
    stored: StoredChunks,
    wanted: Wanted,
    /// For each dimension that the walk is in, the numbers it has yet to visit, the next one last.
    pending: Vec<Vec<u64>>,
    /// The numbers it is at, one for each dimension but the last that it is in.
    at: Vec<u64>,
    is_begun: bool,
}

impl Walk {
    /// The walk to the wanted keys of an array.
    pub(super) fn new(shown: Arc<ViewArray>, stored: StoredChunks, wanted: Wanted) -> Self {
        Self { shown, stored, wanted, pending: Vec::new(), at: Vec::new(), is_begun: false }
    }

    /// The array.
    pub(super) fn shown(&self) -> &Arc<ViewArray> {
        &self.shown
    }

    /// From now on no key before this text is wanted.
    pub(super) fn skip_to(&mut self, from: String) {
        self.wanted.from = from;
    }

    /// What is stored of a stored chunk.
    pub(super) fn info(&self, stored: &[u64]) -> Option<&ValueInfo> {
        self.stored.get(stored)
    }

    /// The coordinates and the key of the next shown chunk whose stored chunk is there.
    pub(super) fn next(&mut self) -> Option<(ChunkCoords, String)> {
        let rank = self.shown.geometry().rank();
        if !self.is_begun {
            self.is_begun = true;
            if rank == 0 {
                let key = self.shown.key(&[]);
                let is_found = self.stored.contains_key(&Vec::new()) && self.wanted.has(&key);
                return is_found.then(|| (Vec::new(), key));
            }
            self.enter();
        }
        loop {
            let Some(number) = self.pending.last_mut()?.pop() else {
                self.pending.pop();
                self.at.pop();
                continue;
            };
            self.push_longer(number);
            if !self.is_stored(number, number) {
                continue;
            }
            self.at.push(number);
            if self.at.len() == rank {
                let (coords, key) = (self.at.clone(), self.shown.key(&self.at));
                self.at.pop();
                if self.wanted.has(&key) {
                    return Some((coords, key));
                }
            } else if self.wanted.has_below(&self.shown.key_start(&self.at)) {
                self.enter();
            } else {
                self.at.pop();
            }
        }
    }

    /// Goes down into the next dimension.
    fn enter(&mut self) {
        let mut numbers = Vec::with_capacity(10);
        numbers.extend((0..10).rev().filter(|&number| self.has_digits(number)));
        self.pending.push(numbers);
    }

    /// Has the numbers visited that are this one and one more digit.
    fn push_longer(&mut self, number: u64) {
        if number == 0 {
            return;
        }
        let longer = (0..10).rev().filter_map(|digit| number.checked_mul(10)?.checked_add(digit));
        let longer: Vec<u64> = longer.filter(|&number| self.has_digits(number)).collect();
        if let Some(pending) = self.pending.last_mut() {
            pending.extend(longer);
        }
    }

    /// Whether chunks are stored for any number that begins with the digits of this one.
    fn has_digits(&self, number: u64) -> bool {
        let (mut first, mut last) = (number, number);
        loop {
            if self.is_stored(first, last) {
                return true;
            }
            let longer = first.checked_mul(10).filter(|&first| first > 0);
            let Some(longer) = longer.filter(|&first| first < self.shown.geometry().shown(self.at.len()))
            else {
                return false;
            };
            first = longer;
            last = last.saturating_mul(10).saturating_add(9);
        }
    }

    /// Whether chunks are stored where the walk is, for shown ones with a coordinate from `first` to `last` next.
    fn is_stored(&self, first: u64, last: u64) -> bool {
        let (geometry, dim) = (self.shown.geometry(), self.at.len());
        let Some(end) = geometry.shown(dim).checked_sub(1).filter(|&end| first <= end) else { return false };
        let (first, last) = (geometry.stored(dim, first), geometry.stored(dim, last.min(end)));
        let mut start: ChunkCoords =
            self.at.iter().enumerate().map(|(dim, &number)| geometry.stored(dim, number)).collect();
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
    use crate::views::test_arrays::shown;

    fn stored<const N: usize>(chunks: &[[u64; N]]) -> StoredChunks {
        let info = ValueInfo { size: 1, version: Version::strong("v"), modified: None };
        chunks.iter().map(|coords| (coords.to_vec(), info.clone())).collect()
    }

    fn keys(walk: Walk) -> Vec<String> {
        let mut walk = walk;
        std::iter::from_fn(|| walk.next()).map(|(_, key)| key).collect()
    }

    fn wanted(prefix: &str, from: &str) -> Wanted {
        Wanted { prefix: prefix.to_owned(), from: from.to_owned() }
    }

    #[test]
    fn keys_come_in_the_order_of_their_bytes() {
        for encoding in [("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")] {
            let shown = Arc::new(shown(&[24, 50], &[8, 20], Some(&[2, 2]), encoding, false));
            let chunks = stored(&[[0, 0], [0, 2], [2, 1], [3, 0]]);
            let mut expected: Vec<String> = (0..12_u64)
                .flat_map(|row| (0..25_u64).map(move |column| [row, column]))
                .filter(|[row, column]| chunks.contains_key(&vec![row / 4, column / 10]))
                .map(|coords| shown.key(&coords))
                .collect();
            expected.sort();
            assert_eq!(expected.len(), 4 * 10 + 4 * 5 + 4 * 10);
            let walk = |prefix: &str, from: &str| {
                keys(Walk::new(Arc::clone(&shown), chunks.clone(), wanted(prefix, from)))
            };
            assert_eq!(walk("", ""), expected);
            for key in &expected {
                let behind: Vec<_> = expected.iter().filter(|other| *other > key).cloned().collect();
                assert_eq!(walk("a/", &format!("{key}\0")), behind);
                let start = key.rsplit_once(['/', '.']).unwrap().0;
                let below: Vec<_> =
                    expected.iter().filter(|other| other.starts_with(start)).cloned().collect();
                assert_eq!(walk(start, ""), below);
            }
        }
    }

    #[test]
    fn an_array_of_no_dimensions_has_one_chunk() {
        let shown = Arc::new(shown(&[], &[], Some(&[]), ("default", "/"), false));
        let walk = |chunks: StoredChunks, prefix: &str| {
            keys(Walk::new(Arc::clone(&shown), chunks, wanted(prefix, "")))
        };
        assert_eq!(walk(stored(&[[]]), "a/"), ["a/c"]);
        assert_eq!(walk(stored(&[[]]), "a/c/"), [""; 0]);
        assert_eq!(walk(StoredChunks::new(), "a/"), [""; 0]);
    }

    #[test]
    fn a_walk_takes_as_long_as_what_is_stored() {
        let edge = 1 << 62;
        let shown = Arc::new(shown(&[edge, edge], &[2, 2], Some(&[1, 1]), ("default", "/"), false));
        let far = edge / 2 - 1;
        let found = keys(Walk::new(shown, stored(&[[0, far], [far, 5], [far + 1, 0]]), wanted("", "")));
        assert_eq!(found.len(), 8);
        assert!(found.contains(&format!("a/c/{}/11", edge - 1)));
    }
}
