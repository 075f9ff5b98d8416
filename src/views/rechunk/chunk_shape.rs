//! The chunk shape of an array under a rechunk recipe.
//!
//! A requested shape of the same rank as the array is used, with each edge clamped to the length of the array.
//! Hierarchies often have arrays of other ranks, such as coordinates beside their data; these get the shape of `auto`: [`auto_chunk_shape`].

use super::spec::ChunkShapeSpec;
use crate::chunk::auto_chunk_shape;

/// The chunk shape of an array with elements of `element_bytes` bytes.
pub(super) fn chunk_shape(chunks: &ChunkShapeSpec, shape: &[u64], element_bytes: u64) -> Vec<u64> {
    match chunks {
        ChunkShapeSpec::Shape(edges) if edges.len() == shape.len() => {
            edges.iter().zip(shape).map(|(&edge, &length)| edge.min(length).max(1)).collect()
        }
        ChunkShapeSpec::Auto | ChunkShapeSpec::Shape(_) => auto_chunk_shape(shape, element_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamps_a_shape_to_the_array_and_chooses_one_for_other_ranks() {
        let chunks = ChunkShapeSpec::Shape(vec![64, 64]);
        assert_eq!(chunk_shape(&chunks, &[100, 10], 1), [64, 10]);
        assert_eq!(chunk_shape(&chunks, &[0, 100], 1), [1, 64]);
        assert_eq!(chunk_shape(&chunks, &[1000], 8), [1000]);
        assert_eq!(chunk_shape(&chunks, &[], 8), [0_u64; 0]);
    }
}
