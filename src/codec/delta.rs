//! `delta`: the first element, then the difference of each to the one before it (numcodecs, "delta").
//!
//! Elements are one sequence, in the order they are stored. Differences and sums are of the type `dtype` and wrap
//! around; they are stored as `astype`. A `bool` is refused: numpy's sums of them do not give back what its
//! differences were made of.

use std::ops::{Add, Sub};

use ::bytes::Bytes;
use half::f16;

use super::CodecError;
use super::buffer::in_place;
use super::config::Config;
use super::number;
use super::registry::{BindContext, BoundArray, ElementwiseCodec};
use crate::metadata::DataType;

#[derive(Debug)]
struct Delta {
    decoded: DataType,
    encoded: DataType,
}

pub(super) fn bind(config: &Config, context: &BindContext) -> Result<BoundArray, CodecError> {
    let decoded = config.view("dtype", context.input)?;
    let encoded = config.number_type("astype")?.unwrap_or_else(|| decoded.clone());
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
        in_place(differences, |elements| each(&self.decoded, elements, Way::Sums))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let differences = in_place(decoded, |elements| each(&self.decoded, elements, Way::Differences))?;
        if self.encoded == self.decoded {
            return Ok(differences);
        }
        number::convert(&differences, &self.decoded, &self.encoded, |_block| {})
    }
}

#[derive(Clone, Copy)]
enum Way {
    Sums,
    Differences,
}

/// Replaces each element but the first by its sum with the new one before it, or its difference to the old one.
fn each(data_type: &DataType, elements: &mut [u8], way: Way) {
    match data_type {
        DataType::Int8 | DataType::UInt8 => {
            run(elements, way, u8::from_le_bytes, u8::to_le_bytes, (u8::wrapping_add, u8::wrapping_sub));
        }
        DataType::Int16 | DataType::UInt16 => {
            run(elements, way, u16::from_le_bytes, u16::to_le_bytes, (u16::wrapping_add, u16::wrapping_sub));
        }
        DataType::Int32 | DataType::UInt32 => {
            run(elements, way, u32::from_le_bytes, u32::to_le_bytes, (u32::wrapping_add, u32::wrapping_sub));
        }
        DataType::Int64 | DataType::UInt64 => {
            run(elements, way, u64::from_le_bytes, u64::to_le_bytes, (u64::wrapping_add, u64::wrapping_sub));
        }
        DataType::Float16 => {
            run(elements, way, f16::from_le_bytes, f16::to_le_bytes, (f16::add, f16::sub));
        }
        DataType::Float32 => {
            run(elements, way, f32::from_le_bytes, f32::to_le_bytes, (f32::add, f32::sub));
        }
        DataType::Float64 => {
            run(elements, way, f64::from_le_bytes, f64::to_le_bytes, (f64::add, f64::sub));
        }
        // Refused when bound.
        _ => {}
    }
}

fn run<T: Copy, const N: usize>(
    elements: &mut [u8],
    way: Way,
    load: impl Fn([u8; N]) -> T,
    store: impl Fn(T) -> [u8; N],
    (add, subtract): (impl Fn(T, T) -> T, impl Fn(T, T) -> T),
) {
    let Some((first, rest)) = elements.as_chunks_mut::<N>().0.split_first_mut() else { return };
    let mut before = load(*first);
    for element in rest {
        let this = load(*element);
        match way {
            Way::Sums => {
                before = add(this, before);
                *element = store(before);
            }
            Way::Differences => {
                *element = store(subtract(this, before));
                before = this;
            }
        }
    }
}
