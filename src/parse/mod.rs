//! Parsing: the bodies of writes (npy, plain bytes, JSON, Arrow) become elements. The inverse of `render`.
//!
//! The result has canonical form (C order, little-endian, packed; see [`DataType`](crate::metadata::DataType)), so that it can be
//! encoded. Bodies are hostile input: what an element may not be is an error that names the element, and nothing is allocated
//! because of a number in a body. This module is pure: it reads nothing and waits for nothing, and knows no array.

mod arrow;
mod canonical;
mod date;
mod error;
mod json;
mod length_prefixed;
mod npy;
mod npy_literal;
mod safe_cast;
mod variable;

pub use arrow::parse_arrow;
pub use canonical::check_canonical;
pub use error::ParseError;
pub use json::{
    JsonElements, is_bounded_by_type, json_length, most_expanded_bytes, most_json_bytes, parse_json,
};
pub use length_prefixed::parse_length_prefixed;
pub use npy::{MAX_NPY_HEAD_BYTES, NpyContents, NpyHead, parse_npy_head};
pub use safe_cast::SafeCast;
pub use variable::parse_padded;
