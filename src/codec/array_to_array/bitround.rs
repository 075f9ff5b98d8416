//! `bitround`: rounds numbers to fewer bits (Zarr extensions, "bitround"; numcodecs, "bitround").
//!
//! A float keeps the first bits of the mantissa, an integer the bits from its highest set bit; the rest is rounded to even.
//! Rounding is not undone, so decoding does nothing. Infinities and NaN do not change.

use ::bytes::Bytes;

use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::buffer::in_place;
use crate::codec::support::config::CodecConfig;
use crate::metadata::{DataType, V2Codec};

pub(crate) const CODEC: Codec = Codec {
    names: &["bitround", "numcodecs.bitround"],
    v2: &[V2Codec::new("bitround", "numcodecs.bitround")],
    factory: CodecFactory::ArrayToArray(bind),
};

#[derive(Debug)]
struct BitRound {
    data_type: DataType,
    keep_bits: u32,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    let data_type = context.input.data_type.clone();
    if mantissa_bits(&data_type).is_none() && !is_integer(&data_type) {
        return Err(config.invalid(format!("`{}` is not rounded", data_type.name())));
    }
    let keep_bits = config.integer("keepbits")?.and_then(|bits| u32::try_from(bits).ok());
    let keep_bits = keep_bits.ok_or_else(|| config.invalid("`keepbits` must be a whole number"))?;
    Ok((Box::new(BitRound { data_type, keep_bits }), context.input.clone()))
}

impl ElementwiseCodec for BitRound {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(encoded)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        in_place(decoded, |elements| match self.data_type.element_bytes() {
            1 => self.each::<1>(elements),
            2 => self.each::<2>(elements),
            4 => self.each::<4>(elements),
            _ => self.each::<8>(elements),
        })
    }
}

impl BitRound {
    fn each<const N: usize>(&self, elements: &mut [u8]) {
        let mantissa = mantissa_bits(&self.data_type);
        let width = u32::try_from(8 * N).unwrap_or(u64::BITS);
        for element in elements.as_chunks_mut::<N>().0 {
            let mut wide = [0; 8];
            wide.iter_mut().zip(*element).for_each(|(to, from)| *to = from);
            let bits = u64::from_le_bytes(wide);
            let rounded = match mantissa {
                Some(mantissa) => self.float(bits, mantissa, width),
                None => self.integer(bits, width),
            };
            element.iter_mut().zip(rounded.to_le_bytes()).for_each(|(to, from)| *to = from);
        }
    }

    fn float(&self, bits: u64, mantissa: u32, width: u32) -> u64 {
        let exponent = (1 << (width - 1)) - (1 << mantissa);
        if bits & exponent == exponent {
            bits
        } else {
            rounded(bits, mantissa.saturating_sub(self.keep_bits))
        }
    }

    /// Rounds the magnitude of a negative number. A result that would overflow is rounded down instead.
    fn integer(&self, bits: u64, width: u32) -> u64 {
        let sign = 1 << (width - 1);
        let negative = is_signed(&self.data_type) && bits & sign != 0;
        let mask = u64::MAX >> (64 - width);
        let magnitude = if negative { bits.wrapping_neg() & mask } else { bits };
        let drop = (64 - magnitude.leading_zeros()).saturating_sub(self.keep_bits);
        let largest = if is_signed(&self.data_type) { sign - u64::from(!negative) } else { mask };
        let magnitude = match rounded(magnitude, drop) {
            up if up > largest || up < magnitude >> 1 => cut(magnitude, drop),
            fits => fits,
        };
        if negative { magnitude.wrapping_neg() & mask } else { magnitude }
    }
}

/// Rounds to even so that the lowest `drop` bits are 0.
fn rounded(bits: u64, drop: u32) -> u64 {
    match drop {
        0 => bits,
        64.. => 0,
        _ => {
            let below_half = (1 << (drop - 1)) - 1;
            cut(bits.wrapping_add(below_half + (bits >> drop & 1)), drop)
        }
    }
}

/// Sets the lowest `drop` bits to 0.
fn cut(bits: u64, drop: u32) -> u64 {
    bits & u64::MAX.checked_shl(drop).unwrap_or(0)
}

/// Stored bits of the mantissa of a float, or of each part of a complex number.
fn mantissa_bits(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::Float16 => Some(10),
        DataType::Float32 | DataType::Complex64 => Some(23),
        DataType::Float64 | DataType::Complex128 => Some(52),
        _ => None,
    }
}

fn is_signed(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64)
}

fn is_integer(data_type: &DataType) -> bool {
    is_signed(data_type)
        || matches!(data_type, DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64)
}
