//! `bz2`: streams of bzip2, one after another (numcodecs, "bz2").
//!
//! Trailing bytes after the last stream are an error.

use std::io::Write;

use ::bytes::Bytes;
use bzip2::write::BzEncoder;
use bzip2::{Compression, Decompress, Status};

use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::bounded_writer::{BoundedWriter, StreamStep};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.bz2"],
    v2: &[V2Codec::new("bz2", "numcodecs.bz2")],
    factory: CodecFactory::BytesToBytes(bind),
};

const NAME: &str = "numcodecs.bz2";
/// The first bytes of a stream.
const MAGIC: &[u8] = b"BZh";
/// Typical decoded bytes for each encoded byte. bzip2 can reach a million times as many, and rarely does.
const RATIO: u64 = 64;
/// Most streams of a value. Each decoder allocates megabytes, and an empty stream has only 14 bytes.
const MAX_STREAMS: usize = 10_000;
/// Memory of a decoder for the largest blocks.
const DECODER_BYTES: u64 = 4 << 20;

#[derive(Debug)]
struct Bz2 {
    level: Compression,
}

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    let level = u32::try_from(config.integer("level")?.unwrap_or(1)).ok().and_then(Compression::try_new);
    let level = level.ok_or_else(|| config.invalid("`level` must be between 1 and 9"))?;
    Ok(Box::new(Bz2 { level }))
}

impl BytesToBytes for Bz2 {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        let mut output = BoundedWriter::new(NAME, encoded.len(), RATIO, size)?;
        let mut rest = &encoded[..];
        for _stream in 0..MAX_STREAMS {
            let mut stream = Decompress::new(false);
            rest = output.fill(rest, |input, output| {
                let before = (stream.total_in(), stream.total_out());
                let status = stream.decompress(input, output);
                let status = status.map_err(|error| CodecError::corrupt(NAME, error.to_string()))?;
                if status == Status::MemNeeded {
                    return Err(CodecError::NoMemory { bytes: DECODER_BYTES });
                }
                let after = (stream.total_in(), stream.total_out());
                Ok(StreamStep::between(before, after, status == Status::StreamEnd))
            })?;
            if rest.is_empty() {
                let decoded = output.finish();
                size.check(NAME, decoded.len())?;
                return Ok(Bytes::from(decoded));
            }
            if !rest.starts_with(MAGIC) {
                return Err(CodecError::trailing(NAME));
            }
        }
        Err(CodecError::corrupt(NAME, format!("more than {MAX_STREAMS} streams")))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut stream = BzEncoder::new(Vec::new(), self.level);
        let result = stream.write_all(&decoded).and_then(|()| stream.finish());
        result.map(Bytes::from).map_err(|error| CodecError::encode(NAME, error.to_string()))
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.compressed()
    }
}
