//! [`ChunkGrid`]: how an array is divided into chunks (Zarr core 3.1, "Regular grid").
//!
//! Grids are separable: each dimension is a [`ChunkAxis`] of its own.

use super::AxisRange;
use crate::metadata::ChunkGridMetadata;

/// The coordinates of a chunk in the grid, one a dimension.
pub type ChunkCoords = Vec<u64>;

/// One dimension of a grid: `length` elements in chunks of `edge`, aligned at the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkAxis {
    length: u64,
    edge: u64,
}

/// The part of an [`AxisRange`] that lies in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisPiece {
    /// The chunk's coordinate along the axis.
    pub chunk: u64,
    /// The first element, counted from the chunk's own start.
    pub start_in_chunk: u64,
    /// How many elements, `step` apart.
    pub count: u64,
    /// Where in the range the piece begins.
    pub first: u64,
}

impl ChunkAxis {
    /// An axis of `length` elements in chunks of `edge`; an edge of 0 (legal where the length is 0) counts as 1.
    #[must_use]
    pub fn new(length: u64, edge: u64) -> Self {
        Self { length, edge: edge.max(1) }
    }

    /// Elements along the axis.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Elements along the axis in a chunk, as stored (the last may overhang the array).
    #[must_use]
    pub fn edge(&self) -> u64 {
        self.edge
    }

    /// Chunks along the axis.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.length.div_ceil(self.edge)
    }

    /// How many chunks the range touches: exact, without visiting them.
    #[must_use]
    pub fn chunks_touched(&self, range: &AxisRange) -> u64 {
        match range.count {
            0 => 0,
            count if range.step.unsigned_abs() >= self.edge => count,
            count => (range.at(0) / self.edge).abs_diff(range.at(count - 1) / self.edge) + 1,
        }
    }

    /// The pieces of the range, chunk by chunk, in the range's order.
    pub fn pieces(self, range: AxisRange) -> impl Iterator<Item = AxisPiece> + Clone {
        let mut first = 0;
        std::iter::from_fn(move || {
            if first >= range.count {
                return None;
            }
            let element = range.at(first);
            let (chunk, start_in_chunk) = (element / self.edge, element % self.edge);
            let room = if range.step > 0 { self.edge - 1 - start_in_chunk } else { start_in_chunk };
            let count = (room / range.step.unsigned_abs() + 1).min(range.count - first);
            let piece = AxisPiece { chunk, start_in_chunk, count, first };
            first += count;
            Some(piece)
        })
    }
}

/// A grid of chunks over an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkGrid {
    axes: Vec<ChunkAxis>,
}

impl ChunkGrid {
    /// The grid that a document describes, over an array of this shape and the same rank.
    #[must_use]
    pub fn new(shape: &[u64], metadata: &ChunkGridMetadata) -> Self {
        match metadata {
            ChunkGridMetadata::Regular { chunk_shape } => Self::regular(shape, chunk_shape),
        }
    }

    /// A grid of chunks of one shape.
    #[must_use]
    pub fn regular(shape: &[u64], chunk_shape: &[u64]) -> Self {
        Self {
            axes: shape
                .iter()
                .zip(chunk_shape)
                .map(|(&length, &edge)| ChunkAxis::new(length, edge))
                .collect(),
        }
    }

    /// The dimensions.
    #[must_use]
    pub fn axes(&self) -> &[ChunkAxis] {
        &self.axes
    }

    /// The shape of a chunk as stored.
    #[must_use]
    pub fn chunk_shape(&self) -> Vec<u64> {
        self.axes.iter().map(ChunkAxis::edge).collect()
    }

    /// Chunks along each dimension.
    #[must_use]
    pub fn grid_shape(&self) -> Vec<u64> {
        self.axes.iter().map(ChunkAxis::chunks).collect()
    }

    /// Whether there is a chunk with these coordinates.
    #[must_use]
    pub fn contains(&self, coords: &[u64]) -> bool {
        coords.len() == self.axes.len()
            && coords.iter().zip(&self.axes).all(|(&coord, axis)| coord < axis.chunks())
    }

    /// The elements of a chunk that lie in the array, as ranges along each dimension; `None` outside the grid.
    #[must_use]
    pub fn chunk_ranges(&self, coords: &[u64]) -> Option<Vec<AxisRange>> {
        self.contains(coords).then(|| {
            coords
                .iter()
                .zip(&self.axes)
                .map(|(&coord, axis)| {
                    let start = coord * axis.edge;
                    AxisRange { start, count: axis.edge.min(axis.length - start), step: 1, keep: true }
                })
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, count: u64, step: i64) -> AxisRange {
        AxisRange { start, count, step, keep: true }
    }

    #[test]
    fn pieces_cover_a_range_once_and_in_order() {
        for (length, edge) in [(10, 3), (10, 10), (10, 40), (7, 1), (100, 7)] {
            let axis = ChunkAxis::new(length, edge);
            for start in 0..length {
                for step in [-9i64, -3, -2, -1, 1, 2, 3, 5, 11] {
                    let most = if step > 0 {
                        (length - 1 - start) / step.unsigned_abs()
                    } else {
                        start / step.unsigned_abs()
                    } + 1;
                    for count in 0..=most {
                        let range = range(start, count, step);
                        let mut elements = Vec::new();
                        let mut touched = 0;
                        for piece in axis.pieces(range) {
                            touched += 1;
                            assert_eq!(piece.first, elements.len() as u64);
                            for k in 0..piece.count {
                                let inside =
                                    piece.start_in_chunk.checked_add_signed(k as i64 * step).unwrap();
                                assert!(inside < edge);
                                elements.push(piece.chunk * edge + inside);
                            }
                        }
                        let expected: Vec<u64> = (0..count).map(|k| range.at(k)).collect();
                        assert_eq!(elements, expected, "{axis:?} {range:?}");
                        assert_eq!(touched, axis.chunks_touched(&range), "{axis:?} {range:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_zero_length_dimension_has_no_chunks() {
        let grid = ChunkGrid::regular(&[0, 5], &[0, 2]);
        assert_eq!(grid.grid_shape(), [0, 3]);
        assert!(!grid.contains(&[0, 0]));
    }

    #[test]
    fn a_rank_0_array_has_one_chunk() {
        let grid = ChunkGrid::regular(&[], &[]);
        assert!(grid.contains(&[]));
        assert_eq!(grid.chunk_ranges(&[]), Some(vec![]));
    }

    #[test]
    fn edge_chunks_are_trimmed_to_the_array() {
        let grid = ChunkGrid::regular(&[10], &[4]);
        assert_eq!(grid.chunk_ranges(&[2]), Some(vec![range(8, 2, 1)]));
        assert_eq!(grid.chunk_ranges(&[3]), None);
    }

    #[test]
    fn counting_chunks_of_a_vast_axis_takes_no_visit() {
        let axis = ChunkAxis::new(1 << 62, 1);
        assert_eq!(axis.chunks_touched(&range(0, 1 << 62, 1)), 1 << 62);
        assert_eq!(ChunkAxis::new(1 << 62, 1 << 40).chunks_touched(&range(1, 1 << 61, 2)), 1 << 22);
    }
}
