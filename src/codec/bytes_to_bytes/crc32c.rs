//! `crc32c`: the checksum of RFC 3720, after the bytes (Zarr codecs, "crc32c"; numcodecs, "crc32c", which also allows it
//! before them).

use super::checksum::{Checksum, Location, Sum};
use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["crc32c", "numcodecs.crc32c"],
    v2: &[V2Codec::new("crc32c", "numcodecs.crc32c")],
    factory: CodecFactory::BytesToBytes(bind),
};

/// Continues a checksum: `sum` is that of the bytes before `bytes`, or 0 if there are none.
#[must_use]
pub fn append(sum: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(sum, bytes)
}

#[derive(Debug)]
struct Crc32c;

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Checksum { sum: Crc32c, location: Location::from_config(config, Location::End)? }))
}

impl Sum for Crc32c {
    const NAME: &'static str = "crc32c";

    fn sum(&self, body: &[u8]) -> u32 {
        append(0, body)
    }
}
