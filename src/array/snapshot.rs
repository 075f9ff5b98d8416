//! [`Snapshot`]: the versions of the stored chunks that a plan touches, known before any of their bytes or together with all
//! of them.

use std::sync::Arc;
use std::time::Instant;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::bound_array::Array;
use super::chunk_source::ChunkSource;
use super::error::ArrayError;
use super::plan::Plan;
use super::read_context::ReadContext;
use super::stored::{ChunkLookup, StoredValue};
use crate::chunk::{ChunkCoords, CopyRegion, Elements, Subset};
use crate::key::StoreKey;
use crate::store::Version;

/// Concurrent lookups of versions. The fetch permits decide how many of these reach the store at a time.
const CONCURRENCY: usize = 64;

/// Chunks that are revalidated before other tasks run: that takes a tenth of a millisecond.
pub(super) const REVALIDATE_BATCH: usize = 64;
/// Bytes that a chunk takes in a snapshot with the description of its stored value, about.
const CHUNK_BYTES: u64 = 400;

/// Stored chunks with their coordinates; `None` where there is no such chunk.
pub(super) type Chunks = Vec<(ChunkCoords, Option<Arc<StoredValue>>)>;

/// A plan, and for each stored chunk that it touches the version to read, or that it does not exist.
///
/// Each chunk is read at one version. Several chunks need not be of one moment, as with any Zarr client.
#[derive(Clone, Debug)]
pub struct Snapshot {
    plan: Plan,
    /// In C order.
    chunks: Arc<Chunks>,
    elements: Option<Elements>,
}

/// The versions of all stored chunks that a response was computed from, to check later whether they are still current.
/// Clones share them.
#[derive(Clone, Debug)]
pub struct ChunkVersions(Arc<Chunks>);

impl ChunkVersions {
    /// Bytes of memory, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.0.len() as u64).saturating_mul(CHUNK_BYTES)
    }

    /// The number of chunks.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The keys of the chunks.
    pub(super) fn keys(&self) -> impl Iterator<Item = &StoreKey> {
        self.0.iter().filter_map(|(_, value)| value.as_ref()).map(|value| &value.key)
    }

    /// When the first of the checks began that found every chunk at its version, all of them fresh enough for a request that
    /// began at `began`. `None` if a chunk has changed, or if that is not known without I/O.
    pub async fn validated_since(&self, began: Instant) -> Option<Instant> {
        let mut first = None;
        for chunks in self.0.chunks(REVALIDATE_BATCH) {
            if first.is_some() {
                tokio::task::yield_now().await;
            }
            for (_, value) in chunks {
                let seen = value.as_ref()?.validated_since(began)?;
                first = Some(first.map_or(seen, |first: Instant| first.min(seen)));
            }
        }
        first
    }
}

/// The versions of the stored chunks that a box of elements touches, in C order; `None` where there is no such chunk. Reads
/// none of the chunks, and holds few versions at a time.
pub(super) fn versions(
    array: &Arc<Array>,
    subset: &Subset,
    source: &Arc<dyn ChunkSource>,
    context: &Arc<ReadContext>,
) -> BoxStream<'static, Result<Option<Version>, ArrayError>> {
    let coords = CopyRegion::packed(subset.axes(), 1).split_by_chunks(array.grid().axes());
    let (array, source, context) = (Arc::clone(array), Arc::clone(source), Arc::clone(context));
    stream::iter(coords.map(|(coords, _)| coords))
        .map(move |coords| {
            let (array, source, context) = (Arc::clone(&array), Arc::clone(&source), Arc::clone(&context));
            async move {
                let value = source.lookup_version(&array.stored_key(&coords)?, &context).await?;
                Ok(value.map(|value| value.info.version.clone()))
            }
        })
        .buffered(CONCURRENCY)
        .boxed()
}

impl Snapshot {
    /// The versions of the chunks that a plan touches. Reads none of the chunks.
    ///
    /// # Errors
    /// Failures of the store.
    pub(super) async fn lookup(
        plan: &Plan,
        source: &dyn ChunkSource,
        context: &ReadContext,
    ) -> Result<Self, ArrayError> {
        let array = Arc::clone(plan.array());
        let coords: Vec<ChunkCoords> = match plan.gather() {
            Some(gather) => gather.stored_chunks(),
            None => CopyRegion::packed(plan.subset().axes(), 1)
                .split_by_chunks(array.grid().axes())
                .map(|(coords, _)| coords)
                .collect(),
        };
        let chunks = stream::iter(coords)
            .map(|coords| {
                let array = Arc::clone(&array);
                async move {
                    let value = source.lookup_version(&array.stored_key(&coords)?, context).await?;
                    Ok::<_, ArrayError>((coords, value))
                }
            })
            .buffer_unordered(CONCURRENCY)
            .try_collect()
            .await?;
        Ok(Self::new(plan.clone(), chunks, None))
    }

    /// The snapshot of a plan that was read: its chunks as they were found, and all elements.
    pub(super) fn with_elements(plan: Plan, chunks: Chunks, elements: Elements) -> Self {
        Self::new(plan, chunks, Some(elements))
    }

    fn new(plan: Plan, mut chunks: Chunks, elements: Option<Elements>) -> Self {
        chunks.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Self { plan, chunks: Arc::new(chunks), elements }
    }

    /// The versions of the chunks, if all of them exist: only then can they be revalidated later.
    #[must_use]
    pub fn chunk_versions(&self) -> Option<ChunkVersions> {
        let is_whole = self.chunks.iter().all(|(_, value)| value.is_some());
        is_whole.then(|| ChunkVersions(Arc::clone(&self.chunks)))
    }

    /// Takes all elements, if they were read together with the versions. Their only owner can change them in place.
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

    /// When the newest chunk was written, if the store knows that of all chunks.
    #[must_use]
    pub fn last_modified(&self) -> Option<std::time::SystemTime> {
        self.chunks
            .iter()
            .filter_map(|(_, value)| value.as_ref())
            .map(|value| value.info.modified)
            .max()
            .flatten()
    }

    /// Whether no chunk is stored that a part of the plan touches, so that all its elements are the fill value.
    pub(super) fn is_absent(&self, part: &Subset) -> bool {
        let axes = self.plan.array().grid().axes();
        CopyRegion::packed(part.axes(), 1).split_by_chunks(axes).all(|(coords, _)| {
            let place = self.chunks.binary_search_by(|(chunk, _)| chunk.cmp(&coords)).ok();
            place.and_then(|place| self.chunks.get(place)).is_some_and(|(_, value)| value.is_none())
        })
    }

    /// The version of the stored chunk at these coordinates, of which nothing was read.
    pub(super) fn lookup_of(&self, coords: &[u64]) -> ChunkLookup {
        let place = self.chunks.binary_search_by(|(chunk, _)| chunk.as_slice().cmp(coords)).ok();
        ChunkLookup::version_only(place.and_then(|place| self.chunks.get(place)?.1.clone()))
    }
}
