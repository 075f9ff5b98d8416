//! [`writer`]: the writer of a response, and a bound of the bytes of its output.

use super::format::Encoding;
use super::{Format, FormatOptions, RenderError, ResultSchema, Writer};

impl ResultSchema {
    /// An upper bound of the bytes of a response in this format, derived from type and shape; `None` if the response is
    /// streamed (see [`Format::delivery`]). The bound of elements of variable length is `u64::MAX`.
    #[must_use]
    pub fn max_output_bytes(&self, format: &Format) -> Option<u64> {
        match format.encoding {
            Encoding::File => None,
            _ if self.data_type.is_variable() => Some(u64::MAX),
            Encoding::Written { max_bytes, .. } => Some(max_bytes(self)),
            Encoding::Items { .. } => None,
        }
    }
}

/// The writer of a buffered format; `None` if the response is streamed. A streamed response consists of the items
/// themselves, after [`Format::preamble`], so its length is known beforehand.
///
/// # Errors
/// [`RenderError::TooLarge`] if the upper bound by type and shape is over `limit_bytes`;
/// [`RenderError::UnsupportedType`], [`RenderError::Rank`], [`RenderError::NotOneArray`].
pub fn writer(
    options: FormatOptions,
    schema: &ResultSchema,
    limit_bytes: u64,
) -> Result<Option<Box<dyn Writer>>, RenderError> {
    let new = match options.format.encoding {
        Encoding::Written { writer, .. } => writer,
        Encoding::Items { variable, .. } if schema.data_type.is_variable() => variable,
        Encoding::Items { .. } => return Ok(None),
        Encoding::File => return Err(RenderError::NotOneArray),
    };
    new(options, schema, limit_bytes).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{DataType, Endianness};
    use crate::render::test_elements::schema;
    use crate::render::{Delivery, FORMATS, NanMode};

    #[test]
    fn buffered_responses_have_a_writer_and_a_bound_and_streamed_ones_neither() {
        for format in FORMATS.iter().filter(|format| !format.is_file()) {
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
