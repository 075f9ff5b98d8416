//! [`CODEC`]: the `blosc` codec, bound to its configuration.

use ::bytes::Bytes;
use serde_json::Value;

use super::ffi::{self, Compressor, Shuffle};
use super::frame::{Frame, MAX_BYTES, NAME};
use super::part;
use crate::chunk::Runs;
use crate::codec::CodecError;
use crate::codec::contract::{BytesToBytes, PartialBytesDecode};
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["blosc", "numcodecs.blosc"],
    v2: &[V2Codec { v1_option: "cname", ..V2Codec::new("blosc", "blosc") }],
    factory: CodecFactory::BytesToBytes(bind),
};

#[derive(Debug)]
struct Blosc {
    compressor: Compressor,
    level: u8,
    shuffle: Shuffle,
    type_bytes: u8,
    block_bytes: usize,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    if context.size.max() > MAX_BYTES && context.size == Size::Exact(context.size.max()) {
        return Err(config.invalid(format!("a chunk may have {MAX_BYTES} bytes at most")));
    }
    let compressor = match config.string("cname")?.unwrap_or("lz4") {
        "lz4" => Compressor::Lz4,
        "lz4hc" => Compressor::Lz4Hc,
        "blosclz" => Compressor::BloscLz,
        "zstd" => Compressor::Zstd,
        "zlib" => Compressor::Zlib,
        "snappy" => Compressor::Snappy,
        other => return Err(config.unsupported(&format!("`cname` `{other}`"))),
    };
    let Ok(level @ 0..=9) = u8::try_from(config.integer("clevel")?.unwrap_or(5)) else {
        return Err(config.invalid("`clevel` must be between 0 and 9"));
    };
    let element_bytes = context.input.data_type.element_bytes();
    let type_bytes = match config.integer("typesize")? {
        // Writers put 0 where nothing is shuffled; v2 documents have no such member.
        None | Some(0) => element_bytes,
        Some(bytes) => {
            usize::try_from(bytes).map_err(|_negative| config.invalid("`typesize` must be positive"))?
        }
    };
    let block_bytes = usize::try_from(config.integer("blocksize")?.unwrap_or(0))
        .map_err(|_negative| config.invalid("`blocksize` must not be negative"))?;
    Ok(Box::new(Blosc {
        compressor,
        level,
        shuffle: shuffle(config, element_bytes)?,
        // The header has one byte for it. For larger elements the library uses units of one byte.
        type_bytes: u8::try_from(type_bytes).unwrap_or(1),
        block_bytes,
    }))
}

/// The shuffle, a word in v3 and a number in v2; -1 lets the element size decide, as in numcodecs.
fn shuffle(config: &CodecConfig, element_bytes: usize) -> Result<Shuffle, CodecError> {
    match config.member("shuffle") {
        Some(Value::String(word)) if word == "noshuffle" => return Ok(Shuffle::None),
        Some(Value::String(word)) if word == "shuffle" => return Ok(Shuffle::Bytes),
        Some(Value::String(word)) if word == "bitshuffle" => return Ok(Shuffle::Bits),
        _ => {}
    }
    match config.integer("shuffle") {
        Ok(Some(0)) => Ok(Shuffle::None),
        Ok(None | Some(1)) => Ok(Shuffle::Bytes),
        Ok(Some(2)) => Ok(Shuffle::Bits),
        Ok(Some(-1)) if element_bytes == 1 => Ok(Shuffle::Bits),
        Ok(Some(-1)) => Ok(Shuffle::Bytes),
        _ => Err(config.invalid("`shuffle` must be `noshuffle`, `shuffle` or `bitshuffle`")),
    }
}

impl BytesToBytes for Blosc {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        let frame = Frame::parse(&encoded)?;
        // Before anything is allocated for it.
        size.check(NAME, frame.decoded_bytes())?;
        match frame.stored() {
            Some(stored) => Ok(encoded.slice(stored)),
            None => ffi::decompress(&frame).map(Bytes::from),
        }
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let encoded = ffi::compress(
            &decoded,
            self.compressor,
            self.level,
            self.shuffle,
            self.type_bytes,
            // A block larger than the data is the data.
            self.block_bytes.min(decoded.len()),
        )?;
        Ok(Bytes::from(encoded))
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.compressed()
    }

    fn partial(&self) -> Option<&dyn PartialBytesDecode> {
        Some(self)
    }
}

impl PartialBytesDecode for Blosc {
    fn decode_partial(&self, encoded: Bytes, size: Size, part: &Runs) -> Result<Bytes, CodecError> {
        let frame = Frame::parse(&encoded)?;
        size.check(NAME, frame.decoded_bytes())?;
        if frame.stored().is_none()
            && let Some(decoded) = part::decode(&frame, part)?
        {
            return Ok(Bytes::from(decoded));
        }
        buffer::gather(self.decode(encoded, size)?, part)
    }
}
