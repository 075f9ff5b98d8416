//! [`Reader`]: the elements of a snapshot, band by band.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use futures::future::{Either, FutureExt};
use futures::stream::{self, BoxStream, FuturesUnordered, StreamExt};

use super::plan::Band;
use super::resolve::{Task, resolve};
use super::snapshot::Chunks;
use super::{Array, ArrayError, ChunkSource, Found, Plan, Snapshot, StoredValue, Trace};
use crate::chunk::{AssembleError, ChunkCoords, Elements, ElementsMut, Window};
use crate::codec::CodecChain;
use crate::cpu::Cpu;

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
const PASTE_TOGETHER: usize = 512;
/// Bands assembled ahead of the one that is being sent.
const BANDS_AHEAD: usize = 1;
/// Copying less than this is not worth a hop to another thread.
const INLINE_BYTES: usize = 128 << 10;

/// Reads elements.
#[derive(Clone, Debug)]
pub struct Reader {
    source: Arc<dyn ChunkSource>,
    cpu: Cpu,
}

/// A chunk's elements on their way to their place in the answer.
struct Loaded {
    shape: Arc<[u64]>,
    pieces: Vec<(Option<Elements>, Window)>,
}

/// What comes of a piece of work.
enum Step {
    /// A stored chunk was found, and this is to be done.
    Resolved { coords: ChunkCoords, value: Option<Arc<StoredValue>>, tasks: Vec<Task> },
    /// Elements are at hand.
    Loaded(Loaded),
}

impl Reader {
    /// A reader that gets its chunks from `source`.
    #[must_use]
    pub fn new(source: Arc<dyn ChunkSource>, cpu: Cpu) -> Self {
        Self { source, cpu }
    }

    /// Where it gets its chunks from.
    #[must_use]
    pub fn source(&self) -> &Arc<dyn ChunkSource> {
        &self.source
    }

    /// What a new request's reads are traced by.
    #[must_use]
    pub fn trace(&self) -> Arc<Trace> {
        Arc::new(Trace::new(self.source.concurrency()))
    }

    /// The versions of the chunks that a plan touches, and all its elements with them where these fit in one band: then
    /// what is not remembered is read at once, and the reads tell the versions. Of a larger plan, the versions alone.
    ///
    /// # Errors
    /// [`ArrayError`].
    pub async fn snapshot(&self, plan: &Plan, trace: &Arc<Trace>) -> Result<Snapshot, ArrayError> {
        let mut bands = plan.bands(0..plan.response_bytes());
        let (Some(band), None) = (bands.next(), bands.next()) else {
            return Snapshot::take(plan, trace).await;
        };
        let mut chunks = Chunks::new();
        let find = |coords: ChunkCoords, chain: Arc<CodecChain>| async move {
            let key = plan.array().stored_key(&coords)?;
            Ok((coords, self.source.find(&key, &chain, trace).await?))
        };
        let note = |coords, value| {
            chunks.insert(coords, value);
        };
        let elements = self.assemble(plan, &band, trace, find, note).await?;
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
        trace: &Arc<Trace>,
    ) -> BoxStream<'static, Result<Elements, ArrayError>> {
        if let Some(elements) = snapshot.take_elements() {
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(elements.items().len());
            let part = elements.slice(place(bytes.start)..place(bytes.end));
            return stream::once(std::future::ready(Ok(part))).boxed();
        }
        let (reader, trace) = (self.clone(), Arc::clone(trace));
        let bands = snapshot.plan().bands(bytes.clone());
        stream::iter(bands)
            .map(move |band| {
                let (reader, snapshot, bytes) = (reader.clone(), snapshot.clone(), bytes.clone());
                let trace = Arc::clone(&trace);
                async move {
                    let elements = reader.band(&snapshot, &band, &trace).await?;
                    let within = |at: u64| usize::try_from(at - band.bytes.start).unwrap_or(usize::MAX);
                    let (start, end) = (bytes.start.max(band.bytes.start), bytes.end.min(band.bytes.end));
                    Ok(elements.slice(within(start)..within(end)))
                }
            })
            .buffered(1 + BANDS_AHEAD)
            .boxed()
    }

    /// Assembles one band of a snapshot.
    async fn band(
        &self,
        snapshot: &Snapshot,
        band: &Band,
        trace: &Arc<Trace>,
    ) -> Result<Elements, ArrayError> {
        let find = |coords: ChunkCoords, _: Arc<CodecChain>| {
            let value = snapshot.value(&coords).cloned();
            std::future::ready(Ok((coords, Found::seen(value))))
        };
        self.assemble(snapshot.plan(), band, trace, find, |_, _| {}).await
    }

    /// Assembles one band of chunks as `find` finds them, and has each noted.
    async fn assemble<F: Future<Output = Result<(ChunkCoords, Found), ArrayError>>>(
        &self,
        plan: &Plan,
        band: &Band,
        trace: &Arc<Trace>,
        find: impl Fn(ChunkCoords, Arc<CodecChain>) -> F,
        mut note: impl FnMut(ChunkCoords, Option<Arc<StoredValue>>),
    ) -> Result<Elements, ArrayError> {
        let array = plan.array();
        let item_bytes = array.metadata().data_type.item_bytes();
        let length =
            usize::try_from(band.bytes.end - band.bytes.start).map_err(|_too_long| ArrayError::Geometry)?;
        let window = Window::packed(band.subset.axes(), item_bytes);
        let mut out = if array.metadata().data_type.is_variable() {
            ElementsMut::variable(vec![0; length], plan.heap_limit())
        } else {
            ElementsMut::fixed(vec![0; length], item_bytes)
        };
        let fill: Arc<[u8]> = array.metadata().fill_value.as_bytes().into();
        let resolved = async |coords: ChunkCoords, window| {
            let shape = array.grid().shape_of(&coords);
            let chain = self.chain(array, &coords, &shape).await?;
            let (coords, found) = find(coords, Arc::clone(&chain)).await?;
            let value = found.value.clone();
            let tasks = resolve(self.source.as_ref(), found, chain, shape, window, trace).await?;
            Ok(Step::Resolved { coords, value, tasks })
        };
        let held = usize::try_from(HELD_BYTES / array.decoded_bytes().max(1)).unwrap_or(usize::MAX);
        let at_a_time = |most: usize| held.clamp(HELD_CHUNKS, most);
        // Of shards, no more is found than their indexes.
        let most_resolving =
            if array.is_sharded() { RESOLVE_CONCURRENCY } else { at_a_time(RESOLVE_CONCURRENCY) };
        let (most_loading, most_pasted) = (at_a_time(LOAD_CONCURRENCY), at_a_time(PASTE_TOGETHER));
        let mut chunks = window.cut(array.grid().axes());
        let mut tasks = VecDeque::new();
        let (mut resolving, mut loading, mut batch) = (0, 0, Vec::new());
        // All in one set: what has a turn at the store must never stand still for what waits for one.
        let mut underway = FuturesUnordered::new();
        loop {
            while loading < most_loading
                && let Some(task) = tasks.pop_front()
            {
                loading += 1;
                underway.push(Either::Left(self.load(task, trace)));
            }
            while tasks.is_empty()
                && resolving < most_resolving
                && let Some((coords, window)) = chunks.next()
            {
                resolving += 1;
                underway.push(Either::Right(resolved(coords, window)));
            }
            let step = match underway.next().now_or_never() {
                Some(Some(step)) if batch.len() < most_pasted => Some(step),
                at_hand => {
                    if !batch.is_empty() {
                        let (batch, fill) = (std::mem::take(&mut batch), Arc::clone(&fill));
                        let paste = move |mut out| paste_all(&batch, &fill, &mut out).map(|()| out);
                        let pasted = if length <= INLINE_BYTES {
                            paste(out)
                        } else {
                            self.cpu.run(move || paste(out)).await?
                        };
                        out = pasted.map_err(|error| plan.unassembled(error))?;
                    }
                    match at_hand {
                        Some(step) => step,
                        None => underway.next().await,
                    }
                }
            };
            match step.transpose()? {
                Some(Step::Resolved { coords, value, tasks: more }) => {
                    resolving -= 1;
                    note(coords, value);
                    tasks.extend(more);
                }
                Some(Step::Loaded(loaded)) => {
                    loading -= 1;
                    batch.push(loaded);
                }
                // Nothing is left to begin, or it would have been begun.
                None => return Ok(out.freeze()),
            }
        }
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

    async fn load(&self, task: Task, trace: &Arc<Trace>) -> Result<Step, ArrayError> {
        let (shape, pieces) = match task {
            Task::Fill { shape, windows } => {
                (shape, windows.into_iter().map(|window| (None, window)).collect())
            }
            Task::Show { elements, shape, window } => (shape, vec![(Some(elements), window)]),
            Task::Load { value, chain, shape, parts } => {
                let (ranges, windows): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                let elements = self.source.elements(&value, &chain, &ranges, trace).await;
                let pieces = elements
                    .into_iter()
                    .zip(windows)
                    .map(|(elements, window)| Ok((Some(elements?), window)))
                    .collect::<Result<_, ArrayError>>()?;
                (shape, pieces)
            }
        };
        Ok(Step::Loaded(Loaded { shape, pieces }))
    }
}

/// Puts loaded chunks in their places.
fn paste_all(batch: &[Loaded], fill: &[u8], out: &mut ElementsMut) -> Result<(), AssembleError> {
    // A text of zeros is not the empty one.
    let zero_fill = (fill.is_empty() || !out.is_variable()) && fill.iter().all(|&byte| byte == 0);
    for loaded in batch {
        for (elements, window) in &loaded.pieces {
            match elements {
                Some(elements) => out.paste(elements, &loaded.shape, window)?,
                // The answer begins as zeros, and each place of it is written once.
                None if zero_fill => {}
                None => out.fill(fill, window)?,
            }
        }
    }
    Ok(())
}
