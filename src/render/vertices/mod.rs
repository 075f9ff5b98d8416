//! Vertices of a vector store in three formats: an Arrow stream, one binary frame, JSON.
//!
//! Rows arrive in batches of one chunk each ([`crate::vectors::Batch`]). An Arrow stream is written batch by batch. The
//! other two begin with data that is known only at the end, so they are written all at once. The caller adds
//! statistics.

mod arrow;
mod binary;
mod codes;
mod format;
mod json;

pub use arrow::ArrowVertices;
pub use binary::BinaryVertices;
pub use format::VertexFormat;
pub use json::JsonVertices;
