//! [`Accumulate`]: one window whose elements come one part after the other, because it is larger than memory permits.

use std::marker::PhantomData;

use super::fold::Fold;
use super::number::Real;

/// A window of elements that are given one part after the other, in C order.
pub trait Accumulate: Send {
    /// Adds elements in canonical form.
    fn add(&mut self, items: &[u8]);

    /// Appends the result.
    fn finish(&self, reduced: &mut Vec<u8>);
}

/// A window that is reduced by a fold.
pub(super) struct Folded<T, F: Fold<T>> {
    fold: F,
    state: F::State,
    elements: u64,
    number: PhantomData<T>,
}

impl<T, F: Fold<T>> Folded<T, F> {
    pub(super) fn new(fold: F) -> Self {
        Self { state: fold.start(), fold, elements: 0, number: PhantomData }
    }
}

impl<T: Real, F: Fold<T>> Accumulate for Folded<T, F> {
    fn add(&mut self, items: &[u8]) {
        let raw = T::raw(items);
        self.elements += raw.len() as u64;
        self.state = raw.iter().fold(self.state, |state, &raw| self.fold.add(state, T::get(raw)));
    }

    fn finish(&self, reduced: &mut Vec<u8>) {
        self.fold.finish(self.state, self.elements).unwrap_or_else(T::undefined).put(reduced);
    }
}
