//! [`Index`]: where the parts of values are on the disk, in as little memory as possible.
//!
//! Names of values are hashes here: the record itself has the full name, and who reads it compares. A value has one version at a
//! time: parts of a newer one replace those of an older.

use std::collections::HashMap;
use std::ops::Range;

use super::record::MAX_DATA;
use crate::store::ByteRange;

/// Bytes of memory that a part takes at most, with its share of tables that have just grown.
pub(super) const PART_BYTES: u64 = 192;

/// The place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordPlace {
    /// The number of the segment.
    pub(super) segment: u64,
    pub(super) offset: u32,
    /// Length of the record.
    pub(super) length: u32,
}

/// A part of a value, and the record that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedPart {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) location: RecordPlace,
    /// How often it was read since it was written, up to [`MAX_READS`].
    pub(super) reads: u8,
}

impl CachedPart {
    /// Bytes of the file that a read of any of the part reads and verifies.
    pub(super) fn stored_bytes(&self) -> usize {
        self.location.length as usize
    }
}

const MAX_READS: u8 = 3;

/// A value: a hash of its version, its size, and its parts in the order of their beginnings.
#[derive(Debug)]
struct Entry {
    version: u64,
    size: u64,
    parts: Vec<CachedPart>,
}

impl Entry {
    /// The position of the live part that has the byte at an offset and reaches farthest.
    fn part_at(&self, at: u64, is_live: &impl Fn(RecordPlace) -> bool) -> Option<usize> {
        let behind = self.parts.partition_point(|part| part.start <= at);
        let near = self.parts.get(..behind)?.iter().enumerate().rev();
        // No part is longer, so those that begin earlier end before.
        let near = near.take_while(|(_, part)| part.start + MAX_DATA as u64 > at);
        let has = near.filter(|(_, part)| at < part.end && is_live(part.location));
        has.max_by_key(|(_, part)| part.end).map(|(position, _)| position)
    }
}

/// The parts of all values, by the hashes of their names.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: HashMap<u64, Entry>,
    parts: usize,
}

impl Index {
    /// How many parts there are.
    pub(super) fn parts(&self) -> usize {
        self.parts
    }

    /// The size of a value, and what a range is in it, if all of that is there, of this version if one is given.
    pub(super) fn covers(
        &self,
        name: u64,
        version: Option<u64>,
        range: ByteRange,
        is_live: impl Fn(RecordPlace) -> bool,
    ) -> Option<(u64, Range<u64>)> {
        let entry = self.entries.get(&name)?;
        if version.is_some_and(|version| version != entry.version) {
            return None;
        }
        let range = range.resolve(entry.size)?;
        let mut at = range.start;
        while at < range.end {
            at = entry.parts.get(entry.part_at(at, &is_live)?)?.end;
        }
        Some((entry.size, range))
    }

    /// A live part that has the byte at an offset of a value.
    pub(super) fn part(
        &self,
        name: u64,
        at: u64,
        is_live: impl Fn(RecordPlace) -> bool,
    ) -> Option<CachedPart> {
        let entry = self.entries.get(&name)?;
        entry.parts.get(entry.part_at(at, &is_live)?).copied()
    }

    /// The parts that have all of a range, of those that are live, of this version if one is given. They count as read.
    pub(super) fn covering(
        &mut self,
        name: u64,
        version: Option<u64>,
        range: &Range<u64>,
        is_live: impl Fn(RecordPlace) -> bool,
    ) -> Option<Vec<CachedPart>> {
        let entry = self.entries.get_mut(&name)?;
        if version.is_some_and(|version| version != entry.version) {
            return None;
        }
        let (mut parts, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let found = entry.part_at(at, &is_live)?;
            let part = entry.parts.get_mut(found)?;
            part.reads = (part.reads + 1).min(MAX_READS);
            parts.push(*part);
            at = part.end;
        }
        Some(parts)
    }

    /// Adds a part of a version of a value.
    pub(super) fn insert(&mut self, name: u64, version: u64, size: u64, part: CachedPart) {
        let entry = self.entries.entry(name).or_insert_with(|| Entry { version, size, parts: Vec::new() });
        let before = entry.parts.len();
        if entry.version != version || entry.size != size {
            *entry = Entry { version, size, parts: Vec::new() };
        }
        if entry.parts.is_empty() {
            // Most values have one part.
            entry.parts.reserve_exact(1);
        }
        let from = entry.parts.partition_point(|known| known.start < part.start);
        let to = entry.parts.partition_point(|known| known.start < part.end);
        let _ = entry.parts.extract_if(from..to.max(from), |known| known.end <= part.end).count();
        entry.parts.insert(from, part);
        self.parts = (self.parts + entry.parts.len()).saturating_sub(before);
    }

    /// Removes the parts of a value that match, and returns them with the version and size of the value.
    pub(super) fn take(
        &mut self,
        name: u64,
        matches: impl Fn(RecordPlace) -> bool,
    ) -> Vec<(u64, u64, CachedPart)> {
        let Some(entry) = self.entries.get_mut(&name) else { return Vec::new() };
        let (version, size) = (entry.version, entry.size);
        let removed = entry.parts.extract_if(.., |part| matches(part.location));
        let removed: Vec<_> = removed.map(|part| (version, size, part)).collect();
        if entry.parts.is_empty() {
            self.entries.remove(&name);
        }
        self.parts = self.parts.saturating_sub(removed.len());
        removed
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(range: Range<u64>, segment: u64) -> CachedPart {
        let location = RecordPlace { segment, offset: 64, length: 128 };
        CachedPart { start: range.start, end: range.end, location, reads: 0 }
    }

    fn found(index: &mut Index, version: u64, range: ByteRange) -> Option<Vec<u64>> {
        let (_, range) = index.covers(1, Some(version), range, |_| true)?;
        let parts = index.covering(1, Some(version), &range, |_| true)?;
        Some(parts.iter().map(|part| part.location.segment).collect())
    }

    #[test]
    fn a_range_is_found_if_all_of_it_is_there_at_one_version() {
        let mut index = Index::default();
        index.insert(1, 7, 100, part(20..40, 2));
        index.insert(1, 7, 100, part(0..20, 1));
        index.insert(1, 7, 100, part(60..100, 3));
        for (range, expected) in [
            (ByteRange::Bounded(0, 20), Some(vec![1])),
            (ByteRange::Bounded(19, 21), Some(vec![1, 2])),
            (ByteRange::Bounded(39, 41), None),
            (ByteRange::Suffix(40), Some(vec![3])),
            (ByteRange::Suffix(41), None),
            (ByteRange::From(99), Some(vec![3])),
            (ByteRange::From(100), None),
            (ByteRange::Bounded(90, 1000), Some(vec![3])),
            (ByteRange::Whole, None),
        ] {
            assert_eq!(found(&mut index, 7, range), expected, "{range:?}");
        }
        assert_eq!(found(&mut index, 8, ByteRange::Bounded(0, 20)), None, "another version");
        index.insert(1, 7, 100, part(30..70, 4));
        assert_eq!(found(&mut index, 7, ByteRange::Whole), Some(vec![1, 2, 4, 3]));
        assert_eq!(index.parts(), 4);
    }

    #[test]
    fn a_newer_version_replaces_an_older_one_and_a_longer_part_those_in_it() {
        let mut index = Index::default();
        index.insert(1, 7, 100, part(0..20, 1));
        index.insert(1, 7, 100, part(20..40, 1));
        index.insert(1, 8, 100, part(0..20, 2));
        assert_eq!(index.parts(), 1);
        assert_eq!(found(&mut index, 7, ByteRange::Bounded(0, 10)), None);
        index.insert(1, 8, 100, part(0..100, 3));
        assert_eq!((index.parts(), found(&mut index, 8, ByteRange::Whole)), (1, Some(vec![3])));
        assert_eq!(index.take(1, |location| location.segment == 3).len(), 1);
        assert_eq!((index.parts(), index.entries.len()), (0, 0));
    }

    #[test]
    fn parts_that_are_not_live_are_not_found() {
        let mut index = Index::default();
        index.insert(1, 7, 10, part(0..10, 1));
        assert!(index.covers(1, None, ByteRange::Whole, |_| false).is_none());
        assert!(index.covers(1, None, ByteRange::Whole, |_| true).is_some());
        assert!(index.covering(1, Some(7), &(0..10), |_| false).is_none());
    }
}
