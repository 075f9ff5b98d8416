//! [`ChunkNumbers`]: the numbers of an array's chunks, and their names.

/// The most dimensions of an array.
const MAX_DIMENSIONS: usize = 32;

/// The chunks of an array of v2, whose keys have dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkNumbers {
    /// How many there are along each dimension.
    counts: Vec<u64>,
    total: u64,
}

impl ChunkNumbers {
    /// The chunks of an array of this shape; `None` if it has no chunk shape, or too many chunks.
    pub(super) fn new(shape: &[u64], chunks: &[u64]) -> Option<Self> {
        if shape.len() != chunks.len() || shape.len() > MAX_DIMENSIONS || chunks.contains(&0) {
            return None;
        }
        let counts: Vec<u64> =
            shape.iter().zip(chunks).map(|(length, chunk)| length.div_ceil(*chunk)).collect();
        let total = counts.iter().try_fold(1_u64, |total, count| total.checked_mul(*count))?;
        Some(Self { counts, total })
    }

    /// How many there are.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The number of the chunk with a name such as `0.12`; `None` if there is none.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        if self.counts.is_empty() {
            return (name == "0").then_some(0);
        }
        let mut places = name.split('.');
        let number = self.counts.iter().try_fold(0_u64, |number, count| {
            let text = places.next()?;
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let place: u64 =
                text.parse().ok().filter(|_| is_plain && (text == "0" || !text.starts_with('0')))?;
            (place < *count).then(|| number * count + place)
        })?;
        places.next().is_none().then_some(number)
    }

    /// The name of a chunk.
    pub(super) fn name(&self, number: u64) -> String {
        if self.counts.is_empty() {
            return "0".to_owned();
        }
        let mut rest = number;
        let mut places: Vec<String> = Vec::with_capacity(self.counts.len());
        for count in self.counts.iter().rev() {
            places.push((rest % count.max(&1)).to_string());
            rest /= count.max(&1);
        }
        places.reverse();
        places.join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_one_name_and_one_number() {
        let chunks = ChunkNumbers::new(&[7, 20, 3], &[2, 3, 3]).unwrap();
        assert_eq!(chunks.total(), 28);
        for number in 0..28 {
            assert_eq!(chunks.number(&chunks.name(number)), Some(number));
        }
        assert_eq!((chunks.name(0), chunks.name(27)), ("0.0.0".to_owned(), "3.6.0".to_owned()));
        for name in
            ["", "0", "0.0", "0.0.1", "4.0.0", "0.0.0.0", "00.0.0", "+1.0.0", "-1.0.0", "0..0", "a.0.0"]
        {
            assert_eq!(chunks.number(name), None, "{name}");
        }
        let scalar = ChunkNumbers::new(&[], &[]).unwrap();
        assert_eq!((scalar.total(), scalar.number("0"), scalar.name(0)), (1, Some(0), "0".to_owned()));
        assert_eq!(ChunkNumbers::new(&[0, 4], &[1, 1]).unwrap().total(), 0);
        for (shape, chunk) in [(&[1_u64][..], &[][..]), (&[1], &[0]), (&[u64::MAX, u64::MAX], &[1, 1])] {
            assert_eq!(ChunkNumbers::new(shape, chunk), None);
        }
    }
}
