//! Bounded decoding of deflate in the containers of gzip and zlib, which are recognised by their first bytes.
//!
//! The bare streams of zip files are decoded in pieces by [`crate::codec::Inflater`].
//!
//! RFC 1950, 1951, 1952. Documents confuse the two names, so either codec reads either container. Several gzip members are
//! one stream. Zeros after the last member are padding; any other trailing byte is an error. The header checksum of
//! RFC 1952 is not verified.

use std::cell::RefCell;

use ::bytes::Bytes;
use flate2::{Compression, Crc, Decompress, FlushDecompress, Status};

use super::bounded_writer::{BoundedWriter, StreamStep};
use super::config::CodecConfig;
use super::representation::Size;
use crate::codec::CodecError;

const MAGIC: [u8; 2] = [0x1f, 0x8b];
const TRAILER_BYTES: usize = 8;
/// Largest compression ratio of deflate: a match of 258 bytes takes at least two bits.
pub(crate) const MAX_RATIO: u64 = 1032;

/// The compression level of a configuration: 0 to 9, or -1 for the library's default. Without one it is 1, the default of
/// numcodecs.
pub(crate) fn level(config: &CodecConfig) -> Result<Compression, CodecError> {
    let error = || config.invalid("`level` must be between 0 and 9");
    match config.integer("level")?.unwrap_or(1) {
        -1 => Ok(Compression::default()),
        level => match u32::try_from(level) {
            Ok(level @ 0..=9) => Ok(Compression::new(level)),
            _ => Err(error()),
        },
    }
}

thread_local! {
    /// The inflater's window and tables: 50 KiB, reused by all decoding on this thread.
    static INFLATER: RefCell<Decompress> = RefCell::new(Decompress::new(false));
}

/// Decodes a complete gzip or zlib value to bytes of the given size.
pub(crate) fn decode(codec: &'static str, encoded: &[u8], size: Size) -> Result<Bytes, CodecError> {
    INFLATER.with_borrow_mut(|inflater| {
        let output = BoundedWriter::new(codec, encoded.len(), MAX_RATIO, size)?;
        let mut decoder = Decoder { codec, inflater, output };
        if encoded.starts_with(&MAGIC) {
            decoder.gzip(encoded)?;
        } else if is_zlib(encoded) {
            let rest = decoder.inflate(encoded, true)?;
            decoder.padding(rest)?;
        } else {
            return Err(decoder.corrupt("is neither gzip nor zlib"));
        }
        let bytes = decoder.output.finish();
        size.check(codec, bytes.len())?;
        Ok(Bytes::from(bytes))
    })
}

/// Whether the bytes begin with the two-byte header of RFC 1950.
fn is_zlib(encoded: &[u8]) -> bool {
    matches!(encoded, &[method, flags, ..] if method & 0x0f == 8 && u16::from_be_bytes([method, flags]) % 31 == 0)
}

struct Decoder<'a> {
    codec: &'static str,
    inflater: &'a mut Decompress,
    output: BoundedWriter,
}

impl Decoder<'_> {
    fn corrupt(&self, reason: &str) -> CodecError {
        CodecError::corrupt(self.codec, reason)
    }

    /// All members of a gzip stream.
    fn gzip(&mut self, encoded: &[u8]) -> Result<(), CodecError> {
        let mut rest = encoded;
        while rest.starts_with(&MAGIC) {
            let body = after_header(rest).ok_or_else(|| self.corrupt("a member's header is broken"))?;
            let start = self.output.written();
            let trailer = self.inflate(body, false)?;
            let Some((trailer, behind)) = trailer.split_first_chunk::<TRAILER_BYTES>() else {
                return Err(self.corrupt("ends before a member's checksum"));
            };
            let mut crc = Crc::new();
            crc.update(self.output.written_since(start));
            let mut expected = [0; TRAILER_BYTES];
            expected[..4].copy_from_slice(&crc.sum().to_le_bytes());
            expected[4..].copy_from_slice(&crc.amount().to_le_bytes());
            if *trailer != expected {
                return Err(self.corrupt("a member's checksum does not match"));
            }
            rest = behind;
        }
        self.padding(rest)
    }

    /// Checks the bytes after the last member.
    fn padding(&self, rest: &[u8]) -> Result<(), CodecError> {
        if rest.iter().all(|&byte| byte == 0) { Ok(()) } else { Err(CodecError::trailing(self.codec)) }
    }

    /// Inflates one deflate stream, in the container of RFC 1950 or bare, and returns the bytes after it.
    fn inflate<'b>(&mut self, input: &'b [u8], zlib: bool) -> Result<&'b [u8], CodecError> {
        let Self { codec, inflater, output } = self;
        inflater.reset(zlib);
        output.fill(input, |input, output| {
            let before = (inflater.total_in(), inflater.total_out());
            let status = inflater.decompress(input, output, FlushDecompress::None);
            let status = status.map_err(|error| CodecError::corrupt(codec, error.to_string()))?;
            let after = (inflater.total_in(), inflater.total_out());
            Ok(StreamStep::between(before, after, status == Status::StreamEnd))
        })
    }
}

/// The bytes after the header of a gzip member (RFC 1952, section 2.3).
fn after_header(member: &[u8]) -> Option<&[u8]> {
    let (header, mut rest) = member.split_first_chunk::<10>()?;
    let &[_, _, method, flags, ..] = header;
    if method != 8 || flags & 0xe0 != 0 {
        return None;
    }
    if flags & 0x04 != 0 {
        let (length, extra) = rest.split_first_chunk::<2>()?;
        rest = extra.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for text in [0x08, 0x10] {
        if flags & text != 0 {
            let end = rest.iter().position(|&byte| byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & 0x02 != 0 {
        rest = rest.get(2..)?;
    }
    Some(rest)
}
