//! `mean` of complex numbers: the mean of each part over the elements of which neither part is NaN.

use std::marker::PhantomData;

use super::accumulate::Accumulate;
use super::fold::for_each_of_window;
use super::mean::mean_of;
use super::number::RealFloat;
use super::windows::Windows;

/// The sums of both parts, and how many elements they are of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ComplexSum<T> {
    real: f64,
    imaginary: f64,
    present: u64,
    part: PhantomData<T>,
}

impl<T: RealFloat> ComplexSum<T> {
    /// Adds an element, unless one of its parts is NaN.
    fn add_element(&mut self, [real, imaginary]: [T::Raw; 2]) {
        let (real, imaginary) = (T::get(real), T::get(imaginary));
        if !real.is_nan() && !imaginary.is_nan() {
            self.real += real.double();
            self.imaginary += imaginary.double();
            self.present += 1;
        }
    }
}

impl<T: RealFloat> Accumulate for ComplexSum<T> {
    fn add(&mut self, items: &[u8]) {
        let (elements, _) = T::raw(items).as_chunks::<2>();
        for &element in elements {
            self.add_element(element);
        }
    }

    fn finish(&self, reduced: &mut Vec<u8>) {
        mean_of::<T>(self.real, self.present).put(reduced);
        mean_of::<T>(self.imaginary, self.present).put(reduced);
    }
}

/// Reduces each window of a box to the mean of its elements, whose parts are of the type `T`.
pub(super) fn reduce<T: RealFloat>(items: &[u8], windows: &Windows) -> Vec<u8> {
    let (elements, _) = T::raw(items).as_chunks::<2>();
    let mut reduced = Vec::with_capacity(windows.results() * 2 * size_of::<T>());
    windows.for_each_result_row(|rows| {
        for place in 0..windows.result_row() {
            let mut sum = ComplexSum { real: 0.0, imaginary: 0.0, present: 0, part: PhantomData::<T> };
            for_each_of_window(windows, rows, place, |at| {
                if let Some(&element) = elements.get(at) {
                    sum.add_element(element);
                }
            });
            sum.finish(&mut reduced);
        }
    });
    reduced
}
