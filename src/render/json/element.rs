//! One element as JSON (RFC 8259), and the most bytes that it takes.
//!
//! | type | text |
//! |---|---|
//! | numbers | the shortest that reads back as the same element of its own type; integers are exact |
//! | complex numbers, raw bits | as fill values: a pair, a list of bytes |
//! | dates | a string in ISO 8601 (see [`Date`]) |
//! | time spans | the number of steps, whose unit the data type contains |
//! | text | a string, without the zeros that pad it |
//! | text of bytes | a string of it as UTF-8, with `\xHH` for each byte that is not and `\\` for `\` |
//! | bytes and arrays of variable length, subarrays | a list |
//! | structs | an object, the fields in their order |
//! | JSON values | unchanged |
//!
//! The module `writer` adds the lists around elements.

use std::io::Write as _;

use crate::metadata::{DataType, Field, StructType};
use crate::render::date::Date;
use crate::render::value::{ElementValue, Float};
use crate::render::{NanMode, RenderError};

/// The most bytes of one element as text. For a type of variable length, the bytes of an empty element.
pub(in crate::render) fn max_text_bytes(data_type: &DataType) -> u64 {
    /// `\u0001`: the longest text of a character, whether it has one byte of UTF-8 or several.
    const CHARACTER: u64 = 6;
    match data_type {
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => 3,
        // These have no limit of their own: an empty one.
        DataType::String | DataType::VariableBytes | DataType::VariableArray(_) | DataType::Json => 2,
        DataType::Int2 | DataType::Int4 | DataType::Int8 => 4,
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
        DataType::DateTime64(step) => Date::max_text_bytes(*step) as u64 + 2,
        DataType::FixedLengthUtf32 { code_points } => u64::from(*code_points) * CHARACTER + 2,
        DataType::NullTerminatedBytes { bytes } => u64::from(*bytes) * CHARACTER + 2,
        DataType::Struct(structure) => {
            let member = |field: &Field| {
                // Quotes, colon and comma.
                max_text_bytes(&field.data_type) + field.name.chars().count() as u64 * CHARACTER + 4
            };
            structure.fields().iter().map(member).sum::<u64>() + 2
        }
        DataType::Subarray(subarray) => {
            // Each element, and at most the brackets of one list around it in each dimension.
            let one = max_text_bytes(subarray.item()) + 1 + 2 * subarray.shape().len() as u64;
            one.saturating_mul(subarray.elements() as u64)
        }
    }
}

/// Appends one element.
///
/// # Errors
/// [`RenderError::ElementCount`] if the element does not have the length of its type; [`RenderError::NotText`] if a
/// character is not a Unicode scalar value.
pub(in crate::render) fn write_element(
    data_type: &DataType,
    nan: NanMode,
    element: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    // Writing to a vector does not fail.
    let _ = match ElementValue::from_element(data_type, element)? {
        ElementValue::Bool(truth) => write!(out, "{truth}"),
        ElementValue::Signed(number) => write!(out, "{number}"),
        ElementValue::Unsigned(number) => write!(out, "{number}"),
        ElementValue::Float(float) => write_float(float, nan, out),
        ElementValue::Complex(real, imaginary) => write_pair([real, imaginary], nan, out),
        ElementValue::Date(date) => write!(out, "\"{date}\""),
        ElementValue::NotATime => {
            out.write_all(if nan == NanMode::Null { "null" } else { "\"NaT\"" }.as_bytes())
        }
        ElementValue::Text(text) => write_text(&text, out),
        ElementValue::Bytes(bytes) => write_bytes(bytes, out),
        ElementValue::Json(text) => out.write_all(text),
        ElementValue::Struct(structure, element) => return write_fields(structure, nan, element, out),
        ElementValue::List { item, inner_shape, elements } => {
            return write_list(item, inner_shape, nan, elements, out);
        }
    };
    Ok(())
}

fn write_float(float: Float, nan: NanMode, out: &mut Vec<u8>) -> std::io::Result<()> {
    match nan {
        _ if float.is_finite() => write!(out, "{float}"),
        NanMode::String => write!(out, "\"{float}\""),
        NanMode::Null => out.write_all(b"null"),
    }
}

fn write_pair([real, imaginary]: [Float; 2], nan: NanMode, out: &mut Vec<u8>) -> std::io::Result<()> {
    out.push(b'[');
    write_float(real, nan, out)?;
    out.push(b',');
    write_float(imaginary, nan, out)?;
    out.push(b']');
    Ok(())
}

/// Writes a struct as an object, the fields in their order.
fn write_fields(
    structure: &StructType,
    nan: NanMode,
    element: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    for (index, (at, field)) in structure.fields_at().enumerate() {
        out.push(if index == 0 { b'{' } else { b',' });
        // Writing to a vector does not fail.
        let _ = write_text(&field.name, out);
        out.push(b':');
        let bytes = element.get(at..at + field.data_type.element_bytes()).ok_or(RenderError::ElementCount)?;
        write_element(&field.data_type, nan, bytes, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Writes items as nested lists of this inner shape.
fn write_list(
    item: &DataType,
    inner_shape: &[u32],
    nan: NanMode,
    elements: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    let inner =
        inner_shape.iter().fold(item.element_bytes(), |bytes, &edge| bytes.saturating_mul(edge as usize));
    out.push(b'[');
    for (index, element) in elements.chunks(inner.max(1)).enumerate() {
        if index > 0 {
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
