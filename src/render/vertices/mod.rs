//! Vertices of a vector store in three forms: an Arrow stream, one binary frame, JSON.
//!
//! Rows come as batches of one chunk each ([`crate::vectors::Batch`]). An Arrow stream is written batch by batch; the other
//! two put what is before the rows at their beginning, and so are written whole. Statistics beside the rows are the
//! caller's.

mod arrow;
mod binary;
mod json;

pub use arrow::ArrowVertices;
pub use binary::BinaryVertices;
pub use json::JsonVertices;

use crate::metadata::DataType;
use crate::vectors::Column;

/// The category that each code stands for, of codes of any integer type; `None` for a code that stands for none.
fn codes(column: &Column, values: &[u8]) -> Vec<Option<usize>> {
    let known = column.categories.as_ref().map_or(0, |categories| categories.len());
    let numbers = crate::vectors::payload::decode_integers(values, &column.kind);
    numbers.iter().map(|&code| usize::try_from(code).ok().filter(|&code| code < known)).collect()
}

/// A type's name.
fn name_of(kind: &DataType) -> String {
    kind.name()
}
