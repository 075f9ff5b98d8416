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
mod packed;

pub use endian::to_big_endian;
pub use error::RenderError;
pub use json::{NanMode, json_bytes_estimate};

use self::json::JsonWriter;
use self::packed::PackedWriter;

use crate::chunk::Elements;
use crate::metadata::DataType;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The elements in canonical form and nothing else.
    Bytes,
    /// A file that numpy opens.
    Npy,
    /// Nested lists.
    Json,
}

/// What writes elements of this type and shape; `None` if the answer is the items themselves (behind the header, in
/// [`Format::Npy`]), so that its length is known before.
///
/// # Errors
/// [`RenderError::TooLarge`] if the answer could be longer than `limit_bytes`, as far as type and shape tell;
/// [`RenderError::NoForm`].
pub fn writer(
    format: Format,
    data_type: &DataType,
    shape: &[u64],
    nan: NanMode,
    limit_bytes: u64,
) -> Result<Option<Box<dyn Writer>>, RenderError> {
    Ok(match format {
        Format::Json => Some(Box::new(JsonWriter::new(data_type, shape, nan, limit_bytes)?)),
        Format::Bytes if data_type.is_variable() => Some(Box::new(PackedWriter::new(data_type))),
        Format::Npy if data_type.is_variable() => {
            return Err(RenderError::NoForm { data_type: data_type.name() });
        }
        Format::Bytes | Format::Npy => None,
    })
}

/// Writes the elements of one array, piece by piece, in a format whose length depends on the elements.
pub trait Writer: std::fmt::Debug + Send {
    /// Appends the next elements: whole ones, in C order and canonical form, of any number.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if they are more than the shape has, or the last is not whole;
    /// [`RenderError::NotText`] if one of them is text and holds what is no character.
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError>;

    /// Appends what stands behind the last element.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if elements are missing.
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError>;
}
