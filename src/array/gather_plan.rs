//! [`GatherPlan`]: elements at lists of positions or at points, divided by the chunks of an array.

use std::sync::Arc;

use super::bound_array::Array;
use super::error::ArrayError;
use crate::chunk::{
    AssembleError, AxisPositions, ChunkCoords, Elements, ElementsMut, Gather, GatherBox, MAX_GATHER_PARTS,
    PointGather, Points,
};

/// Bytes of the boxes of chunks that are in memory together, about.
pub(super) const BOXES_BYTES: u64 = 64 << 20;
/// Bytes that a point takes along each of its dimensions: its position, and its place in the order of chunks, twice.
const POINT_BYTES: u64 = 64;

/// Elements at lists of positions or at points, divided by the chunks that are decoded and by those that are stored.
#[derive(Debug)]
pub(super) struct GatherPlan {
    decoded: Division,
    stored: Division,
}

/// Elements divided by the chunks of a grid.
#[derive(Debug)]
pub(super) enum Division {
    Lists(Gather),
    Points(PointGather),
}

impl GatherPlan {
    /// Divides positions by the chunks of an array. With points, their dimensions have their positions.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`] if that would take too much memory.
    pub(super) fn new(
        array: &Array,
        positions: &[AxisPositions],
        points: Option<&Arc<Points>>,
    ) -> Result<Self, ArrayError> {
        let divide = |grid| match points {
            None => Gather::new(positions, grid).map(Division::Lists),
            Some(points) => PointGather::new(points, positions, grid).map(Division::Points),
        };
        let too_many = || ArrayError::TooLarge {
            what: "parts of a list in chunks",
            requested: u128::from(MAX_GATHER_PARTS) + 1,
            limit: MAX_GATHER_PARTS,
        };
        let decoded = divide(array.decoded_axes()).ok_or_else(too_many)?;
        let stored = divide(array.grid().axes()).ok_or_else(too_many)?;
        Ok(Self { decoded, stored })
    }

    /// The stored chunks that are touched, in C order.
    pub(super) fn stored_chunks(&self) -> Vec<ChunkCoords> {
        match &self.stored {
            Division::Lists(lists) => lists.chunk_coords().collect(),
            Division::Points(points) => points.chunk_coords(),
        }
    }

    /// The chunks that are decoded, and the elements that these have (saturated).
    pub(super) fn touched(&self, array: &Array) -> (u128, u128) {
        match &self.decoded {
            Division::Lists(lists) => lists.touched(array.decoded_axes()),
            Division::Points(points) => points.touched(array.decoded_axes()),
        }
    }

    /// The boxes that contain the elements of each chunk that is decoded. A box is that of the whole chunk where none of it would
    /// stay undecoded: then it is gathered from, and not copied before. `is_stored` says which stored chunks there are.
    pub(super) fn boxes<'a>(
        &'a self,
        array: &'a Array,
        is_stored: impl Fn(&[u64]) -> bool + Send + 'a,
    ) -> impl Iterator<Item = GatherBox> + Send + 'a {
        let (decodes_parts, whole) = (array.decodes_parts(), array.decoded_bytes());
        let item = array.metadata().data_type.element_bytes() as u128;
        self.decoded.boxes().map(move |part| {
            let is_small = part.subset.elements().saturating_mul(2 * item) < u128::from(whole);
            let axes = part.subset.axes().iter().zip(array.grid().axes());
            let coords: Vec<u64> =
                axes.map(|(range, axis)| axis.chunk_containing(range.start).coord).collect();
            // Elements of a chunk that is not stored are made as they are needed.
            if decodes_parts && is_small || !is_stored(&coords) {
                return part;
            }
            part.widened(array.decoded_axes(), &array.metadata().shape)
        })
    }

    /// The elements, divided by the chunks that are decoded.
    pub(super) fn decoded(&self) -> &Division {
        &self.decoded
    }
}

impl Division {
    /// The boxes that contain the elements of each chunk.
    fn boxes(&self) -> Box<dyn Iterator<Item = GatherBox> + Send + '_> {
        match self {
            Self::Lists(lists) => Box::new(lists.boxes()),
            Self::Points(points) => Box::new(points.boxes()),
        }
    }

    /// How many elements of a box are copied; saturates.
    pub(super) fn elements_in(&self, part: &GatherBox) -> u64 {
        match self {
            Self::Lists(lists) => lists.elements_in(part),
            Self::Points(points) => points.elements_in(part),
        }
    }

    /// Copies the elements of a box, of `item` bytes each, to their places in the response.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub(super) fn copy(
        &self,
        part: &GatherBox,
        from: &Elements,
        item: usize,
        to: &mut ElementsMut,
    ) -> Result<(), AssembleError> {
        match self {
            Self::Lists(lists) => lists.copy(part, from, item, to),
            Self::Points(points) => points.copy(part, from, item, to),
        }
    }
}

/// Bytes of boxes of chunks that a read of this many decoded bytes has in memory, beside the response.
pub(super) fn boxes_bytes(array: &Array, decoded_bytes: u64) -> u64 {
    decoded_bytes.min(BOXES_BYTES.max(array.decoded_bytes()))
}

/// Bytes that points have in memory while their elements are read.
pub(super) fn points_bytes(points: Option<&Arc<Points>>) -> u64 {
    points.map_or(0, |points| (points.len() * points.axes().len()) as u64 * POINT_BYTES)
}
