//! `crc32c`: the checksum of RFC 3720, behind the bytes (Zarr codecs, "crc32c"; numcodecs, "crc32c", which lets
//! it stand before them too).

use super::CodecError;
use super::checksum::{Checksum, Location, Sum};
use super::config::Config;
use super::registry::{BindContext, BytesToBytes};

/// The checksum of bytes that follow others, whose checksum is `sum`; 0 if there are none before them.
#[must_use]
pub fn append(sum: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(sum, bytes)
}

#[derive(Debug)]
struct Crc32c;

pub(super) fn bind(config: &Config, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Checksum { sum: Crc32c, location: Location::of(config, Location::End)? }))
}

impl Sum for Crc32c {
    const NAME: &'static str = "crc32c";

    fn sum(&self, body: &[u8]) -> u32 {
        append(0, body)
    }
}
