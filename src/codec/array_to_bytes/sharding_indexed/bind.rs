//! [`CODEC`]: binds the sharding codec to the array it shards.

use std::sync::Arc;

use super::sharding::{ENTRY_BYTES, Sharding, count};
use crate::codec::chain::{BoundArrayToBytes, CodecChain};
use crate::codec::error::CodecError;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::limits::CodecLimits;
use crate::codec::shard_index::IndexLocation;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::{Representation, Size};
use crate::metadata::{DataType, FillValue};

pub(crate) const CODEC: Codec =
    Codec { names: &["sharding_indexed"], v2: &[], factory: CodecFactory::ArrayToBytes(bind) };

/// Binds the codec to the array it shards.
fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    let depth = context.depth + 1;
    if depth > context.limits.sharding_depth {
        let limit = context.limits.sharding_depth;
        return Err(config.invalid(format!("shards are nested deeper than {limit}")));
    }
    let inner_shape = config.numbers("chunk_shape")?;
    let chunks_per_shard = divide(config, &context.input.shape, &inner_shape)?;
    let chunks = count(&chunks_per_shard);
    let limit = context.limits.shard_chunks;
    let Some(chunks) = chunks.filter(|&chunks| chunks <= limit) else {
        return Err(config.invalid(format!("a shard has more than {limit} inner chunks")));
    };
    let inner = Representation { shape: inner_shape.clone(), ..context.input.clone() };
    let inner_chain = context.inner.chain(&config.codecs("codecs")?, inner, context.limits, depth)?;

    let index_chain = bind_index(config, &chunks_per_shard, context, depth)?;
    let Size::Exact(index_bytes) = index_chain.encoded_size() else {
        return Err(config.invalid("`index_codecs` must encode to a fixed size"));
    };
    let index_location = match config.string("index_location")? {
        Some("start") => IndexLocation::Start,
        None | Some("end") => IndexLocation::End,
        Some(_) => return Err(config.invalid("`index_location` must be `start` or `end`")),
    };
    let most = inner_chain.encoded_size().max().saturating_mul(chunks);
    // The limit applies to all elements of a shard together, not only to those of each inner chunk.
    let is_variable = context.input.data_type.is_variable();
    let most = if is_variable { most.min(context.limits.chunk_bytes) } else { most };
    let most = most.saturating_add(index_bytes);
    // Shards that were rewritten in place have gaps; the bound is doubled for them.
    Ok(BoundArrayToBytes::Sharding(Box::new(Sharding {
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
fn divide(config: &CodecConfig, shard: &[u64], inner: &[u64]) -> Result<Vec<u64>, CodecError> {
    if shard.len() != inner.len() {
        let (given, rank) = (inner.len(), shard.len());
        return Err(config.invalid(format!("`chunk_shape` has {given} dimensions, the shard {rank}")));
    }
    let along = |(&shard, &inner): (&u64, &u64)| match inner {
        // An edge may be 0 if the array's length is 0.
        0 if shard == 0 => Ok(0),
        0 => Err(config.invalid("`chunk_shape` must be positive")),
        _ if shard % inner == 0 => Ok(shard / inner),
        _ => Err(config.invalid(format!("`chunk_shape` does not divide the shard: {shard} by {inner}"))),
    };
    shard.iter().zip(inner).map(along).collect()
}

/// The chain of the index: an array of `uint64`, two for each inner chunk.
fn bind_index(
    config: &CodecConfig,
    chunks_per_shard: &[u64],
    context: &BindContext,
    depth: usize,
) -> Result<CodecChain, CodecError> {
    let mut shape = chunks_per_shard.to_vec();
    shape.push(2);
    let index =
        Representation { shape, data_type: DataType::UInt64, fill_value: FillValue::from_bytes(&[0xff; 8]) };
    let chunk_bytes = context.limits.shard_chunks.saturating_mul(ENTRY_BYTES);
    let limits = CodecLimits { chunk_bytes, ..*context.limits };
    context.inner.chain(&config.codecs("index_codecs")?, index, &limits, depth)
}
