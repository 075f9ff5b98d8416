//! [`Manifest`]: the fragments of an object (Zarr Vector Format 0.9, "object index").

use super::PayloadError;
use super::cursor::PayloadReader;

/// Consecutive fragments of an object in one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentSpan {
    /// The chunk.
    pub chunk: Vec<i64>,
    /// The numbers of the fragments in that chunk.
    pub fragments: FragmentNumbers,
}

/// Fragment numbers, in the form in which they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FragmentNumbers {
    /// From the first number, up to and excluding the second.
    Range(u32, u32),
    /// Single numbers.
    List(Vec<u32>),
}

impl FragmentNumbers {
    /// The number of fragments.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Range(start, end) => end.saturating_sub(*start) as usize,
            Self::List(numbers) => numbers.len(),
        }
    }

    /// Whether there are no fragments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The fragment numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let (range, list) = match self {
            Self::Range(start, end) => (*start..*end, &[][..]),
            Self::List(numbers) => (0..0, numbers.as_slice()),
        };
        range.chain(list.iter().copied())
    }
}

/// The fragments of an object, in order. Empty for an object that is not present at this level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The blocks of the manifest.
    pub spans: Vec<FragmentSpan>,
}

/// The largest number of fragments that one manifest may name. A block of a first number and a count can name more
/// fragments than it has bytes.
const MAX_FRAGMENTS: u64 = 1 << 22;

impl Manifest {
    /// Decodes a manifest whose chunks have `coordinates` coordinates.
    ///
    /// # Errors
    /// [`PayloadError`].
    pub fn decode(bytes: &[u8], coordinates: usize) -> Result<Self, PayloadError> {
        let mut cursor = PayloadReader::new(bytes);
        let blocks = cursor.u32("header")?;
        let mut spans = Vec::new();
        let mut left = MAX_FRAGMENTS;
        for block in 0..blocks {
            let chunk = cursor.i64s(coordinates as u64, "coordinates")?;
            let fragments = match cursor.u8("mode")? {
                0 => FragmentNumbers::List(vec![fragment_number(cursor.i64("fragment")?)?]),
                1 => {
                    let (start, count) = (cursor.i64("fragments")?, cursor.i64("fragments")?);
                    let first = fragment_number(start)?;
                    let count = u64::try_from(count).map_err(|_negative| PayloadError::Count(count))?;
                    if count > left {
                        return Err(PayloadError::Count(i64::try_from(count).unwrap_or(i64::MAX)));
                    }
                    let end = u32::try_from(u64::from(first) + count)
                        .map_err(|_too_far| PayloadError::Fragment(start))?;
                    FragmentNumbers::Range(first, end)
                }
                2 => {
                    let count = cursor.u32("fragments")?;
                    let numbers = cursor.i64s(count.into(), "fragments")?;
                    FragmentNumbers::List(numbers.into_iter().map(fragment_number).collect::<Result<_, _>>()?)
                }
                mode => return Err(PayloadError::Mode { mode, block }),
            };
            left = left.saturating_sub(fragments.len() as u64);
            spans.push(FragmentSpan { chunk, fragments });
        }
        cursor.end()?;
        Ok(Self { spans })
    }

    /// Each fragment with its chunk, in order.
    pub fn fragments(&self) -> impl Iterator<Item = (&[i64], u32)> {
        self.spans.iter().flat_map(|span| {
            let chunk = span.chunk.as_slice();
            span.fragments.iter().map(move |fragment| (chunk, fragment))
        })
    }

    /// The number of fragments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.iter().fold(0, |count, span| count.saturating_add(span.fragments.len()))
    }

    /// Whether the object is not present at this level.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

/// A fragment number; the fragment index stores its counts in 32 bits.
fn fragment_number(fragment: i64) -> Result<u32, PayloadError> {
    u32::try_from(fragment).map_err(|_out_of_range| PayloadError::Fragment(fragment))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(mode: u8, numbers: &[i64]) -> Vec<u8> {
        let mut bytes = [3_i64, -1].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        bytes.push(mode);
        if mode == 2 {
            bytes.extend((numbers.len() as u32).to_le_bytes());
        }
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    fn manifest(blocks: &[Vec<u8>]) -> Vec<u8> {
        [&(blocks.len() as u32).to_le_bytes()[..], &blocks.concat()].concat()
    }

    #[test]
    fn blocks_of_each_mode_are_decoded() {
        let bytes = manifest(&[block(0, &[7]), block(1, &[2, 3]), block(2, &[5, 0])]);
        let decoded = Manifest::decode(&bytes, 2).unwrap();
        let named: Vec<_> = decoded.fragments().map(|(_, fragment)| fragment).collect();
        assert_eq!(named, [7, 2, 3, 4, 5, 0]);
        assert!(decoded.fragments().all(|(chunk, _)| chunk == [3, -1]));
        assert!(Manifest::decode(&[0; 4], 2).unwrap().is_empty());
        for end in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..end], 2).is_err(), "{end}");
        }
        assert_eq!(Manifest::decode(&[&bytes[..], &[0]].concat(), 2), Err(PayloadError::Trailing(1)));
    }

    #[test]
    fn invalid_manifests_are_rejected() {
        let decode = |block: Vec<u8>| Manifest::decode(&manifest(&[block]), 2).unwrap_err();
        assert_eq!(decode(block(3, &[0])), PayloadError::Mode { mode: 3, block: 0 });
        assert_eq!(decode(block(0, &[-1])), PayloadError::Fragment(-1));
        assert_eq!(decode(block(1, &[0, -1])), PayloadError::Count(-1));
        assert_eq!(decode(block(1, &[0, i64::MAX])), PayloadError::Count(i64::MAX));
        assert_eq!(decode(block(2, &[i64::MAX])), PayloadError::Fragment(i64::MAX));
        let many = [&u32::MAX.to_le_bytes()[..], &block(0, &[1])].concat();
        assert!(matches!(Manifest::decode(&many, 2), Err(PayloadError::Short(_))));
        // Counts without fragments are bounded as well.
        let counts: Vec<_> = (0..4).map(|_| block(1, &[0, 1 << 21])).collect();
        assert!(matches!(Manifest::decode(&manifest(&counts), 2), Err(PayloadError::Count(_))));
    }

    proptest::proptest! {
        #[test]
        fn manifests_of_any_bytes_decode_without_panic(bytes: Vec<u8>, coordinates in 0..4_usize) {
            let _ = Manifest::decode(&bytes, coordinates);
        }
    }
}
