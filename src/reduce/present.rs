//! [`PresentOnly`]: which elements count, and what a window without any gives.

use super::number::Real;

/// The missing values of a type. NaN is missing too.
#[derive(Clone, Debug)]
pub(super) struct PresentOnly<T> {
    missing: Box<[T]>,
}

impl<T: Real> PresentOnly<T> {
    /// With these missing values.
    pub(super) fn new(missing: Box<[T]>) -> Self {
        Self { missing }
    }

    /// Whether every number but NaN counts.
    pub(super) fn is_all(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether a number counts.
    #[inline]
    pub(super) fn is_present(&self, number: T) -> bool {
        !number.is_nan() && !self.missing.contains(&number)
    }

    /// The result of a window in which no number counts: NaN, or the first missing value of integers.
    pub(super) fn empty(&self) -> T {
        match (T::undefined(), self.missing.first()) {
            (undefined, Some(&first)) if !undefined.is_nan() => first,
            (undefined, _) => undefined,
        }
    }
}
