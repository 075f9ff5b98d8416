//! [`writer`]: chooses the writer of a format, and bounds the bytes of its output.

use super::arrow::{self, ArrowWriter};
use super::csv::{self, CsvWriter};
use super::json::{JsonWriter, json_bytes_estimate};
use super::length_prefixed::PackedWriter;
use super::npy_text::NpyTextWriter;
use super::{Format, FormatOptions, RenderError, ResultSchema, Writer};

impl ResultSchema {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{DataType, Endianness};
    use crate::render::test_elements::contents;
    use crate::render::{Delivery, NanMode};

    #[test]
    fn buffered_responses_have_a_writer_and_a_bound_and_streamed_ones_neither() {
        for format in Format::ALL {
            for data_type in [DataType::UInt8, DataType::String] {
                let schema = contents(&data_type, &[3]);
                let options = FormatOptions { format, endian: Endianness::Little, nan: NanMode::String };
                let is_buffered = format.delivery(&data_type) == Delivery::Buffered;
                let writer = writer(options, &schema, u64::MAX).unwrap();
                assert_eq!(writer.is_some(), is_buffered, "{format:?} {data_type:?}");
                let bound = schema.max_output_bytes(format);
                assert_eq!(bound.is_some(), is_buffered, "{format:?} {data_type:?}");
            }
        }
    }
}
