//! `lz4`: one LZ4 block after its decoded size (numcodecs, "lz4").
//!
//! This is neither the frame format of LZ4 nor the lz4 of N5. The size has 32 bits, little-endian, and must be the size that
//! the chain computed. Encoding ignores `acceleration`.

use ::bytes::Bytes;

use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.lz4"],
    v2: &[V2Codec { v1_option: "acceleration", ..V2Codec::new("lz4", "numcodecs.lz4") }],
    factory: CodecFactory::BytesToBytes(bind),
};

const NAME: &str = "numcodecs.lz4";
const HEADER_BYTES: usize = 4;
/// Largest compression ratio of LZ4: each further byte of a length adds at most 255.
const MAX_RATIO: u64 = 255;
/// Most bytes a block can hold.
const MAX_BYTES: u64 = 0x7e00_0000;

#[derive(Debug)]
struct Lz4;

fn bind(config: &CodecConfig, context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    match context.size {
        Size::Exact(bytes) if bytes > MAX_BYTES => {
            Err(config.invalid(format!("a chunk may have {MAX_BYTES} bytes at most")))
        }
        Size::Exact(_) | Size::AtMost(_) | Size::Limited(_) => Ok(Box::new(Lz4)),
    }
}

impl BytesToBytes for Lz4 {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        let Some((header, block)) = encoded.split_first_chunk::<HEADER_BYTES>() else {
            return Err(CodecError::corrupt(NAME, "shorter than its header"));
        };
        let length = u32::from_le_bytes(*header);
        size.check(NAME, usize::try_from(length).unwrap_or(usize::MAX))?;
        if u64::from(length) > (block.len() as u64).saturating_mul(MAX_RATIO) {
            return Err(CodecError::corrupt(NAME, "the block is too short for its declared size"));
        }
        let mut decoded = buffer::zeroed(u64::from(length))?;
        let written = lz4_flex::block::decompress_into(block, &mut decoded)
            .map_err(|error| CodecError::corrupt(NAME, error.to_string()))?;
        if written == decoded.len() {
            Ok(Bytes::from(decoded))
        } else {
            Err(CodecError::corrupt(NAME, format!("decodes to {written} bytes instead of {length}")))
        }
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let length = u32::try_from(decoded.len()).ok().filter(|&length| u64::from(length) <= MAX_BYTES);
        let Some(length) = length else {
            return Err(CodecError::encode(NAME, format!("more than {MAX_BYTES} bytes")));
        };
        let bound = lz4_flex::block::get_maximum_output_size(decoded.len());
        let mut encoded = buffer::zeroed((HEADER_BYTES + bound) as u64)?;
        let Some((header, block)) = encoded.split_first_chunk_mut::<HEADER_BYTES>() else {
            return Err(CodecError::encode(NAME, "no space for the header"));
        };
        *header = length.to_le_bytes();
        let written = lz4_flex::block::compress_into(&decoded, block)
            .map_err(|error| CodecError::encode(NAME, error.to_string()))?;
        encoded.truncate(HEADER_BYTES + written);
        Ok(Bytes::from(encoded))
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.compressed()
    }
}
