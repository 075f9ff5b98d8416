//! `crc32`: the checksum of RFC 1952, before the bytes unless the configuration says behind (numcodecs, "crc32").

use super::CodecError;
use super::checksum::{Checksum, Location, Sum};
use super::config::Config;
use super::registry::{BindContext, BytesToBytes};

#[derive(Debug)]
struct Crc32;

pub(super) fn bind(config: &Config, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Checksum { sum: Crc32, location: Location::of(config, Location::Start)? }))
}

impl Sum for Crc32 {
    const NAME: &'static str = "numcodecs.crc32";

    fn sum(&self, body: &[u8]) -> u32 {
        let mut crc = flate2::Crc::new();
        crc.update(body);
        crc.sum()
    }
}
