//! The memory of statistics over whole dimensions: how many results are computed at a time, and what that takes.

use super::segments::whole_bytes;
use crate::reduce::AxisReduction;

/// Parts of a segment that are read at a time.
pub(super) const READS: usize = 2;
/// Sums may take this number of segments.
const SUM_SEGMENTS: u64 = 2;
/// Segments of a response that are computed at a time.
const SEGMENTS: u64 = 2;

/// Bytes of the sums of the results that are computed at a time, for segments of this size.
pub(super) fn sum_bytes(band_bytes: u64) -> u64 {
    whole_bytes(band_bytes).saturating_mul(SUM_SEGMENTS)
}

/// Bytes of results in a segment: those whose sums fit in memory.
pub(super) fn result_band(over: &AxisReduction, band_bytes: u64) -> u64 {
    let (usual, _) = over.cell_bytes();
    let item = over.data_type().element_bytes() as u64;
    (sum_bytes(band_bytes) / usual.max(1)).max(1).saturating_mul(item)
}

/// Whether the sums of all results fit in memory, however different their numbers are in size.
pub(super) fn fits(over: &AxisReduction, response_bytes: u64, band_bytes: u64) -> bool {
    let (_, most) = over.cell_bytes();
    results(over, response_bytes).saturating_mul(most) <= sum_bytes(band_bytes)
}

/// The most bytes of stored elements and of sums that are in memory at a time, for this number of bytes of stored elements.
pub(super) fn held_bytes(
    over: &AxisReduction,
    source_bytes: u64,
    response_bytes: u64,
    band_bytes: u64,
) -> u64 {
    let source = source_bytes.min(whole_bytes(band_bytes).saturating_mul(READS as u64 + 1));
    let (_, most) = over.cell_bytes();
    // What needs more is computed in halves.
    let sums = results(over, response_bytes).saturating_mul(most);
    let sums = sums.min(sum_bytes(band_bytes).saturating_mul(2));
    let segments = if response_bytes > result_band(over, band_bytes) { SEGMENTS } else { 1 };
    source.saturating_add(sums).saturating_mul(segments)
}

/// The number of results.
fn results(over: &AxisReduction, response_bytes: u64) -> u64 {
    response_bytes / (over.data_type().element_bytes() as u64).max(1)
}
