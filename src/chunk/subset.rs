//! [`Subset`]: a box of an array, strided along each dimension.

/// Elements along one dimension: `count` of them, `step` apart, from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AxisRange {
    /// The first element.
    pub start: u64,
    /// The number of elements.
    pub count: u64,
    /// The distance from one to the next; not 0, negative for descending.
    pub step: i64,
    /// Whether the dimension stays in the response's shape (an integer index drops it).
    pub keep: bool,
}

impl AxisRange {
    /// All elements of a dimension.
    #[must_use]
    pub fn full(length: u64) -> Self {
        Self { start: 0, count: length, step: 1, keep: true }
    }

    /// The element at place `k` of the range, for `k < count`.
    #[must_use]
    pub fn at(&self, k: u64) -> u64 {
        let distance = k.wrapping_mul(self.step.unsigned_abs());
        if self.step < 0 { self.start.wrapping_sub(distance) } else { self.start.wrapping_add(distance) }
    }

    /// The part of the range from place `first` on, `count` long.
    #[must_use]
    pub fn part(&self, first: u64, count: u64) -> Self {
        Self { start: if count == 0 { self.start } else { self.at(first) }, count, ..*self }
    }
}

/// A box of an array, strided along each dimension, in C order.
///
/// Invariant, kept by the code that creates one ([`super::Selection::resolve`], [`Subset::full`], grids): every element lies
/// inside the array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subset(pub Vec<AxisRange>);

impl Subset {
    /// All elements of an array.
    #[must_use]
    pub fn full(shape: &[u64]) -> Self {
        Self(shape.iter().map(|&length| AxisRange::full(length)).collect())
    }

    /// The dimensions.
    #[must_use]
    pub fn axes(&self) -> &[AxisRange] {
        &self.0
    }

    /// The shape of the response: the counts, without the dimensions that an integer index drops.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        self.0.iter().filter(|axis| axis.keep).map(|axis| axis.count).collect()
    }

    /// The number of selected elements.
    #[must_use]
    pub fn elements(&self) -> u128 {
        // At most 32 dimensions of at most 2^63: saturate rather than wrap.
        self.0.iter().fold(1, |product: u128, axis| product.saturating_mul(axis.count.into()))
    }
}
