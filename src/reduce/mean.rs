//! `mean`: exact sums of integers, rounded half to even; floats summed as float64 in C order, rounded once.

use std::marker::PhantomData;

use half::{bf16, f16};

use super::accumulate::{Accumulate, Folded};
use super::fold::{self, Fold};
use super::number::{
    Integer, Real, RealFloat, rounded_quotient_32, rounded_quotient_64, rounded_quotient_128,
};
use super::present::PresentOnly;
use super::windows::Windows;

/// The most elements of 8 or 16 bits whose sum has 31 bits.
const MAX_ELEMENTS_32: usize = 1 << 15;
/// The most elements of up to 32 bits whose sum has 63 bits.
const MAX_ELEMENTS_64: usize = 1 << 31;

/// A sum of integers that is wide enough for the elements of a window.
trait Sum<T>: Copy + Send + Sync {
    const ZERO: Self;

    fn add(self, number: T) -> Self;

    /// The mean of this many elements, which is in the range of the elements.
    fn mean(self, elements: u64) -> T;
}

macro_rules! sums {
    ($($sum:ty, $quotient:ident: $($type:ty)*;)*) => {$($(
        impl Sum<$type> for $sum {
            const ZERO: Self = 0;

            #[inline]
            fn add(self, number: $type) -> Self {
                self + <$sum>::from(number)
            }

            #[inline]
            // Not `expect`: which of the lints apply depends on the type.
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_possible_wrap,
                clippy::cast_sign_loss,
                clippy::cast_lossless,
                reason = "the count fits where the sum does, and the mean of numbers fits their type"
            )]
            fn mean(self, elements: u64) -> $type {
                $quotient(self, elements as $sum) as $type
            }
        }
    )*)*};
}

sums! {
    i32, rounded_quotient_32: u8 i8 u16 i16;
    i64, rounded_quotient_64: u8 i8 u16 i16 u32 i32;
    i128, rounded_quotient_128: u8 i8 u16 i16 u32 i32 u64 i64;
}

/// A real type with its mean.
pub(super) trait Average: Real {
    /// Reduces each window of a box to the mean of its elements.
    fn mean(items: &[u8], windows: &Windows, present: PresentOnly<Self>) -> Vec<u8>;

    /// The mean of elements that are given one part after the other.
    fn accumulated_mean(present: PresentOnly<Self>) -> Box<dyn Accumulate>;
}

macro_rules! averages {
    ($($type:ty: [$($sum:ty, $most:expr);*])*) => {$(
        impl Average for $type {
            fn mean(items: &[u8], windows: &Windows, present: PresentOnly<Self>) -> Vec<u8> {
                let is_complete = present.is_all();
                let careful = PresentIntegerMean(present);
                $(
                    if is_complete && windows.largest() <= $most {
                        return fold::reduce(items, windows, &IntegerMean::<$sum>::new(), &careful);
                    }
                )*
                fold::reduce(items, windows, &careful, &careful)
            }

            fn accumulated_mean(present: PresentOnly<Self>) -> Box<dyn Accumulate> {
                Box::new(Folded::new(PresentIntegerMean(present)))
            }
        }
    )*};
}

averages! {
    u8: [i32, MAX_ELEMENTS_32; i64, MAX_ELEMENTS_64]
    i8: [i32, MAX_ELEMENTS_32; i64, MAX_ELEMENTS_64]
    u16: [i32, MAX_ELEMENTS_32; i64, MAX_ELEMENTS_64]
    i16: [i32, MAX_ELEMENTS_32; i64, MAX_ELEMENTS_64]
    u32: [i64, MAX_ELEMENTS_64]
    i32: [i64, MAX_ELEMENTS_64]
    u64: [i128, usize::MAX]
    i64: [i128, usize::MAX]
}

macro_rules! float_averages {
    ($($type:ty),*) => {$(
        impl Average for $type {
            fn mean(items: &[u8], windows: &Windows, present: PresentOnly<Self>) -> Vec<u8> {
                let is_complete = present.is_all();
                let careful = PresentFloatMean(present);
                if is_complete {
                    fold::reduce(items, windows, &FloatMean, &careful)
                } else {
                    fold::reduce(items, windows, &careful, &careful)
                }
            }

            fn accumulated_mean(present: PresentOnly<Self>) -> Box<dyn Accumulate> {
                Box::new(Folded::new(PresentFloatMean(present)))
            }
        }
    )*};
}

float_averages!(f16, bf16, f32, f64);

/// The mean of integers of which none is missing.
struct IntegerMean<S>(PhantomData<S>);

impl<S> IntegerMean<S> {
    fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Integer, S: Sum<T>> Fold<T> for IntegerMean<S> {
    type State = S;

    fn start(&self) -> S {
        S::ZERO
    }

    #[inline]
    fn add(&self, state: S, number: T) -> S {
        state.add(number)
    }

    #[inline]
    fn finish(&self, state: S, elements: u64) -> Option<T> {
        Some(state.mean(elements))
    }
}

/// The mean of integers without those that are missing.
struct PresentIntegerMean<T>(PresentOnly<T>);

impl<T: Integer> Fold<T> for PresentIntegerMean<T>
where
    i128: Sum<T>,
{
    type State = (i128, u64);

    fn start(&self) -> (i128, u64) {
        (0, 0)
    }

    #[inline]
    fn add(&self, (sum, present): (i128, u64), number: T) -> (i128, u64) {
        if self.0.is_present(number) { (sum + number.into(), present + 1) } else { (sum, present) }
    }

    fn finish(&self, (sum, present): (i128, u64), _: u64) -> Option<T> {
        Some(if present == 0 { self.0.empty() } else { sum.mean(present) })
    }
}

/// The mean of floats of which none is NaN or missing.
struct FloatMean;

impl<T: RealFloat> Fold<T> for FloatMean {
    type State = f64;

    fn start(&self) -> f64 {
        0.0
    }

    #[inline]
    fn add(&self, state: f64, number: T) -> f64 {
        state + number.double()
    }

    #[inline]
    fn finish(&self, state: f64, elements: u64) -> Option<T> {
        if state.is_nan() { None } else { Some(T::rounded(state / count(elements))) }
    }
}

/// The mean of floats without NaN and those that are missing.
struct PresentFloatMean<T>(PresentOnly<T>);

impl<T: RealFloat> Fold<T> for PresentFloatMean<T> {
    type State = (f64, u64);

    fn start(&self) -> (f64, u64) {
        (0.0, 0)
    }

    #[inline]
    fn add(&self, (sum, present): (f64, u64), number: T) -> (f64, u64) {
        if self.0.is_present(number) { (sum + number.double(), present + 1) } else { (sum, present) }
    }

    fn finish(&self, (sum, present): (f64, u64), _: u64) -> Option<T> {
        Some(mean_of(sum, present))
    }
}

/// The mean of floats with this sum; NaN of none.
pub(super) fn mean_of<T: RealFloat>(sum: f64, present: u64) -> T {
    let mean = sum / count(present);
    if mean.is_nan() { T::undefined() } else { T::rounded(mean) }
}

/// A number of elements as a float64.
#[expect(clippy::cast_precision_loss, reason = "below 2^53 elements it is exact")]
fn count(elements: u64) -> f64 {
    elements as f64
}
