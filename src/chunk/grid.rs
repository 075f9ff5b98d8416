//! [`ChunkGrid`]: the division of an array into chunks (Zarr core 3.1, "Regular grid"; the extension "rectilinear").
//!
//! Grids are separable: each dimension is a [`ChunkAxis`] of its own.

use super::{AxisRange, ChunkAxis};
use crate::metadata::{ChunkEdges, ChunkGridMetadata};

/// The coordinates of a chunk in its grid, one per dimension.
pub type ChunkCoords = Vec<u64>;

/// A grid of chunks over an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkGrid {
    axes: Vec<ChunkAxis>,
}

impl ChunkGrid {
    /// The grid that metadata describes, over an array of this shape and the same rank.
    #[must_use]
    pub fn new(shape: &[u64], metadata: &ChunkGridMetadata) -> Self {
        match metadata {
            ChunkGridMetadata::Regular { chunk_shape } => Self::regular(shape, chunk_shape),
            ChunkGridMetadata::Rectilinear { edges } => {
                let axis = |(&length, edges): (&u64, &ChunkEdges)| match edges {
                    ChunkEdges::Regular(edge) => ChunkAxis::new(length, *edge),
                    ChunkEdges::Runs(runs) => ChunkAxis::from_runs(length, runs),
                };
                Self { axes: shape.iter().zip(edges).map(axis).collect() }
            }
        }
    }

    /// A grid of chunks that all have one shape.
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

    /// The shape of every chunk as stored; `None` if chunks differ.
    #[must_use]
    pub fn chunk_shape(&self) -> Option<Vec<u64>> {
        self.axes.iter().map(ChunkAxis::edge).collect()
    }

    /// The shape of the first chunk as stored; in an array without elements, the shape that it would have.
    #[must_use]
    pub fn first_chunk_shape(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.chunk(0).edge).collect()
    }

    /// The shape of a chunk of the grid as stored.
    #[must_use]
    pub fn chunk_shape_at(&self, coords: &[u64]) -> Vec<u64> {
        coords.iter().zip(&self.axes).map(|(&coord, axis)| axis.chunk(coord).edge).collect()
    }

    /// The number of chunks along each dimension that have elements of the array.
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

    /// The elements of a chunk that lie inside the array, as ranges along each dimension; `None` outside the grid.
    #[must_use]
    pub fn chunk_ranges(&self, coords: &[u64]) -> Option<Vec<AxisRange>> {
        self.contains(coords).then(|| {
            coords
                .iter()
                .zip(&self.axes)
                .map(|(&coord, axis)| {
                    let chunk = axis.chunk(coord);
                    let count = chunk.edge.min(axis.length() - chunk.start);
                    AxisRange { start: chunk.start, count, step: 1, keep: true }
                })
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::EdgeRun;

    fn range(start: u64, count: u64, step: i64) -> AxisRange {
        AxisRange { start, count, step, keep: true }
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

    /// A rectilinear grid of a regular dimension and one of runs.
    fn mixed(shape: [u64; 2], edge: u64, runs: &[(u64, u64)]) -> ChunkGrid {
        let runs = runs.iter().map(|&(edge, count)| EdgeRun { edge, count }).collect();
        let edges = vec![ChunkEdges::Regular(edge), ChunkEdges::Runs(runs)];
        ChunkGrid::new(&shape, &ChunkGridMetadata::Rectilinear { edges })
    }

    #[test]
    fn chunks_of_a_rectilinear_grid_have_the_edges_it_gives() {
        // The example of the extension: [[16, 10], [24, 14]], with a regular dimension instead of the first.
        let grid = mixed([26, 38], 16, &[(24, 1), (14, 1)]);
        assert_eq!(grid.grid_shape(), [2, 2]);
        assert_eq!(grid.chunk_shape(), None);
        assert_eq!(grid.first_chunk_shape(), [16, 24]);
        assert_eq!(grid.chunk_shape_at(&[1, 1]), [16, 14]);
        assert_eq!(grid.chunk_ranges(&[1, 1]), Some(vec![range(16, 10, 1), range(24, 14, 1)]));
    }

    #[test]
    fn a_rectilinear_grid_of_equal_chunks_is_the_regular_grid() {
        assert_eq!(mixed([6, 7], 4, &[(3, 2), (3, 5)]), ChunkGrid::regular(&[6, 7], &[4, 3]));
    }

    #[test]
    fn chunks_wholly_beyond_the_array_are_not_of_the_grid() {
        let grid = mixed([6, 7], 4, &[(5, 1), (3, 1), (2, 100)]);
        assert_eq!(grid.grid_shape(), [2, 2]);
        assert_eq!(grid.chunk_ranges(&[0, 1]), Some(vec![range(0, 4, 1), range(5, 2, 1)]));
        assert!(!grid.contains(&[0, 2]));
        assert_eq!(grid.chunk_ranges(&[0, 2]), None);
    }
}
