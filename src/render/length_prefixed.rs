//! Elements of variable length as bytes: each behind its length, a `u32`, little-endian. A JSON value is its text.

use super::{RenderError, Writer};
use crate::chunk::Elements;

/// Writes the lengths and the bytes.
#[derive(Debug)]
pub(super) struct PackedWriter;

impl Writer for PackedWriter {
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError> {
        elements.variable_elements().try_for_each(|text| {
            let length = u32::try_from(text.len()).map_err(|_too_long| RenderError::ElementCount)?;
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(text);
            Ok(())
        })
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), RenderError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::VarSlice;

    #[test]
    fn an_element_goes_as_it_is_behind_its_length() {
        let spans = [VarSlice { offset: 0, length: 6 }, VarSlice { offset: 6, length: 7 }];
        let spans: Vec<u8> = spans.iter().flat_map(|span| span.to_item()).collect();
        let elements = Elements::variable(spans.into(), b"\"a\\nb\"{\"a\":1}".as_slice().into());
        let mut out = Vec::new();
        PackedWriter.write(&elements, &mut out).unwrap();
        assert_eq!(out, b"\x06\0\0\0\"a\\nb\"\x07\0\0\0{\"a\":1}");
    }
}
