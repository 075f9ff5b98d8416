//! Elements of variable length as bytes: each behind its length, a `u32`, little-endian.

use super::{RenderError, Writer};
use crate::chunk::Elements;

/// Writes the lengths and the bytes.
#[derive(Debug)]
pub(super) struct PackedWriter;

impl Writer for PackedWriter {
    fn write(&mut self, elements: &Elements, out: &mut Vec<u8>) -> Result<(), RenderError> {
        for text in elements.texts() {
            let length = u32::try_from(text.len()).map_err(|_too_long| RenderError::ElementCount)?;
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(text);
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), RenderError> {
        Ok(())
    }
}
