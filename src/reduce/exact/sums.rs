//! [`ExactSums`]: the exact sums of numbers in some cells.
//!
//! A sum is a binary number in two's complement. All cells have the same limbs: those between the lowest and the highest bit that
//! any of the numbers has. Numbers of similar size need two to four limbs, and all of float64 34.

use super::natural::Natural;
use super::quotient::Signed;

/// Which numbers are summed: the exponent of their lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reduce) enum Exponents {
    /// Of float64.
    Numbers,
    /// Of squares of float64.
    Squares,
}

impl Exponents {
    fn lowest(self) -> i32 {
        match self {
            Self::Numbers => -1074,
            Self::Squares => -2148,
        }
    }
}

/// The exact sums of numbers, one for each cell.
#[derive(Clone, Debug)]
pub(in crate::reduce) struct ExactSums {
    exponents: Exponents,
    cells: usize,
    /// The place of the lowest limb, and how many there are in each cell.
    low: usize,
    width: usize,
    limbs: Vec<u64>,
    /// The most limbs in all cells together.
    most_limbs: usize,
    is_full: bool,
}

impl ExactSums {
    /// Sums of nothing.
    pub(in crate::reduce) fn new(exponents: Exponents, cells: usize) -> Self {
        Self { exponents, cells, low: 0, width: 0, limbs: Vec::new(), most_limbs: usize::MAX, is_full: false }
    }

    /// The same sums within this number of bytes.
    pub(in crate::reduce) fn within(self, bytes: u64) -> Self {
        Self { most_limbs: usize::try_from(bytes / 8).unwrap_or(usize::MAX), ..self }
    }

    /// Whether the sums would have needed more bytes than permitted. They are then wrong.
    pub(in crate::reduce) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Bytes of memory.
    pub(in crate::reduce) fn memory_bytes(&self) -> usize {
        self.limbs.len() * 8
    }

    /// Adds a finite number to a cell, that many times; to sums of squares, its square.
    #[inline]
    pub(in crate::reduce) fn add(&mut self, cell: usize, number: f64, times: u64) {
        let bits = number.to_bits();
        let (field, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
        let (significand, place) = if field == 0 { (fraction, 0) } else { (fraction | 1 << 52, field - 1) };
        let place = usize::try_from(place).unwrap_or_default();
        let significand = u128::from(significand);
        match self.exponents {
            Exponents::Numbers => {
                self.add_bits(cell, number < 0.0, significand * u128::from(times), place);
            }
            Exponents::Squares if times == 1 => {
                self.add_bits(cell, false, significand * significand, 2 * place);
            }
            Exponents::Squares => {
                let (square, times) = (significand * significand, u128::from(times));
                self.add_bits(cell, false, (square & u128::from(u64::MAX)) * times, 2 * place);
                self.add_bits(cell, false, (square >> 64) * times, 2 * place + 64);
            }
        }
    }

    /// Adds the sums of other cells, each to the cell with the number that `cell_of` gives for it.
    pub(in crate::reduce) fn merge(&mut self, other: &Self, mut cell_of: impl FnMut() -> usize) {
        self.is_full |= other.is_full;
        if other.width == 0 || self.is_full {
            return;
        }
        // One more for the carries of any number of merges.
        self.reserve(other.low, other.low + other.width + 1);
        if self.is_full {
            return;
        }
        let at = other.low - self.low;
        for limbs in other.limbs.chunks_exact(other.width) {
            let start = cell_of() * self.width;
            let Some(sum) = self.limbs.get_mut(start + at..start + self.width) else { return };
            let sign = sign_limb(limbs);
            let mut carry = false;
            let limbs = limbs.iter().copied().chain(std::iter::repeat(sign));
            for (place, limb) in sum.iter_mut().zip(limbs) {
                (*place, carry) = added(*place, limb, carry);
            }
        }
    }

    /// The sum of a cell.
    pub(in crate::reduce) fn sum(&self, cell: usize) -> Signed {
        let start = cell * self.width;
        let limbs = self.limbs.get(start..start + self.width).unwrap_or_default();
        let is_negative = sign_limb(limbs) != 0;
        let mut limbs = limbs.to_vec();
        if is_negative {
            let mut carry = true;
            for limb in &mut limbs {
                (*limb, carry) = added(!*limb, 0, carry);
            }
        }
        let place = i32::try_from(self.low * 64).unwrap_or(i32::MAX);
        Signed { is_negative, magnitude: Natural::new(limbs, self.exponents.lowest() + place) }
    }

    /// Adds the number with these bits from a place on.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the limbs of a number")]
    fn add_bits(&mut self, cell: usize, is_negative: bool, bits: u128, place: usize) {
        if bits == 0 {
            return;
        }
        let (limb, shift) = (place / 64, place % 64);
        let (low, high) = (bits as u64, (bits >> 64) as u64);
        let limbs = if shift == 0 {
            [low, high, 0]
        } else {
            [low << shift, low >> (64 - shift) | high << shift, high >> (64 - shift)]
        };
        let skipped = limbs.iter().take_while(|&&limb| limb == 0).count();
        let used = 3 - limbs.iter().rev().take_while(|&&limb| limb == 0).count();
        if limb + skipped < self.low || limb + used + 1 > self.low + self.width {
            // The highest limb is for carries and the sign: 2^63 numbers do not fill it.
            self.reserve(limb + skipped, limb + used + 1);
        }
        if self.is_full {
            return;
        }
        let start = cell * self.width;
        let at = start + limb + skipped - self.low;
        let Some(sum) = self.limbs.get_mut(at..start + self.width) else { return };
        let limbs = limbs.get(skipped..used).unwrap_or_default();
        if is_negative {
            subtract(sum, limbs);
        } else {
            add(sum, limbs);
        }
    }

    /// Adds limbs to each cell, so that it has those from `low` to before `end`.
    #[cold]
    fn reserve(&mut self, low: usize, end: usize) {
        let (new_low, new_end) =
            if self.width == 0 { (low, end) } else { (low.min(self.low), end.max(self.low + self.width)) };
        let width = new_end - new_low;
        if width == self.width && new_low == self.low {
            return;
        }
        if self.cells.saturating_mul(width) > self.most_limbs {
            self.is_full = true;
            self.limbs = Vec::new();
            self.width = 0;
            return;
        }
        let mut limbs = vec![0; self.cells * width];
        if self.width > 0 {
            let before = self.low - new_low;
            for (new, old) in limbs.chunks_exact_mut(width).zip(self.limbs.chunks_exact(self.width)) {
                let sign = sign_limb(old);
                let old = old.iter().copied().chain(std::iter::repeat(sign));
                for (new, old) in new.iter_mut().skip(before).zip(old) {
                    *new = old;
                }
            }
        }
        (self.limbs, self.low, self.width) = (limbs, new_low, width);
    }
}

/// The limb that continues a number upwards.
fn sign_limb(limbs: &[u64]) -> u64 {
    if limbs.last().is_some_and(|limb| limb >> 63 == 1) { u64::MAX } else { 0 }
}

/// The sum of two limbs and a carry.
#[inline]
fn added(one: u64, other: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = one.overflowing_add(other);
    let (sum, second) = sum.overflowing_add(carry.into());
    (sum, first || second)
}

#[inline]
fn add(sum: &mut [u64], limbs: &[u64]) {
    let mut carry = false;
    let mut places = sum.iter_mut();
    // In this order, so that no place is lost where the limbs end.
    for (&limb, place) in limbs.iter().zip(&mut places) {
        (*place, carry) = added(*place, limb, carry);
    }
    for place in places {
        if !carry {
            return;
        }
        (*place, carry) = place.overflowing_add(1);
    }
}

#[inline]
fn subtract(sum: &mut [u64], limbs: &[u64]) {
    let mut borrow = false;
    let mut places = sum.iter_mut();
    for (&limb, place) in limbs.iter().zip(&mut places) {
        let (difference, first) = place.overflowing_sub(limb);
        let (difference, second) = difference.overflowing_sub(borrow.into());
        (*place, borrow) = (difference, first || second);
    }
    for place in places {
        if !borrow {
            return;
        }
        (*place, borrow) = place.overflowing_sub(1);
    }
}
