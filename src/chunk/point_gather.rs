//! [`PointGather`]: elements at points, divided by the chunks that they lie in.
//!
//! A point has a position along some of the dimensions; along the others all points have the same positions. The elements have the
//! points as their first dimension, and then those others (vectorized, as `isel` of xarray takes arrays of one dimension). Points
//! are sorted by chunk, so that each chunk is read once, in whatever order its elements are asked for.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use super::gather::{GatherChunk, combinations, copy_runs, divided, first_byte, size, strides};
use super::{AssembleError, AxisPositions, AxisRange, ChunkAxis, Elements, ElementsMut, GatherBox};
use super::{Points, Subset};

/// Elements at points, divided by chunks.
#[derive(Clone, Debug)]
pub struct PointGather {
    points: Arc<Points>,
    /// The points, sorted by the chunks that they lie in.
    order: Vec<usize>,
    groups: Vec<PointGroup>,
    /// The positions along the other dimensions,
    others: Vec<Vec<GatherChunk>>,
    /// the number of these dimensions in the array,
    other_axes: Vec<usize>,
    /// and the elements of the response along each.
    other_counts: Vec<u64>,
}

/// The points in the chunks with the same coordinates along the dimensions of the points.
#[derive(Clone, Debug)]
struct PointGroup {
    coords: Vec<u64>,
    /// The smallest box that contains the points.
    ranges: Vec<AxisRange>,
    /// Where in the order of points they are.
    members: Range<usize>,
}

impl PointGather {
    /// Divides points, and positions along each dimension, by the chunks of a grid. Positions along the dimensions of the points do
    /// not count. `None` if there are more than [`MAX_GATHER_PARTS`](super::MAX_GATHER_PARTS) parts along a dimension.
    #[must_use]
    pub fn new(points: &Arc<Points>, positions: &[AxisPositions], grid: &[ChunkAxis]) -> Option<Self> {
        let coords: Vec<Vec<u64>> = points
            .axes()
            .iter()
            .zip(points.positions())
            .filter_map(|(&axis, along)| {
                let axis = grid.get(axis)?;
                Some(along.iter().map(|&position| axis.chunk_containing(position).coord).collect())
            })
            .collect();
        let compare = |&one: &usize, &other: &usize| {
            let differing = coords.iter().map(|along| along.get(one).cmp(&along.get(other)));
            differing.fold(Ordering::Equal, Ordering::then)
        };
        let mut order: Vec<usize> = (0..points.len()).collect();
        // Stable: within a chunk in the order of the response, so that writes go forward.
        order.sort_by(compare);
        let mut groups: Vec<PointGroup> = Vec::new();
        for (place, &point) in order.iter().enumerate() {
            let own = coords.iter().filter_map(|along| along.get(point).copied());
            let same = groups.last_mut().filter(|group| group.coords.iter().copied().eq(own.clone()));
            if let Some(group) = same {
                group.add(place, points.position(point));
            } else {
                let one = |start| AxisRange { start, count: 1, step: 1, keep: true };
                let ranges = points.position(point).map(one).collect();
                groups.push(PointGroup { coords: own.collect(), ranges, members: place..place + 1 });
            }
        }
        let of_others =
            positions.iter().zip(grid).enumerate().filter(|(axis, _)| !points.axes().contains(axis));
        let (mut others, mut other_axes, mut other_counts) = (Vec::new(), Vec::new(), Vec::new());
        for (axis, (positions, grid)) in of_others {
            others.push(divided(positions, grid)?);
            other_axes.push(axis);
            other_counts.push(positions.count());
        }
        Some(Self { points: Arc::clone(points), order, groups, others, other_axes, other_counts })
    }

    /// How many chunks are touched, and how many elements they have (saturated).
    #[must_use]
    pub fn touched(&self, grid: &[ChunkAxis]) -> (u128, u128) {
        let edge =
            |axis: usize, coord: u64| grid.get(axis).map_or(0, |axis| u128::from(axis.chunk(coord).edge));
        let of_group = |group: &PointGroup| {
            let edges = self.points.axes().iter().zip(&group.coords).map(|(&axis, &coord)| edge(axis, coord));
            edges.fold(1, u128::saturating_mul)
        };
        let groups = self.groups.iter().map(of_group).fold(0, u128::saturating_add);
        let others = self.others.iter().zip(&self.other_axes);
        others.fold((self.groups.len() as u128, groups), |(chunks, elements), (along, &axis)| {
            let edges = along.iter().map(|chunk| edge(axis, chunk.coord)).sum();
            (chunks.saturating_mul(along.len() as u128), elements.saturating_mul(edges))
        })
    }

    /// The coordinates of the chunks that are touched, in C order.
    #[must_use]
    pub fn chunk_coords(&self) -> Vec<Vec<u64>> {
        let of_other = |along: &[GatherChunk], at: usize| along.get(at).map(|chunk| chunk.coord);
        let of_box = |chunks: Vec<usize>| self.interleaved(&chunks, |group| group.coords.clone(), of_other);
        let mut coords: Vec<Vec<u64>> = self.combinations().map(of_box).collect();
        coords.sort_unstable();
        coords
    }

    /// The boxes that contain the elements of each chunk, in no particular order.
    pub fn boxes(&self) -> impl Iterator<Item = GatherBox> + use<'_> {
        let of_other = |along: &[GatherChunk], at: usize| along.get(at).map(GatherChunk::range);
        self.combinations().map(move |chunks| {
            let subset = Subset(self.interleaved(&chunks, |group| group.ranges.clone(), of_other));
            GatherBox { chunks, subset }
        })
    }

    /// How many elements of a box are copied; saturates.
    #[must_use]
    pub fn elements_in(&self, part: &GatherBox) -> u64 {
        let points = self.group(&part.chunks).map_or(0, |group| group.members.len() as u64);
        let others = self.others.iter().zip(part.chunks.iter().skip(1));
        let others = others.filter_map(|(along, &at)| along.get(at)).map(GatherChunk::elements);
        others.fold(points, u64::saturating_mul)
    }

    /// Copies the elements of a box, of `item` bytes each, to their places in the response.
    ///
    /// # Errors
    /// [`AssembleError`].
    pub fn copy(
        &self,
        part: &GatherBox,
        from: &Elements,
        item: usize,
        to: &mut ElementsMut,
    ) -> Result<(), AssembleError> {
        part.check(from, item)?;
        let group = self.group(&part.chunks).ok_or(AssembleError::Geometry)?;
        let in_others = self.others.iter().zip(part.chunks.iter().skip(1));
        let lists: Vec<&GatherChunk> = in_others.filter_map(|(along, &at)| along.get(at)).collect();
        let of_points = std::iter::once(self.points.len() as u64);
        let counts: Vec<u64> = of_points.chain(self.other_counts.iter().copied()).collect();
        let to_strides = strides(counts.into_iter(), item)?;
        let (to_stride, to_strides) = to_strides.split_first().ok_or(AssembleError::Geometry)?;
        let from_strides = strides(part.subset.axes().iter().map(|range| range.count), item)?;
        let along = |axes: &[usize]| -> Vec<usize> {
            axes.iter().filter_map(|&axis| from_strides.get(axis).copied()).collect()
        };
        let (point_strides, from_strides) = (along(self.points.axes()), along(&self.other_axes));
        let starts = |axes: &[usize]| -> Vec<u64> {
            axes.iter().filter_map(|&axis| part.subset.axes().get(axis).map(|range| range.start)).collect()
        };
        let point_starts = starts(self.points.axes());
        let first = first_byte(&lists, starts(&self.other_axes).into_iter(), &from_strides)?;
        for &point in self.order.get(group.members.clone()).unwrap_or_default() {
            let mut from_at = first;
            for ((position, &start), stride) in
                self.points.position(point).zip(&point_starts).zip(&point_strides)
            {
                from_at += size(position.saturating_sub(start))? * stride;
            }
            copy_runs(&lists, (to_strides, point * to_stride, to), (&from_strides, from_at, from))?;
        }
        Ok(())
    }

    /// For each box the number of its group, and along each other dimension that of its chunk.
    fn combinations(&self) -> impl Iterator<Item = Vec<usize>> + use<> {
        let others = self.others.iter().map(Vec::len);
        combinations(std::iter::once(self.groups.len()).chain(others).collect())
    }

    fn group(&self, chunks: &[usize]) -> Option<&PointGroup> {
        self.groups.get(*chunks.first()?)
    }

    /// What a box has along each dimension of the array, in their order.
    fn interleaved<T>(
        &self,
        chunks: &[usize],
        of_group: impl Fn(&PointGroup) -> Vec<T>,
        of_other: impl Fn(&[GatherChunk], usize) -> Option<T>,
    ) -> Vec<T> {
        let of_points = self.group(chunks).map(of_group).unwrap_or_default();
        let mut all: Vec<(usize, T)> = self.points.axes().iter().copied().zip(of_points).collect();
        let others = self.others.iter().zip(&self.other_axes).zip(chunks.iter().skip(1));
        all.extend(others.filter_map(|((along, &axis), &at)| Some((axis, of_other(along, at)?))));
        all.sort_by_key(|(axis, _)| *axis);
        all.into_iter().map(|(_, one)| one).collect()
    }
}

impl PointGroup {
    /// Adds the next point.
    fn add(&mut self, place: usize, position: impl Iterator<Item = u64>) {
        for (range, position) in self.ranges.iter_mut().zip(position) {
            let last = range.start.saturating_add(range.count - 1).max(position);
            range.start = range.start.min(position);
            range.count = last - range.start + 1;
        }
        self.members.end = place + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkGrid;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_point_comes_to_its_place_from_a_chunk_that_is_visited_once(
            (shape, edges, kinds, lists) in prop::collection::vec((1_u64..9, 1_u64..5, any::<bool>()), 1..5).prop_flat_map(|axes| {
                let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
                let edges: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
                let kinds: Vec<bool> = axes.iter().map(|axis| axis.2).collect();
                // As many for all dimensions of points.
                let lists: Vec<_> = shape.iter().map(|&length| prop::collection::vec(0..length, 7)).collect();
                (Just(shape), Just(edges), Just(kinds), lists)
            }),
            (points, others) in (0_usize..8, 0_usize..4),
            widens in any::<bool>(),
        ) {
            prop_assume!(kinds.contains(&true));
            let grid = ChunkGrid::regular(&shape, &edges);
            let lists: Vec<Vec<u64>> =
                lists.into_iter().zip(&kinds).map(|(list, &is_of_points)| list[..if is_of_points { points.min(7) } else { others }].to_vec()).collect();
            let along = lists.iter().cloned().enumerate().filter(|(axis, _)| kinds[*axis]).collect();
            let selected = Arc::new(Points::new(along).unwrap());
            let positions: Vec<_> = lists.iter().map(|list| AxisPositions::of_elements(list.iter().copied())).collect();
            let gather = PointGather::new(&selected, &positions, grid.axes()).unwrap();
            let coords = gather.chunk_coords();
            prop_assert!(coords.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(gather.touched(grid.axes()).0, coords.len() as u128);
            // An element is its place in the C order of the array.
            let number = |place: &[u64]| place.iter().zip(&shape).fold(0, |at, (&k, &n)| at * n + k) as u16;
            let bytes = |places: Vec<Vec<u64>>| places.iter().flat_map(|place| number(place).to_le_bytes()).collect::<Vec<u8>>();
            let product = |lists: &[Vec<u64>]| lists.iter().fold(vec![vec![]], |all: Vec<Vec<u64>>, list| {
                all.iter().flat_map(|one| list.iter().map(|&k| [one.as_slice(), &[k]].concat())).collect()
            });
            let expected = (0..selected.len()).flat_map(|point| {
                let of_point: Vec<Vec<u64>> =
                    lists.iter().zip(&kinds).map(|(list, &is_of_points)| if is_of_points { vec![list[point]] } else { list.clone() }).collect();
                product(&of_point)
            });
            let expected = bytes(expected.collect());
            let mut out = ElementsMut::fixed(vec![0; expected.len()], 2);
            let mut seen = 0;
            for part in gather.boxes() {
                let part = if widens { part.widened(grid.axes(), &shape) } else { part };
                let own: Vec<Vec<u64>> =
                    part.subset.axes().iter().map(|range| (0..range.count).map(|k| range.at(k)).collect()).collect();
                gather.copy(&part, &Elements::fixed(bytes(product(&own)).into()), 2, &mut out).unwrap();
                seen += 1;
            }
            prop_assert_eq!(seen, coords.len());
            let gathered = out.freeze();
            prop_assert_eq!(&gathered.items()[..], &expected[..]);
        }
    }

    #[test]
    fn lists_of_different_lengths_are_no_points() {
        assert!(Points::new(vec![(0, vec![1, 2]), (1, vec![1])]).is_none());
        assert!(Points::new(vec![(1, vec![1]), (1, vec![1])]).is_none());
        assert_eq!(Points::new(vec![(2, vec![1, 2]), (0, vec![3, 4])]).unwrap().axes(), [0, 2]);
    }
}
