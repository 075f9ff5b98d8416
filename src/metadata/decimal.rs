//! Decimal text ⇄ floats of at most 16 bits, with one rounding (Zarr core 3.1, "Permitted fill values": nearest, ties
//! to even).
//!
//! The standard library rounds decimal text to `f32` and `f64` once. Smaller floats are converted from `f32`, and rounding
//! twice would be wrong next to a tie. So the step to `f32` rounds to odd, after which the last step rounds correctly.

use std::cmp::Ordering;

use half::{bf16, f16};

use super::SmallFloat;

/// The bits of the `float16` nearest to a decimal text such as `-1.5e3`; `None` if the text is not a number. A number
/// beyond the largest `float16` gives an infinity.
pub(super) fn float16_bits(text: &str) -> Option<u16> {
    Some(f16::from_f32(parse_round_to_odd(text)?).to_bits())
}

/// The bits of the `bfloat16` nearest to a decimal text; otherwise as [`float16_bits`].
pub(super) fn bfloat16_bits(text: &str) -> Option<u16> {
    Some(bf16::from_f32(parse_round_to_odd(text)?).to_bits())
}

/// The float of less than 16 bits nearest to a decimal text; `None` if the text is not a number or beyond the largest.
pub(super) fn small_float_bits(format: SmallFloat, text: &str) -> Option<u8> {
    format.nearest(parse_round_to_odd(text)?)
}

/// The `f32` equal to a decimal text, or else the one of its two neighbours whose last bit is set.
fn parse_round_to_odd(text: &str) -> Option<f32> {
    let nearest: f32 = text.parse().ok()?;
    if !nearest.is_finite() {
        return Some(nearest);
    }
    // All decimal digits of an `f32`: at most 112 significant ones.
    let exact = Digits::parse(&format!("{nearest:.111e}"))?;
    let bits = match Digits::parse(text)?.cmp(&exact) {
        Ordering::Equal => nearest.to_bits(),
        // To odd: towards zero, then the last bit set. Comparing digits compares magnitudes, as do the bits.
        Ordering::Less => nearest.to_bits().wrapping_sub(1) | 1,
        Ordering::Greater => nearest.to_bits() | 1,
    };
    Some(f32::from_bits(bits))
}

/// A `float16` as an `f32` whose shortest text is the shortest text that parses to that `float16`: 0.1 and not
/// 0.0999755859375.
#[must_use]
pub fn float16_to_print(bits: u16) -> f32 {
    shortest(f16::from_bits(bits).to_f32(), |text| float16_bits(text) == Some(bits))
}

/// A `bfloat16` as an `f32` whose shortest text is the shortest text that parses to that `bfloat16`.
#[must_use]
pub fn bfloat16_to_print(bits: u16) -> f32 {
    shortest(bf16::from_bits(bits).to_f32(), |text| bfloat16_bits(text) == Some(bits))
}

/// A float of less than 16 bits as an `f32` whose shortest text is the shortest text that parses to that float.
#[must_use]
pub fn small_float_to_print(format: SmallFloat, element: u8) -> f32 {
    shortest(format.value(element), |text| small_float_bits(format, text) == Some(element & format.mask()))
}

/// The number with the fewest digits near `exact` for which `reads_back` is true.
fn shortest(exact: f32, reads_back: impl Fn(&str) -> bool) -> f32 {
    /// With this many digits after the first, every float of two bytes has a text of its own.
    const MOST_DIGITS: usize = 4;
    (0..=MOST_DIGITS)
        .map(|digits| format!("{exact:.digits$e}"))
        .find(|text| reads_back(text))
        .and_then(|text| text.parse().ok())
        .unwrap_or(exact)
}

/// The magnitude of a decimal text: `0.d₁d₂d₃… × 10^exponent` with `d₁` not zero. Ordered numerically.
#[derive(PartialEq, Eq)]
struct Digits {
    exponent: i64,
    digits: Vec<u8>,
}

impl Digits {
    fn parse(text: &str) -> Option<Self> {
        let unsigned = text.trim_start_matches(['+', '-']);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        digits.drain(..zeros);
        let length = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
        digits.truncate(length);
        if digits.is_empty() {
            return Some(Self { exponent: i64::MIN, digits });
        }
        let point = i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(zeros).ok()?)?;
        // An exponent that does not fit can count as the largest: the `f32` was infinite or zero.
        let written = exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
        Some(Self { exponent: point.saturating_add(written).max(i64::MIN + 1), digits })
    }
}

impl Ord for Digits {
    fn cmp(&self, other: &Self) -> Ordering {
        self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits))
    }
}

impl PartialOrd for Digits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers_have_known_bits() {
        for (text, bits) in [
            ("0", 0x0000),
            ("-0.0", 0x8000),
            ("1", 0x3c00),
            ("-2", 0xc000),
            ("0.1", 0x2e66),
            ("0.0999755859375", 0x2e66),
            ("65504", 0x7bff),
            ("65519.99", 0x7bff),
            ("65520", 0x7c00),
            ("1e400", 0x7c00),
            ("-1e400", 0xfc00),
            ("5.960464477539063e-8", 0x0001),
            ("1e-400", 0x0000),
            ("-1e-99999999999999999999", 0x8000),
            ("0e99999999999999999999", 0x0000),
            ("3.0000e0", 0x4200),
            ("300e-2", 0x4200),
        ] {
            assert_eq!(float16_bits(text), Some(bits), "{text}");
        }
        assert_eq!(float16_bits("one"), None);
    }

    #[test]
    fn a_float16_next_to_a_tie_is_rounded_once() {
        // 1 + 2^-11 lies halfway between 1 and the next float16; the texts below are equal as f32 and f64.
        let tie = "1.00048828125";
        assert_eq!(float16_bits(tie), Some(0x3c00));
        assert_eq!(float16_bits(&format!("{tie}{}1", "0".repeat(40))), Some(0x3c01));
        assert_eq!(float16_bits("1.00048828124999999999999999999999999999"), Some(0x3c00));
        assert_eq!(float16_bits("-1.000488281250000000000000000000001"), Some(0xbc01));
        // Between the next and the one after: the tie rounds up to even, and slightly less rounds down.
        assert_eq!(float16_bits("1.00146484375"), Some(0x3c02));
        assert_eq!(float16_bits("1.00146484374999999999999999999999999999"), Some(0x3c01));
        // Half of the smallest float16, 2^-25.
        assert_eq!(float16_bits("2.98023223876953125e-8"), Some(0x0000));
        assert_eq!(float16_bits("2.98023223876953125000000000000000000001e-8"), Some(0x0001));
    }

    #[test]
    fn finite_float16_numbers_are_read_back_from_their_text() {
        for bits in (0..=u16::MAX).step_by(7).filter(|&bits| f16::from_bits(bits).is_finite()) {
            let text = format!("{:?}", float16_to_print(bits));
            assert_eq!(float16_bits(&text), Some(bits), "{text}");
        }
    }

    #[test]
    fn finite_bfloat16_numbers_are_read_back_from_their_text() {
        for bits in (0..=u16::MAX).step_by(7).filter(|&bits| bf16::from_bits(bits).is_finite()) {
            let text = format!("{:?}", bfloat16_to_print(bits));
            assert_eq!(bfloat16_bits(&text), Some(bits), "{text}");
            assert!(text.len() <= 20, "{text}");
        }
        assert_eq!(format!("{:?}", bfloat16_to_print(0x3dcd)), "0.1");
        assert_eq!(format!("{:?}", bfloat16_to_print(0x4049)), "3.14");
    }

    #[test]
    fn a_bfloat16_is_rounded_once() {
        // 1 + 2^-8 lies halfway between 1 and the next bfloat16; the texts below are equal as f32.
        assert_eq!(bfloat16_bits("1.00390625"), Some(0x3f80));
        assert_eq!(bfloat16_bits("1.0039062500000000000000000000001"), Some(0x3f81));
        assert_eq!(bfloat16_bits("1.01171875"), Some(0x3f82));
        assert_eq!(bfloat16_bits("1.0117187499999999999999999999999"), Some(0x3f81));
        // Half of the smallest bfloat16 is 2^-134.
        assert_eq!(bfloat16_bits("4.59177480789956e-41"), Some(0x0000));
        assert_eq!(bfloat16_bits("4.6e-41"), Some(0x0001));
        assert_eq!(bfloat16_bits("-1e400"), Some(0xff80));
    }

    #[test]
    fn a_float16_is_written_as_its_shortest_text() {
        for (bits, text) in [
            (0x2e66, "0.1"),
            (0x3c00, "1.0"),
            (0x0001, "6e-8"),
            (0x7bff, "65500.0"),
            (0x8000, "-0.0"),
            (0x3555, "0.3333"),
        ] {
            assert_eq!(format!("{:?}", float16_to_print(bits)), text);
        }
    }
}
