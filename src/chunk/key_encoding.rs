//! [`ChunkKeyEncoding`]: a chunk's coordinates as a key (Zarr core 3.1, "Chunk key encoding").

use std::fmt::Write;

use crate::metadata::{ChunkKeyEncodingMetadata, Separator};

/// How chunk coordinates become keys below the array's prefix, and keys become coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkKeyEncoding(ChunkKeyEncodingMetadata);

impl ChunkKeyEncoding {
    /// The encoding that a document describes.
    #[must_use]
    pub fn new(metadata: ChunkKeyEncodingMetadata) -> Self {
        Self(metadata)
    }

    /// The key of a chunk, relative to the array's prefix.
    #[must_use]
    pub fn encode(&self, coords: &[u64]) -> String {
        let mut key = String::with_capacity(2 + coords.len() * 4);
        let separator = self.0.separator();
        let mut before = match self.0 {
            ChunkKeyEncodingMetadata::Default(_) => {
                key.push('c');
                Some(separator)
            }
            ChunkKeyEncodingMetadata::V2(_) | ChunkKeyEncodingMetadata::V2Unspecified => {
                if coords.is_empty() {
                    key.push('0');
                }
                None
            }
        };
        for coord in coords {
            if let Some(separator) = before {
                key.push(separator.as_char());
            }
            before = Some(separator);
            // Writing to a String cannot fail.
            let _ = write!(key, "{coord}");
        }
        key
    }

    /// The coordinates of a key in its one canonical spelling: decimal digits without leading zeros or signs. `None`
    /// for anything else.
    #[must_use]
    pub fn decode(&self, key: &str, rank: usize) -> Option<Vec<u64>> {
        let separator = self.0.separator();
        let coords = match self.0 {
            ChunkKeyEncodingMetadata::Default(_) => match (key.strip_prefix('c')?, rank) {
                ("", 0) => return Some(Vec::new()),
                (rest, _) => rest.strip_prefix(separator.as_char())?,
            },
            ChunkKeyEncodingMetadata::V2(_) | ChunkKeyEncodingMetadata::V2Unspecified => match (key, rank) {
                ("0", 0) => return Some(Vec::new()),
                _ => key,
            },
        };
        let coords: Vec<u64> =
            coords.split(separator.as_char()).map(parse_canonical).collect::<Option<_>>()?;
        (coords.len() == rank).then_some(coords)
    }

    /// The encoding of the specification's default, which `/v1/chunk` uses for arrays of any format.
    #[must_use]
    pub fn canonical() -> Self {
        Self(ChunkKeyEncodingMetadata::Default(Separator::Slash))
    }
}

fn parse_canonical(digits: &str) -> Option<u64> {
    let canonical = digits == "0" || !digits.starts_with('0');
    (canonical && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spelt_as_the_specification_spells_them() {
        use ChunkKeyEncodingMetadata::{Default, V2, V2Unspecified};
        for (metadata, coords, key) in [
            (Default(Separator::Slash), &[1u64, 23, 45][..], "c/1/23/45"),
            (Default(Separator::Dot), &[1, 23, 45][..], "c.1.23.45"),
            (V2(Separator::Dot), &[1, 23, 45][..], "1.23.45"),
            (V2(Separator::Slash), &[1, 23, 45][..], "1/23/45"),
            (Default(Separator::Slash), &[][..], "c"),
            (V2(Separator::Dot), &[][..], "0"),
            (V2Unspecified, &[1, 23, 45][..], "1.23.45"),
        ] {
            let encoding = ChunkKeyEncoding::new(metadata);
            assert_eq!(encoding.encode(coords), key);
            assert_eq!(encoding.decode(key, coords.len()).as_deref(), Some(coords));
        }
    }

    #[test]
    fn only_the_canonical_spelling_of_a_key_is_read_back() {
        let encoding = ChunkKeyEncoding::canonical();
        for key in [
            "c/00",
            "c/+1",
            "c/-1",
            "c/1e3",
            "c/٣",
            "c/",
            "c",
            "1",
            "c.1",
            "c/1/2",
            "c/18446744073709551616",
            "",
        ] {
            assert_eq!(encoding.decode(key, 1), None, "{key}");
        }
        assert_eq!(encoding.decode("c/0", 0), None);
    }
}
