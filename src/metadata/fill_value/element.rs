//! Conversion of integers, base64 and text to elements in canonical form.

use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::metadata::{DataType, MetadataError};

/// The error for a fill value that its data type does not permit.
pub(super) fn invalid(data_type: &DataType, reason: &str) -> MetadataError {
    MetadataError::invalid("fill_value", format!("{reason} (data type {})", data_type.name()))
}

/// An integer as an element of an integer type; an error if it is out of range.
pub(super) fn integer(data_type: &DataType, value: i128) -> Result<Vec<u8>, MetadataError> {
    let element = match data_type {
        DataType::Int2 => return small_integer(data_type, value, -2..=1),
        DataType::Int4 => return small_integer(data_type, value, -8..=7),
        DataType::UInt2 => return small_integer(data_type, value, 0..=3),
        DataType::UInt4 => return small_integer(data_type, value, 0..=15),
        DataType::Int8 => i8::try_from(value).map(|value| value.to_le_bytes().to_vec()),
        DataType::Int16 => i16::try_from(value).map(|value| value.to_le_bytes().to_vec()),
        DataType::Int32 => i32::try_from(value).map(|value| value.to_le_bytes().to_vec()),
        DataType::Int64 | DataType::DateTime64(_) | DataType::TimeDelta64(_) => {
            i64::try_from(value).map(|value| value.to_le_bytes().to_vec())
        }
        DataType::UInt8 => u8::try_from(value).map(|value| value.to_le_bytes().to_vec()),
        DataType::UInt16 => u16::try_from(value).map(|value| value.to_le_bytes().to_vec()),
        DataType::UInt32 => u32::try_from(value).map(|value| value.to_le_bytes().to_vec()),
        DataType::UInt64 => u64::try_from(value).map(|value| value.to_le_bytes().to_vec()),
        _ => {
            return Err(invalid(data_type, "is not of an integer type"));
        }
    };
    element.ok().ok_or_else(|| invalid(data_type, "is out of range"))
}

/// An integer of less than 8 bits: the lowest byte, if the value is within the range.
fn small_integer(
    data_type: &DataType,
    value: i128,
    range: RangeInclusive<i128>,
) -> Result<Vec<u8>, MetadataError> {
    if range.contains(&value) {
        Ok(value.to_le_bytes().into_iter().take(1).collect())
    } else {
        Err(invalid(data_type, "is out of range"))
    }
}

/// The name of the missing date or time span; its element is the smallest `int64`.
pub(super) const NOT_A_TIME: &str = "NaT";

/// The bytes encoded in base64.
pub(super) fn base64_bytes(data_type: &DataType, text: &str) -> Result<Vec<u8>, MetadataError> {
    BASE64_STANDARD.decode(text).ok().ok_or_else(|| invalid(data_type, "must be base64"))
}

/// The bytes as an element of this type; an error if their number differs from the element's size.
pub(super) fn check_length(data_type: &DataType, element: Vec<u8>) -> Result<Vec<u8>, MetadataError> {
    if element.len() == data_type.element_bytes() {
        Ok(element)
    } else {
        Err(invalid(data_type, "must be base64 of the bytes of one element"))
    }
}

/// Text as an element of this type, padded with zeros; an error if it is too long.
pub(super) fn padded(data_type: &DataType, mut text: Vec<u8>) -> Result<Vec<u8>, MetadataError> {
    if text.len() > data_type.element_bytes() {
        return Err(invalid(data_type, "is longer than an element"));
    }
    text.resize(data_type.element_bytes(), 0);
    Ok(text)
}

/// Text as an element of little-endian UTF-32, padded with zeros.
pub(super) fn utf32(data_type: &DataType, text: &str) -> Result<Vec<u8>, MetadataError> {
    padded(data_type, text.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect())
}
