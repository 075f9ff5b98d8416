//! [`Resolution`]: from a window on a stored chunk to the parts that must be loaded or filled, through shard indexes of any
//! depth.

use std::ops::Range;
use std::sync::Arc;

use super::chunk_source::ChunkSource;
use super::error::ArrayError;
use super::read_context::ReadContext;
use super::stored::{ChunkData, ChunkLookup, StoredValue};
use crate::chunk::{ChunkAxis, CopyRegion, Elements};
use crate::codec::{CodecChain, ShardIndex};

/// Parts of one value are loaded together up to this many decoded bytes.
const GROUP_BYTES: u64 = 8 << 20;

/// A piece of work that gives elements of the response.
#[derive(Debug)]
pub(super) enum ChunkWork {
    /// The chunk does not exist: fill its windows.
    Fill { shape: Arc<[u64]>, windows: Vec<CopyRegion> },
    /// The elements of the chunk are known: copy the window.
    Copy { elements: Elements, shape: Arc<[u64]>, window: CopyRegion },
    /// These parts of a value must be loaded.
    Load(ChunkLoad),
}

/// Byte ranges of a value to decode, each with the window to copy.
#[derive(Debug)]
pub(super) struct ChunkLoad {
    pub(super) value: Arc<StoredValue>,
    pub(super) chain: Arc<CodecChain>,
    pub(super) shape: Arc<[u64]>,
    pub(super) parts: Vec<(Range<u64>, CopyRegion)>,
}

/// The work that a chunk takes, as far as it is known. Shards whose indexes are not in memory stay unresolved, so that a
/// resolution can be advanced from memory first and finished with I/O later.
pub(super) struct Resolution {
    work: Vec<ChunkWork>,
    unresolved: Vec<UnresolvedChunk>,
}

/// A chunk, shard or inner shard that is not resolved yet.
struct UnresolvedChunk {
    /// `None` if it does not exist.
    stored: Option<(Arc<StoredValue>, Range<u64>)>,
    /// The index, if it is known.
    index: Option<Arc<ShardIndex>>,
    chain: Arc<CodecChain>,
    shape: Arc<[u64]>,
    window: CopyRegion,
}

impl Resolution {
    /// Begins with what is stored of a chunk of this chain and shape, and the window on it.
    pub(super) fn new(
        lookup: ChunkLookup,
        chain: Arc<CodecChain>,
        shape: Arc<[u64]>,
        window: CopyRegion,
    ) -> Self {
        let index = match lookup.data {
            ChunkData::NotRead => None,
            ChunkData::Index(index) => Some(index),
            ChunkData::Elements(elements) => {
                let work = vec![ChunkWork::Copy { elements, shape, window }];
                return Self { work, unresolved: Vec::new() };
            }
        };
        let stored = lookup.value.map(|value| {
            let whole = 0..value.info.size;
            (value, whole)
        });
        Self { work: Vec::new(), unresolved: vec![UnresolvedChunk { stored, index, chain, shape, window }] }
    }

    /// Resolves what it can by indexes in memory, and returns whether that is everything
    /// ([without suspending](super#answers-from-memory-without-suspending)).
    pub(super) fn advance(&mut self, source: &dyn ChunkSource) -> bool {
        while let Some(mut chunk) = self.unresolved.pop() {
            if let Some((value, range)) = chunk.missing_index() {
                chunk.index = source.try_shard_index(value, &chunk.chain, range);
                if chunk.index.is_none() {
                    self.unresolved.push(chunk);
                    return false;
                }
            }
            chunk.resolve(&mut self.work, &mut self.unresolved);
        }
        true
    }

    /// Resolves the rest, with indexes that are loaded.
    ///
    /// # Errors
    /// Those of [`ChunkSource::shard_index`].
    pub(super) async fn finish(
        mut self,
        source: &dyn ChunkSource,
        context: &Arc<ReadContext>,
    ) -> Result<Vec<ChunkWork>, ArrayError> {
        while !self.advance(source) {
            if let Some(chunk) = self.unresolved.last_mut()
                && let Some((value, range)) = chunk.missing_index()
            {
                let index = source.shard_index(value, &chunk.chain, range.clone(), context).await?;
                chunk.index = Some(index);
            }
        }
        Ok(self.work)
    }

    /// The work, once all of it is known.
    pub(super) fn into_work(self) -> Vec<ChunkWork> {
        self.work
    }
}

impl UnresolvedChunk {
    /// The bytes of the shard whose index has to be known and is not.
    fn missing_index(&self) -> Option<(&Arc<StoredValue>, &Range<u64>)> {
        let (value, range) = self.stored.as_ref()?;
        (self.index.is_none() && self.chain.sharding().is_some()).then_some((value, range))
    }

    /// Adds the work that it takes, and its inner shards to those that are unresolved: no deeper than the nesting that is
    /// allowed where a chain is bound. The index of a shard must be known.
    fn resolve(self, work: &mut Vec<ChunkWork>, unresolved: &mut Vec<Self>) {
        let Self { stored, index, chain, shape, window } = self;
        let Some((value, range)) = stored else {
            work.push(ChunkWork::Fill { shape, windows: vec![window] });
            return;
        };
        let (Some(sharding), Some(index)) = (chain.sharding(), index) else {
            work.push(ChunkWork::Load(ChunkLoad { value, chain, shape, parts: vec![(range, window)] }));
            return;
        };
        let inner_shape: Arc<[u64]> = sharding.inner_shape().into();
        let grid: Vec<ChunkAxis> = inner_shape
            .iter()
            .zip(sharding.chunks_per_shard())
            .map(|(&edge, &chunks)| ChunkAxis::new(edge.saturating_mul(chunks), edge))
            .collect();
        let inner_chain = sharding.inner_chain();
        let (mut absent, mut parts) = (Vec::new(), Vec::new());
        for (coords, window) in window.transpose(sharding.order()).split_by_chunks(&grid) {
            let number =
                coords.iter().zip(sharding.chunks_per_shard()).fold(0, |number: u64, (&coord, &chunks)| {
                    number.saturating_mul(chunks).saturating_add(coord)
                });
            let entry = usize::try_from(number).ok().and_then(|number| index.get(number));
            let Some(entry) = entry else {
                absent.push(window);
                continue;
            };
            // Checked to lie inside the shard when the index was decoded.
            let part = range.start + entry.start..range.start + entry.end;
            if inner_chain.sharding().is_some() {
                let stored = Some((Arc::clone(&value), part));
                let (chain, shape) = (Arc::clone(inner_chain), Arc::clone(&inner_shape));
                unresolved.push(Self { stored, index: None, chain, shape, window });
            } else {
                parts.push((part, window));
            }
        }
        if !absent.is_empty() {
            work.push(ChunkWork::Fill { shape: Arc::clone(&inner_shape), windows: absent });
        }
        let load = ChunkLoad { value, chain: Arc::clone(inner_chain), shape: inner_shape, parts };
        load.push_groups(work);
    }
}

impl ChunkLoad {
    /// Adds the load as groups of parts that decode to about [`GROUP_BYTES`] each, in the order of their bytes, so that
    /// neighbours are fetched together.
    fn push_groups(mut self, work: &mut Vec<ChunkWork>) {
        let parts =
            usize::try_from(GROUP_BYTES / self.chain.decoded_bytes().max(1)).unwrap_or(usize::MAX).max(1);
        self.parts.sort_by_key(|(range, _)| range.start);
        while !self.parts.is_empty() {
            let rest = self.parts.split_off(parts.min(self.parts.len()));
            let group = std::mem::replace(&mut self.parts, rest);
            work.push(ChunkWork::Load(Self {
                value: Arc::clone(&self.value),
                chain: Arc::clone(&self.chain),
                shape: Arc::clone(&self.shape),
                parts: group,
            }));
        }
    }
}
