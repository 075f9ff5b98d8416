//! `delta`: stores the first element, then the difference of each element to the one before it (numcodecs, "delta").
//!
//! Elements are one sequence, in stored order. Differences and sums have the type `dtype` and wrap around; they are stored
//! as `astype`. `bool` is refused, because numpy's sums of `bool`s do not invert its differences.

use std::ops::{Add, Sub};

use ::bytes::Bytes;
use half::f16;

use crate::codec::CodecError;
use crate::codec::contract::ElementwiseCodec;
use crate::codec::factory::{BindContext, BoundArrayToArray, Codec, CodecFactory};
use crate::codec::support::buffer::in_place;
use crate::codec::support::config::CodecConfig;
use crate::codec::support::number;
use crate::metadata::{DataType, V2ByteOrder, V2Codec};

pub(crate) const CODEC: Codec = Codec {
    names: &["numcodecs.delta"],
    v2: &[V2Codec {
        byte_order: V2ByteOrder::Named { decoded: Some("dtype"), encoded: "astype" },
        ..V2Codec::new("delta", "numcodecs.delta")
    }],
    factory: CodecFactory::ArrayToArray(bind),
};

#[derive(Debug)]
struct Delta {
    decoded: DataType,
    encoded: DataType,
}

fn bind(config: &CodecConfig, context: &BindContext) -> Result<BoundArrayToArray, CodecError> {
    let decoded = config.view_type("dtype", context.input)?;
    let encoded = config.numpy_type("astype")?.unwrap_or_else(|| decoded.clone());
    if decoded == DataType::Bool {
        return Err(config.unsupported("`dtype` bool"));
    }
    let output = context.input.retyped(&decoded, &encoded)?;
    Ok((Box::new(Delta { decoded, encoded }), output))
}

impl ElementwiseCodec for Delta {
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let differences = if self.encoded == self.decoded {
            encoded
        } else {
            number::convert(&encoded, &self.encoded, &self.decoded, |_block| {})?
        };
        in_place(differences, |elements| accumulate(&self.decoded, elements, Direction::Decode))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let differences =
            in_place(decoded, |elements| accumulate(&self.decoded, elements, Direction::Encode))?;
        if self.encoded == self.decoded {
            return Ok(differences);
        }
        number::convert(&differences, &self.decoded, &self.encoded, |_block| {})
    }
}

#[derive(Clone, Copy)]
enum Direction {
    /// Differences become sums.
    Decode,
    /// Elements become differences.
    Encode,
}

/// Replaces each element but the first: by its sum with the new previous element, or its difference to the old one.
fn accumulate(data_type: &DataType, elements: &mut [u8], direction: Direction) {
    match data_type {
        DataType::Int8 | DataType::UInt8 => {
            run(
                elements,
                direction,
                u8::from_le_bytes,
                u8::to_le_bytes,
                (u8::wrapping_add, u8::wrapping_sub),
            );
        }
        DataType::Int16 | DataType::UInt16 => {
            run(
                elements,
                direction,
                u16::from_le_bytes,
                u16::to_le_bytes,
                (u16::wrapping_add, u16::wrapping_sub),
            );
        }
        DataType::Int32 | DataType::UInt32 => {
            run(
                elements,
                direction,
                u32::from_le_bytes,
                u32::to_le_bytes,
                (u32::wrapping_add, u32::wrapping_sub),
            );
        }
        DataType::Int64 | DataType::UInt64 => {
            run(
                elements,
                direction,
                u64::from_le_bytes,
                u64::to_le_bytes,
                (u64::wrapping_add, u64::wrapping_sub),
            );
        }
        DataType::Float16 => {
            run(elements, direction, f16::from_le_bytes, f16::to_le_bytes, (f16::add, f16::sub));
        }
        DataType::Float32 => {
            run(elements, direction, f32::from_le_bytes, f32::to_le_bytes, (f32::add, f32::sub));
        }
        DataType::Float64 => {
            run(elements, direction, f64::from_le_bytes, f64::to_le_bytes, (f64::add, f64::sub));
        }
        // `bind` refuses other types.
        _ => {}
    }
}

fn run<T: Copy, const N: usize>(
    elements: &mut [u8],
    direction: Direction,
    load: impl Fn([u8; N]) -> T,
    store: impl Fn(T) -> [u8; N],
    (add, subtract): (impl Fn(T, T) -> T, impl Fn(T, T) -> T),
) {
    let Some((first, rest)) = elements.as_chunks_mut::<N>().0.split_first_mut() else { return };
    let mut before = load(*first);
    for element in rest {
        let this = load(*element);
        match direction {
            Direction::Decode => {
                before = add(this, before);
                *element = store(before);
            }
            Direction::Encode => {
                *element = store(subtract(this, before));
                before = this;
            }
        }
    }
}
