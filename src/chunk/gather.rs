//! [`Gather`]: elements at lists of positions along each dimension, divided by the chunks that they lie in.
//!
//! The elements are all combinations of the positions along each dimension (orthogonal, as `isel` of xarray takes lists). Along
//! each dimension the positions are sorted by chunk, so that each chunk is read once, in whatever order its elements are asked for.

use super::{AssembleError, Elements, strided::Dimension};
use super::{AxisPositions, AxisRange, ChunkAxis, ElementsMut, Subset};

/// The most parts that the positions along a dimension may have where they are divided by chunks.
pub const MAX_GATHER_PARTS: u64 = 1 << 20;

/// Elements at lists of positions, divided by chunks.
#[derive(Clone, Debug)]
pub struct Gather {
    axes: Vec<Vec<GatherChunk>>,
    /// Elements of the response along each dimension.
    counts: Vec<u64>,
}

/// What is selected of the chunks with one coordinate along a dimension.
#[derive(Clone, Debug)]
pub(super) struct GatherChunk {
    pub(super) coord: u64,
    /// The first selected element in the array, and the last one.
    pub(super) low: u64,
    pub(super) high: u64,
    runs: Vec<GatherRun>,
}

/// Selected elements of one chunk that follow each other in the response.
#[derive(Clone, Copy, Debug)]
struct GatherRun {
    range: AxisRange,
    /// Where in the response along the dimension the first of them is.
    place: u64,
}

/// One of the boxes that contain the elements, each in one chunk.
#[derive(Clone, Debug)]
pub struct GatherBox {
    pub(super) chunks: Vec<usize>,
    /// The box in the array.
    pub subset: Subset,
}

impl Gather {
    /// Divides positions by the chunks of a grid; `None` if they have more than [`MAX_GATHER_PARTS`] along a dimension.
    #[must_use]
    pub fn new(positions: &[AxisPositions], grid: &[ChunkAxis]) -> Option<Self> {
        let axes = positions.iter().zip(grid).map(|(positions, axis)| divided(positions, axis));
        let counts = positions.iter().map(AxisPositions::count).collect();
        Some(Self { axes: axes.collect::<Option<_>>()?, counts })
    }

    /// How many chunks are touched, and the product of the sums of the edges of those along each dimension (saturated).
    #[must_use]
    pub fn touched(&self, grid: &[ChunkAxis]) -> (u128, u128) {
        let axes = self.axes.iter().zip(grid);
        axes.fold((1, 1), |(chunks, elements): (u128, u128), (axis, grid)| {
            let edges = axis.iter().map(|chunk| u128::from(grid.chunk(chunk.coord).edge)).sum();
            (chunks.saturating_mul(axis.len() as u128), elements.saturating_mul(edges))
        })
    }

    /// The coordinates of the chunks that are touched, in C order.
    pub fn chunk_coords(&self) -> impl Iterator<Item = Vec<u64>> + use<'_> {
        self.boxes().map(|part| {
            let chunks = self.axes.iter().zip(&part.chunks);
            chunks.filter_map(|(axis, &at)| axis.get(at).map(|chunk| chunk.coord)).collect()
        })
    }

    /// The boxes that contain the elements of each chunk, in C order of the chunks.
    pub fn boxes(&self) -> impl Iterator<Item = GatherBox> + use<'_> {
        combinations(self.axes.iter().map(Vec::len).collect()).map(|chunks| {
            let ranges =
                self.axes.iter().zip(&chunks).filter_map(|(axis, &at)| axis.get(at).map(GatherChunk::range));
            let subset = Subset(ranges.collect());
            GatherBox { chunks, subset }
        })
    }

    /// How many elements of a box are copied; saturates.
    #[must_use]
    pub fn elements_in(&self, part: &GatherBox) -> u64 {
        let chunks = self.axes.iter().zip(&part.chunks).filter_map(|(axis, &at)| axis.get(at));
        chunks.map(GatherChunk::elements).fold(1, u64::saturating_mul)
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
        let lists: Vec<&GatherChunk> =
            self.axes.iter().zip(&part.chunks).filter_map(|(axis, &at)| axis.get(at)).collect();
        let to_strides = strides(self.counts.iter().copied(), item)?;
        let from_strides = strides(part.subset.axes().iter().map(|range| range.count), item)?;
        let starts = part.subset.axes().iter().map(|range| range.start);
        let from_at = first_byte(&lists, starts, &from_strides)?;
        copy_runs(&lists, (&to_strides, 0, to), (&from_strides, from_at, from))
    }
}

impl GatherChunk {
    /// How many elements are selected; saturates.
    pub(super) fn elements(&self) -> u64 {
        self.runs.iter().map(|run| run.range.count).fold(0, u64::saturating_add)
    }

    /// The elements from the first selected one to the last.
    pub(super) fn range(&self) -> AxisRange {
        AxisRange { start: self.low, count: self.high - self.low + 1, step: 1, keep: true }
    }
}

impl GatherBox {
    /// The same elements in the box of the whole chunk of a grid that they lie in, over an array of this shape. It stays as it is
    /// where the chunk reaches beyond the end of the array.
    #[must_use]
    pub fn widened(self, grid: &[ChunkAxis], shape: &[u64]) -> Self {
        let axes = self.subset.axes().iter().zip(grid).zip(shape).map(|((range, axis), &length)| {
            let chunk = axis.chunk_containing(range.start);
            let is_inside = chunk.start.saturating_add(chunk.edge) <= length;
            is_inside.then_some(AxisRange { start: chunk.start, count: chunk.edge, step: 1, keep: true })
        });
        match axes.collect::<Option<Vec<AxisRange>>>() {
            Some(axes) => Self { subset: Subset(axes), ..self },
            None => self,
        }
    }

    /// Checks that these are the elements of the box.
    pub(super) fn check(&self, elements: &Elements, item: usize) -> Result<(), AssembleError> {
        let expected = self.subset.elements().saturating_mul(item as u128);
        if elements.items().len() as u128 == expected { Ok(()) } else { Err(AssembleError::Geometry) }
    }
}

/// All combinations of a number below each length, in C order.
pub(super) fn combinations(lengths: Vec<usize>) -> impl Iterator<Item = Vec<usize>> {
    let mut next = lengths.iter().all(|&length| length > 0).then(|| vec![0; lengths.len()]);
    std::iter::from_fn(move || {
        let found = next.take()?;
        let mut following = found.clone();
        for (at, &length) in following.iter_mut().zip(&lengths).rev() {
            *at += 1;
            if *at < length {
                next = Some(following);
                break;
            }
            *at = 0;
        }
        Some(found)
    })
}

/// Copies all combinations of the runs of lists. Both sides have a stride in bytes along each of these dimensions, and the byte
/// at which their first elements are.
pub(super) fn copy_runs(
    lists: &[&GatherChunk],
    (to_strides, to_start, to): (&[usize], usize, &mut ElementsMut),
    (from_strides, from_start, from): (&[usize], usize, &Elements),
) -> Result<(), AssembleError> {
    let mut at = vec![0; lists.len()];
    loop {
        let (mut to_at, mut from_at) = (to_start, from_start);
        let mut dimensions = Vec::with_capacity(lists.len());
        for (((chunk, &at), to_stride), from_stride) in
            lists.iter().zip(&at).zip(to_strides).zip(from_strides)
        {
            let run = chunk.runs.get(at).ok_or(AssembleError::Geometry)?;
            to_at += size(run.place)? * to_stride;
            from_at += size(run.range.start - chunk.low)? * from_stride;
            let step = isize::try_from(run.range.step).map_err(|_long| AssembleError::Geometry)?;
            let from = if run.range.count > 1 { from_stride.cast_signed().saturating_mul(step) } else { 0 };
            dimensions.push(Dimension { length: size(run.range.count)?, to: to_stride.cast_signed(), from });
        }
        to.copy(dimensions, to_at, from, from_at)?;
        // Odometer: the last dimension turns fastest.
        let turned = at.iter_mut().zip(lists).rev().any(|(at, chunk)| {
            *at += 1;
            let is_more = *at < chunk.runs.len();
            if !is_more {
                *at = 0;
            }
            is_more
        });
        if !turned {
            return Ok(());
        }
    }
}

/// The byte of the first selected elements of lists in a box that starts at these elements along the same dimensions.
pub(super) fn first_byte(
    lists: &[&GatherChunk],
    starts: impl Iterator<Item = u64>,
    strides: &[usize],
) -> Result<usize, AssembleError> {
    let mut at = 0;
    for ((chunk, start), stride) in lists.iter().zip(starts).zip(strides) {
        at += size(chunk.low.saturating_sub(start))? * stride;
    }
    Ok(at)
}

pub(super) fn size(number: u64) -> Result<usize, AssembleError> {
    usize::try_from(number).map_err(|_long| AssembleError::Geometry)
}

/// The strides in bytes of a box in C order.
pub(super) fn strides(
    counts: impl DoubleEndedIterator<Item = u64>,
    item: usize,
) -> Result<Vec<usize>, AssembleError> {
    let mut stride = item;
    let mut strides = Vec::new();
    for count in counts.rev() {
        strides.push(stride);
        stride = stride.saturating_mul(size(count)?);
    }
    strides.reverse();
    Ok(strides)
}

/// The positions along a dimension, sorted by chunk.
pub(super) fn divided(positions: &AxisPositions, axis: &ChunkAxis) -> Option<Vec<GatherChunk>> {
    let parts =
        positions.ranges().iter().fold(0, |sum: u64, range| sum.saturating_add(axis.touched(range).chunks));
    if parts > MAX_GATHER_PARTS {
        return None;
    }
    let mut first = 0;
    let mut runs = Vec::new();
    for range in positions.ranges() {
        for piece in axis.pieces(*range) {
            let run = GatherRun { range: range.part(piece.first, piece.count), place: first + piece.first };
            runs.push((piece.chunk, run));
        }
        first += range.count;
    }
    // Stable: within a chunk in the order of the response, so that writes go forward.
    runs.sort_by_key(|(chunk, _)| *chunk);
    let mut chunks: Vec<GatherChunk> = Vec::new();
    for (coord, run) in runs {
        let (one, other) = (run.range.start, run.range.at(run.range.count - 1));
        let (low, high) = (one.min(other), one.max(other));
        match chunks.last_mut().filter(|chunk| chunk.coord == coord) {
            Some(chunk) => {
                (chunk.low, chunk.high) = (chunk.low.min(low), chunk.high.max(high));
                chunk.runs.push(run);
            }
            None => chunks.push(GatherChunk { coord, low, high, runs: vec![run] }),
        }
    }
    Some(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkGrid;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_element_comes_to_its_place_from_a_chunk_that_is_visited_once(
            (shape, edges, lists) in prop::collection::vec((1_u64..9, 1_u64..5), 1..4).prop_flat_map(|axes| {
                let (shape, edges): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
                let lists: Vec<_> = shape.iter().map(|&length| prop::collection::vec(0..length, 0..7)).collect();
                (Just(shape), Just(edges), lists)
            }),
        ) {
            let grid = ChunkGrid::regular(&shape, &edges);
            let positions: Vec<_> =
                lists.iter().map(|list| AxisPositions::of_elements(list.iter().copied())).collect();
            let gather = Gather::new(&positions, grid.axes()).unwrap();
            let coords: Vec<_> = gather.chunk_coords().collect();
            prop_assert!(coords.windows(2).all(|pair| pair[0] < pair[1]));
            // An element is its place in the C order of the array.
            let number = |place: &[u64]| place.iter().zip(&shape).fold(0, |at, (&k, &n)| at * n + k) as u16;
            let product = |lists: &[Vec<u64>]| lists.iter().fold(vec![vec![]], |all: Vec<Vec<u64>>, list| {
                all.iter().flat_map(|one| list.iter().map(|&k| [one.as_slice(), &[k]].concat())).collect()
            });
            let bytes = |places: Vec<Vec<u64>>| places.iter().flat_map(|place| number(place).to_le_bytes()).collect::<Vec<u8>>();
            let expected = bytes(product(&lists));
            let mut out = ElementsMut::fixed(vec![0; expected.len()], 2);
            for part in gather.boxes() {
                let own: Vec<Vec<u64>> =
                    part.subset.axes().iter().map(|range| (0..range.count).map(|k| range.at(k)).collect()).collect();
                gather.copy(&part, &Elements::fixed(bytes(product(&own)).into()), 2, &mut out).unwrap();
            }
            let gathered = out.freeze();
            prop_assert_eq!(&gathered.items()[..], &expected[..]);
        }
    }

    #[test]
    fn positions_in_too_many_parts_are_not_divided() {
        let grid = ChunkGrid::regular(&[4 << 20], &[1]);
        assert!(Gather::new(&[AxisPositions::Range(AxisRange::full(4 << 20))], grid.axes()).is_none());
    }
}
