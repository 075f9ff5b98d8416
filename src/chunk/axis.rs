//! [`ChunkAxis`]: one dimension of a chunk grid, with equal or varied edges (Zarr core 3.1, "Regular grid"; the extension
//! "rectilinear").
//!
//! Chunks are found by arithmetic: by division where edges are equal, and by a binary search among runs of equal chunks where
//! they vary. No search visits the chunks in between.

use std::sync::Arc;

use super::AxisRange;
use crate::metadata::EdgeRun;

/// The most runs of equal chunks that [`ChunkAxis::touched`] visits one by one.
const MAX_RUNS_WALKED: usize = 256;

/// The most runs of equal chunks that [`ChunkAxis::is_tiled_by`] checks.
const MAX_RUNS_COMPARED: usize = 4096;

/// One dimension of a grid: `length` elements in adjacent chunks from the origin on. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkAxis {
    length: u64,
    edges: Edges,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Edges {
    /// All chunks have this edge; not 0.
    Regular(u64),
    Varied(Arc<Varied>),
}

/// Runs of equal chunks. There are at least two; each begins inside the array, and the last one reaches its end.
#[derive(Debug, PartialEq, Eq)]
struct Varied {
    runs: Vec<ChunkRun>,
    smallest: u64,
    largest: u64,
}

/// Adjacent chunks of one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkRun {
    /// The coordinate of the first chunk.
    coord: u64,
    /// Its first element.
    start: u64,
    /// Elements along each chunk.
    edge: u64,
}

/// The extent of a chunk along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisChunk {
    /// Its coordinate.
    pub coord: u64,
    /// Its first element.
    pub start: u64,
    /// Elements along it as stored (the last chunk may overhang the array).
    pub edge: u64,
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

/// The chunks along an axis that a range touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TouchedChunkTotals {
    /// How many chunks.
    pub chunks: u64,
    /// The sum of their edges in elements.
    pub elements: u128,
}

impl ChunkAxis {
    /// An axis of `length` elements in chunks of `edge`; an edge of 0 (legal where the length is 0) counts as 1.
    #[must_use]
    pub fn new(length: u64, edge: u64) -> Self {
        Self { length, edges: Edges::Regular(edge.max(1)) }
    }

    /// An axis of `length` elements in chunks of these edges, which must reach its end. Chunks that lie entirely beyond the
    /// end are dropped, because they have no elements.
    #[must_use]
    pub fn from_runs(length: u64, edges: &[EdgeRun]) -> Self {
        let mut runs: Vec<ChunkRun> = Vec::new();
        let (mut coord, mut start) = (0_u64, 0_u64);
        for run in edges {
            if start >= length && !runs.is_empty() {
                break;
            }
            runs.push(ChunkRun { coord, start, edge: run.edge.max(1) });
            // What saturates lies beyond any array.
            coord = coord.saturating_add(run.count);
            start = start.saturating_add(run.edge.saturating_mul(run.count));
        }
        let edges = || runs.iter().map(|run| run.edge);
        let (smallest, largest) = (edges().min().unwrap_or(1), edges().max().unwrap_or(1));
        if smallest == largest {
            return Self::new(length, smallest);
        }
        runs.shrink_to_fit();
        Self { length, edges: Edges::Varied(Arc::new(Varied { runs, smallest, largest })) }
    }

    /// Elements along the axis.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Elements along each chunk as stored; `None` if chunks differ.
    #[must_use]
    pub fn edge(&self) -> Option<u64> {
        match &self.edges {
            Edges::Regular(edge) => Some(*edge),
            Edges::Varied(_) => None,
        }
    }

    /// Elements along the longest chunk as stored.
    #[must_use]
    pub fn largest_edge(&self) -> u64 {
        match &self.edges {
            Edges::Regular(edge) => *edge,
            Edges::Varied(varied) => varied.largest,
        }
    }

    /// Whether the edge of every chunk is a multiple of `edge`. False without a check where there are thousands of runs of
    /// equal chunks.
    #[must_use]
    pub fn is_tiled_by(&self, edge: u64) -> bool {
        match &self.edges {
            Edges::Regular(own) => own.is_multiple_of(edge.max(1)),
            Edges::Varied(varied) => {
                varied.runs.len() <= MAX_RUNS_COMPARED
                    && varied.runs.iter().all(|run| run.edge.is_multiple_of(edge.max(1)))
            }
        }
    }

    /// Chunks along the axis that have elements of the array.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        match self.length.checked_sub(1) {
            None => 0,
            Some(last) => self.chunk_containing(last).coord + 1,
        }
    }

    /// The element after the last chunk: at the end of the array or beyond.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.length.checked_sub(1).map_or(0, |last| {
            let chunk = self.chunk_containing(last);
            chunk.start.saturating_add(chunk.edge)
        })
    }

    /// The chunk with this coordinate. Past the end (also on an empty axis), the chunk that would be there.
    #[must_use]
    pub fn chunk(&self, coord: u64) -> AxisChunk {
        let run = match &self.edges {
            Edges::Regular(edge) => ChunkRun { coord: 0, start: 0, edge: *edge },
            Edges::Varied(varied) => varied.last_run(|run| run.coord <= coord),
        };
        let start = run.start.saturating_add((coord - run.coord).saturating_mul(run.edge));
        AxisChunk { coord, start, edge: run.edge }
    }

    /// The chunk that contains an element. Past the end, the chunk that would be there.
    #[must_use]
    pub fn chunk_containing(&self, element: u64) -> AxisChunk {
        match &self.edges {
            Edges::Regular(edge) => ChunkRun { coord: 0, start: 0, edge: *edge }.chunk_of(element),
            Edges::Varied(varied) => varied.last_run(|run| run.start <= element).chunk_of(element),
        }
    }

    /// Counts the chunks that a range touches, without visiting them.
    ///
    /// The count is exact, except where the step of the range is longer than the smallest edge and the range goes through more
    /// than 256 runs of equal chunks: then it may be too high, never too low.
    #[must_use]
    pub fn touched(&self, range: &AxisRange) -> TouchedChunkTotals {
        let Some(last) = range.count.checked_sub(1) else { return TouchedChunkTotals::default() };
        let (one_end, other_end) = (range.at(0), range.at(last));
        let (low, high) = (one_end.min(other_end), one_end.max(other_end));
        let step = range.step.unsigned_abs();
        match &self.edges {
            Edges::Regular(edge) => ChunkRun { coord: 0, start: 0, edge: *edge }.touched(low, high, step),
            // The range skips no chunk.
            Edges::Varied(varied) if step <= varied.smallest => self.span(low, high),
            Edges::Varied(varied) => self.touched_by_long_steps(varied, low, high, step),
        }
    }

    fn touched_by_long_steps(&self, varied: &Varied, low: u64, high: u64, step: u64) -> TouchedChunkTotals {
        let mut sum = TouchedChunkTotals::default();
        let mut at = low;
        for _ in 0..MAX_RUNS_WALKED {
            let place = varied.runs.partition_point(|run| run.start <= at);
            let run = varied.last_run(|run| run.start <= at);
            let end = varied.runs.get(place).map_or(u64::MAX, |next| next.start);
            let last = high.min(at + (end - 1 - at) / step * step);
            sum.add(run.touched(at, last, step));
            if last >= high {
                return sum;
            }
            at = last + step;
        }
        let span = self.span(at, high);
        let steps = (high - at) / step + 1;
        sum.add(TouchedChunkTotals {
            chunks: span.chunks.min(steps),
            elements: span.elements.min(u128::from(steps) * u128::from(varied.largest)),
        });
        sum
    }

    /// All chunks from the one that contains `low` to the one that contains `high`.
    fn span(&self, low: u64, high: u64) -> TouchedChunkTotals {
        let (first, last) = (self.chunk_containing(low), self.chunk_containing(high));
        let elements = last.start - first.start;
        TouchedChunkTotals {
            chunks: last.coord - first.coord + 1,
            elements: u128::from(elements) + u128::from(last.edge),
        }
    }

    /// The pieces of the range in each chunk, in the order of the range.
    pub fn pieces(&self, range: AxisRange) -> impl Iterator<Item = AxisPiece> + Clone + use<> {
        let axis = self.clone();
        let mut first = 0;
        std::iter::from_fn(move || {
            if first >= range.count {
                return None;
            }
            let element = range.at(first);
            let chunk = axis.chunk_containing(element);
            let start_in_chunk = element - chunk.start;
            let distance = if range.step > 0 { chunk.edge - 1 - start_in_chunk } else { start_in_chunk };
            let count = (distance / range.step.unsigned_abs() + 1).min(range.count - first);
            let piece = AxisPiece { chunk: chunk.coord, start_in_chunk, count, first };
            first += count;
            Some(piece)
        })
    }
}

impl Varied {
    /// The last run for which `is_before` holds. It must hold for the first run, and for no run after one for which it does
    /// not.
    fn last_run(&self, is_before: impl Fn(&ChunkRun) -> bool) -> ChunkRun {
        self.runs[self.runs.partition_point(is_before).saturating_sub(1)]
    }
}

impl ChunkRun {
    fn chunk_of(self, element: u64) -> AxisChunk {
        let place = (element - self.start) / self.edge;
        AxisChunk { coord: self.coord + place, start: self.start + place * self.edge, edge: self.edge }
    }

    /// The chunks of the run that contain the elements from `low` to `high`, `step` apart.
    fn touched(self, low: u64, high: u64, step: u64) -> TouchedChunkTotals {
        let chunks = if step >= self.edge {
            (high - low) / step + 1
        } else {
            self.chunk_of(high).coord - self.chunk_of(low).coord + 1
        };
        TouchedChunkTotals { chunks, elements: u128::from(chunks) * u128::from(self.edge) }
    }
}

impl TouchedChunkTotals {
    fn add(&mut self, other: Self) {
        self.chunks = self.chunks.saturating_add(other.chunks);
        self.elements = self.elements.saturating_add(other.elements);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(start: u64, count: u64, step: i64) -> AxisRange {
        AxisRange { start, count, step, keep: true }
    }

    fn runs(runs: &[(u64, u64)]) -> Vec<EdgeRun> {
        runs.iter().map(|&(edge, count)| EdgeRun { edge, count }).collect()
    }

    /// The naive axis: the first element and the edge of each chunk that has elements of the array.
    fn listed(length: u64, edges: &[u64]) -> Vec<(u64, u64)> {
        let mut start = 0;
        let mut chunks = Vec::new();
        for &edge in edges {
            if start < length {
                chunks.push((start, edge));
            }
            start += edge;
        }
        chunks
    }

    /// Compares an axis with the naive one, for one range.
    fn agrees(axis: &ChunkAxis, chunks: &[(u64, u64)], range: AxisRange) {
        let mut elements = Vec::new();
        let mut sum = TouchedChunkTotals::default();
        for piece in axis.pieces(range) {
            let (start, edge) = chunks[piece.chunk as usize];
            assert_eq!(piece.first, elements.len() as u64);
            for k in 0..piece.count {
                let inside = piece.start_in_chunk.checked_add_signed(k as i64 * range.step).unwrap();
                assert!(inside < edge);
                elements.push(start + inside);
            }
            sum.add(TouchedChunkTotals { chunks: 1, elements: edge.into() });
        }
        let expected: Vec<u64> = (0..range.count).map(|k| range.at(k)).collect();
        assert_eq!(elements, expected, "{axis:?} {range:?}");
        assert_eq!(axis.touched(&range), sum, "{axis:?} {range:?}");
    }

    #[test]
    fn pieces_cover_a_range_once_and_in_order() {
        for (length, edge) in [(10, 3), (10, 10), (10, 40), (7, 1), (100, 7)] {
            let axis = ChunkAxis::new(length, edge);
            let chunks = listed(length, &vec![edge; length.div_ceil(edge) as usize]);
            for start in 0..length {
                for step in [-9i64, -3, -2, -1, 1, 2, 3, 5, 11] {
                    let distance = if step > 0 { length - 1 - start } else { start };
                    for count in 0..=distance / step.unsigned_abs() + 1 {
                        agrees(&axis, &chunks, range(start, count, step));
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn an_axis_of_varied_edges_agrees_with_a_list_of_its_chunks(
            drawn in prop::collection::vec((1u64..9, 1u64..5), 1..9),
            cut in any::<prop::sample::Index>(),
            start in any::<prop::sample::Index>(),
            count in any::<prop::sample::Index>(),
            step in 1i64..20,
            down in any::<bool>(),
        ) {
            let edges: Vec<u64> =
                drawn.iter().flat_map(|&(edge, count)| vec![edge; count as usize]).collect();
            let sum: u64 = edges.iter().sum();
            // Some chunks, or all but a part of the first, may lie beyond the end.
            let length = 1 + cut.index(sum as usize) as u64;
            let axis = ChunkAxis::from_runs(length, &runs(&drawn));
            let chunks = listed(length, &edges);
            prop_assert_eq!(axis.chunks(), chunks.len() as u64);
            prop_assert_eq!(axis.end(), chunks.last().map_or(0, |(start, edge)| start + edge));
            for (coord, &(start, edge)) in chunks.iter().enumerate() {
                let coord = coord as u64;
                prop_assert_eq!(axis.chunk(coord), AxisChunk { coord, start, edge });
            }
            prop_assert!(chunks.iter().all(|&(_, edge)| edge <= axis.largest_edge()));
            prop_assert!(axis.edge().is_none_or(|one| chunks.iter().all(|&(_, edge)| edge == one)));
            let start = start.index(length as usize) as u64;
            let distance = if down { start } else { length - 1 - start };
            let count = count.index((distance / step as u64) as usize + 2) as u64;
            agrees(&axis, &chunks, range(start, count, if down { -step } else { step }));
        }
    }

    #[test]
    fn an_axis_of_length_0_has_no_chunks() {
        for edges in [runs(&[]), runs(&[(4, 1)]), runs(&[(4, 2), (1, 1 << 62)])] {
            let axis = ChunkAxis::from_runs(0, &edges);
            assert_eq!((axis.chunks(), axis.end()), (0, 0));
            assert_eq!(axis.touched(&range(0, 0, 1)), TouchedChunkTotals::default());
            assert_eq!(axis.pieces(range(0, 0, 1)).count(), 0);
            assert_eq!(axis.chunk(0).edge, edges.first().map_or(1, |run| run.edge));
        }
    }

    #[test]
    fn chunks_of_a_vast_axis_are_counted_without_visiting_them() {
        let chunks = |axis: ChunkAxis, range| axis.touched(&range).chunks;
        assert_eq!(chunks(ChunkAxis::new(1 << 62, 1), range(0, 1 << 62, 1)), 1 << 62);
        assert_eq!(chunks(ChunkAxis::new(1 << 62, 1 << 40), range(1, 1 << 61, 2)), 1 << 22);
    }

    #[test]
    fn a_run_of_two_to_the_62_chunks_is_found_by_arithmetic() {
        let vast = 1 << 62;
        let axis =
            ChunkAxis::from_runs(vast + 10, &runs(&[(1, vast), (3, vast), (i64::MAX as u64, u64::MAX)]));
        assert_eq!(axis.chunks(), vast + 4);
        assert_eq!(axis.end(), vast + 12);
        assert_eq!(axis.chunk(vast + 1), AxisChunk { coord: vast + 1, start: vast + 3, edge: 3 });
        let all = axis.touched(&range(0, vast + 10, 1));
        assert_eq!((all.chunks, all.elements), (vast + 4, u128::from(vast) + 12));
        let every_other = axis.touched(&range(0, vast / 2 + 5, 2));
        assert_eq!(every_other.chunks, vast / 2 + 3);
        assert_eq!(axis.pieces(range(vast - 1, 5, 1)).count(), 3);
        // One vast chunk that overhangs the largest array there is.
        let most = i64::MAX as u64;
        let axis = ChunkAxis::from_runs(most, &runs(&[(2, 1), (most, 1), (most, most)]));
        assert_eq!((axis.chunks(), axis.end()), (2, most + 2));
        assert_eq!(axis.touched(&range(most - 1, 1, i64::MIN)).elements, most.into());
    }

    #[test]
    fn chunks_that_long_steps_touch_in_many_runs_are_never_undercounted() {
        let edges: Vec<(u64, u64)> = (0..5000).map(|place| (1 + place % 7, 1)).collect();
        let length: u64 = edges.iter().map(|(edge, _)| edge).sum();
        let axis = ChunkAxis::from_runs(length, &runs(&edges));
        for step in [1, 2, 5, 7, 100] {
            let range = range(3, (length - 4) / step + 1, step as i64);
            let pieces: Vec<u64> = axis.pieces(range).map(|piece| axis.chunk(piece.chunk).edge).collect();
            let touched = axis.touched(&range);
            assert!(touched.chunks >= pieces.len() as u64, "{step}");
            assert!(touched.elements >= pieces.iter().sum::<u64>().into(), "{step}");
            assert!(touched.chunks <= range.count, "{step}");
        }
    }
}
