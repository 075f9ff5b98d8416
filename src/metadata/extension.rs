//! [`Extension`]: extension objects and their short-hand names (Zarr core 3.1, "Extension definition"); and helpers for
//! members of documents.
//!
//! An unknown name is not an error here; each extension point knows its own names.

use serde_json::{Map, Value};

use super::MetadataError;
use crate::units::counted;

/// The value at an extension point: a name and its configuration.
#[derive(Debug)]
pub(super) struct Extension {
    /// The member that contains it, for errors.
    member: String,
    /// A registered name or a URI.
    pub(super) name: String,
    /// The configuration; empty if absent.
    pub(super) configuration: Map<String, Value>,
    /// Whether a reader that does not know it must fail.
    pub(super) must_understand: bool,
}

impl Extension {
    /// Parses an extension object or a short-hand name.
    pub(super) fn parse(value: &Value, member: &str) -> Result<Self, MetadataError> {
        let mut extension = Self {
            member: member.to_owned(),
            name: String::new(),
            configuration: Map::new(),
            must_understand: true,
        };
        match value {
            Value::String(name) => extension.name.clone_from(name),
            Value::Object(members) => extension.read(members)?,
            _ => return Err(MetadataError::invalid(member, "must be a name or an object with a `name`")),
        }
        if extension.name.is_empty() {
            return Err(MetadataError::invalid(member, "the name is empty or missing"));
        }
        Ok(extension)
    }

    fn read(&mut self, members: &Map<String, Value>) -> Result<(), MetadataError> {
        for (key, value) in members {
            match (key.as_str(), value) {
                ("name", Value::String(name)) => self.name.clone_from(name),
                ("configuration", Value::Object(configuration)) => {
                    self.configuration.clone_from(configuration);
                }
                ("must_understand", Value::Bool(must_understand)) => self.must_understand = *must_understand,
                ("name", _) => return Err(self.invalid("`name` must be a string")),
                ("configuration", _) => return Err(self.invalid("`configuration` must be an object")),
                ("must_understand", _) => return Err(self.invalid("`must_understand` must be true or false")),
                // Ignoring a misplaced member, such as a `separator`, could change what is read.
                (other, _) => return Err(self.invalid(&format!("`{other}` is not allowed beside `name`"))),
            }
        }
        Ok(())
    }

    /// An error about this extension.
    pub(super) fn invalid(&self, reason: &str) -> MetadataError {
        MetadataError::invalid(self.member.as_str(), reason)
    }

    /// Rejects `must_understand: false`, which some extension points do not allow.
    pub(super) fn require_understood(&self) -> Result<(), MetadataError> {
        if self.must_understand {
            Ok(())
        } else {
            Err(self.invalid("`must_understand` cannot be false here"))
        }
    }

    /// Rejects members of the configuration other than `known`.
    pub(super) fn require_only(&self, known: &[&str]) -> Result<(), MetadataError> {
        match self.configuration.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(other) => Err(self.invalid(&format!("`{other}` is not a part of the configuration"))),
        }
    }
}

/// The members of a document, which must be an object.
pub(super) fn into_object(document: Value) -> Result<Map<String, Value>, MetadataError> {
    match document {
        Value::Object(members) => Ok(members),
        _ => Err(MetadataError::invalid("document", "must be an object")),
    }
}

/// A required member.
pub(super) fn required<'a>(
    members: &'a Map<String, Value>,
    member: &str,
) -> Result<&'a Value, MetadataError> {
    members.get(member).ok_or_else(|| MetadataError::invalid(member, "is missing"))
}

/// An optional member; `null` counts as absent, because some writers emit it.
pub(super) fn optional<'a>(members: &'a Map<String, Value>, member: &str) -> Option<&'a Value> {
    members.get(member).filter(|value| !value.is_null())
}

/// An array of at most `max_items` items.
pub(super) fn items<'a>(
    value: &'a Value,
    member: &str,
    max_items: usize,
) -> Result<&'a [Value], MetadataError> {
    match value {
        Value::Array(items) if items.len() <= max_items => Ok(items),
        Value::Array(items) => Err(MetadataError::invalid(
            member,
            format!("has {} items; the limit is {max_items}", items.len()),
        )),
        _ => Err(MetadataError::invalid(member, "must be an array")),
    }
}

/// An array of at most `rank` lengths: integers without fraction or exponent, from 0 to 2^63 − 1.
pub(super) fn lengths(value: &Value, member: &str, rank: usize) -> Result<Vec<u64>, MetadataError> {
    let length = |item: &Value| item.as_u64().filter(|&length| i64::try_from(length).is_ok());
    items(value, member, rank)?
        .iter()
        .map(|item| {
            length(item)
                .ok_or_else(|| MetadataError::invalid(member, "must hold integers from 0 to 2^63 - 1"))
        })
        .collect()
}

/// The chunk shape of an array of this shape. An edge is at least 1; it may be 0 only where the array's length is 0.
pub(super) fn chunk_shape(value: &Value, member: &str, shape: &[u64]) -> Result<Vec<u64>, MetadataError> {
    let chunk_shape = lengths(value, member, usize::MAX)?;
    if chunk_shape.len() != shape.len() {
        let reason =
            format!("has {}; the array has {}", counted(chunk_shape.len(), "dimension"), shape.len());
        return Err(MetadataError::invalid(member, reason));
    }
    if chunk_shape.iter().zip(shape).any(|(&edge, &length)| edge == 0 && length > 0) {
        return Err(MetadataError::invalid(member, "an edge of a chunk must be at least 1"));
    }
    Ok(chunk_shape)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_short_hand_for_an_object() {
        for value in [json!("a"), json!({"name": "a"}), json!({"name": "a", "configuration": {}})] {
            let extension = Extension::parse(&value, "x").unwrap();
            assert_eq!((extension.name.as_str(), extension.must_understand), ("a", true));
            assert!(extension.configuration.is_empty());
        }
    }

    #[test]
    fn invalid_extensions_are_rejected() {
        for value in [
            json!(1),
            json!(null),
            json!([]),
            json!(""),
            json!({}),
            json!({"name": 1}),
            json!({"name": "a", "configuration": null}),
            json!({"name": "a", "must_understand": "no"}),
            json!({"name": "a", "separator": "."}),
        ] {
            assert!(Extension::parse(&value, "x").is_err(), "{value}");
        }
    }

    #[test]
    fn lengths_are_from_0_to_2_to_the_63_minus_1() {
        let largest = json!([9_223_372_036_854_775_807_u64, 0, -0]);
        assert_eq!(lengths(&largest, "shape", 3), Ok(vec![(1 << 63) - 1, 0, 0]));
        for text in
            ["[9223372036854775808]", "[-1]", "[1.0]", "[1e3]", "[\"1\"]", "[true]", "[null]", "[[1]]", "1"]
        {
            let value: Value = serde_json::from_str(text).unwrap();
            assert!(lengths(&value, "shape", 3).is_err(), "{text}");
        }
        assert!(lengths(&json!([1, 1, 1, 1]), "shape", 3).is_err());
    }
}
