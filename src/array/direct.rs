//! [`DirectSource`]: fetches chunks and decodes them, and remembers nothing.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;

use super::coalesce::{Fetch, coalesce};
use super::jobs::{JobPart, decode, jobs};
use super::{
    ArrayError, ChunkData, ChunkLookup, ChunkSource, FetchBudget, ReadContext, StoredKey, StoredValue,
};
use crate::chunk::Elements;
use crate::codec::sharding_indexed::{IndexLocation, ShardIndex, Sharding};
use crate::codec::{CodecChain, CodecError};
use crate::cpu::ComputePool;
use crate::store::{ByteRange, StoreError, StoreKind, Value};

/// Ranges of a file are merged to no more than this: a file has no latency to save, and what is read at once is decoded
/// while the rest is read.
const LOCAL_FETCH_BYTES: u64 = 1 << 20;

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

/// Fetches and decodes, and remembers nothing.
#[derive(Clone, Debug)]
pub struct DirectSource {
    cpu: ComputePool,
    options: FetchOptions,
    /// Kilobytes that may be in flight.
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

    /// Waits until so many bytes may be in flight. What is larger than the whole budget waits for all of it.
    async fn reserve(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX).clamp(1, self.budget_kib);
        // The semaphore is never closed.
        Arc::clone(&self.budget).acquire_many_owned(kib).await.ok()
    }

    /// Reads one range of a value, at its version and exactly that range.
    async fn read(value: &StoredValue, range: Range<u64>, trace: &ReadContext) -> Result<Bytes, ArrayError> {
        let length = range.end - range.start;
        let _turn = trace.acquire_fetch_permit().await;
        let start = Instant::now();
        let bytes = async {
            if length == 0 {
                return Ok(Bytes::new());
            }
            let whole = range == (0..value.info.size);
            let asked = if whole { ByteRange::Whole } else { ByteRange::Bounded(range.start, range.end) };
            let found = value.store.get(&value.key, asked, value.info.version.pin()).await?;
            // Present when its version was asked for: an absence now is a change.
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
        trace.fetched_since(start);
        bytes.map_err(|source| ArrayError::Store { key: value.key.clone(), source })
    }

    /// Reads what has to be read of a chunk in any case, whatever its version: all of it, or a shard's index. The bytes
    /// are `None` where they are not what was hoped for, and have to be asked for anew.
    async fn read_speculatively(
        key: &StoredKey,
        chain: &CodecChain,
        trace: &ReadContext,
    ) -> Result<Option<(Arc<StoredValue>, Option<Bytes>)>, ArrayError> {
        let index = chain.sharding().map(|sharding| (sharding.index_location(), sharding.index_bytes()));
        let asked = match index {
            None => ByteRange::Whole,
            Some((IndexLocation::End, bytes)) => ByteRange::Suffix(bytes),
            Some((IndexLocation::Start, bytes)) => ByteRange::Bounded(0, bytes),
        };
        let failed = |source| ArrayError::Store { key: key.key.clone(), source };
        let turn = trace.acquire_fetch_permit().await;
        let start = Instant::now();
        let found = match key.store.get(&key.key, asked, None).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            // Shorter than any index: what is there is told as it is of any other value.
            Err(StoreError::RangeNotSatisfiable { .. }) => {
                drop(turn);
                return Ok(key.lookup_version(trace).await?.map(|value| (value, None)));
            }
            Err(source) => return Err(failed(source)),
        };
        let value = key.at(found.info.clone());
        value.record_validation(start);
        let size = value.info.size;
        let (wanted, limit) = match chain.sharding() {
            None => (Some(0..size), chain.encoded_limit()),
            Some(sharding) => (sharding.index_range(size).ok(), sharding.index_bytes()),
        };
        let is_hoped_for = |found: &Value| Some(&found.range) == wanted.as_ref() && found.len() <= limit;
        if !is_hoped_for(&found) {
            return Ok(Some((value, None)));
        }
        let bytes = found.bytes(limit).await;
        trace.fetched_since(start);
        Ok(Some((value, Some(bytes.map_err(failed)?))))
    }

    /// Decodes the index of the shard that stands at `shard` in a value.
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

    /// Decodes some parts of a value, one after the other, beside others unless they are all.
    async fn decode_job(
        &self,
        value: &StoredValue,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        job: Vec<JobPart>,
        is_only: bool,
    ) -> Vec<(usize, Result<Elements, ArrayError>)> {
        let places: Vec<usize> = job.iter().map(|part| part.place).collect();
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
        let of_place = |(place, decoded): (usize, Result<_, _>)| {
            let range = ranges.get(place).cloned().unwrap_or_default();
            (place, decoded.map_err(|source| undecodable(value, &range, source)))
        };
        match decoding.instrument(tracing::trace_span!(target: "zarrd::span", "decode")).await {
            Ok(decoded) => places.into_iter().zip(decoded).map(of_place).collect(),
            Err(error) => places.into_iter().map(|place| (place, Err(error.clone().into()))).collect(),
        }
    }

    /// Fetches one range.
    async fn fetch(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        fetch: Fetch,
        trace: &ReadContext,
    ) -> Fetched {
        let fetched = fetch.range.end - fetch.range.start;
        let parts = fetch.wanted.len() as u64;
        let decoded = chain.decoded_bytes().saturating_mul(parts);
        // What is decoded on the way to a part is let go of with it.
        let beside = chain.working_bytes() - chain.decoded_bytes();
        let working = beside.saturating_mul(parts.min(self.cpu.threads() as u64));
        let permit = self.reserve(fetched.saturating_add(decoded).saturating_add(working)).await;
        let bytes = Self::read(value, fetch.range.clone(), trace).await;
        let shared = fetch.wanted.len() > 1;
        let part = |place: usize, bytes: &Bytes| {
            let range = ranges.get(place).cloned().unwrap_or_default();
            let offset = |at: u64| usize::try_from(at - fetch.range.start).unwrap_or(usize::MAX);
            let encoded = bytes.slice(offset(range.start)..offset(range.end));
            JobPart { place, encoded, shared }
        };
        let parts = match &bytes {
            Ok(bytes) => Ok(fetch.wanted.iter().map(|&place| part(place, bytes)).collect()),
            Err(error) => Err((fetch.wanted.clone(), error.clone())),
        };
        Fetched { parts, _permit: permit }
    }

    /// Decodes what was fetched at a time.
    async fn decode_fetched(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        mut fetched: Vec<Fetched>,
        trace: &ReadContext,
    ) -> Vec<(usize, Result<Elements, ArrayError>)> {
        let (start, mut elements) = (Instant::now(), Vec::new());
        let parts = fetched.iter_mut().filter_map(|fetched| {
            match std::mem::replace(&mut fetched.parts, Ok(Vec::new())) {
                Ok(parts) => Some(parts),
                Err((places, error)) => {
                    elements.extend(places.into_iter().map(|place| (place, Err(error.clone()))));
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
        trace.decoded_since(start);
        elements
    }
}

/// Parts that were fetched together, or their places and why they were not; and the room for what becomes of them.
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
        trace: &Arc<ReadContext>,
    ) -> Result<ChunkLookup, ArrayError> {
        // How long it is is not known; that it is about as long as what it decodes to is a guess on the safe side.
        let bytes = chain.sharding().map_or(chain.working_bytes(), Sharding::index_bytes);
        let _permit = self.reserve(bytes.saturating_mul(2)).await;
        let read = Self::read_speculatively(key, chain, trace);
        let read = read.instrument(tracing::trace_span!(target: "zarrd::span", "fetch"));
        let Some((value, encoded)) = read.await? else {
            return Ok(ChunkLookup::seen(None));
        };
        let Some(encoded) = encoded else { return Ok(ChunkLookup::seen(Some(value))) };
        let (start, whole) = (Instant::now(), 0..value.info.size);
        let part = if chain.sharding().is_some() {
            ChunkData::Index(self.decode_index(&value, chain, whole, encoded).await?)
        } else {
            ChunkData::Elements(self.decode(&value, chain, &whole, encoded, false).await?)
        };
        trace.decoded_since(start);
        Ok(ChunkLookup { value: Some(value), part })
    }
    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        trace: &Arc<ReadContext>,
    ) -> Vec<Result<Elements, ArrayError>> {
        let limit = chain.encoded_limit();
        let mut elements: Vec<Option<Result<Elements, ArrayError>>> = ranges
            .iter()
            .map(|range| {
                let size = range.end.saturating_sub(range.start);
                (size > limit).then(|| Err(ArrayError::ChunkTooLong { key: value.key.clone(), size, limit }))
            })
            .collect();
        let longest = match value.store.kind() {
            StoreKind::Local => self.options.max_coalesce_size.min(LOCAL_FETCH_BYTES),
            _ => self.options.max_coalesce_size,
        };
        let mut fetches = coalesce(ranges, self.options.max_coalesce_gap, longest);
        for fetch in &mut fetches {
            fetch.wanted.retain(|&place| elements[place].is_none());
        }
        fetches.retain(|fetch| !fetch.wanted.is_empty());
        let fetch = |fetch| self.fetch(value, chain, ranges, fetch, trace);
        let decode = |fetched| self.decode_fetched(value, chain, ranges, fetched, trace);
        let mut put = |decoded: Vec<_>| {
            for (place, outcome) in decoded {
                elements[place] = Some(outcome);
            }
        };
        if fetches.len() == 1 {
            let only = fetches.remove(0);
            put(decode(vec![fetch(only).await]).await);
        } else {
            let most = self.options.max_concurrency.clamp(1, fetches.len().max(1));
            // What comes at a time, as from a file in memory, takes one way to the threads that decode.
            let mut decoded = stream::iter(fetches)
                .map(fetch)
                .buffer_unordered(most)
                .ready_chunks(most)
                .map(decode)
                .buffer_unordered(most);
            while let Some(decoded) = decoded.next().await {
                put(decoded);
            }
        }
        // Every place is in exactly one fetch.
        elements.into_iter().map(|outcome| outcome.unwrap_or(Err(ArrayError::Geometry))).collect()
    }

    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        trace: &Arc<ReadContext>,
    ) -> Result<Arc<ShardIndex>, ArrayError> {
        let sharding = chain.sharding().ok_or(ArrayError::Geometry)?;
        let shard_bytes = shard.end.saturating_sub(shard.start);
        let index = sharding.index_range(shard_bytes).map_err(|source| undecodable(value, &shard, source))?;
        let range = shard.start + index.start..shard.start + index.end;
        let _permit = self.reserve(sharding.index_bytes().saturating_mul(2)).await;
        let encoded = Self::read(value, range, trace).await?;
        self.decode_index(value, chain, shard, encoded).await
    }
}
