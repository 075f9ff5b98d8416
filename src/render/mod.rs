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
mod json;
pub mod npy;
mod npy_text;
mod packed;
#[cfg(test)]
mod test_elements;
mod value;
#[cfg(feature = "vectors")]
mod vertices;

pub use conversion::Conversion;
pub use error::RenderError;
pub use json::{NanMode, json_bytes_estimate};
#[cfg(feature = "vectors")]
pub use vertices::{ArrowVertices, BinaryVertices, JsonVertices};

use self::arrow::ArrowWriter;
use self::csv::CsvWriter;
use self::json::JsonWriter;
use self::npy_text::NpyTextWriter;
use self::packed::PackedWriter;

use crate::chunk::{AxisRange, Elements};
use crate::metadata::{DataType, Endianness};

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The elements in canonical form and nothing else; of variable length, each behind its length.
    Bytes,
    /// A file that numpy opens.
    Npy,
    /// Nested lists.
    Json,
    /// Rows and columns of text (RFC 4180).
    Csv,
    /// A stream of Arrow record batches.
    Arrow,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// Its form.
    pub format: Format,
    /// The byte order of [`Format::Bytes`] and [`Format::Npy`].
    pub endian: Endianness,
    /// How [`Format::Json`] and [`Format::Csv`] write what JSON has no number for.
    pub nan: NanMode,
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSchema {
    /// The type of the elements; no subarray.
    pub data_type: DataType,
    /// Elements along each dimension.
    pub shape: Vec<u64>,
    /// The names of the dimensions, if they have any.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// What stands in the first line of [`Format::Csv`]; `None` for no such line.
    pub heading: Option<Heading>,
}

/// What the columns of a table are called, where they are no fields of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// The name of a sole column: the array's.
    pub name: String,
    /// Of two dimensions, the indices of the columns.
    pub columns: AxisRange,
}

impl ResultSchema {
    /// The number of elements (saturated).
    fn elements(&self) -> u64 {
        product(&self.shape)
    }

    /// The most bytes of an answer in this form, as far as type and shape tell; `None` if it is not written whole (see
    /// [`writer`]). Of variable length, elements may take any number of bytes.
    #[must_use]
    pub fn max_output_bytes(&self, format: Format) -> Option<u64> {
        match format {
            _ if self.data_type.is_variable() => Some(u64::MAX),
            Format::Json => Some(json_bytes_estimate(&self.data_type, &self.shape)),
            Format::Csv => Some(csv::bytes_estimate(self)),
            Format::Arrow => Some(arrow::bytes_estimate(self)),
            Format::Bytes | Format::Npy => None,
        }
    }
}

/// The product of lengths (saturated), in any order 0 if one of them is.
fn product(lengths: &[u64]) -> u64 {
    if lengths.contains(&0) {
        return 0;
    }
    lengths.iter().fold(1, |product, &length| product.saturating_mul(length))
}

/// Refuses what could be longer than the limit.
fn check_bytes(bytes: u64, limit: u64) -> Result<(), RenderError> {
    if bytes > limit { Err(RenderError::TooLarge { bytes, limit }) } else { Ok(()) }
}

/// What writes such elements; `None` if the answer is the items themselves (behind the header, in [`Format::Npy`]), so
/// that its length is known before.
///
/// # Errors
/// [`RenderError::TooLarge`] if the answer could be longer than `limit_bytes`, as far as type and shape tell;
/// [`RenderError::NoForm`], [`RenderError::Rank`].
pub fn writer(
    style: FormatOptions,
    contents: &ResultSchema,
    limit_bytes: u64,
) -> Result<Option<Box<dyn Writer>>, RenderError> {
    let ResultSchema { data_type, shape, .. } = contents;
    Ok(match style.format {
        Format::Json => Some(Box::new(JsonWriter::new(data_type, shape, style.nan, limit_bytes)?)),
        Format::Csv => Some(Box::new(CsvWriter::new(contents, style.nan, limit_bytes)?)),
        Format::Arrow => Some(Box::new(ArrowWriter::new(contents, limit_bytes)?)),
        Format::Bytes if data_type.is_variable() => Some(Box::new(PackedWriter)),
        Format::Npy if data_type.is_variable() => {
            Some(Box::new(NpyTextWriter::new(contents, style.endian, limit_bytes)?))
        }
        Format::Bytes | Format::Npy => None,
    })
}

/// Writes the elements of one array, piece by piece, in a format whose length depends on the elements.
pub trait Writer: std::fmt::Debug + Send {
    /// Appends the next elements: whole ones, in C order and canonical form, of any number. What cannot be written yet is
    /// kept.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if they are more than the shape has, or the last is not whole; otherwise where one of
    /// them has no form: [`RenderError::NotText`], [`RenderError::TrailingZero`], [`RenderError::DateRange`].
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError>;

    /// Appends what stands behind the last element, and whatever was kept.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if elements are missing, [`RenderError::TooLarge`].
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError>;
}
