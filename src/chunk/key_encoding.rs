//! [`ChunkKeyEncoding`]: a chunk's coordinates as a key (Zarr core 3.1, "Chunk key encoding").
//!
//! The encodings of extensions are in `extended_keys`.

use super::extended_keys;
use super::joined_keys::{default_coords, push_default, push_v2, v2_coords};
use crate::metadata::{ChunkKeyEncodingMetadata, Separator};

/// How chunk coordinates become keys below the array's prefix, and keys become coordinates.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        match &self.0 {
            ChunkKeyEncodingMetadata::Default(separator) => push_default(&mut key, *separator, coords),
            ChunkKeyEncodingMetadata::V2(separator) => push_v2(&mut key, *separator, coords),
            ChunkKeyEncodingMetadata::V2Unspecified => push_v2(&mut key, Separator::Dot, coords),
            ChunkKeyEncodingMetadata::Extended(keys) => extended_keys::push_key(&mut key, keys, coords),
        }
        key
    }

    /// The coordinates of a key in its one canonical spelling: decimal digits without leading zeros or signs. `None`
    /// for anything else, and for a key that could be those of several chunks.
    #[must_use]
    pub fn decode(&self, key: &str, rank: usize) -> Option<Vec<u64>> {
        match &self.0 {
            ChunkKeyEncodingMetadata::Default(separator) => default_coords(key, *separator, rank),
            ChunkKeyEncodingMetadata::V2(separator) => v2_coords(key, *separator, rank),
            ChunkKeyEncodingMetadata::V2Unspecified => v2_coords(key, Separator::Dot, rank),
            ChunkKeyEncodingMetadata::Extended(keys) => extended_keys::key_coords(key, keys, rank),
        }
    }

    /// The encoding of the specification's default, which `/v1/chunk` uses for arrays of any format.
    #[must_use]
    pub fn canonical() -> Self {
        Self(ChunkKeyEncodingMetadata::Default(Separator::Slash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_specification() {
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
    fn only_the_canonical_spelling_of_a_key_decodes() {
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
