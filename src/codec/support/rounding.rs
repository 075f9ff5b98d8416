//! [`Rounding`]: rounds numbers to a type with less precision (Zarr extensions, `cast_value`, member `rounding`).
//!
//! Every number is rounded once, from its exact value. The range of the type does not matter here: the caller handles
//! results beyond the largest number, NaN and the infinities.

use half::{bf16, f16};

use crate::metadata::DataType;

/// The direction in which a number is rounded that the type cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    NearestEven,
    TowardsZero,
    TowardsPositive,
    TowardsNegative,
    NearestAway,
}

/// The precision and range of a float type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FloatFormat {
    /// Bits of the significand, including the leading one.
    precision: u32,
    /// The exponent of the smallest normal number.
    least_exponent: i32,
    /// The largest number.
    pub(crate) largest: f64,
}

impl FloatFormat {
    /// The format of a float type; `None` for other types.
    pub(crate) fn for_type(data_type: &DataType) -> Option<Self> {
        let (precision, least_exponent, largest) = match data_type {
            DataType::Float16 => (11, -14, f16::MAX.to_f64()),
            DataType::BFloat16 => (8, -126, bf16::MAX.to_f64()),
            DataType::Float32 => (24, -126, f64::from(f32::MAX)),
            DataType::Float64 => (f64::MANTISSA_DIGITS, -1022, f64::MAX),
            _ => return None,
        };
        Some(Self { precision, least_exponent, largest })
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "the casts are exact, except for one that rounds in the requested direction"
)]
impl Rounding {
    /// The rounding with this name in a document.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "nearest-even" => Self::NearestEven,
            "towards-zero" => Self::TowardsZero,
            "towards-positive" => Self::TowardsPositive,
            "towards-negative" => Self::TowardsNegative,
            "nearest-away" => Self::NearestAway,
            _ => return None,
        })
    }

    /// Rounds a finite number to an integer.
    pub(crate) fn round(self, number: f64) -> f64 {
        match self {
            Self::NearestEven => number.round_ties_even(),
            Self::TowardsZero => number.trunc(),
            Self::TowardsPositive => number.ceil(),
            Self::TowardsNegative => number.floor(),
            Self::NearestAway => number.round(),
        }
    }

    /// Rounds a finite number to the precision of a format. The result may be beyond the format's largest number.
    pub(crate) fn round_to(self, number: f64, format: FloatFormat) -> f64 {
        match (self, format.precision) {
            (_, f64::MANTISSA_DIGITS) => return number,
            (Self::NearestEven, f32::MANTISSA_DIGITS) => return f64::from(number as f32),
            _ if number == 0.0 => return number,
            _ => {}
        }
        let exponent = ((number.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(format.least_exponent);
        // The exponent of the unit in the last place. In these units the number is small enough for exact rounding.
        let place = exponent - format.precision.cast_signed() + 1;
        self.round(number * power_of_two(-place)) * power_of_two(place)
    }

    /// As [`round_to`](Self::round_to), for an integer given by sign and magnitude, which may have more than 53 bits.
    pub(crate) fn round_integer_to(self, negative: bool, magnitude: u64, format: FloatFormat) -> f64 {
        let signed = |number: f64| if negative { -number } else { number };
        let bits = u64::BITS - magnitude.leading_zeros();
        if bits <= f64::MANTISSA_DIGITS {
            return self.round_to(signed(magnitude as f64), format);
        }
        let drop = bits - format.precision;
        let (kept, dropped, half) = (magnitude >> drop, magnitude & !(u64::MAX << drop), 1_u64 << (drop - 1));
        let up = match self {
            Self::NearestEven => dropped > half || dropped == half && kept % 2 == 1,
            Self::TowardsZero => false,
            Self::TowardsPositive => dropped > 0 && !negative,
            Self::TowardsNegative => dropped > 0 && negative,
            Self::NearestAway => dropped >= half,
        };
        signed((u128::from(kept + u64::from(up)) << drop) as f64)
    }
}

/// Two to a power between -1022 and 1023.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent + 1023).unsigned_abs()) << 52)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "rounding is exact")]

    use proptest::prelude::*;

    use super::*;

    const ALL: [Rounding; 5] = [
        Rounding::NearestEven,
        Rounding::TowardsZero,
        Rounding::TowardsPositive,
        Rounding::TowardsNegative,
        Rounding::NearestAway,
    ];

    fn half_precision() -> FloatFormat {
        FloatFormat::for_type(&DataType::Float16).unwrap()
    }

    #[test]
    fn ties_are_rounded_in_the_direction_of_each_mode() {
        // Halfway between 1 and the next float16, and between that one and the one after.
        for (number, expected) in [
            (1.0 + 2_f64.powi(-11), [1.0, 1.0, 1.000_976_562_5, 1.0, 1.000_976_562_5]),
            (
                -1.0 - 3.0 * 2_f64.powi(-11),
                [-1.001_953_125, -1.000_976_562_5, -1.000_976_562_5, -1.001_953_125, -1.001_953_125],
            ),
            (2.5, [2.5; 5]),
            (65_520.0, [65_536.0, 65_504.0, 65_536.0, 65_504.0, 65_536.0]),
            (1e-8, [0.0, 0.0, 2_f64.powi(-24), 0.0, 0.0]),
        ] {
            assert_eq!(ALL.map(|rounding| rounding.round_to(number, half_precision())), expected, "{number}");
        }
        for (number, expected) in [
            (2.5, [2.0, 2.0, 3.0, 2.0, 3.0]),
            (-3.5, [-4.0, -3.0, -3.0, -4.0, -4.0]),
            (0.499_999_999_999_999_94, [0.0, 0.0, 1.0, 0.0, 0.0]),
        ] {
            assert_eq!(ALL.map(|rounding| rounding.round(number)), expected, "{number}");
        }
    }

    #[test]
    fn integers_of_64_bits_are_rounded_once() {
        let double = FloatFormat::for_type(&DataType::Float64).unwrap();
        let single = FloatFormat::for_type(&DataType::Float32).unwrap();
        let tie = (1 << 53) + 1;
        assert_eq!(Rounding::NearestEven.round_integer_to(false, tie, double), 9_007_199_254_740_992.0);
        assert_eq!(Rounding::NearestAway.round_integer_to(true, tie, double), -9_007_199_254_740_994.0);
        assert_eq!(
            Rounding::TowardsZero.round_integer_to(false, u64::MAX, double),
            18_446_744_073_709_549_568.0
        );
        assert_eq!(
            Rounding::TowardsNegative.round_integer_to(true, u64::MAX, double),
            -18_446_744_073_709_551_616.0
        );
        // Slightly above a tie of float32, by less than the precision of float64.
        let hair = (1 << 63) + (1 << 39) + 1;
        assert_eq!(Rounding::NearestEven.round_integer_to(false, hair, single), 9_223_373_136_366_403_584.0);
        assert_eq!(
            Rounding::NearestEven.round_integer_to(false, hair - 1, single),
            9_223_372_036_854_775_808.0
        );
    }

    proptest! {
        #[test]
        fn rounding_up_and_down_encloses_the_hardware_conversion(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            // The hardware's result must be one of the two neighbours.
            let single = FloatFormat::for_type(&DataType::Float32).unwrap();
            let up = Rounding::TowardsPositive.round_to(number, single);
            let down = Rounding::TowardsNegative.round_to(number, single);
            let nearest = number as f32;
            prop_assert!(down <= number && number <= up);
            if number.abs() <= single.largest {
                prop_assert!(up.abs() <= single.largest && down.abs() <= single.largest);
                // There is no other number of the type between them, and none at all beside one that is of the type.
                prop_assert!(up == down || (down as f32).next_up() == up as f32);
                prop_assert_eq!(up == down, f64::from(nearest) == number);
                prop_assert!(f64::from(nearest) == up || f64::from(nearest) == down);
                prop_assert_eq!(f64::from(up as f32), up);
                prop_assert_eq!(f64::from(down as f32), down);
            }
        }

        #[test]
        fn integers_and_floats_of_equal_value_are_rounded_alike(number in 0_u64..1 << 53, negative: bool) {
            for data_type in [DataType::Float16, DataType::BFloat16, DataType::Float32, DataType::Float64] {
                let format = FloatFormat::for_type(&data_type).unwrap();
                for rounding in ALL {
                    let float = if negative { -(number as f64) } else { number as f64 };
                    prop_assert_eq!(rounding.round_integer_to(negative, number, format), rounding.round_to(float, format));
                }
            }
        }
    }
}
