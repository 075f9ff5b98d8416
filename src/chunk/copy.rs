//! Copying the elements of a [`CopyRegion`] from a chunk to a response, and filling them.

use std::cmp::Reverse;

use super::CopyRegion;
use super::strided::{self, Dimension};

/// Copies the elements of a window from a chunk (C order, of `chunk_shape`, elements of `element_bytes` bytes) to the response.
///
/// Does nothing where the window is empty. Bytes outside either buffer are never touched: a window or shape that does
/// not fit the buffers (a bug of the caller) copies nothing and returns `false`.
#[must_use]
pub fn copy_box(
    chunk: &[u8],
    chunk_shape: &[u64],
    window: &CopyRegion,
    element_bytes: usize,
    out: &mut [u8],
) -> bool {
    let Some((start, dimensions)) =
        locate_box(window, element_bytes, Some((chunk_shape, chunk.len())), out.len())
    else {
        return false;
    };
    strided::copy(dimensions, element_bytes, (out, window.out_offset()), (chunk, start));
    true
}

/// Fills the window's places in the response with one element. Like [`copy_box`], returns `false` for a window that does not
/// fit.
#[must_use]
pub fn fill_box(element: &[u8], window: &CopyRegion, out: &mut [u8]) -> bool {
    let Some((_, dimensions)) = locate_box(window, element.len(), None, out.len()) else {
        return false;
    };
    strided::fill(dimensions, element, (out, window.out_offset()));
    true
}

/// Copies elements to the places of a window in a chunk (C order, of `chunk_shape`): the inverse of [`copy_box`]. Where the
/// strides of the window are 0, one element goes to all places. Like [`copy_box`], returns `false` for a window that does not
/// fit.
#[must_use]
pub fn place_box(
    elements: &[u8],
    window: &CopyRegion,
    element_bytes: usize,
    chunk: &mut [u8],
    chunk_shape: &[u64],
) -> bool {
    let Some((start, dimensions)) =
        locate_places(window, element_bytes, (chunk_shape, chunk.len()), elements.len())
    else {
        return false;
    };
    strided::copy(dimensions, element_bytes, (chunk, start), (elements, window.out_offset()));
    true
}

/// As [`locate_box`], with the chunk as the destination.
pub(super) fn locate_places(
    window: &CopyRegion,
    element_bytes: usize,
    chunk: (&[u64], usize),
    source_bytes: usize,
) -> Option<(usize, Vec<Dimension>)> {
    let (start, mut dimensions) = locate_box(window, element_bytes, Some(chunk), source_bytes)?;
    for dimension in &mut dimensions {
        *dimension = Dimension { to: dimension.from, from: dimension.to, ..*dimension };
    }
    dimensions.sort_by_key(|dimension| Reverse(dimension.to));
    Some((start, dimensions))
}

/// The offset of the first element in the chunk, and the dimensions of the box to copy; `None` if anything lies outside of the
/// chunk (given by its shape and bytes) or the response. Without a chunk, only the response is checked.
pub(super) fn locate_box(
    window: &CopyRegion,
    element_bytes: usize,
    chunk: Option<(&[u64], usize)>,
    out_bytes: usize,
) -> Option<(usize, Vec<Dimension>)> {
    let item = isize::try_from(element_bytes).ok()?;
    let (shape, chunk_bytes) = chunk.unwrap_or((&[], usize::MAX));
    let mut stride = if chunk.is_some() { item } else { 0 };
    let mut dimensions = Vec::with_capacity(window.ranges().len());
    let mut start: isize = 0;
    // The lowest and highest element's offset from the start, and the highest offset in the response.
    let (mut low, mut high): (isize, isize) = (0, 0);
    let mut out_high = isize::try_from(window.out_offset()).ok()?;
    for (axis, (range, out_stride)) in window.ranges().zip(window.out_strides()).enumerate().rev() {
        let count = usize::try_from(range.count).ok()?;
        let to = isize::try_from(out_stride).ok()?;
        // A single element has no next one, so its step does not matter.
        let single = count <= 1 || stride == 0;
        let from = if single { 0 } else { stride.checked_mul(isize::try_from(range.step).ok()?)? };
        if stride != 0 {
            start = start.checked_add(isize::try_from(range.start).ok()?.checked_mul(stride)?)?;
            stride = stride.checked_mul(isize::try_from(*shape.get(axis)?).ok()?)?;
        }
        let steps = isize::try_from(count.saturating_sub(1)).ok()?;
        let reach = from.checked_mul(steps)?;
        low = low.checked_add(reach.min(0))?;
        high = high.checked_add(reach.max(0))?;
        out_high = out_high.checked_add(to.checked_mul(steps)?)?;
        dimensions.push(Dimension { length: count, to, from });
    }
    // In the order of the response, so that writes go forward; the order of a transposed chunk is another.
    dimensions.sort_by_key(|dimension| Reverse(dimension.to));
    if dimensions.iter().all(|dimension| dimension.length > 0) {
        let chunk_end = usize::try_from(start.checked_add(high)?.checked_add(item)?).ok()?;
        let out_end = usize::try_from(out_high.checked_add(item)?).ok()?;
        if start.checked_add(low)? < 0 || chunk_end > chunk_bytes || out_end > out_bytes {
            return None;
        }
    }
    Some((usize::try_from(start).ok()?, dimensions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::AxisRange;
    use proptest::prelude::*;

    fn range(start: u64, count: u64, step: i64) -> AxisRange {
        AxisRange { start, count, step, keep: true }
    }

    /// Element by element, by index arithmetic alone.
    fn naive(chunk: &[u8], shape: &[u64], ranges: &[AxisRange], item: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut places = vec![0u64; ranges.len()];
        if ranges.iter().any(|range| range.count == 0) {
            return out;
        }
        loop {
            let linear =
                places.iter().zip(ranges).zip(shape).fold(0, |at, ((&k, range), &n)| at * n + range.at(k));
            out.extend_from_slice(&chunk[linear as usize * item..][..item]);
            let Some(axis) = (0..places.len()).rev().find(|&axis| places[axis] + 1 < ranges[axis].count)
            else {
                return out;
            };
            places[axis] += 1;
            places[axis + 1..].fill(0);
        }
    }

    proptest! {
        #[test]
        fn copying_agrees_with_index_arithmetic(
            axes in prop::collection::vec((1u64..7, any::<prop::sample::Index>(), 1i64..4, any::<bool>(), any::<prop::sample::Index>()), 0..5),
            item in prop::sample::select(vec![1usize, 2, 3, 4, 8, 16]),
        ) {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let ranges: Vec<AxisRange> = axes.iter().map(|&(length, start, step, down, count)| {
                let start = start.index(length as usize) as u64;
                let most = if down { start / step as u64 } else { (length - 1 - start) / step as u64 } + 1;
                range(start, count.index(most as usize + 1) as u64, if down { -step } else { step })
            }).collect();
            let elements: u64 = shape.iter().product();
            let chunk: Vec<u8> = (0..elements as usize * item).map(|byte| (byte % 251) as u8).collect();
            let expected = naive(&chunk, &shape, &ranges, item);
            let mut out = vec![0; expected.len()];
            prop_assert!(copy_box(&chunk, &shape, &CopyRegion::packed(&ranges, item), item, &mut out));
            prop_assert_eq!(&out, &expected);
            let mut placed = vec![0; chunk.len()];
            prop_assert!(place_box(&expected, &CopyRegion::packed(&ranges, item), item, &mut placed, &shape));
            prop_assert!(copy_box(&placed, &shape, &CopyRegion::packed(&ranges, item), item, &mut out));
            prop_assert_eq!(&out, &expected);
            let element: Vec<u8> = (1..=item as u8).collect();
            prop_assert!(fill_box(&element, &CopyRegion::packed(&ranges, item), &mut out));
            prop_assert_eq!(out, element.repeat(expected.len() / item));
        }
    }

    proptest! {
        #[test]
        fn copying_from_rows_equals_copying_from_the_chunk(
            (shape, windows) in prop::collection::vec(1_u64..6, 0..4).prop_flat_map(|shape| {
                let axes: Vec<_> = shape
                    .iter()
                    .map(|&length| {
                        (0..length).prop_flat_map(move |start| {
                            let ahead = (1..=length - start, 1_i64..3).prop_map(move |(most, step)| {
                                range(start, most.div_ceil(step.unsigned_abs()), step)
                            });
                            let back = (0..=start).prop_map(move |more| range(start, more + 1, -1));
                            prop_oneof![ahead, back]
                        })
                    })
                    .collect();
                (Just(shape), prop::collection::vec(axes, 1..3))
            }),
        ) {
            const ITEM: usize = 2;
            let bytes = shape.iter().product::<u64>() as usize * ITEM;
            let chunk: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            let windows: Vec<CopyRegion> = windows.iter().map(|ranges| CopyRegion::packed(ranges, ITEM)).collect();
            let rows = CopyRegion::row_range(windows.iter(), &shape, ITEM);
            for window in &windows {
                let length = window.ranges().map(|range| range.count).product::<u64>() as usize * ITEM;
                let (mut expected, mut out) = (vec![0; length], vec![0; length]);
                prop_assert!(copy_box(&chunk, &shape, window, ITEM, &mut expected));
                prop_assert!(!window.is_identity(&shape, ITEM) || expected == chunk);
                let Some(rows) = &rows else { continue };
                prop_assert!(rows.items.bytes() < bytes && rows.items.end() <= bytes);
                let part: Vec<u8> = rows.items.each().flat_map(|run| chunk[run].to_vec()).collect();
                prop_assert!(copy_box(&part, &rows.shape, &window.relative_to(rows), ITEM, &mut out));
                prop_assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn row_ranges_contain_no_more_than_the_window_needs() {
        let rows = |ranges: &[AxisRange], shape: &[u64]| {
            let rows =
                CopyRegion::row_range(std::iter::once(&CopyRegion::packed(ranges, 2)), shape, 2)?.items;
            Some((rows.start, rows.count, rows.length, rows.stride))
        };
        let whole = AxisRange::full;
        assert_eq!(rows(&[range(3, 1, 1), whole(8), whole(8)], &[8, 8, 8]), Some((384, 1, 128, 128)));
        assert_eq!(rows(&[range(0, 1, 1), range(2, 3, 2), range(1, 1, 1)], &[1, 8, 8]), Some((34, 5, 2, 16)));
        assert_eq!(rows(&[range(4, 2, 1), range(2, 2, 1), whole(8)], &[8, 8, 8]), Some((544, 2, 32, 128)));
        assert_eq!(rows(&[range(3, 1, 1), range(2, 1, 1)], &[8, 8]), Some((52, 1, 2, 2)));
        assert_eq!(rows(&[whole(8), range(2, 1, 1)], &[8, 8]), Some((4, 8, 2, 16)));
        assert_eq!(rows(&[whole(8), whole(8), range(2, 1, 1)], &[8, 8, 8]), None);
        assert_eq!(rows(&[], &[]), None);
    }

    #[test]
    fn a_window_is_the_identity_if_it_copies_a_whole_chunk_in_order() {
        let whole = |ranges: &[AxisRange]| CopyRegion::packed(ranges, 2).is_identity(&[4, 1, 3], 2);
        let all = [4, 1, 3].map(AxisRange::full);
        assert!(whole(&all));
        assert!(whole(&[all[0], range(0, 1, -5), all[2]]));
        assert!(!whole(&[range(3, 4, -1), all[1], all[2]]));
        assert!(!whole(&[all[0], all[1], range(0, 2, 1)]));
        assert!(!CopyRegion::packed(&all, 2).transpose(&[2, 1, 0]).is_identity(&[3, 1, 4], 2));
    }

    #[test]
    fn a_transposed_window_reads_columns_as_rows() {
        let window = CopyRegion::packed(&[range(0, 2, 1), range(0, 3, 1)], 1).transpose(&[1, 0]);
        let mut out = [0; 6];
        assert!(copy_box(&[1, 2, 3, 4, 5, 6], &[3, 2], &window, 1, &mut out));
        assert_eq!(out, [1, 3, 5, 2, 4, 6]);
    }

    #[test]
    fn a_window_that_does_not_fit_copies_nothing() {
        let mut out = [9; 4];
        for ranges in [[range(0, 5, 1)], [range(3, 2, 1)], [range(0, 2, -1)], [range(u64::MAX, 1, 1)]] {
            assert!(!copy_box(&[0; 4], &[4], &CopyRegion::packed(&ranges, 1), 1, &mut out), "{ranges:?}");
        }
        assert!(!copy_box(&[0; 8], &[8], &CopyRegion::packed(&[range(0, 5, 1)], 1), 1, &mut out));
        assert_eq!(out, [9; 4]);
    }

    #[test]
    fn the_step_of_a_single_element_may_be_any_number() {
        let mut out = [0; 8];
        assert!(copy_box(&[7; 16], &[2], &CopyRegion::packed(&[range(1, 1, i64::MIN)], 8), 8, &mut out));
        assert_eq!(out, [7; 8]);
    }
}
