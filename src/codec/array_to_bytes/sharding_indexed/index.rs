//! The index of a shard: decoding with every entry checked, and encoding (Zarr codecs, "sharding-indexed", "Binary shard
//! format").

use std::ops::Range;

use bytes::Bytes;

use super::sharding::{ENTRY_BYTES, NAME, Sharding};
use crate::chunk::Elements;
use crate::codec::error::CodecError;
use crate::codec::shard_index::{ABSENT, IndexLocation, ShardIndex};
use crate::codec::support::buffer;

impl Sharding {
    /// As [`Sharded::index_range`](crate::codec::Sharded::index_range).
    pub(super) fn range_of_index(&self, shard_bytes: u64) -> Result<Range<u64>, CodecError> {
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

    /// As [`Sharded::decode_index`](crate::codec::Sharded::decode_index).
    pub(super) fn decode_entries(&self, encoded: &[u8], shard_bytes: u64) -> Result<ShardIndex, CodecError> {
        let index = self.range_of_index(shard_bytes)?;
        let decoded = self.index_chain.decode(Bytes::from(buffer::copy_of(encoded)?))?.into_items();
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
        Ok(ShardIndex::new(entries))
    }

    /// As [`Sharded::encode_index`](crate::codec::Sharded::encode_index).
    pub(super) fn encode_entries(&self, entries: &[Option<Range<u64>>]) -> Result<Bytes, CodecError> {
        let mut elements = buffer::with_capacity((entries.len() as u64).saturating_mul(ENTRY_BYTES))?;
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

/// Checks the range of an inner chunk against the shard and its index.
fn check(offset: u64, length: u64, index: &Range<u64>, shard_bytes: u64) -> Result<(), &'static str> {
    match (offset, length) {
        (ABSENT, ABSENT) => return Ok(()),
        (ABSENT, _) | (_, ABSENT) => return Err("is half absent"),
        _ => {}
    }
    let end = offset.checked_add(length).filter(|&end| end <= shard_bytes);
    let end = end.ok_or("ends after the shard")?;
    if offset.max(index.start) < end.min(index.end) {
        return Err("overlaps the index");
    }
    Ok(())
}
