//! [`Runs`]: bytes that stand in equal runs at equal distances, as a part of a chunk's items does.
//!
//! What the bytes mean is not this file's business, nor whether they are there.

use std::ops::Range;

/// Equal runs of bytes, in the order they stand in and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Runs {
    /// Where the first begins.
    pub start: usize,
    /// How many there are.
    pub count: usize,
    /// Bytes of each.
    pub length: usize,
    /// Bytes from where one begins to where the next does; no less than the length.
    pub stride: usize,
}

impl Runs {
    /// Bytes of all of them; saturates.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.count.saturating_mul(self.length)
    }

    /// Where the last ends; saturates.
    #[must_use]
    pub fn end(&self) -> usize {
        self.end_before(usize::MAX)
    }

    /// Where the last that begins before a place ends, if the first does.
    #[must_use]
    pub fn end_before(&self, place: usize) -> usize {
        let before = place.saturating_sub(self.start).saturating_sub(1) / self.stride.max(1);
        let last = before.min(self.count.saturating_sub(1));
        self.start.saturating_add(last.saturating_mul(self.stride)).saturating_add(self.length)
    }

    /// Each of them.
    pub fn each(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Self { start, count, length, stride } = *self;
        (0..count).map(move |run| {
            let start = start.saturating_add(run.saturating_mul(stride));
            start..start.saturating_add(length)
        })
    }
}
