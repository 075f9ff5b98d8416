//! Elements of variable length as bytes: each behind its length, a `u32`, little-endian.
//!
//! A JSON value goes as its text, but a JSON string as the text it stands for.

use super::{RenderError, Writer};
use crate::chunk::Elements;
use crate::metadata::DataType;

/// Writes the lengths and the bytes.
#[derive(Debug)]
pub(super) struct PackedWriter {
    is_json: bool,
}

impl PackedWriter {
    pub(super) fn new(data_type: &DataType) -> Self {
        Self { is_json: *data_type == DataType::Json }
    }

    fn put(text: &[u8], out: &mut Vec<u8>) -> Result<(), RenderError> {
        let length = u32::try_from(text.len()).map_err(|_too_long| RenderError::ElementCount)?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(text);
        Ok(())
    }
}

impl Writer for PackedWriter {
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError> {
        elements.texts().try_for_each(|text| {
            let is_string = self.is_json && text.first() == Some(&b'"');
            match is_string.then(|| serde_json::from_slice::<String>(text)) {
                Some(Ok(string)) => Self::put(string.as_bytes(), out),
                Some(Err(_)) | None => Self::put(text, out),
            }
        })
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), RenderError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Span;

    fn packed(data_type: &DataType) -> Vec<u8> {
        let spans = [Span { offset: 0, length: 6 }, Span { offset: 6, length: 7 }];
        let spans: Vec<u8> = spans.iter().flat_map(|span| span.to_item()).collect();
        let elements = Elements::variable(spans.into(), b"\"a\\nb\"{\"a\":1}".as_slice().into());
        let mut out = Vec::new();
        PackedWriter::new(data_type).write(&elements, &mut out).unwrap();
        out
    }

    #[test]
    fn a_json_string_goes_as_the_text_it_stands_for_and_other_json_as_it_is() {
        assert_eq!(packed(&DataType::Json), b"\x03\0\0\0a\nb\x07\0\0\0{\"a\":1}");
    }

    #[test]
    fn text_goes_as_it_is() {
        assert_eq!(packed(&DataType::String), b"\x06\0\0\0\"a\\nb\"\x07\0\0\0{\"a\":1}");
    }
}
