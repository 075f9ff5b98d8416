//! `zlib`: deflate in the container of RFC 1950 (numcodecs, "zlib"). `support::inflate` decodes it.

use std::io::Write;

use ::bytes::Bytes;
use flate2::write::ZlibEncoder;

use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::inflate::{decode, level};
use crate::codec::support::representation::Size;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["zlib", "numcodecs.zlib"],
    v2: &[V2Codec::new("zlib", "zlib")],
    factory: CodecFactory::BytesToBytes(bind),
};

const NAME: &str = "zlib";

#[derive(Debug)]
struct Zlib {
    level: flate2::Compression,
}

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Zlib { level: level(config)? }))
}

impl BytesToBytes for Zlib {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        decode(NAME, &encoded, size)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut stream = ZlibEncoder::new(Vec::new(), self.level);
        let result = stream.write_all(&decoded).and_then(|()| stream.finish());
        result.map(Bytes::from).map_err(|error| CodecError::encode(NAME, error.to_string()))
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.compressed()
    }
}
