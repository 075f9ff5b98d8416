//! [`chunk_boxes`]: divides a box of stored elements into parts that touch each chunk once.

use std::sync::Arc;

use super::bound_array::Array;
use super::segments::{ResponseSegment, segments};
use crate::chunk::{AxisRange, Subset};

/// The parts of a box, each of whole chunks, as far as these fit in `band_bytes`: as many chunks side by side as fit, or a part
/// of one chunk. They are in no order that means anything. Only their subsets count. The iterator is lazy.
pub(super) fn chunk_boxes(
    array: &Arc<Array>,
    subset: &Subset,
    band_bytes: u64,
) -> impl Iterator<Item = Subset> + Send + use<> {
    let item = array.metadata().data_type.element_bytes() as u64;
    let pieces = subset.axes().iter().zip(array.decoded_axes());
    let pieces: Vec<Vec<AxisRange>> = pieces
        .map(|(range, axis)| axis.pieces(*range).map(|piece| range.part(piece.first, piece.count)).collect())
        .collect();
    let groups = grouped(subset, &pieces, item, band_bytes);
    let boxes = groups.iter().map(|ranges| ranges.len() as u64).fold(1, u64::saturating_mul);
    let (stored, band_bytes) = (Arc::clone(array), band_bytes.max(1));
    (0..boxes).flat_map(move |place| {
        let part = box_at(&groups, place);
        let fits = part.elements().saturating_mul(item.into()) <= band_bytes.into();
        let whole = fits.then(|| part.clone());
        let factors = vec![1; part.axes().len()];
        let cut = (!fits).then(|| segments(&stored, &part, &factors, item, band_bytes, 0..u64::MAX));
        whole.into_iter().chain(cut.into_iter().flatten().map(|ResponseSegment { subset, .. }| subset))
    })
}

/// The ranges of each dimension: as many chunks together as fit, the last dimension first.
fn grouped(subset: &Subset, pieces: &[Vec<AxisRange>], item: u64, band_bytes: u64) -> Vec<Vec<AxisRange>> {
    let largest = |pieces: &[AxisRange]| pieces.iter().map(|piece| piece.count).max().unwrap_or(0).max(1);
    let mut bytes = pieces.iter().map(|pieces| largest(pieces)).fold(item.max(1), u64::saturating_mul);
    let mut is_open = true;
    let mut groups: Vec<Vec<AxisRange>> = Vec::with_capacity(pieces.len());
    for (range, pieces) in subset.axes().iter().zip(pieces).rev() {
        let most = if is_open { (band_bytes / bytes).max(1) } else { 1 };
        let size = usize::try_from(most).unwrap_or(usize::MAX).min(pieces.len().max(1));
        is_open &= size == pieces.len();
        bytes = bytes.saturating_mul(size as u64);
        let mut first = 0;
        let mut group = |pieces: &[AxisRange]| {
            let count = pieces.iter().map(|piece| piece.count).sum();
            let part = range.part(first, count);
            first += count;
            part
        };
        groups.push(pieces.chunks(size).map(&mut group).collect());
    }
    groups.reverse();
    groups
}

/// The box at a place in the C order of all of them.
fn box_at(groups: &[Vec<AxisRange>], place: u64) -> Subset {
    let mut rest = place;
    let mut ranges = Vec::with_capacity(groups.len());
    for group in groups.iter().rev() {
        let length = (group.len() as u64).max(1);
        let at = usize::try_from(rest % length).unwrap_or_default();
        rest /= length;
        ranges.extend(group.get(at).copied());
    }
    ranges.reverse();
    Subset(ranges)
}
