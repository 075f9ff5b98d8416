//! Copying elements between a chunk and an answer: strided boxes of bytes.
//!
//! Dimensions that lie together in both are merged first, so that what can be copied as one run is.

use super::Window;

/// One loop of a strided copy. Strides are bytes from one element to the next.
#[derive(Clone, Copy, Debug)]
struct Loop {
    count: usize,
    chunk_stride: isize,
    out_stride: isize,
}

/// Copies what `window` shows of a chunk (C order, of `chunk_shape`, elements of `item_bytes` bytes) into the answer.
///
/// Does nothing where the window is empty. Bytes outside either buffer are never touched: a window or shape that does
/// not fit the buffers (a defect of the caller) copies nothing and returns `false`.
#[must_use]
pub fn paste_box(
    chunk: &[u8],
    chunk_shape: &[u64],
    window: &Window,
    item_bytes: usize,
    out: &mut [u8],
) -> bool {
    let Some((offset, loops)) = bind(chunk_shape, window, item_bytes, chunk.len(), out.len()) else {
        return false;
    };
    if loops.iter().any(|l| l.count == 0) {
        return true;
    }
    match item_bytes {
        1 => copy_loops::<1>(chunk, offset, out, window.out_offset(), &loops),
        2 => copy_loops::<2>(chunk, offset, out, window.out_offset(), &loops),
        4 => copy_loops::<4>(chunk, offset, out, window.out_offset(), &loops),
        8 => copy_loops::<8>(chunk, offset, out, window.out_offset(), &loops),
        _ => copy_runs(chunk, offset, out, window.out_offset(), &loops, item_bytes),
    }
    true
}

/// Fills what `window` shows with one element. As for [`paste_box`], a window that does not fit returns `false`.
#[must_use]
pub fn fill_box(element: &[u8], chunk_shape: &[u64], window: &Window, out: &mut [u8]) -> bool {
    // A chunk that consists of one element has strides of 0.
    let flat = vec![1; chunk_shape.len()];
    let Some((_, mut loops)) = bind(&flat, window, element.len(), usize::MAX, out.len()) else {
        return false;
    };
    if loops.iter().any(|l| l.count == 0) {
        return true;
    }
    for l in &mut loops {
        l.chunk_stride = 0;
    }
    merge(&mut loops);
    fill_runs(element, out, window.out_offset(), &loops);
    true
}

/// The offset of the first element in the chunk and the loops, merged; `None` if anything would lie outside.
fn bind(
    chunk_shape: &[u64],
    window: &Window,
    item_bytes: usize,
    chunk_bytes: usize,
    out_bytes: usize,
) -> Option<(usize, Vec<Loop>)> {
    let mut loops = Vec::with_capacity(chunk_shape.len());
    let mut chunk_stride = isize::try_from(item_bytes).ok()?;
    let mut start: isize = 0;
    // The lowest and highest element's offset, in the chunk and in the answer.
    let (mut low, mut high): (isize, isize) = (0, 0);
    let mut out_high = isize::try_from(window.out_offset()).ok()?;
    let mut empty = false;
    let axes: Vec<_> = window.ranges().zip(window.out_strides()).zip(chunk_shape).collect();
    for ((range, out_stride), &length) in axes.into_iter().rev() {
        let count = usize::try_from(range.count).ok()?;
        let out_stride = isize::try_from(out_stride).ok()?;
        empty |= count == 0;
        let stride = chunk_stride.checked_mul(isize::try_from(range.step).ok()?);
        // A single element has no next one, so its step, however large, means nothing.
        let stride = if count <= 1 { 0 } else { stride? };
        let steps = isize::try_from(count.saturating_sub(1)).ok()?;
        start = start.checked_add(isize::try_from(range.start).ok()?.checked_mul(chunk_stride)?)?;
        let reach = stride.checked_mul(steps)?;
        low = low.checked_add(reach.min(0))?;
        high = high.checked_add(reach.max(0))?;
        out_high = out_high.checked_add(out_stride.checked_mul(steps)?)?;
        loops.push(Loop { count, chunk_stride: stride, out_stride });
        chunk_stride = chunk_stride.checked_mul(isize::try_from(length).ok()?)?;
    }
    loops.reverse();
    if !empty {
        let item = isize::try_from(item_bytes).ok()?;
        let chunk_end = start.checked_add(high)?.checked_add(item)?;
        let inside = start.checked_add(low)? >= 0
            && usize::try_from(chunk_end).ok()? <= chunk_bytes
            && usize::try_from(out_high.checked_add(item)?).ok()? <= out_bytes;
        if !inside {
            return None;
        }
    }
    merge(&mut loops);
    Some((usize::try_from(start).ok()?, loops))
}

/// Drops loops of one turn, and makes one loop of two where the outer only goes on where the inner ends.
fn merge(loops: &mut Vec<Loop>) {
    loops.retain(|l| l.count != 1);
    let mut at = 1;
    while at < loops.len() {
        let (outer, inner) = (loops[at - 1], loops[at]);
        let turns = isize::try_from(inner.count).unwrap_or(isize::MAX);
        let goes_on = |outer: isize, inner: isize| inner.checked_mul(turns) == Some(outer);
        if goes_on(outer.chunk_stride, inner.chunk_stride) && goes_on(outer.out_stride, inner.out_stride) {
            loops[at - 1] = Loop { count: outer.count * inner.count, ..inner };
            loops.remove(at);
            at = 1;
        } else {
            at += 1;
        }
    }
}

/// `base` moved on by `turns` strides; `bind` has checked that every place is inside.
fn moved(base: usize, stride: isize, turns: usize) -> usize {
    base.wrapping_add_signed(stride.wrapping_mul(turns.cast_signed()))
}

/// Runs `inner` for the first places of each innermost loop.
fn each_run(
    loops: &[Loop],
    chunk_at: usize,
    out_at: usize,
    inner: &mut impl FnMut(Loop, usize, usize),
    item_bytes: usize,
) {
    match loops {
        [] => {
            let item = item_bytes.cast_signed();
            inner(Loop { count: 1, chunk_stride: item, out_stride: item }, chunk_at, out_at);
        }
        [run] => inner(*run, chunk_at, out_at),
        [outer, rest @ ..] => {
            for turn in 0..outer.count {
                let chunk_at = moved(chunk_at, outer.chunk_stride, turn);
                each_run(rest, chunk_at, moved(out_at, outer.out_stride, turn), inner, item_bytes);
            }
        }
    }
}

/// For the usual sizes of elements: the size is known when compiling, so a strided run is a plain loop of moves.
fn copy_loops<const ITEM: usize>(
    chunk: &[u8],
    chunk_at: usize,
    out: &mut [u8],
    out_at: usize,
    loops: &[Loop],
) {
    let item = ITEM.cast_signed();
    each_run(
        loops,
        chunk_at,
        out_at,
        &mut |run, from, to| {
            if run.chunk_stride == item && run.out_stride == item {
                let bytes = run.count * ITEM;
                out[to..to + bytes].copy_from_slice(&chunk[from..from + bytes]);
                return;
            }
            for turn in 0..run.count {
                let (from, to) = (moved(from, run.chunk_stride, turn), moved(to, run.out_stride, turn));
                if let (Some(target), Some(source)) =
                    (out[to..].first_chunk_mut::<ITEM>(), chunk[from..].first_chunk::<ITEM>())
                {
                    *target = *source;
                }
            }
        },
        ITEM,
    );
}

/// For elements of any size.
fn copy_runs(
    chunk: &[u8],
    chunk_at: usize,
    out: &mut [u8],
    out_at: usize,
    loops: &[Loop],
    item_bytes: usize,
) {
    let item = item_bytes.cast_signed();
    each_run(
        loops,
        chunk_at,
        out_at,
        &mut |run, from, to| {
            if run.chunk_stride == item && run.out_stride == item {
                let bytes = run.count * item_bytes;
                out[to..to + bytes].copy_from_slice(&chunk[from..from + bytes]);
                return;
            }
            for turn in 0..run.count {
                let (from, to) = (moved(from, run.chunk_stride, turn), moved(to, run.out_stride, turn));
                out[to..to + item_bytes].copy_from_slice(&chunk[from..from + item_bytes]);
            }
        },
        item_bytes,
    );
}

fn fill_runs(element: &[u8], out: &mut [u8], out_at: usize, loops: &[Loop]) {
    let item = element.len().cast_signed();
    let uniform = element.first().copied().filter(|first| element.iter().all(|byte| byte == first));
    each_run(
        loops,
        0,
        out_at,
        &mut |run, _, to| match uniform {
            Some(byte) if run.out_stride == item => out[to..to + run.count * element.len()].fill(byte),
            _ => {
                for turn in 0..run.count {
                    let to = moved(to, run.out_stride, turn);
                    out[to..to + element.len()].copy_from_slice(element);
                }
            }
        },
        element.len(),
    );
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
        fn pasting_agrees_with_index_arithmetic(
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
            prop_assert!(paste_box(&chunk, &shape, &Window::packed(&ranges, item), item, &mut out));
            prop_assert_eq!(&out, &expected);
            let element: Vec<u8> = (1..=item as u8).collect();
            prop_assert!(fill_box(&element, &shape, &Window::packed(&ranges, item), &mut out));
            prop_assert_eq!(out, element.repeat(expected.len() / item));
        }
    }

    #[test]
    fn a_transposed_window_reads_columns_as_rows() {
        let window = Window::packed(&[range(0, 2, 1), range(0, 3, 1)], 1).permuted(&[1, 0]);
        let mut out = [0; 6];
        assert!(paste_box(&[1, 2, 3, 4, 5, 6], &[3, 2], &window, 1, &mut out));
        assert_eq!(out, [1, 3, 5, 2, 4, 6]);
    }

    #[test]
    fn a_window_that_does_not_fit_copies_nothing() {
        let mut out = [9; 4];
        for ranges in [[range(0, 5, 1)], [range(3, 2, 1)], [range(0, 2, -1)], [range(u64::MAX, 1, 1)]] {
            assert!(!paste_box(&[0; 4], &[4], &Window::packed(&ranges, 1), 1, &mut out), "{ranges:?}");
        }
        assert!(!paste_box(&[0; 8], &[8], &Window::packed(&[range(0, 5, 1)], 1), 1, &mut out));
        assert_eq!(out, [9; 4]);
    }

    #[test]
    fn a_step_that_is_never_taken_may_be_as_large_as_it_likes() {
        let mut out = [0; 8];
        assert!(paste_box(&[7; 16], &[2], &Window::packed(&[range(1, 1, i64::MIN)], 8), 8, &mut out));
        assert_eq!(out, [7; 8]);
    }
}
