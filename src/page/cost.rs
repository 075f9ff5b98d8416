//! [`Cost`]: what it takes to read a view, and [`PageLimits`]: what a page reads of it.

use crate::array::{Array, ReadLimits};
use crate::chunk::AxisRange;

/// Decoded bytes that a page loads without being asked.
const BUDGET_BYTES: u64 = 64 << 20;
/// Chunks that a page loads without being asked.
const BUDGET_CHUNKS: u64 = 1024;

/// What it takes to read a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) chunks: u128,
    /// Decoded bytes of these chunks.
    pub(super) bytes: u128,
}

impl Cost {
    /// The cost of reading a subset of an array, whose elements have this many bytes.
    pub(super) fn of(subset: &[AxisRange], item_bytes: u64, array: &Array) -> Self {
        let touched = || array.decoded_axes().iter().zip(subset).map(|(axis, range)| axis.touched(range));
        let chunks = touched().fold(1, |product: u128, axis| product.saturating_mul(axis.chunks.into()));
        let elements = touched().fold(1, |product: u128, axis| product.saturating_mul(axis.elements));
        Self { chunks, bytes: elements.saturating_mul(item_bytes.into()) }
    }
}

/// What the server reads for one request. A page offers no more, and loads less without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// Decoded bytes.
    pub bytes: u64,
    /// Chunks.
    pub chunks: u64,
}

impl PageLimits {
    /// Those of a server with these limits.
    #[must_use]
    pub fn of(limits: &ReadLimits) -> Self {
        Self { bytes: limits.max_decoded_size, chunks: limits.max_chunks }
    }

    /// What a page loads without being asked.
    pub(super) fn unasked(self) -> Self {
        Self { bytes: self.bytes.min(BUDGET_BYTES), chunks: self.chunks.min(BUDGET_CHUNKS) }
    }

    /// Whether a cost is within them.
    pub(super) fn allow(self, cost: Cost) -> bool {
        cost.bytes <= self.bytes.into() && cost.chunks <= self.chunks.into()
    }

    /// Whether a page loads this without being asked.
    pub(super) fn allow_unasked(self, cost: Cost) -> bool {
        self.unasked().allow(cost)
    }
}
