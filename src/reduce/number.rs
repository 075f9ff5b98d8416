//! [`Real`]: elements as numbers of the processor, with what each method needs of them.

use half::{bf16, f16};

/// An element of a real type, read from and written to its canonical bytes.
pub(super) trait Real: Copy + PartialOrd + Send + Sync + 'static {
    /// The bytes of an element.
    type Raw: Copy;

    /// Elements as their bytes; what does not make a whole element is left out.
    fn raw(items: &[u8]) -> &[Self::Raw];

    /// The number of an element.
    fn get(raw: Self::Raw) -> Self;

    /// Appends the element.
    fn put(self, items: &mut Vec<u8>);

    /// Whether the number is NaN.
    fn is_nan(self) -> bool;

    /// NaN, or for integers 0.
    fn undefined() -> Self;

    /// The number that every other replaces as the largest, or as the smallest: for floats NaN.
    fn worst(for_largest: bool) -> Self;

    /// The same number; 0 for -0.
    fn unsigned_zero(self) -> Self;
}

/// An integer.
pub(super) trait Integer: Real + Into<i128> {}

/// A float.
pub(super) trait RealFloat: Real {
    /// The number as a float64.
    fn double(self) -> f64;

    /// The number that a float64 is rounded to, half to even.
    fn rounded(double: f64) -> Self;
}

macro_rules! common {
    ($type:ty) => {
        type Raw = [u8; size_of::<$type>()];

        fn raw(items: &[u8]) -> &[Self::Raw] {
            items.as_chunks().0
        }

        #[inline]
        fn get(raw: Self::Raw) -> Self {
            Self::from_le_bytes(raw)
        }

        fn put(self, items: &mut Vec<u8>) {
            items.extend_from_slice(&self.to_le_bytes());
        }
    };
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Real for $type {
            common!($type);

            #[inline]
            fn is_nan(self) -> bool {
                false
            }

            fn undefined() -> Self {
                0
            }

            fn worst(for_largest: bool) -> Self {
                if for_largest { Self::MIN } else { Self::MAX }
            }

            fn unsigned_zero(self) -> Self {
                self
            }
        }

        impl Integer for $type {}
    )*};
}

integers!(u8, i8, u16, i16, u32, i32, u64, i64);

macro_rules! floats {
    ($($type:ty, $zero:expr, $double:expr, $rounded:expr;)*) => {$(
        impl Real for $type {
            common!($type);

            #[inline]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }

            fn undefined() -> Self {
                <$type>::NAN
            }

            fn worst(_: bool) -> Self {
                <$type>::NAN
            }

            fn unsigned_zero(self) -> Self {
                if self == $zero { $zero } else { self }
            }
        }

        impl RealFloat for $type {
            #[inline]
            fn double(self) -> f64 {
                let double: fn($type) -> f64 = $double;
                double(self)
            }

            #[inline]
            fn rounded(double: f64) -> Self {
                let rounded: fn(f64) -> $type = $rounded;
                rounded(double)
            }
        }
    )*};
}

floats! {
    f16, f16::ZERO, |number| number.to_f32().into(), |double| f16::from_f32(rounded_to_odd(double));
    bf16, bf16::ZERO, |number| number.to_f32().into(), |double| bf16::from_f32(rounded_to_odd(double));
    f32, 0.0, f64::from, single;
    f64, 0.0, |number| number, |double| double;
}

/// A float64 rounded to float32.
#[expect(clippy::cast_possible_truncation, reason = "the cast rounds half to even")]
fn single(double: f64) -> f32 {
    double as f32
}

/// A float64 rounded to the float32 with an odd significand, if it is none itself. Rounding that to fewer bits gives the
/// same as rounding the float64 to these bits: no tie arises that was none.
fn rounded_to_odd(double: f64) -> f32 {
    let nearest = single(double);
    if f64::from(nearest).to_bits() == double.to_bits() || double.is_nan() {
        return nearest;
    }
    let towards_zero =
        if f64::from(nearest).abs() > double.abs() { nearest.to_bits() - 1 } else { nearest.to_bits() };
    f32::from_bits(towards_zero | 1)
}

/// The quotient of two integers rounded half to even, for a positive divisor.
macro_rules! rounded_quotient {
    ($name:ident, $type:ty) => {
        #[inline]
        pub(super) fn $name(sum: $type, count: $type) -> $type {
            let (floor, rest) = if count & (count - 1) == 0 {
                (sum >> count.trailing_zeros(), sum & (count - 1))
            } else {
                (sum.div_euclid(count), sum.rem_euclid(count))
            };
            // Not `2 * rest`, which might overflow.
            let above = count - rest;
            floor + <$type>::from(rest > above || (rest == above && floor & 1 == 1))
        }
    };
}

rounded_quotient!(rounded_quotient_32, i32);
rounded_quotient!(rounded_quotient_64, i64);
rounded_quotient!(rounded_quotient_128, i128);

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "rounding is exact")]

    use super::*;

    #[test]
    fn quotients_are_rounded_half_to_even() {
        for (sum, count, expected) in [
            (1, 2, 0),
            (3, 2, 2),
            (-1, 2, 0),
            (-3, 2, -2),
            (5, 1, 5),
            (-5, 1, -5),
            (9, 6, 2),
            (15, 6, 2),
            (-9, 6, -2),
            (7, 3, 2),
            (8, 3, 3),
            (-7, 3, -2),
        ] {
            assert_eq!(rounded_quotient_32(sum, count), expected, "{sum} / {count}");
            assert_eq!(rounded_quotient_64(sum.into(), count.into()), i64::from(expected));
            assert_eq!(rounded_quotient_128(sum.into(), count.into()), i128::from(expected));
        }
    }

    #[test]
    fn a_float64_is_rounded_once_to_float16() {
        // Just above a tie of float16; rounded to float32 first, it is the tie.
        let above = 1.0 + 2_f64.powi(-11) + 2_f64.powi(-40);
        assert_eq!(<f16 as RealFloat>::rounded(above).to_f64(), 1.0 + 2_f64.powi(-10));
        assert_eq!(<f16 as RealFloat>::rounded(1.0 + 2_f64.powi(-11)).to_f64(), 1.0);
        assert_eq!(
            <bf16 as RealFloat>::rounded(1.0 + 2_f64.powi(-8) + 2_f64.powi(-40)).to_f64(),
            1.0 + 2_f64.powi(-7)
        );
        assert_eq!(<f16 as RealFloat>::rounded(1e300), f16::INFINITY);
        assert_eq!(<f16 as RealFloat>::rounded(-1e-300).to_bits(), 0x8000);
        assert!(<f16 as RealFloat>::rounded(f64::NAN).is_nan());
    }
}
