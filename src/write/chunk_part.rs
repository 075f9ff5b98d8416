//! [`ChunkPart`]: elements for some places of a chunk.

use crate::chunk::{CopyRegion, Elements};

/// Elements for some places of a chunk, or of an inner chunk.
#[derive(Clone, Debug)]
pub struct ChunkPart {
    /// The places in the chunk, and where their elements are among `elements`.
    pub region: CopyRegion,
    /// Elements in canonical form. Parts share them.
    pub elements: Elements,
}

impl ChunkPart {
    /// Whether it has an element for each place of a chunk of this shape.
    pub(super) fn covers(&self, shape: &[u64]) -> bool {
        self.region.covers(shape)
    }
}
