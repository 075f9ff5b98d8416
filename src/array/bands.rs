//! [`bands`]: divides a copy of loaded chunks into bands of the segment, which several threads write at the same time.

use std::ops::Range;
use std::sync::Arc;

use super::chunk_reader::LoadedChunk;
use crate::chunk::CopyRegion;

/// A band of fewer copied bytes is not worth another thread.
const LEAST_BYTES: usize = 1 << 20;
/// Sorting more pieces than this takes about as long as a second thread saves.
const MOST_PIECES: usize = 1 << 10;

/// Consecutive bytes of a segment, and what is copied there, with windows relative to the first of them.
pub(super) struct Band {
    pub(super) bytes: Range<usize>,
    pub(super) chunks: Vec<LoadedChunk>,
}

/// Divides a segment of this many bytes, of elements of `item` bytes, into at most `most` bands, such that each piece is copied
/// to one band, and about as many bytes to each. There is one band where pieces are interleaved, as those along the last
/// dimension are.
pub(super) fn bands(loaded: Vec<LoadedChunk>, segment_bytes: usize, item: usize, most: usize) -> Vec<Band> {
    let windows = || loaded.iter().flat_map(|chunk| chunk.pieces.iter().map(|(_, window)| window));
    let copied: usize = windows().map(|window| copied_bytes(window, item)).sum();
    let most = most.min(copied / LEAST_BYTES);
    if most < 2 || windows().nth(MOST_PIECES).is_some() {
        return vec![Band { bytes: 0..segment_bytes, chunks: loaded }];
    }
    let mut pieces: Vec<_> = loaded
        .into_iter()
        .flat_map(|LoadedChunk { shape, pieces }| {
            pieces.into_iter().map(move |piece| (Arc::clone(&shape), piece))
        })
        .collect();
    pieces.sort_by_key(|(_, (_, window))| window.out_offset());
    let least = copied.div_ceil(most);
    let mut bands = Vec::with_capacity(most);
    let mut band = Band { bytes: 0..0, chunks: Vec::new() };
    let mut in_band = 0;
    for (shape, (elements, window)) in pieces {
        let places = window.out_range(item);
        if in_band >= least && band.bytes.end <= places.start {
            let next = Band { bytes: band.bytes.end..band.bytes.end, chunks: Vec::new() };
            bands.push(std::mem::replace(&mut band, next));
            in_band = 0;
        }
        in_band += copied_bytes(&window, item);
        band.bytes.end = band.bytes.end.max(places.end);
        let window = window.relative_to_byte(band.bytes.start);
        band.chunks.push(LoadedChunk { shape, pieces: vec![(elements, window)] });
    }
    band.bytes.end = segment_bytes;
    bands.push(band);
    bands
}

/// The bytes that a window is copied to (saturated).
fn copied_bytes(window: &CopyRegion, item: usize) -> usize {
    let counts = window.ranges().map(|range| usize::try_from(range.count).unwrap_or(usize::MAX));
    counts.fold(item, usize::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{AxisRange, ChunkAxis};

    const MIB: usize = 1 << 20;

    /// The bands of a segment of this shape, in chunks of this shape, of one byte for each element: their bytes, and how many
    /// chunks are copied there.
    fn divided(shape: &[u64], chunk: &[u64], most: usize) -> Vec<(Range<usize>, usize)> {
        let ranges: Vec<AxisRange> = shape.iter().map(|&length| AxisRange::full(length)).collect();
        let grid: Vec<ChunkAxis> =
            shape.iter().zip(chunk).map(|(&length, &edge)| ChunkAxis::new(length, edge)).collect();
        let windows = CopyRegion::packed(&ranges, 1).split_by_chunks(&grid);
        let mut loaded: Vec<LoadedChunk> = windows
            .map(|(_, window)| LoadedChunk { shape: chunk.into(), pieces: vec![(None, window)] })
            .collect();
        loaded.reverse();
        let bytes = usize::try_from(shape.iter().product::<u64>()).unwrap();
        let bands = bands(loaded, bytes, 1, most);
        for band in &bands {
            for (_, window) in band.chunks.iter().flat_map(|chunk| &chunk.pieces) {
                assert!(window.out_range(1).end <= band.bytes.len());
            }
        }
        assert!(bands.windows(2).all(|pair| pair[0].bytes.end == pair[1].bytes.start));
        bands.iter().map(|band| (band.bytes.clone(), band.chunks.len())).collect()
    }

    #[test]
    fn each_piece_is_in_one_band_and_bands_have_about_as_many_bytes() {
        let halves = divided(&[128, 128, 256], &[64, 64, 128], 2);
        assert_eq!(halves, [(0..2 * MIB, 4), (2 * MIB..4 * MIB, 4)]);
        let quarters = divided(&[128, 128, 256], &[32, 64, 128], 8);
        assert_eq!(quarters, [0, 1, 2, 3].map(|at| (at * MIB..(at + 1) * MIB, 4)));
        assert_eq!(divided(&[5, 1 << 20], &[1, 1 << 20], 2), [(0..3 * MIB, 3), (3 * MIB..5 * MIB, 2)]);
    }

    #[test]
    fn pieces_that_are_interleaved_small_or_many_are_one_band() {
        assert_eq!(divided(&[1024, 4096], &[1024, 2048], 4), [(0..4 * MIB, 2)]);
        assert_eq!(divided(&[1 << 20], &[1 << 10], 4), [(0..MIB, 1024)]);
        assert_eq!(divided(&[4 << 20], &[1 << 10], 4), [(0..4 * MIB, 4096)]);
    }
}
