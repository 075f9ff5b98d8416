//! [`Window`]: which elements of a chunk go where in an answer.

use super::ChunkAxis;
use super::subset::AxisRange;

/// Which elements of a chunk (or of an inner chunk) are wanted, and where in the answer's bytes they go.
///
/// One entry a dimension of the chunk; permuting the entries is all that a transposed chunk takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    axes: Vec<WindowAxis>,
    out_offset: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WindowAxis {
    /// In elements of the chunk along this dimension.
    range: AxisRange,
    /// Bytes in the answer from one element of the range to the next.
    out_stride: usize,
}

impl Window {
    /// The whole of an answer in C order, which the ranges select from one box (an array, or a chunk).
    #[must_use]
    pub fn packed(ranges: &[AxisRange], item_bytes: usize) -> Self {
        let mut out_stride = item_bytes;
        let mut axes: Vec<WindowAxis> = ranges
            .iter()
            .rev()
            .map(|&range| {
                let axis = WindowAxis { range, out_stride };
                out_stride = out_stride.saturating_mul(usize::try_from(range.count).unwrap_or(usize::MAX));
                axis
            })
            .collect();
        axes.reverse();
        Self { axes, out_offset: 0 }
    }

    /// The ranges, one a dimension.
    #[must_use]
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = &AxisRange> + DoubleEndedIterator {
        self.axes.iter().map(|axis| &axis.range)
    }

    /// The strides of the answer in bytes, one a dimension.
    pub(super) fn out_strides(&self) -> impl ExactSizeIterator<Item = usize> + DoubleEndedIterator {
        self.axes.iter().map(|axis| axis.out_stride)
    }

    /// Where in the answer the window's first element goes.
    #[must_use]
    pub fn out_offset(&self) -> usize {
        self.out_offset
    }

    /// The same window on a box whose dimension `i` is this one's dimension `order[i]`.
    #[must_use]
    pub fn permuted(&self, order: &[usize]) -> Self {
        let axes = order.iter().filter_map(|&axis| self.axes.get(axis).copied()).collect();
        Self { axes, out_offset: self.out_offset }
    }

    /// The window with other ranges and the answer's strides as they are: for an answer of which only a corner is shown.
    #[must_use]
    pub fn part(&self, ranges: &[AxisRange]) -> Self {
        let axes = self.axes.iter().zip(ranges).map(|(axis, &range)| WindowAxis { range, ..*axis }).collect();
        Self { axes, out_offset: self.out_offset }
    }

    /// The window cut along a grid: each chunk of the grid that it touches, with the part of the window in that chunk,
    /// in C order of the answer. Lazy: the grid may be vast.
    pub fn cut(&self, grid: &[ChunkAxis]) -> impl Iterator<Item = (Vec<u64>, Window)> + use<> {
        let axes: Vec<WindowAxis> = self.axes.iter().zip(grid).map(|(&axis, _)| axis).collect();
        let mut state: Vec<_> =
            axes.iter().zip(grid).map(|(axis, chunks)| chunks.pieces(axis.range)).collect();
        let fresh = state.clone();
        let mut current: Option<Vec<_>> = state.iter_mut().map(Iterator::next).collect();
        let out_offset = self.out_offset;
        std::iter::from_fn(move || {
            let pieces = current.take()?;
            let coords = pieces.iter().map(|piece| piece.chunk).collect();
            let mut window = Window { axes: Vec::with_capacity(pieces.len()), out_offset };
            for (piece, axis) in pieces.iter().zip(&axes) {
                let range = AxisRange { start: piece.start_in_chunk, count: piece.count, ..axis.range };
                window.axes.push(WindowAxis { range, ..*axis });
                // Within the answer, whose bytes are in memory: no overflow.
                window.out_offset +=
                    usize::try_from(piece.first).unwrap_or(usize::MAX).saturating_mul(axis.out_stride);
            }
            // Odometer: the last dimension turns fastest.
            let mut pieces = pieces;
            for axis in (0..state.len()).rev() {
                if let Some(next) = state[axis].next() {
                    pieces[axis] = next;
                    current = Some(pieces);
                    break;
                }
                state[axis] = fresh[axis].clone();
                if let Some(first) = state[axis].next() {
                    pieces[axis] = first;
                }
            }
            Some((coords, window))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkGrid;

    #[test]
    fn cutting_a_window_covers_every_element_of_the_answer_once() {
        let grid = ChunkGrid::regular(&[7, 9], &[3, 4]);
        let ranges = [
            AxisRange { start: 6, count: 4, step: -2, keep: true },
            AxisRange { start: 1, count: 4, step: 2, keep: true },
        ];
        let mut seen = vec![None; 16];
        for (coords, window) in Window::packed(&ranges, 1).cut(grid.axes()) {
            let [rows, columns] = &window.axes[..] else { panic!() };
            for i in 0..rows.range.count {
                for j in 0..columns.range.count {
                    let place =
                        window.out_offset + i as usize * rows.out_stride + j as usize * columns.out_stride;
                    let element = (coords[0] * 3 + rows.range.at(i), coords[1] * 4 + columns.range.at(j));
                    assert_eq!(seen[place].replace(element), None);
                }
            }
        }
        let expected: Vec<_> =
            [6, 4, 2, 0].iter().flat_map(|&i| [1, 3, 5, 7].map(|j| Some((i, j)))).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_rank_0_window_touches_the_one_chunk_there_is() {
        let cut: Vec<_> = Window::packed(&[], 8).cut(&[]).collect();
        assert_eq!(cut, [(vec![], Window { axes: vec![], out_offset: 0 })]);
    }

    #[test]
    fn an_empty_window_touches_no_chunk() {
        let ranges = [AxisRange::whole(5), AxisRange { start: 0, count: 0, step: 1, keep: true }];
        assert_eq!(Window::packed(&ranges, 1).cut(ChunkGrid::regular(&[5, 5], &[2, 2]).axes()).count(), 0);
    }
}
