//! [`Subset`]: a box of an array, strided along each dimension.

use std::fmt;

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

/// As `isel` takes it: an index, or a slice with its step where that is not 1.
impl fmt::Display for AxisRange {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, count, step, keep } = *self;
        write!(to, "{start}")?;
        if !keep {
            return Ok(());
        }
        let last = self.at(count.saturating_sub(1));
        match step {
            _ if step == 1 || count == 0 => write!(to, ":{}", start.saturating_add(count)),
            2.. => write!(to, ":{}:{step}", last.saturating_add(1)),
            _ if last == 0 => write!(to, "::{step}"),
            _ => write!(to, ":{}:{step}", last - 1),
        }
    }
}

/// A box of an array, strided along each dimension, in C order.
///
/// Invariant, kept by the code that creates one ([`super::Selection::resolve`], [`Subset::full`], grids): every element lies
/// inside the array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subset(pub Vec<AxisRange>);

/// As `slice` takes it.
impl fmt::Display for Subset {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, range) in self.0.iter().enumerate() {
            let separator = if axis == 0 { "" } else { "," };
            write!(to, "{separator}{range}")?;
        }
        Ok(())
    }
}

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

#[cfg(test)]
mod tests {
    use super::super::Selection;
    use super::*;

    #[test]
    fn a_subset_is_written_as_the_selection_of_its_elements() {
        const LENGTH: u64 = 10;
        let elements = |range: &AxisRange| (0..range.count).map(|k| range.at(k)).collect::<Vec<_>>();
        for start in 0..LENGTH {
            for step in [-3, -2, -1, 1, 2, 3] {
                for count in 0..=LENGTH {
                    let range = AxisRange { start, count, step, keep: true };
                    let reach = step.unsigned_abs() * count.saturating_sub(1);
                    if if step < 0 { reach > start } else { start + reach >= LENGTH } {
                        continue;
                    }
                    let subset = Subset(vec![range, AxisRange { start, count: 1, step: 1, keep: false }]);
                    let selected =
                        Selection::parse(&subset.to_string()).unwrap().resolve(&[LENGTH; 2]).unwrap();
                    assert_eq!(elements(&selected.0[0]), elements(&range), "{subset}");
                    assert_eq!(selected.shape(), subset.shape(), "{subset}");
                    assert_eq!(selected.0[1], subset.0[1], "{subset}");
                }
            }
        }
    }
}
