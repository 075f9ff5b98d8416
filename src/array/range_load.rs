//! [`RangeLoad`]: fetches and decodes byte ranges of one stored value, for one request.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use super::coalesce::{Fetch, coalesce};
use super::error::ArrayError;
use super::fetching::{Fetching, read_range, undecodable};
use super::jobs::{JobPart, decode, jobs};
use super::read_context::ReadContext;
use super::stored::StoredValue;
use crate::chunk::Elements;
use crate::codec::CodecChain;
use crate::cpu::ComputePoolError;

/// If fetches have at least this many bytes on average, encoded or decoded, the threads that decode them also read them. The bytes are
/// then in the caches of one core. Fewer bytes take less time than the hop to another thread.
const LEAST_READ_ON_POOL: u64 = 128 << 10;

/// The positions of ranges, and what each was decoded to.
type Decoded = Vec<(usize, Result<Elements, ArrayError>)>;

/// A load of byte ranges of one value, each of which is a chunk.
#[derive(Clone)]
pub(super) struct RangeLoad {
    pub(super) fetching: Fetching,
    pub(super) value: Arc<StoredValue>,
    pub(super) chain: Arc<CodecChain>,
    pub(super) ranges: Arc<[Range<u64>]>,
    pub(super) context: Arc<ReadContext>,
}

/// The parts of one fetch, or their positions and why they could not be fetched; and the share of the budget that they use.
struct Fetched {
    parts: Result<Vec<JobPart>, (Vec<usize>, ArrayError)>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// The threads that decode a job.
#[derive(Clone, Copy)]
enum Threads {
    /// This one, if it belongs to the pool.
    This,
    /// Any of the pool, or this one if the job is small.
    Any,
    /// Any of the pool, in parallel with other jobs.
    Parallel,
}

impl RangeLoad {
    /// The elements of each range, in the order of the ranges.
    pub(super) async fn run(self) -> Vec<Result<Elements, ArrayError>> {
        let mut elements = self.check_lengths();
        let mut fetches = self.fetches(&elements);
        let concurrency = self.fetching.options.max_concurrency.clamp(1, fetches.len().max(1));
        let mut put = |decoded: Decoded| {
            for (position, outcome) in decoded {
                elements[position] = Some(outcome);
            }
        };
        if self.is_read_on_pool(&fetches) {
            let mut decoded = stream::iter(fetches)
                .map(|fetch| self.clone().fetch_and_decode_on_pool(fetch))
                .buffer_unordered(concurrency);
            while let Some(decoded) = decoded.next().await {
                put(decoded);
            }
        } else if fetches.len() == 1 {
            let fetched = self.fetch(fetches.remove(0)).await;
            put(self.decode(vec![fetched], Threads::Any).await);
        } else {
            // Fetches that are ready at the same time, as from a file in memory, take one hop to the threads that decode.
            let mut decoded = stream::iter(fetches)
                .map(|fetch| self.fetch(fetch))
                .buffer_unordered(concurrency)
                .ready_chunks(concurrency)
                .map(|fetched| self.decode(fetched, Threads::Any))
                .buffer_unordered(concurrency);
            while let Some(decoded) = decoded.next().await {
                put(decoded);
            }
        }
        // Every position is in exactly one fetch.
        elements.into_iter().map(|outcome| outcome.unwrap_or(Err(ArrayError::Geometry))).collect()
    }

    /// An error for each range that is longer than what a chunk can be encoded to.
    fn check_lengths(&self) -> Vec<Option<Result<Elements, ArrayError>>> {
        let limit = self.chain.encoded_limit();
        let check = |range: &Range<u64>| {
            let size = range.end.saturating_sub(range.start);
            let key = &self.value.key;
            (size > limit).then(|| Err(ArrayError::ChunkTooLong { key: key.clone(), size, limit }))
        };
        self.ranges.iter().map(check).collect()
    }

    /// The fetches of the ranges that have no error yet.
    fn fetches(&self, elements: &[Option<Result<Elements, ArrayError>>]) -> Vec<Fetch> {
        let options = &self.fetching.options;
        let longest = self.value.store.capabilities().max_coalesced_bytes;
        let longest = longest.map_or(options.max_coalesce_size, |most| most.min(options.max_coalesce_size));
        let mut fetches = coalesce(&self.ranges, options.max_coalesce_gap, longest);
        for fetch in &mut fetches {
            fetch.positions.retain(|&position| elements[position].is_none());
        }
        fetches.retain(|fetch| !fetch.positions.is_empty());
        fetches
    }

    /// Whether the threads that decode also read.
    fn is_read_on_pool(&self, fetches: &[Fetch]) -> bool {
        let bytes = fetches.iter().fold(0, |bytes: u64, fetch| {
            let decoded = self.chain.decoded_bytes().saturating_mul(fetch.positions.len() as u64);
            bytes.saturating_add(decoded.max(fetch.range.end - fetch.range.start))
        });
        self.value.store.capabilities().nonblocking
            && bytes / (fetches.len() as u64).max(1) >= LEAST_READ_ON_POOL
    }

    /// Fetches and decodes one range on a thread of the pool.
    async fn fetch_and_decode_on_pool(self, fetch: Fetch) -> Decoded {
        let (cpu, positions) = (self.fetching.cpu.clone(), fetch.positions.clone());
        let queued = Instant::now();
        let work = async move {
            self.context.add_fetch_time(queued);
            let fetched = self.fetch(fetch).await;
            self.decode(vec![fetched], Threads::This).await
        };
        cpu.spawn_future(work).await.unwrap_or_else(|error| failed(positions, &error))
    }

    /// Fetches one range.
    async fn fetch(&self, fetch: Fetch) -> Fetched {
        let Self { fetching, value, chain, ranges, context } = self;
        let fetched = fetch.range.end - fetch.range.start;
        let parts = fetch.positions.len() as u64;
        let decoded = chain.decoded_bytes().saturating_mul(parts);
        // Intermediate results of a part are freed with it, so at most one part per thread has them.
        let beside = chain.working_bytes() - chain.decoded_bytes();
        let working = beside.saturating_mul(parts.min(fetching.cpu.threads() as u64));
        let permit = fetching.reserve(fetched.saturating_add(decoded).saturating_add(working)).await;
        let bytes = read_range(value, fetch.range.clone(), context).await;
        let part = |position: usize, bytes: &Bytes, shared: bool| {
            let range = ranges.get(position).cloned().unwrap_or_default();
            let offset = |at: u64| usize::try_from(at - fetch.range.start).unwrap_or(usize::MAX);
            let encoded = bytes.slice(offset(range.start)..offset(range.end));
            JobPart { position, encoded, shared }
        };
        let parts = match &bytes {
            Ok((bytes, shared)) => {
                let shared = *shared || fetch.positions.len() > 1;
                Ok(fetch.positions.iter().map(|&position| part(position, bytes, shared)).collect())
            }
            Err(error) => Err((fetch.positions.clone(), error.clone())),
        };
        Fetched { parts, _permit: permit }
    }

    /// Decodes fetches that were ready at the same time. If they are one job, these threads do it.
    async fn decode(&self, mut fetched: Vec<Fetched>, threads: Threads) -> Decoded {
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
        let jobs = jobs(parts.flatten(), self.chain.decoded_bytes());
        let threads = if jobs.len() == 1 { threads } else { Threads::Parallel };
        let mut decoded = stream::iter(jobs)
            .map(|job| self.decode_job(job, threads))
            .buffer_unordered(self.fetching.cpu.threads());
        while let Some(job) = decoded.next().await {
            elements.extend(job);
        }
        self.context.add_decode_time(start);
        elements
    }

    /// Decodes the parts of a job one after the other.
    async fn decode_job(&self, job: Vec<JobPart>, threads: Threads) -> Decoded {
        let Self { fetching, value, chain, ranges, .. } = self;
        let positions: Vec<usize> = job.iter().map(|part| part.position).collect();
        let bytes = job.iter().fold(0, |bytes: u64, part| {
            bytes.saturating_add(chain.working_bytes().max(part.encoded.len() as u64))
        });
        let bound = Arc::clone(chain);
        let work =
            move || job.into_iter().map(|part| decode(&bound, part.encoded, part.shared)).collect::<Vec<_>>();
        let decoding = async {
            match threads {
                Threads::This => fetching.cpu.run(work).await,
                Threads::Any => fetching.cpu.run_or_inline(bytes, work).await,
                Threads::Parallel => fetching.cpu.spawn_background(work).await,
            }
        };
        let at_position = |(position, decoded): (usize, Result<_, _>)| {
            let range = ranges.get(position).cloned().unwrap_or_default();
            (position, decoded.map_err(|source| undecodable(value, &range, source)))
        };
        match decoding.instrument(tracing::trace_span!(target: "zarrd::span", "decode")).await {
            Ok(decoded) => positions.into_iter().zip(decoded).map(at_position).collect(),
            Err(error) => failed(positions, &error),
        }
    }
}

/// The same failure for all of these positions.
fn failed(positions: Vec<usize>, error: &ComputePoolError) -> Decoded {
    positions.into_iter().map(|position| (position, Err(error.clone().into()))).collect()
}
