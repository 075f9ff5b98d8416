//! [`mean`] and [`deviation`] of exact sums, rounded once.

use super::natural::Natural;

/// A number with a sign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::reduce) struct Signed {
    pub(in crate::reduce) is_negative: bool,
    pub(in crate::reduce) magnitude: Natural,
}

impl Signed {
    /// An integer.
    #[expect(clippy::cast_possible_truncation, reason = "the limbs of an integer")]
    pub(in crate::reduce) fn integer(number: i128) -> Self {
        let magnitude = number.unsigned_abs();
        let magnitude = Natural::integer([magnitude as u64, (magnitude >> 64) as u64, 0]);
        Self { is_negative: number < 0, magnitude }
    }
}

/// The sum itself.
pub(in crate::reduce) fn rounded(sum: &Signed) -> f64 {
    signed(sum.is_negative, nearest(&sum.magnitude, false))
}

/// The quotient of a sum and the number of its numbers, which is not 0.
pub(in crate::reduce) fn mean(sum: &Signed, count: u64) -> f64 {
    let (quotient, has_rest) = sum.magnitude.extended(2).divided(count);
    signed(sum.is_negative, nearest(&quotient, has_rest))
}

/// The standard deviation of numbers as a whole population, from their sum, the sum of their squares, and how many they are, which
/// is not 0: the root of `count * squares - sum * sum`, divided by the count.
pub(in crate::reduce) fn deviation(sum: &Signed, squares: &Natural, count: u64) -> f64 {
    let square_of_sum = sum.magnitude.times(&sum.magnitude);
    let variance = squares.scaled(count).minus(&square_of_sum);
    if variance.is_zero() {
        return 0.0;
    }
    // Enough bits that 126 are left after two divisions by 64 bits.
    let (quotient, first_rest) = variance.extended(4).divided(count);
    let (quotient, second_rest) = quotient.divided(count);
    // An even number of bits is removed from a number with an even exponent, so that the root has a whole one.
    let removed = (quotient.bits() - 126).max(0);
    let removed = removed + removed % 2;
    let (square, third_rest) = quotient.without_low_bits(removed);
    let root = square.isqrt();
    let has_rest = first_rest || second_rest || third_rest || root * root != square;
    let limbs = [low_limb(root), low_limb(root >> 64)];
    nearest(&Natural::new(limbs.to_vec(), quotient.exponent() / 2 + removed / 2), has_rest)
}

#[expect(clippy::cast_possible_truncation, reason = "a limb")]
fn low_limb(number: u128) -> u64 {
    number as u64
}

fn signed(is_negative: bool, number: f64) -> f64 {
    if is_negative { -number } else { number }
}

/// The float64 nearest to a number, half to even. With a rest it is less than one unit of the lowest bit larger.
fn nearest(number: &Natural, has_rest: bool) -> f64 {
    if number.is_zero() {
        return 0.0;
    }
    let highest = number.exponent() + number.bits() - 1;
    if highest > 1023 {
        return f64::INFINITY;
    }
    // The exponent of the last bit of the result; float64 has none below -1074.
    let unit = (highest - 52).max(-1074);
    let number = if unit - number.exponent() < 1 { number.extended(3) } else { number.clone() };
    let removed = unit - number.exponent();
    let (with_half, below_half) = number.without_low_bits(removed - 1);
    let (whole, half) = (low_limb(with_half >> 1), with_half & 1 == 1);
    let is_up = half && (below_half || has_rest || whole & 1 == 1);
    double(whole + u64::from(is_up)) * power_of_two(unit)
}

#[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
fn double(number: u64) -> f64 {
    number as f64
}

/// 2 to a power from -1074 to 971.
fn power_of_two(exponent: i32) -> f64 {
    let bits = if exponent < -1022 { 1 << (exponent + 1074) } else { i64::from(exponent + 1023) << 52 };
    f64::from_bits(bits.cast_unsigned())
}
