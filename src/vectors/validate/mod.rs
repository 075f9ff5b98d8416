//! Whether a store keeps to the format, in five levels: what there is, what the metadata says, what the data says, what kinds
//! of geometry ask for, and how the levels of a pyramid stand to each other.
//!
//! Nothing ends at the first fault: each check is made whose inputs are usable, and those that are not are listed as
//! skipped. The first two levels read metadata alone; from the third on every chunk is read, until a deadline.

mod chunks;
mod data;
mod geometry;
mod level_facts;
mod links;
mod manifests;
mod metadata;
mod report;
mod shapes;
mod structure;
mod validation;

pub use report::{Check, Report, Status};
pub use validation::Validation;
