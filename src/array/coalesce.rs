//! Merging of the requested byte ranges of a value into fewer fetches.

use std::ops::Range;

/// A byte range to fetch, and the requested ranges that it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    pub(super) range: Range<u64>,
    /// Positions in the list of requested ranges.
    pub(super) positions: Vec<usize>,
}

/// Merges ranges that touch, overlap or leave a gap of at most `gap_bytes`, while the merged range has at most `fetch_bytes`
/// bytes (a single requested range may have more). Returns the fetches in the order of their starts.
pub(super) fn coalesce(requested: &[Range<u64>], gap_bytes: u64, fetch_bytes: u64) -> Vec<Fetch> {
    let mut order: Vec<usize> = (0..requested.len()).collect();
    order.sort_by_key(|&position| (requested[position].start, requested[position].end));
    let mut fetches: Vec<Fetch> = Vec::new();
    for position in order {
        let range = &requested[position];
        match fetches.last_mut() {
            Some(last)
                if range.start <= last.range.end.saturating_add(gap_bytes)
                    && (range.end <= last.range.end || range.end - last.range.start <= fetch_bytes) =>
            {
                last.range.end = last.range.end.max(range.end);
                last.positions.push(position);
            }
            _ => fetches.push(Fetch { range: range.clone(), positions: vec![position] }),
        }
    }
    fetches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(requested: &[Range<u64>], gap: u64, most: u64) -> Vec<Range<u64>> {
        coalesce(requested, gap, most).into_iter().map(|fetch| fetch.range).collect()
    }

    #[test]
    fn adjacent_ranges_are_merged_and_distant_ones_stay_separate() {
        assert_eq!(ranges(&[10..20, 0..10, 40..50], 0, 100), [0..20, 40..50]);
        assert_eq!(ranges(&[10..20, 0..10, 40..50], 20, 100), vec![0..50]);
        assert_eq!(ranges(&[0..10, 0..10, 2..5], 0, 100), vec![0..10]);
    }

    #[test]
    fn no_fetch_exceeds_the_limit_unless_one_range_does() {
        assert_eq!(ranges(&[0..10, 10..20, 20..30], 0, 20), [0..20, 20..30]);
        assert_eq!(ranges(&[0..100, 100..110], 0, 20), [0..100, 100..110]);
        assert_eq!(ranges(&[0..100, 5..7], 0, 20), vec![0..100]);
    }

    #[test]
    fn every_requested_range_is_in_exactly_one_fetch() {
        let requested = [30..40, 0..5, 5..9, 100..101, 3..4];
        let fetches = coalesce(&requested, 2, 50);
        let mut positions: Vec<usize> = fetches.iter().flat_map(|fetch| fetch.positions.clone()).collect();
        positions.sort_unstable();
        assert_eq!(positions, [0, 1, 2, 3, 4]);
        for fetch in fetches {
            for position in fetch.positions {
                assert!(
                    fetch.range.start <= requested[position].start
                        && requested[position].end <= fetch.range.end
                );
            }
        }
    }
}
