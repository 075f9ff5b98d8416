//! Decoded elements → answers: npy, nested JSON, the other byte order.
//!
//! Pure: what comes in is elements in canonical form (C order, little-endian, packed; see
//! [`DataType`](crate::metadata::DataType)) and their shape, what goes out is bytes. Which form an answer has is
//! `http`'s to decide; nothing is read or waited for here.

mod date;
mod endian;
mod error;
mod json;
pub mod npy;

pub use endian::to_big_endian;
pub use error::RenderError;
pub use json::{JsonWriter, NanMode, json_bytes_estimate};
