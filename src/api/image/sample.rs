//! The sample of an array that its default range comes from.
//!
//! The same chunks for everyone: a lattice of at most 64 chunks and 16 MiB, as evenly spread as the grid allows, and of each
//! chunk at most 16384 elements at equal distances.

use std::sync::Arc;

use futures::TryStreamExt;

use crate::array::{Array, ArrayError, Plan, ReadContext, ReadLimits};
use crate::chunk::{AxisRange, Subset};
use crate::render::Conversion;
use crate::render::raster::{Decoding, Plane};
use crate::services::state::AppState;

/// Most chunks of a sample.
const MOST_CHUNKS: u64 = 64;
/// Most decoded bytes of a sample, unless one chunk has more.
const MOST_BYTES: u64 = 16 << 20;
/// Most elements of a chunk.
const MOST_ELEMENTS: u64 = 1 << 14;

/// The boxes of a sample. Of a dimension with channels, one index is sampled.
pub(crate) fn lattice(array: &Array, channel: Option<(usize, u64)>) -> Vec<Subset> {
    let axes = array.decoded_axes();
    let item = array.metadata().data_type.element_bytes() as u64;
    let chunk_bytes = axes.iter().fold(item, |bytes, axis| bytes.saturating_mul(axis.largest_edge()));
    let most = (MOST_BYTES / chunk_bytes.max(1)).clamp(1, MOST_CHUNKS);
    let is_free = |axis: usize| channel.is_none_or(|(fixed, _)| fixed != axis);
    let chunks: Vec<u64> =
        axes.iter().enumerate().map(|(at, axis)| if is_free(at) { axis.chunks() } else { 1 }).collect();
    let counts = spread(&chunks, most);
    let mut boxes = vec![Vec::new()];
    for (at, (axis, &count)) in axes.iter().zip(&counts).enumerate() {
        let ranges: Vec<AxisRange> = match channel {
            Some((fixed, index)) if fixed == at => {
                vec![AxisRange { start: index, count: 1, step: 1, keep: true }]
            }
            _ => (0..count)
                .map(|place| {
                    // The chunk in the middle of each equal part of the dimension.
                    let wide = (u128::from(place) * 2 + 1) * u128::from(chunks[at]) / (u128::from(count) * 2);
                    let chunk = axis.chunk(u64::try_from(wide).unwrap_or_default());
                    let end = chunk.start.saturating_add(chunk.edge).min(axis_length(array, at));
                    AxisRange {
                        start: chunk.start,
                        count: end.saturating_sub(chunk.start),
                        step: 1,
                        keep: true,
                    }
                })
                .collect(),
        };
        boxes = boxes
            .iter()
            .flat_map(|before: &Vec<AxisRange>| {
                ranges.iter().map(move |range| before.iter().copied().chain([*range]).collect())
            })
            .collect();
    }
    boxes.into_iter().map(|ranges| Subset(thinned(ranges))).collect()
}

/// The length of a dimension of the array, which the chunks of shards may exceed.
fn axis_length(array: &Array, axis: usize) -> u64 {
    array.metadata().shape.get(axis).copied().unwrap_or_default()
}

/// How many chunks are sampled along each dimension: the dimension with the most chunks for each that is sampled gets the next,
/// as long as there are at most `most` in all.
fn spread(chunks: &[u64], most: u64) -> Vec<u64> {
    let mut counts = vec![1_u64; chunks.len()];
    let mut is_full: Vec<bool> = chunks.iter().map(|&count| count <= 1).collect();
    while let Some(axis) = (0..chunks.len())
        .filter(|&axis| !is_full[axis])
        .max_by_key(|&axis| (chunks[axis] / counts[axis], std::cmp::Reverse(axis)))
    {
        counts[axis] += 1;
        if counts.iter().product::<u64>() > most {
            counts[axis] -= 1;
            is_full[axis] = true;
        }
        if counts[axis] == chunks[axis] {
            is_full[axis] = true;
        }
    }
    counts
}

/// The same ranges with steps, so that they have few elements: the longest gets the next step.
fn thinned(mut ranges: Vec<AxisRange>) -> Vec<AxisRange> {
    while ranges.iter().fold(1_u64, |count, range| count.saturating_mul(range.count)) > MOST_ELEMENTS {
        let Some(longest) = ranges.iter_mut().max_by_key(|range| range.count) else { break };
        longest.step = longest.step.saturating_mul(2);
        longest.count = longest.count.div_ceil(2);
    }
    ranges
}

/// The memory in bytes that reading a sample takes: a chunk at a time, and all numbers.
pub(crate) fn memory_bytes(array: &Array) -> u64 {
    let item = array.metadata().data_type.element_bytes() as u64;
    let axes = array.decoded_axes();
    let chunk = axes.iter().fold(item, |bytes, axis| bytes.saturating_mul(axis.largest_edge()));
    let elements = array.metadata().shape.iter().fold(1_u64, |count, &length| count.saturating_mul(length));
    let all = (elements.saturating_mul(item)).min(chunk);
    all.saturating_add(elements.min(MOST_CHUNKS * MOST_ELEMENTS) * size_of::<f64>() as u64)
}

/// The plans of a sample.
///
/// # Errors
/// [`ArrayError::TooLarge`] if one chunk is larger than what a request may decode.
pub(crate) fn plans(
    array: &Arc<Array>,
    channel: Option<(usize, u64)>,
    limits: &ReadLimits,
) -> Result<Vec<Plan>, ArrayError> {
    lattice(array, channel).into_iter().map(|subset| Plan::new(array, subset, limits)).collect()
}

/// The numbers of a sample.
pub(crate) async fn numbers(
    state: &AppState,
    plans: &[Plan],
    conversion: Option<&Arc<Conversion>>,
    decoding: &Decoding,
    context: &Arc<ReadContext>,
) -> Result<Vec<f64>, ArrayError> {
    let mut numbers = Vec::new();
    for plan in plans {
        let snapshot = state.engine.reader.snapshot(plan, context).await?;
        let mut parts = state.engine.reader.elements(snapshot, 0..plan.response_bytes(), context);
        while let Some(part) = parts.try_next().await? {
            let (items, decoding, conversion) = (part.into_items(), decoding.clone(), conversion.cloned());
            let read = state.engine.cpu.run_or_inline(items.len() as u64, move || {
                let items = conversion.map_or(items.clone(), |conversion| conversion.convert(items));
                let element_bytes = decoding.data_type().element_bytes().max(1);
                let count = items.len() / element_bytes;
                Plane::new(items, element_bytes, count, 1)
                    .map(|plane| plane.numbers(&decoding))
                    .unwrap_or_default()
            });
            numbers.append(&mut read.await?);
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_the_longest_dimensions() {
        for (chunks, most, counts) in [
            (&[1, 1][..], 64, vec![1, 1]),
            (&[4, 4], 64, vec![4, 4]),
            (&[1000, 1], 64, vec![64, 1]),
            (&[1000, 1000], 64, vec![8, 8]),
            (&[10, 1000, 1000], 1, vec![1, 1, 1]),
            (&[2, 100, 100], 64, vec![1, 8, 8]),
            (&[], 64, vec![]),
        ] {
            let found = spread(chunks, most);
            assert_eq!(found, counts, "{chunks:?} {most}");
        }
    }

    #[test]
    fn a_chunk_is_thinned_to_a_bounded_number_of_elements() {
        let range = |count| AxisRange { start: 0, count, step: 1, keep: true };
        let thin = thinned(vec![range(64), range(1000), range(1000)]);
        assert!(thin.iter().map(|range| range.count).product::<u64>() <= MOST_ELEMENTS);
        for (range, length) in thin.iter().zip([64, 1000, 1000]) {
            assert!(range.at(range.count - 1) < length, "{range:?}");
        }
        assert_eq!(thinned(vec![range(128), range(128)]), [range(128), range(128)]);
    }
}
