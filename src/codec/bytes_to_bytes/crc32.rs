//! `crc32`: the checksum of RFC 1952, by default before the bytes (numcodecs, "crc32").
//!
//! `flate2` computes it, as it does for gzip and zip, by the code of `zlib-rs`. The crate `crc32fast` would be a second
//! implementation in the same program.

use super::checksum::{Checksum, Location, Sum};
use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.crc32"],
    v2: &[V2Codec::new("crc32", "numcodecs.crc32")],
    factory: CodecFactory::BytesToBytes(bind),
};

#[derive(Debug)]
struct Crc32;

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Checksum { sum: Crc32, location: Location::from_config(config, Location::Start)? }))
}

impl Sum for Crc32 {
    const NAME: &'static str = "numcodecs.crc32";

    fn sum(&self, body: &[u8]) -> u32 {
        checksum(body)
    }
}

/// The checksum of bytes that come in pieces.
#[derive(Debug, Default)]
pub struct RunningCrc32(flate2::Crc);

impl RunningCrc32 {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far.
    #[must_use]
    pub fn sum(&self) -> u32 {
        self.0.sum()
    }
}

/// The checksum of some bytes, without a codec.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
