//! What stands in the cells of a vector store: rows, fragment indexes, manifests, link records.
//!
//! Zarr Vector Format 0.9, "Binary layouts". Everything is little-endian and comes from hostile bytes: every count is
//! compared with the bytes that are there before anything is allocated for it. How the bytes were fetched and
//! decompressed is not this folder's business.

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
