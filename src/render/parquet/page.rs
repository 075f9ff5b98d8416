//! The values of a column in a page: plain, with a bit for each row where values may be missing.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as ArrowType, TimeUnit};

use crate::render::RenderError;

/// Milliseconds of a second.
const MILLISECONDS: i64 = 1000;
/// Seconds of a day.
const DAY: i64 = 86_400;

/// The bytes of a page with a column's values.
///
/// # Errors
/// [`RenderError::DateRange`] for a time in seconds that has no number of milliseconds; [`RenderError::ElementCount`] for a
/// type that no file has.
pub(super) fn page(column: &ArrayRef, is_optional: bool) -> Result<Vec<u8>, RenderError> {
    let mut out = Vec::new();
    if is_optional {
        put_levels(column, &mut out);
    }
    put_values(column, &mut out)?;
    Ok(out)
}

/// Which rows have a value: the length in bytes, the number of groups of eight, and a bit for each.
fn put_levels(column: &ArrayRef, out: &mut Vec<u8>) {
    let bits = packed((0..column.len()).map(|row| column.is_valid(row)));
    let mut header = Vec::new();
    let mut rest = ((bits.len() as u64) << 1) | 1;
    while rest >= 0x80 {
        header.push((rest & 0x7f).to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    header.push(rest.to_le_bytes()[0]);
    let length = u32::try_from(header.len() + bits.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.append(&mut header);
    out.extend_from_slice(&bits);
}

/// Bits, the first of each byte lowest.
fn packed(bits: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (place, bit) in bits.enumerate() {
        if place % 8 == 0 {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= u8::from(bit) << (place % 8);
        }
    }
    bytes
}

fn put_values(column: &ArrayRef, out: &mut Vec<u8>) -> Result<(), RenderError> {
    match column.data_type() {
        ArrowType::Boolean => out.append(&mut packed(column.as_boolean().iter().flatten())),
        ArrowType::Int8 => put::<Int8Type, 4>(column, out, |number| i32::from(number).to_le_bytes()),
        ArrowType::Int16 => put::<Int16Type, 4>(column, out, |number| i32::from(number).to_le_bytes()),
        ArrowType::Int32 => put::<Int32Type, 4>(column, out, i32::to_le_bytes),
        ArrowType::Int64 => put::<Int64Type, 8>(column, out, i64::to_le_bytes),
        ArrowType::UInt8 => put::<UInt8Type, 4>(column, out, |number| u32::from(number).to_le_bytes()),
        ArrowType::UInt16 => put::<UInt16Type, 4>(column, out, |number| u32::from(number).to_le_bytes()),
        ArrowType::UInt32 => put::<UInt32Type, 4>(column, out, u32::to_le_bytes),
        ArrowType::UInt64 => put::<UInt64Type, 8>(column, out, u64::to_le_bytes),
        ArrowType::Float16 => put::<Float16Type, 4>(column, out, |number| number.to_f32().to_le_bytes()),
        ArrowType::Float32 => put::<Float32Type, 4>(column, out, f32::to_le_bytes),
        ArrowType::Float64 => put::<Float64Type, 8>(column, out, f64::to_le_bytes),
        ArrowType::Date32 => put::<Date32Type, 4>(column, out, i32::to_le_bytes),
        ArrowType::Timestamp(TimeUnit::Second, _) => {
            for seconds in column.as_primitive::<TimestampSecondType>().iter().flatten() {
                let day = seconds.div_euclid(DAY);
                let steps = seconds.checked_mul(MILLISECONDS).ok_or(RenderError::DateRange { day })?;
                out.extend_from_slice(&steps.to_le_bytes());
            }
        }
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => {
            put::<TimestampMillisecondType, 8>(column, out, i64::to_le_bytes);
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            put::<TimestampMicrosecondType, 8>(column, out, i64::to_le_bytes);
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            put::<TimestampNanosecondType, 8>(column, out, i64::to_le_bytes);
        }
        ArrowType::Duration(TimeUnit::Second) => {
            put::<DurationSecondType, 8>(column, out, i64::to_le_bytes);
        }
        ArrowType::Duration(TimeUnit::Millisecond) => {
            put::<DurationMillisecondType, 8>(column, out, i64::to_le_bytes);
        }
        ArrowType::Duration(TimeUnit::Microsecond) => {
            put::<DurationMicrosecondType, 8>(column, out, i64::to_le_bytes);
        }
        ArrowType::Duration(TimeUnit::Nanosecond) => {
            put::<DurationNanosecondType, 8>(column, out, i64::to_le_bytes);
        }
        ArrowType::Utf8 => {
            column.as_string::<i32>().iter().flatten().for_each(|text| put_bytes(text.as_bytes(), out));
        }
        ArrowType::Binary => {
            column.as_binary::<i32>().iter().flatten().for_each(|bytes| put_bytes(bytes, out));
        }
        ArrowType::FixedSizeBinary(_) => {
            column.as_fixed_size_binary().iter().flatten().for_each(|bytes| put_bytes(bytes, out));
        }
        _ => return Err(RenderError::ElementCount),
    }
    Ok(())
}

fn put<T: ArrowPrimitiveType, const N: usize>(
    column: &ArrayRef,
    out: &mut Vec<u8>,
    bytes: impl Fn(T::Native) -> [u8; N],
) {
    column.as_primitive::<T>().iter().flatten().for_each(|value| out.extend_from_slice(&bytes(value)));
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}
