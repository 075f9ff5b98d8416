//! [`GatherPlan`]: elements at lists of positions, divided by the chunks of an array.

use super::bound_array::Array;
use super::error::ArrayError;
use crate::chunk::{AxisPositions, ChunkCoords, Gather, MAX_GATHER_PARTS};

/// Bytes of the boxes of chunks that are in memory together, about.
pub(super) const BOXES_BYTES: u64 = 64 << 20;

/// Elements at lists of positions, divided by the chunks that are decoded and by those that are stored.
#[derive(Debug)]
pub(super) struct GatherPlan {
    decoded: Gather,
    stored: Gather,
}

impl GatherPlan {
    /// Divides positions by the chunks of an array.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`] if that would take too much memory.
    pub(super) fn new(array: &Array, positions: &[AxisPositions]) -> Result<Self, ArrayError> {
        let too_many = || ArrayError::TooLarge {
            what: "parts of a list in chunks",
            requested: u128::from(MAX_GATHER_PARTS) + 1,
            limit: MAX_GATHER_PARTS,
        };
        let decoded = Gather::new(positions, array.decoded_axes()).ok_or_else(too_many)?;
        let stored = Gather::new(positions, array.grid().axes()).ok_or_else(too_many)?;
        Ok(Self { decoded, stored })
    }

    /// The stored chunks that are touched.
    pub(super) fn stored_chunks(&self) -> Vec<ChunkCoords> {
        self.stored.chunk_coords().collect()
    }

    /// The elements, divided by the chunks that are decoded.
    pub(super) fn decoded(&self) -> &Gather {
        &self.decoded
    }
}

/// Bytes of boxes of chunks that a read of this many decoded bytes has in memory, beside the response.
pub(super) fn boxes_bytes(array: &Array, decoded_bytes: u64) -> u64 {
    decoded_bytes.min(BOXES_BYTES.max(array.decoded_bytes()))
}
