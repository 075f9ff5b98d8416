//! Writing fill values (Zarr core 3.1, "Permitted fill values").
//!
//! Every element has one spelling, which parses to the same bits: a NaN other than the canonical one is written as
//! hexadecimal bits of full width, every other number in its shortest form, text without padding.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::FillValue;
use super::element::NOT_A_TIME;
use crate::metadata::{DataType, Field, decimal, text};

impl FillValue {
    /// The fill value as in a v3 document. An element with a wrong size or invalid characters is `null`; the parsers here
    /// return neither.
    #[must_use]
    pub fn to_json(&self, data_type: &DataType) -> Value {
        element_to_json(data_type, self.as_bytes()).unwrap_or(Value::Null)
    }

    /// The fill value as in a v2 document: as [`FillValue::to_json`], except that v2 writes bytes as base64, dates as a
    /// count, and every NaN alike.
    #[must_use]
    pub fn to_v2(&self, data_type: &DataType) -> Value {
        match data_type {
            // With padding, because some readers do not pad text.
            DataType::RawBits { .. } | DataType::Struct(_) | DataType::NullTerminatedBytes { .. } => {
                Value::from(BASE64_STANDARD.encode(self.as_bytes()))
            }
            DataType::DateTime64(_) | DataType::TimeDelta64(_) => <[u8; 8]>::try_from(self.as_bytes())
                .map_or(Value::Null, |count| i64::from_le_bytes(count).into()),
            float if float.complex_half().is_some() || is_float(float) => {
                canonical_nan(self.to_json(data_type))
            }
            _ => self.to_json(data_type),
        }
    }
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::Float32 | DataType::Float64)
}

/// A float or a pair of floats, with every NaN as `NaN`.
fn canonical_nan(float: Value) -> Value {
    match float {
        Value::String(bits) if bits.starts_with("0x") => Value::from("NaN"),
        Value::Array(pair) => Value::Array(pair.into_iter().map(canonical_nan).collect()),
        other => other,
    }
}

fn element_to_json(data_type: &DataType, element: &[u8]) -> Option<Value> {
    if element.len() != data_type.element_bytes() && !data_type.is_variable() {
        return None;
    }
    Some(match data_type {
        DataType::Bool => Value::from(u8::from_le_bytes(element.try_into().ok()?) != 0),
        DataType::Int2 | DataType::Int4 | DataType::Int8 => {
            Value::from(i8::from_le_bytes(element.try_into().ok()?))
        }
        DataType::Int16 => Value::from(i16::from_le_bytes(element.try_into().ok()?)),
        DataType::Int32 => Value::from(i32::from_le_bytes(element.try_into().ok()?)),
        DataType::Int64 => Value::from(i64::from_le_bytes(element.try_into().ok()?)),
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
            Value::from(u8::from_le_bytes(element.try_into().ok()?))
        }
        DataType::UInt16 => Value::from(u16::from_le_bytes(element.try_into().ok()?)),
        DataType::UInt32 => Value::from(u32::from_le_bytes(element.try_into().ok()?)),
        DataType::UInt64 => Value::from(u64::from_le_bytes(element.try_into().ok()?)),
        DataType::Float16
        | DataType::BFloat16
        | DataType::Float32
        | DataType::Float64
        | DataType::SmallFloat(_) => float_to_json(data_type, element)?,
        DataType::ComplexFloat16
        | DataType::ComplexBFloat16
        | DataType::ComplexSmallFloat(_)
        | DataType::Complex64
        | DataType::Complex128 => pair_to_json(&data_type.complex_half()?, element)?,
        DataType::Struct(structure) => {
            let member = |(at, field): (usize, &Field)| {
                let bytes = element.get(at..at + field.data_type.element_bytes())?;
                Some((field.name.to_string(), element_to_json(&field.data_type, bytes)?))
            };
            Value::Object(structure.fields_at().map(member).collect::<Option<_>>()?)
        }
        DataType::Subarray(subarray) => {
            let items = element.chunks_exact(subarray.item().element_bytes());
            Value::Array(items.map(|item| element_to_json(subarray.item(), item)).collect::<Option<_>>()?)
        }
        DataType::String => Value::from(std::str::from_utf8(element).ok()?),
        DataType::VariableBytes => Value::from(BASE64_STANDARD.encode(element)),
        DataType::VariableArray(item) => {
            let items = element.chunks_exact(item.element_bytes());
            Value::Array(items.map(|element| element_to_json(item, element)).collect::<Option<_>>()?)
        }
        DataType::Json => serde_json::from_slice(element).ok()?,
        DataType::RawBits { .. } => Value::from(element),
        DataType::DateTime64(_) | DataType::TimeDelta64(_) => {
            match i64::from_le_bytes(element.try_into().ok()?) {
                i64::MIN => Value::from(NOT_A_TIME),
                steps => Value::from(steps),
            }
        }
        DataType::FixedLengthUtf32 { .. } => Value::from(text::utf32_text(element).ok()?),
        DataType::NullTerminatedBytes { .. } => {
            Value::from(BASE64_STANDARD.encode(text::without_padding(element)))
        }
    })
}

/// A float as a number, by its name, or, for a NaN with a payload, by its bits in hexadecimal. `None` for other types.
fn float_to_json(data_type: &DataType, element: &[u8]) -> Option<Value> {
    Some(match data_type {
        DataType::Float16 => {
            let bits = u16::from_le_bytes(element.try_into().ok()?);
            let float = decimal::float16_to_print(bits);
            if float.is_nan() && bits != 0x7e00 {
                Value::from(format!("{bits:#06x}"))
            } else {
                named_float(float.is_nan(), float.is_infinite(), float < 0.0)
                    .unwrap_or_else(|| Value::from(float))
            }
        }
        DataType::BFloat16 => {
            let bits = u16::from_le_bytes(element.try_into().ok()?);
            let float = decimal::bfloat16_to_print(bits);
            if float.is_nan() && bits != 0x7fc0 {
                Value::from(format!("{bits:#06x}"))
            } else {
                named_float(float.is_nan(), float.is_infinite(), float < 0.0)
                    .unwrap_or_else(|| Value::from(float))
            }
        }
        DataType::Float32 => {
            let bits = u32::from_le_bytes(element.try_into().ok()?);
            let float = f32::from_bits(bits);
            if float.is_nan() && bits != 0x7fc0_0000 {
                Value::from(format!("{bits:#010x}"))
            } else {
                named_float(float.is_nan(), float.is_infinite(), float < 0.0)
                    .unwrap_or_else(|| Value::from(float))
            }
        }
        DataType::Float64 => {
            let bits = u64::from_le_bytes(element.try_into().ok()?);
            let float = f64::from_bits(bits);
            if float.is_nan() && bits != 0x7ff8_0000_0000_0000 {
                Value::from(format!("{bits:#018x}"))
            } else {
                named_float(float.is_nan(), float.is_infinite(), float < 0.0)
                    .unwrap_or_else(|| Value::from(float))
            }
        }
        DataType::SmallFloat(format) => {
            let [byte] = element.try_into().ok()?;
            let float = decimal::small_float_to_print(*format, byte);
            if float.is_nan() && Some(byte) != format.nan() {
                Value::from(format!("{byte:#04x}"))
            } else {
                named_float(float.is_nan(), float.is_infinite(), float < 0.0)
                    .unwrap_or_else(|| Value::from(float))
            }
        }
        _ => return None,
    })
}

/// The name of a float that JSON numbers cannot represent.
fn named_float(nan: bool, infinite: bool, negative: bool) -> Option<Value> {
    match (nan, infinite, negative) {
        (true, ..) => Some(Value::from("NaN")),
        (_, true, false) => Some(Value::from("Infinity")),
        (_, true, true) => Some(Value::from("-Infinity")),
        (false, false, _) => None,
    }
}

fn pair_to_json(half: &DataType, element: &[u8]) -> Option<Value> {
    let (real, imaginary) = element.split_at_checked(half.element_bytes())?;
    Some(Value::Array(vec![element_to_json(half, real)?, element_to_json(half, imaginary)?]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metadata::{TimeStep, TimeUnit};

    fn emitted(data_type: &DataType, element: &[u8]) -> String {
        FillValue::from_bytes(element).to_json(data_type).to_string()
    }

    #[test]
    fn booleans_numbers_and_raw_bits_are_written_exactly() {
        assert_eq!(emitted(&DataType::Bool, &[1]), "true");
        assert_eq!(emitted(&DataType::UInt64, &u64::MAX.to_le_bytes()), "18446744073709551615");
        assert_eq!(emitted(&DataType::Int64, &i64::MIN.to_le_bytes()), "-9223372036854775808");
        assert_eq!(emitted(&DataType::Float16, &[0x66, 0x2e]), "0.1");
        assert_eq!(emitted(&DataType::Float32, &0.1_f32.to_le_bytes()), "0.1");
        assert_eq!(emitted(&DataType::Float64, &(-0.0_f64).to_le_bytes()), "-0.0");
        assert_eq!(emitted(&DataType::Float32, &0x7fc0_0000_u32.to_le_bytes()), "\"NaN\"");
        assert_eq!(emitted(&DataType::Float32, &0xffc0_0000_u32.to_le_bytes()), "\"0xffc00000\"");
        assert_eq!(emitted(&DataType::Float16, &0x7c01_u16.to_le_bytes()), "\"0x7c01\"");
        assert_eq!(emitted(&DataType::Float64, &f64::NEG_INFINITY.to_le_bytes()), "\"-Infinity\"");
        assert_eq!(emitted(&DataType::RawBits { bytes: 2 }, &[0, 255]), "[0,255]");
        let complex = [1.5_f32.to_le_bytes(), f32::INFINITY.to_le_bytes()].concat();
        assert_eq!(emitted(&DataType::Complex64, &complex), "[1.5,\"Infinity\"]");
    }

    fn step() -> TimeStep {
        TimeStep::new(TimeUnit::Second, 1).unwrap()
    }

    #[test]
    fn times_and_text_are_written_as_specified() {
        assert_eq!(emitted(&DataType::DateTime64(step()), &5_i64.to_le_bytes()), "5");
        assert_eq!(emitted(&DataType::TimeDelta64(step()), &i64::MIN.to_le_bytes()), "\"NaT\"");
        let bytes = DataType::NullTerminatedBytes { bytes: 3 };
        assert_eq!(emitted(&bytes, b"ab\0"), "\"YWI=\"");
        assert_eq!(emitted(&bytes, &[0; 3]), "\"\"");
        let text = DataType::FixedLengthUtf32 { code_points: 2 };
        assert_eq!(emitted(&text, &[0xe9, 0, 0, 0, 0, 0, 0, 0]), "\"é\"");
    }

    #[test]
    fn raw_bytes_times_and_nan_have_their_spelling_of_v2() {
        let emitted = |data_type: &DataType, element: &[u8]| {
            FillValue::from_bytes(element).to_v2(data_type).to_string()
        };
        assert_eq!(emitted(&DataType::RawBits { bytes: 2 }, &[0, 255]), "\"AP8=\"");
        assert_eq!(emitted(&DataType::NullTerminatedBytes { bytes: 3 }, b"ab\0"), "\"YWIA\"");
        assert_eq!(emitted(&DataType::DateTime64(step()), &i64::MIN.to_le_bytes()), "-9223372036854775808");
        assert_eq!(emitted(&DataType::Float32, &0xffc0_0001_u32.to_le_bytes()), "\"NaN\"");
        let pair = [1.5_f32.to_le_bytes(), 0xffc0_0001_u32.to_le_bytes()].concat();
        assert_eq!(emitted(&DataType::Complex64, &pair), "[1.5,\"NaN\"]");
        assert_eq!(emitted(&DataType::Int8, &[255]), "-1");
    }

    #[test]
    fn invalid_elements_are_written_as_null() {
        assert_eq!(emitted(&DataType::RawBits { bytes: 2 }, &[1]), "null");
        assert_eq!(emitted(&DataType::FixedLengthUtf32 { code_points: 1 }, &[0, 0xd8, 0, 0]), "null");
    }

    #[test]
    fn small_integers_and_bfloat16_are_written_as_numbers() {
        assert_eq!(emitted(&DataType::Int2, &[0xfe]), "-2");
        assert_eq!(emitted(&DataType::UInt4, &[15]), "15");
        assert_eq!(emitted(&DataType::BFloat16, &0x3dcd_u16.to_le_bytes()), "0.1");
        assert_eq!(emitted(&DataType::BFloat16, &0x7fc0_u16.to_le_bytes()), "\"NaN\"");
        assert_eq!(emitted(&DataType::BFloat16, &0xffc0_u16.to_le_bytes()), "\"0xffc0\"");
    }

    proptest! {
        #[test]
        fn written_text_parses_to_the_same_text(text in "\\PC{0,3}\0?\\PC{0,2}") {
            let data_type = DataType::FixedLengthUtf32 { code_points: 6 };
            let fill_value = FillValue::from_v3(&data_type, Some(&Value::from(text))).unwrap();
            let json = fill_value.to_json(&data_type);
            prop_assert_eq!(FillValue::from_v3(&data_type, Some(&json)), Ok(fill_value.clone()));
            prop_assert_eq!(FillValue::from_v2(&data_type, Some(&json)), Ok(fill_value));
        }

        #[test]
        fn written_elements_parse_to_the_same_bits(element in prop::array::uniform16(any::<u8>())) {
            let others = [
                DataType::BFloat16, DataType::Complex64, DataType::Complex128, DataType::RawBits { bytes: 5 },
                DataType::DateTime64(step()), DataType::TimeDelta64(step()),
                DataType::NullTerminatedBytes { bytes: 5 },
            ];
            for data_type in DataType::NUMPY_REALS.into_iter().chain(others) {
                let fill_value = FillValue::from_bytes(&element[..data_type.element_bytes()]);
                let text = fill_value.to_json(&data_type).to_string();
                let value = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(FillValue::from_v3(&data_type, Some(&value)), Ok(fill_value.clone()));
                prop_assert_eq!(FillValue::from_v2(&data_type, Some(&value)), Ok(fill_value));
            }
        }
    }
}
