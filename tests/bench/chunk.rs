//! How fast elements are copied between a chunk and an answer: `cargo bench --bench chunk`.
//!
//! The chunk is 64³ elements of 2, 4 or 8 bytes; a bench is named for what the window shows of it.

#![expect(clippy::expect_used, reason = "a bench that cannot go on has failed")]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use zarrd::chunk::strided::{self, Dimension};
use zarrd::chunk::{AxisRange, CopyRegion, copy_box, fill_box};

const SHAPE: [u64; 3] = [64, 64, 64];

fn main() {
    divan::main();
}

fn range(start: u64, count: u64, step: i64) -> AxisRange {
    AxisRange { start, count, step, keep: true }
}

fn bytes(lengths: impl Iterator<Item = u64>, element_bytes: usize) -> usize {
    usize::try_from(lengths.product::<u64>()).expect("it is small") * element_bytes
}

/// Measures the copy of what the ranges select into an answer of its own.
fn paste(bencher: Bencher, ranges: &[AxisRange; 3], element_bytes: usize) {
    let chunk = vec![7; bytes(SHAPE.into_iter(), element_bytes)];
    let window = CopyRegion::packed(ranges, element_bytes);
    let mut out = vec![0; bytes(ranges.iter().map(|range| range.count), element_bytes)];
    bencher.counter(BytesCount::new(out.len())).bench_local(|| {
        assert!(copy_box(black_box(&chunk), &SHAPE, &window, element_bytes, black_box(&mut out)));
    });
}

/// The whole chunk: one run.
#[divan::bench(args = [2, 4, 8])]
fn packed(bencher: Bencher, element_bytes: usize) {
    paste(bencher, &[range(0, 64, 1), range(0, 64, 1), range(0, 64, 1)], element_bytes);
}

/// A box inside of the chunk: short runs.
#[divan::bench(args = [2, 4, 8])]
fn boxed(bencher: Bencher, element_bytes: usize) {
    paste(bencher, &[range(8, 48, 1), range(8, 48, 1), range(8, 48, 1)], element_bytes);
}

/// One row of the chunk in an answer that is as wide as 16 of them.
#[divan::bench(args = [2, 4, 8])]
fn into_a_plane(bencher: Bencher, element_bytes: usize) {
    let chunk = vec![7; bytes(SHAPE.into_iter(), element_bytes)];
    let plane = [range(0, 1, 1), range(0, 64, 1), range(0, 1024, 1)];
    let window = CopyRegion::packed(&plane, element_bytes).with_ranges(&[
        range(5, 1, 1),
        range(0, 64, 1),
        range(0, 64, 1),
    ]);
    let mut out = vec![0; bytes([64, 1024].into_iter(), element_bytes)];
    bencher.counter(BytesCount::new(64 * 64 * element_bytes)).bench_local(|| {
        assert!(copy_box(black_box(&chunk), &SHAPE, &window, element_bytes, black_box(&mut out)));
    });
}

/// Every second element along the last dimension.
#[divan::bench(args = [2, 4, 8])]
fn strided_last(bencher: Bencher, element_bytes: usize) {
    paste(bencher, &[range(0, 64, 1), range(0, 64, 1), range(0, 32, 2)], element_bytes);
}

/// The last dimension backwards.
#[divan::bench(args = [2, 4, 8])]
fn reversed(bencher: Bencher, element_bytes: usize) {
    paste(bencher, &[range(0, 64, 1), range(0, 64, 1), range(63, 64, -1)], element_bytes);
}

/// One element of each row: what a pixel through many time steps gathers.
#[divan::bench(args = [2, 4, 8])]
fn gather(bencher: Bencher, element_bytes: usize) {
    paste(bencher, &[range(0, 64, 1), range(0, 64, 1), range(31, 1, 1)], element_bytes);
}

/// The dimensions in the opposite order.
#[divan::bench(args = [2, 4, 8])]
fn transposed(bencher: Bencher, element_bytes: usize) {
    let from = vec![7; bytes(SHAPE.into_iter(), element_bytes)];
    let mut to = vec![0; from.len()];
    let strides = strided::strides(&[64; 3], element_bytes);
    let dimensions: Vec<Dimension> = strides
        .iter()
        .zip(strides.iter().rev())
        .map(|(&to, &from)| Dimension { length: 64, to, from })
        .collect();
    bencher.counter(BytesCount::new(from.len())).bench_local(|| {
        let (from, to) = (black_box(&from), black_box(&mut to));
        strided::copy(dimensions.clone(), element_bytes, (to, 0), (from, 0));
    });
}

/// What stands in for a chunk that is missing.
#[divan::bench(args = [2, 4, 8])]
fn filled(bencher: Bencher, element_bytes: usize) {
    let element: Vec<u8> = (1..).take(element_bytes).collect();
    let window = CopyRegion::packed(&SHAPE.map(AxisRange::full), element_bytes);
    let mut out = vec![0; bytes(SHAPE.into_iter(), element_bytes)];
    bencher.counter(BytesCount::new(out.len())).bench_local(|| {
        assert!(fill_box(black_box(&element), &window, black_box(&mut out)));
    });
}
