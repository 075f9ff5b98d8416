//! [`FragmentIndex`]: which rows of a cell belong together (Zarr Vector Format 0.9, "fragment index").
//!
//! The index has a header of 16 bytes, a bitmap that marks the fragments stored as ranges, the ranges, and for the
//! others a table of offsets and their rows. Whether fragments are bins is not decided here.

use super::PayloadError;
use super::cursor::PayloadReader;

/// `GFVZ` in stored order.
const MAGIC: u32 = 0x5A56_4647;
const VERSION: u16 = 1;

/// One fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment<'a> {
    /// Consecutive rows.
    Range {
        /// The first row.
        start: u64,
        /// The number of rows.
        count: u64,
    },
    /// Rows in any order.
    Rows(&'a [i64]),
}

impl Fragment<'_> {
    /// The number of rows.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::Range { count, .. } => *count,
            Self::Rows(rows) => rows.len() as u64,
        }
    }

    /// The rows, in fragment order.
    pub fn rows(self) -> impl Iterator<Item = u64> {
        let (range, rows) = match self {
            Self::Range { start, count } => (start..start.saturating_add(count), &[][..]),
            Self::Rows(rows) => (0..0, rows),
        };
        // `decode` has checked that no row is negative.
        range.chain(rows.iter().map(|row| row.unsigned_abs()))
    }
}

#[derive(Clone, Copy, Debug)]
enum FragmentRows {
    Range { start: u64, count: u64 },
    Explicit { start: usize, end: usize },
}

/// The fragments of a cell. Every row exists.
#[derive(Clone, Debug, Default)]
pub struct FragmentIndex {
    fragments: Vec<FragmentRows>,
    rows: Vec<i64>,
    is_tiling: bool,
}

impl FragmentIndex {
    /// Decodes the index of a cell with `rows` rows.
    ///
    /// # Errors
    /// [`PayloadError`].
    pub fn decode(bytes: &[u8], rows: u64) -> Result<Self, PayloadError> {
        let mut cursor = PayloadReader::new(bytes);
        if cursor.u32("header")? != MAGIC {
            return Err(PayloadError::Magic);
        }
        let version = cursor.u16("header")?;
        if version != VERSION {
            return Err(PayloadError::Version(version));
        }
        let flags = cursor.u16("header")?;
        if flags != 0 {
            return Err(PayloadError::Flags(flags));
        }
        let (fragments, ranges) = (cursor.u32("header")?, cursor.u32("header")?);
        if ranges > fragments {
            return Err(PayloadError::TooManyRanges { ranges, fragments });
        }
        if fragments == 0 {
            cursor.end()?;
            return Ok(Self { fragments: Vec::new(), rows: Vec::new(), is_tiling: rows == 0 });
        }
        let padded = (fragments as usize).div_ceil(8).next_multiple_of(8);
        let bitmap = cursor.take(padded, "bitmap")?;
        let marked: u32 = bitmap.iter().map(|byte| byte.count_ones()).sum();
        let is_range =
            |fragment: usize| bitmap.get(fragment / 8).is_some_and(|byte| (byte >> (fragment % 8)) & 1 == 1);
        if (fragments as usize..padded.saturating_mul(8)).any(is_range) {
            return Err(PayloadError::Padding);
        }
        if marked != ranges {
            return Err(PayloadError::RangeCount { marked, ranges });
        }
        let pairs = cursor.i64s(u64::from(ranges) * 2, "ranges")?;
        let explicit = (fragments - ranges) as usize;
        let offsets = cursor.take(4 * (explicit + 1), "offsets")?;
        let (offsets, _) = offsets.as_chunks::<4>();
        let mut offsets = offsets.iter().map(|&offset| u32::from_le_bytes(offset) as usize);
        let mut last = offsets.next().unwrap_or_default();
        if last != 0 {
            return Err(PayloadError::Offsets);
        }
        let mut spans = Vec::with_capacity(explicit);
        for offset in offsets {
            if offset < last {
                return Err(PayloadError::Offsets);
            }
            spans.push((last, offset));
            last = offset;
        }
        let explicit_rows = cursor.i64s(last as u64, "rows")?;
        cursor.end()?;
        if let Some(&row) =
            explicit_rows.iter().find(|&&row| u64::try_from(row).map_or(true, |row| row >= rows))
        {
            return Err(PayloadError::Row { row, rows });
        }
        let (pairs, _) = pairs.as_chunks::<2>();
        let places = decode_fragments(fragments as usize, is_range, pairs, &spans, rows)?;
        let tiles = are_tiling(&places, rows);
        Ok(Self { fragments: places, rows: explicit_rows, is_tiling: tiles })
    }

    /// An index of ranges, each a first row and a count; the caller has checked that the rows exist.
    #[must_use]
    pub fn from_ranges(ranges: &[(u64, u64)], rows: u64) -> Self {
        let fragments: Vec<FragmentRows> =
            ranges.iter().map(|&(start, count)| FragmentRows::Range { start, count }).collect();
        let is_tiling = are_tiling(&fragments, rows);
        Self { fragments, rows: Vec::new(), is_tiling }
    }

    /// The number of fragments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fragments.len()
    }

    /// Whether there are no fragments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The fragment with this number.
    #[must_use]
    pub fn get(&self, fragment: usize) -> Option<Fragment<'_>> {
        Some(match *self.fragments.get(fragment)? {
            FragmentRows::Range { start, count } => Fragment::Range { start, count },
            FragmentRows::Explicit { start, end } => {
                Fragment::Rows(self.rows.get(start..end).unwrap_or_default())
            }
        })
    }

    /// All fragments, in order.
    pub fn iter(&self) -> impl Iterator<Item = Fragment<'_>> {
        (0..self.len()).filter_map(|fragment| self.get(fragment))
    }

    /// Whether the fragments are consecutive ranges that cover the cell from its first row to its last.
    #[must_use]
    pub fn is_tiling(&self) -> bool {
        self.is_tiling
    }
}

fn decode_fragments(
    fragments: usize,
    is_range: impl Fn(usize) -> bool,
    pairs: &[[i64; 2]],
    spans: &[(usize, usize)],
    rows: u64,
) -> Result<Vec<FragmentRows>, PayloadError> {
    let (mut pairs, mut spans) = (pairs.iter(), spans.iter());
    let mut places = Vec::with_capacity(fragments);
    for fragment in 0..fragments {
        let place = if is_range(fragment) {
            let &[start, count] = pairs.next().ok_or(PayloadError::Short("ranges"))?;
            let count = u64::try_from(count).map_err(|_negative| PayloadError::Count(count))?;
            let first = u64::try_from(start).map_err(|_negative| PayloadError::Row { row: start, rows })?;
            // Both are below 2^63.
            if first + count > rows {
                let row = i64::try_from((first + count).saturating_sub(1)).unwrap_or(i64::MAX);
                return Err(PayloadError::Row { row, rows });
            }
            FragmentRows::Range { start: first, count }
        } else {
            let &(start, end) = spans.next().ok_or(PayloadError::Short("offsets"))?;
            FragmentRows::Explicit { start, end }
        };
        places.push(place);
    }
    Ok(places)
}

fn are_tiling(places: &[FragmentRows], rows: u64) -> bool {
    let mut next = 0;
    for place in places {
        match *place {
            FragmentRows::Range { start, count } if start == next => next += count,
            FragmentRows::Range { .. } | FragmentRows::Explicit { .. } => return false,
        }
    }
    next == rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index of these fragments: `Ok` is a range, `Err` are rows.
    fn encode(fragments: &[Result<(i64, i64), Vec<i64>>]) -> Vec<u8> {
        let ranges: Vec<_> = fragments.iter().filter_map(|fragment| fragment.as_ref().ok()).collect();
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(0_u16.to_le_bytes());
        bytes.extend((fragments.len() as u32).to_le_bytes());
        bytes.extend((ranges.len() as u32).to_le_bytes());
        if fragments.is_empty() {
            return bytes;
        }
        let mut bitmap = vec![0_u8; fragments.len().div_ceil(8).next_multiple_of(8)];
        for (place, fragment) in fragments.iter().enumerate() {
            bitmap[place / 8] |= u8::from(fragment.is_ok()) << (place % 8);
        }
        bytes.extend(bitmap);
        bytes.extend(
            ranges.iter().flat_map(|(start, count)| [start.to_le_bytes(), count.to_le_bytes()].concat()),
        );
        let mut at = 0_u32;
        bytes.extend(at.to_le_bytes());
        for rows in fragments.iter().filter_map(|fragment| fragment.as_ref().err()) {
            at += rows.len() as u32;
            bytes.extend(at.to_le_bytes());
        }
        for rows in fragments.iter().filter_map(|fragment| fragment.as_ref().err()) {
            bytes.extend(rows.iter().flat_map(|row| row.to_le_bytes()));
        }
        bytes
    }

    #[test]
    fn fragments_of_ranges_and_of_rows_are_decoded_in_order() {
        let bytes = encode(&[Ok((0, 2)), Err(vec![4, 2]), Ok((2, 0)), Err(vec![])]);
        let index = FragmentIndex::decode(&bytes, 5).unwrap();
        let rows: Vec<Vec<u64>> = index.iter().map(|fragment| fragment.rows().collect()).collect();
        assert_eq!(rows, [vec![0, 1], vec![4, 2], vec![], vec![]]);
        assert!(!index.is_tiling());
        assert!(
            FragmentIndex::decode(&encode(&[Ok((0, 2)), Ok((2, 0)), Ok((2, 3))]), 5).unwrap().is_tiling()
        );
        assert!(FragmentIndex::decode(&encode(&[]), 0).unwrap().is_tiling());
        assert!(!FragmentIndex::decode(&encode(&[]), 1).unwrap().is_tiling());
    }

    #[test]
    fn each_kind_of_corruption_has_its_own_error() {
        let good = encode(&[Ok((0, 2)), Err(vec![1])]);
        let decode = |bytes: &[u8]| FragmentIndex::decode(bytes, 2).unwrap_err();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            decode(&bytes)
        };
        assert_eq!(with(0, 0), PayloadError::Magic);
        assert_eq!(with(4, 2), PayloadError::Version(2));
        assert_eq!(with(6, 1), PayloadError::Flags(1));
        assert_eq!(with(12, 3), PayloadError::TooManyRanges { ranges: 3, fragments: 2 });
        assert_eq!(with(16, 3), PayloadError::RangeCount { marked: 2, ranges: 1 });
        assert_eq!(with(16, 5), PayloadError::Padding);
        assert_eq!(with(24, 1), PayloadError::Row { row: 2, rows: 2 });
        assert_eq!(
            with(31, 0xff),
            PayloadError::Row { row: i64::from_le_bytes([0, 0, 0, 0, 0, 0, 0, 0xff]), rows: 2 }
        );
        assert_eq!(with(39, 0x80), PayloadError::Count(i64::from_le_bytes([2, 0, 0, 0, 0, 0, 0, 0x80])));
        assert_eq!(with(40, 1), PayloadError::Offsets);
        assert_eq!(with(48, 2), PayloadError::Row { row: 2, rows: 2 });
        for end in 0..good.len() {
            assert!(matches!(decode(&good[..end]), PayloadError::Short(_)), "{end}");
        }
        assert_eq!(decode(&[&good[..], &[0]].concat()), PayloadError::Trailing(1));
    }

    #[test]
    fn counts_above_the_payload_size_are_rejected() {
        let mut bytes = encode(&[Ok((0, 1))]);
        bytes[8..16].copy_from_slice(&[0xff; 8]);
        assert!(matches!(FragmentIndex::decode(&bytes, 1), Err(PayloadError::Short(_))));
    }

    proptest::proptest! {
        #[test]
        fn decoded_rows_always_exist(bytes: Vec<u8>, changed: [(usize, u8); 3], rows in 0..9_u64) {
            let mut good = encode(&[Ok((0, 3)), Err(vec![1, 2]), Ok((3, 2))]);
            for (at, byte) in changed {
                let at = at % good.len();
                good[at] = byte;
            }
            for bytes in [bytes, good] {
                if let Ok(index) = FragmentIndex::decode(&bytes, rows) {
                    proptest::prop_assert!(index.iter().flat_map(Fragment::rows).all(|row| row < rows));
                }
            }
        }
    }
}
