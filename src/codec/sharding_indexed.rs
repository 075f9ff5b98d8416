//! `sharding_indexed`: many inner chunks and an index in one value (Zarr codecs, "sharding-indexed").

use std::ops::Range;
use std::sync::Arc;

use super::{CodecChain, CodecError};

/// Where a shard's index stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexLocation {
    /// In front of the inner chunks.
    Start,
    /// Behind them.
    End,
}

/// A bound sharding codec.
///
/// *Shard space* is the codec's input: the chunk's dimensions after the `transpose` codecs that stand before it.
#[derive(Debug)]
pub struct Sharding;

impl Sharding {
    /// For each dimension of shard space, the dimension of the chunk it is: `shard_pos[i] = chunk_pos[order[i]]`.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &[]
    }

    /// The shape of an inner chunk, in shard space.
    #[must_use]
    pub fn inner_shape(&self) -> &[u64] {
        &[]
    }

    /// Inner chunks along each dimension of shard space.
    #[must_use]
    pub fn chunks_per_shard(&self) -> &[u64] {
        &[]
    }

    /// The chain of an inner chunk; may itself be sharded.
    #[must_use]
    pub fn inner_chain(&self) -> &Arc<CodecChain> {
        unreachable!()
    }

    /// Where the index stands.
    #[must_use]
    pub fn index_location(&self) -> IndexLocation {
        IndexLocation::End
    }

    /// Bytes of the encoded index.
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        0
    }

    /// Decodes an index of [`Sharding::index_bytes`] bytes of a shard of `shard_bytes` bytes; every entry of it is
    /// checked to lie inside the shard and outside the index.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`].
    pub fn decode_index(&self, _encoded: &[u8], _shard_bytes: u64) -> Result<ShardIndex, CodecError> {
        Err(CodecError::Unsupported("any".to_owned()))
    }
}

/// A shard's index: where each inner chunk stands in the shard.
#[derive(Debug)]
pub struct ShardIndex;

impl ShardIndex {
    /// Bytes of memory this takes, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        0
    }

    /// The bytes of the inner chunk with this C-order number in the shard; `None` if it is absent (fill value).
    #[must_use]
    pub fn get(&self, _inner_chunk: usize) -> Option<Range<u64>> {
        None
    }
}
