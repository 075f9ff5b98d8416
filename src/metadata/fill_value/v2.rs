//! Fill values of v2 documents (Zarr v2, "Fill value encoding"), in the spellings found on disk.
//!
//! Everything v3 permits, and besides: `null` or nothing for zero, `0.0` and `"0"` for integers, 0 and 1 for
//! booleans, `[x]` for `x`, numbers as strings, base64 for raw bytes. A number that the type cannot hold is an
//! error as ever.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::{FillValue, MetadataError, integer, invalid, v3};
use crate::metadata::DataType;

impl FillValue {
    /// The fill value that a v2 document gives; `None` is a document that gives none.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] if no reading of it is an element of the data type.
    pub fn from_v2(data_type: DataType, fill_value: Option<&Value>) -> Result<Self, MetadataError> {
        match fill_value {
            None | Some(Value::Null) => Ok(Self::zero(data_type)),
            Some(value) => element(data_type, value).map(|element| Self::from_bytes(&element)),
        }
    }
}

fn element(data_type: DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    let strict = v3::element(data_type, value);
    if strict.is_ok() {
        return strict;
    }
    // NetCDF-C writes a list of one; nothing nests deeper, so the inner value may not be a list of one again.
    match value.as_array().map(Vec::as_slice) {
        Some([only]) if !only.is_array() => lenient(data_type, only),
        _ => lenient(data_type, value),
    }
}

fn lenient(data_type: DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    match data_type {
        DataType::Bool => match (value, number(value).and_then(integral)) {
            (Value::Bool(value), _) => Ok(vec![u8::from(*value)]),
            (_, Some(0)) => Ok(vec![0]),
            (_, Some(1)) => Ok(vec![1]),
            _ => Err(invalid(data_type, "must be true, false, 0 or 1")),
        },
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => {
            let whole = number(value).and_then(integral);
            integer(data_type, whole.ok_or_else(|| invalid(data_type, "must be a whole number"))?)
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => float(data_type, value),
        DataType::Complex64 => complex(data_type, DataType::Float32, value),
        DataType::Complex128 => complex(data_type, DataType::Float64, value),
        DataType::RawBits { .. } => match value {
            Value::String(text) => base64(data_type, text),
            _ if number(value).and_then(integral) == Some(0) => Ok(vec![0; data_type.item_bytes()]),
            _ => Err(invalid(data_type, "must be base64")),
        },
    }
}

fn float(data_type: DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    if let Some(text) = number(value) {
        return v3::decimal_float(data_type, text);
    }
    match value {
        Value::String(text) => v3::named_float(data_type, text.strip_prefix('+').unwrap_or(text)),
        _ => None,
    }
    .ok_or_else(|| invalid(data_type, "must be a number or the name of one"))
}

/// A pair, or the pair's bytes in base64, or a real number.
fn complex(data_type: DataType, half: DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    if value.is_array() {
        return v3::pair(data_type, half, value, float);
    }
    match float(half, value) {
        Ok(real) => Ok([real, vec![0; half.item_bytes()]].concat()),
        Err(error) => value.as_str().map_or(Err(error), |text| base64(data_type, text)),
    }
}

fn base64(data_type: DataType, text: &str) -> Result<Vec<u8>, MetadataError> {
    BASE64_STANDARD
        .decode(text)
        .ok()
        .filter(|element| element.len() == data_type.item_bytes())
        .ok_or_else(|| invalid(data_type, "must be base64 of the bytes of one element"))
}

/// The decimal text of a JSON number, or of a string that holds one.
fn number(value: &Value) -> Option<&str> {
    match value {
        Value::Number(number) => Some(number.as_str()),
        Value::String(text) => {
            let numeric =
                |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
            // What is spelled so and parses is a number; "Infinity" and "nan" do not come this far.
            (text.bytes().all(numeric) && text.parse::<f64>().is_ok()).then_some(text.as_str())
        }
        _ => None,
    }
}

/// The integer that a decimal text is, if it is one.
///
/// A text with a fraction or an exponent was written from a float and means that float: `-9.2233720368547758e18`
/// is −2^63.
fn integral(text: &str) -> Option<i128> {
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    let float: f64 = text.parse().ok().filter(|float: &f64| float.fract() == 0.0)?;
    // Without a precision to round to, the display of a float that is whole is all its digits.
    format!("{float:.0}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::json::{MetadataLimits, parse_document};

    fn read(data_type: DataType, text: &str) -> Result<Vec<u8>, MetadataError> {
        let value = parse_document(text.as_bytes(), &MetadataLimits::default()).unwrap();
        FillValue::from_v2(data_type, Some(&value)).map(|fill_value| fill_value.as_bytes().to_vec())
    }

    fn assert_all_read(data_type: DataType, element: &[u8], texts: &[&str]) {
        for text in texts {
            assert_eq!(read(data_type, text).as_deref(), Ok(element), "{text} as {}", data_type.name());
        }
    }

    #[test]
    fn a_missing_or_null_fill_value_reads_as_zero() {
        assert_eq!(FillValue::from_v2(DataType::Float64, None), Ok(FillValue::zero(DataType::Float64)));
        assert_all_read(DataType::Bool, &[0], &["null"]);
        assert_all_read(DataType::RawBits { bytes: 2 }, &[0, 0], &["null", "0", "\"AAA=\"", "[0]"]);
    }

    #[test]
    fn an_integer_may_be_spelled_as_float_string_or_list_of_one() {
        assert_all_read(
            DataType::UInt8,
            &[3],
            &["3", "3.0", "\"3\"", "\"3.0\"", "[3]", "[3.0]", "[\"3\"]", "3e0", "30e-1"],
        );
        assert_all_read(DataType::Int32, &(-1_i32).to_le_bytes(), &["-1", "-1.0", "\"-1\"", "[-1]"]);
        assert_all_read(
            DataType::Int64,
            &i64::MIN.to_le_bytes(),
            &["-9.2233720368547758e18", "-9223372036854775808"],
        );
        assert_all_read(
            DataType::UInt64,
            &u64::MAX.to_le_bytes(),
            &["18446744073709551615", "\"18446744073709551615\""],
        );
    }

    #[test]
    fn a_bool_may_be_0_or_1() {
        assert_all_read(DataType::Bool, &[0], &["false", "0", "0.0", "\"0\"", "[false]", "[0]"]);
        assert_all_read(DataType::Bool, &[1], &["true", "1", "1.0", "[1]"]);
    }

    #[test]
    fn a_float_may_be_a_bare_token_or_a_string() {
        assert_all_read(
            DataType::Float32,
            &f32::INFINITY.to_le_bytes(),
            &["Infinity", "\"Infinity\"", "\"+Infinity\""],
        );
        assert_all_read(DataType::Float64, &f64::NEG_INFINITY.to_le_bytes(), &["-Infinity", "\"-Infinity\""]);
        assert_all_read(
            DataType::Float64,
            &0x7ff8_0000_0000_0000_u64.to_le_bytes(),
            &["NaN", "\"NaN\"", "[NaN]"],
        );
        assert_all_read(
            DataType::Float64,
            &(-1.5_f64).to_le_bytes(),
            &["-1.5", "\"-1.5\"", "[-1.5]", "-15e-1"],
        );
        assert_all_read(DataType::Float16, &[0x66, 0x2e], &["0.1", "\"0.1\"", "0.0999755859375"]);
    }

    #[test]
    fn a_complex_number_may_be_a_pair_base64_or_real() {
        let element = [1.0_f32.to_le_bytes(), 0.0_f32.to_le_bytes()].concat();
        let texts = ["[1, 0]", "[1.0, 0.0]", "[\"1\", \"0\"]", "1", "[1]", "\"AACAPwAAAAA=\""];
        assert_all_read(DataType::Complex64, &element, &texts);
    }

    #[test]
    fn raw_bytes_are_base64() {
        assert_all_read(DataType::RawBits { bytes: 3 }, &[1, 2, 3], &["\"AQID\"", "[\"AQID\"]", "[1,2,3]"]);
    }

    #[test]
    fn what_no_reading_makes_an_element_is_an_error() {
        for (data_type, texts) in [
            (DataType::Bool, &["2", "-1", "\"true\"", "0.5", "[]", "[true,false]", "{}"] as &[&str]),
            (
                DataType::UInt32,
                &[
                    "-1",
                    "-1.0",
                    "4294967296",
                    "4294967296.0",
                    "0.5",
                    "\"\"",
                    "\"x\"",
                    "\"0x1\"",
                    "[[1]]",
                    "true",
                ],
            ),
            (
                DataType::Int64,
                &["9.2233720368547758e18", "1e400", "NaN", "Infinity", "1e39", "[]", "\"1 \"", "\"--1\""],
            ),
            (DataType::UInt64, &["1.8446744073709552e19"]),
            (
                DataType::Float32,
                &["1e39", "\"1e39\"", "\"nan\"", "\"inf\"", "\"\"", "\"e\"", "true", "[1,2]", "{}"],
            ),
            (DataType::Complex64, &["[1,2,3]", "[]", "\"AACAPw==\"", "true", "[[1],[2]]"]),
            (
                DataType::RawBits { bytes: 3 },
                &["\"AQI=\"", "\"AQID=\"", "\"AQ D\"", "1", "\"\"", "[1]", "true"],
            ),
        ] {
            for text in texts {
                assert!(
                    matches!(read(data_type, text), Err(MetadataError::Invalid { .. })),
                    "{text} as {data_type:?}"
                );
            }
        }
    }
}
