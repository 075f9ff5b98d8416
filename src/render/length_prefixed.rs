//! The format `bytes`: the elements in canonical form and nothing else. Those of variable length are each after its length
//! (a little-endian `u32`); a JSON value is its text.

use super::format::{Encoding, Format};
use super::{RenderError, Writer};
use crate::chunk::Elements;

pub(super) const FORMAT: Format = Format {
    name: "bytes",
    media_type: "application/octet-stream",
    extension: "bin",
    description: "elements in C order, little-endian, without padding. A `bool` is one byte, dates and time spans are \
        `int64`, and structs are written field by field. An element of variable length is its length in bytes as a \
        little-endian `uint32`, followed by these bytes",
    header_line: None,
    encoding: Encoding::Items {
        preamble: |_, _, _| Vec::new(),
        variable: |_, _, _| Ok(Box::new(LengthPrefixedWriter)),
    },
};

/// Writes each element after its length.
#[derive(Debug)]
struct LengthPrefixedWriter;

impl Writer for LengthPrefixedWriter {
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
    fn each_element_is_written_unchanged_after_its_length() {
        let spans = [VarSlice { offset: 0, length: 6 }, VarSlice { offset: 6, length: 7 }];
        let spans: Vec<u8> = spans.iter().flat_map(|span| span.to_item()).collect();
        let elements = Elements::variable(spans.into(), b"\"a\\nb\"{\"a\":1}".as_slice().into());
        let mut out = Vec::new();
        LengthPrefixedWriter.write(&elements, &mut out).unwrap();
        assert_eq!(out, b"\x06\0\0\0\"a\\nb\"\x07\0\0\0{\"a\":1}");
    }
}
