//! [`PartialChunk`]: the rows of a chunk that a request decodes in place of the whole chunk.

use std::sync::Arc;

use super::chunk_source::{ChunkLocation, ChunkSource};
use crate::chunk::{CopyRegion, RowRange};
use crate::codec::CodecChain;
use crate::store::SharedStore;

/// Some rows of a chunk, and the chain that decodes these and no others.
pub(super) struct PartialChunk {
    pub(super) chain: Arc<CodecChain>,
    pub(super) rows: RowRange,
}

impl PartialChunk {
    /// The rows of chunks of one shape that these windows need; `None` where the chunks are to be decoded whole: where that
    /// costs the same, and where the source prefers it for at least half of them.
    ///
    /// Chunks of a remote store are always decoded whole: one fetch of a chunk serves every request that needs some of it at
    /// that time.
    pub(super) fn select<'a>(
        source: &dyn ChunkSource,
        store: &SharedStore,
        chain: &CodecChain,
        shape: &[u64],
        element_bytes: usize,
        windows: impl IntoIterator<Item = &'a CopyRegion>,
        locations: impl ExactSizeIterator<Item = ChunkLocation<'a>>,
    ) -> Option<Self> {
        if !store.capabilities().near {
            return None;
        }
        let rows = CopyRegion::row_range(windows.into_iter(), shape, element_bytes)?;
        let part = chain.part(rows.items.clone())?;
        let chunks = locations.len();
        let whole = locations.filter(|&location| source.prefers_whole(location, chain, &part)).count();
        (whole * 2 < chunks).then(|| Self { chain: Arc::new(part), rows })
    }
}
