//! Copying and filling of n-dimensional boxes of elements between any two layouts in memory.
//!
//! A layout is a stride in bytes along each dimension. Slices, the codec `transpose` and shards all use these copies.
//! Dimensions that are contiguous in both layouts are merged first, so that they are copied as one run. Callers compute
//! lengths and strides from bound shapes; nothing here depends on stored bytes.

/// A dimension of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Elements along it.
    pub length: usize,
    /// Bytes between two neighbours in the destination.
    pub to: isize,
    /// Bytes between two neighbours in the source.
    pub from: isize,
}

/// The edge of the tiles in which two dimensions are walked together, so that source and destination stay in the cache.
const TILE: usize = 32;

/// The strides of an array in C order, in bytes. They saturate, which matters only for arrays without elements: with an edge of
/// 0, the other edges may be any number.
#[must_use]
pub fn strides(shape: &[usize], element_bytes: usize) -> Vec<isize> {
    let mut stride = element_bytes.cast_signed();
    let mut strides: Vec<isize> = shape
        .iter()
        .rev()
        .map(|&length| {
            let own = stride;
            stride = stride.saturating_mul(isize::try_from(length).unwrap_or(isize::MAX));
            own
        })
        .collect();
    strides.reverse();
    strides
}

/// Copies the box whose first elements are at `to_at` and `from_at`. `dimensions` are in the order of `to`, so that writes go
/// forward.
pub fn copy(
    dimensions: Vec<Dimension>,
    element_bytes: usize,
    (to, to_at): (&mut [u8], usize),
    (from, from_at): (&[u8], usize),
) {
    let Some((dimensions, run)) =
        runs(dimensions, element_bytes, |last, run| last.to == run && last.from == run)
    else {
        return;
    };
    let start = (to_at, from_at);
    match run {
        1 => walk(dimensions, run, start, |t, f| copy_unit::<1>(to, t, from, f)),
        2 => walk(dimensions, run, start, |t, f| copy_unit::<2>(to, t, from, f)),
        4 => walk(dimensions, run, start, |t, f| copy_unit::<4>(to, t, from, f)),
        8 => walk(dimensions, run, start, |t, f| copy_unit::<8>(to, t, from, f)),
        16 => walk(dimensions, run, start, |t, f| copy_unit::<16>(to, t, from, f)),
        _ => walk(dimensions, run, start, |t, f| to[t..t + run].copy_from_slice(&from[f..f + run])),
    }
}

/// Fills the box whose first element is at `to_at` with one element. The dimensions' `from` is ignored.
pub fn fill(mut dimensions: Vec<Dimension>, element: &[u8], (to, to_at): (&mut [u8], usize)) {
    for dimension in &mut dimensions {
        dimension.from = 0;
    }
    let Some((dimensions, run)) = runs(dimensions, element.len(), |last, run| last.to == run) else {
        return;
    };
    walk(dimensions, run, (to_at, 0), |t, _| repeat(&mut to[t..t + run], element));
}

/// Fills a buffer with repeated copies of one element. Its length must be a multiple of the element's.
pub(super) fn repeat(place: &mut [u8], element: &[u8]) {
    let Some((first, rest)) = element.split_first() else { return };
    if rest.iter().all(|byte| byte == first) {
        return place.fill(*first);
    }
    // Each copy doubles the filled part, so the number of copies is logarithmic.
    let mut done = element.len().min(place.len());
    place[..done].copy_from_slice(&element[..done]);
    while done < place.len() {
        let more = done.min(place.len() - done);
        place.copy_within(..more, done);
        done += more;
    }
}

/// Calls `visit` with the two offsets of each element of the box whose first elements are at `to_at` and `from_at`.
pub fn for_each_pair(dimensions: Vec<Dimension>, at: (usize, usize), visit: impl FnMut(usize, usize)) {
    if dimensions.iter().all(|dimension| dimension.length > 0) {
        walk(dimensions, 0, at, visit);
    }
}

/// A copy of fixed length, which compiles to a load and a store.
fn copy_unit<const N: usize>(to: &mut [u8], t: usize, from: &[u8], f: usize) {
    to[t..t + N].copy_from_slice(&from[f..f + N]);
}

/// The dimensions to walk, and the bytes of the run at each position; `None` for an empty box.
fn runs(
    mut dimensions: Vec<Dimension>,
    element_bytes: usize,
    is_run: impl Fn(&Dimension, isize) -> bool,
) -> Option<(Vec<Dimension>, usize)> {
    if dimensions.iter().any(|dimension| dimension.length == 0) {
        return None;
    }
    dimensions.retain(|dimension| dimension.length > 1);
    merge(&mut dimensions);
    let last = dimensions.pop_if(|last| is_run(last, element_bytes.cast_signed()));
    Some((dimensions, last.map_or(element_bytes, |last| last.length * element_bytes)))
}

/// Merges neighbouring dimensions that are contiguous in both layouts.
fn merge(dimensions: &mut Vec<Dimension>) {
    let mut merged: Vec<Dimension> = Vec::with_capacity(dimensions.len());
    for &inner in dimensions.iter() {
        let length = inner.length.cast_signed();
        match merged.last_mut() {
            Some(outer) if outer.to == length * inner.to && outer.from == length * inner.from => {
                *outer = Dimension { length: outer.length * inner.length, ..inner };
            }
            _ => merged.push(inner),
        }
    }
    *dimensions = merged;
}

/// Calls `visit` with the two offsets of each run.
fn walk(
    mut dimensions: Vec<Dimension>,
    run: usize,
    (to, from): (usize, usize),
    mut visit: impl FnMut(usize, usize),
) {
    let Some(last) = dimensions.pop() else { return visit(to, from) };
    // If the source is contiguous along another dimension than the last, walk these two in tiles.
    let along = run.cast_signed();
    let across = match dimensions.iter().position(|dimension| dimension.from == along) {
        Some(position) if last.from != along => dimensions.remove(position),
        _ => Dimension { length: 1, to: 0, from: 0 },
    };
    each_offset(&dimensions, (to, from), |to, from| {
        for i in (0..across.length).step_by(TILE) {
            for j in (0..last.length).step_by(TILE) {
                for i in i..across.length.min(i + TILE) {
                    let (to, from) = (moved(to, across.to, i), moved(from, across.from, i));
                    for j in j..last.length.min(j + TILE) {
                        visit(moved(to, last.to, j), moved(from, last.from, j));
                    }
                }
            }
        }
    });
}

/// An offset plus this many strides. Callers stay inside their buffers; an offset that does not fails the bounds check of the
/// slice.
fn moved(offset: usize, stride: isize, times: usize) -> usize {
    offset.wrapping_add_signed(stride.wrapping_mul(times.cast_signed()))
}

/// Calls `visit` with the two offsets of each position of the box, in C order. No length is 0.
fn each_offset(
    dimensions: &[Dimension],
    (mut to, mut from): (usize, usize),
    mut visit: impl FnMut(usize, usize),
) {
    let mut position = vec![0; dimensions.len()];
    loop {
        visit(to, from);
        let mut carried = true;
        for (at, dimension) in position.iter_mut().zip(dimensions).rev() {
            *at += 1;
            (to, from) = (moved(to, dimension.to, 1), moved(from, dimension.from, 1));
            if *at < dimension.length {
                carried = false;
                break;
            }
            to = moved(to, -dimension.to, dimension.length);
            from = moved(from, -dimension.from, dimension.length);
            *at = 0;
        }
        if carried {
            return;
        }
    }
}
