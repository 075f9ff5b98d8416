//! The numbers of elements in canonical form, a row at a time.

use super::part::Part;
use crate::metadata::DataType;

/// Whether elements of a type are numbers here.
pub(super) fn is_number(data_type: &DataType) -> bool {
    let mut none = Vec::new();
    append(data_type, Part::Abs, &[], &mut none)
}

/// Appends the number of each element; false if the elements are not numbers. A complex number gives one of its parts. What
/// is `NaT` becomes NaN.
pub(super) fn append(data_type: &DataType, part: Part, items: &[u8], out: &mut Vec<f64>) -> bool {
    if let Some(half) = data_type.complex_half() {
        let mut parts = Vec::with_capacity(items.len() / half.element_bytes().max(1));
        let is_float = append(&half, part, items, &mut parts);
        out.extend(parts.as_chunks::<2>().0.iter().map(|&[real, imaginary]| part.of(real, imaginary)));
        return is_float;
    }
    match data_type {
        DataType::Bool => extend(out, items, |[byte]: [u8; 1]| f64::from(u8::from(byte != 0))),
        DataType::Int2 | DataType::Int4 | DataType::Int8 => {
            extend(out, items, |item| f64::from(i8::from_le_bytes(item)));
        }
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
            extend(out, items, |item| f64::from(u8::from_le_bytes(item)));
        }
        DataType::Int16 => extend(out, items, |item| f64::from(i16::from_le_bytes(item))),
        DataType::UInt16 => extend(out, items, |item| f64::from(u16::from_le_bytes(item))),
        DataType::Int32 => extend(out, items, |item| f64::from(i32::from_le_bytes(item))),
        DataType::UInt32 => extend(out, items, |item| f64::from(u32::from_le_bytes(item))),
        DataType::Int64 => extend(out, items, |item| from_i64(i64::from_le_bytes(item))),
        DataType::UInt64 => extend(out, items, |item| from_u64(u64::from_le_bytes(item))),
        DataType::DateTime64(_) | DataType::TimeDelta64(_) => {
            extend(out, items, |item| match i64::from_le_bytes(item) {
                i64::MIN => f64::NAN,
                steps => from_i64(steps),
            });
        }
        DataType::Float16 => {
            extend(out, items, |item| f64::from(half::f16::from_bits(u16::from_le_bytes(item))));
        }
        DataType::BFloat16 => {
            extend(out, items, |item| f64::from(half::bf16::from_bits(u16::from_le_bytes(item))));
        }
        DataType::Float32 => extend(out, items, |item| f64::from(f32::from_le_bytes(item))),
        DataType::Float64 => extend(out, items, f64::from_le_bytes),
        DataType::SmallFloat(format) => {
            extend(out, items, |[byte]: [u8; 1]| f64::from(format.value(byte)));
        }
        _ => return false,
    }
    true
}

fn extend<const N: usize>(out: &mut Vec<f64>, items: &[u8], number: impl Fn([u8; N]) -> f64) {
    out.extend(items.as_chunks::<N>().0.iter().map(|&item| number(item)));
}

#[expect(clippy::cast_precision_loss, reason = "a colour needs no more than 53 bits")]
fn from_i64(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a colour needs no more than 53 bits")]
fn from_u64(number: u64) -> f64 {
    number as f64
}

/// An integer element as it is; `None` if the type is not an integer.
pub(super) fn integer(data_type: &DataType, item: &[u8]) -> Option<i128> {
    let bytes = |signed: bool| {
        let fill = if signed && item.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
        let mut wide = [fill; 16];
        wide.get_mut(..item.len())?.copy_from_slice(item);
        Some(i128::from_le_bytes(wide))
    };
    match data_type {
        DataType::Bool
        | DataType::UInt2
        | DataType::UInt4
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => bytes(false),
        DataType::Int2
        | DataType::Int4
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64 => bytes(true),
        _ => None,
    }
}
