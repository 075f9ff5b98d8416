//! Values in attributes, read leniently: a value of another type counts as absent, texts are cut and lists are bounded.

use serde_json::{Map, Value};

/// Most characters of a text.
const MAX_CHARACTERS: usize = 256;
/// Most items of a list.
pub(super) const MAX_ITEMS: usize = 64;

/// The members of an object.
pub(super) type Members = Map<String, Value>;

/// A text, cut to 256 characters.
pub(super) fn text(value: &Value) -> Option<String> {
    Some(cut(value.as_str()?))
}

/// The beginning of a text.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(MAX_CHARACTERS).collect()
}

/// The text of a member.
pub(super) fn member_text(object: &Members, name: &str) -> Option<String> {
    object.get(name).and_then(text)
}

/// A finite number.
pub(super) fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// The finite number of a member.
pub(super) fn member_number(object: &Members, name: &str) -> Option<f64> {
    object.get(name).and_then(number)
}

/// The first items of a list; none if the value is not a list.
pub(super) fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten().take(MAX_ITEMS)
}

/// The first objects of a list.
pub(super) fn objects(value: Option<&Value>) -> impl Iterator<Item = &Members> {
    items(value).filter_map(Value::as_object)
}

/// The first texts of a list.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    items(value).filter_map(text).collect()
}

/// A list of finite numbers; `None` if an item is not one, or if there are too many.
pub(super) fn numbers(value: Option<&Value>) -> Option<Vec<f64>> {
    let list = value?.as_array().filter(|list| list.len() <= MAX_ITEMS)?;
    list.iter().map(number).collect()
}

/// As many finite numbers as `N`.
pub(super) fn exactly<const N: usize>(value: Option<&Value>) -> Option<[f64; N]> {
    numbers(value)?.try_into().ok()
}

/// The path of a node below another, without slashes at its ends; `None` if it is empty or longer than a text may be.
pub(super) fn path(value: Option<&Value>) -> Option<String> {
    let path = value?.as_str()?.trim_matches('/');
    let is_path = !path.is_empty() && path.len() <= MAX_CHARACTERS;
    is_path.then(|| path.to_owned())
}

/// The attributes in a document.
#[cfg(test)]
pub(super) fn attributes(document: Value) -> crate::metadata::Attributes {
    match document {
        Value::Object(members) => crate::metadata::Attributes::from(members),
        other => panic!("no object: {other}"),
    }
}
