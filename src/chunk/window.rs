//! [`CopyRegion`]: a window on the elements of a chunk, and their places in a response.

use std::ops::Range;

use super::subset::AxisRange;
use super::{ChunkAxis, Runs};

/// A window on the elements of a chunk (or of an inner chunk), and their places in the bytes of a response.
///
/// It has one entry per dimension of the chunk, so a transposed chunk only permutes the entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyRegion {
    axes: Vec<CopyAxis>,
    out_offset: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CopyAxis {
    /// Elements of the chunk along this dimension.
    range: AxisRange,
    /// Bytes in the response from one element of the range to the next.
    out_stride: usize,
}

/// Some rows of a chunk, or one run of elements of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The bytes of the rows among the chunk's items.
    pub items: Runs,
    /// The shape of their elements, as an array of their own.
    pub shape: Vec<u64>,
    /// The first element of that array along each dimension of the chunk.
    start: Vec<u64>,
}

impl CopyRegion {
    /// The window of a whole response in C order, which the ranges select from one box (an array, or a chunk).
    #[must_use]
    pub fn packed(ranges: &[AxisRange], element_bytes: usize) -> Self {
        let mut out_stride = element_bytes;
        let mut axes: Vec<CopyAxis> = ranges
            .iter()
            .rev()
            .map(|&range| {
                let axis = CopyAxis { range, out_stride };
                out_stride = out_stride.saturating_mul(usize::try_from(range.count).unwrap_or(usize::MAX));
                axis
            })
            .collect();
        axes.reverse();
        Self { axes, out_offset: 0 }
    }

    /// The ranges, one per dimension.
    #[must_use]
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = &AxisRange> + DoubleEndedIterator {
        self.axes.iter().map(|axis| &axis.range)
    }

    /// The strides of the response in bytes, one per dimension.
    pub(super) fn out_strides(&self) -> impl ExactSizeIterator<Item = usize> + DoubleEndedIterator {
        self.axes.iter().map(|axis| axis.out_stride)
    }

    /// The offset in the response of the window's first element, in bytes.
    #[must_use]
    pub fn out_offset(&self) -> usize {
        self.out_offset
    }

    /// The bytes of the response from the window's first element to its last. Between them, others may have bytes.
    #[must_use]
    pub fn out_range(&self, element_bytes: usize) -> Range<usize> {
        let end = self.axes.iter().fold(self.out_offset.saturating_add(element_bytes), |end, axis| {
            let steps = usize::try_from(axis.range.count.saturating_sub(1)).unwrap_or(usize::MAX);
            end.saturating_add(steps.saturating_mul(axis.out_stride))
        });
        self.out_offset..end
    }

    /// The same window for the part of the response from this byte on. A window that begins before fits no part.
    #[must_use]
    pub fn relative_to_byte(self, start: usize) -> Self {
        Self { out_offset: self.out_offset.checked_sub(start).unwrap_or(usize::MAX), ..self }
    }

    /// The same window on a box whose dimension `i` is this one's dimension `order[i]`.
    #[must_use]
    pub fn transpose(&self, order: &[usize]) -> Self {
        let axes = order.iter().filter_map(|&axis| self.axes.get(axis).copied()).collect();
        Self { axes, out_offset: self.out_offset }
    }

    /// The window with other ranges and the same strides, for a response of which only a corner is copied.
    #[must_use]
    pub fn with_ranges(&self, ranges: &[AxisRange]) -> Self {
        let axes = self.axes.iter().zip(ranges).map(|(axis, &range)| CopyAxis { range, ..*axis }).collect();
        Self { axes, out_offset: self.out_offset }
    }

    /// Whether the response has all elements of the chunk of this shape.
    #[must_use]
    pub fn covers(&self, shape: &[u64]) -> bool {
        self.axes.len() == shape.len()
            && self.axes.iter().zip(shape).all(|(axis, &length)| axis.range.count == length)
    }

    /// Whether the response is exactly the chunk of this shape, in its order.
    #[must_use]
    pub fn is_identity(&self, shape: &[u64], element_bytes: usize) -> bool {
        let whole: Vec<AxisRange> = shape.iter().map(|&length| AxisRange::full(length)).collect();
        let packed = Self::packed(&whole, element_bytes);
        let as_packed = self.axes.iter().zip(&packed.axes).all(|(own, packed)| {
            let (from, to) = (own.range, packed.range);
            let is_single = to.count == 1;
            from.start == 0
                && from.count == to.count
                && (is_single || (from.step == 1 && own.out_stride == packed.out_stride))
        });
        self.out_offset == 0 && self.axes.len() == shape.len() && as_packed
    }

    /// The rows of a chunk of this shape that these windows need, and the run within each row that contains all needed
    /// elements; `None` if that is the whole chunk.
    ///
    /// A row is all elements at one place along a dimension. The rows are along the first dimension in which the windows need
    /// more than one place.
    #[must_use]
    pub fn row_range<'a>(
        windows: impl Iterator<Item = &'a Self>,
        shape: &[u64],
        element_bytes: usize,
    ) -> Option<RowRange> {
        let shown = shown(windows, shape)?;
        let next = |from: usize| {
            let several = shown.iter().skip(from).position(|places| places.end - places.start > 1);
            several.map_or(shape.len(), |place| from + place)
        };
        let along = next(0);
        let within = next(along + 1);
        let mut rows =
            RowRange { items: Runs::default(), shape: shape.to_vec(), start: vec![0; shape.len()] };
        let (mut start, mut count, mut length) = (0_u64, 1, element_bytes as u64);
        let (mut stride, mut row) = (element_bytes as u64, element_bytes as u64);
        for (axis, (places, &edge)) in shown.iter().zip(shape).enumerate().rev() {
            if axis <= within {
                start = start.checked_add(places.start.checked_mul(stride)?)?;
                *rows.shape.get_mut(axis)? = places.end - places.start;
                *rows.start.get_mut(axis)? = places.start;
            }
            if axis == along {
                (count, row) = (places.end - places.start, stride);
            } else {
                length = length.checked_mul(*rows.shape.get(axis)?)?;
            }
            stride = stride.checked_mul(edge)?;
        }
        if length == row {
            // Whole rows are contiguous.
            (count, length) = (1, length.checked_mul(count)?);
            row = length;
        }
        if length >= stride {
            return None;
        }
        let number = |bytes: u64| usize::try_from(bytes).ok();
        let [start, count, length, stride] = [number(start)?, number(count)?, number(length)?, number(row)?];
        rows.items = Runs { start, count, length, stride };
        Some(rows)
    }

    /// The same window on these rows of its chunk, as an array of their own.
    #[must_use]
    pub fn relative_to(&self, rows: &RowRange) -> Self {
        let mut window = self.clone();
        for (axis, start) in window.axes.iter_mut().zip(&rows.start) {
            axis.range.start = axis.range.start.saturating_sub(*start);
        }
        window
    }

    /// Splits the window along a grid: gives each chunk of the grid that it touches with the part of the window in that chunk,
    /// in C order of the response. The iterator is lazy, because the grid may be vast.
    pub fn split_by_chunks(
        &self,
        grid: &[ChunkAxis],
    ) -> impl Iterator<Item = (Vec<u64>, CopyRegion)> + use<> {
        let axes: Vec<CopyAxis> = self.axes.iter().zip(grid).map(|(&axis, _)| axis).collect();
        let mut state: Vec<_> =
            axes.iter().zip(grid).map(|(axis, chunks)| chunks.pieces(axis.range)).collect();
        let fresh = state.clone();
        let mut current: Option<Vec<_>> = state.iter_mut().map(Iterator::next).collect();
        let out_offset = self.out_offset;
        std::iter::from_fn(move || {
            let pieces = current.take()?;
            let coords = pieces.iter().map(|piece| piece.chunk).collect();
            let mut window = CopyRegion { axes: Vec::with_capacity(pieces.len()), out_offset };
            for (piece, axis) in pieces.iter().zip(&axes) {
                let range = AxisRange { start: piece.start_in_chunk, count: piece.count, ..axis.range };
                window.axes.push(CopyAxis { range, ..*axis });
                // The offset lies within the response, whose bytes are in memory: no overflow.
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

/// The bounding box of the windows on a chunk of this shape, as a range of places along each dimension.
fn shown<'a>(windows: impl Iterator<Item = &'a CopyRegion>, shape: &[u64]) -> Option<Vec<Range<u64>>> {
    let mut shown: Option<Vec<Range<u64>>> = None;
    for window in windows {
        if window.axes.len() != shape.len() || window.axes.iter().any(|axis| axis.range.count == 0) {
            return None;
        }
        let places = window.ranges().map(|range| {
            let (first, last) = (range.at(0), range.at(range.count - 1));
            first.min(last)..first.max(last).saturating_add(1)
        });
        shown = Some(match shown {
            None => places.collect(),
            Some(shown) => {
                let both = shown.into_iter().zip(places);
                both.map(|(a, b)| a.start.min(b.start)..a.end.max(b.end)).collect()
            }
        });
    }
    shown.filter(|shown| shown.iter().zip(shape).all(|(places, &edge)| places.end <= edge))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkGrid;

    #[test]
    fn split_windows_cover_every_element_of_the_response_once() {
        let grid = ChunkGrid::regular(&[7, 9], &[3, 4]);
        let ranges = [
            AxisRange { start: 6, count: 4, step: -2, keep: true },
            AxisRange { start: 1, count: 4, step: 2, keep: true },
        ];
        let mut seen = vec![None; 16];
        for (coords, window) in CopyRegion::packed(&ranges, 1).split_by_chunks(grid.axes()) {
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
    fn a_rank_0_window_touches_the_only_chunk() {
        let cut: Vec<_> = CopyRegion::packed(&[], 8).split_by_chunks(&[]).collect();
        assert_eq!(cut, [(vec![], CopyRegion { axes: vec![], out_offset: 0 })]);
    }

    #[test]
    fn an_empty_window_touches_no_chunk() {
        let ranges = [AxisRange::full(5), AxisRange { start: 0, count: 0, step: 1, keep: true }];
        assert_eq!(
            CopyRegion::packed(&ranges, 1)
                .split_by_chunks(ChunkGrid::regular(&[5, 5], &[2, 2]).axes())
                .count(),
            0
        );
    }
}
