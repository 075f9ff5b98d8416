//! `numcodecs.packbits`: eight `bool`s in a byte, the first in the highest bit (numcodecs, "packbits").
//!
//! The encoded array is a one-dimensional array of bytes. Its first byte is the number of padding bits at the end. The
//! `packbits` of the Zarr extensions is another codec, which begins at the lowest bit.

use ::bytes::Bytes;

use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Representation;
use crate::metadata::{DataType, FillValue, V2ByteOrder, V2Codec};

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.packbits"],
    v2: &[V2Codec { byte_order: V2ByteOrder::SingleBytes, ..V2Codec::new("packbits", "numcodecs.packbits") }],
    factory: CodecFactory::ArrayToArray(bind),
};

const NAME: &str = "numcodecs.packbits";

#[derive(Debug)]
struct PackBits {
    /// Elements of the array.
    count: u64,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
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
    /// Number of padding bits at the end.
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
            None => return Err(CodecError::corrupt(NAME, "the padding is missing")),
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
        let mut encoded = buffer::with_capacity(self.count.div_ceil(8) + 1)?;
        encoded.push(self.padding());
        for bits in decoded.chunks(8) {
            let packed = bits.iter().zip((0..8).rev());
            encoded.push(packed.fold(0, |byte, (&bit, shift)| byte | u8::from(bit != 0) << shift));
        }
        Ok(Bytes::from(encoded))
    }
}
