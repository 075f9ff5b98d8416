//! [`Reader`]: the elements of a snapshot, band by band.

use std::ops::Range;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::plan::Band;
use super::resolve::{Task, resolve};
use super::{Array, ArrayError, ChunkSource, Snapshot, Trace};
use crate::chunk::{AssembleError, Elements, ElementsMut, Window};
use crate::codec::CodecChain;
use crate::cpu::Cpu;

/// Stored chunks of one band whose shard indexes are looked up at a time.
const RESOLVE_CONCURRENCY: usize = 16;
/// Groups of chunks of one band that are loaded at a time.
const LOAD_CONCURRENCY: usize = 8;
/// Bands assembled ahead of the one that is being sent.
const BANDS_AHEAD: usize = 1;
/// Copying less than this is not worth a hop to another thread.
const INLINE_BYTES: usize = 32 << 10;

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

impl Reader {
    /// A reader that gets its chunks from `source`.
    #[must_use]
    pub fn new(source: Arc<dyn ChunkSource>, cpu: Cpu) -> Self {
        Self { source, cpu }
    }

    /// The elements whose items are these bytes of the answer: in C order and canonical form. Assembled in bounded memory,
    /// at the pace of whoever takes them.
    ///
    /// # Errors
    /// The stream ends with the first [`ArrayError`]; it never ends short.
    #[must_use]
    pub fn elements(
        &self,
        snapshot: &Snapshot,
        bytes: Range<u64>,
        trace: &Arc<Trace>,
    ) -> BoxStream<'static, Result<Elements, ArrayError>> {
        let (reader, trace) = (self.clone(), Arc::clone(trace));
        let bands = snapshot.plan().bands(bytes.clone());
        let snapshot = snapshot.clone();
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

    /// Assembles one band.
    async fn band(
        &self,
        snapshot: &Snapshot,
        band: &Band,
        trace: &Arc<Trace>,
    ) -> Result<Elements, ArrayError> {
        let array = snapshot.plan().array();
        let item_bytes = array.metadata().data_type.item_bytes();
        let length =
            usize::try_from(band.bytes.end - band.bytes.start).map_err(|_too_long| ArrayError::Geometry)?;
        let window = Window::packed(band.subset.axes(), item_bytes);
        let source = self.source.as_ref();
        let tasks = stream::iter(window.cut(array.grid().axes()))
            .map(|(coords, window)| async move {
                let shape = array.grid().shape_of(&coords);
                let chain = self.chain(array, &coords, &shape).await?;
                resolve(source, snapshot.value(&coords), chain, shape, window, trace).await
            })
            .buffered(RESOLVE_CONCURRENCY)
            .map_ok(|tasks| stream::iter(tasks).map(Ok))
            .try_flatten();
        let loaded = tasks
            .map(|task| async move {
                match task {
                    Ok(task) => self.load(task, trace).await,
                    Err(error) => Err(error),
                }
            })
            .buffer_unordered(LOAD_CONCURRENCY);
        let mut loaded = std::pin::pin!(loaded.ready_chunks(LOAD_CONCURRENCY));
        let mut out = if array.metadata().data_type.is_variable() {
            ElementsMut::variable(vec![0; length], snapshot.plan().heap_limit())
        } else {
            ElementsMut::fixed(vec![0; length], item_bytes)
        };
        while let Some(batch) = loaded.next().await {
            let batch: Vec<Loaded> = batch.into_iter().collect::<Result<_, _>>()?;
            let fill: Arc<[u8]> = array.metadata().fill_value.as_bytes().into();
            let paste = move |mut out: ElementsMut| paste_all(&batch, &fill, &mut out).map(|()| out);
            let pasted =
                if length <= INLINE_BYTES { paste(out) } else { self.cpu.run(move || paste(out)).await? };
            out = pasted.map_err(|error| snapshot.plan().unassembled(error))?;
        }
        Ok(out.freeze())
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

    async fn load(&self, task: Task, trace: &Arc<Trace>) -> Result<Loaded, ArrayError> {
        match task {
            Task::Fill { shape, windows } => {
                Ok(Loaded { shape, pieces: windows.into_iter().map(|window| (None, window)).collect() })
            }
            Task::Load { value, chain, shape, parts } => {
                let (ranges, windows): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                let elements = self.source.elements(&value, &chain, &ranges, trace).await;
                let pieces = elements
                    .into_iter()
                    .zip(windows)
                    .map(|(elements, window)| Ok((Some(elements?), window)))
                    .collect::<Result<_, ArrayError>>()?;
                Ok(Loaded { shape, pieces })
            }
        }
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
