//! Lenient parsing of fill values (Zarr v2, "Fill value encoding"; Zarr core 3.1, "Permitted fill values").
//!
//! Accepts all that v3 permits. For either version it also accepts `null` or nothing for zero, and for numbers: `0.0` and
//! `"0"` for integers, 0 and 1 for booleans and vice versa, `[x]` for `x`, numbers as strings, `nan` and `inf`, and numbers
//! beyond the largest float for infinity. For v2 it also accepts 0 for empty text, and byte text that is not base64; `null` of
//! times is "not a time" there. Integers out of range and text that is too long remain errors.

use serde_json::Value;

use super::element::{base64_bytes, check_length, integer, invalid, padded};
use super::{FillValue, v3};
use crate::metadata::{DataType, MetadataError};

impl FillValue {
    /// Parses the fill value of a v3 document, and accepts unambiguous spellings of numbers that the specification does not
    /// permit; `None` if the document has no fill value.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] if the value is not an element of the data type in any accepted spelling.
    pub fn from_v3_leniently(
        data_type: &DataType,
        fill_value: Option<&Value>,
    ) -> Result<Self, MetadataError> {
        let strict = Self::from_v3(data_type, fill_value);
        if strict.is_ok() || !is_number(data_type) {
            return strict;
        }
        Self::from_v2(data_type, fill_value)
    }

    /// Parses the fill value of a v2 document; `None` if the document has no fill value.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] if the value is not an element of the data type in any accepted spelling.
    pub fn from_v2(data_type: &DataType, fill_value: Option<&Value>) -> Result<Self, MetadataError> {
        match fill_value {
            None | Some(Value::Null) => Ok(Self::of_null(data_type)),
            Some(value) => element(data_type, value).map(|element| Self::from_bytes(&element)),
        }
    }
}

/// Whether elements are numbers, booleans or times. For other types, another spelling could mean another element.
fn is_number(data_type: &DataType) -> bool {
    !data_type.is_variable()
        && !matches!(
            data_type,
            DataType::RawBits { .. }
                | DataType::FixedLengthUtf32 { .. }
                | DataType::NullTerminatedBytes { .. }
                | DataType::Struct(_)
                | DataType::Subarray(_)
        )
}

fn element(data_type: &DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    let strict = v3::element(data_type, value);
    if strict.is_ok() {
        return strict;
    }
    // NetCDF-C writes an array of one value. No writer nests deeper, so the inner value must not be an array.
    match value.as_array().map(Vec::as_slice) {
        Some([only]) if !only.is_array() => {
            v3::element(data_type, only).or_else(|_| lenient(data_type, only))
        }
        _ => lenient(data_type, value),
    }
}

fn lenient(data_type: &DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    match data_type {
        DataType::Bool => match (value, number(value).and_then(parse_integral)) {
            (Value::Bool(value), _) => Ok(vec![u8::from(*value)]),
            (_, Some(0)) => Ok(vec![0]),
            (_, Some(1)) => Ok(vec![1]),
            _ => Err(invalid(data_type, "must be true, false, 0 or 1")),
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
        | DataType::UInt64
        | DataType::DateTime64(_)
        | DataType::TimeDelta64(_) => {
            let whole = number(value).and_then(parse_integral);
            integer(data_type, whole.ok_or_else(|| invalid(data_type, "must be a whole number"))?)
        }
        DataType::Float16
        | DataType::BFloat16
        | DataType::Float32
        | DataType::Float64
        | DataType::SmallFloat(_) => float(data_type, value),
        DataType::ComplexFloat16
        | DataType::ComplexBFloat16
        | DataType::ComplexSmallFloat(_)
        | DataType::Complex64
        | DataType::Complex128 => complex(data_type, value),
        DataType::VariableBytes => match value {
            Value::String(text) => Ok(text.as_bytes().to_vec()),
            _ => empty_element(data_type, value),
        },
        // UTF-32 text is never base64: "0" is one character.
        DataType::RawBits { .. }
        | DataType::FixedLengthUtf32 { .. }
        | DataType::Struct(_)
        | DataType::Subarray(_)
        | DataType::String
        | DataType::VariableArray(_)
        | DataType::Json => match value {
            Value::String(_) => v3::element(data_type, value),
            _ => empty_element(data_type, value),
        },
        DataType::NullTerminatedBytes { .. } => match value {
            Value::String(text) => base64_bytes(data_type, text)
                .or_else(|_| Ok(text.as_bytes().to_vec()))
                .and_then(|text| padded(data_type, text)),
            _ => empty_element(data_type, value),
        },
    }
}

/// The zero element, from the number 0, which writers use for every type.
fn empty_element(data_type: &DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    match value {
        Value::Number(number) if parse_integral(number.as_str()) == Some(0) => {
            Ok(FillValue::zero(data_type).as_bytes().to_vec())
        }
        _ => Err(invalid(data_type, "must be text, base64 or 0")),
    }
}

fn float(data_type: &DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    if let Some(text) = number(value) {
        // A number that is not a float of this type is beyond its largest.
        let infinity =
            || v3::named_float(data_type, if text.starts_with('-') { "-Infinity" } else { "Infinity" });
        return v3::decimal_float(data_type, text).or_else(|error| infinity().ok_or(error));
    }
    match value {
        Value::String(text) => v3::named_float(data_type, text).or_else(|| named_as_in_c(data_type, text)),
        _ => None,
    }
    .ok_or_else(|| invalid(data_type, "must be a number or the name of one"))
}

/// A NaN or an infinity, by its names in Python and C.
fn named_as_in_c(data_type: &DataType, text: &str) -> Option<Vec<u8>> {
    let (sign, name) = match text.strip_prefix('-') {
        Some(name) => ("-", name),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let name = match name.to_ascii_lowercase().as_str() {
        "nan" if sign.is_empty() => "NaN",
        "inf" | "infinity" => "Infinity",
        _ => return None,
    };
    v3::named_float(data_type, &format!("{sign}{name}"))
}

/// A complex number from a pair, from base64 of its bytes, or from a real number.
fn complex(data_type: &DataType, value: &Value) -> Result<Vec<u8>, MetadataError> {
    if value.is_array() {
        return v3::pair(data_type, value, float);
    }
    let half = data_type.complex_half().ok_or_else(|| invalid(data_type, "is not of a complex type"))?;
    match float(&half, value) {
        Ok(real) => Ok([real, vec![0; half.element_bytes()]].concat()),
        Err(error) => {
            value.as_str().map_or(Err(error), |text| check_length(data_type, base64_bytes(data_type, text)?))
        }
    }
}

/// The decimal text of a JSON number, of a string with a number, or of a boolean.
fn number(value: &Value) -> Option<&str> {
    match value {
        Value::Bool(truth) => Some(if *truth { "1" } else { "0" }),
        Value::Number(number) => Some(number.as_str()),
        Value::String(text) => {
            let numeric =
                |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
            // The characters exclude "Infinity" and "nan", which would parse too.
            (text.bytes().all(numeric) && text.parse::<f64>().is_ok()).then_some(text.as_str())
        }
        _ => None,
    }
}

/// The integer equal to a decimal text, if there is one.
///
/// A text with a fraction or an exponent was written from a float and means that float: `-9.2233720368547758e18`
/// is −2^63.
fn parse_integral(text: &str) -> Option<i128> {
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    let float: f64 = text.parse().ok().filter(|float: &f64| float.fract() == 0.0)?;
    // Displays all digits of an integral float.
    format!("{float:.0}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{MetadataLimits, parse_document};
    use crate::metadata::{TimeStep, TimeUnit};

    fn read(data_type: &DataType, text: &str) -> Result<Vec<u8>, MetadataError> {
        let value = parse_document(text.as_bytes(), &MetadataLimits::default()).unwrap();
        FillValue::from_v2(data_type, Some(&value)).map(|fill_value| fill_value.as_bytes().to_vec())
    }

    fn assert_all_read(data_type: &DataType, element: &[u8], texts: &[&str]) {
        for text in texts {
            assert_eq!(read(data_type, text).as_deref(), Ok(element), "{text} as {}", data_type.name());
        }
    }

    #[test]
    fn a_missing_or_null_fill_value_reads_as_zero() {
        assert_eq!(FillValue::from_v2(&DataType::Float64, None), Ok(FillValue::zero(&DataType::Float64)));
        assert_all_read(&DataType::Bool, &[0], &["null"]);
        assert_all_read(&DataType::RawBits { bytes: 2 }, &[0, 0], &["null", "0", "\"AAA=\"", "[0]"]);
    }

    #[test]
    fn integers_may_be_floats_strings_or_arrays_of_one() {
        assert_all_read(
            &DataType::UInt8,
            &[3],
            &["3", "3.0", "\"3\"", "\"3.0\"", "[3]", "[3.0]", "[\"3\"]", "3e0", "30e-1"],
        );
        assert_all_read(&DataType::Int32, &(-1_i32).to_le_bytes(), &["-1", "-1.0", "\"-1\"", "[-1]"]);
        assert_all_read(
            &DataType::Int64,
            &i64::MIN.to_le_bytes(),
            &["-9.2233720368547758e18", "-9223372036854775808"],
        );
        assert_all_read(
            &DataType::UInt64,
            &u64::MAX.to_le_bytes(),
            &["18446744073709551615", "\"18446744073709551615\""],
        );
    }

    #[test]
    fn booleans_may_be_0_and_1_and_numbers_may_be_booleans() {
        assert_all_read(&DataType::Bool, &[0], &["false", "0", "0.0", "\"0\"", "[false]", "[0]"]);
        assert_all_read(&DataType::Bool, &[1], &["true", "1", "1.0", "[1]"]);
        assert_all_read(&DataType::UInt8, &[1], &["true", "[true]"]);
        assert_all_read(&DataType::Float32, &1_f32.to_le_bytes(), &["true"]);
    }

    #[test]
    fn floats_may_be_bare_tokens_or_strings() {
        assert_all_read(
            &DataType::Float32,
            &f32::INFINITY.to_le_bytes(),
            &["Infinity", "\"Infinity\"", "\"+Infinity\"", "\"inf\"", "1e39", "\"1e39\"", "1e400"],
        );
        assert_all_read(
            &DataType::Float64,
            &f64::NEG_INFINITY.to_le_bytes(),
            &["-Infinity", "\"-Infinity\"", "\"-inf\"", "-1e400"],
        );
        assert_all_read(
            &DataType::Float64,
            &0x7ff8_0000_0000_0000_u64.to_le_bytes(),
            &["NaN", "\"NaN\"", "[NaN]", "\"nan\"", "\"NAN\""],
        );
        assert_all_read(
            &DataType::Float64,
            &(-1.5_f64).to_le_bytes(),
            &["-1.5", "\"-1.5\"", "[-1.5]", "-15e-1"],
        );
        assert_all_read(&DataType::Float16, &[0x66, 0x2e], &["0.1", "\"0.1\"", "0.0999755859375"]);
    }

    #[test]
    fn complex_numbers_may_be_pairs_base64_or_real_numbers() {
        let element = [1.0_f32.to_le_bytes(), 0.0_f32.to_le_bytes()].concat();
        let texts = ["[1, 0]", "[1.0, 0.0]", "[\"1\", \"0\"]", "1", "[1]", "\"AACAPwAAAAA=\""];
        assert_all_read(&DataType::Complex64, &element, &texts);
    }

    #[test]
    fn raw_bytes_may_be_base64_or_lists_of_bytes() {
        assert_all_read(&DataType::RawBits { bytes: 3 }, &[1, 2, 3], &["\"AQID\"", "[\"AQID\"]", "[1,2,3]"]);
    }

    #[test]
    fn dates_may_be_integers_or_nat() {
        let data_type = DataType::DateTime64(TimeStep::new(TimeUnit::Nanosecond, 1).unwrap());
        // zarr-python reads `null` so in v2 alone.
        for nothing in [None, Some(&Value::Null)] {
            let read = FillValue::from_v2(&data_type, nothing);
            assert_eq!(read, Ok(FillValue::from_bytes(&i64::MIN.to_le_bytes())), "{nothing:?}");
        }
        let not_a_time = ["-9223372036854775808", "-9.2233720368547758e18", "\"NaT\"", "[\"NaT\"]"];
        assert_all_read(&data_type, &i64::MIN.to_le_bytes(), &not_a_time);
        assert_all_read(&data_type, &7_i64.to_le_bytes(), &["7", "7.0", "\"7\"", "[7]"]);
        assert_all_read(&data_type, &[0; 8], &["0"]);
    }

    #[test]
    fn byte_text_is_base64_or_else_itself() {
        let data_type = DataType::NullTerminatedBytes { bytes: 3 };
        assert_all_read(&data_type, &[0; 3], &["null", "0", "0.0", "\"\"", "\"AAAA\"", "[0]"]);
        assert_all_read(&data_type, b"ab\0", &["\"YWI=\"", "\"YWIA\"", "\"ab\"", "[\"ab\"]"]);
        assert_all_read(&data_type, b"0\0\0", &["\"0\"", "\"MA==\""]);
        assert_all_read(&data_type, "é\0".as_bytes(), &["\"é\""]);
    }

    #[test]
    fn utf32_text_is_never_base64() {
        let data_type = DataType::FixedLengthUtf32 { code_points: 4 };
        assert_all_read(&data_type, &[0; 16], &["null", "0", "0.0", "\"\"", "[0]"]);
        let text = ['Y', 'W', 'I', '='].map(|it| u32::from(it).to_le_bytes()).concat();
        assert_all_read(&data_type, &text, &["\"YWI=\"", "[\"YWI=\"]"]);
        assert_eq!(read(&data_type, "\"0\"").unwrap()[..4], u32::from('0').to_le_bytes());
    }

    #[test]
    fn v3_numbers_are_read_leniently_and_v3_text_strictly() {
        let read = |data_type: &DataType, text: &str| {
            let value = parse_document(text.as_bytes(), &MetadataLimits::default()).unwrap();
            let fill_value = FillValue::from_v3_leniently(data_type, Some(&value));
            fill_value.map(|fill_value| fill_value.as_bytes().to_vec()).ok()
        };
        assert_eq!(read(&DataType::Bool, "1"), Some(vec![1]));
        assert_eq!(read(&DataType::Int16, "[3.0]"), Some(vec![3, 0]));
        assert_eq!(read(&DataType::Int16, "0.5"), None);
        assert_eq!(read(&DataType::Float32, "\"nan\""), Some(0x7fc0_0000_u32.to_le_bytes().to_vec()));
        for text in ["0", "\"ab\"", "[97]"] {
            assert_eq!(read(&DataType::NullTerminatedBytes { bytes: 3 }, text), None, "{text}");
        }
        assert_eq!(read(&DataType::FixedLengthUtf32 { code_points: 3 }, "0"), None);
        assert_eq!(read(&DataType::RawBits { bytes: 3 }, "0"), None);
        assert_eq!(FillValue::from_v3_leniently(&DataType::Int8, None), Ok(FillValue::from_bytes(&[0])));
    }

    #[test]
    fn values_that_are_not_elements_are_rejected() {
        for (data_type, texts) in [
            (DataType::Bool, &["2", "-1", "\"true\"", "0.5", "[]", "[true,false]", "{}"] as &[&str]),
            (
                DataType::UInt32,
                &["-1", "-1.0", "4294967296", "4294967296.0", "0.5", "\"\"", "\"x\"", "\"0x1\"", "[[1]]"],
            ),
            (
                DataType::Int64,
                &["9.2233720368547758e18", "1e400", "NaN", "Infinity", "1e39", "[]", "\"1 \"", "\"--1\""],
            ),
            (DataType::UInt64, &["1.8446744073709552e19"]),
            (DataType::Float32, &["\"\"", "\"e\"", "\"-nan\"", "\"infinite\"", "\"++inf\"", "[1,2]", "{}"]),
            (DataType::Complex64, &["[1,2,3]", "[]", "\"AACAPw==\"", "[[1],[2]]"]),
            (
                DataType::RawBits { bytes: 3 },
                &["\"AQI=\"", "\"AQID=\"", "\"AQ D\"", "1", "\"\"", "[1]", "true"],
            ),
            (DataType::NullTerminatedBytes { bytes: 3 }, &["\"YWJjZA==\"", "\"a b c\"", "1", "[1,2]", "{}"]),
            (DataType::FixedLengthUtf32 { code_points: 3 }, &["\"abcd\"", "1", "true", "[[\"a\"]]"]),
            (
                DataType::TimeDelta64(TimeStep::new(TimeUnit::Day, 1).unwrap()),
                &["0.5", "NaN", "\"nat\"", "9223372036854775808", "\"1970-01-01\""],
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
