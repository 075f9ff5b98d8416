//! The numbers of elements in canonical form, a row at a time.

use super::part::Part;
use crate::metadata::DataType;
use crate::reduce::CfValues;

/// Appends the number that each element stands for; false if the elements are not numbers. A complex number gives one of its
/// parts. What is `NaT` becomes NaN.
pub(super) fn append(values: &CfValues, part: Part, items: &[u8], out: &mut Vec<f64>) -> bool {
    if values.are_real() {
        values.append_numbers(items, out);
        return true;
    }
    let begin = out.len();
    if let Some(half) = values.data_type().complex_half() {
        let mut parts = Vec::with_capacity(items.len() / half.element_bytes().max(1));
        let is_float = append(&CfValues::stored(&half), part, items, &mut parts);
        out.extend(parts.as_chunks::<2>().0.iter().map(|&[real, imaginary]| part.of(real, imaginary)));
        unpack(values, out, begin);
        return is_float;
    }
    match values.data_type() {
        DataType::DateTime64(_) | DataType::TimeDelta64(_) => {
            extend(out, items, |item| match i64::from_le_bytes(item) {
                i64::MIN => f64::NAN,
                steps => from_i64(steps),
            });
        }
        DataType::SmallFloat(format) => {
            extend(out, items, |[byte]: [u8; 1]| f64::from(format.value(byte)));
        }
        _ => return false,
    }
    unpack(values, out, begin);
    true
}

/// Replaces the stored numbers from one place on by those that they stand for.
fn unpack(values: &CfValues, out: &mut [f64], begin: usize) {
    for number in out.iter_mut().skip(begin) {
        *number = values.unpacked(*number);
    }
}

fn extend<const N: usize>(out: &mut Vec<f64>, items: &[u8], number: impl Fn([u8; N]) -> f64) {
    out.extend(items.as_chunks::<N>().0.iter().map(|&item| number(item)));
}

#[expect(clippy::cast_precision_loss, reason = "a colour needs no more than 53 bits")]
fn from_i64(number: i64) -> f64 {
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
