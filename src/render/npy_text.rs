//! The format `npy`: a file that numpy opens. `npy` has its header, which elements of a fixed size follow.
//!
//! Text and bytes of variable length become `<U` and `|S` of the longest element (`numpy.lib.format`).
//!
//! The header contains the length of the longest element, so the writer buffers all elements until the last. numpy
//! treats zeros at the end of an element as padding, so the writer rejects an element that ends in zero rather than
//! shorten it. Arrays of variable length would be pickled objects, which are never written.

use super::format::{Encoding, Format};
use super::size::check_bytes;
use super::{RenderError, ResultSchema, Writer, npy};
use crate::chunk::Elements;
use crate::metadata::{DataType, Endianness};

pub(super) const FORMAT: Format = Format {
    name: "npy",
    media_type: "application/x-npy",
    extension: "npy",
    description: "a file for numpy. Text of variable length gets the length of the longest element",
    header_line: None,
    encoding: Encoding::Items {
        preamble: npy::header,
        variable: |options, schema, limit| Ok(Box::new(NpyTextWriter::new(schema, options.endian, limit)?)),
    },
};

/// Writes text and bytes of variable length, each padded with zeros.
#[derive(Debug)]
pub(super) struct NpyTextWriter {
    /// `false` for bytes.
    is_text: bool,
    shape: Vec<u64>,
    endian: Endianness,
    limit: u64,
    total: u64,
    buffered: Vec<u8>,
    lengths: Vec<u32>,
    /// The length of the longest element so far, in characters or bytes.
    max_length: u32,
}

impl NpyTextWriter {
    /// A writer for these elements.
    ///
    /// # Errors
    /// [`RenderError::UnsupportedType`] for arrays of variable length; [`RenderError::TooLarge`] if even empty elements
    /// are over the limit.
    pub(super) fn new(schema: &ResultSchema, endian: Endianness, limit: u64) -> Result<Self, RenderError> {
        let is_text = match &schema.data_type {
            DataType::String | DataType::Json => true,
            DataType::VariableBytes => false,
            other => return Err(RenderError::UnsupportedType { data_type: other.name() }),
        };
        let total = schema.element_count();
        check_bytes(total, limit)?;
        let (kept, lengths) = (Vec::new(), Vec::new());
        Ok(Self {
            is_text,
            shape: schema.shape.clone(),
            endian,
            limit,
            total,
            buffered: kept,
            lengths,
            max_length: 1,
        })
    }

    /// Bytes of a padded element.
    fn element_bytes(&self) -> u64 {
        u64::from(self.max_length) * if self.is_text { 4 } else { 1 }
    }

    fn write_padded(&self, element: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        if self.is_text {
            // Valid UTF-8: checked before it was buffered.
            for character in std::str::from_utf8(element).unwrap_or_default().chars() {
                let number = u32::from(character);
                out.extend_from_slice(&match self.endian {
                    Endianness::Little => number.to_le_bytes(),
                    Endianness::Big => number.to_be_bytes(),
                });
            }
        } else {
            out.extend_from_slice(element);
        }
        out.resize(start + usize::try_from(self.element_bytes()).unwrap_or_default(), 0);
    }
}

impl Writer for NpyTextWriter {
    fn write(&mut self, elements: &Elements, _out: &mut Vec<u8>) -> Result<(), RenderError> {
        for element in elements.variable_elements() {
            if self.lengths.len() as u64 == self.total {
                return Err(RenderError::ElementCount);
            }
            if element.last() == Some(&0) {
                return Err(RenderError::TrailingZero);
            }
            let places = if self.is_text {
                let text = std::str::from_utf8(element).ok().ok_or(RenderError::NotUtf8)?;
                text.chars().count()
            } else {
                element.len()
            };
            let number = |length: usize| u32::try_from(length).ok().ok_or(RenderError::ElementCount);
            self.max_length = self.max_length.max(number(places)?);
            check_bytes(self.total.saturating_mul(self.element_bytes()), self.limit)?;
            self.lengths.push(number(element.len())?);
            self.buffered.extend_from_slice(element);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        if self.lengths.len() as u64 != self.total {
            return Err(RenderError::ElementCount);
        }
        let data_type = if self.is_text {
            DataType::FixedLengthUtf32 { code_points: self.max_length }
        } else {
            DataType::NullTerminatedBytes { bytes: self.max_length }
        };
        out.extend_from_slice(&npy::header(&data_type, &self.shape, self.endian));
        let mut rest = &self.buffered[..];
        for &length in &self.lengths {
            let (element, remaining) =
                rest.split_at_checked(length as usize).ok_or(RenderError::ElementCount)?;
            self.write_padded(element, out);
            rest = remaining;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_elements::{schema, variable, write_all};

    fn file(data_type: &DataType, endian: Endianness, elements: &[&[u8]]) -> Result<Vec<u8>, RenderError> {
        let schema = schema(data_type, &[elements.len() as u64]);
        write_all(NpyTextWriter::new(&schema, endian, 1 << 10)?, &[variable(elements)])
    }

    fn split(file: &[u8]) -> (String, &[u8]) {
        let end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        (String::from_utf8_lossy(&file[10..end]).into_owned(), &file[end..])
    }

    #[test]
    fn texts_are_padded_to_the_characters_of_the_longest() {
        let texts: [&[u8]; 3] = ["\u{e9}\u{1f600}".as_bytes(), b"", b"a"];
        let little = file(&DataType::String, Endianness::Little, &texts).unwrap();
        let (header, items) = split(&little);
        assert!(header.contains("'<U2'") && header.contains("(3,)"), "{header}");
        let numbers: Vec<u32> = items.as_chunks().0.iter().map(|&item| u32::from_le_bytes(item)).collect();
        assert_eq!(numbers, [0xe9, 0x1f600, 0, 0, 0x61, 0]);
        let big = file(&DataType::String, Endianness::Big, &texts).unwrap();
        let (header, items) = split(&big);
        assert!(header.contains("'>U2'"), "{header}");
        assert_eq!(items[..8], [0, 0, 0, 0xe9, 0, 1, 0xf6, 0]);
    }

    #[test]
    fn bytes_are_padded_to_the_longest_and_at_least_one_byte() {
        let bytes = file(&DataType::VariableBytes, Endianness::Big, &[b"\0a", b"\xff"]).unwrap();
        let (header, items) = split(&bytes);
        assert!(header.contains("'|S2'"), "{header}");
        assert_eq!(items, b"\0a\xff\0");
        let empty = file(&DataType::VariableBytes, Endianness::Little, &[b""]).unwrap();
        assert!(split(&empty).0.contains("'|S1'") && split(&empty).1 == [0]);
        let json = file(&DataType::Json, Endianness::Little, &[b"[1]"]).unwrap();
        assert!(split(&json).0.contains("'<U3'"));
    }

    #[test]
    fn elements_that_numpy_would_shorten_are_rejected() {
        for data_type in [DataType::String, DataType::VariableBytes] {
            let error = file(&data_type, Endianness::Little, &[b"a", b"b\0"]).unwrap_err();
            assert_eq!(error, RenderError::TrailingZero);
        }
    }

    #[test]
    fn arrays_of_variable_length_are_rejected() {
        let arrays = DataType::VariableArray(std::sync::Arc::new(DataType::UInt8));
        let error = file(&arrays, Endianness::Little, &[b"a"]).unwrap_err();
        assert!(matches!(error, RenderError::UnsupportedType { .. }), "{error}");
    }

    #[test]
    fn a_long_text_is_rejected_before_all_others_are_padded_to_its_length() {
        let long = [b'a'; 100];
        let result = file(&DataType::String, Endianness::Little, &[&long, b"", b""]);
        assert_eq!(result, Err(RenderError::TooLarge { bytes: 1200, limit: 1 << 10 }));
    }

    #[test]
    fn too_few_and_too_many_elements_are_rejected() {
        for (count, elements) in [(1, &[b"a" as &[u8], b"b"] as &[&[u8]]), (3, &[b"a", b"b"])] {
            let schema = schema(&DataType::String, &[count]);
            let writer = NpyTextWriter::new(&schema, Endianness::Little, 100).unwrap();
            assert_eq!(write_all(writer, &[variable(elements)]), Err(RenderError::ElementCount));
        }
    }
}
