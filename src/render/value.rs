//! [`ElementValue`]: the value of one element, for the text formats.
//!
//! This is the one place that turns canonical bytes into numbers, dates and texts. Each text format adds its own
//! quoting and brackets.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use super::RenderError;
use super::date::Date;
use crate::metadata::{
    DataType, StructType, TimeUnit, bfloat16_to_print, float16_to_print, small_float_to_print, utf32_text,
    without_padding,
};

/// A float. Its display is the shortest text that reads back as the same element of its own type, or `NaN`, `Infinity`
/// or `-Infinity`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Float {
    /// A type of four bytes or less.
    Single(f32),
    /// A type of eight bytes.
    Double(f64),
}

impl Float {
    pub(super) fn is_finite(self) -> bool {
        match self {
            Self::Single(float) => float.is_finite(),
            Self::Double(float) => float.is_finite(),
        }
    }

    /// A float of this type; `None` if the type is not a float.
    fn from_element(data_type: &DataType, element: &[u8]) -> Result<Option<Self>, RenderError> {
        Ok(Some(match data_type {
            DataType::Float16 => Self::Single(float16_to_print(u16::from_le_bytes(byte_array(element)?))),
            DataType::BFloat16 => Self::Single(bfloat16_to_print(u16::from_le_bytes(byte_array(element)?))),
            DataType::Float32 => Self::Single(f32::from_le_bytes(byte_array(element)?)),
            DataType::Float64 => Self::Double(f64::from_le_bytes(byte_array(element)?)),
            DataType::SmallFloat(format) => {
                let [byte] = byte_array(element)?;
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

/// The value of one element.
#[derive(Debug)]
pub(super) enum ElementValue<'a> {
    Bool(bool),
    /// An integer, or a number of time steps.
    Signed(i64),
    Unsigned(u64),
    Float(Float),
    /// Real and imaginary part.
    Complex(Float, Float),
    Date(Date),
    /// A date or a time span that is `NaT`.
    NotATime,
    /// Text, without the zeros that pad it. In text of bytes, each byte that is not UTF-8 becomes `\xHH` and each `\`
    /// becomes `\\`, so different elements have different texts.
    Text(Cow<'a, str>),
    /// Bytes that are not text, or text in an unknown encoding.
    Bytes(&'a [u8]),
    /// The text of a JSON value.
    Json(&'a [u8]),
    Struct(&'a StructType, &'a [u8]),
    /// Elements of one type, in nested lists of this inner shape.
    List {
        item: &'a DataType,
        inner_shape: &'a [u32],
        elements: &'a [u8],
    },
}

impl<'a> ElementValue<'a> {
    /// The value of an element of this type. An element of variable length is given by its bytes.
    ///
    /// # Errors
    /// [`RenderError::ElementCount`] if the element does not have the length of its type; [`RenderError::NotText`] if a
    /// character is not a Unicode scalar value.
    pub(super) fn from_element(data_type: &'a DataType, element: &'a [u8]) -> Result<Self, RenderError> {
        if !data_type.is_variable() && element.len() != data_type.element_bytes() {
            return Err(RenderError::ElementCount);
        }
        if let Some(half) = data_type.complex_half() {
            let (real, imaginary) =
                element.split_at_checked(half.element_bytes()).ok_or(RenderError::ElementCount)?;
            let part = |bytes| Float::from_element(&half, bytes)?.ok_or(RenderError::ElementCount);
            return Ok(Self::Complex(part(real)?, part(imaginary)?));
        }
        if let Some(float) = Float::from_element(data_type, element)? {
            return Ok(Self::Float(float));
        }
        let text =
            |bytes| std::str::from_utf8(bytes).map_or(Self::Bytes(bytes), |text| Self::Text(text.into()));
        Ok(match data_type {
            DataType::Bool => Self::Bool(byte_array(element)? != [0]),
            DataType::Int2 | DataType::Int4 | DataType::Int8 => {
                Self::Signed(i8::from_le_bytes(byte_array(element)?).into())
            }
            DataType::Int16 => Self::Signed(i16::from_le_bytes(byte_array(element)?).into()),
            DataType::Int32 => Self::Signed(i32::from_le_bytes(byte_array(element)?).into()),
            DataType::Int64 => Self::Signed(i64::from_le_bytes(byte_array(element)?)),
            DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
                Self::Unsigned(u8::from_le_bytes(byte_array(element)?).into())
            }
            DataType::UInt16 => Self::Unsigned(u16::from_le_bytes(byte_array(element)?).into()),
            DataType::UInt32 => Self::Unsigned(u32::from_le_bytes(byte_array(element)?).into()),
            DataType::UInt64 => Self::Unsigned(u64::from_le_bytes(byte_array(element)?)),
            DataType::DateTime64(step) => match (i64::from_le_bytes(byte_array(element)?), step.unit()) {
                (i64::MIN, _) => Self::NotATime,
                (steps, TimeUnit::Generic) => Self::Signed(steps),
                (steps, _) => Self::Date(Date { step: *step, steps }),
            },
            DataType::TimeDelta64(_) => match i64::from_le_bytes(byte_array(element)?) {
                i64::MIN => Self::NotATime,
                steps => Self::Signed(steps),
            },
            DataType::RawBits { .. } | DataType::VariableBytes => Self::Bytes(element),
            DataType::FixedLengthUtf32 { .. } => {
                Self::Text(utf32_text(element).map_err(|number| RenderError::NotText { number })?.into())
            }
            DataType::NullTerminatedBytes { .. } => Self::Text(escape_invalid_utf8(without_padding(element))),
            DataType::String => text(element),
            DataType::Json => Self::Json(element),
            DataType::Struct(structure) => Self::Struct(structure, element),
            DataType::Subarray(subarray) => Self::List {
                item: subarray.item(),
                inner_shape: subarray.shape().get(1..).unwrap_or_default(),
                elements: element,
            },
            DataType::VariableArray(item) => Self::List { item, inner_shape: &[], elements: element },
            // Handled above.
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

/// Text of bytes in an unknown encoding: UTF-8 where it is valid, escapes for the other bytes.
pub(crate) fn escape_invalid_utf8(bytes: &[u8]) -> Cow<'_, str> {
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

/// The bytes of an element as an array, if they have its length.
fn byte_array<const N: usize>(element: &[u8]) -> Result<[u8; N], RenderError> {
    element.try_into().ok().ok_or(RenderError::ElementCount)
}
