//! [`ChunkReader`]: resolves and loads single chunks for an assembly.
//!
//! [`ChunkReader::try_resolve`] and [`ChunkReader::try_load`] use memory alone; what they cannot finish, they return as
//! [`PendingWork`], which [`ChunkReader::run`] finishes ([the rule](super#answers-from-memory-without-suspending)).

use std::sync::Arc;

use futures::future::Either;

use super::bound_array::Array;
use super::chunk_source::{ChunkLocation, ChunkSource};
use super::error::ArrayError;
use super::from_memory::FromMemory;
use super::partial_chunk::PartialChunk;
use super::read_context::ReadContext;
use super::resolve::{ChunkLoad, ChunkWork, Resolution};
use super::snapshot::Snapshot;
use super::stored::{ChunkData, ChunkLookup, StoredKey, StoredValue};
use crate::chunk::{ChunkCoords, CopyRegion, Elements};
use crate::codec::CodecChain;
use crate::cpu::ComputePool;
use crate::store::SharedStore;

/// The versions of chunks that are read.
#[derive(Clone, Copy)]
pub(super) enum Versions<'a> {
    /// Those that are stored now.
    Newest,
    /// Those of a snapshot.
    Snapshot(&'a Snapshot),
}

/// Reads the chunks of one array for one request.
pub(super) struct ChunkReader<'a> {
    pub(super) source: &'a Arc<dyn ChunkSource>,
    /// The source of chunks that are needed once, where they are not to be cached.
    pub(super) uncached: Option<&'a Arc<dyn ChunkSource>>,
    pub(super) cpu: &'a ComputePool,
    pub(super) array: &'a Arc<Array>,
    pub(super) versions: Versions<'a>,
    pub(super) context: &'a Arc<ReadContext>,
}

/// The decoded elements of a chunk, or of several inner chunks of one shape, and the windows that they are copied to.
pub(super) struct LoadedChunk {
    pub(super) shape: Arc<[u64]>,
    /// Elements in C order; `None` for a missing chunk, whose window is filled.
    pub(super) pieces: Vec<(Option<Elements>, CopyRegion)>,
}

/// A stored chunk of which the version and the work that it takes are known.
pub(super) struct ResolvedChunk {
    pub(super) coords: ChunkCoords,
    /// `None` if there is no such chunk.
    pub(super) value: Option<Arc<StoredValue>>,
    pub(super) work: Vec<ChunkWork>,
}

/// Work that memory alone could not finish.
pub(super) enum PendingWork {
    Resolve(PendingChunk),
    Load(ChunkLoad),
}

/// What became of [`PendingWork`].
pub(super) enum Progress {
    Resolved(ResolvedChunk),
    Loaded(LoadedChunk),
}

/// A chunk that is not resolved yet.
pub(super) enum PendingChunk {
    /// Nothing is known of it.
    Unknown { coords: ChunkCoords, shape: Arc<[u64]>, window: CopyRegion },
    /// Its version is known; indexes are missing.
    Found { coords: ChunkCoords, value: Option<Arc<StoredValue>>, resolution: Resolution },
}

/// What is stored of a chunk or of a part of it, its shape, and the window on it.
type FoundChunk = (ChunkLookup, Arc<[u64]>, CopyRegion);

/// The shape of a chunk, and the window on it.
type ShapedWindow = (Arc<[u64]>, CopyRegion);

impl<'a> ChunkReader<'a> {
    /// Resolves a chunk, as far as memory allows ([without suspending](super#answers-from-memory-without-suspending)).
    ///
    /// # Errors
    /// [`ArrayError::ChunkKey`].
    pub(super) fn try_resolve(
        &self,
        coords: ChunkCoords,
        window: CopyRegion,
    ) -> Result<FromMemory<ResolvedChunk, PendingChunk>, ArrayError> {
        let shape = self.array.chunk_shape_at(&coords);
        let Some(chain) = self.array.bound_chain(&shape) else {
            return Ok(FromMemory::Pending(PendingChunk::Unknown { coords, shape, window }));
        };
        let found = match self.versions {
            Versions::Newest => self.try_find(&coords, &chain, shape, window)?,
            Versions::Snapshot(snapshot) => FromMemory::Ready((snapshot.lookup_of(&coords), shape, window)),
        };
        let (lookup, shape, window) = match found {
            FromMemory::Ready(found) => found,
            FromMemory::Pending((shape, window)) => {
                return Ok(FromMemory::Pending(PendingChunk::Unknown { coords, shape, window }));
            }
        };
        let value = lookup.value.clone();
        let mut resolution = Resolution::new(lookup, chain, shape, window);
        Ok(if resolution.advance(self.source.as_ref()) {
            FromMemory::Ready(ResolvedChunk { coords, value, work: resolution.into_work() })
        } else {
            FromMemory::Pending(PendingChunk::Found { coords, value, resolution })
        })
    }

    /// Loads a piece of work, as far as memory allows ([without suspending](super#answers-from-memory-without-suspending)).
    pub(super) fn try_load(&self, work: ChunkWork) -> FromMemory<LoadedChunk, ChunkLoad> {
        match work {
            ChunkWork::Fill { shape, windows } => {
                let pieces = windows.into_iter().map(|window| (None, window)).collect();
                FromMemory::Ready(LoadedChunk { shape, pieces })
            }
            ChunkWork::Copy { elements, shape, window } => {
                FromMemory::Ready(LoadedChunk { shape, pieces: vec![(Some(elements), window)] })
            }
            ChunkWork::Load(load) => self.try_load_parts(load),
        }
    }

    fn try_load_parts(&self, load: ChunkLoad) -> FromMemory<LoadedChunk, ChunkLoad> {
        let cached = |chain: &CodecChain| {
            let parts = load.parts.iter();
            parts
                .map(|(range, _)| self.source.try_elements(&load.value, chain, range))
                .collect::<Option<Vec<_>>>()
        };
        let (elements, rows) = if let Some(elements) = cached(&load.chain) {
            (elements, None)
        } else if let Some(part) = self.part_of_all(&load)
            && let Some(elements) = cached(&part.chain)
        {
            (elements, Some(part.rows))
        } else {
            return FromMemory::Pending(load);
        };
        self.context.add_hits(elements.len() as u64);
        let within = |window: CopyRegion| match &rows {
            Some(rows) => window.relative_to(rows),
            None => window,
        };
        let windows = load.parts.into_iter().map(|(_, window)| within(window));
        let pieces = elements.into_iter().map(Some).zip(windows).collect();
        let shape = rows.as_ref().map_or(load.shape, |rows| rows.shape.as_slice().into());
        FromMemory::Ready(LoadedChunk { shape, pieces })
    }

    /// Finishes work that is pending.
    pub(super) fn run(
        &'a self,
        pending: PendingWork,
    ) -> impl Future<Output = Result<Progress, ArrayError>> + Send + use<'a> {
        match pending {
            PendingWork::Resolve(chunk) => Either::Left(self.resolve(chunk)),
            PendingWork::Load(load) => Either::Right(self.load(load)),
        }
    }

    async fn resolve(&self, chunk: PendingChunk) -> Result<Progress, ArrayError> {
        let (coords, value, resolution) = match chunk {
            PendingChunk::Found { coords, value, resolution } => (coords, value, resolution),
            PendingChunk::Unknown { coords, shape, window } => {
                let chain = self.chain(&coords, &shape).await?;
                let (lookup, shape, window) = match self.versions {
                    Versions::Newest => self.find(&coords, &chain, shape, window).await?,
                    Versions::Snapshot(snapshot) => (snapshot.lookup_of(&coords), shape, window),
                };
                let value = lookup.value.clone();
                (coords, value, Resolution::new(lookup, chain, shape, window))
            }
        };
        let work = resolution.finish(self.source.as_ref(), self.context).await?;
        Ok(Progress::Resolved(ResolvedChunk { coords, value, work }))
    }

    /// Finds what is stored of a chunk, if it is cached and fresh. Pending returns the shape and the window as they were.
    fn try_find(
        &self,
        coords: &[u64],
        chain: &CodecChain,
        shape: Arc<[u64]>,
        window: CopyRegion,
    ) -> Result<FromMemory<FoundChunk, ShapedWindow>, ArrayError> {
        let key = self.array.stored_key(coords)?;
        if let Some(lookup) = self.source.try_fetch_or_lookup(&key, chain, self.context) {
            return Ok(FromMemory::Ready((lookup, shape, window)));
        }
        if let Some(part) = self.part_of_value(&key, chain, &shape, &window)
            && let Some(lookup) = self.source.try_fetch_or_lookup(&key, &part.chain, self.context)
        {
            let window = window.relative_to(&part.rows);
            return Ok(FromMemory::Ready((lookup, part.rows.shape.into(), window)));
        }
        Ok(FromMemory::Pending((shape, window)))
    }

    /// Finds what is stored of a chunk now, or of the part of it that a window needs.
    async fn find(
        &self,
        coords: &[u64],
        chain: &Arc<CodecChain>,
        shape: Arc<[u64]>,
        window: CopyRegion,
    ) -> Result<FoundChunk, ArrayError> {
        let key = self.array.stored_key(coords)?;
        let part = self.part_of_value(&key, chain, &shape, &window);
        let fetched_chain = part.as_ref().map_or(chain, |part| &part.chain);
        let source = self.source_for(chain, &shape, std::slice::from_ref(&window));
        let lookup = source.fetch_or_lookup(&key, fetched_chain, self.context).await?;
        Ok(match (part, &lookup.data) {
            (Some(part), ChunkData::Elements(_)) => {
                let window = window.relative_to(&part.rows);
                (lookup, part.rows.shape.into(), window)
            }
            _ => (lookup, shape, window),
        })
    }

    /// The chain of a chunk. Binding one takes time in proportion to the array's document.
    async fn chain(&self, coords: &[u64], shape: &[u64]) -> Result<Arc<CodecChain>, ArrayError> {
        if let Some(chain) = self.array.bound_chain(shape) {
            return Ok(chain);
        }
        let (array, coords, shape) = (Arc::clone(self.array), coords.to_vec(), shape.to_vec());
        self.cpu.run(move || array.chain_for(&coords, &shape)).await?
    }

    async fn load(&self, load: ChunkLoad) -> Result<Progress, ArrayError> {
        let part = self.part_of_all(&load);
        let ChunkLoad { value, mut chain, mut shape, parts } = load;
        let (ranges, mut windows): (Vec<_>, Vec<CopyRegion>) = parts.into_iter().unzip();
        if let Some(part) = part {
            for window in &mut windows {
                *window = window.relative_to(&part.rows);
            }
            (chain, shape) = (part.chain, part.rows.shape.into());
        }
        let source = self.source_for(&chain, &shape, &windows);
        let elements = source.elements(&value, &chain, &ranges, self.context).await;
        let pieces = elements
            .into_iter()
            .zip(windows)
            .map(|(elements, window)| Ok((Some(elements?), window)))
            .collect::<Result<_, ArrayError>>()?;
        Ok(Progress::Loaded(LoadedChunk { shape, pieces }))
    }

    /// The part of a chunk that is the whole of a stored value.
    fn part_of_value(
        &self,
        key: &StoredKey,
        chain: &CodecChain,
        shape: &[u64],
        window: &CopyRegion,
    ) -> Option<PartialChunk> {
        let location = ChunkLocation { mount: &key.mount, key: &key.key, start: 0 };
        let windows = std::slice::from_ref(window);
        self.part(&key.store, chain, shape, windows, std::iter::once(location))
    }

    /// One part for all chunks of a load, so that neighbours are still fetched together.
    fn part_of_all(&self, load: &ChunkLoad) -> Option<PartialChunk> {
        let ChunkLoad { value, chain, shape, parts } = load;
        let locations = parts.iter().map(|(range, _)| ChunkLocation {
            mount: &value.mount,
            key: &value.key,
            start: range.start,
        });
        self.part(&value.store, chain, shape, parts.iter().map(|(_, window)| window), locations)
    }

    fn part<'w>(
        &self,
        store: &SharedStore,
        chain: &CodecChain,
        shape: &[u64],
        windows: impl IntoIterator<Item = &'w CopyRegion>,
        locations: impl ExactSizeIterator<Item = ChunkLocation<'w>>,
    ) -> Option<PartialChunk> {
        let element_bytes = self.array.metadata().data_type.element_bytes();
        let source = self.source.as_ref();
        PartialChunk::select(source, store, chain, shape, element_bytes, windows, locations)
    }

    /// The source of chunks of this shape, which these windows are on.
    fn source_for(&self, chain: &CodecChain, shape: &[u64], windows: &[CopyRegion]) -> &dyn ChunkSource {
        let uncached = self.uncached.filter(|_| {
            // Of a shard the index is found first, which all of its chunks need.
            chain.sharding().is_none() && windows.iter().all(|window| window.covers(shape))
        });
        uncached.unwrap_or(self.source).as_ref()
    }
}
