//! Labels: the values of a coordinate, and the positions that a request selects by them.
//!
//! The coordinate of a dimension is the array of one dimension that has its name (CF conventions 1.12, section 5). A
//! [`LabelQuery`] is what a request says about it: a label, the nearest one, a range. A [`DimensionQuery`]
//! may also have a list of labels, or conditions. A [`DimensionLabels`] has the labels in memory
//! and resolves the query to positions, by the rules of pandas and xarray where these are defined. Times are those of CF
//! ([`CfTimes`], section 4.4) in every [`Calendar`], or those of `numpy.datetime64`; a [`DateLabel`] is a period as long as
//! its last digit.
//!
//! Everything here is a function of documents and elements that were read already. Which array is the coordinate of a
//! dimension, and whether the caller may read it, is the business of callers.

mod calendar;
mod cf_times;
mod comparison;
mod date_label;
mod dimension_labels;
mod dimension_query;
mod error;
mod extent;
mod float_precision;
mod instant;
mod label_list;
mod label_number;
mod label_values;
mod longitude;
mod missing_label;
mod origin;
mod places;
mod query;
mod regular;
#[cfg(test)]
mod tests;
mod tolerance;
mod wrapped;

pub use calendar::Calendar;
pub use cf_times::CfTimes;
pub use comparison::Comparison;
pub use date_label::DateLabel;
pub use dimension_labels::{DimensionLabels, SelectedLabels};
pub use dimension_query::DimensionQuery;
pub use error::LabelError;
pub use extent::LabelExtent;
pub use label_list::{LabelList, LabelListQuery, ListFull};
pub use longitude::is_longitude_unit;
pub use query::{FillMethod, LabelQuery};
pub use regular::RegularNumbers;
