//! The payloads in the cells of a vector store: positions, fragment indexes, manifests and link records.
//!
//! Zarr Vector Format 0.9, "Binary layouts". All numbers are little-endian. Payloads are untrusted: every count is
//! compared with the available bytes before memory is allocated for it. Fetching and decompression happen outside of
//! this module.

mod cursor;
mod error;
mod fragments;
mod links;
mod manifest;
mod rows;

pub use error::PayloadError;
pub use fragments::{Fragment, FragmentIndex};
pub use links::{LinkRecord, decode_link_groups, decode_links};
pub use manifest::{FragmentNumbers, FragmentSpan, Manifest};
pub use rows::{Positions, decode_integers, number_type};
