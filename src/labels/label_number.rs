//! [`LabelNumber`]: a number in a request, which is compared with integers exactly.

/// An integer of this size or a larger one is compared as a float. Labels have at most 64 bits.
const LARGEST: u128 = 1 << 100;

/// A number in a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LabelNumber {
    /// A whole number.
    Integer(i128),
    /// A number with a fraction, or one that is larger than all labels. It may be infinite.
    Float(f64),
}

impl LabelNumber {
    /// The number of a text, where `true` is 1 and `false` 0; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let integer = || text.parse().ok().filter(|number: &i128| number.unsigned_abs() < LARGEST);
        match text {
            "true" => Some(Self::Integer(1)),
            "false" => Some(Self::Integer(0)),
            _ => integer().map(Self::Integer).or_else(|| Self::of_float(text.parse().ok()?)),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "whole numbers below 2^100 are cast"
    )]
    fn of_float(number: f64) -> Option<Self> {
        let is_integer = number.fract() == 0.0 && number.abs() < LARGEST as f64;
        let number = if is_integer { Self::Integer(number as i128) } else { Self::Float(number) };
        Some(number).filter(|number| !number.float().is_nan())
    }

    /// The nearest float.
    #[expect(clippy::cast_precision_loss, reason = "the labels are floats")]
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// The number in halves, where all between two integers counts as the half between them: it compares with each integer as the
    /// number does.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is larger than all labels may become another such number"
    )]
    pub(super) fn halves(self) -> i128 {
        match self {
            Self::Integer(number) => number * 2,
            Self::Float(number) => (number.floor() as i128).saturating_mul(2).saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_compares_with_integers_exactly() {
        let (least, most) = (i128::from(i64::MIN), i128::from(u64::MAX));
        for (text, below, above) in [
            ("9007199254740992.0", Some(9_007_199_254_740_991), Some(9_007_199_254_740_993)),
            ("9007199254740993", Some(9_007_199_254_740_992), Some(9_007_199_254_740_994)),
            ("1.8446744073709552e19", Some(most), Some((1 << 64) + 1)),
            ("-0.25", Some(-1), Some(0)),
            ("2.75", Some(2), Some(3)),
            ("1e300", Some(most), None),
            ("inf", Some(most), None),
            ("-inf", None, Some(least)),
        ] {
            let halves = LabelNumber::parse(text).unwrap().halves();
            assert!(below.is_none_or(|below| below * 2 < halves), "{text}: {halves}");
            assert!(above.is_none_or(|above| halves < above * 2), "{text}: {halves}");
        }
        assert_eq!(LabelNumber::parse("3.0"), Some(LabelNumber::Integer(3)));
        assert_eq!(LabelNumber::parse("true"), Some(LabelNumber::Integer(1)));
        for text in ["nan", "", "x", "1,2"] {
            assert_eq!(LabelNumber::parse(text), None, "{text}");
        }
    }
}
