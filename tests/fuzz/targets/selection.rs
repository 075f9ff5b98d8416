//! The grammar of selections: whatever the text and the shape, what is selected lies inside the array.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zarrd::chunk::{ChunkGrid, Selection};

fuzz_target!(|input: (Vec<(u64, u64)>, &str)| {
    let (axes, text) = input;
    let Ok(selection) = Selection::parse(text) else { return };
    let shape: Vec<u64> = axes.iter().take(8).map(|&(length, _)| length >> 1).collect();
    let edges: Vec<u64> = axes.iter().take(8).map(|&(_, edge)| edge).collect();
    let Ok(subset) = selection.resolve(&shape) else { return };
    assert_eq!(subset.axes().len(), shape.len());
    let grid = ChunkGrid::regular(&shape, &edges);
    for ((range, &length), axis) in subset.axes().iter().zip(&shape).zip(grid.axes()) {
        if range.count > 0 {
            assert!(range.at(0) < length && range.at(range.count - 1) < length);
            assert!(axis.touched(range).chunks >= 1);
        }
        let pieces: Vec<_> = axis.pieces(*range).take(100).collect();
        for piece in pieces {
            assert!(piece.count > 0 && piece.chunk < axis.chunks());
        }
    }
});
