//! [`writer`]: chooses the writer of a format, and bounds the bytes of its output.

use super::arrow::{self, ArrowWriter};
use super::csv::{self, CsvWriter};
use super::json::{self, JsonWriter};
use super::length_prefixed::LengthPrefixedWriter;
use super::npy_text::NpyTextWriter;
use super::{Format, FormatOptions, RenderError, ResultSchema, Writer};

impl ResultSchema {
    /// An upper bound of the bytes of a response in this format, derived from type and shape; `None` if the response is
    /// streamed (see [`Format::delivery`]). The bound of elements of variable length is `u64::MAX`.
    #[must_use]
    pub fn max_output_bytes(&self, format: Format) -> Option<u64> {
        match format {
            _ if self.data_type.is_variable() => Some(u64::MAX),
            Format::Json => Some(json::max_bytes(&self.data_type, &self.shape)),
            Format::Csv => Some(csv::max_bytes(self)),
            Format::Arrow => Some(arrow::max_bytes(self)),
            Format::Bytes | Format::Npy => None,
        }
    }
}

/// The writer of a buffered format; `None` if the response is streamed. A streamed response consists of the items
/// themselves, after the header of [`Format::Npy`], so its length is known beforehand.
///
/// # Errors
/// [`RenderError::TooLarge`] if the upper bound by type and shape is over `limit_bytes`;
/// [`RenderError::UnsupportedType`], [`RenderError::Rank`].
pub fn writer(
    options: FormatOptions,
    schema: &ResultSchema,
    limit_bytes: u64,
) -> Result<Option<Box<dyn Writer>>, RenderError> {
    let ResultSchema { data_type, shape, .. } = schema;
    Ok(match options.format {
        Format::Json => Some(Box::new(JsonWriter::new(data_type, shape, options.nan, limit_bytes)?)),
        Format::Csv => Some(Box::new(CsvWriter::new(schema, options.nan, limit_bytes)?)),
        Format::Arrow => Some(Box::new(ArrowWriter::new(schema, limit_bytes)?)),
        Format::Bytes if data_type.is_variable() => Some(Box::new(LengthPrefixedWriter)),
        Format::Npy if data_type.is_variable() => {
            Some(Box::new(NpyTextWriter::new(schema, options.endian, limit_bytes)?))
        }
        Format::Bytes | Format::Npy => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{DataType, Endianness};
    use crate::render::test_elements::schema;
    use crate::render::{Delivery, NanMode};

    #[test]
    fn buffered_responses_have_a_writer_and_a_bound_and_streamed_ones_neither() {
        for format in Format::ALL {
            for data_type in [DataType::UInt8, DataType::String] {
                let schema = schema(&data_type, &[3]);
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
