//! [`DirectSource`]: a [`ChunkSource`] that fetches and decodes chunks, and caches nothing.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, SemaphorePermit};
use tracing::{Instrument, Span, trace_span};

use super::chunk_source::{ChunkSource, FetchBudget};
use super::error::ArrayError;
use super::fetching::{FetchOptions, Fetching, read_range, undecodable};
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

/// What was found of a chunk.
enum Opened<'a> {
    /// Its version only, if there is a value: there are no bytes, too many, or not those that were expected.
    Version(Option<Arc<StoredValue>>),
    /// The body of the expected range, which is no longer than it may be, and the permit to read it.
    Body { value: Arc<StoredValue>, body: Value, permit: Option<SemaphorePermit<'a>> },
}

/// A body that is still to be read, with what its fetch holds.
struct Unread {
    body: Value,
    /// The share of the budget, which the caller holds too.
    budget: Arc<Option<OwnedSemaphorePermit>>,
    span: Span,
}

/// What became of an attempt to read a body and to decode it at once.
enum Attempt {
    Decoded(Elements),
    /// Not all of it could be read without blocking.
    Unread(Unread),
}

impl DirectSource {
    /// A source with a budget of its own.
    #[must_use]
    pub fn new(cpu: ComputePool, options: FetchOptions) -> Self {
        Self { fetching: Fetching::new(cpu, options) }
    }

    /// Opens what every request needs of a chunk, at whatever version is stored: all of it, or the index of a shard.
    async fn open<'a>(
        key: &StoredKey,
        chain: &CodecChain,
        context: &'a ReadContext,
    ) -> Result<Opened<'a>, ArrayError> {
        let index = chain.sharding().map(|sharding| (sharding.index_location(), sharding.index_bytes()));
        let requested = match index {
            None => ByteRange::Whole,
            Some((IndexLocation::End, bytes)) => ByteRange::Suffix(bytes),
            Some((IndexLocation::Start, bytes)) => ByteRange::Bounded(0, bytes),
        };
        let permit = context.acquire_fetch_permit().await;
        let start = Instant::now();
        let found = match key.store.get(&key.key, requested, None).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Opened::Version(None)),
            // The value is shorter than any index; a lookup returns its version, as for any other value.
            Err(StoreError::RangeNotSatisfiable { .. }) => {
                drop(permit);
                return Ok(Opened::Version(key.lookup_version(context).await?));
            }
            Err(source) => return Err(ArrayError::Store { key: key.key.clone(), source }),
        };
        let value = key.at_version(found.info.clone());
        value.record_validation(start);
        let size = value.info.size;
        let (expected, limit) = match chain.sharding() {
            None => (Some(0..size), chain.encoded_limit()),
            Some(sharding) => (sharding.index_range(size).ok(), sharding.index_bytes()),
        };
        context.add_fetch_time(start);
        let is_as_expected = Some(&found.range) == expected.as_ref() && found.len() <= limit;
        Ok(if is_as_expected {
            Opened::Body { value, body: found, permit }
        } else {
            Opened::Version(Some(value))
        })
    }

    /// Tries to read a body in an open file, and to decode it, on one thread of the pool: its bytes stay in the caches of one core.
    async fn read_and_decode(
        &self,
        value: &StoredValue,
        chain: &Arc<CodecChain>,
        unread: Unread,
        context: &Arc<ReadContext>,
    ) -> Result<Attempt, ArrayError> {
        let (bound, times, parent) = (Arc::clone(chain), Arc::clone(context), Span::current());
        let queued = Instant::now();
        // If the caller is dropped, this holds its share of the budget until the file is closed, so that few files are open.
        let work = move || {
            let Unread { body, budget, span } = unread;
            let read = span.in_scope(|| body.try_read());
            times.add_fetch_time(queued);
            let encoded = match read {
                Ok(encoded) => encoded,
                Err(body) => return Ok(Attempt::Unread(Unread { body, budget, span })),
            };
            drop(span);
            let (start, span) =
                (Instant::now(), trace_span!(target: "zarrd::span", parent: &parent, "decode"));
            let decoded = span.in_scope(|| decode(&bound, encoded, false));
            times.add_decode_time(start);
            decoded.map(Attempt::Decoded)
        };
        // Also a future on the pool has its chunks decoded in parallel.
        let attempt = self.fetching.cpu.spawn_background(work).await?;
        attempt.map_err(|source| undecodable(value, &(0..value.info.size), source))
    }

    /// Decodes the index of the shard at the bytes `shard` of a value.
    async fn decode_index(
        &self,
        value: &StoredValue,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        encoded: Bytes,
    ) -> Result<Arc<ShardIndex>, ArrayError> {
        let (bound, shard_bytes) = (Arc::clone(chain), shard.end.saturating_sub(shard.start));
        let index = self.fetching.cpu.run_or_inline(encoded.len() as u64, move || match bound.sharding() {
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
    ) -> Result<Elements, ArrayError> {
        let (bound, bytes) = (Arc::clone(chain), chain.working_bytes().max(encoded.len() as u64));
        let decoded = self.fetching.cpu.run_or_inline(bytes, move || decode(&bound, encoded, shared));
        let decoded = decoded.instrument(trace_span!(target: "zarrd::span", "decode")).await;
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
        // The stored size is not known; the decoded size is a safe estimate.
        let expected_bytes = chain.sharding().map_or(chain.working_bytes(), Sharded::index_bytes);
        let budget = Arc::new(self.fetching.reserve(expected_bytes.saturating_mul(2)).await);
        let span = trace_span!(target: "zarrd::span", "fetch");
        let opened = Self::open(key, chain, context).instrument(span.clone()).await?;
        let (value, body, permit) = match opened {
            Opened::Version(value) => return Ok(ChunkLookup::version_only(value)),
            Opened::Body { value, body, permit } => (value, body, permit),
        };
        let mut unread = Unread { body, budget: Arc::clone(&budget), span };
        if chain.sharding().is_none() && unread.body.begins_in_memory() {
            match self.read_and_decode(&value, chain, unread, context).await? {
                Attempt::Decoded(elements) => {
                    return Ok(ChunkLookup { value: Some(value), data: ChunkData::Elements(elements) });
                }
                Attempt::Unread(again) => unread = again,
            }
        }
        let Unread { body, span, .. } = unread;
        let start = Instant::now();
        let read = body.borrowed_bytes(u64::MAX).instrument(span).await;
        context.add_fetch_time(start);
        drop(permit);
        let (encoded, shared) = read.map_err(|source| ArrayError::Store { key: key.key.clone(), source })?;
        let (start, whole) = (Instant::now(), 0..value.info.size);
        let data = if chain.sharding().is_some() {
            ChunkData::Index(self.decode_index(&value, chain, whole, encoded).await?)
        } else {
            ChunkData::Elements(self.decode(&value, chain, encoded, shared).await?)
        };
        context.add_decode_time(start);
        Ok(ChunkLookup { value: Some(value), data })
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
        self.decode_index(value, chain, shard, encoded).await
    }
}
