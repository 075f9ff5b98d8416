//! `bytes`: the elements of an array one after another, in one byte order (Zarr codecs, "bytes").
//!
//! Canonical form is little-endian, so a little-endian chunk passes through without a copy. A stored `bool`
//! is zero or not: the specification knows only 0 and 1, and any other byte is read as 1, as C and numpy read
//! it. Of an integer of less than 8 bits the upper bits say nothing (Zarr extensions, "int4").

use ::bytes::Bytes;

use super::CodecError;
use super::buffer::in_place;
use super::config::Config;
use super::registry::{ArrayToBytes, Context};
use super::representation::Size;
use crate::metadata::DataType;

const NAME: &str = "bytes";

/// The codec, bound to an array of so many bytes.
#[derive(Debug)]
pub(super) struct BytesCodec {
    size: u64,
    /// Bytes of the units whose order is reversed; 1 if none is.
    swap: usize,
    /// What a stored byte means, for types that have not a meaning for every byte.
    meaning: Option<fn(u8) -> u8>,
}

pub(super) fn bind(config: &Config, context: &Context) -> Result<ArrayToBytes, CodecError> {
    let unit = context.input.data_type.endian_unit_bytes();
    let swap = match config.text("endian")? {
        Some("little") => 1,
        Some("big") => unit,
        Some(other) => {
            return Err(config.invalid(format!("`endian` is `{other}`, neither `little` nor `big`")));
        }
        None if unit == 1 => 1,
        None => {
            let name = context.input.data_type.name();
            return Err(config.invalid(format!("`endian` is missing, and `{name}` needs it")));
        }
    };
    let size = context.size.max();
    Ok(ArrayToBytes::Bytes(BytesCodec { size, swap, meaning: meaning(context.input.data_type) }))
}

fn meaning(data_type: DataType) -> Option<fn(u8) -> u8> {
    match data_type {
        DataType::Bool => Some(|byte| u8::from(byte != 0)),
        DataType::Int2 => Some(|byte| ((byte << 6).cast_signed() >> 6).cast_unsigned()),
        DataType::Int4 => Some(|byte| ((byte << 4).cast_signed() >> 4).cast_unsigned()),
        DataType::UInt2 => Some(|byte| byte & 0b11),
        DataType::UInt4 => Some(|byte| byte & 0b1111),
        _ => None,
    }
}

impl BytesCodec {
    pub(super) fn encoded_size(&self) -> Size {
        Size::Exact(self.size)
    }

    pub(super) fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Size::Exact(self.size).check(NAME, encoded.len())?;
        if let Some(meaning) = self.meaning
            && encoded.iter().any(|&byte| byte != meaning(byte))
        {
            return in_place(encoded, |bytes| bytes.iter_mut().for_each(|byte| *byte = meaning(*byte)));
        }
        self.swapped(encoded)
    }

    pub(super) fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        self.swapped(decoded)
    }

    fn swapped(&self, bytes: Bytes) -> Result<Bytes, CodecError> {
        match self.swap {
            2 => in_place(bytes, reverse::<2>),
            4 => in_place(bytes, reverse::<4>),
            8 => in_place(bytes, reverse::<8>),
            _ => Ok(bytes),
        }
    }
}

fn reverse<const N: usize>(bytes: &mut [u8]) {
    bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|unit| unit.reverse());
}
