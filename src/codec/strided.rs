//! Copies an n-dimensional box of elements from one layout in memory to another.
//!
//! A layout is a stride in bytes along each dimension; `transpose` and shards are both made of such copies.
//! The callers compute lengths and strides from shapes they were bound to; nothing here depends on stored
//! bytes.

/// A dimension of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    /// Elements along it.
    pub(super) length: usize,
    /// Bytes between two neighbours where they go.
    pub(super) to: usize,
    /// Bytes between two neighbours where they come from.
    pub(super) from: usize,
}

/// Edge of the square in which two dimensions are walked together, so that both sides stay in the cache.
const TILE: usize = 32;

/// The strides of an array in C order, in bytes. They saturate where there are no elements to be found with
/// them: an edge of 0 lets the others be anything.
pub(super) fn strides(shape: &[usize], item_bytes: usize) -> Vec<usize> {
    let mut strides = vec![item_bytes; shape.len()];
    let mut stride = item_bytes;
    for (own, &length) in strides.iter_mut().zip(shape).rev() {
        *own = stride;
        stride = stride.saturating_mul(length);
    }
    strides
}

/// Copies the box. `dimensions` are in the order they have in `to`, so that writing goes forward.
pub(super) fn copy(mut dimensions: Vec<Dimension>, item_bytes: usize, to: &mut [u8], from: &[u8]) {
    if dimensions.iter().any(|dimension| dimension.length == 0) {
        return;
    }
    dimensions.retain(|dimension| dimension.length > 1);
    merge(&mut dimensions);
    let mut run = item_bytes;
    if let Some(&last) = dimensions.last()
        && (last.to, last.from) == (run, run)
    {
        run *= last.length;
        dimensions.pop();
    }
    match run {
        1 => walk(dimensions, run, |t, f| copy_unit::<1>(to, t, from, f)),
        2 => walk(dimensions, run, |t, f| copy_unit::<2>(to, t, from, f)),
        4 => walk(dimensions, run, |t, f| copy_unit::<4>(to, t, from, f)),
        8 => walk(dimensions, run, |t, f| copy_unit::<8>(to, t, from, f)),
        16 => walk(dimensions, run, |t, f| copy_unit::<16>(to, t, from, f)),
        _ => walk(dimensions, run, |t, f| to[t..t + run].copy_from_slice(&from[f..f + run])),
    }
}

/// A copy of fixed length, which the compiler makes a load and a store.
fn copy_unit<const N: usize>(to: &mut [u8], t: usize, from: &[u8], f: usize) {
    to[t..t + N].copy_from_slice(&from[f..f + N]);
}

/// Makes one dimension of two neighbours that are walked as one in both layouts.
fn merge(dimensions: &mut Vec<Dimension>) {
    let mut merged: Vec<Dimension> = Vec::with_capacity(dimensions.len());
    for &inner in dimensions.iter() {
        match merged.last_mut() {
            Some(outer) if outer.to == inner.length * inner.to && outer.from == inner.length * inner.from => {
                *outer = Dimension { length: outer.length * inner.length, ..inner };
            }
            _ => merged.push(inner),
        }
    }
    *dimensions = merged;
}

/// Calls `visit` with the two offsets of each run.
fn walk(mut dimensions: Vec<Dimension>, run: usize, mut visit: impl FnMut(usize, usize)) {
    let Some(last) = dimensions.pop() else { return visit(0, 0) };
    // If the source is contiguous along another dimension than the last, walk these two in tiles.
    let across = match dimensions.iter().position(|dimension| dimension.from == run) {
        Some(position) if last.from != run => dimensions.remove(position),
        _ => Dimension { length: 1, to: 0, from: 0 },
    };
    each_offset(&dimensions, |to, from| {
        for i in (0..across.length).step_by(TILE) {
            for j in (0..last.length).step_by(TILE) {
                for i in i..across.length.min(i + TILE) {
                    for j in j..last.length.min(j + TILE) {
                        visit(to + i * across.to + j * last.to, from + i * across.from + j * last.from);
                    }
                }
            }
        }
    });
}

/// Calls `visit` with the two offsets of each position of the box, in C order. No length is 0.
fn each_offset(dimensions: &[Dimension], mut visit: impl FnMut(usize, usize)) {
    let mut position = vec![0; dimensions.len()];
    let (mut to, mut from) = (0, 0);
    loop {
        visit(to, from);
        let mut carried = true;
        for (at, dimension) in position.iter_mut().zip(dimensions).rev() {
            *at += 1;
            to += dimension.to;
            from += dimension.from;
            if *at < dimension.length {
                carried = false;
                break;
            }
            to -= dimension.length * dimension.to;
            from -= dimension.length * dimension.from;
            *at = 0;
        }
        if carried {
            return;
        }
    }
}
