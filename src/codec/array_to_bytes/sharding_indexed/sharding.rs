//! [`Sharding`]: the bound sharding codec, namely the geometry of a shard and the chains inside it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::codec::chain::{CodecChain, Sharded, ShardingCodec};
use crate::codec::error::CodecError;
use crate::codec::shard_index::{IndexLocation, ShardIndex};
use crate::codec::support::representation::{Representation, Size};

pub(super) const NAME: &str = "sharding_indexed";

/// Bytes of an index entry: offset and length.
pub(super) const ENTRY_BYTES: u64 = 16;

/// A bound sharding codec.
#[derive(Debug)]
pub(super) struct Sharding {
    /// The codec's input.
    pub(super) shard: Representation,
    pub(super) order: Vec<usize>,
    pub(super) inner_shape: Vec<u64>,
    pub(super) chunks_per_shard: Vec<u64>,
    pub(super) inner_chain: Arc<CodecChain>,
    pub(super) index_chain: CodecChain,
    pub(super) index_location: IndexLocation,
    pub(super) index_bytes: u64,
    pub(super) encoded_size: Size,
    /// The most bytes of all elements of a shard.
    pub(super) limit: u64,
}

impl Sharded for Sharding {
    fn order(&self) -> &[usize] {
        &self.order
    }

    fn inner_shape(&self) -> &[u64] {
        &self.inner_shape
    }

    fn chunks_per_shard(&self) -> &[u64] {
        &self.chunks_per_shard
    }

    fn inner_chain(&self) -> &Arc<CodecChain> {
        &self.inner_chain
    }

    fn index_location(&self) -> IndexLocation {
        self.index_location
    }

    fn index_bytes(&self) -> u64 {
        self.index_bytes
    }

    fn index_range(&self, shard_bytes: u64) -> Result<Range<u64>, CodecError> {
        self.range_of_index(shard_bytes)
    }

    fn decode_index(&self, encoded: &[u8], shard_bytes: u64) -> Result<ShardIndex, CodecError> {
        self.decode_entries(encoded, shard_bytes)
    }

    fn encode_index(&self, entries: &[Option<Range<u64>>]) -> Result<Bytes, CodecError> {
        self.encode_entries(entries)
    }
}

impl ShardingCodec for Sharding {
    fn set_order(&mut self, order: Vec<usize>) {
        self.order = order;
    }

    fn index_chain(&self) -> &CodecChain {
        &self.index_chain
    }
}

/// The number of inner chunks; `None` if more than a `u64` can count.
pub(super) fn count(chunks_per_shard: &[u64]) -> Option<u64> {
    if chunks_per_shard.contains(&0) {
        return Some(0);
    }
    chunks_per_shard.iter().try_fold(1, |count: u64, &along| count.checked_mul(along))
}
