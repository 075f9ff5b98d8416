//! DAP2: the dataset descriptor (DDS), the dataset attributes (DAS), constraint expressions, and where values are in a
//! response.
//!
//! After "The Data Access Protocol: DAP 2.0" (ESE-RFC-004). An array whose dimensions all have coordinates is a `Grid` of the
//! array and its maps, every other one an `Array`; coordinates are arrays of their own too. Responses have the order of the
//! dataset, whatever the order in the constraint: netCDF-C reads other orders as wrong values without an error.

mod ascii;
mod constraint;
mod das;
mod dataset;
mod dds;
mod error;
mod name;
mod projection;

pub use ascii::AsciiTable;
pub use constraint::{Constraint, Hyperslab, Projection};
pub use das::das;
pub use dataset::{DapDataset, DapVariable};
pub use dds::dds;
pub use error::DapError;
pub use name::dap_name;
pub(super) use name::decoded as percent_decoded;
pub use projection::{ConstrainedArray, ConstrainedDataset, ConstrainedVariable};
