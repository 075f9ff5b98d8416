//! [`auto_chunk_shape`]: a chunk shape for an array of which none is given.
//!
//! It is a box of at most about 1 MiB, as close to a cube as doubling its edges makes it, growing the last dimension first.

/// Most bytes of a chunk of an automatic shape.
const MAX_AUTO_BYTES: u64 = 1 << 20;

/// A chunk shape for an array with elements of `element_bytes` bytes.
#[must_use]
pub fn auto_chunk_shape(shape: &[u64], element_bytes: u64) -> Vec<u64> {
    let mut edges = vec![1_u64; shape.len()];
    let mut bytes = element_bytes.max(1);
    while bytes <= MAX_AUTO_BYTES / 2 {
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
    fn an_automatic_shape_is_a_box_of_about_a_mebibyte() {
        for (shape, element_bytes, expected) in [
            (&[4096, 4096, 4096][..], 2, &[64, 64, 128][..]),
            (&[4096, 4096], 1, &[1024, 1024]),
            (&[3, 5000, 5000], 4, &[3, 256, 256]),
            (&[10_000_000], 8, &[131_072]),
            (&[100, 100], 8, &[100, 100]),
            (&[7], 4 << 20, &[1]),
            (&[0, 9], 1, &[1, 9]),
            (&[u64::MAX, u64::MAX], 1, &[1024, 1024]),
        ] {
            assert_eq!(auto_chunk_shape(shape, element_bytes), expected, "{shape:?} of {element_bytes}");
        }
    }

    proptest! {
        #[test]
        fn an_automatic_shape_is_within_the_array_and_the_limit(
            shape in prop::collection::vec(prop_oneof![0_u64..10, 0_u64..100_000, any::<u64>()], 0..33),
            element_bytes in 1_u64..2_000_000,
        ) {
            let edges = auto_chunk_shape(&shape, element_bytes);
            prop_assert_eq!(edges.len(), shape.len());
            prop_assert!(edges.iter().zip(&shape).all(|(edge, length)| (1..=(*length).max(1)).contains(edge)));
            let elements: u128 = edges.iter().map(|&edge| u128::from(edge)).product();
            prop_assert!(elements == 1 || elements * u128::from(element_bytes) <= u128::from(MAX_AUTO_BYTES));
        }
    }
}
