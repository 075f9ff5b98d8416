//! Downsampling of decoded elements: windows of an array, each reduced to one element of the same type.
//!
//! Methods are this server's own, defined exactly, because entity tags promise bytes: a result depends on the elements of its
//! window alone, never on how an array is divided into chunks, segments or threads. Windows begin at the first selected
//! element; the last window of a dimension covers the elements that exist, so lengths are rounded up.
//!
//! | method | an integer | a float | a complex number | `bool` | any other type |
//! |---|---|---|---|---|---|
//! | `mean` | exact sum, rounded half to even | summed as float64 in C order, rounded once | each part as a float | – | – |
//! | `mode` | most frequent, the smallest of several | the same; 0 and -0 are one value | – | the same | – |
//! | `min`, `max` | yes | yes | – | all, any | – |
//! | `stride` | the first element, as it is | the same | the same | the same | the same |
//!
//! All but `stride` skip NaN and the values that mark missing elements ([`Missing`]). A window without
//! other elements gives `_FillValue` for an integer, and NaN for a float. Sums begin at 0, so the mean of negative zeros is 0.
//!
//! An [`AxisReduction`] reduces whole dimensions to one of the statistics in [`statistics`], which are exact and rounded once.
//!
//! A [`Reducer`] applies one method to a box of elements. A [`Reduction`] is what one request applies: one step, or several,
//! where each step reduces the result of the one before. This module reads nothing; [`crate::array`] applies reductions to
//! stored arrays in bounded memory.

mod accumulate;
mod axis_reduction;
mod cf;
mod complex;
mod exact;
mod extreme;
mod fold;
mod mean;
mod method;
mod missing;
mod mode;
mod number;
mod present;
mod read_as;
mod reducer;
mod reduction;
pub mod statistics;
mod stride;
#[cfg(test)]
mod tests;
mod windows;

pub use accumulate::Accumulate;
pub use axis_reduction::{AxisReduction, SumOverflow};
pub use cf::{CfError, CfValues, Visitor};
pub use method::{Method, ReduceError};
pub use missing::{Missing, is_fill_missing, missing_element};
pub use read_as::read_as;
pub use reducer::Reducer;
pub use reduction::{Reduction, halved};

/// The version of the methods. It changes whenever a release computes other bytes from the same elements.
pub const ALGORITHM: &str = "reduce 3";
