//! `fletcher32`: the checksum of HDF5, after the bytes (HDF5 file format III.A; numcodecs, "fletcher32").
//!
//! Two sums, modulo 65535, of 16-bit words with the most significant byte first. An odd last byte is the upper half of a
//! word.

use super::checksum::{Checksum, Location, Sum};
use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.fletcher32"],
    v2: &[V2Codec::new("fletcher32", "numcodecs.fletcher32")],
    factory: CodecFactory::BytesToBytes(bind),
};

/// Most bytes between reductions of the sums, so that they stay within 64 bits.
const RUN: usize = 1 << 20;

#[derive(Debug)]
struct Fletcher32;

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    Ok(Box::new(Checksum { sum: Fletcher32, location: Location::from_config(config, Location::End)? }))
}

impl Sum for Fletcher32 {
    const NAME: &'static str = "numcodecs.fletcher32";

    fn sum(&self, body: &[u8]) -> u32 {
        let (mut low, mut high) = (0_u64, 0_u64);
        for run in body.chunks(RUN) {
            let (words, last) = run.as_chunks::<2>();
            for &word in words {
                low += u64::from(u16::from_be_bytes(word));
                high += low;
            }
            for &byte in last {
                low += u64::from(byte) << 8;
                high += low;
            }
            low = folded(low);
            high = folded(high);
        }
        // Both fit 16 bits once folded.
        u32::try_from(high << 16 | low).unwrap_or(u32::MAX)
    }
}

/// The sum modulo 65535, with 65535 for multiples other than 0, as adding the carries back gives it.
fn folded(sum: u64) -> u64 {
    sum.checked_sub(1).map_or(0, |less| less % 0xffff + 1)
}
