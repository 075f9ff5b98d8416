//! What building a chunk of a level may take.

use crate::array::ReadLimits;
use crate::views::rechunk::{RechunkBudget, RechunkedArray};

/// The most stored chunks that are read for one chunk; their descriptions are in memory at once.
const MAX_READ_CHUNKS: u64 = 1 << 16;

/// The limits of what is read for one chunk in the background.
pub(super) fn build_limits(limits: &ReadLimits) -> ReadLimits {
    ReadLimits { max_chunks: limits.max_chunks.max(MAX_READ_CHUNKS), ..*limits }
}

/// Whether a chunk of a level can be built from those of the finer level in the memory that is set aside for it: a chunk for
/// each level, and what one of them is made from.
pub(super) fn fits_in_build(
    level: &RechunkedArray,
    finer: &RechunkedArray,
    step: &[u64],
    number: usize,
) -> bool {
    let item = level.array().metadata().data_type.element_bytes() as u64;
    let bytes = |shape: &[u64]| shape.iter().fold(item, |bytes, &edge| bytes.saturating_mul(edge));
    let largest = bytes(&level.chunk_shape).max(bytes(&finer.chunk_shape));
    // Where windows go across chunks, all that a chunk is made of is put together.
    let joined = if is_aligned(finer, step) {
        1
    } else {
        step.iter().fold(1, |factor: u64, &by| factor.saturating_mul(by))
    };
    let chunks = (number as u64).saturating_add(2).saturating_mul(joined);
    largest.saturating_mul(chunks) <= RechunkBudget::BUILD_BYTES
}

/// Whether no window of a step goes across chunks.
pub(super) fn is_aligned(finer: &RechunkedArray, step: &[u64]) -> bool {
    finer.grid().iter().zip(step).all(|(axis, &factor)| {
        axis.chunks() <= 1 || axis.edge().is_some_and(|edge| edge.is_multiple_of(factor))
    })
}
