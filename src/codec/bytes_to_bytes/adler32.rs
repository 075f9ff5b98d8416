//! `adler32`: the checksum of RFC 1950, by default before the bytes (numcodecs, "adler32").

use super::checksum::{Checksum, Location, Sum};
use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.adler32"],
    v2: &[V2Codec::new("adler32", "numcodecs.adler32")],
    factory: CodecFactory::BytesToBytes(bind),
};

#[derive(Debug)]
struct Adler32;

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Checksum { sum: Adler32, location: Location::from_config(config, Location::Start)? }))
}

impl Sum for Adler32 {
    const NAME: &'static str = "numcodecs.adler32";

    fn sum(&self, body: &[u8]) -> u32 {
        adler2::adler32_slice(body)
    }
}
