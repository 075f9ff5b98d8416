//! [`ExportAttribute`]: an attribute as a text or as numbers of one type.
//!
//! Zarr attributes are JSON. What has no counterpart (objects, nested or mixed lists) becomes its JSON text, so that nothing
//! is lost. Attributes whose type must be that of the variable (CF 1.12, section 2.5.1 and 3.5) have it if every value fits.

use serde_json::Value;

use super::element_encoding::ElementEncoding;
use super::external_type::ExternalType;
use super::fill::{fill_element, is_numeric, time_units};
use crate::metadata::{ArrayMetadata, Attributes, DataType};
use crate::reduce::{missing_element, read_as};

/// Attributes of the variable's own type.
const OF_VARIABLE_TYPE: [&str; 6] =
    ["missing_value", "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks"];

/// Attributes that are lists of words, which a list in JSON is joined to.
const LISTS_OF_WORDS: [&str; 5] =
    ["coordinates", "flag_meanings", "ancillary_variables", "Conventions", "cell_measures"];

/// Attributes of Zarr that other formats have in another place.
const OF_ZARR: [&str; 2] = ["_ARRAY_DIMENSIONS", "_FillValue"];

/// An attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportAttribute {
    /// Its name, as in Zarr.
    pub name: String,
    /// Its value.
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// Numbers of a type, as its big-endian bytes one after the other.
    Numbers(ExternalType, Vec<u8>),
}

impl ExportAttribute {
    /// An attribute with a text.
    pub(super) fn text(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: AttributeValue::Text(text.into()) }
    }
}

/// The attributes of a group.
pub(super) fn of_group(attributes: &Attributes) -> Vec<ExportAttribute> {
    let attributes = attributes.object();
    attributes.iter().filter_map(|(name, value)| of_json(name, value)).collect()
}

/// The attributes of a variable of numbers, or of texts where `encoding` is `None`.
pub(super) fn of_variable(
    metadata: &ArrayMetadata,
    encoding: Option<&ElementEncoding>,
    is_coordinate: bool,
) -> Vec<ExportAttribute> {
    let data_type = &metadata.data_type;
    let mut list = Vec::new();
    if let Some(encoding) = encoding
        && let Some(fill) = fill_element(metadata, is_coordinate).and_then(|fill| encoding.value_of(&fill))
    {
        let value = AttributeValue::Numbers(encoding.external(), fill);
        list.push(ExportAttribute { name: "_FillValue".to_owned(), value });
    }
    let times = time_units(data_type);
    if let Some(units) = &times {
        list.push(ExportAttribute::text("units", units.as_str()));
        if matches!(data_type, DataType::DateTime64(_)) {
            list.push(ExportAttribute::text("calendar", "proleptic_gregorian"));
        }
    }
    if *data_type == DataType::Bool {
        list.push(ExportAttribute::text("dtype", "bool"));
    }
    if encoding.is_none() && !matches!(data_type, DataType::NullTerminatedBytes { .. }) {
        list.push(ExportAttribute::text("_Encoding", "utf-8"));
    }
    let attributes = metadata.attributes.object();
    for (name, value) in attributes.iter() {
        if OF_ZARR.contains(&name.as_str()) || list.iter().any(|known| known.name == *name) {
            continue;
        }
        let typed = encoding.filter(|_| OF_VARIABLE_TYPE.contains(&name.as_str()));
        let typed = typed.and_then(|encoding| of_type(name, value, metadata, encoding));
        list.extend(typed.or_else(|| of_json(name, value)));
    }
    list
}

/// An attribute whose values are all of the variable's type.
fn of_type(
    name: &str,
    value: &Value,
    metadata: &ArrayMetadata,
    encoding: &ElementEncoding,
) -> Option<ExportAttribute> {
    let data_type = &metadata.data_type;
    if !is_numeric(data_type) {
        return None;
    }
    let read_as = read_as(&metadata.attributes, data_type);
    let values = match value {
        Value::Array(list) if !list.is_empty() => list.as_slice(),
        Value::Array(_) => return None,
        one => std::slice::from_ref(one),
    };
    let mut numbers = Vec::new();
    for value in values {
        let element = missing_element(value, data_type).or_else(|| missing_element(value, &read_as))?;
        numbers.extend(encoding.value_of(&element)?);
    }
    let value = AttributeValue::Numbers(encoding.external(), numbers);
    Some(ExportAttribute { name: name.to_owned(), value })
}

/// An attribute of any value; `None` for `null` and the empty list.
fn of_json(name: &str, value: &Value) -> Option<ExportAttribute> {
    let value = match value {
        Value::Null => return None,
        Value::Array(list) if list.is_empty() => return None,
        Value::String(text) => AttributeValue::Text(text.clone()),
        Value::Bool(_) | Value::Number(_) => {
            numbers(std::slice::from_ref(value)).unwrap_or_else(|| json(value))
        }
        Value::Array(list) => numbers(list).or_else(|| texts(name, list)).unwrap_or_else(|| json(value)),
        Value::Object(_) => json(value),
    };
    Some(ExportAttribute { name: name.to_owned(), value })
}

fn json(value: &Value) -> AttributeValue {
    AttributeValue::Text(value.to_string())
}

/// Truth values, integers of 32 bits, or floats.
fn numbers(list: &[Value]) -> Option<AttributeValue> {
    let truths: Option<Vec<u8>> = list.iter().map(|value| value.as_bool().map(u8::from)).collect();
    if let Some(truths) = truths {
        return Some(AttributeValue::Numbers(ExternalType::Byte, truths));
    }
    let texts: Option<Vec<&str>> =
        list.iter().map(|value| value.as_number().map(serde_json::Number::as_str)).collect();
    let texts = texts?;
    let integers: Option<Vec<i32>> = texts.iter().map(|text| text.parse().ok()).collect();
    if let Some(integers) = integers {
        let bytes = integers.iter().flat_map(|number| number.to_be_bytes()).collect();
        return Some(AttributeValue::Numbers(ExternalType::Int, bytes));
    }
    let doubles: Option<Vec<f64>> = texts.iter().map(|text| double(text)).collect();
    let bytes = doubles?.iter().flat_map(|number| number.to_be_bytes()).collect();
    Some(AttributeValue::Numbers(ExternalType::Double, bytes))
}

/// A number as a float64; `None` for an integer that has none of the same value.
fn double(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let is_same = |integer: i128| format!("{number:.0}").parse() == Ok(integer);
    text.parse().map_or(true, is_same).then_some(number)
}

/// Several texts, or one of the words in them.
fn texts(name: &str, list: &[Value]) -> Option<AttributeValue> {
    let texts: Option<Vec<String>> = list.iter().map(|value| value.as_str().map(str::to_owned)).collect();
    let texts = texts?;
    if LISTS_OF_WORDS.contains(&name) {
        return Some(AttributeValue::Text(texts.join(" ")));
    }
    Some(AttributeValue::Texts(texts))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(value: &Value) -> Option<AttributeValue> {
        of_json("a", value).map(|attribute| attribute.value)
    }

    fn ints(list: &[i32]) -> AttributeValue {
        AttributeValue::Numbers(ExternalType::Int, list.iter().flat_map(|one| one.to_be_bytes()).collect())
    }

    fn doubles(list: &[f64]) -> AttributeValue {
        AttributeValue::Numbers(ExternalType::Double, list.iter().flat_map(|one| one.to_be_bytes()).collect())
    }

    #[test]
    fn json_becomes_texts_and_numbers_and_what_has_no_counterpart_its_text() {
        let text = |text: &str| Some(AttributeValue::Text(text.to_owned()));
        assert_eq!(value(&json!("K")), text("K"));
        assert_eq!(value(&json!(null)), None);
        assert_eq!(value(&json!([])), None);
        assert_eq!(value(&json!(3)), Some(ints(&[3])));
        assert_eq!(value(&json!([1, -2])), Some(ints(&[1, -2])));
        assert_eq!(value(&json!([1, 0.5])), Some(doubles(&[1.0, 0.5])));
        assert_eq!(value(&json!(4_294_967_296_u64)), Some(doubles(&[4_294_967_296.0])));
        assert_eq!(value(&json!(9_007_199_254_740_993_u64)), text("9007199254740993"));
        assert_eq!(value(&json!(true)), Some(AttributeValue::Numbers(ExternalType::Byte, vec![1])));
        assert_eq!(value(&json!({"a": [1]})), text("{\"a\":[1]}"));
        assert_eq!(value(&json!([1, "a"])), text("[1,\"a\"]"));
        assert_eq!(value(&json!(["a", "b c"])), Some(AttributeValue::Texts(vec!["a".into(), "b c".into()])));
    }
}
