//! Statistics of elements: counts, sums, extremes, deviations, histograms and percentiles.
//!
//! Elements are [`super::CfValues`] first: as stored, or with the missing values, the scale and the offset of the CF conventions.
//! Statistics of a piece of an array are a [`Partial`]; partials are merged in the C order of the pieces. So the result is the
//! same whatever the number of threads, and a partial can be cached with the version of the chunk that it is of.

mod partial;
mod percentiles;

pub use partial::{Bins, Extremes, Partial};
pub use percentiles::{Distribution, MAX_VALUES};
