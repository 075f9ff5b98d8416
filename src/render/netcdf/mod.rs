//! NetCDF files in the classic format: CDF-2 (64-bit offset) and CDF-5 (64-bit data).
//!
//! After the "NetCDF Classic Format Specification" of Unidata and the "CDF-5 file format specification" of the PnetCDF project.
//! A file is a header and the values of each variable one after the other, big-endian. The header has the place of each
//! variable, and follows from the description of the dataset alone, so the length of a file is known before an element is
//! read. Every dimension has a fixed length but an empty one: a length of 0 stands for the record dimension, and a file
//! without records has no values of its variables.

mod file;
mod format;
mod header;
mod name;

pub use file::{NetcdfFile, NetcdfVariant, VariablePlace};
pub use format::FORMAT;
