//! Decoded elements → answers: npy, nested JSON, CSV, Arrow, the other byte order, some fields of a struct.
//!
//! Pure: what comes in is elements in canonical form (C order, little-endian, packed; see
//! [`DataType`]) and their shape, what goes out is bytes. Which form an answer has is
//! `http`'s to decide; nothing is read or waited for here.

mod arrow;
mod conversion;
mod csv;
mod date;
mod error;
mod format;
mod json;
mod length_prefixed;
pub mod npy;
mod npy_text;
mod output;
mod schema;
mod size;
#[cfg(test)]
mod test_elements;
mod value;
mod vertices;
mod write;

pub use conversion::Conversion;
pub use error::RenderError;
pub use format::{Delivery, Format, FormatOptions, NanMode};
pub use json::json_bytes_estimate;
pub use output::writer;
pub use schema::{Heading, ResultSchema};
pub use vertices::{ArrowVertices, BinaryVertices, JsonVertices, VertexFormat};
pub use write::Writer;
