//! The part around the centre of a plane or line that a page shows in place of all of it, because all of it costs too much.

use super::cost::{Cost, PageLimits};
use super::facts::ShownArray;
use crate::array::Array;
use crate::chunk::AxisRange;

/// The subset with less of these dimensions: as much around the centre, up to `most` elements along each, as a page loads
/// without being asked; if that is nothing, as much as the server reads for one request.
pub(super) fn window(
    subset: &[AxisRange],
    dims: &[usize],
    most: u64,
    facts: &ShownArray,
    array: &Array,
) -> Vec<AxisRange> {
    let middle = |dim: usize| facts.shape[dim] / 2;
    // Around the centre may be the corners of four large chunks, where one of them alone is affordable.
    let in_chunk = |dim: usize| {
        let chunk = array.decoded_axes()[dim].chunk_containing(middle(dim));
        chunk.start.saturating_add(chunk.edge / 2)
    };
    let part = |side: u64, centre: &dyn Fn(usize) -> u64| {
        let mut part = subset.to_vec();
        for &dim in dims {
            let length = facts.shape[dim];
            let count = length.min(side);
            let start = centre(dim).saturating_sub(count / 2).min(length - count);
            part[dim] = AxisRange { start, count, step: 1, keep: true };
        }
        part
    };
    let largest = |limits: PageLimits, centre: &dyn Fn(usize) -> u64| {
        let fits = |side: u64| limits.allow(Cost::of(&part(side, centre), facts.item_bytes, array));
        let (mut low, mut high) = (0, most);
        while low < high {
            let side = low + (high - low).div_ceil(2);
            if fits(side) { low = side } else { high = side - 1 }
        }
        low
    };
    for limits in [facts.limits.unasked(), facts.limits] {
        let (around, inside) = (largest(limits, &middle), largest(limits, &in_chunk));
        if around.max(inside) > 0 {
            return if around >= inside { part(around, &middle) } else { part(inside, &in_chunk) };
        }
    }
    part(most, &middle)
}
