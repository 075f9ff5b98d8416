//! [`Inflater`]: decodes a bare deflate stream (RFC 1951) of known length and CRC-32 in pieces, as zip files contain them.
//!
//! It owns the decoder's window and no buffers: the caller passes input and output of any size to each call. It does no I/O.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::error::CodecError;
use super::support::bounded_writer::StreamStep;
use super::support::inflate::MAX_RATIO;

/// The decoder of one stream.
#[derive(Debug)]
pub struct Inflater {
    stream: Decompress,
    crc: Crc,
    /// Bytes still to be decoded.
    left: u64,
    /// The expected CRC-32 of the decoded bytes.
    crc32: u32,
    ended: bool,
}

/// Progress of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflateProgress {
    /// Bytes of the input consumed.
    pub consumed: usize,
    /// Bytes written to the front of the output.
    pub written: usize,
}

impl Inflater {
    /// A decoder of `encoded` bytes that are declared to decode to `size` bytes with this CRC-32.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if no stream of this length decodes to that many bytes.
    pub fn new(encoded: u64, size: u64, crc32: u32) -> Result<Self, CodecError> {
        if size.div_ceil(MAX_RATIO) > encoded {
            return Err(corrupt("is too short for its declared size"));
        }
        Ok(Self { stream: Decompress::new(false), crc: Crc::new(), left: size, crc32, ended: false })
    }

    /// Decodes until the input or the output is used up. More input is needed if nothing was consumed and nothing written.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if the bytes are not a deflate stream, or decode to another length or CRC-32 than declared.
    pub fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<InflateProgress, CodecError> {
        if self.ended {
            let nothing = InflateProgress { consumed: 0, written: 0 };
            return if input.is_empty() { Ok(nothing) } else { Err(corrupt("has trailing bytes")) };
        }
        let counts = |stream: &Decompress| (stream.total_in(), stream.total_out());
        let before = counts(&self.stream);
        let status = self.stream.decompress(input, output, FlushDecompress::None);
        let status = status.map_err(|error| corrupt(error.to_string()))?;
        let StreamStep { consumed, written, ended } =
            StreamStep::between(before, counts(&self.stream), status == Status::StreamEnd);
        self.crc.update(output.get(..written).unwrap_or_default());
        let left = self.left.checked_sub(written as u64);
        self.left = left.ok_or_else(|| corrupt("decodes to more bytes than declared"))?;
        self.ended = ended;
        if ended && self.left > 0 {
            return Err(corrupt("decodes to fewer bytes than declared"));
        }
        if ended && self.crc.sum() != self.crc32 {
            return Err(corrupt("the checksum does not match"));
        }
        Ok(InflateProgress { consumed, written })
    }

    /// Whether the stream has ended, with the declared length and CRC-32.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Declares the end of the input.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if the stream has not ended.
    pub fn finish(&self) -> Result<(), CodecError> {
        if self.ended { Ok(()) } else { Err(corrupt("ends too early")) }
    }
}

fn corrupt(reason: impl Into<String>) -> CodecError {
    CodecError::corrupt("deflate", reason)
}
