//! [`DirectSource`]: a [`ChunkSource`] that fetches and decodes chunks, and caches nothing.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use tracing::Instrument;

use super::chunk_source::{ChunkSource, FetchBudget};
use super::error::ArrayError;
use super::fetching::{DecodingThreads, FetchOptions, Fetching, read_range, undecodable};
use super::jobs::decode;
use super::range_load::RangeLoad;
use super::read_context::ReadContext;
use super::stored::{ChunkData, ChunkLookup, StoredKey, StoredValue};
use crate::chunk::Elements;
use crate::codec::{CodecChain, CodecError, IndexLocation, ShardIndex, Sharded};
use crate::cpu::ComputePool;
use crate::store::{ByteRange, StoreError, Value};

/// A source that fetches and decodes chunks, and caches nothing. Clones share its budget.
#[derive(Clone, Debug)]
pub struct DirectSource {
    fetching: Fetching,
}

impl DirectSource {
    /// A source with a budget of its own.
    #[must_use]
    pub fn new(cpu: ComputePool, options: FetchOptions) -> Self {
        Self { fetching: Fetching::new(cpu, options) }
    }

    /// Reads what every request needs of a chunk, at whatever version is stored: all of it, or the index of a shard. The bytes
    /// are `None` where the store returned another range than was expected; they must be fetched again. The flag says whether a
    /// cache accounts for them.
    async fn read_speculatively(
        key: &StoredKey,
        chain: &CodecChain,
        context: &ReadContext,
    ) -> Result<Option<(Arc<StoredValue>, Option<(Bytes, bool)>)>, ArrayError> {
        let index = chain.sharding().map(|sharding| (sharding.index_location(), sharding.index_bytes()));
        let requested = match index {
            None => ByteRange::Whole,
            Some((IndexLocation::End, bytes)) => ByteRange::Suffix(bytes),
            Some((IndexLocation::Start, bytes)) => ByteRange::Bounded(0, bytes),
        };
        let failed = |source| ArrayError::Store { key: key.key.clone(), source };
        let permit = context.acquire_fetch_permit().await;
        let start = Instant::now();
        let found = match key.store.get(&key.key, requested, None).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            // The value is shorter than any index; a lookup returns its version, as for any other value.
            Err(StoreError::RangeNotSatisfiable { .. }) => {
                drop(permit);
                return Ok(key.lookup_version(context).await?.map(|value| (value, None)));
            }
            Err(source) => return Err(failed(source)),
        };
        let value = key.at_version(found.info.clone());
        value.record_validation(start);
        let size = value.info.size;
        let (expected, limit) = match chain.sharding() {
            None => (Some(0..size), chain.encoded_limit()),
            Some(sharding) => (sharding.index_range(size).ok(), sharding.index_bytes()),
        };
        let is_as_expected = |found: &Value| Some(&found.range) == expected.as_ref() && found.len() <= limit;
        if !is_as_expected(&found) {
            return Ok(Some((value, None)));
        }
        let bytes = found.borrowed_bytes(limit).await;
        context.add_fetch_time(start);
        Ok(Some((value, Some(bytes.map_err(failed)?))))
    }

    /// The bytes that every request needs of a chunk: all of it, or the index of a shard. The stored size is not known; the decoded
    /// size is a safe estimate.
    fn expected_bytes(chain: &CodecChain) -> u64 {
        chain.sharding().map_or(chain.working_bytes(), Sharded::index_bytes)
    }

    /// Reads and decodes what every request needs of a chunk.
    async fn fetch(
        &self,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        context: &Arc<ReadContext>,
        threads: DecodingThreads,
    ) -> Result<ChunkLookup, ArrayError> {
        let _permit = self.fetching.reserve(Self::expected_bytes(chain).saturating_mul(2)).await;
        let read = Self::read_speculatively(key, chain, context);
        let read = read.instrument(tracing::trace_span!(target: "zarrd::span", "fetch"));
        let Some((value, encoded)) = read.await? else {
            return Ok(ChunkLookup::version_only(None));
        };
        let Some((encoded, shared)) = encoded else { return Ok(ChunkLookup::version_only(Some(value))) };
        let (start, whole) = (Instant::now(), 0..value.info.size);
        let data = if chain.sharding().is_some() {
            ChunkData::Index(self.decode_index(&value, chain, whole, encoded, threads).await?)
        } else {
            ChunkData::Elements(self.decode(&value, chain, encoded, shared, threads).await?)
        };
        context.add_decode_time(start);
        Ok(ChunkLookup { value: Some(value), data })
    }

    /// Decodes the index of the shard at the bytes `shard` of a value.
    async fn decode_index(
        &self,
        value: &StoredValue,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        encoded: Bytes,
        threads: DecodingThreads,
    ) -> Result<Arc<ShardIndex>, ArrayError> {
        let (bound, shard_bytes) = (Arc::clone(chain), shard.end.saturating_sub(shard.start));
        let index = threads.run(&self.fetching.cpu, encoded.len() as u64, move || match bound.sharding() {
            Some(sharding) => sharding.decode_index(&encoded, shard_bytes),
            None => Err(CodecError::corrupt("sharding_indexed", "the chain has no sharding codec")),
        });
        index.await?.map(Arc::new).map_err(|source| undecodable(value, &shard, source))
    }

    /// Decodes a whole value.
    async fn decode(
        &self,
        value: &StoredValue,
        chain: &Arc<CodecChain>,
        encoded: Bytes,
        shared: bool,
        threads: DecodingThreads,
    ) -> Result<Elements, ArrayError> {
        let (bound, bytes) = (Arc::clone(chain), chain.working_bytes().max(encoded.len() as u64));
        let decoded = threads.run(&self.fetching.cpu, bytes, move || decode(&bound, encoded, shared));
        let decoded = decoded.instrument(tracing::trace_span!(target: "zarrd::span", "decode")).await;
        decoded?.map_err(|source| undecodable(value, &(0..value.info.size), source))
    }
}

#[async_trait]
impl ChunkSource for DirectSource {
    fn concurrency(&self) -> usize {
        self.fetching.options.max_concurrency
    }

    fn budget(&self) -> Option<FetchBudget> {
        Some(self.fetching.budget())
    }

    async fn fetch_or_lookup(
        &self,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        context: &Arc<ReadContext>,
    ) -> Result<ChunkLookup, ArrayError> {
        let is_read_on_pool = Fetching::is_read_on_pool(&key.store, Self::expected_bytes(chain))
            // To find that there is no such chunk takes less time than the hop to another thread.
            && !key.store.validate_cached(&key.key, None);
        if !is_read_on_pool {
            return self.fetch(key, chain, context, DecodingThreads::Any).await;
        }
        let (source, key, chain, context) =
            (self.clone(), key.clone(), Arc::clone(chain), Arc::clone(context));
        let queued = Instant::now();
        let fetch = async move {
            context.add_fetch_time(queued);
            source.fetch(&key, &chain, &context, DecodingThreads::This).await
        };
        self.fetching.cpu.spawn_future(fetch).await?
    }

    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        context: &Arc<ReadContext>,
    ) -> Vec<Result<Elements, ArrayError>> {
        let load = RangeLoad {
            fetching: self.fetching.clone(),
            value: Arc::clone(value),
            chain: Arc::clone(chain),
            ranges: ranges.into(),
            context: Arc::clone(context),
        };
        load.run().await
    }

    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        context: &Arc<ReadContext>,
    ) -> Result<Arc<ShardIndex>, ArrayError> {
        let sharding = chain.sharding().ok_or(ArrayError::Geometry)?;
        let shard_bytes = shard.end.saturating_sub(shard.start);
        let index = sharding.index_range(shard_bytes).map_err(|source| undecodable(value, &shard, source))?;
        let range = shard.start + index.start..shard.start + index.end;
        let _permit = self.fetching.reserve(sharding.index_bytes().saturating_mul(2)).await;
        let (encoded, _) = read_range(value, range, context).await?;
        self.decode_index(value, chain, shard, encoded, DecodingThreads::Any).await
    }
}
