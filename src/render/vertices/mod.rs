//! Vertices of a vector store in three forms: an Arrow stream, one binary frame, JSON.
//!
//! Rows come as batches of one chunk each ([`crate::vectors::Batch`]). An Arrow stream is written batch by batch; the other
//! two put what is before the rows at their beginning, and so are written whole. Statistics beside the rows are the
//! caller's.

mod arrow;
mod binary;
mod codes;
mod format;
mod json;

pub use arrow::ArrowVertices;
pub use binary::BinaryVertices;
pub use format::VertexFormat;
pub use json::JsonVertices;
