//! [`Runs`]: equal runs of bytes at equal distances, such as the items of some rows of a chunk.
//!
//! Runs are offsets alone: they need not lie inside any buffer.

use std::ops::Range;

/// Equal runs of bytes in ascending order, which do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Runs {
    /// The offset of the first run.
    pub start: usize,
    /// The number of runs.
    pub count: usize,
    /// Bytes of each run.
    pub length: usize,
    /// Bytes from the beginning of one run to that of the next; at least the length.
    pub stride: usize,
}

impl Runs {
    /// Bytes of all runs; saturates.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.count.saturating_mul(self.length)
    }

    /// The end of the last run; saturates.
    #[must_use]
    pub fn end(&self) -> usize {
        self.end_before(usize::MAX)
    }

    /// The end of the last run that begins before an offset, given that the first does.
    #[must_use]
    pub fn end_before(&self, place: usize) -> usize {
        let before = place.saturating_sub(self.start).saturating_sub(1) / self.stride.max(1);
        let last = before.min(self.count.saturating_sub(1));
        self.start.saturating_add(last.saturating_mul(self.stride)).saturating_add(self.length)
    }

    /// The byte range of each run.
    pub fn each(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Self { start, count, length, stride } = *self;
        (0..count).map(move |run| {
            let start = start.saturating_add(run.saturating_mul(stride));
            start..start.saturating_add(length)
        })
    }
}
