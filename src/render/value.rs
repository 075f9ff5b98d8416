//! [`Value`]: what one element is, for the formats that are text.
//!
//! The one place where canonical bytes become numbers, dates and texts; how these are spelled around is each format's
//! own business.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use super::RenderError;
use super::date::Date;
use crate::metadata::{
    DataType, StructType, TimeUnit, bfloat16_to_print, float16_to_print, small_float_to_print, utf32_text,
    without_padding,
};

/// A float whose display is the shortest text that reads back as the same element of its own type; what is no finite
/// number is `NaN`, `Infinity` or `-Infinity`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Float {
    /// Of four bytes or less.
    Single(f32),
    /// Of eight bytes.
    Double(f64),
}

impl Float {
    pub(super) fn is_finite(self) -> bool {
        match self {
            Self::Single(float) => float.is_finite(),
            Self::Double(float) => float.is_finite(),
        }
    }

    /// A float of this type; `None` if the type is no float.
    fn of(data_type: &DataType, element: &[u8]) -> Result<Option<Self>, RenderError> {
        Ok(Some(match data_type {
            DataType::Float16 => Self::Single(float16_to_print(u16::from_le_bytes(exactly(element)?))),
            DataType::BFloat16 => Self::Single(bfloat16_to_print(u16::from_le_bytes(exactly(element)?))),
            DataType::Float32 => Self::Single(f32::from_le_bytes(exactly(element)?)),
            DataType::Float64 => Self::Double(f64::from_le_bytes(exactly(element)?)),
            DataType::SmallFloat(format) => {
                let [byte] = exactly(element)?;
                Self::Single(small_float_to_print(*format, byte))
            }
            _ => return Ok(None),
        }))
    }
}

impl fmt::Display for Float {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (is_nan, positive) = match self {
            // The debug form is the display form with an exponent where that is shorter.
            Self::Single(float) if float.is_finite() => return write!(out, "{float:?}"),
            Self::Double(float) if float.is_finite() => return write!(out, "{float:?}"),
            Self::Single(float) => (float.is_nan(), *float > 0.0),
            Self::Double(float) => (float.is_nan(), *float > 0.0),
        };
        out.write_str(match (is_nan, positive) {
            (true, _) => "NaN",
            (false, true) => "Infinity",
            (false, false) => "-Infinity",
        })
    }
}

/// What one element is.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Bool(bool),
    /// An integer, or a number of steps of time.
    Signed(i64),
    Unsigned(u64),
    Float(Float),
    /// Real and imaginary part.
    Complex(Float, Float),
    Date(Date),
    /// A date or a time span that is none: `NaT`.
    NotATime,
    /// Text, without the zeros behind it. Text of bytes has `\xHH` for each byte that is not UTF-8, and `\\` for `\`, so
    /// that every element has a text of its own.
    Text(Cow<'a, str>),
    /// Bytes that are no text, or in an encoding that is not known.
    Bytes(&'a [u8]),
    /// The text of a JSON value.
    Json(&'a [u8]),
    Struct(&'a StructType, &'a [u8]),
    /// Elements of one type, in lists of this inner shape.
    List {
        item: &'a DataType,
        inner_shape: &'a [u32],
        elements: &'a [u8],
    },
}

impl<'a> Value<'a> {
    /// What an element of this type is; of variable length, its bytes.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if it has not the length of its type, [`RenderError::NotText`] if it is text of
    /// characters that are none.
    pub(super) fn of(data_type: &'a DataType, element: &'a [u8]) -> Result<Self, RenderError> {
        if !data_type.is_variable() && element.len() != data_type.item_bytes() {
            return Err(RenderError::ElementCount);
        }
        if let Some(half) = data_type.complex_half() {
            let (real, imaginary) =
                element.split_at_checked(half.item_bytes()).ok_or(RenderError::ElementCount)?;
            let part = |bytes| Float::of(&half, bytes)?.ok_or(RenderError::ElementCount);
            return Ok(Self::Complex(part(real)?, part(imaginary)?));
        }
        if let Some(float) = Float::of(data_type, element)? {
            return Ok(Self::Float(float));
        }
        let text =
            |bytes| std::str::from_utf8(bytes).map_or(Self::Bytes(bytes), |text| Self::Text(text.into()));
        Ok(match data_type {
            DataType::Bool => Self::Bool(exactly(element)? != [0]),
            DataType::Int2 | DataType::Int4 | DataType::Int8 => {
                Self::Signed(i8::from_le_bytes(exactly(element)?).into())
            }
            DataType::Int16 => Self::Signed(i16::from_le_bytes(exactly(element)?).into()),
            DataType::Int32 => Self::Signed(i32::from_le_bytes(exactly(element)?).into()),
            DataType::Int64 => Self::Signed(i64::from_le_bytes(exactly(element)?)),
            DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
                Self::Unsigned(u8::from_le_bytes(exactly(element)?).into())
            }
            DataType::UInt16 => Self::Unsigned(u16::from_le_bytes(exactly(element)?).into()),
            DataType::UInt32 => Self::Unsigned(u32::from_le_bytes(exactly(element)?).into()),
            DataType::UInt64 => Self::Unsigned(u64::from_le_bytes(exactly(element)?)),
            DataType::DateTime64(step) => match (i64::from_le_bytes(exactly(element)?), step.unit()) {
                (i64::MIN, _) => Self::NotATime,
                (steps, TimeUnit::Generic) => Self::Signed(steps),
                (steps, _) => Self::Date(Date { step: *step, steps }),
            },
            DataType::TimeDelta64(_) => match i64::from_le_bytes(exactly(element)?) {
                i64::MIN => Self::NotATime,
                steps => Self::Signed(steps),
            },
            DataType::RawBits { .. } | DataType::VariableBytes => Self::Bytes(element),
            DataType::FixedLengthUtf32 { .. } => {
                Self::Text(utf32_text(element).map_err(|number| RenderError::NotText { number })?.into())
            }
            DataType::NullTerminatedBytes { .. } => Self::Text(escaped(without_padding(element))),
            DataType::String => text(element),
            DataType::Json => Self::Json(element),
            DataType::Struct(structure) => Self::Struct(structure, element),
            DataType::Subarray(subarray) => Self::List {
                item: subarray.item(),
                inner_shape: subarray.shape().get(1..).unwrap_or_default(),
                elements: element,
            },
            DataType::VariableArray(item) => Self::List { item, inner_shape: &[], elements: element },
            // Told apart above.
            DataType::Float16
            | DataType::BFloat16
            | DataType::Float32
            | DataType::Float64
            | DataType::SmallFloat(_)
            | DataType::ComplexFloat16
            | DataType::ComplexBFloat16
            | DataType::ComplexSmallFloat(_)
            | DataType::Complex64
            | DataType::Complex128 => return Err(RenderError::ElementCount),
        })
    }
}

/// Text of bytes in an encoding that is not known, as UTF-8 as far as it is.
fn escaped(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains('\\')
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(text, r"\x{byte:02x}");
        }
    }
    Cow::Owned(text)
}

/// The bytes of an element, if they are as many as its type has.
fn exactly<const N: usize>(element: &[u8]) -> Result<[u8; N], RenderError> {
    element.try_into().ok().ok_or(RenderError::ElementCount)
}
