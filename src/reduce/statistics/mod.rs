//! Statistics of elements: counts, sums, extremes, deviations, histograms and percentiles.
//!
//! Elements are [`super::CfValues`] first: as stored, or with the missing values, the scale and the offset of the CF conventions.
//! [`Cells`] have the statistics of elements in groups: of all elements, or of those with the same indices in some dimensions.
//! Sums are exact, so that a result is the same whatever the order of elements and the division into pieces and threads, and
//! statistics of a piece can be cached with the version of the chunk that it is of.

mod bins;
mod cells;
mod cursor;
mod percentiles;
mod statistic;

pub use bins::Bins;
pub use cells::{Cells, Extremes};
pub use cursor::Cursor;
pub use percentiles::{CellDistributions, Distribution, MAX_VALUES};
pub use statistic::Statistic;
