//! `jenkins_lookup3`: the checksum of HDF5's metadata, after the bytes (numcodecs, "`jenkins_lookup3`").
//!
//! Bob Jenkins' `lookup3` as in HDF5: little-endian, twelve bytes at a time, with three words of state. A `prefix` that is
//! hashed before the bytes is refused, because numcodecs cannot write it to a document.

use super::checksum::{Checksum, Location, Sum};
use crate::codec::CodecError;
use crate::codec::contract::BytesToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::config::CodecConfig;
use crate::metadata::V2Codec;

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.jenkins_lookup3"],
    v2: &[V2Codec::new("jenkins_lookup3", "numcodecs.jenkins_lookup3")],
    factory: CodecFactory::BytesToBytes(bind),
};

const SEED: u32 = 0xdead_beef;
const BLOCK_BYTES: usize = 12;

#[derive(Debug)]
struct Lookup3 {
    initial: u32,
}

fn bind(config: &CodecConfig, _context: &BindContext) -> Result<Box<dyn BytesToBytes>, CodecError> {
    if config.member("prefix").is_some() {
        return Err(config.unsupported("a prefix"));
    }
    let initial = u32::try_from(config.integer("initval")?.unwrap_or(0))
        .map_err(|_out_of_range| config.invalid("`initval` must be between 0 and 4294967295"))?;
    Ok(Box::new(Checksum {
        sum: Lookup3 { initial },
        location: Location::from_config(config, Location::End)?,
    }))
}

impl Sum for Lookup3 {
    const NAME: &'static str = "numcodecs.jenkins_lookup3";

    fn sum(&self, body: &[u8]) -> u32 {
        // The length counts modulo 2^32.
        let [a, b, c, d, ..] = body.len().to_le_bytes();
        let start = SEED.wrapping_add(u32::from_le_bytes([a, b, c, d])).wrapping_add(self.initial);
        let mut state = [start; 3];
        // The last block may be partial, and is empty only if there are no bytes.
        let split = body.len().saturating_sub(1) / BLOCK_BYTES * BLOCK_BYTES;
        let (blocks, last) = body.split_at_checked(split).unwrap_or_default();
        for block in blocks.as_chunks::<BLOCK_BYTES>().0 {
            add(&mut state, block);
            mix(&mut state);
        }
        if !last.is_empty() {
            let mut block = [0; BLOCK_BYTES];
            block.iter_mut().zip(last).for_each(|(to, from)| *to = *from);
            add(&mut state, &block);
            finish(&mut state);
        }
        state[2]
    }
}

fn add(state: &mut [u32; 3], block: &[u8; BLOCK_BYTES]) {
    for (word, bytes) in state.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

/// Six rounds. Each changes the first word of the state and rotates it to the end.
fn mix(state: &mut [u32; 3]) {
    for rotation in [4, 6, 8, 16, 19, 4] {
        let [first, next, last] = *state;
        let mixed = first.wrapping_sub(last) ^ last.rotate_left(rotation);
        *state = [next, last.wrapping_add(next), mixed];
    }
}

/// Seven rounds, which change one word each, beginning with the third.
fn finish(state: &mut [u32; 3]) {
    let [a, b, c] = state;
    for (index, rotation) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (word, by) = match index % 3 {
            0 => (&mut *c, *b),
            1 => (&mut *a, *c),
            _ => (&mut *b, *a),
        };
        *word = (*word ^ by).wrapping_sub(by.rotate_left(rotation));
    }
}
