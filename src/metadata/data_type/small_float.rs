//! [`SmallFloat`]: the floats of less than 16 bits (Zarr extensions, "data-types").
//!
//! One table defines each format; conversion of numbers follows from it. An element is one byte; the unused upper bits of
//! formats of 4 or 6 bits are 0. Complex numbers of these floats are in [`DataType`](super::DataType).

/// The special values of a format: infinities and NaNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Specials {
    /// As in IEEE 754: infinities and NaNs at the largest exponent.
    Ieee,
    /// One NaN of each sign: all bits of exponent and mantissa set. No infinities.
    AllSetIsNan,
    /// One NaN, in place of the negative zero. No infinities.
    NegativeZeroIsNan,
    /// Neither infinities nor NaNs.
    Nothing,
}

/// A float of less than 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SmallFloat(&'static Format);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Format {
    name: &'static str,
    signed: bool,
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
}

const fn format(
    name: &'static str,
    (exponent_bits, mantissa_bits): (u32, u32),
    bias: i32,
    specials: Specials,
) -> Format {
    Format { name, signed: true, exponent_bits, mantissa_bits, bias, specials }
}

static FORMATS: [Format; 11] = [
    format("float8_e3m4", (3, 4), 3, Specials::Ieee),
    format("float8_e4m3", (4, 3), 7, Specials::Ieee),
    format("float8_e4m3b11fnuz", (4, 3), 11, Specials::NegativeZeroIsNan),
    format("float8_e4m3fn", (4, 3), 7, Specials::AllSetIsNan),
    format("float8_e4m3fnuz", (4, 3), 8, Specials::NegativeZeroIsNan),
    format("float8_e5m2", (5, 2), 15, Specials::Ieee),
    format("float8_e5m2fnuz", (5, 2), 16, Specials::NegativeZeroIsNan),
    // Powers of two from 2^-127, without sign and zero.
    Format {
        name: "float8_e8m0fnu",
        signed: false,
        exponent_bits: 8,
        mantissa_bits: 0,
        bias: 127,
        specials: Specials::AllSetIsNan,
    },
    format("float6_e2m3fn", (2, 3), 1, Specials::Nothing),
    format("float6_e3m2fn", (3, 2), 3, Specials::Nothing),
    format("float4_e2m1fn", (2, 1), 1, Specials::Nothing),
];

impl SmallFloat {
    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(Self)
    }

    /// The format with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|format| format.name() == name)
    }

    /// The name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Number of bits of a number.
    #[must_use]
    pub fn bits(self) -> u32 {
        u32::from(self.0.signed) + self.0.exponent_bits + self.0.mantissa_bits
    }

    /// The bits that an element uses.
    #[must_use]
    pub fn mask(self) -> u8 {
        u8::MAX >> (u8::BITS - self.bits())
    }

    /// The exact number of an element.
    #[must_use]
    pub fn value(self, element: u8) -> f32 {
        let format = self.0;
        let element = element & self.mask();
        if element == self.sign_bit() && format.specials == Specials::NegativeZeroIsNan {
            return f32::NAN;
        }
        let magnitude = if format.signed { element & (self.mask() >> 1) } else { element };
        let sign = if magnitude == element { 1.0 } else { -1.0 };
        let exponent = i32::from(magnitude) >> format.mantissa_bits;
        let mantissa = magnitude & !(u8::MAX << format.mantissa_bits);
        let largest = (1 << format.exponent_bits) - 1;
        match format.specials {
            Specials::Ieee if exponent == largest && mantissa == 0 => return sign * f32::INFINITY,
            Specials::Ieee if exponent == largest => return f32::NAN,
            Specials::AllSetIsNan if magnitude == self.mask() >> u32::from(format.signed) => {
                return f32::NAN;
            }
            _ => {}
        }
        let below_one = f32::from(mantissa) / f32::from(1_u16 << format.mantissa_bits);
        // Unsigned formats have no zero and no subnormal numbers.
        let (significand, exponent) = match exponent {
            0 if format.signed => (below_one, 1 - format.bias),
            exponent => (1.0 + below_one, exponent - format.bias),
        };
        // Computed in `f64`, whose exponent range exceeds that of every format.
        #[expect(clippy::cast_possible_truncation, reason = "every number of every format is an f32")]
        let value = (f64::from(sign * significand) * 2_f64.powi(exponent)) as f32;
        value
    }

    /// The element nearest to a number, ties to even. `None` if the number is beyond the largest, is NaN, or is negative and
    /// the format is unsigned.
    #[must_use]
    pub fn nearest(self, number: f32) -> Option<u8> {
        let negative = number.is_sign_negative();
        let magnitude = f64::from(number.abs());
        if number.is_nan() || (negative && !self.0.signed) {
            return None;
        }
        let finite: Vec<(u8, f64)> = (0..=self.mask() >> u32::from(self.0.signed))
            .map(|element| (element, f64::from(self.value(element))))
            .filter(|(_, value)| value.is_finite() && *value >= 0.0)
            .collect();
        // Elements are sorted by their numbers.
        let above = finite.iter().position(|&(_, value)| value >= magnitude);
        let (element, _) = match above {
            Some(0) => *finite.first()?,
            Some(above) => {
                let (low, high) = (*finite.get(above - 1)?, *finite.get(above)?);
                match (magnitude - low.1).total_cmp(&(high.1 - magnitude)) {
                    std::cmp::Ordering::Less => low,
                    std::cmp::Ordering::Equal if low.0 % 2 == 0 => low,
                    std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => high,
                }
            }
            None => {
                let (largest, before) = (*finite.last()?, *finite.get(finite.len().checked_sub(2)?)?);
                // A number that would round to the next larger number, if there were one, is out of range.
                let half = (largest.1 - before.1) / 2.0;
                if magnitude >= largest.1 + half {
                    return None;
                }
                largest
            }
        };
        // In formats without negative zero, its bits are the NaN.
        let sign = negative && !(element == 0 && self.0.specials == Specials::NegativeZeroIsNan);
        Some(if sign { element | self.sign_bit() } else { element })
    }

    /// The canonical NaN, if there is one.
    #[must_use]
    pub fn nan(self) -> Option<u8> {
        let all_set = self.mask() >> u32::from(self.0.signed);
        match self.0.specials {
            // The largest exponent, and the highest bit of the mantissa.
            Specials::Ieee => Some(self.infinity()? | 1 << (self.0.mantissa_bits - 1)),
            Specials::AllSetIsNan => Some(all_set),
            Specials::NegativeZeroIsNan => Some(self.sign_bit()),
            Specials::Nothing => None,
        }
    }

    /// The positive infinity, if there is one.
    #[must_use]
    pub fn infinity(self) -> Option<u8> {
        let all_set = self.mask() >> u32::from(self.0.signed);
        (self.0.specials == Specials::Ieee).then_some(all_set & u8::MAX << self.0.mantissa_bits)
    }

    /// The bit of the sign; 0 if the format has none.
    #[must_use]
    pub fn sign_bit(self) -> u8 {
        if self.0.signed { 1 << (self.bits() - 1) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str) -> SmallFloat {
        SmallFloat::from_name(name).unwrap()
    }

    /// Numbers of the formats' definitions.
    #[test]
    fn known_elements_are_known_numbers() {
        for (name, element, number) in [
            ("float8_e3m4", 0x6f, 15.5),
            ("float8_e3m4", 0x01, 0.015_625),
            ("float8_e4m3", 0x77, 240.0),
            ("float8_e4m3", 0x78, f32::INFINITY),
            ("float8_e4m3fn", 0x7e, 448.0),
            ("float8_e4m3fn", 0x01, 0.001_953_125),
            ("float8_e4m3fnuz", 0x7f, 240.0),
            ("float8_e4m3b11fnuz", 0x7f, 30.0),
            ("float8_e5m2", 0x7b, 57_344.0),
            ("float8_e5m2", 0xfc, f32::NEG_INFINITY),
            ("float8_e5m2fnuz", 0x7f, 57_344.0),
            ("float8_e8m0fnu", 0x7f, 1.0),
            ("float8_e8m0fnu", 0x00, 5.877_472e-39),
            ("float8_e8m0fnu", 0xfe, 1.701_411_8e38),
            ("float6_e2m3fn", 0x1f, 7.5),
            ("float6_e3m2fn", 0x1f, 28.0),
            ("float6_e3m2fn", 0x3f, -28.0),
            ("float4_e2m1fn", 0x07, 6.0),
            ("float4_e2m1fn", 0x09, -0.5),
        ] {
            assert_eq!(format(name).value(element).to_bits(), f32::to_bits(number), "{name} {element:#x}");
        }
    }

    #[test]
    fn every_number_is_nearest_to_itself() {
        for format in SmallFloat::all() {
            for element in 0..=format.mask() {
                let value = format.value(element);
                if value.is_finite() {
                    assert_eq!(format.nearest(value), Some(element), "{} {element:#x}", format.name());
                }
            }
        }
    }

    #[test]
    fn ties_are_rounded_to_even_and_numbers_out_of_range_rejected() {
        let format = format("float4_e2m1fn");
        for (number, element) in [
            (0.25, Some(0)),
            (0.75, Some(2)),
            (5.0, Some(6)),
            (6.9, Some(7)),
            (7.0, None),
            (f32::INFINITY, None),
            (f32::NAN, None),
            (-0.2, Some(8)),
        ] {
            assert_eq!(format.nearest(number), element, "{number}");
        }
        assert_eq!(SmallFloat::from_name("float8_e8m0fnu").unwrap().nearest(-1.0), None);
        assert_eq!(SmallFloat::from_name("float8_e4m3fnuz").unwrap().nearest(-0.0), Some(0));
    }

    #[test]
    fn every_format_has_the_nan_and_the_infinity_of_its_definition() {
        for (name, nan, infinity) in [
            ("float8_e3m4", Some(0x78), Some(0x70)),
            ("float8_e4m3", Some(0x7c), Some(0x78)),
            ("float8_e4m3b11fnuz", Some(0x80), None),
            ("float8_e4m3fn", Some(0x7f), None),
            ("float8_e4m3fnuz", Some(0x80), None),
            ("float8_e5m2", Some(0x7e), Some(0x7c)),
            ("float8_e5m2fnuz", Some(0x80), None),
            ("float8_e8m0fnu", Some(0xff), None),
            ("float6_e2m3fn", None, None),
            ("float6_e3m2fn", None, None),
            ("float4_e2m1fn", None, None),
        ] {
            assert_eq!((format(name).nan(), format(name).infinity()), (nan, infinity), "{name}");
            if let Some(nan) = nan {
                assert!(format(name).value(nan).is_nan(), "{name}");
            }
        }
    }
}
