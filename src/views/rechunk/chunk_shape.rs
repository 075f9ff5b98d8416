//! The shape of chunks that a recipe gives an array.
//!
//! A shape of as many numbers as the array has dimensions is taken as it is, but no chunk is longer than the array. An
//! array of another rank, of which hierarchies have many (coordinates beside their data), gets the shape of `auto`: a box
//! of about 1 MiB at most, as close to a cube as doubling its edges makes it, the last dimension first.

use super::spec::Chunks;

/// Most bytes of a chunk whose shape nobody asked for.
const MOST_BYTES: u64 = 1 << 20;

/// The shape of chunks of an array of this shape, whose elements have so many bytes.
pub(super) fn chunk_shape(chunks: &Chunks, shape: &[u64], item_bytes: u64) -> Vec<u64> {
    match chunks {
        Chunks::Of(edges) if edges.len() == shape.len() => {
            edges.iter().zip(shape).map(|(&edge, &length)| edge.min(length).max(1)).collect()
        }
        Chunks::Auto | Chunks::Of(_) => auto(shape, item_bytes),
    }
}

fn auto(shape: &[u64], item_bytes: u64) -> Vec<u64> {
    let mut edges = vec![1_u64; shape.len()];
    let mut bytes = item_bytes.max(1);
    while bytes <= MOST_BYTES / 2 {
        // Of the shortest edges that can grow, the last.
        let growing = edges.iter_mut().zip(shape).rev().filter(|(edge, length)| **edge < **length);
        let Some((edge, &length)) = growing.min_by_key(|(edge, _)| **edge) else { break };
        let longer = edge.saturating_mul(2).min(length);
        bytes = (bytes / *edge).saturating_mul(longer);
        *edge = longer;
    }
    edges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_shape_is_no_longer_than_the_array_and_an_array_of_another_rank_has_its_own() {
        let chunks = Chunks::Of(vec![64, 64]);
        assert_eq!(chunk_shape(&chunks, &[100, 10], 1), [64, 10]);
        assert_eq!(chunk_shape(&chunks, &[0, 100], 1), [1, 64]);
        assert_eq!(chunk_shape(&chunks, &[1000], 8), [1000]);
        assert_eq!(chunk_shape(&chunks, &[], 8), [0_u64; 0]);
    }

    #[test]
    fn nobodys_shape_is_a_box_of_a_megabyte() {
        for (shape, item_bytes, expected) in [
            (&[4096, 4096, 4096][..], 2, &[64, 64, 128][..]),
            (&[4096, 4096], 1, &[1024, 1024]),
            (&[3, 5000, 5000], 4, &[3, 256, 256]),
            (&[10_000_000], 8, &[131_072]),
            (&[100, 100], 8, &[100, 100]),
            (&[7], 4 << 20, &[1]),
            (&[0, 9], 1, &[1, 9]),
            (&[u64::MAX, u64::MAX], 1, &[1024, 1024]),
        ] {
            assert_eq!(chunk_shape(&Chunks::Auto, shape, item_bytes), expected, "{shape:?} of {item_bytes}");
        }
    }

    proptest! {
        #[test]
        fn nobodys_shape_is_within_the_array_and_the_limit(
            shape in prop::collection::vec(prop_oneof![0_u64..10, 0_u64..100_000, any::<u64>()], 0..33),
            item_bytes in 1_u64..2_000_000,
        ) {
            let edges = chunk_shape(&Chunks::Auto, &shape, item_bytes);
            prop_assert_eq!(edges.len(), shape.len());
            prop_assert!(edges.iter().zip(&shape).all(|(edge, length)| (1..=(*length).max(1)).contains(edge)));
            let elements: u128 = edges.iter().map(|&edge| u128::from(edge)).product();
            prop_assert!(elements == 1 || elements * u128::from(item_bytes) <= u128::from(MOST_BYTES));
        }
    }
}
