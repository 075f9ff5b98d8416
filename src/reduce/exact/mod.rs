//! Exact sums of numbers, and means and deviations that are rounded once.
//!
//! A sum of float64 is kept as an integer of as many bits as it needs, so that it does not depend on the order of its numbers:
//! neither on chunks and segments nor on threads. [`mean`] and [`deviation`] divide such integers, and round the quotient or
//! its root to the nearest float64, half to even.

mod natural;
mod quotient;
mod sums;
#[cfg(test)]
mod tests;

pub(super) use natural::Natural;
pub(super) use quotient::{Signed, deviation, mean, rounded};
pub(super) use sums::{ExactSums, Exponents};
