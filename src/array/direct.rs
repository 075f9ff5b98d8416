//! [`DirectSource`]: a [`ChunkSource`] that fetches and decodes chunks, and caches nothing.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
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

/// The most open files that wait for a thread of the pool. Others are read at once, so that few descriptors are in use.
const MAX_QUEUED_FILES: usize = 64;

/// A source that fetches and decodes chunks, and caches nothing. Clones share its budget.
#[derive(Clone, Debug)]
pub struct DirectSource {
    fetching: Fetching,
    /// Permits for open files that wait for a thread of the pool.
    queued_files: Arc<Semaphore>,
}

/// What was found of a chunk.
enum Opened<'a> {
    /// Its version only, if there is a value: there are no bytes, too many, or not those that were expected.
    Version(Option<Arc<StoredValue>>),
    /// The body of the expected range, which is no longer than it may be, and the permit to read it.
    Body { value: Arc<StoredValue>, body: Value, permit: Option<SemaphorePermit<'a>> },
}

/// What a fetch holds while it waits for a thread of the pool.
struct Held {
    /// The share of the budget, which the caller holds too.
    _budget: Arc<Option<OwnedSemaphorePermit>>,
    _queued: OwnedSemaphorePermit,
    span: Span,
}

impl DirectSource {
    /// A source with a budget of its own.
    #[must_use]
    pub fn new(cpu: ComputePool, options: FetchOptions) -> Self {
        let queued_files = Arc::new(Semaphore::new(MAX_QUEUED_FILES));
        Self { fetching: Fetching::new(cpu, options), queued_files }
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

    /// Reads and decodes a body in an open file on one thread of the pool, so that its bytes stay in the caches of one core. `None` if not
    /// all of it can be read without blocking, or the file was written to.
    async fn read_and_decode(
        &self,
        value: &StoredValue,
        chain: &Arc<CodecChain>,
        body: Value,
        held: Held,
        context: &Arc<ReadContext>,
    ) -> Result<Option<Elements>, ArrayError> {
        let (bound, times, parent) = (Arc::clone(chain), Arc::clone(context), Span::current());
        let queued = Instant::now();
        // If the caller is dropped, this holds its permits until the file is closed.
        let work = move || {
            let read = held.span.in_scope(|| body.try_read());
            times.add_fetch_time(queued);
            drop(held);
            let (start, encoded) = (Instant::now(), read.ok()?);
            let decode_span = trace_span!(target: "zarrd::span", parent: &parent, "decode");
            let decoded = decode_span.in_scope(|| decode(&bound, encoded, false));
            times.add_decode_time(start);
            Some(decoded)
        };
        // Also a future on the pool has its chunks decoded in parallel.
        let decoded = self.fetching.cpu.spawn_background(work).await?;
        decoded.transpose().map_err(|source| undecodable(value, &(0..value.info.size), source))
    }

    /// Reads a body, and then decodes it.
    async fn read_then_decode(
        &self,
        value: Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        (body, permit): (Value, Option<SemaphorePermit<'_>>),
        span: Span,
        context: &Arc<ReadContext>,
    ) -> Result<ChunkLookup, ArrayError> {
        let start = Instant::now();
        let length = body.len();
        let read = body.streamed_bytes(length).instrument(span).await;
        context.add_fetch_time(start);
        drop(permit);
        let (encoded, shared) =
            read.map_err(|source| ArrayError::Store { key: value.key.clone(), source })?;
        let (start, whole) = (Instant::now(), 0..value.info.size);
        let data = if chain.sharding().is_some() {
            ChunkData::Index(self.decode_index(&value, chain, whole, encoded).await?)
        } else {
            ChunkData::Elements(self.decode(&value, chain, encoded, shared).await?)
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
        let mut is_first = true;
        loop {
            let span = trace_span!(target: "zarrd::span", "fetch");
            let opened = Self::open(key, chain, context).instrument(span.clone()).await?;
            let (value, body, permit) = match opened {
                Opened::Version(value) => return Ok(ChunkLookup::version_only(value)),
                Opened::Body { value, body, permit } => (value, body, permit),
            };
            let may_queue = is_first && chain.sharding().is_none() && body.begins_in_memory();
            let queued = Arc::clone(&self.queued_files).try_acquire_owned();
            let (true, Ok(queued)) = (may_queue, queued) else {
                return self.read_then_decode(value, chain, (body, permit), span, context).await;
            };
            let held = Held { _budget: Arc::clone(&budget), _queued: queued, span };
            if let Some(elements) = self.read_and_decode(&value, chain, body, held, context).await? {
                return Ok(ChunkLookup { value: Some(value), data: ChunkData::Elements(elements) });
            }
            // The file is opened again: another program may have written to it while it waited for its turn.
            is_first = false;
        }
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
