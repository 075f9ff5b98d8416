//! [`FillValue`]: the element that absent chunks consist of (Zarr core 3.1, "Fill value").
//!
//! `v3` reads what the specification permits, `lenient` that and what writers of either version put there besides, `emit`
//! writes. All work on exact bits. How large an element may be is the data type's business.

mod emit;
mod lenient;
mod v3;

use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;

use super::{DataType, MetadataError};

/// One element in canonical form (see [`DataType`]), bit for bit: a NaN keeps its payload, `-0.0` is not `0.0`. Of a type
/// of variable length, the bytes that belong to the element and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FillValue(Bytes);

impl FillValue {
    /// The element of zero bits or of no length, which is also what a v2 `null` reads as.
    #[must_use]
    pub fn zero(data_type: &DataType) -> Self {
        match data_type {
            DataType::Json => Self(Bytes::from_static(b"null")),
            variable if variable.is_variable() => Self(Bytes::new()),
            fixed => Self(Bytes::from(vec![0; fixed.item_bytes()])),
        }
    }

    /// The element's bytes: as many as [`DataType::item_bytes`], unless its length is variable.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A fill value from an element's canonical bytes.
    #[must_use]
    pub fn from_bytes(element: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(element))
    }
}

/// A fill value that its data type does not permit.
fn invalid(data_type: &DataType, reason: &str) -> MetadataError {
    MetadataError::invalid("fill_value", format!("{reason} (data type {})", data_type.name()))
}

/// An integer as an element of an integer type; an error if it is out of range.
fn integer(data_type: &DataType, value: i128) -> Result<Vec<u8>, MetadataError> {
    let element = match data_type {
        DataType::Int2 => return small(data_type, value, -2..=1),
        DataType::Int4 => return small(data_type, value, -8..=7),
        DataType::UInt2 => return small(data_type, value, 0..=3),
        DataType::UInt4 => return small(data_type, value, 0..=15),
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
fn small(data_type: &DataType, value: i128, range: RangeInclusive<i128>) -> Result<Vec<u8>, MetadataError> {
    if range.contains(&value) {
        Ok(value.to_le_bytes().into_iter().take(1).collect())
    } else {
        Err(invalid(data_type, "is out of range"))
    }
}

/// The name of the date or time span that is none; its element is the smallest `int64`.
const NOT_A_TIME: &str = "NaT";

/// The bytes that a text in base64 stands for.
fn base64_bytes(data_type: &DataType, text: &str) -> Result<Vec<u8>, MetadataError> {
    BASE64_STANDARD.decode(text).ok().ok_or_else(|| invalid(data_type, "must be base64"))
}

/// Bytes as an element of this type, if they are as many as it has.
fn whole(data_type: &DataType, element: Vec<u8>) -> Result<Vec<u8>, MetadataError> {
    if element.len() == data_type.item_bytes() {
        Ok(element)
    } else {
        Err(invalid(data_type, "must be base64 of the bytes of one element"))
    }
}

/// Text as an element of this type: with zeros behind it, an error if it is too long.
fn padded(data_type: &DataType, mut text: Vec<u8>) -> Result<Vec<u8>, MetadataError> {
    if text.len() > data_type.item_bytes() {
        return Err(invalid(data_type, "is longer than an element"));
    }
    text.resize(data_type.item_bytes(), 0);
    Ok(text)
}

/// Text as characters of four bytes.
fn utf32(data_type: &DataType, text: &str) -> Result<Vec<u8>, MetadataError> {
    padded(data_type, text.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect())
}
