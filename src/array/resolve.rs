//! From a window on a stored chunk to what must be loaded or filled: through shard indexes, at any depth.

use std::ops::Range;
use std::sync::Arc;

use super::{ArrayError, ChunkData, ChunkLookup, ChunkSource, ReadContext, StoredValue};
use crate::chunk::{ChunkAxis, CopyRegion, Elements};
use crate::codec::{CodecChain, ShardIndex};

/// Parts of one value are loaded together up to this many decoded bytes.
const GROUP_BYTES: u64 = 8 << 20;

/// A piece of work that ends in elements of the answer.
#[derive(Debug)]
pub(super) enum ChunkWork {
    /// There is no such chunk: fill its windows.
    Fill { shape: Arc<[u64]>, windows: Vec<CopyRegion> },
    /// These are the elements of the chunk: show the window.
    Show { elements: Elements, shape: Arc<[u64]>, window: CopyRegion },
    /// These parts of a value are to be loaded.
    Load(Load),
}

/// Byte ranges of a value: each is to be decoded, and its window shown.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) value: Arc<StoredValue>,
    pub(super) chain: Arc<CodecChain>,
    pub(super) shape: Arc<[u64]>,
    pub(super) parts: Vec<(Range<u64>, CopyRegion)>,
}

/// The chunk, shard or inner shard that is being resolved.
struct Place {
    /// `None` if it does not exist.
    stored: Option<(Arc<StoredValue>, Range<u64>)>,
    /// The index, if it is at hand.
    index: Option<Arc<ShardIndex>>,
    chain: Arc<CodecChain>,
    shape: Arc<[u64]>,
    window: CopyRegion,
}

/// What must be done to show `window` of a chunk of this shape and chain, found to be stored so.
pub(super) async fn resolve(
    source: &dyn ChunkSource,
    found: ChunkLookup,
    chain: Arc<CodecChain>,
    shape: Arc<[u64]>,
    window: CopyRegion,
    trace: &Arc<ReadContext>,
) -> Result<Vec<ChunkWork>, ArrayError> {
    let (mut tasks, mut places) = begin(found, chain, shape, window);
    while let Some(mut place) = places.pop() {
        if let Some((value, range)) = place.wants_index() {
            place.index = Some(match source.try_shard_index(value, &place.chain, range) {
                Some(index) => index,
                None => source.shard_index(value, &place.chain, range.clone(), trace).await?,
            });
        }
        place.resolve(&mut tasks, &mut places);
    }
    Ok(tasks)
}

/// As [`resolve`], if the indexes that it takes are in memory.
pub(super) fn try_resolve(
    source: &dyn ChunkSource,
    found: ChunkLookup,
    chain: Arc<CodecChain>,
    shape: Arc<[u64]>,
    window: CopyRegion,
) -> Option<Vec<ChunkWork>> {
    let (mut tasks, mut places) = begin(found, chain, shape, window);
    while let Some(mut place) = places.pop() {
        if let Some((value, range)) = place.wants_index() {
            place.index = Some(source.try_shard_index(value, &place.chain, range)?);
        }
        place.resolve(&mut tasks, &mut places);
    }
    Some(tasks)
}

/// What is plain from the start, and the place that the rest begins at.
fn begin(
    found: ChunkLookup,
    chain: Arc<CodecChain>,
    shape: Arc<[u64]>,
    window: CopyRegion,
) -> (Vec<ChunkWork>, Vec<Place>) {
    let index = match found.part {
        ChunkData::Nothing => None,
        ChunkData::Index(index) => Some(index),
        ChunkData::Elements(elements) => {
            return (vec![ChunkWork::Show { elements, shape, window }], Vec::new());
        }
    };
    let stored = found.value.map(|value| {
        let whole = 0..value.info.size;
        (value, whole)
    });
    (Vec::new(), vec![Place { stored, index, chain, shape, window }])
}

impl Place {
    /// The shard whose index has to be known, if it is not at hand.
    fn wants_index(&self) -> Option<(&Arc<StoredValue>, &Range<u64>)> {
        let (value, range) = self.stored.as_ref()?;
        (self.index.is_none() && self.chain.sharding().is_some()).then_some((value, range))
    }

    /// What must be done, and inner shards to go on with: no deeper than the nesting is allowed to be where a chain is
    /// bound. A shard's index is at hand by now.
    fn resolve(self, tasks: &mut Vec<ChunkWork>, places: &mut Vec<Self>) {
        let Self { stored, index, chain, shape, window } = self;
        let Some((value, range)) = stored else {
            tasks.push(ChunkWork::Fill { shape, windows: vec![window] });
            return;
        };
        let (Some(sharding), Some(index)) = (chain.sharding(), index) else {
            tasks.push(ChunkWork::Load(Load { value, chain, shape, parts: vec![(range, window)] }));
            return;
        };
        let inner_shape: Arc<[u64]> = sharding.inner_shape().into();
        let grid: Vec<ChunkAxis> = inner_shape
            .iter()
            .zip(sharding.chunks_per_shard())
            .map(|(&edge, &chunks)| ChunkAxis::new(edge.saturating_mul(chunks), edge))
            .collect();
        let inner_chain = sharding.inner_chain();
        let together =
            usize::try_from(GROUP_BYTES / inner_chain.decoded_bytes().max(1)).unwrap_or(usize::MAX).max(1);
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
                places.push(Self { stored, index: None, chain, shape, window });
            } else {
                parts.push((part, window));
            }
        }
        if !absent.is_empty() {
            tasks.push(ChunkWork::Fill { shape: Arc::clone(&inner_shape), windows: absent });
        }
        // In the order of the bytes, so that neighbours are fetched together.
        parts.sort_by_key(|(part, _)| part.start);
        while !parts.is_empty() {
            let rest = parts.split_off(together.min(parts.len()));
            tasks.push(ChunkWork::Load(Load {
                value: Arc::clone(&value),
                chain: Arc::clone(inner_chain),
                shape: Arc::clone(&inner_shape),
                parts: std::mem::replace(&mut parts, rest),
            }));
        }
    }
}
