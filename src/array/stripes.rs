//! [`divide`]: divides a large copy into stripes, which several threads write at the same time.

use std::ops::Range;
use std::sync::Arc;

use super::chunk_reader::LoadedChunk;
use crate::chunk::CopyRegion;

/// A stripe of fewer copied bytes is not worth another thread.
const LEAST_BYTES: usize = 1 << 20;
/// The caller sorts the pieces on its own thread, so more than these are left to one thread of the pool.
const MOST_PIECES: usize = 1 << 10;

/// How chunks are copied to a segment.
pub(super) enum CopyDivision {
    /// By one thread.
    Whole(Vec<LoadedChunk>),
    /// By a thread for each stripe. The stripes are all bytes of the segment, in order.
    Stripes(Vec<Stripe>),
}

/// Consecutive bytes of a segment, and the chunks that are copied there, with windows relative to the first of the bytes.
pub(super) struct Stripe {
    pub(super) bytes: Range<usize>,
    pub(super) chunks: Vec<LoadedChunk>,
}

/// Divides the copy of chunks to a segment of `segment_bytes` bytes, of elements of `item` bytes, into at most `threads` stripes.
/// All of a piece is in one stripe, and stripes have about equally many copied bytes. The copy is not divided if it is small, or
/// if no place separates the pieces.
pub(super) fn divide(
    loaded: Vec<LoadedChunk>,
    segment_bytes: usize,
    item: usize,
    threads: usize,
) -> CopyDivision {
    let windows = || loaded.iter().flat_map(|chunk| chunk.pieces.iter().map(|(_, window)| window));
    if threads < 2 || windows().nth(MOST_PIECES).is_some() {
        return CopyDivision::Whole(loaded);
    }
    let copied: usize = windows().map(|window| copied_bytes(window, item)).sum();
    let count = threads.min(copied / LEAST_BYTES);
    // The copy reports a window that does not fit.
    if count < 2 || windows().any(|window| window.out_range(item).end > segment_bytes) {
        return CopyDivision::Whole(loaded);
    }
    let of_chunk = |LoadedChunk { shape, pieces }: LoadedChunk| {
        pieces.into_iter().map(move |piece| (Arc::clone(&shape), piece))
    };
    let mut pieces: Vec<_> = loaded.into_iter().flat_map(of_chunk).collect();
    pieces.sort_by_key(|(_, (_, window))| window.out_offset());
    let enough = copied.div_ceil(count);
    let mut stripes = Vec::with_capacity(count);
    let mut stripe = Stripe { bytes: 0..0, chunks: Vec::new() };
    let mut in_stripe = 0;
    for (shape, (elements, window)) in pieces {
        let range = window.out_range(item);
        if in_stripe >= enough && stripe.bytes.end <= range.start {
            let end = stripe.bytes.end;
            stripes.push(std::mem::replace(&mut stripe, Stripe { bytes: end..end, chunks: Vec::new() }));
            in_stripe = 0;
        }
        in_stripe += copied_bytes(&window, item);
        // A piece that began earlier may end later.
        stripe.bytes.end = stripe.bytes.end.max(range.end);
        let window = window.relative_to_byte(stripe.bytes.start);
        stripe.chunks.push(LoadedChunk { shape, pieces: vec![(elements, window)] });
    }
    if stripes.is_empty() {
        return CopyDivision::Whole(stripe.chunks);
    }
    stripe.bytes.end = segment_bytes;
    stripes.push(stripe);
    CopyDivision::Stripes(stripes)
}

/// The bytes that a window is copied to.
fn copied_bytes(window: &CopyRegion, item: usize) -> usize {
    let counts = window.ranges().map(|range| usize::try_from(range.count).unwrap_or(usize::MAX));
    counts.fold(item, usize::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{AxisRange, ChunkAxis};

    const MIB: usize = 1 << 20;

    /// The windows of a segment of this shape, of one byte for each element, in the chunks of this shape.
    fn windows(shape: &[u64], chunk: &[u64]) -> Vec<CopyRegion> {
        let ranges: Vec<AxisRange> = shape.iter().map(|&length| AxisRange::full(length)).collect();
        let axes = shape.iter().zip(chunk).map(|(&length, &edge)| ChunkAxis::new(length, edge));
        let grid: Vec<ChunkAxis> = axes.collect();
        CopyRegion::packed(&ranges, 1).split_by_chunks(&grid).map(|(_, window)| window).collect()
    }

    /// The stripes of a segment of this shape with these windows: their bytes, and how many windows each has. They are empty if
    /// the copy is not divided.
    fn stripes(shape: &[u64], windows: Vec<CopyRegion>, threads: usize) -> Vec<(Range<usize>, usize)> {
        let all = windows.len();
        let backwards = windows.into_iter().rev();
        let loaded =
            backwards.map(|window| LoadedChunk { shape: shape.into(), pieces: vec![(None, window)] });
        let bytes = usize::try_from(shape.iter().product::<u64>()).unwrap();
        let stripes = match divide(loaded.collect(), bytes, 1, threads) {
            CopyDivision::Stripes(stripes) => stripes,
            CopyDivision::Whole(loaded) => {
                assert_eq!(loaded.len(), all);
                return Vec::new();
            }
        };
        for stripe in &stripes {
            for (_, window) in stripe.chunks.iter().flat_map(|chunk| &chunk.pieces) {
                assert!(window.out_range(1).end <= stripe.bytes.len());
            }
        }
        assert!(stripes.windows(2).all(|pair| pair[0].bytes.end == pair[1].bytes.start));
        stripes.iter().map(|stripe| (stripe.bytes.clone(), stripe.chunks.len())).collect()
    }

    #[test]
    fn each_piece_is_in_one_stripe_and_stripes_have_about_as_many_bytes() {
        let of_grid = |shape: &[u64], chunk: &[u64], threads| stripes(shape, windows(shape, chunk), threads);
        let halves = of_grid(&[128, 128, 256], &[64, 64, 128], 2);
        assert_eq!(halves, [(0..2 * MIB, 4), (2 * MIB..4 * MIB, 4)]);
        let quarters = of_grid(&[128, 128, 256], &[32, 64, 128], 8);
        assert_eq!(quarters, [0, 1, 2, 3].map(|at| (at * MIB..(at + 1) * MIB, 4)));
        assert_eq!(of_grid(&[5, 1 << 20], &[1, 1 << 20], 2), [(0..3 * MIB, 3), (3 * MIB..5 * MIB, 2)]);
    }

    #[test]
    fn pieces_that_no_place_separates_are_not_divided() {
        let shape = [1024, 4096];
        assert_eq!(stripes(&shape, windows(&shape, &[1024, 2048]), 4), []);
        // The left half is missing as a whole, and the right one is in four chunks.
        let mut pieces = windows(&shape, &[1024, 2048])[..1].to_vec();
        pieces.extend(windows(&shape, &[256, 2048]).into_iter().skip(1).step_by(2));
        assert_eq!(stripes(&shape, pieces, 4), []);
    }

    #[test]
    fn small_copies_and_those_of_many_pieces_are_not_divided() {
        assert_eq!(stripes(&[1 << 20], windows(&[1 << 20], &[1 << 10]), 4), []);
        assert_eq!(stripes(&[4 << 20], windows(&[4 << 20], &[1 << 10]), 4), []);
        assert_eq!(stripes(&[4 << 20], windows(&[4 << 20], &[1 << 18]), 1), []);
    }

    #[test]
    fn a_window_beyond_the_segment_is_not_divided() {
        assert_eq!(stripes(&[3 << 20], windows(&[4 << 20], &[1 << 20]), 2), []);
    }
}
