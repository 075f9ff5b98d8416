//! [`Missing`]: the values that mark missing elements (CF conventions 1.12, section 2.5.1).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use half::{bf16, f16};
use serde_json::Value;

use super::method::{Kind, ReduceError};
use super::read_as::read_as;
use crate::metadata::{ArrayMetadata, Attributes, DataType, MAX_SHORT_BYTES, ZarrFormat};

/// The most values that elements are compared with.
const MAX_VALUES: usize = 16;
/// The attributes that list missing values.
const ATTRIBUTES: [&str; 2] = ["_FillValue", "missing_value"];

/// The values that mark missing elements, by the rule of xarray: those of the attributes `_FillValue` and `missing_value`, or in place
/// of `_FillValue` the fill value of Zarr, where [`is_fill_missing`]. Statistics, reductions, pictures and decoded elements have the
/// same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Missing {
    /// Elements in canonical form, without repetition. The first is what a window of missing integers gives.
    values: Vec<Vec<u8>>,
}

impl Missing {
    /// The missing values of an array.
    ///
    /// # Errors
    /// [`ReduceError::MissingValues`] if there are more than 16.
    pub fn of_array(metadata: &ArrayMetadata) -> Result<Self, ReduceError> {
        let (attributes, data_type) = (&metadata.attributes, &metadata.data_type);
        if !is_fill_missing(metadata) {
            return Self::from_attributes(attributes, data_type);
        }
        let fill = metadata.fill_value.as_bytes().to_vec();
        let others = Self::listed(attributes, &["missing_value"], data_type)?;
        let others = others.values.into_iter().filter(|other| *other != fill);
        Ok(Self { values: std::iter::once(fill.clone()).chain(others).collect() })
    }

    /// The missing values that attributes of an array of this type mark. A value that no element of the type can have is left out; where elements
    /// are read as another type, a value of either type stands for the element of the same bytes.
    ///
    /// # Errors
    /// [`ReduceError::MissingValues`] if there are more than 16.
    pub fn from_attributes(attributes: &Attributes, data_type: &DataType) -> Result<Self, ReduceError> {
        Self::listed(attributes, &ATTRIBUTES, data_type)
    }

    /// The missing values that the attributes of these names list.
    fn listed(attributes: &Attributes, names: &[&str], data_type: &DataType) -> Result<Self, ReduceError> {
        let mut values: Vec<Vec<u8>> = Vec::new();
        if matches!(Kind::of(data_type), Kind::Integer | Kind::Float) {
            let read_as = read_as(attributes, data_type);
            let element = |value: &Value| {
                missing_element(value, data_type).or_else(|| missing_element(value, &read_as))
            };
            for name in names {
                // A longer one lists more values.
                if attributes.member_text(name).is_some_and(|text| text.len() > MAX_SHORT_BYTES) {
                    return Err(ReduceError::MissingValues { limit: MAX_VALUES });
                }
                let listed = match attributes.get_short(name) {
                    None => continue,
                    Some(Value::Array(listed)) => listed,
                    Some(one) => vec![one],
                };
                for element in listed.iter().filter_map(element) {
                    if !values.contains(&element) {
                        values.push(element);
                    }
                }
            }
        }
        if values.len() > MAX_VALUES {
            return Err(ReduceError::MissingValues { limit: MAX_VALUES });
        }
        Ok(Self { values })
    }

    /// The values as elements in canonical form.
    pub(super) fn elements(&self) -> impl Iterator<Item = &[u8]> {
        self.values.iter().map(Vec::as_slice)
    }
}

/// Whether the fill value of Zarr marks missing elements: in v2, where xarray writes `_FillValue` there. It does so of what xarray can
/// read, an array whose dimensions have names, and of packed elements. In another array, such as an image, it is a number as any other,
/// and in v3 always.
#[must_use]
pub fn is_fill_missing(metadata: &ArrayMetadata) -> bool {
    metadata.zarr_format == ZarrFormat::V2
        && metadata.has_fill_value
        && matches!(Kind::of(&metadata.data_type), Kind::Integer | Kind::Float)
        && (metadata.dimension_names.is_some() || packing(&metadata.attributes).is_some())
}

/// The element that a value of the attribute `_FillValue` or `missing_value` stands for, in canonical form; `None` if the type
/// has none. Only integers and floats have one.
#[must_use]
pub fn missing_element(value: &Value, data_type: &DataType) -> Option<Vec<u8>> {
    match Kind::of(data_type) {
        Kind::Integer => integer(value, data_type),
        Kind::Float => {
            let number = float(value)?;
            Some(match data_type {
                DataType::Float16 => f16::from_f32(single(number)).to_le_bytes().to_vec(),
                DataType::BFloat16 => bf16::from_f32(single(number)).to_le_bytes().to_vec(),
                DataType::Float32 => single(number).to_le_bytes().to_vec(),
                _ => number.to_le_bytes().to_vec(),
            })
        }
        Kind::Bool | Kind::Complex | Kind::Other => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a missing value is compared after rounding to the type")]
fn single(number: f64) -> f32 {
    number as f32
}

/// A float: a number, the name of a special one, or base64 of a little-endian float64, as xarray writes it to Zarr v3.
fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_str().parse().ok(),
        Value::String(text) => text.trim().parse().ok().or_else(|| {
            let bytes: [u8; 8] = BASE64_STANDARD.decode(text).ok()?.try_into().ok()?;
            Some(f64::from_le_bytes(bytes))
        }),
        _ => None,
    }
}

/// The number of an attribute that has one value; a list of one counts too.
fn attribute_number(value: &Value) -> Option<f64> {
    match value {
        Value::Array(list) => match &list[..] {
            [one] => float(one),
            _ => None,
        },
        one => float(one),
    }
}

/// The attributes `scale_factor` and `add_offset`, if one of them is a finite number (CF conventions 1.12, section 8.1).
pub(super) fn packing(attributes: &Attributes) -> Option<(f64, f64)> {
    let number = |name: &str| {
        let number = attribute_number(&attributes.get_short(name)?);
        number.filter(|number| number.is_finite())
    };
    match (number("scale_factor"), number("add_offset")) {
        (None, None) => None,
        (scale, offset) => Some((scale.unwrap_or(1.0), offset.unwrap_or(0.0))),
    }
}

/// An integer, which may be written as a float without a fraction.
fn integer(value: &Value, data_type: &DataType) -> Option<Vec<u8>> {
    let text = match value {
        Value::Number(number) => number.as_str(),
        Value::String(text) => text.as_str(),
        _ => return None,
    };
    let number: i128 = text.parse().ok().or_else(|| whole(text.parse().ok()?))?;
    match data_type {
        DataType::Int2 | DataType::Int4 | DataType::Int8 => {
            i8::try_from(number).ok().map(|number| number.to_le_bytes().to_vec())
        }
        DataType::UInt2 | DataType::UInt4 | DataType::UInt8 => {
            u8::try_from(number).ok().map(|number| number.to_le_bytes().to_vec())
        }
        DataType::Int16 => i16::try_from(number).ok().map(|number| number.to_le_bytes().to_vec()),
        DataType::UInt16 => u16::try_from(number).ok().map(|number| number.to_le_bytes().to_vec()),
        DataType::Int32 => i32::try_from(number).ok().map(|number| number.to_le_bytes().to_vec()),
        DataType::UInt32 => u32::try_from(number).ok().map(|number| number.to_le_bytes().to_vec()),
        DataType::Int64 => i64::try_from(number).ok().map(|number| number.to_le_bytes().to_vec()),
        DataType::UInt64 => u64::try_from(number).ok().map(|number| number.to_le_bytes().to_vec()),
        _ => None,
    }
}

/// A float without a fraction as an integer.
#[expect(clippy::cast_possible_truncation, reason = "whole numbers below 2^64 are cast")]
fn whole(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() < 2_f64.powi(65)).then_some(number as i128)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn missing(attributes: Value, data_type: &DataType) -> Result<Vec<Vec<u8>>, ReduceError> {
        let Value::Object(members) = attributes else { panic!("an object") };
        Ok(Missing::from_attributes(&Attributes::from(members), data_type)?.values)
    }

    #[test]
    fn missing_values_are_read_as_cf_and_xarray_write_them() {
        let int16 = |number: i16| number.to_le_bytes().to_vec();
        let float32 = |number: f32| number.to_le_bytes().to_vec();
        for (attributes, data_type, expected) in [
            (json!({}), DataType::Int16, vec![]),
            (json!({"_FillValue": -999}), DataType::Int16, vec![int16(-999)]),
            (
                json!({"_FillValue": -999.0, "missing_value": [1, -999]}),
                DataType::Int16,
                vec![int16(-999), int16(1)],
            ),
            (json!({"_FillValue": 1e20, "missing_value": 0.5}), DataType::Int16, vec![]),
            (json!({"_FillValue": 1e20}), DataType::Float32, vec![float32(1e20)]),
            (json!({"_FillValue": "AAAAAAAA8L8="}), DataType::Float32, vec![float32(-1.0)]),
            (json!({"_FillValue": -1}), DataType::Bool, vec![]),
            (json!({"missing_value": {"a": 1}}), DataType::Float32, vec![]),
            (
                json!({"_FillValue": 9_223_372_036_854_775_807_u64}),
                DataType::Int64,
                vec![i64::MAX.to_le_bytes().to_vec()],
            ),
        ] {
            assert_eq!(missing(attributes.clone(), &data_type), Ok(expected), "{attributes}");
        }
    }

    #[test]
    fn a_long_attribute_is_as_one_of_another_form() {
        let long = || json!(vec![1; 5000]);
        let of = |attributes: Value| Attributes::from(attributes.as_object().unwrap().clone());
        assert_eq!(packing(&of(json!({"scale_factor": long()}))), None);
        assert_eq!(packing(&of(json!({"scale_factor": long(), "add_offset": 2}))), Some((1.0, 2.0)));
        assert_eq!(packing(&of(json!({"scale_factor": "x", "add_offset": 2}))), Some((1.0, 2.0)));
        assert_eq!(read_as(&of(json!({"_Unsigned": long()})), &DataType::Int8), DataType::Int8);
        assert_eq!(read_as(&of(json!({"_Unsigned": true})), &DataType::Int8), DataType::UInt8);
    }

    #[test]
    fn more_missing_values_than_are_compared_are_refused() {
        let many: Vec<i32> = (0..17).collect();
        let error = ReduceError::MissingValues { limit: 16 };
        assert_eq!(missing(json!({"missing_value": many}), &DataType::Int32), Err(error));
        let (one, other): (Vec<i32>, Vec<i32>) = ((0..10).collect(), (10..20).collect());
        let attributes = json!({"_FillValue": one, "missing_value": other});
        assert!(missing(attributes, &DataType::Int32).is_err());
    }
}
