//! [`ShardIndex`]: where each inner chunk of a shard stands (Zarr codecs, "sharding-indexed", "Binary shard
//! format").

use std::ops::Range;

use bytes::Bytes;

use super::super::CodecError;
use super::super::buffer;
use super::{ENTRY_BYTES, IndexLocation, NAME, Sharding};
use crate::chunk::Elements;

/// Offset and length of an inner chunk that is not there.
const ABSENT: u64 = u64::MAX;

/// A shard's index: where each inner chunk stands in the shard. Every range lies inside the shard and outside
/// the index; ranges may overlap each other.
#[derive(Debug)]
pub struct ShardIndex {
    /// Offset and length of each inner chunk, in C order.
    entries: Vec<(u64, u64)>,
}

impl ShardIndex {
    /// The bytes of the inner chunk with this C-order number in the shard; `None` if it is absent (fill
    /// value).
    #[must_use]
    pub fn get(&self, inner_chunk: usize) -> Option<Range<u64>> {
        let &(offset, length) = self.entries.get(inner_chunk)?;
        // No sum overflows: `decode_index` has compared it with the shard's length.
        (offset != ABSENT).then(|| offset..offset.saturating_add(length))
    }

    /// The number of inner chunks, present and absent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the shard has no inner chunks at all, which takes a dimension of length 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Sharding {
    /// Where the index stands in a shard of so many bytes.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if the shard is shorter than its index.
    pub fn index_range(&self, shard_bytes: u64) -> Result<Range<u64>, CodecError> {
        let Some(rest) = shard_bytes.checked_sub(self.index_bytes) else {
            let index = self.index_bytes;
            let reason = format!("a shard of {shard_bytes} bytes is shorter than its index of {index}");
            return Err(CodecError::corrupt(NAME, reason));
        };
        Ok(match self.index_location {
            IndexLocation::Start => 0..self.index_bytes,
            IndexLocation::End => rest..shard_bytes,
        })
    }

    /// Decodes an index of [`Sharding::index_bytes`] bytes of a shard of `shard_bytes` bytes; every entry of
    /// it is checked to lie inside the shard and outside the index.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`].
    pub fn decode_index(&self, encoded: &[u8], shard_bytes: u64) -> Result<ShardIndex, CodecError> {
        let index = self.index_range(shard_bytes)?;
        let decoded = self.index_chain.decode(Bytes::from(buffer::copied(encoded)?))?.into_items();
        let (pairs, _) = decoded.as_chunks::<16>();
        let mut entries = Vec::new();
        let bytes = (pairs.len() as u64).saturating_mul(ENTRY_BYTES);
        entries.try_reserve_exact(pairs.len()).map_err(|_refused| CodecError::NoMemory { bytes })?;
        for (inner_chunk, pair) in pairs.iter().enumerate() {
            let (offset, length) = pair.split_at(8);
            let (offset, length) = (number(offset), number(length));
            check(offset, length, &index, shard_bytes)
                .map_err(|reason| CodecError::corrupt(NAME, format!("inner chunk {inner_chunk} {reason}")))?;
            entries.push((offset, length));
        }
        Ok(ShardIndex { entries })
    }

    /// Encodes an index of offsets and lengths; absent inner chunks are `None`.
    pub(super) fn encode_index(&self, entries: &[Option<Range<u64>>]) -> Result<Bytes, CodecError> {
        let mut elements = buffer::reserved((entries.len() as u64).saturating_mul(ENTRY_BYTES))?;
        for entry in entries {
            let (offset, length) =
                entry.as_ref().map_or((ABSENT, ABSENT), |range| (range.start, range.end - range.start));
            elements.extend_from_slice(&offset.to_le_bytes());
            elements.extend_from_slice(&length.to_le_bytes());
        }
        self.index_chain.encode(Elements::fixed(elements.into()))
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(ABSENT, |bytes| u64::from_le_bytes(*bytes))
}

/// Whether an inner chunk may stand there.
fn check(offset: u64, length: u64, index: &Range<u64>, shard_bytes: u64) -> Result<(), &'static str> {
    match (offset, length) {
        (ABSENT, ABSENT) => return Ok(()),
        (ABSENT, _) | (_, ABSENT) => return Err("is half absent"),
        _ => {}
    }
    let end = offset.checked_add(length).filter(|&end| end <= shard_bytes);
    let end = end.ok_or("ends behind the shard")?;
    if offset.max(index.start) < end.min(index.end) {
        return Err("overlaps the index");
    }
    Ok(())
}
