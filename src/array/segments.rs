//! [`segments`]: divides a response into the parts that are assembled at a time.

use std::ops::Range;

use super::bound_array::Array;
use super::error::ArrayError;
use crate::chunk::{AxisRange, ChunkAxis, Subset};

/// Stored elements of this many bytes are read as one box, however small a segment is to be.
const LEAST_WHOLE_BYTES: u64 = 4 << 10;

/// The most bytes of stored elements that are read as one box to be reduced, for segments of this size.
pub(super) fn whole_bytes(segment_bytes: u64) -> u64 {
    segment_bytes.max(LEAST_WHOLE_BYTES)
}

/// A part of a response that is assembled at a time: consecutive bytes of it, and the stored elements that they are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseSegment {
    pub(super) subset: Subset,
    pub(super) bytes: Range<u64>,
}

impl ResponseSegment {
    /// Bytes of its stored elements (saturated).
    pub(super) fn source_bytes(&self, element_bytes: usize) -> u64 {
        u64::try_from(self.subset.elements().saturating_mul(element_bytes as u128)).unwrap_or(u64::MAX)
    }
}

/// The segments that contain these bytes of a response, in order: of the elements of `subset`, reduced by a factor for each
/// dimension (1 for a response that is not reduced). An element has `item` bytes. The iterator is lazy.
///
/// Leading dimensions are taken one result at a time, until the stored elements of the rest of the dimensions fit in
/// `band_bytes`. The first dimension that fits is cut where chunks and windows end, or within chunks where the elements of one
/// chunk do not fit. Where the window of a single result does not fit, a segment is one result.
pub(super) fn segments(
    array: &Array,
    subset: &Subset,
    factors: &[u64],
    item: u64,
    band_bytes: u64,
    bytes: Range<u64>,
) -> impl Iterator<Item = ResponseSegment> + Send + use<> {
    let grid = array.grid().axes().to_vec();
    let axes = windowed(subset, factors);
    // Bytes of the response per result of each dimension; within the response limit.
    let mut per_result = vec![item; axes.len()];
    for axis in (1..axes.len()).rev() {
        per_result[axis - 1] = per_result[axis].saturating_mul(axes[axis].results());
    }
    let total = axes.first().map_or(item, |first| per_result[0].saturating_mul(first.results()));
    let per_source = source_bytes(&axes, item);
    let cut = per_source.iter().position(|&one| one <= band_bytes).unwrap_or(axes.len().saturating_sub(1));
    let end = bytes.end.min(total);
    let mut at = bytes.start;
    // The first segment begins where its unit does, which may be before the first requested byte.
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let Some(&unit) = per_result.get(cut) else {
            // Rank 0: one element.
            at = end;
            return Some(ResponseSegment { subset: Subset(Vec::new()), bytes: 0..total });
        };
        let mut subset = Vec::with_capacity(axes.len());
        let mut rest = at;
        for axis in 0..cut {
            subset.push(axes[axis].windows(rest / per_result[axis], 1));
            rest %= per_result[axis];
        }
        let first = rest / unit;
        let start = at - rest + first * unit;
        // No further than the requested bytes.
        let limit = (band_bytes / per_source[cut].max(1)).min((end - start).div_ceil(unit));
        let count = segment_length(&axes[cut], first, &grid[cut], limit);
        subset.push(axes[cut].windows(first, count));
        subset.extend(axes[cut + 1..].iter().map(|axis| axis.range));
        at = start + count * unit;
        Some(ResponseSegment { subset: Subset(subset), bytes: start..at })
    })
}

/// The lengths of a box in memory.
pub(super) fn lengths(subset: &Subset) -> Result<Vec<usize>, ArrayError> {
    let lengths = subset.axes().iter().map(|axis| usize::try_from(axis.count));
    lengths.collect::<Result<_, _>>().map_err(|_too_long| ArrayError::Geometry)
}

/// A dimension of a selection, divided into windows.
#[derive(Clone, Copy, Debug)]
struct WindowedAxis {
    range: AxisRange,
    factor: u64,
}

impl WindowedAxis {
    /// Its windows.
    fn results(&self) -> u64 {
        self.range.count.div_ceil(self.factor)
    }

    /// Elements of the largest window.
    fn window(&self) -> u64 {
        self.factor.min(self.range.count)
    }

    /// The elements of some windows.
    fn windows(&self, first: u64, count: u64) -> AxisRange {
        let start = first.saturating_mul(self.factor).min(self.range.count);
        self.range.part(start, count.saturating_mul(self.factor).min(self.range.count - start))
    }
}

fn windowed(subset: &Subset, factors: &[u64]) -> Vec<WindowedAxis> {
    let factors = factors.iter().copied().chain(std::iter::repeat(1));
    let axes = subset.axes().iter().zip(factors);
    axes.map(|(&range, factor)| WindowedAxis { range, factor: factor.max(1) }).collect()
}

/// For each dimension, the bytes of the stored elements of one of its results, with all results of the dimensions after it and
/// one result of each dimension before it (saturated).
fn source_bytes(axes: &[WindowedAxis], item: u64) -> Vec<u64> {
    let after = axes.iter().rev().scan(item, |bytes, axis| {
        let one = bytes.saturating_mul(axis.window());
        *bytes = bytes.saturating_mul(axis.range.count);
        Some(one)
    });
    let mut bytes: Vec<u64> = after.collect();
    bytes.reverse();
    let mut before = 1_u64;
    for (bytes, axis) in bytes.iter_mut().zip(axes) {
        *bytes = bytes.saturating_mul(before);
        before = before.saturating_mul(axis.window());
    }
    bytes
}

/// How many windows, from this one on, go into a segment of at most `limit`: as many as end where the elements in one chunk
/// do, or `limit` where none of them does.
fn segment_length(axis: &WindowedAxis, first: u64, chunks: &ChunkAxis, limit: u64) -> u64 {
    let remaining = axis.results().saturating_sub(first);
    let range = axis.windows(first, remaining);
    let most = limit.saturating_mul(axis.factor);
    let (mut elements, mut count) = (0_u64, 0);
    for piece in chunks.pieces(range) {
        elements += piece.count;
        if elements > most && elements < range.count {
            break;
        }
        if elements.is_multiple_of(axis.factor) || elements == range.count {
            let windows = elements.div_ceil(axis.factor);
            if windows > limit {
                break;
            }
            count = windows;
        }
    }
    if count == 0 { limit.clamp(1, remaining.max(1)) } else { count }
}
