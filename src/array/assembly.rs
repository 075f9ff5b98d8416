//! [`Assembly`]: the schedule by which the chunks of one segment are resolved, loaded and copied to their places.
//!
//! Each chunk takes three steps. To *resolve* it is to find what is stored of it, and for a shard to go through its index;
//! that gives pieces of work. To *load* a piece of work is to get decoded elements. To *copy* is to write loaded elements to
//! the segment, many chunks at a time. Steps that need nothing but memory are done at once; the others run concurrently,
//! within limits on how many chunks are in memory at a time.

use std::collections::VecDeque;

use futures::future::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};

use super::chunk_reader::{ChunkReader, LoadedChunk, PendingWork, Progress, ResolvedChunk, Versions};
use super::error::ArrayError;
use super::from_memory::FromMemory;
use super::plan::{Plan, ResponseSegment};
use super::resolve::ChunkWork;
use super::segment_buffer::SegmentBuffer;
use super::snapshot::{Chunks, REVALIDATE_BATCH};
use crate::chunk::{ChunkCoords, CopyRegion, Elements};

/// Bytes of decoded chunks of one segment that wait to be copied, about,
const HELD_BYTES: u64 = 64 << 20;
/// but at least this many chunks, however large each is.
const HELD_CHUNKS: usize = 4;
/// Stored chunks of one segment that are resolved at a time. How many of them are read at a time, the fetch permits of the
/// request decide.
const RESOLVE_CONCURRENCY: usize = 64;
/// Pieces of work of one segment that are loaded at a time.
const LOAD_CONCURRENCY: usize = 16;
/// The most loaded chunks that are copied at a time. Chunks from memory are ready in such numbers.
const CHUNKS_PER_COPY: usize = 512;

/// The elements of a segment, and the chunks that they were read from.
pub(super) struct Assembled {
    pub(super) elements: Elements,
    /// The stored chunks in no particular order; empty where a snapshot gave their versions.
    pub(super) chunks: Chunks,
}

/// Assembles one segment of a plan from the chunks that `reader` reads.
pub(super) async fn assemble(
    plan: &Plan,
    segment: &ResponseSegment,
    reader: &ChunkReader<'_>,
) -> Result<Assembled, ArrayError> {
    let array = plan.array();
    let window = CopyRegion::packed(segment.subset.axes(), array.metadata().data_type.element_bytes());
    let assembly = Assembly {
        plan,
        reader,
        limits: AssemblyLimits::new(array.decoded_bytes(), array.is_sharded()),
        unstarted: window.split_by_chunks(array.grid().axes()),
        started: 0,
        work: VecDeque::new(),
        resolving: 0,
        loading: 0,
        in_flight: FuturesUnordered::new(),
        run: |pending| reader.run(pending),
        loaded: Vec::new(),
        buffer: SegmentBuffer::new(plan, segment)?,
        chunks: Chunks::new(),
    };
    assembly.run().await
}

/// How many chunks of a segment are worked on at a time.
struct AssemblyLimits {
    resolving: usize,
    loading: usize,
    /// Loaded chunks that are copied together.
    copying: usize,
}

impl AssemblyLimits {
    /// The limits for chunks that decode to this many bytes.
    fn new(decoded_bytes: u64, is_sharded: bool) -> Self {
        let held = usize::try_from(HELD_BYTES / decoded_bytes.max(1)).unwrap_or(usize::MAX);
        let limit = |concurrency: usize| held.clamp(HELD_CHUNKS, concurrency);
        Self {
            // Resolving a shard reads no more than its index.
            resolving: if is_sharded { RESOLVE_CONCURRENCY } else { limit(RESOLVE_CONCURRENCY) },
            loading: limit(LOAD_CONCURRENCY),
            copying: limit(CHUNKS_PER_COPY),
        }
    }
}

/// A segment while it is assembled. `C` gives its chunks, and `R` turns work that is pending into futures `F`.
struct Assembly<'a, C, R, F> {
    plan: &'a Plan,
    reader: &'a ChunkReader<'a>,
    limits: AssemblyLimits,
    /// The chunks that are not resolved yet, with the part of the segment that each is copied to.
    unstarted: C,
    /// How many chunks were taken from `unstarted`.
    started: usize,
    /// The work of resolved chunks that is not begun yet.
    work: VecDeque<ChunkWork>,
    /// How many futures in flight resolve a chunk,
    resolving: usize,
    /// and how many load elements.
    loading: usize,
    /// Both kinds in one set, so that all of them are polled: a future that holds a fetch permit must go on while others
    /// wait for one.
    in_flight: FuturesUnordered<F>,
    run: R,
    /// Chunks that are loaded and not copied yet.
    loaded: Vec<LoadedChunk>,
    buffer: SegmentBuffer,
    /// The stored chunks that were found, where no snapshot gives them.
    chunks: Chunks,
}

impl<C, R, F> Assembly<'_, C, R, F>
where
    C: Iterator<Item = (ChunkCoords, CopyRegion)>,
    R: Fn(PendingWork) -> F,
    F: Future<Output = Result<Progress, ArrayError>>,
{
    /// Runs the steps until every chunk is copied.
    async fn run(mut self) -> Result<Assembled, ArrayError> {
        loop {
            self.start_work().await?;
            let is_full = self.is_full();
            let ready = self.in_flight.next().now_or_never();
            // Chunks that are ready now are copied together with these.
            if (is_full || !matches!(ready, Some(Some(_))))
                && let Some(elements) = self.copy_loaded().await?
            {
                return Ok(Assembled { elements, chunks: self.chunks });
            }
            let progress = match ready {
                Some(Some(progress)) => Some(progress),
                _ if is_full => continue,
                Some(None) => None,
                None => self.in_flight.next().await,
            };
            match progress.transpose()? {
                Some(progress) => self.record(progress),
                // Nothing is left to start, or it would have been started.
                None => return Ok(self.finish()),
            }
        }
    }

    /// Whether enough chunks are loaded to copy them.
    fn is_full(&self) -> bool {
        self.loaded.len() >= self.limits.copying
    }

    /// Starts what the limits allow: loads first, so that resolved chunks do not accumulate.
    async fn start_work(&mut self) -> Result<(), ArrayError> {
        while !self.is_full() {
            if self.loading < self.limits.loading
                && let Some(work) = self.work.pop_front()
            {
                self.start_load(work);
            } else if self.work.is_empty()
                && self.resolving < self.limits.resolving
                && let Some((coords, window)) = self.unstarted.next()
            {
                self.started += 1;
                if self.started.is_multiple_of(REVALIDATE_BATCH) {
                    tokio::task::yield_now().await;
                }
                self.start_resolve(coords, window)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Loads a piece of work from memory, or starts a future that does.
    fn start_load(&mut self, work: ChunkWork) {
        match self.reader.try_load(work) {
            FromMemory::Ready(loaded) => self.loaded.push(loaded),
            FromMemory::Pending(load) => {
                self.loading += 1;
                self.in_flight.push((self.run)(PendingWork::Load(load)));
            }
        }
    }

    /// Resolves a chunk from memory, or starts a future that does.
    fn start_resolve(&mut self, coords: ChunkCoords, window: CopyRegion) -> Result<(), ArrayError> {
        match self.reader.try_resolve(coords, window)? {
            FromMemory::Ready(resolved) => self.record_resolved(resolved),
            FromMemory::Pending(chunk) => {
                self.resolving += 1;
                self.in_flight.push((self.run)(PendingWork::Resolve(chunk)));
            }
        }
        Ok(())
    }

    /// Takes over what a future in flight has done.
    fn record(&mut self, progress: Progress) {
        match progress {
            Progress::Resolved(resolved) => {
                self.resolving -= 1;
                self.record_resolved(resolved);
            }
            Progress::Loaded(loaded) => {
                self.loading -= 1;
                self.loaded.push(loaded);
            }
        }
    }

    fn record_resolved(&mut self, resolved: ResolvedChunk) {
        if matches!(self.reader.versions, Versions::Newest) {
            self.chunks.push((resolved.coords, resolved.value));
        }
        self.work.extend(resolved.work);
    }

    /// Copies the loaded chunks. Returns the segment's elements where they are those of one chunk, which are not copied.
    async fn copy_loaded(&mut self) -> Result<Option<Elements>, ArrayError> {
        if self.loaded.is_empty() {
            return Ok(None);
        }
        let loaded = std::mem::take(&mut self.loaded);
        if let Some(elements) = self.buffer.as_whole_chunk(&loaded) {
            return Ok(Some(elements));
        }
        let copied = self.buffer.copy(loaded, self.reader.cpu).await?;
        copied.map_err(|error| self.plan.assemble_error(error))?;
        Ok(None)
    }

    fn finish(self) -> Assembled {
        Assembled { elements: self.buffer.into_elements(), chunks: self.chunks }
    }
}
