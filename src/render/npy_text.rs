//! Text and bytes of any length as an npy file: `<U` and `|S` as long as the longest (`numpy.lib.format`).
//!
//! The header says how long the longest is, so all elements are kept until the last is known. numpy takes zeros at the
//! end of an element for filling: an element that ends in one is refused rather than shortened. Arrays of any length
//! would be pickled objects, which are never written.

use super::{Contents, RenderError, Writer, check_bytes, npy};
use crate::chunk::Elements;
use crate::metadata::{DataType, Endianness};

/// Writes text and bytes of any length, each filled up with zeros.
#[derive(Debug)]
pub(super) struct NpyTextWriter {
    /// `false` for bytes.
    is_text: bool,
    shape: Vec<u64>,
    endian: Endianness,
    limit: u64,
    total: u64,
    kept: Vec<u8>,
    lengths: Vec<u32>,
    /// The longest element so far, in characters or bytes.
    longest: u32,
}

impl NpyTextWriter {
    /// A writer for these elements.
    ///
    /// # Errors
    /// [`RenderError::NoForm`] for arrays of any length; [`RenderError::TooLarge`] if even empty elements are.
    pub(super) fn new(contents: &Contents, endian: Endianness, limit: u64) -> Result<Self, RenderError> {
        let is_text = match &contents.data_type {
            DataType::String | DataType::Json => true,
            DataType::VariableBytes => false,
            other => return Err(RenderError::NoForm { data_type: other.name() }),
        };
        let total = contents.elements();
        check_bytes(total, limit)?;
        let (kept, lengths) = (Vec::new(), Vec::new());
        Ok(Self { is_text, shape: contents.shape.clone(), endian, limit, total, kept, lengths, longest: 1 })
    }

    /// Bytes of an element filled up.
    fn item_bytes(&self) -> u64 {
        u64::from(self.longest) * if self.is_text { 4 } else { 1 }
    }

    fn write_filled(&self, element: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        if self.is_text {
            // Checked when it was kept.
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
        out.resize(start + usize::try_from(self.item_bytes()).unwrap_or_default(), 0);
    }
}

impl Writer for NpyTextWriter {
    fn write(&mut self, elements: &Elements, _out: &mut Vec<u8>) -> Result<(), RenderError> {
        for element in elements.texts() {
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
            self.longest = self.longest.max(number(places)?);
            check_bytes(self.total.saturating_mul(self.item_bytes()), self.limit)?;
            self.lengths.push(number(element.len())?);
            self.kept.extend_from_slice(element);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), RenderError> {
        if self.lengths.len() as u64 != self.total {
            return Err(RenderError::ElementCount);
        }
        let data_type = if self.is_text {
            DataType::FixedLengthUtf32 { code_points: self.longest }
        } else {
            DataType::NullTerminatedBytes { bytes: self.longest }
        };
        out.extend_from_slice(&npy::header(&data_type, &self.shape, self.endian));
        let mut rest = &self.kept[..];
        for &length in &self.lengths {
            let (element, behind) =
                rest.split_at_checked(length as usize).ok_or(RenderError::ElementCount)?;
            self.write_filled(element, out);
            rest = behind;
        }
        Ok(())
    }
}
