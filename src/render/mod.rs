//! Rendering: decoded elements become bytes in either byte order, npy, nested JSON, CSV or Arrow, whole or by fields of
//! a struct; pictures are in [`raster`].
//!
//! Rendering is pure: it reads nothing and waits for nothing. Its input is the shape of an array and its elements in
//! canonical form (C order, little-endian, packed; see [`DataType`](crate::metadata::DataType)), its output is bytes.
//! `http` chooses the format of a response. A new format is a file with a constant `FORMAT`, and an entry in [`FORMATS`].

mod arrow;
mod byte_order;
mod cf_decoding;
mod conversion;
mod csv;
pub mod dap;
pub mod dap4;
pub mod dataset;
mod date;
mod error;
mod format;
pub mod geotiff;
mod json;
mod length_prefixed;
pub mod netcdf;
mod npy;
mod npy_text;
mod output;
mod parquet;
pub mod raster;
mod schema;
mod size;
pub mod table;
#[cfg(test)]
mod test_elements;
mod value;
#[cfg(feature = "vectors")]
mod vertices;
mod write;
mod xml;

pub use cf_decoding::CfDecoding;
pub use conversion::Conversion;
pub use error::RenderError;
pub use format::{Delivery, Format, FormatOptions, HeaderLine, NanMode};
pub use npy::npy_type;
pub use output::writer;
pub use parquet::has_parquet_type;
pub use schema::{Heading, ResultSchema};
pub(crate) use value::escape_invalid_utf8;
#[cfg(feature = "vectors")]
pub use vertices::{ArrowVertices, BinaryVertices, JsonVertices, VertexFormat};
pub use write::Writer;

/// All formats of decoded elements; the first is the default.
pub const FORMATS: &[&Format] = &[
    &length_prefixed::FORMAT,
    &npy_text::FORMAT,
    &json::FORMAT,
    &csv::FORMAT,
    &arrow::FORMAT,
    &netcdf::FORMAT,
    &geotiff::FORMAT,
    &parquet::FORMAT,
];
