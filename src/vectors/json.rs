//! Typed access to members of JSON attributes. A member of another type counts as absent; `validate` reports it.

use serde_json::{Map, Value};

/// A JSON object.
pub(super) type JsonObject = Map<String, Value>;

/// A list of finite numbers.
pub(super) fn finite_numbers(value: Option<&Value>) -> Option<Vec<f64>> {
    let numbers = value?.as_array()?.iter().map(|number| number.as_f64().filter(|number| number.is_finite()));
    numbers.collect()
}

/// A list of integers.
pub(super) fn integers(value: Option<&Value>) -> Option<Vec<i64>> {
    value?.as_array()?.iter().map(Value::as_i64).collect()
}

/// A list of strings; a single string counts as a list of one.
pub(super) fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    match value? {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(texts) => texts.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// A member that is a string.
pub(super) fn string<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// A member that is an object.
pub(super) fn object<'a>(object: &'a JsonObject, name: &str) -> Option<&'a JsonObject> {
    object.get(name).and_then(Value::as_object)
}

/// Whether a member is `true`.
pub(super) fn is_true(object: &JsonObject, name: &str) -> bool {
    object.get(name).and_then(Value::as_bool).unwrap_or_default()
}
