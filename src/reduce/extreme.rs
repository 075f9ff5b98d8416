//! `min` and `max`: the smallest or largest element. Of equal elements, such as 0 and -0, the first in C order.

use super::fold::{self, Fold};
use super::number::Real;
use super::present::PresentOnly;
use super::windows::Windows;

/// The smallest or the largest element. NaN is skipped.
pub(super) struct Extreme<const LARGEST: bool> {
    _private: (),
}

impl<const LARGEST: bool> Extreme<LARGEST> {
    pub(super) fn new() -> Self {
        Self { _private: () }
    }
}

/// The same without missing elements.
pub(super) struct PresentExtreme<T, const LARGEST: bool>(pub(super) PresentOnly<T>);

/// Reduces each window of a box to its smallest or largest element.
pub(super) fn reduce<T: Real, const LARGEST: bool>(
    items: &[u8],
    windows: &Windows,
    present: PresentOnly<T>,
) -> Vec<u8> {
    let is_complete = present.is_all();
    let careful = PresentExtreme::<T, LARGEST>(present);
    if is_complete {
        fold::reduce(items, windows, &Extreme::<LARGEST>::new(), &careful)
    } else {
        fold::reduce(items, windows, &careful, &careful)
    }
}

/// Whether a number replaces the best one so far.
#[inline]
fn is_better<T: Real, const LARGEST: bool>(number: T, best: T) -> bool {
    if LARGEST { number > best } else { number < best }
}

impl<T: Real, const LARGEST: bool> Fold<T> for Extreme<LARGEST> {
    type State = T;

    fn start(&self) -> T {
        T::worst(LARGEST)
    }

    #[inline]
    fn add(&self, best: T, number: T) -> T {
        if is_better::<T, LARGEST>(number, best) || best.is_nan() { number } else { best }
    }

    #[inline]
    fn finish(&self, best: T, _: u64) -> Option<T> {
        Some(if best.is_nan() { T::undefined() } else { best })
    }
}

impl<T: Real, const LARGEST: bool> Fold<T> for PresentExtreme<T, LARGEST> {
    /// The best so far, and whether there is one.
    type State = (T, bool);

    fn start(&self) -> (T, bool) {
        (self.0.empty(), false)
    }

    #[inline]
    fn add(&self, (best, any): (T, bool), number: T) -> (T, bool) {
        if !self.0.is_present(number) {
            (best, any)
        } else if any && !is_better::<T, LARGEST>(number, best) {
            (best, true)
        } else {
            (number, true)
        }
    }

    fn finish(&self, (best, _): (T, bool), _: u64) -> Option<T> {
        Some(best)
    }
}
