//! [`Inflater`]: a bare deflate stream (RFC 1951) of known length and CRC-32, decoded piece by piece, as zip files hold them.
//!
//! It holds the decoder's window and nothing else: its caller brings input and room for output, as much as it likes. It reads
//! and waits for nothing.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::CodecError;
use super::bounded_writer::StreamStep;
use super::inflate::MAX_RATIO;

/// A stream that is being decoded.
#[derive(Debug)]
pub struct Inflater {
    stream: Decompress,
    crc: Crc,
    /// Bytes that it has still to make.
    left: u64,
    /// The CRC-32 of all that it makes.
    crc32: u32,
    ended: bool,
}

/// How far one call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inflated {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// Bytes that stand at the front of the room.
    pub written: usize,
}

impl Inflater {
    /// A decoder of `encoded` bytes, which are said to make `size` bytes of this CRC-32.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if no stream of this length makes so much.
    pub fn new(encoded: u64, size: u64, crc32: u32) -> Result<Self, CodecError> {
        if size.div_ceil(MAX_RATIO) > encoded {
            return Err(corrupt("is too short for the size it is said to have"));
        }
        Ok(Self { stream: Decompress::new(false), crc: Crc::new(), left: size, crc32, ended: false })
    }

    /// Decodes what there is room for. It wants more input if neither a byte is consumed nor one written.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if the bytes are not deflated, or make more or others than they are said to.
    pub fn inflate(&mut self, input: &[u8], room: &mut [u8]) -> Result<Inflated, CodecError> {
        if self.ended {
            let nothing = Inflated { consumed: 0, written: 0 };
            return if input.is_empty() {
                Ok(nothing)
            } else {
                Err(corrupt("something stands behind the end"))
            };
        }
        let counts = |stream: &Decompress| (stream.total_in(), stream.total_out());
        let before = counts(&self.stream);
        let status = self.stream.decompress(input, room, FlushDecompress::None);
        let status = status.map_err(|error| corrupt(error.to_string()))?;
        let StreamStep { consumed, written, ended } =
            StreamStep::between(before, counts(&self.stream), status == Status::StreamEnd);
        self.crc.update(room.get(..written).unwrap_or_default());
        let left = self.left.checked_sub(written as u64);
        self.left = left.ok_or_else(|| corrupt("decodes to more bytes than it is said to"))?;
        self.ended = ended;
        if ended && self.left > 0 {
            return Err(corrupt("decodes to fewer bytes than it is said to"));
        }
        if ended && self.crc.sum() != self.crc32 {
            return Err(corrupt("the checksum does not match"));
        }
        Ok(Inflated { consumed, written })
    }

    /// Whether the stream has come to its end, and is what it was said to be.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Says that there is no more input.
    ///
    /// # Errors
    /// [`CodecError::Corrupt`] if the stream has not come to its end.
    pub fn finish(&self) -> Result<(), CodecError> {
        if self.ended { Ok(()) } else { Err(corrupt("ends too early")) }
    }
}

fn corrupt(reason: impl Into<String>) -> CodecError {
    CodecError::corrupt("deflate", reason)
}
