//! [`DirectSource`]: a [`ChunkSource`] that fetches and decodes chunks, and caches nothing.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;

use super::chunk_source::{ChunkSource, FetchBudget};
use super::coalesce::{Fetch, coalesce};
use super::error::ArrayError;
use super::jobs::{JobPart, decode, jobs};
use super::read_context::ReadContext;
use super::stored::{ChunkData, ChunkLookup, StoredKey, StoredValue};
use crate::chunk::Elements;
use crate::codec::{CodecChain, CodecError, IndexLocation, ShardIndex, Sharded};
use crate::cpu::ComputePool;
use crate::store::{ByteRange, StoreError, Value};

/// How ranges of stored values are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchOptions {
    /// Ranges of one value with at most this many bytes between them are merged into one.
    #[serde(with = "crate::units::size")]
    pub max_coalesce_gap: u64,
    /// Size of a merged range.
    #[serde(with = "crate::units::size")]
    pub max_coalesce_size: u64,
    /// Store operations in flight for one request: lookups of chunks, and fetches.
    pub max_concurrency: usize,
    /// Memory for bytes that are being fetched and decoded, for all requests together.
    #[serde(with = "crate::units::size")]
    pub inflight_size: u64,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            max_coalesce_gap: 4 << 10,
            max_coalesce_size: 16 << 20,
            max_concurrency: 32,
            inflight_size: 512 << 20,
        }
    }
}

/// A source that fetches and decodes chunks, and caches nothing. Clones share its budget.
#[derive(Clone, Debug)]
pub struct DirectSource {
    cpu: ComputePool,
    options: FetchOptions,
    /// A permit for each KiB that may be in flight.
    budget: Arc<Semaphore>,
    budget_kib: u32,
}

impl DirectSource {
    /// A source with a budget of its own.
    #[must_use]
    pub fn new(cpu: ComputePool, options: FetchOptions) -> Self {
        let budget_kib = u32::try_from(options.inflight_size >> 10).unwrap_or(u32::MAX).max(1);
        let permits =
            usize::try_from(budget_kib).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Self { cpu, options, budget: Arc::new(Semaphore::new(permits)), budget_kib }
    }

    /// Waits until this many bytes may be in flight. A request larger than the budget waits for all of it.
    async fn reserve(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX).clamp(1, self.budget_kib);
        // The semaphore is never closed.
        Arc::clone(&self.budget).acquire_many_owned(kib).await.ok()
    }

    /// Reads exactly one range of a value at its version.
    async fn read(
        value: &StoredValue,
        range: Range<u64>,
        context: &ReadContext,
    ) -> Result<Bytes, ArrayError> {
        let length = range.end - range.start;
        let _permit = context.acquire_fetch_permit().await;
        let start = Instant::now();
        let bytes = async {
            if length == 0 {
                return Ok(Bytes::new());
            }
            let whole = range == (0..value.info.size);
            let requested = if whole { ByteRange::Whole } else { ByteRange::Bounded(range.start, range.end) };
            let found = value.store.get(&value.key, requested, value.info.version.pin()).await?;
            // The value existed at the lookup of its version, so its absence is a change.
            let found = found.ok_or(StoreError::VersionChanged)?;
            if found.info.version != value.info.version {
                return Err(StoreError::VersionChanged);
            }
            if found.range != range {
                return Err(StoreError::WrongLength);
            }
            found.bytes(length).await
        };
        let bytes =
            bytes.instrument(tracing::trace_span!(target: "zarrd::span", "fetch", bytes = length)).await;
        context.add_fetch_time(start);
        bytes.map_err(|source| ArrayError::Store { key: value.key.clone(), source })
    }

    /// Reads what every request needs of a chunk, at whatever version is stored: all of it, or the index of a shard. The bytes
    /// are `None` where the store returned another range than was expected; they must be fetched again.
    async fn read_speculatively(
        key: &StoredKey,
        chain: &CodecChain,
        context: &ReadContext,
    ) -> Result<Option<(Arc<StoredValue>, Option<Bytes>)>, ArrayError> {
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
        let bytes = found.bytes(limit).await;
        context.add_fetch_time(start);
        Ok(Some((value, Some(bytes.map_err(failed)?))))
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
        let index = self.cpu.run_or_inline(encoded.len() as u64, move || match bound.sharding() {
            Some(sharding) => sharding.decode_index(&encoded, shard_bytes),
            None => Err(CodecError::corrupt("sharding_indexed", "the chain has no sharding codec")),
        });
        index.await?.map(Arc::new).map_err(|source| undecodable(value, &shard, source))
    }

    /// Decodes one part of a value.
    async fn decode(
        &self,
        value: &StoredValue,
        chain: &Arc<CodecChain>,
        part: &Range<u64>,
        encoded: Bytes,
        shared: bool,
    ) -> Result<Elements, ArrayError> {
        let (bound, bytes) = (Arc::clone(chain), chain.working_bytes().max(encoded.len() as u64));
        let decoded = self.cpu.run_or_inline(bytes, move || decode(&bound, encoded, shared));
        let decoded = decoded.instrument(tracing::trace_span!(target: "zarrd::span", "decode")).await;
        decoded?.map_err(|source| undecodable(value, part, source))
    }

    /// Decodes the parts of a job one after the other; in parallel with other jobs unless it is the only one.
    async fn decode_job(
        &self,
        value: &StoredValue,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        job: Vec<JobPart>,
        is_only: bool,
    ) -> Vec<(usize, Result<Elements, ArrayError>)> {
        let positions: Vec<usize> = job.iter().map(|part| part.position).collect();
        let bytes = job.iter().fold(0, |bytes: u64, part| {
            bytes.saturating_add(chain.working_bytes().max(part.encoded.len() as u64))
        });
        let bound = Arc::clone(chain);
        let work =
            move || job.into_iter().map(|part| decode(&bound, part.encoded, part.shared)).collect::<Vec<_>>();
        let decoding = async {
            if is_only {
                self.cpu.run_or_inline(bytes, work).await
            } else {
                self.cpu.spawn_background(work).await
            }
        };
        let at_position = |(position, decoded): (usize, Result<_, _>)| {
            let range = ranges.get(position).cloned().unwrap_or_default();
            (position, decoded.map_err(|source| undecodable(value, &range, source)))
        };
        match decoding.instrument(tracing::trace_span!(target: "zarrd::span", "decode")).await {
            Ok(decoded) => positions.into_iter().zip(decoded).map(at_position).collect(),
            Err(error) => {
                positions.into_iter().map(|position| (position, Err(error.clone().into()))).collect()
            }
        }
    }

    /// Fetches one range.
    async fn fetch(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        fetch: Fetch,
        context: &ReadContext,
    ) -> Fetched {
        let fetched = fetch.range.end - fetch.range.start;
        let parts = fetch.positions.len() as u64;
        let decoded = chain.decoded_bytes().saturating_mul(parts);
        // Intermediate results of a part are freed with it, so at most one part per thread has them.
        let beside = chain.working_bytes() - chain.decoded_bytes();
        let working = beside.saturating_mul(parts.min(self.cpu.threads() as u64));
        let permit = self.reserve(fetched.saturating_add(decoded).saturating_add(working)).await;
        let bytes = Self::read(value, fetch.range.clone(), context).await;
        let shared = fetch.positions.len() > 1;
        let part = |position: usize, bytes: &Bytes| {
            let range = ranges.get(position).cloned().unwrap_or_default();
            let offset = |at: u64| usize::try_from(at - fetch.range.start).unwrap_or(usize::MAX);
            let encoded = bytes.slice(offset(range.start)..offset(range.end));
            JobPart { position, encoded, shared }
        };
        let parts = match &bytes {
            Ok(bytes) => Ok(fetch.positions.iter().map(|&position| part(position, bytes)).collect()),
            Err(error) => Err((fetch.positions.clone(), error.clone())),
        };
        Fetched { parts, _permit: permit }
    }

    /// Decodes fetches that were ready at the same time.
    async fn decode_fetched(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        mut fetched: Vec<Fetched>,
        context: &ReadContext,
    ) -> Vec<(usize, Result<Elements, ArrayError>)> {
        let (start, mut elements) = (Instant::now(), Vec::new());
        let parts = fetched.iter_mut().filter_map(|fetched| {
            match std::mem::replace(&mut fetched.parts, Ok(Vec::new())) {
                Ok(parts) => Some(parts),
                Err((positions, error)) => {
                    elements.extend(positions.into_iter().map(|position| (position, Err(error.clone()))));
                    None
                }
            }
        });
        let jobs = jobs(parts.flatten(), chain.decoded_bytes());
        let is_only = jobs.len() == 1;
        let mut decoded = stream::iter(jobs)
            .map(|job| self.decode_job(value, chain, ranges, job, is_only))
            .buffer_unordered(self.cpu.threads());
        while let Some(job) = decoded.next().await {
            elements.extend(job);
        }
        context.add_decode_time(start);
        elements
    }
}

/// The parts of one fetch, or their positions and why they could not be fetched; and the share of the budget that they use.
struct Fetched {
    parts: Result<Vec<JobPart>, (Vec<usize>, ArrayError)>,
    _permit: Option<OwnedSemaphorePermit>,
}

fn undecodable(value: &StoredValue, part: &Range<u64>, source: CodecError) -> ArrayError {
    ArrayError::Chunk { key: value.key.clone(), start: part.start, end: part.end, source }
}

#[async_trait]
impl ChunkSource for DirectSource {
    fn concurrency(&self) -> usize {
        self.options.max_concurrency
    }

    fn budget(&self) -> Option<FetchBudget> {
        let limit_bytes = u64::from(self.budget_kib) << 10;
        let free_bytes = (self.budget.available_permits() as u64) << 10;
        Some(FetchBudget { limit_bytes, in_flight_bytes: limit_bytes.saturating_sub(free_bytes) })
    }

    async fn fetch_or_lookup(
        &self,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        context: &Arc<ReadContext>,
    ) -> Result<ChunkLookup, ArrayError> {
        // The stored size is not known; the decoded size is a safe estimate.
        let bytes = chain.sharding().map_or(chain.working_bytes(), Sharded::index_bytes);
        let _permit = self.reserve(bytes.saturating_mul(2)).await;
        let read = Self::read_speculatively(key, chain, context);
        let read = read.instrument(tracing::trace_span!(target: "zarrd::span", "fetch"));
        let Some((value, encoded)) = read.await? else {
            return Ok(ChunkLookup::version_only(None));
        };
        let Some(encoded) = encoded else { return Ok(ChunkLookup::version_only(Some(value))) };
        let (start, whole) = (Instant::now(), 0..value.info.size);
        let data = if chain.sharding().is_some() {
            ChunkData::Index(self.decode_index(&value, chain, whole, encoded).await?)
        } else {
            ChunkData::Elements(self.decode(&value, chain, &whole, encoded, false).await?)
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
        let limit = chain.encoded_limit();
        let mut elements: Vec<Option<Result<Elements, ArrayError>>> = ranges
            .iter()
            .map(|range| {
                let size = range.end.saturating_sub(range.start);
                (size > limit).then(|| Err(ArrayError::ChunkTooLong { key: value.key.clone(), size, limit }))
            })
            .collect();
        let longest = value
            .store
            .capabilities()
            .max_coalesced_bytes
            .map_or(self.options.max_coalesce_size, |most| most.min(self.options.max_coalesce_size));
        let mut fetches = coalesce(ranges, self.options.max_coalesce_gap, longest);
        for fetch in &mut fetches {
            fetch.positions.retain(|&position| elements[position].is_none());
        }
        fetches.retain(|fetch| !fetch.positions.is_empty());
        let fetch = |fetch| self.fetch(value, chain, ranges, fetch, context);
        let decode = |fetched| self.decode_fetched(value, chain, ranges, fetched, context);
        let mut put = |decoded: Vec<_>| {
            for (position, outcome) in decoded {
                elements[position] = Some(outcome);
            }
        };
        if fetches.len() == 1 {
            let only = fetches.remove(0);
            put(decode(vec![fetch(only).await]).await);
        } else {
            let concurrency = self.options.max_concurrency.clamp(1, fetches.len().max(1));
            // Fetches that are ready at the same time, as from a file in memory, take one hop to the threads that decode.
            let mut decoded = stream::iter(fetches)
                .map(fetch)
                .buffer_unordered(concurrency)
                .ready_chunks(concurrency)
                .map(decode)
                .buffer_unordered(concurrency);
            while let Some(decoded) = decoded.next().await {
                put(decoded);
            }
        }
        // Every position is in exactly one fetch.
        elements.into_iter().map(|outcome| outcome.unwrap_or(Err(ArrayError::Geometry))).collect()
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
        let _permit = self.reserve(sharding.index_bytes().saturating_mul(2)).await;
        let encoded = Self::read(value, range, context).await?;
        self.decode_index(value, chain, shard, encoded).await
    }
}
