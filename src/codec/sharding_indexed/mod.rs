//! `sharding_indexed`: many inner chunks and an index in one value (Zarr codecs, "sharding-indexed").
//!
//! [`Sharding`] is the bound codec: geometry, the inner chunks' chain, and the index. Readers that fetch
//! parts of a shard use it through [`CodecChain::sharding`]; whole shards are made and read in `whole`. Inner
//! chunks may lie in any order, apart or on top of each other; an index that points outside the shard or into
//! itself is corrupt.

mod index;
mod whole;

use std::sync::Arc;

use super::chain::CodecLimits;
use super::config::Config;
use super::registry::{BindContext, BoundBytes};
use super::representation::{Representation, Size};
use super::{CodecChain, CodecError};
use crate::metadata::{DataType, FillValue};

pub use index::ShardIndex;

const NAME: &str = "sharding_indexed";

/// Bytes of an index entry: offset and length.
const ENTRY_BYTES: u64 = 16;

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
/// *Shard space* is the codec's input: the chunk's dimensions after the `transpose` codecs that stand before
/// it.
#[derive(Debug)]
pub struct Sharding {
    /// The codec's input.
    shard: Representation,
    order: Vec<usize>,
    inner_shape: Vec<u64>,
    chunks_per_shard: Vec<u64>,
    inner_chain: Arc<CodecChain>,
    index_chain: CodecChain,
    index_location: IndexLocation,
    index_bytes: u64,
    encoded_size: Size,
    /// The most bytes that the elements of a whole shard may have.
    limit: u64,
}

impl Sharding {
    /// For each dimension of shard space, the dimension of the chunk it is:
    /// `shard_pos[i] = chunk_pos[order[i]]`.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The shape of an inner chunk, in shard space.
    #[must_use]
    pub fn inner_shape(&self) -> &[u64] {
        &self.inner_shape
    }

    /// Inner chunks along each dimension of shard space.
    #[must_use]
    pub fn chunks_per_shard(&self) -> &[u64] {
        &self.chunks_per_shard
    }

    /// The chain of an inner chunk; may itself be sharded.
    #[must_use]
    pub fn inner_chain(&self) -> &Arc<CodecChain> {
        &self.inner_chain
    }

    /// Where the index stands.
    #[must_use]
    pub fn index_location(&self) -> IndexLocation {
        self.index_location
    }

    /// Bytes of the encoded index.
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        self.index_bytes
    }

    pub(super) fn set_order(&mut self, order: Vec<usize>) {
        self.order = order;
    }

    /// The chains inside: of the inner chunks and of the index.
    pub(super) fn chains(&self) -> impl Iterator<Item = &CodecChain> {
        [&*self.inner_chain, &self.index_chain].into_iter()
    }
}

/// Binds the codec to the array it shards.
pub(super) fn bind(config: &Config, context: &BindContext) -> Result<BoundBytes, CodecError> {
    let depth = context.depth + 1;
    if depth > context.limits.sharding_depth {
        let limit = context.limits.sharding_depth;
        return Err(config.invalid(format!("shards are nested more than {limit} deep")));
    }
    let inner_shape = config.numbers("chunk_shape")?;
    let chunks_per_shard = divide(config, &context.input.shape, &inner_shape)?;
    let chunks = count(&chunks_per_shard);
    let limit = context.limits.shard_chunks;
    let Some(chunks) = chunks.filter(|&chunks| chunks <= limit) else {
        return Err(config.invalid(format!("a shard has more than {limit} inner chunks")));
    };
    let inner = Representation { shape: inner_shape.clone(), ..context.input.clone() };
    let inner_chain = CodecChain::bind_within(&config.codecs("codecs")?, inner, context.limits, depth)?;

    let index_chain = bind_index(config, &chunks_per_shard, context.limits, depth)?;
    let Size::Exact(index_bytes) = index_chain.encoded_size() else {
        return Err(config.invalid("`index_codecs` must encode to a fixed size"));
    };
    let index_location = match config.text("index_location")? {
        Some("start") => IndexLocation::Start,
        None | Some("end") => IndexLocation::End,
        Some(_) => return Err(config.invalid("`index_location` must be `start` or `end`")),
    };
    let most = inner_chain.encoded_size().max().saturating_mul(chunks);
    // The elements of a whole shard are limited together, however much each inner chunk may hold.
    let is_variable = context.input.data_type.is_variable();
    let most = if is_variable { most.min(context.limits.chunk_bytes) } else { most };
    let most = most.saturating_add(index_bytes);
    // Shards that were rewritten in place have gaps; as many bytes again are allowed for them.
    Ok(BoundBytes::Sharding(Box::new(Sharding {
        order: (0..inner_shape.len()).collect(),
        shard: context.input.clone(),
        inner_shape,
        chunks_per_shard,
        inner_chain: Arc::new(inner_chain),
        index_chain,
        index_location,
        index_bytes,
        encoded_size: Size::AtMost(most.saturating_mul(2)),
        limit: context.limits.chunk_bytes,
    })))
}

/// Inner chunks along each dimension.
fn divide(config: &Config, shard: &[u64], inner: &[u64]) -> Result<Vec<u64>, CodecError> {
    if shard.len() != inner.len() {
        let (given, rank) = (inner.len(), shard.len());
        return Err(config.invalid(format!("`chunk_shape` has {given} dimensions, the shard {rank}")));
    }
    let along = |(&shard, &inner): (&u64, &u64)| match inner {
        // A chunk's edge may be 0 where the array's is.
        0 if shard == 0 => Ok(0),
        0 => Err(config.invalid("`chunk_shape` must be positive")),
        _ if shard % inner == 0 => Ok(shard / inner),
        _ => Err(config.invalid(format!("`chunk_shape` does not divide the shard: {shard} by {inner}"))),
    };
    shard.iter().zip(inner).map(along).collect()
}

/// The number of inner chunks; `None` if more than a `u64` can count.
fn count(chunks_per_shard: &[u64]) -> Option<u64> {
    if chunks_per_shard.contains(&0) {
        return Some(0);
    }
    chunks_per_shard.iter().try_fold(1, |count: u64, &along| count.checked_mul(along))
}

/// The chain of the index: an array of `uint64`, two for each inner chunk.
fn bind_index(
    config: &Config,
    chunks_per_shard: &[u64],
    limits: &CodecLimits,
    depth: usize,
) -> Result<CodecChain, CodecError> {
    let mut shape = chunks_per_shard.to_vec();
    shape.push(2);
    let index =
        Representation { shape, data_type: DataType::UInt64, fill_value: FillValue::from_bytes(&[0xff; 8]) };
    let chunk_bytes = limits.shard_chunks.saturating_mul(ENTRY_BYTES);
    let limits = CodecLimits { chunk_bytes, ..*limits };
    CodecChain::bind_within(&config.codecs("index_codecs")?, index, &limits, depth)
}
