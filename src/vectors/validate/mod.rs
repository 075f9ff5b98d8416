//! Validation of a store in five levels: structure, metadata, data, geometry types, and the pyramid of levels.
//!
//! A failed check does not stop the validation: every check runs whose inputs are usable, and the others are reported
//! as skipped. Levels 1 and 2 read metadata alone. From level 3 on every chunk is read, until a deadline.

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
pub use validation::ValidationRequest;
