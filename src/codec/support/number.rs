//! Numbers between two data types: numpy's casts, for the codecs that are defined by them.
//!
//! Elements are read a block at a time into [`Number`]s, which represent every integer and every float exactly. They are
//! changed there and stored as elements of another type. Integers wrap around. A float loses its fraction; where numpy
//! leaves the result open, it becomes the nearest 64-bit integer, wrapped. Complex numbers and raw bits are not supported.
//! Types that numpy does not have (`int4`, `bfloat16`) are read and stored for codecs with rules of their own.

use std::ops::RangeInclusive;

use ::bytes::Bytes;
use half::{bf16, f16};

use super::buffer;
use crate::codec::CodecError;
use crate::metadata::DataType;

/// Elements converted at a time.
const BLOCK: usize = 256;

/// The exact value of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the codecs are defined by these casts"
)]
impl Number {
    pub(crate) fn float64(self) -> f64 {
        match self {
            Self::Signed(number) => number as f64,
            Self::Unsigned(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// The nearest `float32`, rounded once from the exact value.
    pub(crate) fn float32(self) -> f32 {
        match self {
            Self::Signed(number) => number as f32,
            Self::Unsigned(number) => number as f32,
            Self::Float(number) => number as f32,
        }
    }

    /// The integer modulo 2^64, least significant byte first.
    fn integer(self) -> [u8; 8] {
        match self {
            Self::Signed(number) => number.to_le_bytes(),
            Self::Unsigned(number) => number.to_le_bytes(),
            Self::Float(number) if number >= i64::MAX as f64 => (number as u64).to_le_bytes(),
            Self::Float(number) => (number as i64).to_le_bytes(),
        }
    }

    fn is_zero(self) -> bool {
        match self {
            Self::Signed(number) => number == 0,
            Self::Unsigned(number) => number == 0,
            Self::Float(number) => number == 0.0,
        }
    }
}

/// Whether elements of this type are numbers in numpy.
pub(crate) fn is_numpy_number(data_type: &DataType) -> bool {
    use DataType::{BFloat16, Int2, Int4, UInt2, UInt4};
    load(data_type, &[], &mut []) && !matches!(data_type, BFloat16 | Int2 | Int4 | UInt2 | UInt4)
}

/// Whether elements of this type are integers or floats, in numpy or not.
pub(crate) fn is_real(data_type: &DataType) -> bool {
    load(data_type, &[], &mut []) && *data_type != DataType::Bool
}

/// The range of an integer type; `None` for other types.
pub(crate) fn integer_range(data_type: &DataType) -> Option<RangeInclusive<i128>> {
    let (signed, bits) = match data_type {
        DataType::Int2 => (true, 2),
        DataType::Int4 => (true, 4),
        DataType::Int8 => (true, 8),
        DataType::Int16 => (true, 16),
        DataType::Int32 => (true, 32),
        DataType::Int64 => (true, 64),
        DataType::UInt2 => (false, 2),
        DataType::UInt4 => (false, 4),
        DataType::UInt8 => (false, 8),
        DataType::UInt16 => (false, 16),
        DataType::UInt32 => (false, 32),
        DataType::UInt64 => (false, 64),
        _ => return None,
    };
    let count = 1_i128 << bits;
    Some(if signed { -count / 2..=count / 2 - 1 } else { 0..=count - 1 })
}

/// The value of one element; `None` if its length is wrong or its type is not one that [`is_real`].
pub(crate) fn read_element(data_type: &DataType, element: &[u8]) -> Option<Number> {
    let mut number = [Number::Unsigned(0)];
    let right = element.len() == data_type.element_bytes() && load(data_type, element, &mut number);
    right.then_some(number[0])
}

/// Whether elements of this type are floats that numpy has too.
pub(crate) fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::Float32 | DataType::Float64)
}

/// Converts elements of the type `from` to elements of the type `to`, with `work` done on every block in between.
///
/// # Errors
/// [`CodecError::NoMemory`].
pub(crate) fn convert(
    elements: &[u8],
    from: &DataType,
    to: &DataType,
    mut work: impl FnMut(&mut [Number]),
) -> Result<Bytes, CodecError> {
    try_convert(elements, from, to, |block| {
        work(block);
        Ok(())
    })
}

/// As [`convert`], with `work` that may fail.
///
/// # Errors
/// Errors of `work`; [`CodecError::NoMemory`].
pub(crate) fn try_convert(
    elements: &[u8],
    from: &DataType,
    to: &DataType,
    mut work: impl FnMut(&mut [Number]) -> Result<(), CodecError>,
) -> Result<Bytes, CodecError> {
    let (from_bytes, to_bytes) = (from.element_bytes(), to.element_bytes());
    let mut converted = buffer::zeroed((elements.len() / from_bytes) as u64 * to_bytes as u64)?;
    let mut block = [Number::Unsigned(0); BLOCK];
    let blocks = elements.chunks(BLOCK * from_bytes).zip(converted.chunks_mut(BLOCK * to_bytes));
    for (elements, converted) in blocks {
        let block = block.get_mut(..elements.len() / from_bytes).unwrap_or_default();
        load(from, elements, block);
        work(block)?;
        store(to, block, converted);
    }
    Ok(Bytes::from(converted))
}

/// Reads elements into a block. Returns whether the type consists of numbers.
fn load(data_type: &DataType, elements: &[u8], block: &mut [Number]) -> bool {
    use Number::{Float, Signed, Unsigned};
    match data_type {
        DataType::Bool => read(elements, block, |[byte]| Unsigned(u64::from(byte != 0))),
        DataType::Int2 | DataType::Int4 | DataType::Int8 => {
            read(elements, block, |bytes| Signed(i8::from_le_bytes(bytes).into()));
        }
        DataType::Int16 => read(elements, block, |bytes| Signed(i16::from_le_bytes(bytes).into())),
        DataType::Int32 => read(elements, block, |bytes| Signed(i32::from_le_bytes(bytes).into())),
        DataType::Int64 => read(elements, block, |bytes| Signed(i64::from_le_bytes(bytes))),
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
            read(elements, block, |[byte]| Unsigned(byte.into()));
        }
        DataType::UInt16 => read(elements, block, |bytes| Unsigned(u16::from_le_bytes(bytes).into())),
        DataType::UInt32 => read(elements, block, |bytes| Unsigned(u32::from_le_bytes(bytes).into())),
        DataType::UInt64 => read(elements, block, |bytes| Unsigned(u64::from_le_bytes(bytes))),
        DataType::Float16 => read(elements, block, |bytes| Float(f16::from_le_bytes(bytes).into())),
        DataType::BFloat16 => read(elements, block, |bytes| Float(bf16::from_le_bytes(bytes).into())),
        DataType::Float32 => read(elements, block, |bytes| Float(f32::from_le_bytes(bytes).into())),
        DataType::Float64 => read(elements, block, |bytes| Float(f64::from_le_bytes(bytes))),
        _ => return false,
    }
    true
}

fn read<const N: usize>(elements: &[u8], block: &mut [Number], number: impl Fn([u8; N]) -> Number) {
    block.iter_mut().zip(elements.as_chunks().0).for_each(|(to, bytes)| *to = number(*bytes));
}

fn store(data_type: &DataType, block: &[Number], elements: &mut [u8]) {
    match data_type {
        DataType::Bool => write(block, elements, |number| [u8::from(!number.is_zero())]),
        DataType::Int2
        | DataType::Int4
        | DataType::Int8
        | DataType::UInt2
        | DataType::UInt4
        | DataType::UInt8 => write(block, elements, lowest::<1>),
        DataType::Int16 | DataType::UInt16 => write(block, elements, lowest::<2>),
        DataType::Int32 | DataType::UInt32 => write(block, elements, lowest::<4>),
        DataType::Int64 | DataType::UInt64 => write(block, elements, Number::integer),
        DataType::Float16 => {
            write(block, elements, |number| f16::from_f64(number.float64()).to_le_bytes());
        }
        DataType::BFloat16 => {
            write(block, elements, |number| bf16::from_f64(number.float64()).to_le_bytes());
        }
        DataType::Float32 => write(block, elements, |number| number.float32().to_le_bytes()),
        DataType::Float64 => write(block, elements, |number| number.float64().to_le_bytes()),
        _ => {}
    }
}

fn write<const N: usize>(block: &[Number], elements: &mut [u8], bytes: impl Fn(Number) -> [u8; N]) {
    elements.as_chunks_mut().0.iter_mut().zip(block).for_each(|(to, &number)| *to = bytes(number));
}

/// The lowest bytes of an integer.
fn lowest<const N: usize>(number: Number) -> [u8; N] {
    number.integer().first_chunk().copied().unwrap_or([0; N])
}
