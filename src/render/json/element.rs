//! One element as JSON (RFC 8259), and the most bytes that takes.
//!
//! | type | text |
//! |---|---|
//! | numbers | the shortest that reads back as the same element of its own type; integers are exact |
//! | complex numbers, raw bits | as fill values: a pair, a list of bytes |
//! | dates | a string in ISO 8601 (see [`Date`]) |
//! | time spans | the number of steps; the data type says how long one is |
//! | text | a string, without the zeros behind it |
//! | text of bytes that is not UTF-8 | a list of its bytes, since its encoding is not known |
//! | bytes and arrays of any length, subarrays | a list |
//! | structs | an object, the fields in their order |
//! | JSON values | as they are |
//!
//! Lists around elements are not written here.

use std::io::Write as _;

use super::NanMode;
use crate::metadata::{
    DataType, Field, StructType, TimeUnit, bfloat16_to_print, float16_to_print, small_float_to_print,
    utf32_text, without_padding,
};
use crate::render::RenderError;
use crate::render::date::Date;

/// The longest text of one element.
pub(super) fn longest_text(data_type: &DataType) -> u64 {
    /// `\u0001`: no character takes more, in bytes of UTF-8 or not.
    const CHARACTER: u64 = 6;
    match data_type {
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => 3,
        DataType::Int2
        | DataType::Int4
        | DataType::Int8
        // What has no limit of its own.
        | DataType::String
        | DataType::VariableBytes
        | DataType::VariableArray(_)
        | DataType::Json => 4,
        DataType::Bool | DataType::UInt16 => 5,
        DataType::Int16 => 6,
        DataType::UInt32 => 10,
        DataType::Int32 => 11,
        DataType::Float16 => 16,
        DataType::UInt64
        | DataType::Int64
        | DataType::BFloat16
        | DataType::SmallFloat(_)
        | DataType::Float32
        | DataType::TimeDelta64(_) => 20,
        DataType::Float64 => 26,
        DataType::ComplexFloat16
        | DataType::ComplexBFloat16
        | DataType::ComplexSmallFloat(_)
        | DataType::Complex64 => 20 * 2 + 3,
        DataType::Complex128 => 26 * 2 + 3,
        DataType::RawBits { bytes } => u64::from(*bytes) * 4 + 2,
        DataType::DateTime64(step) => Date::longest_text(*step) as u64 + 2,
        DataType::FixedLengthUtf32 { code_points } => u64::from(*code_points) * CHARACTER + 2,
        DataType::NullTerminatedBytes { bytes } => u64::from(*bytes) * CHARACTER + 2,
        DataType::Struct(structure) => {
            let member = |field: &Field| {
                // Quotes, colon and comma.
                longest_text(&field.data_type) + field.name.chars().count() as u64 * CHARACTER + 4
            };
            structure.fields().iter().map(member).sum::<u64>() + 2
        }
        DataType::Subarray(subarray) => {
            // Each element, and no more than one list's brackets around it in each dimension.
            let one = longest_text(subarray.item()) + 1 + 2 * subarray.shape().len() as u64;
            one.saturating_mul(subarray.elements() as u64)
        }
    }
}

/// Appends one element; an error if it has not the length of its type, or is text of characters that are none.
pub(super) fn write_element(
    data_type: &DataType,
    nan: NanMode,
    element: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    // Writing to a vector does not fail.
    let _ = match data_type {
        DataType::Bool => write!(out, "{}", u8::from_le_bytes(exactly(element)?) != 0),
        DataType::Int2 | DataType::Int4 | DataType::Int8 => {
            write!(out, "{}", i8::from_le_bytes(exactly(element)?))
        }
        DataType::Int16 => write!(out, "{}", i16::from_le_bytes(exactly(element)?)),
        DataType::Int32 => write!(out, "{}", i32::from_le_bytes(exactly(element)?)),
        DataType::Int64 => write!(out, "{}", i64::from_le_bytes(exactly(element)?)),
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
            write!(out, "{}", u8::from_le_bytes(exactly(element)?))
        }
        DataType::UInt16 => write!(out, "{}", u16::from_le_bytes(exactly(element)?)),
        DataType::UInt32 => write!(out, "{}", u32::from_le_bytes(exactly(element)?)),
        DataType::UInt64 => write!(out, "{}", u64::from_le_bytes(exactly(element)?)),
        DataType::Float16 => match float16_to_print(u16::from_le_bytes(exactly(element)?)) {
            // The debug form is the display form with an exponent where that is shorter.
            float if float.is_finite() => write!(out, "{float:?}"),
            float => write!(out, "{}", not_finite(float.is_nan(), float > 0.0, nan)),
        },
        DataType::BFloat16 => match bfloat16_to_print(u16::from_le_bytes(exactly(element)?)) {
            float if float.is_finite() => write!(out, "{float:?}"),
            float => write!(out, "{}", not_finite(float.is_nan(), float > 0.0, nan)),
        },
        DataType::Float32 => match f32::from_le_bytes(exactly(element)?) {
            float if float.is_finite() => write!(out, "{float:?}"),
            float => write!(out, "{}", not_finite(float.is_nan(), float > 0.0, nan)),
        },
        DataType::Float64 => match f64::from_le_bytes(exactly(element)?) {
            float if float.is_finite() => write!(out, "{float:?}"),
            float => write!(out, "{}", not_finite(float.is_nan(), float > 0.0, nan)),
        },
        DataType::SmallFloat(format) => {
            let [byte] = exactly(element)?;
            match small_float_to_print(*format, byte) {
                float if float.is_finite() => write!(out, "{float:?}"),
                float => write!(out, "{}", not_finite(float.is_nan(), float > 0.0, nan)),
            }
        }
        DataType::ComplexFloat16
        | DataType::ComplexBFloat16
        | DataType::ComplexSmallFloat(_)
        | DataType::Complex64
        | DataType::Complex128 => {
            let half = data_type.complex_half().ok_or(RenderError::ElementCount)?;
            return write_pair(&half, nan, element, out);
        }
        DataType::String => match std::str::from_utf8(element) {
            Ok(text) => write_text(text, out),
            Err(_) => write_bytes(element, out),
        },
        DataType::VariableArray(item) => return write_list(item, &[], nan, element, out),
        DataType::Json => out.write_all(element),
        DataType::Struct(structure) => return write_fields(structure, nan, element, out),
        DataType::Subarray(subarray) => {
            return write_list(
                subarray.item(),
                subarray.shape().get(1..).unwrap_or_default(),
                nan,
                element,
                out,
            );
        }
        DataType::DateTime64(step) => match (i64::from_le_bytes(exactly(element)?), step.unit()) {
            (i64::MIN, _) => write!(out, "{}", not_a_time(nan)),
            (steps, TimeUnit::Generic) => write!(out, "{steps}"),
            (steps, _) => write!(out, "\"{}\"", Date { step: *step, steps }),
        },
        DataType::TimeDelta64(_) => match i64::from_le_bytes(exactly(element)?) {
            i64::MIN => write!(out, "{}", not_a_time(nan)),
            steps => write!(out, "{steps}"),
        },
        DataType::RawBits { .. }
        | DataType::FixedLengthUtf32 { .. }
        | DataType::NullTerminatedBytes { .. }
            if element.len() != data_type.item_bytes() =>
        {
            return Err(RenderError::ElementCount);
        }
        DataType::VariableBytes | DataType::RawBits { .. } => write_bytes(element, out),
        DataType::FixedLengthUtf32 { .. } => {
            let text = utf32_text(element).map_err(|number| RenderError::NotText { number })?;
            write_text(&text, out)
        }
        DataType::NullTerminatedBytes { .. } => {
            let text = without_padding(element);
            match std::str::from_utf8(text) {
                Ok(text) => write_text(text, out),
                Err(_) => write_bytes(text, out),
            }
        }
    };
    Ok(())
}

/// The bytes of an element, if they are as many as its type has.
fn exactly<const N: usize>(element: &[u8]) -> Result<[u8; N], RenderError> {
    element.try_into().ok().ok_or(RenderError::ElementCount)
}

fn not_finite(is_nan: bool, positive: bool, nan: NanMode) -> &'static str {
    match (nan, is_nan, positive) {
        (NanMode::Null, ..) => "null",
        (NanMode::String, true, _) => "\"NaN\"",
        (NanMode::String, false, true) => "\"Infinity\"",
        (NanMode::String, false, false) => "\"-Infinity\"",
    }
}

fn not_a_time(nan: NanMode) -> &'static str {
    match nan {
        NanMode::Null => "null",
        NanMode::String => "\"NaT\"",
    }
}

fn write_pair(half: &DataType, nan: NanMode, element: &[u8], out: &mut Vec<u8>) -> Result<(), RenderError> {
    let (real, imaginary) = element.split_at_checked(half.item_bytes()).ok_or(RenderError::ElementCount)?;
    out.push(b'[');
    write_element(half, nan, real, out)?;
    out.push(b',');
    write_element(half, nan, imaginary, out)?;
    out.push(b']');
    Ok(())
}

/// A struct as an object, its fields in their order.
fn write_fields(
    structure: &StructType,
    nan: NanMode,
    element: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    for (place, (at, field)) in structure.fields_at().enumerate() {
        out.push(if place == 0 { b'{' } else { b',' });
        // Writing to a vector does not fail.
        let _ = write_text(&field.name, out);
        out.push(b':');
        let bytes = element.get(at..at + field.data_type.item_bytes()).ok_or(RenderError::ElementCount)?;
        write_element(&field.data_type, nan, bytes, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Items as a list of lists of this shape.
fn write_list(
    item: &DataType,
    inner_shape: &[u32],
    nan: NanMode,
    elements: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    let inner =
        inner_shape.iter().fold(item.item_bytes(), |bytes, &edge| bytes.saturating_mul(edge as usize));
    out.push(b'[');
    for (place, element) in elements.chunks(inner.max(1)).enumerate() {
        if place > 0 {
            out.push(b',');
        }
        match inner_shape.split_first() {
            Some((_, deeper)) => write_list(item, deeper, nan, element, out)?,
            None => write_element(item, nan, element, out)?,
        }
    }
    out.push(b']');
    Ok(())
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    out.push(b'[');
    for (index, byte) in bytes.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        write!(out, "{separator}{byte}")?;
    }
    out.push(b']');
    Ok(())
}

fn write_text(text: &str, out: &mut Vec<u8>) -> std::io::Result<()> {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(out, "\\{character}")?,
            '\0'..='\x1f' => write!(out, "\\u{:04x}", u32::from(character))?,
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
    Ok(())
}
