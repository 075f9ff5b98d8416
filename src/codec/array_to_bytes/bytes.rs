//! `bytes`: stores the elements of an array one after another, in one byte order (Zarr codecs, "bytes").
//!
//! Canonical form is little-endian, so a little-endian chunk passes through without a copy. The specification allows only
//! the bytes 0 and 1 for `bool`; any other byte is read as 1, as in C and numpy. The upper bits of an integer of less than
//! 8 bits are ignored (Zarr extensions, "int4").

use ::bytes::Bytes;
use serde_json::Value;

use crate::chunk::Elements;
use crate::codec::CodecError;
use crate::codec::chain::BoundArrayToBytes;
use crate::codec::contract::{ArrayToBytes, PartialArrayDecode};
use crate::codec::factory::{BindContext, Codec, CodecFactory};
use crate::codec::support::buffer::in_place;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::representation::Size;
use crate::metadata::{DataType, Endianness};

pub(crate) const CODEC: Codec =
    Codec { names: &["bytes", "endian"], v2: &[], factory: CodecFactory::ArrayToBytes(bind) };

const NAME: &str = "bytes";

/// The codec, bound to an array of `size` bytes.
#[derive(Debug)]
struct BytesCodec {
    size: u64,
    swap: Swap,
    /// The meaning of a stored byte, for types with byte values that are not canonical.
    meaning: Option<Meaning>,
}

/// Which bytes are reversed.
#[derive(Debug)]
enum Swap {
    Nothing,
    /// Every unit of this many bytes.
    Units(usize),
    /// In every element, runs as `(bytes of the run, bytes of a unit)`.
    Runs(Vec<(usize, usize)>),
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToBytes, CodecError> {
    let data_type = &context.input.data_type;
    if data_type.is_variable() {
        return Err(config.invalid(format!("does not encode `{}`", data_type.name())));
    }
    let swap = match orders(config, data_type)? {
        None => Swap::Nothing,
        Some(orders) => match data_type.stored_units(&orders)[..] {
            [(_, unit)] => Swap::Units(unit),
            ref runs if runs.iter().all(|&(_, unit)| unit == 1) => Swap::Nothing,
            ref runs => Swap::Runs(runs.to_vec()),
        },
    };
    let size = context.size.max();
    Ok(BoundArrayToBytes::Whole(Box::new(BytesCodec { size, swap, meaning: Meaning::for_type(data_type) })))
}

/// The byte order of each simple part of an element; `None` if all are little-endian.
fn orders(config: &CodecConfig, data_type: &DataType) -> Result<Option<Vec<Endianness>>, CodecError> {
    let order = |written: &Value| match written.as_str() {
        Some("little") => Ok(Endianness::Little),
        Some("big") => Ok(Endianness::Big),
        _ => Err(config.invalid(format!("`endian` is `{written}`, neither `little` nor `big`"))),
    };
    let parts = data_type.simple_parts();
    match config.member("endian") {
        // From v2 documents with structs of mixed byte orders, which v3 cannot express.
        Some(Value::Array(orders)) if orders.len() == parts => {
            orders.iter().map(order).collect::<Result<_, _>>().map(Some)
        }
        Some(written) => match order(written)? {
            Endianness::Little => Ok(None),
            Endianness::Big => Ok(Some(vec![Endianness::Big; parts])),
        },
        // The specification requires it, but some writers omit it; these run on little-endian machines.
        None => Ok(None),
    }
}

/// The meaning of a stored byte, for a type with byte values that are not canonical.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Every(fn(u8) -> u8),
    /// Only the bits of the mask.
    Masked(u8),
}

impl Meaning {
    fn for_type(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Bool => Some(Self::Every(|byte| u8::from(byte != 0))),
            DataType::Int2 => Some(Self::Every(|byte| ((byte << 6).cast_signed() >> 6).cast_unsigned())),
            DataType::Int4 => Some(Self::Every(|byte| ((byte << 4).cast_signed() >> 4).cast_unsigned())),
            DataType::UInt2 => Some(Self::Masked(0b11)),
            DataType::UInt4 => Some(Self::Masked(0b1111)),
            DataType::SmallFloat(float) | DataType::ComplexSmallFloat(float) => {
                Some(Self::Masked(float.mask())).filter(|_| float.mask() != u8::MAX)
            }
            _ => None,
        }
    }

    fn apply(self, byte: u8) -> u8 {
        match self {
            Self::Every(meaning) => meaning(byte),
            Self::Masked(mask) => byte & mask,
        }
    }
}

impl ArrayToBytes for BytesCodec {
    fn encoded_size(&self) -> Size {
        Size::Exact(self.size)
    }

    fn decode(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        Size::Exact(self.size).check(NAME, encoded.len())?;
        self.decode_partial(encoded)
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        self.swapped(decoded.into_items())
    }

    fn partial(&self) -> Option<&dyn PartialArrayDecode> {
        Some(self)
    }
}

impl PartialArrayDecode for BytesCodec {
    fn decode_partial(&self, encoded: Bytes) -> Result<Elements, CodecError> {
        if let Some(meaning) = self.meaning
            && encoded.iter().any(|&byte| byte != meaning.apply(byte))
        {
            let decoded = in_place(encoded, |bytes| {
                for byte in bytes {
                    *byte = meaning.apply(*byte);
                }
            });
            return decoded.map(Elements::fixed);
        }
        self.swapped(encoded).map(Elements::fixed)
    }
}

impl BytesCodec {
    fn swapped(&self, bytes: Bytes) -> Result<Bytes, CodecError> {
        match &self.swap {
            Swap::Units(2) => in_place(bytes, reverse::<2>),
            Swap::Units(4) => in_place(bytes, reverse::<4>),
            Swap::Units(8) => in_place(bytes, reverse::<8>),
            Swap::Nothing | Swap::Units(_) => Ok(bytes),
            Swap::Runs(runs) => in_place(bytes, |bytes| reverse_runs(bytes, runs)),
        }
    }
}

fn reverse<const N: usize>(bytes: &mut [u8]) {
    bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|unit| unit.reverse());
}

/// Reverses the units of every run of every element.
fn reverse_runs(bytes: &mut [u8], runs: &[(usize, usize)]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        for &(length, unit) in runs {
            let Some((run, behind)) = rest.split_at_mut_checked(length) else { return };
            if unit > 1 {
                run.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
            }
            rest = behind;
        }
    }
}
