//! The chunks that a change of shape leaves outside of an array, by their coordinates.

use std::ops::Range;

use crate::chunk::ChunkCoords;

/// The number of chunks of a grid that are not in another one of the same rank.
pub(super) fn count_outside(grid: &[u64], other: &[u64]) -> u128 {
    let product = |lengths: &mut dyn Iterator<Item = u64>| {
        lengths.fold(1_u128, |product, length| product.saturating_mul(length.into()))
    };
    let all = product(&mut grid.iter().copied());
    let both = product(&mut grid.iter().zip(other).map(|(length, other)| *length.min(other)));
    all.saturating_sub(both)
}

/// The chunks of a grid that are not in another one of the same rank, each once.
///
/// They are taken apart by the first dimension along which they lie outside.
pub(super) fn outside(grid: &[u64], other: &[u64]) -> impl Iterator<Item = ChunkCoords> + Send + use<> {
    let (grid, other) = (grid.to_vec(), other.to_vec());
    (0..grid.len()).flat_map(move |axis| {
        let ranges = grid.iter().zip(&other).enumerate().map(|(place, (length, other))| match place {
            _ if place < axis => 0..*length.min(other),
            _ if place == axis => *length.min(other)..*length,
            _ => 0..*length,
        });
        let ranges: Vec<_> = ranges.collect();
        chunks_in(ranges)
    })
}

/// The chunks in a box of the grid, in C order.
pub(super) fn chunks_in(ranges: Vec<Range<u64>>) -> impl Iterator<Item = ChunkCoords> + Send {
    let is_empty = ranges.iter().any(Range::is_empty);
    let mut next = (!is_empty).then(|| ranges.iter().map(|range| range.start).collect::<ChunkCoords>());
    std::iter::from_fn(move || {
        let current = next.take()?;
        let mut following = current.clone();
        let mut is_last = true;
        for (coord, range) in following.iter_mut().zip(&ranges).rev() {
            *coord = coord.saturating_add(1);
            if *coord < range.end {
                is_last = false;
                break;
            }
            *coord = range.start;
        }
        if !is_last {
            next = Some(following);
        }
        Some(current)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunks_outside_are_each_named_once() {
        for (grid, other) in [
            (vec![3, 4], vec![2, 2]),
            (vec![3, 4], vec![5, 1]),
            (vec![3, 4], vec![0, 0]),
            (vec![2, 2], vec![2, 2]),
            (vec![5], vec![3]),
            (vec![], vec![]),
            (vec![2, 3, 2], vec![1, 5, 1]),
        ] {
            let mut found: Vec<_> = outside(&grid, &other).collect();
            assert_eq!(found.len() as u128, count_outside(&grid, &other), "{grid:?} {other:?}");
            let all = chunks_in(grid.iter().map(|length| 0..*length).collect());
            let expected: Vec<_> = if grid.is_empty() {
                Vec::new()
            } else {
                all.filter(|coords| coords.iter().zip(&other).any(|(coord, length)| coord >= length))
                    .collect()
            };
            found.sort();
            assert_eq!(found, expected, "{grid:?} {other:?}");
        }
    }
}
