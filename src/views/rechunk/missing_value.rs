//! [`MissingValue`]: the value that xarray takes for missing data, in documents of both format versions.
//!
//! xarray takes it from `fill_value` of v2, and from the attribute `_FillValue` of v3, where a float is base64 of a
//! little-endian float64. A document in the format that is not stored says in its own way what the stored one says. One
//! case cannot be said: in v2, a fill value of v3 that is neither zero nor missing data.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::codec::Cast;
use crate::metadata::{ArrayMetadata, Attributes, DataType, FillValue, ZarrFormat};
use crate::reduce::missing_element;

const FILL_VALUE: &str = "_FillValue";
/// xarray takes the value of this attribute for missing data as well, whatever the format.
const MISSING_VALUE: &str = "missing_value";

/// The value of missing data of an array, and how documents of both formats say it.
#[derive(Debug)]
pub(super) struct MissingValue {
    /// The attribute of v3; `None` if that of the stored array fits.
    v3_attribute: Option<Value>,
    v2_fill_value: Value,
    /// How the stored attribute changes in v2.
    v2_attribute: AttributeChange,
}

/// What becomes of an attribute.
#[derive(Debug)]
enum AttributeChange {
    Kept,
    Removed,
    /// By an attribute of this name.
    Replaced(&'static str, Value),
}

impl MissingValue {
    /// The value of missing data of a stored array, whose elements a cast presents in another type. The fill value is that of
    /// this type.
    pub(super) fn new(
        array: &ArrayMetadata,
        cast: Option<&Cast>,
        data_type: &DataType,
        fill_value: &FillValue,
    ) -> Self {
        let is_v3 = array.zarr_format == ZarrFormat::V3;
        let stored = if !is_v3 && array.has_fill_value {
            Some(array.fill_value.clone())
        } else {
            let attribute = array.attributes.get_short(FILL_VALUE);
            let element = attribute.and_then(|value| missing_element(&value, &array.data_type));
            element.map(|element| FillValue::from_bytes(&element))
        };
        // No element equals a value that the type cannot hold.
        let missing = stored.and_then(|stored| match cast {
            None => Some(stored),
            Some(cast) => cast.cast(stored.as_bytes()).ok().map(|cast| FillValue::from_bytes(&cast)),
        });
        let fits = is_v3 && cast.is_none();
        let v3_attribute = missing.as_ref().filter(|_| !fits);
        let is_filled = missing.as_ref() == Some(fill_value);
        let is_null = if is_v3 {
            !is_filled && *fill_value == FillValue::of_null(data_type)
        } else {
            !array.has_fill_value
        };
        let v2_attribute = match missing.as_ref().filter(|_| is_v3).map(|missing| missing.to_v2(data_type)) {
            None => AttributeChange::Kept,
            // NaN and infinities have no JSON that clients read as numbers; xarray takes NaN for missing anyway.
            Some(text) if is_filled || text.is_string() => AttributeChange::Removed,
            Some(number) if is_null => AttributeChange::Replaced(FILL_VALUE, number),
            // xarray ignores the attribute beside a fill value.
            Some(_) if array.attributes.contains_key(MISSING_VALUE) => AttributeChange::Removed,
            Some(number) => AttributeChange::Replaced(MISSING_VALUE, number),
        };
        Self {
            v3_attribute: v3_attribute.and_then(|missing| v3_attribute_value(missing, data_type)),
            v2_fill_value: if is_null { Value::Null } else { fill_value.to_v2(data_type) },
            v2_attribute,
        }
    }

    /// The member `fill_value` of `.zarray`.
    pub(super) fn v2_fill_value(&self) -> &Value {
        &self.v2_fill_value
    }

    /// The attributes of the stored array, as v2 has them.
    pub(super) fn to_v2(&self, attributes: &Attributes) -> Attributes {
        match &self.v2_attribute {
            AttributeChange::Kept => attributes.clone(),
            AttributeChange::Removed => attributes.without(&[FILL_VALUE]),
            AttributeChange::Replaced(name, value) => attributes.without(&[FILL_VALUE]).with(name, value),
        }
    }

    /// The attributes of the stored array, as v3 has them.
    pub(super) fn to_v3(&self, attributes: &Attributes) -> Attributes {
        match &self.v3_attribute {
            None => attributes.clone(),
            Some(value) => attributes.without(&[FILL_VALUE]).with(FILL_VALUE, value),
        }
    }
}

/// The attribute `_FillValue` as xarray writes it to v3; `None` for types of which xarray reads none.
fn v3_attribute_value(element: &FillValue, data_type: &DataType) -> Option<Value> {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let cast = match data_type {
                DataType::Float64 => None,
                _ => Some(Cast::new(data_type, &DataType::Float64)?),
            };
            let number = match cast {
                None => element.as_bytes().to_vec(),
                Some(cast) => cast.cast(element.as_bytes()).ok()?.to_vec(),
            };
            Some(BASE64_STANDARD.encode(number).into())
        }
        DataType::Bool
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::String => Some(element.to_json(data_type)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::codec::v2_codec;
    use crate::metadata::MetadataLimits;
    use crate::metadata::v3::V3Node;

    /// What documents of v2 and v3 say of an array of v2: the fill value, and the attribute of both.
    fn of_v2(dtype: &str, fill_value: &Value, attributes: &Value) -> [Value; 3] {
        let document = json!({
            "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": dtype, "fill_value": fill_value, "order": "C",
            "compressor": null, "filters": null,
        });
        let (document, attributes) = (document.to_string(), attributes.to_string());
        let (document, attributes) = (document.as_bytes(), attributes.as_bytes());
        let array = crate::metadata::v2::parse_array(
            document,
            Some(attributes),
            v2_codec,
            &MetadataLimits::default(),
        );
        said(&array.unwrap(), None)
    }

    fn of_v3(data_type: &str, fill_value: &Value, attributes: &Value, to: Option<&DataType>) -> [Value; 3] {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": data_type, "fill_value": fill_value,
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
            "chunk_key_encoding": { "name": "default" }, "codecs": ["bytes"], "attributes": attributes,
        });
        let node = crate::metadata::v3::parse(document.to_string().as_bytes(), &MetadataLimits::default());
        let Ok(V3Node::Array(array)) = node else { panic!("an array") };
        said(&array, to)
    }

    fn said(array: &ArrayMetadata, to: Option<&DataType>) -> [Value; 3] {
        let data_type = to.unwrap_or(&array.data_type);
        let cast = to.and_then(|to| Cast::new(&array.data_type, to));
        let fill_value = match &cast {
            None => array.fill_value.clone(),
            Some(cast) => FillValue::from_bytes(&cast.cast(array.fill_value.as_bytes()).unwrap()),
        };
        let missing = MissingValue::new(array, cast.as_ref(), data_type, &fill_value);
        let [v2, v3] = [missing.to_v2(&array.attributes), missing.to_v3(&array.attributes)]
            .map(|attributes| attributes.get(FILL_VALUE).unwrap_or_default());
        [missing.v2_fill_value().clone(), v2, v3]
    }

    /// Base64 of the float64 -9999, NaN and 0.
    const LOW: &str = "AAAAAICHw8A=";
    const NAN: &str = "AAAAAAAA+H8=";
    const ZERO: &str = "AAAAAAAAAAA=";

    #[test]
    fn missing_data_of_v2_is_an_attribute_in_v3() {
        let none = json!({});
        for (dtype, fill_value, attributes, expected) in [
            ("<i2", json!(null), &none, [json!(null), json!(null), json!(null)]),
            ("<i2", json!(0), &none, [json!(0), json!(null), json!(0)]),
            ("<i2", json!(-9999), &none, [json!(-9999), json!(null), json!(-9999)]),
            (">f4", json!(-9999), &none, [json!(-9999.0), json!(null), json!(LOW)]),
            ("<f8", json!("NaN"), &none, [json!("NaN"), json!(null), json!(NAN)]),
            ("<f2", json!(0.0), &none, [json!(0.0), json!(null), json!(ZERO)]),
            ("<f8", json!(null), &json!({FILL_VALUE: -9999}), [json!(null), json!(-9999), json!(LOW)]),
            ("|b1", json!(false), &none, [json!(false), json!(null), json!(false)]),
            // xarray reads no attribute of such types.
            ("<M8[s]", json!(0), &none, [json!(0), json!(null), json!(null)]),
            ("<M8[s]", json!(null), &none, [json!(null), json!(null), json!(null)]),
        ] {
            assert_eq!(of_v2(dtype, &fill_value, attributes), expected, "{dtype} {fill_value}");
        }
    }

    #[test]
    fn missing_data_of_v3_is_the_fill_value_in_v2() {
        let attribute = |value: Value| json!({ FILL_VALUE: value });
        for (data_type, fill_value, attributes, expected) in [
            ("int16", json!(0), json!({}), [json!(null), json!(null), json!(null)]),
            ("int16", json!(7), json!({}), [json!(7), json!(null), json!(null)]),
            ("int16", json!(7), attribute(json!(7)), [json!(7), json!(null), json!(7)]),
            ("int16", json!(0), attribute(json!(-1)), [json!(null), json!(-1), json!(-1)]),
            ("float32", json!("NaN"), attribute(json!(NAN)), [json!("NaN"), json!(null), json!(NAN)]),
            ("float32", json!(0.0), attribute(json!(NAN)), [json!(null), json!(null), json!(NAN)]),
            ("float32", json!(0.0), attribute(json!(LOW)), [json!(null), json!(-9999.0), json!(LOW)]),
            ("string", json!(""), json!({}), [json!(null), json!(null), json!(null)]),
        ] {
            assert_eq!(
                of_v3(data_type, &fill_value, &attributes, None),
                expected,
                "{data_type} {fill_value}"
            );
        }
    }

    #[test]
    fn times_of_v3_are_written_to_v2_so_that_no_fill_value_stands_for_another() {
        let document = |fill_value: Value| {
            let data_type =
                json!({ "name": "numpy.datetime64", "configuration": { "unit": "s", "scale_factor": 1 } });
            let document = json!({
                "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": data_type, "fill_value": fill_value,
                "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
                "chunk_key_encoding": { "name": "default" }, "codecs": ["bytes"],
            });
            let node =
                crate::metadata::v3::parse(document.to_string().as_bytes(), &MetadataLimits::default());
            let Ok(V3Node::Array(array)) = node else { panic!("an array") };
            let written = said(&array, None)[0].clone();
            (FillValue::from_v2(&array.data_type, Some(&written)).unwrap(), array.fill_value.clone(), written)
        };
        for (fill_value, expected) in
            [(json!(0), json!(0)), (json!("NaT"), json!(null)), (json!(7), json!(7))]
        {
            let (read, stored, written) = document(fill_value);
            assert_eq!((read, &written), (stored, &expected));
        }
    }

    #[test]
    fn missing_data_beside_another_fill_value_is_the_attribute_that_xarray_reads_beside_it() {
        let document = |attributes: Value| {
            let document = json!({
                "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32", "fill_value": "NaN",
                "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
                "chunk_key_encoding": { "name": "default" }, "codecs": ["bytes"], "attributes": attributes,
            });
            let node =
                crate::metadata::v3::parse(document.to_string().as_bytes(), &MetadataLimits::default());
            let Ok(V3Node::Array(array)) = node else { panic!("an array") };
            let missing = MissingValue::new(&array, None, &array.data_type, &array.fill_value);
            (missing.v2_fill_value().clone(), missing.to_v2(&array.attributes).text().to_owned())
        };
        let alone = document(json!({ FILL_VALUE: LOW }));
        assert_eq!(alone, (json!("NaN"), r#"{"missing_value":-9999.0}"#.to_owned()));
        let both = document(json!({ FILL_VALUE: LOW, MISSING_VALUE: -9999 }));
        assert_eq!(both, (json!("NaN"), r#"{"missing_value":-9999}"#.to_owned()));
    }

    #[test]
    fn missing_data_has_the_type_of_the_elements() {
        let attributes = json!({ FILL_VALUE: -9999 });
        let expected = [json!(-9999.0), json!(null), json!(LOW)];
        assert_eq!(of_v3("int16", &json!(-9999), &attributes, Some(&DataType::Float32)), expected);
        // No element of the type is missing.
        let low = json!({ FILL_VALUE: -70_000 });
        let said = of_v3("int32", &json!(0), &low, Some(&DataType::Int16));
        assert_eq!(said[0], json!(null));
    }
}
