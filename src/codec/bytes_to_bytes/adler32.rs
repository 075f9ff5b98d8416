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

/// The largest prime below 2^16.
const MODULUS: u32 = 65_521;
/// Most bytes between reductions of the sums, so that they stay within 32 bits (RFC 1950, section 9).
const RUN: usize = 5552;

#[derive(Debug)]
struct Adler32;

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Checksum { sum: Adler32, location: Location::from_config(config, Location::Start)? }))
}

impl Sum for Adler32 {
    const NAME: &'static str = "numcodecs.adler32";

    fn sum(&self, body: &[u8]) -> u32 {
        let (mut low, mut high) = (1, 0);
        for run in body.chunks(RUN) {
            for &byte in run {
                low += u32::from(byte);
                high += low;
            }
            low %= MODULUS;
            high %= MODULUS;
        }
        high << 16 | low
    }
}
