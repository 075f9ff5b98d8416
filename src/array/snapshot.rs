//! [`Snapshot`]: the versions of the stored chunks that a plan touches, known before any of their bytes or together with them.

use std::sync::Arc;
use std::time::Instant;

use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::Mutex;

use super::{ArrayError, Plan, StoredValue, Trace};
use crate::chunk::{ChunkCoords, Elements, Window};
use crate::store::Version;

/// Versions wanted at a time; how many are asked for is a matter of the request's turns.
const CONCURRENCY: usize = 64;

/// Chunks that are glanced at before others have their turn: that takes a tenth of a millisecond.
pub(super) const GLANCES_TOGETHER: usize = 64;
/// What a chunk takes in a snapshot, with the description of the stored value: roughly, in bytes.
const CHUNK_BYTES: u64 = 400;

/// Stored chunks with their coordinates; `None` where there is no such chunk.
pub(super) type Chunks = Vec<(ChunkCoords, Option<Arc<StoredValue>>)>;

/// A plan, and for each stored chunk it touches the version it is read at, or that it does not exist.
///
/// Chunk by chunk this is one version; over several chunks it is not one moment, as with any Zarr client.
#[derive(Clone, Debug)]
pub struct Snapshot {
    plan: Plan,
    /// In C order.
    chunks: Arc<Chunks>,
    elements: Option<Elements>,
}

/// What is kept of a plan that was read: neither the plan nor its array. Clones share it.
#[derive(Clone, Debug)]
pub struct Kept(Arc<KeptRead>);

#[derive(Debug)]
struct KeptRead {
    chunks: Arc<Chunks>,
    elements: Elements,
    decoded_chunks: u64,
    /// Every chunk was seen as it was read since then. Held while they are looked at: that is for all who had come before.
    seen: Mutex<Option<Instant>>,
}

impl Kept {
    /// Bytes of memory, roughly.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let KeptRead { chunks, elements, .. } = &*self.0;
        (chunks.len() as u64).saturating_mul(CHUNK_BYTES).saturating_add(elements.bytes() as u64)
    }

    /// Whether every chunk is still as it was read, no longer ago than the request began, and that is plain without
    /// waiting for the store.
    async fn is_current(&self, trace: &Trace) -> bool {
        let mut all_seen = self.0.seen.lock().await;
        if *all_seen >= Some(trace.began()) {
            return true;
        }
        let mut first = None;
        for chunks in self.0.chunks.chunks(GLANCES_TOGETHER) {
            for (_, value) in chunks {
                let Some(seen) = value.as_ref().and_then(|value| value.seen_for(trace)) else { return false };
                first = Some(first.map_or(seen, |first: Instant| first.min(seen)));
            }
            tokio::task::yield_now().await;
        }
        *all_seen = first;
        true
    }
}

impl Snapshot {
    /// Asks the store for the versions of the chunks that a plan touches, and reads none of them.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn take(plan: &Plan, trace: &Trace) -> Result<Self, ArrayError> {
        let array = Arc::clone(plan.array());
        let coords: Vec<ChunkCoords> = Window::packed(plan.subset().axes(), 1)
            .cut(array.grid().axes())
            .map(|(coords, _)| coords)
            .collect();
        let chunks = stream::iter(coords)
            .map(|coords| {
                let array = Arc::clone(&array);
                async move {
                    let value = array.stored_key(&coords)?.look(trace).await?;
                    Ok::<_, ArrayError>((coords, value))
                }
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await?;
        Ok(Self::new(plan.clone(), chunks, None))
    }

    /// A plan that was read: its chunks as they were found, and all its elements.
    pub(super) fn of_read(plan: Plan, chunks: Chunks, elements: Elements) -> Self {
        Self::new(plan, chunks, Some(elements))
    }

    fn new(plan: Plan, mut chunks: Chunks, elements: Option<Elements>) -> Self {
        chunks.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Self { plan, chunks: Arc::new(chunks), elements }
    }

    /// What may be kept of a plan that was read, with how many decoded chunks that took: all of it, if its elements are of
    /// a fixed size and its chunks are there, for then it can be told whether it is still what is stored.
    pub(super) fn keep(&self, decoded_chunks: u64) -> Option<Kept> {
        let elements = self.elements.clone()?;
        let is_variable = self.plan.array().metadata().data_type.is_variable();
        let is_whole = !is_variable && self.chunks.iter().all(|(_, value)| value.is_some());
        let (chunks, seen) = (Arc::clone(&self.chunks), Mutex::new(None));
        is_whole.then(|| Kept(Arc::new(KeptRead { chunks, elements, decoded_chunks, seen })))
    }

    /// A plan and what was kept of it, if every chunk is still as it was read and that is plain without waiting.
    pub(super) async fn of_kept(plan: &Plan, kept: &Kept, trace: &Trace) -> Option<Self> {
        if !kept.is_current(trace).await {
            return None;
        }
        let KeptRead { chunks, elements, decoded_chunks, .. } = &*kept.0;
        trace.add_hits(*decoded_chunks);
        Some(Self { plan: plan.clone(), chunks: Arc::clone(chunks), elements: Some(elements.clone()) })
    }

    /// All the elements, if they were read together with the versions. They are given away: whoever has them alone can
    /// change them in place.
    pub(super) fn take_elements(&mut self) -> Option<Elements> {
        self.elements.take()
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The version of each chunk, in C order of their coordinates; `None` where there is no such chunk.
    pub fn versions(&self) -> impl Iterator<Item = Option<&Version>> {
        self.chunks.iter().map(|(_, value)| value.as_ref().map(|value| &value.info.version))
    }

    /// When the newest of the chunks was written, if the store says so of all of them.
    #[must_use]
    pub fn modified(&self) -> Option<std::time::SystemTime> {
        self.chunks
            .iter()
            .filter_map(|(_, value)| value.as_ref())
            .map(|value| value.info.modified)
            .max()
            .flatten()
    }

    /// The stored chunk at these coordinates; `None` if there is none.
    pub(super) fn value(&self, coords: &[u64]) -> Option<&Arc<StoredValue>> {
        let place = self.chunks.binary_search_by(|(known, _)| known.as_slice().cmp(coords)).ok()?;
        self.chunks.get(place)?.1.as_ref()
    }
}
