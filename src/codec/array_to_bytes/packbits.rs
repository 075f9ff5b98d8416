//! `packbits`: stores only some bits of each element, without gaps (Zarr extensions, "packbits").
//!
//! Elements are in C order, the bits of each from `first_bit` to `last_bit`. The first bit is the lowest bit of the first
//! byte. The `packbits` of numcodecs is another codec.

use ::bytes::Bytes;

use crate::chunk::Elements;
use crate::codec::CodecError;
use crate::codec::chain::BoundArrayToBytes;
use crate::codec::contract::ArrayToBytes;
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::DataType;

pub(crate) const CODEC: Codec =
    Codec { names: &["packbits"], v2: &[], factory: CodecFactory::ArrayToBytes(bind) };

const NAME: &str = "packbits";

/// Where the number of padding bits is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    Unwritten,
    FirstByte,
    LastByte,
}

/// The codec, bound to an array.
#[derive(Debug)]
struct PackBits {
    padding: Padding,
    /// The lowest stored bit.
    first: u32,
    /// Number of stored bits, 1 to 64.
    kept: u32,
    /// Whether the highest stored bit is the sign.
    signed: bool,
    /// Bytes of a component, 1 to 8: an element, or a part of a complex number.
    component_bytes: usize,
    /// Bytes of the array.
    decoded: u64,
    /// Bytes of the packed bits.
    packed: u64,
    /// Number of padding bits.
    padding_bits: u8,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    let data_type = &context.input.data_type;
    let component_bytes = data_type.endian_unit_bytes().filter(|&bytes| bytes <= 8);
    let is_packed = !data_type.is_variable()
        && !matches!(data_type, DataType::RawBits { .. } | DataType::Struct(_) | DataType::Subarray(_));
    let (Some(component_bytes), true) = (component_bytes, is_packed) else {
        return Err(config.invalid(format!("`{}` is not packed", data_type.name())));
    };
    let padding = match config.string("padding_encoding")? {
        None | Some("none") => Padding::Unwritten,
        Some("first_byte") => Padding::FirstByte,
        Some("last_byte") => Padding::LastByte,
        Some(_) => {
            return Err(config.invalid("`padding_encoding` must be `none`, `first_byte` or `last_byte`"));
        }
    };
    let width = match data_type {
        DataType::Bool => 1,
        DataType::Int2 | DataType::UInt2 => 2,
        DataType::Int4 | DataType::UInt4 => 4,
        DataType::SmallFloat(float) | DataType::ComplexSmallFloat(float) => u64::from(float.bits()),
        _ => 8 * component_bytes as u64,
    };
    let bit = |key, default| match config.integer(key)? {
        None => Ok(default),
        Some(bit) => u64::try_from(bit)
            .ok()
            .filter(|&bit| bit < width)
            .ok_or_else(|| config.invalid(format!("`{key}` must be below {width}"))),
    };
    let (first, last) = (bit("first_bit", 0)?, bit("last_bit", width - 1)?);
    let too_large = CodecError::ChunkTooLarge { bytes: u64::MAX, limit: context.limits.chunk_bytes };
    let kept = (last + 1).checked_sub(first).filter(|&kept| kept > 0);
    let kept = kept.ok_or_else(|| config.invalid("`last_bit` is before `first_bit`"))?;
    let decoded = context.size.max();
    let bits = (decoded / component_bytes as u64).checked_mul(kept).ok_or(too_large)?;
    let small = |number: u64| u32::try_from(number).unwrap_or(0);
    Ok(BoundArrayToBytes::Whole(Box::new(PackBits {
        padding,
        first: small(first),
        kept: small(kept),
        signed: matches!(
            data_type,
            DataType::Int2
                | DataType::Int4
                | DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
        ),
        component_bytes,
        decoded,
        packed: bits.div_ceil(8),
        padding_bits: u8::try_from(bits.wrapping_neg() % 8).unwrap_or(0),
    })))
}

impl ArrayToBytes for PackBits {
    fn encoded_size(&self) -> Size {
        let size = Size::Exact(self.packed);
        if self.padding == Padding::Unwritten { size } else { size.plus(1) }
    }

    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        self.encoded_size().check(NAME, encoded.len())?;
        let all = encoded.as_ref();
        let (padding, packed) = match self.padding {
            Padding::Unwritten => (None, all),
            Padding::FirstByte => all.split_first().map_or((None, all), |(&at, rest)| (Some(at), rest)),
            Padding::LastByte => all.split_last().map_or((None, all), |(&at, rest)| (Some(at), rest)),
        };
        if let Some(bits) = padding.filter(|&bits| bits != self.padding_bits) {
            let expected = self.padding_bits;
            return Err(CodecError::corrupt(NAME, format!("{bits} bits of padding instead of {expected}")));
        }
        let mut decoded = buffer::zeroed(self.decoded)?;
        let mut packed = packed.iter();
        let (mut bits, mut have) = (0_u128, 0);
        for component in decoded.chunks_exact_mut(self.component_bytes) {
            while have < self.kept {
                bits |= u128::from(packed.next().copied().unwrap_or(0)) << have;
                have += 8;
            }
            let value = self.extended(low_word(bits) & mask(self.kept));
            component.iter_mut().zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
            bits >>= self.kept;
            have -= self.kept;
        }
        Ok(Elements::fixed(decoded.into()))
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        let mut encoded = buffer::with_capacity(self.encoded_size().max())?;
        if self.padding == Padding::FirstByte {
            encoded.push(self.padding_bits);
        }
        let (mut bits, mut have) = (0_u128, 0);
        for component in decoded.items().chunks_exact(self.component_bytes) {
            let mut wide = [0; 8];
            wide.iter_mut().zip(component).for_each(|(to, &from)| *to = from);
            let value = (u64::from_le_bytes(wide) >> self.first) & mask(self.kept);
            bits |= u128::from(value) << have;
            have += self.kept;
            while have >= 8 {
                encoded.push(low_byte(bits));
                bits >>= 8;
                have -= 8;
            }
        }
        if have > 0 {
            encoded.push(low_byte(bits));
        }
        if self.padding == Padding::LastByte {
            encoded.push(self.padding_bits);
        }
        Ok(Bytes::from(encoded))
    }
}

impl PackBits {
    /// The value of stored `bits`, sign-extended for signed types.
    fn extended(&self, bits: u64) -> u64 {
        let value = bits << self.first;
        let above = self.first + self.kept;
        if self.signed && bits >> (self.kept - 1) != 0 && above < u64::BITS {
            value | u64::MAX << above
        } else {
            value
        }
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX >> (u64::BITS - bits)
}

fn low_word(bits: u128) -> u64 {
    bits.to_le_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}

fn low_byte(bits: u128) -> u8 {
    let [low, ..] = bits.to_le_bytes();
    low
}
