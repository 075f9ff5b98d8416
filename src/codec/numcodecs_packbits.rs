//! `numcodecs.packbits`: eight `bool`s in a byte, the first in the highest bit (numcodecs, "packbits").
//!
//! What comes out is an array of bytes of one dimension. Its first says how many bits at the end mean nothing. The
//! `packbits` of the Zarr extensions is another codec, which begins at the lowest bit.

use ::bytes::Bytes;

use super::CodecError;
use super::buffer;
use super::config::Config;
use super::registry::{BindContext, BoundArray, ElementwiseCodec};
use super::representation::Representation;
use crate::metadata::{DataType, FillValue};

const NAME: &str = "numcodecs.packbits";

#[derive(Debug)]
struct PackBits {
    /// Elements of the array.
    count: u64,
}

pub(super) fn bind(config: &Config, context: &BindContext) -> Result<BoundArray, CodecError> {
    let input = context.input;
    if input.data_type != DataType::Bool {
        return Err(config.invalid(format!("packs `bool` and not `{}`", input.data_type.name())));
    }
    let count = context.size.max();
    let data_type = DataType::UInt8;
    let shape = vec![count.div_ceil(8) + 1];
    let output = Representation { shape, fill_value: FillValue::zero(&data_type), data_type };
    Ok((Box::new(PackBits { count }), output))
}

impl PackBits {
    /// Bits at the end that mean nothing.
    fn padding(&self) -> u8 {
        u8::try_from(self.count.wrapping_neg() % 8).unwrap_or(0)
    }
}

impl ElementwiseCodec for PackBits {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let packed = match encoded.split_first() {
            Some((&padding, packed)) if padding == self.padding() => packed,
            Some((padding, _)) => {
                return Err(CodecError::corrupt(NAME, format!("{padding} bits of padding")));
            }
            None => return Err(CodecError::corrupt(NAME, "there is no padding")),
        };
        let mut decoded = buffer::zeroed(self.count)?;
        for (bits, &byte) in decoded.chunks_mut(8).zip(packed) {
            for (bit, shift) in bits.iter_mut().zip((0..8).rev()) {
                *bit = byte >> shift & 1;
            }
        }
        Ok(Bytes::from(decoded))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut encoded = buffer::reserved(self.count.div_ceil(8) + 1)?;
        encoded.push(self.padding());
        for bits in decoded.chunks(8) {
            let packed = bits.iter().zip((0..8).rev());
            encoded.push(packed.fold(0, |byte, (&bit, shift)| byte | u8::from(bit != 0) << shift));
        }
        Ok(Bytes::from(encoded))
    }
}
