//! [`Reader`]: the elements of a snapshot, band by band.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use futures::future::{Either, FutureExt};
use futures::stream::{self, BoxStream, FuturesUnordered, StreamExt};
use tokio::task::JoinSet;

use super::plan::Segment;
use super::resolve::{ChunkWork, Load, resolve, try_resolve};
use super::snapshot::{Chunks, REVALIDATE_BATCH};
use super::{
    Array, ArrayError, ChunkData, ChunkLocation, ChunkLookup, ChunkSource, Plan, ReadContext, ReadObserver,
    Snapshot, StoredKey, StoredValue,
};
use crate::chunk::{AssembleError, ChunkCoords, CopyRegion, Elements, ElementsMut, RowRange};
use crate::codec::CodecChain;
use crate::cpu::{ComputePool, ComputePoolError};
use crate::store::SharedStore;

/// Chunks of one band that are decoded and not yet in their places: about so many bytes of them,
const HELD_BYTES: u64 = 64 << 20;
/// but this many chunks, however large each is.
const HELD_CHUNKS: usize = 4;
/// Stored chunks of one band that are found, and whose shard indexes are looked up, at a time. How many of them are read
/// is a matter of the request's turns.
const RESOLVE_CONCURRENCY: usize = 64;
/// Groups of chunks of one band that are loaded at a time.
const LOAD_CONCURRENCY: usize = 16;
/// Loads that are put in their places in one go, if so many are ready: those that come from memory are.
const CHUNKS_PER_COPY: usize = 512;
/// Bands assembled ahead of the one that is being sent.
const SEGMENTS_AHEAD: usize = 1;
/// Copying no more than this takes less time than a hop to another thread.
const INLINE_BYTES: usize = 512 << 10;

/// Reads elements.
#[derive(Clone, Debug)]
pub struct Reader {
    source: Arc<dyn ChunkSource>,
    cpu: ComputePool,
    observer: Option<Arc<dyn ReadObserver>>,
    /// Where chunks come from that are needed once.
    passing: Option<Arc<dyn ChunkSource>>,
}

/// A chunk's elements on their way to their place in the answer.
struct LoadedChunk {
    shape: Arc<[u64]>,
    pieces: Vec<(Option<Elements>, CopyRegion)>,
}

/// Some rows of a chunk, and the chain that decodes no more than these.
struct PartialChunk {
    chain: Arc<CodecChain>,
    rows: RowRange,
}

/// What was found of a chunk, the shape of that, and the window on it.
type Seen = (ChunkLookup, Arc<[u64]>, CopyRegion);

/// What comes of a piece of work.
enum Progress {
    /// A stored chunk was found, and this is to be done.
    Resolved(Resolved),
    /// Elements are at hand.
    Loaded(LoadedChunk),
}

/// A stored chunk that was found, and what is to be done to show it.
struct Resolved {
    coords: ChunkCoords,
    value: Option<Arc<StoredValue>>,
    tasks: Vec<ChunkWork>,
}

/// Which versions of chunks are read.
enum Versions<'a> {
    /// Those that are stored now.
    Newest,
    /// Those of a snapshot.
    Of(&'a Snapshot),
}

/// A stored chunk on its way to what is to be done.
struct PendingChunk {
    coords: ChunkCoords,
    shape: Arc<[u64]>,
    window: CopyRegion,
    /// What is known of it, if anything is.
    found: Option<ChunkLookup>,
}

impl Reader {
    /// A reader that gets its chunks from `source`.
    #[must_use]
    pub fn new(source: Arc<dyn ChunkSource>, cpu: ComputePool) -> Self {
        Self { source, cpu, observer: None, passing: None }
    }

    /// The same, where `observer` is told of each request's reads when they have ended.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn ReadObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The same for what is not read again: chunks of which all is needed are not remembered for it.
    #[must_use]
    pub fn without_caching(self) -> Self {
        Self { passing: self.source.uncached(), ..self }
    }

    /// Where it gets its chunks from.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn ChunkSource> {
        &self.source
    }

    /// What a new request's reads of a mount are traced by.
    #[must_use]
    pub fn trace(&self, mount: &Arc<str>) -> Arc<ReadContext> {
        let trace = ReadContext::new(self.source.concurrency());
        Arc::new(match &self.observer {
            Some(observer) => trace.with_observer(Arc::clone(observer), mount),
            None => trace,
        })
    }

    /// The versions of the chunks that a plan touches; none of them is read.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn lookup_versions(&self, plan: &Plan, trace: &ReadContext) -> Result<Snapshot, ArrayError> {
        Snapshot::take(plan, self.source.as_ref(), trace).await
    }

    /// The versions of the chunks that a plan touches, and all its elements with them where these fit in one band: then
    /// what is not remembered is read at once, and the reads tell the versions. Of a larger plan, the versions alone.
    ///
    /// # Errors
    /// [`ArrayError`].
    pub async fn snapshot(&self, plan: &Plan, trace: &Arc<ReadContext>) -> Result<Snapshot, ArrayError> {
        let mut bands = plan.segments(0..plan.response_bytes());
        let (Some(band), None) = (bands.next(), bands.next()) else {
            return self.lookup_versions(plan, trace).await;
        };
        let mut chunks = Chunks::new();
        let note = |coords, value| chunks.push((coords, value));
        let elements = self.assemble(plan, &band, trace, &Versions::Newest, note).await?;
        Ok(Snapshot::of_read(plan.clone(), chunks, elements))
    }

    /// The elements whose items are these bytes of the answer: in C order and canonical form. Assembled in bounded memory,
    /// at the pace of whoever takes them.
    ///
    /// # Errors
    /// The stream ends with the first [`ArrayError`]; it never ends short.
    #[must_use]
    pub fn elements(
        &self,
        mut snapshot: Snapshot,
        bytes: Range<u64>,
        trace: &Arc<ReadContext>,
    ) -> BoxStream<'static, Result<Elements, ArrayError>> {
        if let Some(elements) = snapshot.take_elements() {
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(elements.items().len());
            let part = elements.slice(place(bytes.start)..place(bytes.end));
            return stream::once(std::future::ready(Ok(part))).boxed();
        }
        let (reader, trace) = (self.clone(), Arc::clone(trace));
        let bands = snapshot.plan().segments(bytes.clone());
        stream::iter(bands)
            .map(move |band| {
                let (reader, snapshot, bytes) = (reader.clone(), snapshot.clone(), bytes.clone());
                let trace = Arc::clone(&trace);
                run_to_completion(async move {
                    let elements = reader.segment(&snapshot, &band, &trace).await?;
                    let within = |at: u64| usize::try_from(at - band.bytes.start).unwrap_or(usize::MAX);
                    let (start, end) = (bytes.start.max(band.bytes.start), bytes.end.min(band.bytes.end));
                    Ok(elements.slice(within(start)..within(end)))
                })
            })
            .buffered(1 + SEGMENTS_AHEAD)
            .boxed()
    }

    /// Assembles one band of a snapshot.
    async fn segment(
        &self,
        snapshot: &Snapshot,
        band: &Segment,
        trace: &Arc<ReadContext>,
    ) -> Result<Elements, ArrayError> {
        self.assemble(snapshot.plan(), band, trace, &Versions::Of(snapshot), |_, _| {}).await
    }

    /// Assembles one band of chunks of these versions, and has each noted. What is in memory is taken as it comes, in one
    /// go; all else is waited for side by side.
    async fn assemble(
        &self,
        plan: &Plan,
        band: &Segment,
        trace: &Arc<ReadContext>,
        versions: &Versions<'_>,
        mut note: impl FnMut(ChunkCoords, Option<Arc<StoredValue>>),
    ) -> Result<Elements, ArrayError> {
        let array = plan.array();
        let item_bytes = array.metadata().data_type.item_bytes();
        let length =
            usize::try_from(band.bytes.end - band.bytes.start).map_err(|_too_long| ArrayError::Geometry)?;
        let window = CopyRegion::packed(band.subset.axes(), item_bytes);
        let is_variable = array.metadata().data_type.is_variable();
        let heap_limit = plan.heap_limit();
        let empty = move || {
            if is_variable {
                ElementsMut::variable(vec![0; length], heap_limit)
            } else {
                ElementsMut::fixed(vec![0; length], item_bytes)
            }
        };
        // Made when it is known that the answer has to be put together.
        let mut out: Option<ElementsMut> = None;
        let fill: Arc<[u8]> = array.metadata().fill_value.as_bytes().into();
        let held = usize::try_from(HELD_BYTES / array.decoded_bytes().max(1)).unwrap_or(usize::MAX);
        let at_a_time = |most: usize| held.clamp(HELD_CHUNKS, most);
        // Of shards, no more is found than their indexes.
        let most_resolving =
            if array.is_sharded() { RESOLVE_CONCURRENCY } else { at_a_time(RESOLVE_CONCURRENCY) };
        let (most_loading, most_pasted) = (at_a_time(LOAD_CONCURRENCY), at_a_time(CHUNKS_PER_COPY));
        let mut chunks = window.split_by_chunks(array.grid().axes());
        let mut tasks = VecDeque::new();
        let (mut resolving, mut loading, mut taken, mut batch) = (0, 0, 0_usize, Vec::new());
        // All in one set: what has a turn at the store must never stand still for what waits for one.
        let mut underway = FuturesUnordered::new();
        loop {
            while batch.len() < most_pasted {
                if loading < most_loading
                    && let Some(task) = tasks.pop_front()
                {
                    match self.try_load(task, item_bytes, trace) {
                        Ok(loaded) => batch.push(loaded),
                        Err(load) => {
                            loading += 1;
                            underway.push(Either::Left(self.load(load, item_bytes, trace)));
                        }
                    }
                } else if tasks.is_empty()
                    && resolving < most_resolving
                    && let Some((coords, window)) = chunks.next()
                {
                    taken += 1;
                    if taken.is_multiple_of(REVALIDATE_BATCH) {
                        tokio::task::yield_now().await;
                    }
                    match self.try_resolve(array, versions, coords, window, trace)? {
                        Ok(resolved) => {
                            note(resolved.coords, resolved.value);
                            tasks.extend(resolved.tasks);
                        }
                        Err(wanted) => {
                            resolving += 1;
                            underway.push(Either::Right(self.resolve(array, versions, wanted, trace)));
                        }
                    }
                } else {
                    break;
                }
            }
            let is_full = batch.len() >= most_pasted;
            let step = match underway.next().now_or_never() {
                Some(Some(step)) if !is_full => Some(step),
                at_hand => {
                    if !batch.is_empty() {
                        let (batch, fill) = (std::mem::take(&mut batch), Arc::clone(&fill));
                        if !is_variable && let Some(elements) = whole(&batch, length, item_bytes) {
                            return Ok(elements);
                        }
                        let begun = out.take();
                        let paste = move || {
                            let mut out = begun.unwrap_or_else(empty);
                            copy_chunks(&batch, &fill, &mut out).map(|()| out)
                        };
                        let pasted =
                            if length <= INLINE_BYTES { paste() } else { self.cpu.run(paste).await? };
                        out = Some(pasted.map_err(|error| plan.unassembled(error))?);
                    }
                    match at_hand {
                        Some(Some(step)) => Some(step),
                        _ if is_full => continue,
                        Some(None) => None,
                        None => underway.next().await,
                    }
                }
            };
            match step.transpose()? {
                Some(Progress::Resolved(resolved)) => {
                    resolving -= 1;
                    note(resolved.coords, resolved.value);
                    tasks.extend(resolved.tasks);
                }
                Some(Progress::Loaded(loaded)) => {
                    loading -= 1;
                    batch.push(loaded);
                }
                // Nothing is left to begin, or it would have been begun.
                None => return Ok(out.unwrap_or_else(empty).freeze()),
            }
        }
    }

    /// Finds a stored chunk, if what it takes to know what is to be done is in memory.
    fn try_resolve(
        &self,
        array: &Arc<Array>,
        versions: &Versions<'_>,
        coords: ChunkCoords,
        window: CopyRegion,
        trace: &Arc<ReadContext>,
    ) -> Result<Result<Resolved, PendingChunk>, ArrayError> {
        let shape: Arc<[u64]> = array.shape_of(&coords);
        let Some(chain) = array.bound_chain(&shape) else {
            return Ok(Err(PendingChunk { coords, shape, window, found: None }));
        };
        let seen = match versions {
            Versions::Newest => self.try_find(array, &coords, &chain, &shape, &window, trace)?,
            Versions::Of(snapshot) => {
                let found = ChunkLookup::seen(snapshot.value(&coords).cloned());
                Some((found, Arc::clone(&shape), window.clone()))
            }
        };
        let Some((found, shape, window)) = seen else {
            return Ok(Err(PendingChunk { coords, shape, window, found: None }));
        };
        let tasks =
            try_resolve(self.source.as_ref(), found.clone(), chain, Arc::clone(&shape), window.clone());
        Ok(match tasks {
            Some(tasks) => Ok(Resolved { coords, value: found.value, tasks }),
            None => Err(PendingChunk { coords, shape, window, found: Some(found) }),
        })
    }

    /// Finds a stored chunk.
    async fn resolve(
        &self,
        array: &Arc<Array>,
        versions: &Versions<'_>,
        wanted: PendingChunk,
        trace: &Arc<ReadContext>,
    ) -> Result<Progress, ArrayError> {
        let PendingChunk { coords, shape, window, found } = wanted;
        let chain = self.chain(array, &coords, &shape).await?;
        let (found, shape, window) = match (found, versions) {
            (Some(found), _) => (found, shape, window),
            (None, Versions::Newest) => {
                self.fetch_or_lookup(array, &coords, &chain, shape, window, trace).await?
            }
            (None, Versions::Of(snapshot)) => {
                (ChunkLookup::seen(snapshot.value(&coords).cloned()), shape, window)
            }
        };
        let value = found.value.clone();
        let tasks = resolve(self.source.as_ref(), found, chain, shape, window, trace).await?;
        Ok(Progress::Resolved(Resolved { coords, value, tasks }))
    }

    /// As [`Reader::fetch_or_lookup`], if it is in memory.
    fn try_find(
        &self,
        array: &Array,
        coords: &[u64],
        chain: &CodecChain,
        shape: &Arc<[u64]>,
        window: &CopyRegion,
        trace: &ReadContext,
    ) -> Result<Option<Seen>, ArrayError> {
        let key = array.stored_key(coords)?;
        if let Some(found) = self.source.try_find(&key, chain, trace) {
            return Ok(Some((found, Arc::clone(shape), window.clone())));
        }
        Ok(self.part_of_value(array, &key, chain, shape, window).and_then(|part| {
            let found = self.source.try_find(&key, &part.chain, trace)?;
            let window = window.within(&part.rows);
            Some((found, part.rows.shape.into(), window))
        }))
    }

    /// What is stored of a chunk now, or of the part of it that a window needs; and the shape of what was found, with the
    /// window on it.
    async fn fetch_or_lookup(
        &self,
        array: &Array,
        coords: &[u64],
        chain: &Arc<CodecChain>,
        shape: Arc<[u64]>,
        window: CopyRegion,
        trace: &Arc<ReadContext>,
    ) -> Result<Seen, ArrayError> {
        let key = array.stored_key(coords)?;
        let part = self.part_of_value(array, &key, chain, &shape, &window);
        let asked = part.as_ref().map_or(chain, |part| &part.chain);
        let source = self.source_of(chain, &shape, std::slice::from_ref(&window));
        let found = source.fetch_or_lookup(&key, asked, trace).await?;
        Ok(match (part, &found.part) {
            (Some(part), ChunkData::Elements(_)) => {
                let window = window.within(&part.rows);
                (found, part.rows.shape.into(), window)
            }
            _ => (found, shape, window),
        })
    }

    /// The chain of a chunk. Binding it takes as long as the document is long.
    async fn chain(
        &self,
        array: &Arc<Array>,
        coords: &[u64],
        shape: &[u64],
    ) -> Result<Arc<CodecChain>, ArrayError> {
        if let Some(chain) = array.bound_chain(shape) {
            return Ok(chain);
        }
        let (array, coords, shape) = (Arc::clone(array), coords.to_vec(), shape.to_vec());
        self.cpu.run(move || array.chain_of(&coords, &shape)).await?
    }

    /// The part of these chunks that the windows need, where that takes less than the whole and the source prefers it of
    /// most of them. From far away a chunk is fetched once for all who want something of it at a time, so all of it is
    /// decoded.
    fn part<'a>(
        &self,
        store: &SharedStore,
        chain: &CodecChain,
        shape: &[u64],
        windows: impl IntoIterator<Item = &'a CopyRegion>,
        item_bytes: usize,
        places: impl ExactSizeIterator<Item = ChunkLocation<'a>>,
    ) -> Option<PartialChunk> {
        if !store.capabilities().near {
            return None;
        }
        let rows = CopyRegion::rows(windows.into_iter(), shape, item_bytes)?;
        let part = chain.part(rows.items.clone())?;
        let chunks = places.len();
        let whole = places.filter(|&place| self.source.prefers_whole(place, chain, &part)).count();
        (whole * 2 < chunks).then(|| PartialChunk { chain: Arc::new(part), rows })
    }

    /// The part of a chunk that is all of a stored value.
    fn part_of_value(
        &self,
        array: &Array,
        key: &StoredKey,
        chain: &CodecChain,
        shape: &[u64],
        window: &CopyRegion,
    ) -> Option<PartialChunk> {
        let item_bytes = array.metadata().data_type.item_bytes();
        let place = ChunkLocation { mount: &key.mount, key: &key.key, start: 0 };
        let windows = std::slice::from_ref(window);
        self.part(&array.store, chain, shape, windows, item_bytes, std::iter::once(place))
    }

    /// One part of all chunks that are to be loaded, so that neighbours are still fetched together.
    fn part_of_all(&self, load: &Load, item_bytes: usize) -> Option<PartialChunk> {
        let Load { value, chain, shape, parts } = load;
        let places = parts.iter().map(|(range, _)| ChunkLocation {
            mount: &value.mount,
            key: &value.key,
            start: range.start,
        });
        let windows = parts.iter().map(|(_, window)| window);
        self.part(&value.store, chain, shape, windows, item_bytes, places)
    }

    /// Where chunks of this shape are read from, of which these windows are needed.
    fn source_of(&self, chain: &CodecChain, shape: &[u64], windows: &[CopyRegion]) -> &dyn ChunkSource {
        let once = self.passing.as_ref().filter(|_| {
            // Of a shard it is the index that is found, which all its chunks need.
            chain.sharding().is_none() && windows.iter().all(|window| window.needs_all(shape))
        });
        once.unwrap_or(&self.source).as_ref()
    }

    /// What a task ends in, if it is in memory, or what has to be loaded.
    fn try_load(&self, task: ChunkWork, item_bytes: usize, trace: &ReadContext) -> Result<LoadedChunk, Load> {
        match task {
            ChunkWork::Fill { shape, windows } => {
                let pieces = windows.into_iter().map(|window| (None, window)).collect();
                Ok(LoadedChunk { shape, pieces })
            }
            ChunkWork::Show { elements, shape, window } => {
                Ok(LoadedChunk { shape, pieces: vec![(Some(elements), window)] })
            }
            ChunkWork::Load(load) => {
                let recall = |chain: &CodecChain| {
                    let each = load.parts.iter();
                    each.map(|(range, _)| self.source.try_elements(&load.value, chain, range))
                        .collect::<Option<Vec<_>>>()
                };
                let (elements, rows) = if let Some(elements) = recall(&load.chain) {
                    (elements, None)
                } else if let Some(part) = self.part_of_all(&load, item_bytes)
                    && let Some(elements) = recall(&part.chain)
                {
                    (elements, Some(part.rows))
                } else {
                    return Err(load);
                };
                trace.add_hits(elements.len() as u64);
                let within = |window: CopyRegion| match &rows {
                    Some(rows) => window.within(rows),
                    None => window,
                };
                let windows = load.parts.into_iter().map(|(_, window)| within(window));
                let pieces = elements.into_iter().map(Some).zip(windows).collect();
                Ok(LoadedChunk {
                    shape: rows.as_ref().map_or(load.shape, |rows| rows.shape.as_slice().into()),
                    pieces,
                })
            }
        }
    }

    async fn load(
        &self,
        load: Load,
        item_bytes: usize,
        trace: &Arc<ReadContext>,
    ) -> Result<Progress, ArrayError> {
        let part = self.part_of_all(&load, item_bytes);
        let Load { value, mut chain, mut shape, parts } = load;
        let (ranges, mut windows): (Vec<_>, Vec<CopyRegion>) = parts.into_iter().unzip();
        if let Some(part) = part {
            for window in &mut windows {
                *window = window.within(&part.rows);
            }
            (chain, shape) = (part.chain, part.rows.shape.into());
        }
        let source = self.source_of(&chain, &shape, &windows);
        let elements = source.elements(&value, &chain, &ranges, trace).await;
        let pieces = elements
            .into_iter()
            .zip(windows)
            .map(|(elements, window)| Ok((Some(elements?), window)))
            .collect::<Result<_, ArrayError>>()?;
        Ok(Progress::Loaded(LoadedChunk { shape, pieces }))
    }
}

/// The elements of the one chunk that is all of an answer of so many bytes, as it is.
fn whole(batch: &[LoadedChunk], length: usize, item_bytes: usize) -> Option<Elements> {
    let [LoadedChunk { shape, pieces }] = batch else { return None };
    let [(Some(elements), window)] = &pieces[..] else { return None };
    let is_whole = elements.items().len() == length && window.is_whole(shape, item_bytes);
    is_whole.then(|| elements.clone())
}

/// Work that goes on while nobody asks for it: a client that does not read must not leave a band half put together, with
/// its chunks in memory. It ends when nobody can ask for it any more.
fn run_to_completion(
    work: impl Future<Output = Result<Elements, ArrayError>> + Send + 'static,
) -> impl Future<Output = Result<Elements, ArrayError>> + Send {
    let mut tasks = JoinSet::new();
    tasks.spawn(work);
    async move {
        match tasks.join_next().await {
            Some(Ok(done)) => done,
            Some(Err(_)) | None => Err(ComputePoolError::Panicked.into()),
        }
    }
}

/// Puts loaded chunks in their places.
fn copy_chunks(batch: &[LoadedChunk], fill: &[u8], out: &mut ElementsMut) -> Result<(), AssembleError> {
    // A text of zeros is not the empty one.
    let zero_fill = (fill.is_empty() || !out.is_variable()) && fill.iter().all(|&byte| byte == 0);
    for loaded in batch {
        for (elements, window) in &loaded.pieces {
            match elements {
                Some(elements) => out.copy_from(elements, &loaded.shape, window)?,
                // The answer begins as zeros, and each place of it is written once.
                None if zero_fill => {}
                None => out.fill(fill, window)?,
            }
        }
    }
    Ok(())
}
