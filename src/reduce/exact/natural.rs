//! [`Natural`]: a natural number of any size, times a power of two.

/// A natural number times a power of two: `limbs`, the lowest first, times 2 to the `exponent`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::reduce) struct Natural {
    limbs: Vec<u64>,
    exponent: i32,
}

/// The bits of a limb.
const LIMB_BITS: i32 = 64;

impl Natural {
    pub(super) fn new(limbs: Vec<u64>, exponent: i32) -> Self {
        let mut natural = Self { limbs, exponent };
        natural.trim();
        natural
    }

    /// An integer of up to 192 bits, the lowest first.
    pub(in crate::reduce) fn integer(limbs: [u64; 3]) -> Self {
        Self::new(limbs.to_vec(), 0)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// The exponent of the lowest bit.
    pub(super) fn exponent(&self) -> i32 {
        self.exponent
    }

    /// The bits from the lowest to the highest that is set.
    pub(super) fn bits(&self) -> i32 {
        let Some(&last) = self.limbs.last() else { return 0 };
        length(self.limbs.len()) * LIMB_BITS - last.leading_zeros().cast_signed()
    }

    /// This number times another one.
    pub(super) fn times(&self, other: &Self) -> Self {
        let mut limbs = vec![0_u64; self.limbs.len() + other.limbs.len()];
        for (place, &one) in self.limbs.iter().enumerate() {
            let mut carry = 0;
            let mut places = limbs.iter_mut().skip(place);
            for (&limb, place) in other.limbs.iter().zip(&mut places) {
                (*place, carry) = multiplied(one, limb, *place, carry);
            }
            if let Some(place) = places.next() {
                *place = carry;
            }
        }
        Self::new(limbs, self.exponent + other.exponent)
    }

    /// This number times an integer.
    pub(super) fn scaled(&self, factor: u64) -> Self {
        let mut carry = 0;
        let mut limbs = Vec::with_capacity(self.limbs.len() + 1);
        for &limb in &self.limbs {
            let (low, high) = multiplied(limb, factor, 0, carry);
            limbs.push(low);
            carry = high;
        }
        limbs.push(carry);
        Self::new(limbs, self.exponent)
    }

    /// The difference to a number that is not larger. The exponents differ by whole limbs.
    pub(super) fn minus(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let (mut one, other) = (self.lowered_to(exponent), other.lowered_to(exponent));
        let mut borrow = false;
        for (place, limb) in one.iter_mut().enumerate() {
            (*limb, borrow) = limb.borrowing_sub_from(other.get(place).copied().unwrap_or(0), borrow);
        }
        Self::new(one, exponent)
    }

    /// The same number with that many more limbs below the others.
    pub(super) fn extended(&self, limbs: usize) -> Self {
        let exponent = self.exponent - length(limbs) * LIMB_BITS;
        Self { limbs: self.lowered_to(exponent), exponent }
    }

    /// The whole part of the quotient by an integer, in units of the lowest bit, and whether there is a rest.
    pub(super) fn divided(mut self, divisor: u64) -> (Self, bool) {
        let mut rest = 0;
        for limb in self.limbs.iter_mut().rev() {
            (*limb, rest) = quotient(rest, *limb, divisor);
        }
        self.trim();
        (self, rest != 0)
    }

    /// The number without that many of its lowest bits, as far as it fits in 128 bits, and whether one of the removed bits is set.
    pub(super) fn without_low_bits(&self, bits: i32) -> (u128, bool) {
        let bits = usize::try_from(bits).unwrap_or(0);
        let (skipped, shift) = (bits / 64, bits % 64);
        let limb = |place: usize| u128::from(self.limbs.get(skipped + place).copied().unwrap_or(0));
        let low = limb(0) | limb(1) << 64;
        let number = if shift == 0 { low } else { low >> shift | limb(2) << (128 - shift) };
        let is_set = |place: usize| self.limbs.get(place).is_some_and(|&limb| limb != 0);
        let rest = (0..skipped.min(self.limbs.len())).any(is_set)
            || self.limbs.get(skipped).is_some_and(|limb| limb & ((1 << shift) - 1) != 0);
        (number, rest)
    }

    fn lowered_to(&self, exponent: i32) -> Vec<u64> {
        let added = usize::try_from((self.exponent - exponent) / LIMB_BITS).unwrap_or(0);
        let mut limbs = vec![0; added];
        limbs.extend_from_slice(&self.limbs);
        limbs
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }
}

/// A limb minus another one and a borrow.
trait Borrowing: Sized {
    fn borrowing_sub_from(self, other: Self, borrow: bool) -> (Self, bool);
}

impl Borrowing for u64 {
    fn borrowing_sub_from(self, other: Self, borrow: bool) -> (Self, bool) {
        let (difference, one) = self.overflowing_sub(other);
        let (difference, two) = difference.overflowing_sub(borrow.into());
        (difference, one || two)
    }
}

/// The low and the high limb of `one * other + added + carry`.
#[expect(clippy::cast_possible_truncation, reason = "the limbs of a product")]
fn multiplied(one: u64, other: u64, added: u64, carry: u64) -> (u64, u64) {
    let product = u128::from(one) * u128::from(other) + u128::from(added) + u128::from(carry);
    (product as u64, (product >> 64) as u64)
}

/// The quotient and the rest of two limbs, where the high one is below the divisor.
#[expect(clippy::cast_possible_truncation, reason = "both are below the divisor times 2^64")]
fn quotient(high: u64, low: u64, divisor: u64) -> (u64, u64) {
    let number = u128::from(high) << 64 | u128::from(low);
    let divisor = u128::from(divisor.max(1));
    ((number / divisor) as u64, (number % divisor) as u64)
}

fn length(limbs: usize) -> i32 {
    i32::try_from(limbs).unwrap_or(i32::MAX / LIMB_BITS)
}
