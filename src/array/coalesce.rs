//! Which byte ranges to fetch so that every wanted one is among them.

use std::ops::Range;

/// One range to fetch, and which of the wanted ranges it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    pub(super) range: Range<u64>,
    /// Places in the list of wanted ranges.
    pub(super) wanted: Vec<usize>,
}

/// Merges ranges that touch, overlap or leave a gap of at most `gap_bytes`, as long as the merged one stays within
/// `fetch_bytes` (a single wanted range may be longer). In the order of their starts.
pub(super) fn coalesce(wanted: &[Range<u64>], gap_bytes: u64, fetch_bytes: u64) -> Vec<Fetch> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&place| (wanted[place].start, wanted[place].end));
    let mut fetches: Vec<Fetch> = Vec::new();
    for place in order {
        let range = &wanted[place];
        match fetches.last_mut() {
            Some(last)
                if range.start <= last.range.end.saturating_add(gap_bytes)
                    && (range.end <= last.range.end || range.end - last.range.start <= fetch_bytes) =>
            {
                last.range.end = last.range.end.max(range.end);
                last.wanted.push(place);
            }
            _ => fetches.push(Fetch { range: range.clone(), wanted: vec![place] }),
        }
    }
    fetches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(wanted: &[Range<u64>], gap: u64, most: u64) -> Vec<Range<u64>> {
        coalesce(wanted, gap, most).into_iter().map(|fetch| fetch.range).collect()
    }

    #[test]
    fn adjacent_ranges_are_fetched_as_one_and_distant_ones_apart() {
        assert_eq!(ranges(&[10..20, 0..10, 40..50], 0, 100), [0..20, 40..50]);
        assert_eq!(ranges(&[10..20, 0..10, 40..50], 20, 100), vec![0..50]);
        assert_eq!(ranges(&[0..10, 0..10, 2..5], 0, 100), vec![0..10]);
    }

    #[test]
    fn no_fetch_grows_beyond_the_limit_unless_one_range_is_longer() {
        assert_eq!(ranges(&[0..10, 10..20, 20..30], 0, 20), [0..20, 20..30]);
        assert_eq!(ranges(&[0..100, 100..110], 0, 20), [0..100, 100..110]);
        assert_eq!(ranges(&[0..100, 5..7], 0, 20), vec![0..100]);
    }

    #[test]
    fn every_wanted_range_is_in_exactly_one_fetch() {
        let wanted = [30..40, 0..5, 5..9, 100..101, 3..4];
        let fetches = coalesce(&wanted, 2, 50);
        let mut places: Vec<usize> = fetches.iter().flat_map(|fetch| fetch.wanted.clone()).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3, 4]);
        for fetch in fetches {
            for place in fetch.wanted {
                assert!(fetch.range.start <= wanted[place].start && wanted[place].end <= fetch.range.end);
            }
        }
    }
}
