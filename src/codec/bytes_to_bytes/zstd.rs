//! `zstd`: frames of RFC 8878 (Zarr extensions, "zstd"; numcodecs, "zstd").
//!
//! A value is one or more frames, including skippable ones. The content size that a frame declares never sizes a buffer: the
//! output has the size that the chain computed, and decoding stops there. If that size is exact, decoding is from buffer to
//! buffer; the output is the frame's window, so a large declared window allocates nothing. If only a bound is known, the
//! output grows as needed, and a frame with a window beyond 128 MiB is refused. A part is decoded without the rest of the
//! frame if the frame declares the whole size and has no checksum. Dictionaries are not supported.

use std::cell::RefCell;

use ::bytes::Bytes;
use ::zstd::bulk::{Compressor, Decompressor};
use ::zstd::stream::raw::{Decoder, Operation};
use ::zstd::zstd_safe::{CParameter, InBuffer, OutBuffer, compress_bound, get_frame_content_size};

use crate::chunk::Runs;
use crate::codec::CodecError;
use crate::codec::contract::{BytesToBytes, PartialBytesDecode};
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::bounded_writer::{BoundedWriter, StreamStep};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["zstd", "numcodecs.zstd"],
    v2: &[V2Codec::new("zstd", "zstd")],
    factory: CodecFactory::BytesToBytes(bind),
};

const NAME: &str = "zstd";

#[derive(Debug)]
struct Zstd {
    level: i32,
    checksum: bool,
}

/// Typical decoded bytes for each encoded byte.
const RATIO: u64 = 8;

/// Largest compressor, in bytes, that a thread keeps for the next value: enough for a few megabytes at a usual level.
const MAX_IDLE_BYTES: usize = 8 << 20;

thread_local! {
    /// A decompressor's tables: 160 KiB, reused by all decoding on this thread.
    static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::new(Decompressor::default());
    /// The compressor of the last value, if it is small enough to keep.
    static COMPRESSOR: RefCell<Option<Encoder>> = const { RefCell::new(None) };
}

/// A compressor's tables and its output buffer. Both are larger than most outputs, and allocating them takes longer than
/// compressing many a chunk.
#[derive(Default)]
struct Encoder {
    compressor: Compressor<'static>,
    output: Vec<u8>,
}

impl Encoder {
    fn encode(&mut self, zstd: &Zstd, decoded: &[u8]) -> Result<Bytes, CodecError> {
        let Self { compressor, output } = self;
        let failed = |error: std::io::Error| CodecError::encode(NAME, error.to_string());
        // Every option is set, because the last value may have belonged to another chain.
        compressor.set_compression_level(zstd.level).map_err(failed)?;
        compressor.set_parameter(CParameter::ChecksumFlag(zstd.checksum)).map_err(failed)?;
        let most = compress_bound(decoded.len());
        output.clear();
        output.try_reserve_exact(most).map_err(|_refused| CodecError::NoMemory { bytes: most as u64 })?;
        // Compressing from a buffer records the content size, which older readers need.
        compressor.compress_to_buffer(decoded, output).map_err(failed)?;
        buffer::copy_of(output).map(Bytes::from)
    }

    /// Bytes of memory.
    fn bytes(&mut self) -> usize {
        self.compressor.context_mut().sizeof().saturating_add(self.output.capacity())
    }
}

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    // numcodecs writes levels beyond the library's range; they mean its limits.
    let level = config.integer("level")?.unwrap_or(0).clamp(-131_072, 22);
    let level = i32::try_from(level).map_err(|error| config.invalid(error.to_string()))?;
    Ok(Box::new(Zstd { level, checksum: config.boolean("checksum")?.unwrap_or(false) }))
}

/// Decodes frames that have at most this many bytes together. For what is no chunk.
///
/// # Errors
/// [`CodecError`], also if there are more.
pub fn decode_zstd(encoded: Bytes, bytes: u64) -> Result<Bytes, CodecError> {
    Zstd { level: 0, checksum: false }.decode(encoded, Size::AtMost(bytes))
}

/// Decodes frames as [`decode_zstd`] does, with a dictionary if that is not empty; `None` if they have more bytes.
///
/// # Errors
/// [`CodecError`].
pub fn decode_zstd_within(
    encoded: &[u8],
    bytes: usize,
    dictionary: &[u8],
) -> Result<Option<Vec<u8>>, CodecError> {
    let mut decoder = Decoder::with_dictionary(dictionary).map_err(|error| corrupt(&error))?;
    let (mut rest, mut output, mut written, mut is_open) = (encoded, Vec::new(), 0, true);
    while is_open || !rest.is_empty() {
        if written == output.len() {
            if written > bytes {
                return Ok(None);
            }
            // One byte more than there may be shows that there are more.
            let more = output.len().max(1 << 10).min(bytes.saturating_add(1) - written);
            let refused = |_error| CodecError::NoMemory { bytes: more as u64 };
            output.try_reserve_exact(more).map_err(refused)?;
            output.resize(written + more, 0);
        }
        let free = output.get_mut(written..).unwrap_or_default();
        let step = decoder.run_on_buffers(rest, free).map_err(|error| corrupt(&error))?;
        if step.bytes_read == 0 && step.bytes_written == 0 {
            return Err(CodecError::corrupt(NAME, "ends too early"));
        }
        written += step.bytes_written;
        rest = rest.get(step.bytes_read..).unwrap_or_default();
        is_open = step.remaining != 0;
    }
    output.truncate(written);
    Ok((written <= bytes).then_some(output))
}

impl BytesToBytes for Zstd {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        if encoded.is_empty() {
            return Err(CodecError::corrupt(NAME, "there is no frame"));
        }
        let decoded = match size {
            Size::Exact(bytes) => {
                let mut decoded = buffer::with_capacity(bytes)?;
                DECOMPRESSOR
                    .with_borrow_mut(|decompressor| decompressor.decompress_to_buffer(&encoded, &mut decoded))
                    .map_err(|error| corrupt(&error))?;
                decoded
            }
            Size::AtMost(_) | Size::Limited(_) => stream(&encoded, size)?,
        };
        size.check(NAME, decoded.len())?;
        Ok(Bytes::from(decoded))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        COMPRESSOR.with_borrow_mut(|kept| {
            let mut encoder = kept.take().unwrap_or_default();
            let encoded = encoder.encode(self, &decoded)?;
            *kept = (encoder.bytes() <= MAX_IDLE_BYTES).then_some(encoder);
            Ok(encoded)
        })
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.compressed()
    }

    fn partial(&self) -> Option<&dyn PartialBytesDecode> {
        Some(self)
    }
}

impl PartialBytesDecode for Zstd {
    fn decode_partial(&self, encoded: Bytes, size: Size, part: &Runs) -> Result<Bytes, CodecError> {
        let end = part.end();
        if !can_stop_early(&encoded, size, end) {
            return buffer::gather(self.decode(encoded, size)?, part);
        }
        let mut decoded = buffer::with_capacity(end as u64)?;
        let mut decoder = Decoder::new().map_err(|error| corrupt(&error))?;
        let (mut input, mut output) = (InBuffer::around(&encoded), OutBuffer::around(&mut decoded));
        while output.pos() < end {
            let before = (input.pos(), output.pos());
            let left = decoder.run(&mut input, &mut output).map_err(|error| corrupt(&error))?;
            if output.pos() < end && (left == 0 || (input.pos(), output.pos()) == before) {
                return Err(CodecError::corrupt(NAME, "ends too early"));
            }
        }
        buffer::gather(Bytes::from(decoded), part)
    }
}

/// Whether decoding can stop at `end` and this is worthwhile: the value begins with a frame that declares the expected size
/// and has no checksum, and `end` is far enough from its end. The memory of decoding is bounded by the size of such a frame.
fn can_stop_early(encoded: &[u8], size: Size, end: usize) -> bool {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    const FLAG_CHECKSUM: u8 = 0x04;
    let Size::Exact(bytes) = size else { return false };
    let is_plain =
        encoded.starts_with(&MAGIC) && encoded.get(4).is_some_and(|flags| flags & FLAG_CHECKSUM == 0);
    is_plain
        && end as u64 <= bytes / 8 * 7
        && matches!(get_frame_content_size(encoded), Ok(Some(said)) if said == bytes)
}

/// Decodes to a size of which only a bound is known, in a buffer that grows as needed.
fn stream(encoded: &[u8], size: Size) -> Result<Vec<u8>, CodecError> {
    let mut output = BoundedWriter::new(NAME, encoded.len(), RATIO, size)?;
    let mut decoder = Decoder::new().map_err(|error| corrupt(&error))?;
    let mut rest = encoded;
    // Frame by frame: the decoder starts again after each.
    while !rest.is_empty() {
        rest = output.fill(rest, |input, output| {
            let status = decoder.run_on_buffers(input, output).map_err(|error| corrupt(&error))?;
            let ended = status.remaining == 0;
            Ok(StreamStep { consumed: status.bytes_read, written: status.bytes_written, ended })
        })?;
    }
    Ok(output.finish())
}

fn corrupt(error: &std::io::Error) -> CodecError {
    CodecError::corrupt(NAME, error.to_string())
}
