//! From a window on a stored chunk to what must be loaded or filled: through shard indexes, at any depth.

use std::ops::Range;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::{ArrayError, ChunkSource, Found, FoundPart, StoredValue, Trace};
use crate::chunk::{ChunkAxis, Elements, Window};
use crate::codec::CodecChain;
use crate::codec::sharding_indexed::ShardIndex;

/// Parts of one value are loaded together up to this many decoded bytes.
const GROUP_BYTES: u64 = 8 << 20;

/// A piece of work that ends in elements of the answer.
#[derive(Debug)]
pub(super) enum Task {
    /// There is no such chunk: fill its windows.
    Fill { shape: Arc<[u64]>, windows: Vec<Window> },
    /// These are the elements of the chunk: show the window.
    Show { elements: Elements, shape: Arc<[u64]>, window: Window },
    /// Load these byte ranges of a value, decode each, and show its window.
    Load {
        value: Arc<StoredValue>,
        chain: Arc<CodecChain>,
        shape: Arc<[u64]>,
        parts: Vec<(Range<u64>, Window)>,
    },
}

/// The chunk, shard or inner shard that is being resolved.
struct Place {
    /// `None` if it does not exist.
    stored: Option<(Arc<StoredValue>, Range<u64>)>,
    /// The index, if it is at hand.
    index: Option<Arc<ShardIndex>>,
    chain: Arc<CodecChain>,
    shape: Arc<[u64]>,
}

/// What must be done to show `window` of a chunk of this shape and chain, found to be stored so.
pub(super) async fn resolve(
    source: &dyn ChunkSource,
    found: Found,
    chain: Arc<CodecChain>,
    shape: Vec<u64>,
    window: Window,
    trace: &Arc<Trace>,
) -> Result<Vec<Task>, ArrayError> {
    let stored = found.value.map(|value| (Arc::clone(&value), 0..value.info.size));
    let shape = shape.into();
    let index = match found.part {
        FoundPart::Nothing => None,
        FoundPart::Index(index) => Some(index),
        FoundPart::Elements(elements) => return Ok(vec![Task::Show { elements, shape, window }]),
    };
    let mut tasks = Vec::new();
    let place = Place { stored, index, chain, shape };
    resolve_place(source, place, vec![window], &mut tasks, trace).await?;
    Ok(tasks)
}

/// Recursive in the nesting of shards, whose depth is limited when a chain is bound.
fn resolve_place<'a>(
    source: &'a dyn ChunkSource,
    place: Place,
    windows: Vec<Window>,
    tasks: &'a mut Vec<Task>,
    trace: &'a Arc<Trace>,
) -> BoxFuture<'a, Result<(), ArrayError>> {
    Box::pin(async move {
        let Some((value, range)) = place.stored else {
            tasks.push(Task::Fill { shape: place.shape, windows });
            return Ok(());
        };
        let Some(sharding) = place.chain.sharding() else {
            let parts = windows.into_iter().map(|window| (range.clone(), window)).collect();
            tasks.push(Task::Load { value, chain: place.chain, shape: place.shape, parts });
            return Ok(());
        };
        let index = match place.index {
            Some(index) => index,
            None => source.shard_index(&value, &place.chain, range.clone(), trace).await?,
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
        for window in windows {
            for (coords, window) in window.permuted(sharding.order()).cut(&grid) {
                let number = coords
                    .iter()
                    .zip(sharding.chunks_per_shard())
                    .fold(0, |number: u64, (&coord, &chunks)| {
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
                    let inner = Place { stored, index: None, chain, shape };
                    resolve_place(source, inner, vec![window], tasks, trace).await?;
                } else {
                    parts.push((part, window));
                }
            }
        }
        if !absent.is_empty() {
            tasks.push(Task::Fill { shape: Arc::clone(&inner_shape), windows: absent });
        }
        // In the order of the bytes, so that neighbours are fetched together.
        parts.sort_by_key(|(part, _)| part.start);
        while !parts.is_empty() {
            let rest = parts.split_off(together.min(parts.len()));
            tasks.push(Task::Load {
                value: Arc::clone(&value),
                chain: Arc::clone(inner_chain),
                shape: Arc::clone(&inner_shape),
                parts: std::mem::replace(&mut parts, rest),
            });
        }
        Ok(())
    })
}
