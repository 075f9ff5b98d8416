//! [`Pieces`]: the chunks of a selection that statistics are computed from: all of them, or a fixed sample.

use std::sync::Arc;

use super::bound_array::Array;
use super::error::ArrayError;
use super::plan::ReadLimits;
use crate::chunk::{AxisRange, ChunkAxis, Subset};

/// An automatic sample has at most this number of chunks,
const SAMPLE_CHUNKS: u64 = 64;
/// and about this number of decoded bytes.
const SAMPLE_BYTES: u64 = 64 << 20;
/// The most chunks along a dimension that are gone through one by one.
const MAX_WALKED: u64 = 1 << 20;

/// Which chunks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// All, if that is within the limits, else a sample.
    Auto,
    /// All.
    Exact,
    /// A sample of about this number of elements.
    Elements(u64),
}

/// The parts of a selection that lie in chunks, in C order.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// Each part as a selection.
    pub subsets: Vec<Subset>,
    /// Whether they are the whole selection: all its chunks, and all elements of each.
    pub is_exact: bool,
}

impl Pieces {
    /// Chooses the chunks of a selection. A sample is the same for the same selection of an array of the same geometry.
    /// `most_elements` bounds the elements of all parts, for what needs them in memory: where the sampled chunks have more, the
    /// parts have elements at equal distances, the same in every chunk.
    ///
    /// # Errors
    /// [`ArrayError::TooLarge`] if all chunks are asked for and are over a limit, or if a single one cannot be decoded within
    /// them.
    pub fn choose(
        array: &Arc<Array>,
        subset: &Subset,
        sampling: Sampling,
        limits: &ReadLimits,
        most_elements: u64,
    ) -> Result<Self, ArrayError> {
        let item = array.metadata().data_type.element_bytes() as u128;
        let axes: Vec<(AxisRange, &ChunkAxis)> =
            subset.axes().iter().copied().zip(array.decoded_axes()).collect();
        let (mut chunks, mut decoded, mut largest): (u128, u128, u128) = (1, item, item);
        for (range, axis) in &axes {
            let touched = axis.touched(range);
            chunks = chunks.saturating_mul(touched.chunks.into());
            decoded = decoded.saturating_mul(touched.elements);
            largest = largest.saturating_mul(axis.largest_edge().into());
        }
        let excess = [
            ("decoded chunks", chunks, limits.max_chunks),
            ("decoded bytes", decoded, limits.max_decoded_size),
            ("elements in memory", subset.elements(), most_elements),
        ]
        .into_iter()
        .find(|&(_, requested, limit)| requested > limit.into());
        let count = match (sampling, excess) {
            (Sampling::Auto | Sampling::Exact, None) => chunks,
            (Sampling::Exact, Some((what, requested, limit))) => {
                return Err(ArrayError::TooLarge { what, requested, limit });
            }
            (Sampling::Auto, Some(_)) => {
                u128::from((SAMPLE_BYTES / clamped(largest)).clamp(1, SAMPLE_CHUNKS))
            }
            (Sampling::Elements(elements), _) => {
                let each = (largest / item.max(1)).max(1);
                u128::from(elements.min(most_elements)).div_ceil(each).max(1)
            }
        };
        let most = u128::from(limits.max_chunks).min(u128::from(limits.max_decoded_size) / largest.max(1));
        let count = if count >= chunks && excess.is_none() { chunks } else { count.min(most).min(chunks) };
        if count == 0 && chunks > 0 {
            let limit = limits.max_decoded_size;
            return Err(ArrayError::TooLarge { what: "decoded bytes", requested: largest, limit });
        }
        let is_exact = count == chunks && excess.is_none();
        let steps = if is_exact { vec![1; axes.len()] } else { steps(&axes, most_elements / clamped(count)) };
        let places = sample(chunks, count);
        let lengths: Vec<u64> = axes.iter().map(|(range, axis)| axis.touched(range).chunks).collect();
        let mut subsets = Vec::with_capacity(places.len());
        for place in places {
            let piece = piece(&axes, &lengths, place)?.0.into_iter().zip(&steps);
            subsets.push(Subset(piece.map(|(range, &step)| thinned(range, step)).collect()));
        }
        Ok(Self { subsets, is_exact })
    }
}

/// The distances of the elements along each dimension with which no piece has more than `most` elements: powers of two. The
/// same for all pieces, so that no chunk counts more than another.
fn steps(axes: &[(AxisRange, &ChunkAxis)], most: u64) -> Vec<u64> {
    let of_piece = |(range, axis): &(AxisRange, &ChunkAxis)| {
        range.count.min(axis.largest_edge().div_ceil(range.step.unsigned_abs().max(1)))
    };
    let mut lengths: Vec<u64> = axes.iter().map(of_piece).collect();
    let mut steps = vec![1_u64; axes.len()];
    while lengths.iter().fold(1_u64, |count, &length| count.saturating_mul(length)) > most.max(1) {
        let Some(longest) = (0..lengths.len()).max_by_key(|&axis| lengths[axis]) else { break };
        lengths[longest] = lengths[longest].div_ceil(2);
        steps[longest] = steps[longest].saturating_mul(2);
    }
    steps
}

/// The first of every `step` elements of a range.
fn thinned(range: AxisRange, step: u64) -> AxisRange {
    let distance = range.step.saturating_mul(i64::try_from(step).unwrap_or(i64::MAX));
    // The distance of a single element is of no use, and could be too large for the range.
    let step_of = |count: u64| if count > 1 { distance } else { range.step };
    let count = range.count.div_ceil(step);
    AxisRange { count, step: step_of(count), ..range }
}

/// The piece at a place in the C order of all pieces.
fn piece(axes: &[(AxisRange, &ChunkAxis)], lengths: &[u64], place: u128) -> Result<Subset, ArrayError> {
    let mut rest = place;
    let mut ranges = Vec::with_capacity(axes.len());
    for ((range, axis), &length) in axes.iter().zip(lengths).rev() {
        let length = u128::from(length.max(1));
        let at = u64::try_from(rest % length).unwrap_or(u64::MAX);
        rest /= length;
        ranges.push(part(range, axis, at)?);
    }
    ranges.reverse();
    Ok(Subset(ranges))
}

/// The part of a range that lies in the chunk at this place, counted from the first that it touches.
fn part(range: &AxisRange, axis: &ChunkAxis, at: u64) -> Result<AxisRange, ArrayError> {
    if range.step == 1 {
        let chunk = axis.chunk(axis.chunk_containing(range.start).coord.saturating_add(at));
        let start = chunk.start.max(range.start);
        let end = chunk.start.saturating_add(chunk.edge).min(range.start.saturating_add(range.count));
        return Ok(range.part(start - range.start, end.saturating_sub(start)));
    }
    if at > MAX_WALKED {
        return Err(ArrayError::TooLarge {
            what: "chunks along a dimension with a step",
            requested: at.into(),
            limit: MAX_WALKED,
        });
    }
    let place = usize::try_from(at).unwrap_or(usize::MAX);
    let piece = axis.pieces(*range).nth(place);
    Ok(piece.map_or(range.part(0, 0), |piece| range.part(piece.first, piece.count)))
}

/// That number of different places below `all`, in order, spread evenly in every dimension: multiples of a number near the golden
/// section of `all`, which has no divisor in common with it.
fn sample(all: u128, count: u128) -> Vec<u128> {
    if count >= all {
        return (0..all).collect();
    }
    let golden = all / 1000 * 618 + all % 1000 * 618 / 1000;
    let step =
        (golden.max(1)..=golden.saturating_add(1 << 20)).find(|&step| gcd(step, all) == 1).unwrap_or(1);
    // Below 2^63 elements an array has fewer chunks, so that the products fit.
    let mut places: Vec<u128> = (0..count).map(|at| (at + 1).wrapping_mul(step) % all).collect();
    places.sort_unstable();
    places
}

fn gcd(one: u128, other: u128) -> u128 {
    if other == 0 { one } else { gcd(other, one % other) }
}

fn clamped(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_different_places_in_order() {
        for (all, count) in [(1, 1), (10, 3), (1000, 64), (100_000, 64), (97, 96), (1 << 62, 64)] {
            let places = sample(all, count);
            assert_eq!(places.len() as u128, count);
            assert!(
                places.windows(2).all(|pair| pair[0] < pair[1]) && places.iter().all(|&place| place < all)
            );
        }
        assert_eq!(sample(5, 9), [0, 1, 2, 3, 4]);
        assert!(sample(0, 0).is_empty());
    }
}
