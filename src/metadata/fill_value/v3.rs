//! Strict parsing of fill values of v3 documents (Zarr core 3.1, "Permitted fill values"; Zarr extensions, "data-types").
//!
//! Accepts only what the specifications permit, with three exceptions for known writers: hexadecimal bits may be shorter
//! than the type, a missing or `null` fill value is zero, and raw bits may be base64.

use serde_json::Value;

use super::FillValue;
use super::element::{NOT_A_TIME, base64_bytes, check_length, integer, invalid, padded, utf32};
use crate::metadata::{DataType, MetadataError, SmallFloat, StructType, decimal, text};

impl FillValue {
    /// Parses the fill value of a v3 document strictly; `None` if the document has no fill value. See also
    /// [`from_v3_leniently`](Self::from_v3_leniently).
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] if the data type does not permit the value, for example an integer out of range.
    pub fn from_v3(data_type: &DataType, fill_value: Option<&Value>) -> Result<Self, MetadataError> {
        match fill_value {
            None | Some(Value::Null) => Ok(Self::zero(data_type)),
            Some(value) => element(data_type, value).map(|element| Self::from_bytes(&element)),
        }
    }
}

/// The element for a value that is not `null`.
pub(super) fn element(data_type: &DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    match data_type {
        DataType::Bool => match value {
            Value::Bool(value) => Ok(vec![u8::from(*value)]),
            _ => Err(invalid(data_type, "must be true or false")),
        },
        DataType::Int2
        | DataType::Int4
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt2
        | DataType::UInt4
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => strict_integer(data_type, value),
        DataType::Float16
        | DataType::BFloat16
        | DataType::Float32
        | DataType::Float64
        | DataType::SmallFloat(_) => float(data_type, value),
        DataType::ComplexFloat16
        | DataType::ComplexBFloat16
        | DataType::ComplexSmallFloat(_)
        | DataType::Complex64
        | DataType::Complex128 => pair(data_type, value, float),
        DataType::RawBits { .. } => match value {
            Value::String(text) => check_length(data_type, base64_bytes(data_type, text)?),
            _ => raw_bytes(data_type, value),
        },
        DataType::DateTime64(_) | DataType::TimeDelta64(_) => match value.as_str() {
            Some(NOT_A_TIME) => integer(data_type, i64::MIN.into()),
            _ => strict_integer(data_type, value),
        },
        DataType::FixedLengthUtf32 { .. } => match value {
            Value::String(text) => utf32(data_type, text),
            _ => Err(invalid(data_type, "must be a string")),
        },
        DataType::NullTerminatedBytes { .. } => match value {
            Value::String(text) => padded(data_type, base64_bytes(data_type, text)?),
            _ => Err(invalid(data_type, "must be base64")),
        },
        DataType::Struct(structure) => match value {
            Value::String(text) => check_length(data_type, base64_bytes(data_type, text)?),
            _ => struct_element(data_type, structure, value),
        },
        DataType::Subarray(subarray) => {
            let items = value.as_array().filter(|items| items.len() == subarray.elements());
            let items = items.ok_or_else(|| invalid(data_type, "must be a list of all elements"))?;
            items
                .iter()
                .map(|item| element(subarray.item(), item))
                .collect::<Result<Vec<_>, _>>()
                .map(|all| all.concat())
        }
        DataType::String => match value {
            Value::String(text) => Ok(text.as_bytes().to_vec()),
            _ => Err(invalid(data_type, "must be a string")),
        },
        DataType::VariableBytes => match value {
            Value::String(text) => base64_bytes(data_type, text),
            _ => byte_list(value).ok_or_else(|| invalid(data_type, "must be a list of bytes or base64")),
        },
        DataType::VariableArray(_) => match value.as_array().map(Vec::as_slice) {
            Some([]) => Ok(Vec::new()),
            _ => Err(invalid(data_type, "must be empty")),
        },
        DataType::Json => Ok(text::canonical_json(value).into_bytes()),
    }
}

/// A struct from an object with exactly its fields.
fn struct_element(
    data_type: &DataType,
    structure: &StructType,
    value: &Value,
) -> Result<Vec<u8>, MetadataError> {
    let members = value.as_object().filter(|members| members.len() == structure.fields().len());
    let members = members.ok_or_else(|| invalid(data_type, "must be an object of all fields"))?;
    let mut all = Vec::with_capacity(structure.element_bytes());
    for field in structure.fields() {
        let member = members.get(&*field.name);
        let member = member.ok_or_else(|| invalid(data_type, "must be an object of all fields"))?;
        all.extend(element(&field.data_type, member)?);
    }
    Ok(all)
}

fn byte_list(value: &Value) -> Option<Vec<u8>> {
    let byte = |item: &Value| item.as_u64().and_then(|byte| u8::try_from(byte).ok());
    value.as_array()?.iter().map(byte).collect()
}

fn strict_integer(data_type: &DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    match value {
        Value::Number(number) if is_integer_text(number.as_str()) => {
            let value: Option<i128> = number.as_str().parse().ok();
            integer(data_type, value.ok_or_else(|| invalid(data_type, "is out of range"))?)
        }
        _ => Err(invalid(data_type, "must be a number without fraction or exponent")),
    }
}

/// Whether a JSON number has neither fraction nor exponent.
fn is_integer_text(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// A complex number from its two parts, each read by `part`.
pub(super) fn pair(
    data_type: &DataType,
    value: &Value,
    part: impl Fn(&DataType, &Value) -> Result<Vec<u8>, MetadataError>,
) -> Result<Vec<u8>, MetadataError> {
    match (data_type.complex_half(), value.as_array().map(Vec::as_slice)) {
        (Some(half), Some([real, imaginary])) => Ok([part(&half, real)?, part(&half, imaginary)?].concat()),
        _ => Err(invalid(data_type, "must be a pair of numbers")),
    }
}

fn float(data_type: &DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    match value {
        Value::Number(number) => decimal_float(data_type, number.as_str()),
        Value::String(text) => named_float(data_type, text)
            .ok_or_else(|| invalid(data_type, "must be a number, a named value or hexadecimal bits")),
        _ => Err(invalid(data_type, "must be a number or a string")),
    }
}

/// The float nearest to a decimal number. A number beyond the largest float is an error, because infinity has a name.
pub(super) fn decimal_float(data_type: &DataType, text: &str) -> Result<Vec<u8>, MetadataError> {
    const F16_INFINITY: u16 = 0x7c00;
    const BF16_INFINITY: u16 = 0x7f80;
    let element = match data_type {
        DataType::Float16 => decimal::float16_bits(text)
            .filter(|bits| bits & F16_INFINITY != F16_INFINITY)
            .map(|bits| bits.to_le_bytes().to_vec()),
        DataType::BFloat16 => decimal::bfloat16_bits(text)
            .filter(|bits| bits & BF16_INFINITY != BF16_INFINITY)
            .map(|bits| bits.to_le_bytes().to_vec()),
        DataType::SmallFloat(format) => decimal::small_float_bits(*format, text).map(|element| vec![element]),
        DataType::Float32 => text
            .parse()
            .ok()
            .filter(|float: &f32| float.is_finite())
            .map(|float| float.to_le_bytes().to_vec()),
        _ => text
            .parse()
            .ok()
            .filter(|float: &f64| float.is_finite())
            .map(|float| float.to_le_bytes().to_vec()),
    };
    element.ok_or_else(|| invalid(data_type, "is out of range"))
}

/// `NaN`, `Infinity`, `-Infinity`, or bits in hexadecimal.
pub(super) fn named_float(data_type: &DataType, text: &str) -> Option<Vec<u8>> {
    let (infinity, nan, sign): (u64, u64, u64) = match data_type {
        DataType::SmallFloat(format) => return named_small_float(*format, text),
        DataType::Float16 => (0x7c00, 0x7e00, 0x8000),
        DataType::BFloat16 => (0x7f80, 0x7fc0, 0x8000),
        DataType::Float32 => (0x7f80_0000, 0x7fc0_0000, 0x8000_0000),
        _ => (0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000, 0x8000_0000_0000_0000),
    };
    let bits = match text {
        "NaN" => nan,
        "Infinity" => infinity,
        "-Infinity" => infinity | sign,
        _ => hexadecimal(text)?,
    };
    let bytes = bits.to_le_bytes();
    let (element, above) = bytes.split_at_checked(data_type.element_bytes())?;
    above.iter().all(|&byte| byte == 0).then(|| element.to_vec())
}

/// As [`named_float`], for formats that may lack a NaN or infinities.
fn named_small_float(format: SmallFloat, text: &str) -> Option<Vec<u8>> {
    let element = match text {
        "NaN" => format.nan()?,
        "Infinity" => format.infinity()?,
        "-Infinity" => format.infinity()? | format.sign_bit(),
        _ => u8::try_from(hexadecimal(text)?).ok().filter(|bits| bits & !format.mask() == 0)?,
    };
    Some(vec![element])
}

fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    // `from_str_radix` would accept a sign.
    if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        u64::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

fn raw_bytes(data_type: &DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    byte_list(value)
        .filter(|bytes| bytes.len() == data_type.element_bytes())
        .ok_or_else(|| invalid(data_type, "must be an array of one integer from 0 to 255 for each byte"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{MetadataLimits, parse_document};
    use crate::metadata::{TimeStep, TimeUnit};

    fn read(data_type: &DataType, text: &str) -> Result<Vec<u8>, MetadataError> {
        let value = parse_document(text.as_bytes(), &MetadataLimits::default()).unwrap();
        FillValue::from_v3(data_type, Some(&value)).map(|fill_value| fill_value.as_bytes().to_vec())
    }

    fn assert_reads(data_type: &DataType, text: &str, element: &[u8]) {
        assert_eq!(read(data_type, text).as_deref(), Ok(element), "{text} as {}", data_type.name());
    }

    #[test]
    fn booleans_are_parsed() {
        assert_reads(&DataType::Bool, "false", &[0]);
        assert_reads(&DataType::Bool, "true", &[1]);
    }

    #[test]
    fn integers_are_parsed_over_their_whole_range() {
        assert_reads(&DataType::Int8, "-128", &[0x80]);
        assert_reads(&DataType::UInt8, "255", &[0xff]);
        assert_reads(&DataType::Int16, "-2", &(-2_i16).to_le_bytes());
        assert_reads(&DataType::UInt16, "65535", &u16::MAX.to_le_bytes());
        assert_reads(&DataType::Int32, "258", &258_i32.to_le_bytes());
        assert_reads(&DataType::UInt32, "4294967295", &u32::MAX.to_le_bytes());
        assert_reads(&DataType::Int64, "-9223372036854775808", &i64::MIN.to_le_bytes());
        assert_reads(&DataType::Int64, "9223372036854775807", &i64::MAX.to_le_bytes());
        assert_reads(&DataType::UInt64, "18446744073709551615", &u64::MAX.to_le_bytes());
        assert_reads(&DataType::UInt64, "9223372036854775809", &9_223_372_036_854_775_809_u64.to_le_bytes());
    }

    #[test]
    fn small_integers_are_bytes_of_the_same_value() {
        assert_reads(&DataType::Int2, "-2", &[0xfe]);
        assert_reads(&DataType::Int4, "-8", &[0xf8]);
        assert_reads(&DataType::Int4, "7", &[7]);
        assert_reads(&DataType::UInt2, "3", &[3]);
        assert_reads(&DataType::UInt4, "15", &[15]);
    }

    #[test]
    fn bfloat16_numbers_are_parsed() {
        assert_reads(&DataType::BFloat16, "1.5", &0x3fc0_u16.to_le_bytes());
        assert_reads(&DataType::BFloat16, "-0.0", &0x8000_u16.to_le_bytes());
        assert_reads(&DataType::BFloat16, "3.3895314e38", &0x7f7f_u16.to_le_bytes());
        assert_reads(&DataType::BFloat16, "\"NaN\"", &0x7fc0_u16.to_le_bytes());
        assert_reads(&DataType::BFloat16, "\"-Infinity\"", &0xff80_u16.to_le_bytes());
        assert_reads(&DataType::BFloat16, "\"0x7fc1\"", &0x7fc1_u16.to_le_bytes());
    }

    #[test]
    fn a_decimal_number_is_parsed_as_the_nearest_float() {
        assert_reads(&DataType::Float16, "0.1", &[0x66, 0x2e]);
        assert_reads(&DataType::Float32, "0.1", &0.1_f32.to_le_bytes());
        assert_reads(&DataType::Float64, "0.1", &0.1_f64.to_le_bytes());
        assert_reads(&DataType::Float32, "-0.0", &(-0.0_f32).to_le_bytes());
        assert_reads(&DataType::Float64, "5e-324", &1_u64.to_le_bytes());
        assert_reads(&DataType::Float64, "1e-400", &0.0_f64.to_le_bytes());
        assert_reads(&DataType::Float64, "9007199254740993", &9_007_199_254_740_992.0_f64.to_le_bytes());
        // If rounded to f64 first, this would be a tie between two floats and round to 1.
        assert_reads(&DataType::Float32, "1.000000059604644775390626", &0x3f80_0001_u32.to_le_bytes());
    }

    #[test]
    fn named_floats_have_the_bits_of_the_specification() {
        assert_reads(&DataType::Float16, "\"NaN\"", &0x7e00_u16.to_le_bytes());
        assert_reads(&DataType::Float32, "\"NaN\"", &0x7fc0_0000_u32.to_le_bytes());
        assert_reads(&DataType::Float64, "\"NaN\"", &0x7ff8_0000_0000_0000_u64.to_le_bytes());
        assert_reads(&DataType::Float16, "\"-Infinity\"", &0xfc00_u16.to_le_bytes());
        assert_reads(&DataType::Float32, "\"Infinity\"", &f32::INFINITY.to_le_bytes());
        assert_reads(&DataType::Float64, "\"-Infinity\"", &f64::NEG_INFINITY.to_le_bytes());
        assert_reads(&DataType::Float64, "-Infinity", &f64::NEG_INFINITY.to_le_bytes());
        assert_reads(&DataType::Float32, "NaN", &0x7fc0_0000_u32.to_le_bytes());
    }

    #[test]
    fn hexadecimal_bits_keep_the_payload_of_a_nan() {
        assert_reads(&DataType::Float32, "\"0x7fc00001\"", &0x7fc0_0001_u32.to_le_bytes());
        assert_reads(&DataType::Float32, "\"0xFFa00000\"", &0xffa0_0000_u32.to_le_bytes());
        assert_reads(&DataType::Float16, "\"0x7e01\"", &0x7e01_u16.to_le_bytes());
        assert_reads(&DataType::Float64, "\"0x1\"", &1_u64.to_le_bytes());
    }

    #[test]
    fn complex_numbers_are_a_real_and_an_imaginary_part() {
        let expected = [1.5_f64.to_le_bytes(), (-2.5_f64).to_le_bytes()].concat();
        assert_reads(&DataType::Complex128, "[1.5, -2.5]", &expected);
        let expected = [0x7fc0_0001_u32.to_le_bytes(), f32::NEG_INFINITY.to_le_bytes()].concat();
        assert_reads(&DataType::Complex64, "[\"0x7fc00001\", \"-Infinity\"]", &expected);
    }

    #[test]
    fn raw_bits_are_a_list_of_bytes_or_base64() {
        assert_reads(&DataType::RawBits { bytes: 3 }, "[1, 0, 255]", &[1, 0, 255]);
        assert_reads(&DataType::RawBits { bytes: 3 }, "\"AQD/\"", &[1, 0, 255]);
    }

    #[test]
    fn dates_and_time_spans_are_integers_or_nat() {
        let step = TimeStep::new(TimeUnit::Second, 1).unwrap();
        for data_type in [DataType::DateTime64(step), DataType::TimeDelta64(step)] {
            assert_reads(&data_type, "-3", &(-3_i64).to_le_bytes());
            assert_reads(&data_type, "9223372036854775807", &i64::MAX.to_le_bytes());
            for text in ["\"NaT\"", "-9223372036854775808"] {
                assert_reads(&data_type, text, &i64::MIN.to_le_bytes());
            }
            for text in ["\"nat\"", "\"0\"", "0.0", "NaN", "9223372036854775808", "[0]", "\"1970\""] {
                assert!(matches!(read(&data_type, text), Err(MetadataError::Invalid { .. })), "{text}");
            }
        }
    }

    #[test]
    fn utf32_text_is_a_string_and_is_padded() {
        let data_type = DataType::FixedLengthUtf32 { code_points: 3 };
        let element = |characters: [char; 3]| characters.map(|it| u32::from(it).to_le_bytes()).concat();
        assert_reads(&data_type, "\"\"", &[0; 12]);
        assert_reads(&data_type, "\"é日\"", &element(['é', '日', '\0']));
        assert_reads(&data_type, "\"\u{1f600}bc\"", &element(['\u{1f600}', 'b', 'c']));
        // UTF-32 text is never base64.
        assert_reads(&data_type, "\"0\"", &element(['0', '\0', '\0']));
        for text in ["\"abcd\"", "0", "[97]", "true", "{}"] {
            assert!(matches!(read(&data_type, text), Err(MetadataError::Invalid { .. })), "{text}");
        }
    }

    #[test]
    fn byte_text_is_base64_and_is_padded() {
        let data_type = DataType::NullTerminatedBytes { bytes: 3 };
        assert_reads(&data_type, "\"\"", &[0; 3]);
        assert_reads(&data_type, "\"YWI=\"", b"ab\0");
        assert_reads(&data_type, "\"YWJj\"", b"abc");
        for text in ["\"YWJjZA==\"", "\"ab\"", "0", "[97]", "{}"] {
            assert!(matches!(read(&data_type, text), Err(MetadataError::Invalid { .. })), "{text}");
        }
    }

    #[test]
    fn a_missing_or_null_fill_value_reads_as_zero() {
        assert_eq!(FillValue::from_v3(&DataType::Int16, None), Ok(FillValue::from_bytes(&[0, 0])));
        assert_reads(&DataType::Complex64, "null", &[0; 8]);
    }

    #[test]
    fn values_that_the_data_type_does_not_permit_are_rejected() {
        for (data_type, texts) in [
            (DataType::Bool, &["0", "1", "\"true\"", "[true]"] as &[&str]),
            (DataType::Int8, &["128", "-129", "0.0", "1e0", "\"0\"", "true", "[0]", "\"0x00\"", "{}"]),
            (DataType::Int2, &["2", "-3", "255", "\"1\""]),
            (DataType::Int4, &["8", "-9", "1.0"]),
            (DataType::UInt2, &["4", "-1"]),
            (DataType::UInt4, &["16", "-1", "99999999999999999999999999999999999999999999"]),
            (DataType::BFloat16, &["3.4e38", "1e39", "\"0x10000\"", "\"nan\"", "[1.0]"]),
            (DataType::UInt32, &["-1", "4294967296", "99999999999999999999999999999999999999999999"]),
            (DataType::UInt64, &["18446744073709551616", "-1", "NaN"]),
            (DataType::Float16, &["65520", "\"0x10000\"", "1e9"]),
            (
                DataType::Float32,
                &["1e39", "\"0x100000000\"", "\"0x\"", "\"0x+1\"", "\"0xg\"", "\"nan\"", "\"1.5\"", "true"],
            ),
            (DataType::Float64, &["1e400", "\"+Infinity\"", "[1.0]", "\"0x10000000000000000\"", "\"\""]),
            (DataType::Complex64, &["1", "[1]", "[1,2,3]", "[1,\"x\"]", "\"NaN\"", "[null,1]"]),
            (
                DataType::RawBits { bytes: 2 },
                &["[1]", "[1,2,3]", "[1,256]", "[1,-1]", "[1,1.0]", "\"AQID\"", "\"AQ\"", "0"],
            ),
        ] {
            for text in texts {
                assert!(
                    matches!(read(&data_type, text), Err(MetadataError::Invalid { .. })),
                    "{text} as {data_type:?}"
                );
            }
        }
    }
}
