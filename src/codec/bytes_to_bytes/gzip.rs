//! `gzip`: deflate in the container of RFC 1952 (Zarr codecs, "gzip"). `support::inflate` decodes it.

use std::io::Write;

use ::bytes::Bytes;
use flate2::write::GzEncoder;

use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::codec::support::inflate::{decode, level};
use crate::codec::support::representation::Size;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["gzip", "numcodecs.gzip"],
    v2: &[V2Codec::new("gzip", "gzip")],
    factory: CodecFactory::BytesToBytes(bind),
};

const NAME: &str = "gzip";

#[derive(Debug)]
struct Gzip {
    level: flate2::Compression,
}

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Gzip { level: level(config)? }))
}

impl BytesToBytes for Gzip {
    fn decode(&self, encoded: Bytes, size: Size) -> Result<Bytes, CodecError> {
        decode(NAME, &encoded, size)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut stream = GzEncoder::new(Vec::new(), self.level);
        let result = stream.write_all(&decoded).and_then(|()| stream.finish());
        result.map(Bytes::from).map_err(|error| CodecError::encode(NAME, error.to_string()))
    }

    fn encoded_size(&self, decoded: Size) -> Size {
        decoded.compressed()
    }
}
