//! [`Config`]: reads a codec's configuration, and the lists of codecs inside it.
//!
//! Zarr core 3.1, "Extension definition". Members nobody asks for are ignored: v2 documents hold plenty of
//! them. What the values mean is each codec's own business.

use serde_json::{Map, Value};

use super::CodecError;
use crate::metadata::CodecMetadata;

/// A codec's configuration, and its name for complaints.
#[derive(Clone, Copy)]
pub(super) struct Config<'a> {
    name: &'a str,
    members: &'a Map<String, Value>,
}

impl<'a> Config<'a> {
    pub(super) fn new(codec: &'a CodecMetadata) -> Self {
        Self { name: &codec.name, members: &codec.configuration }
    }

    /// A complaint about this configuration.
    pub(super) fn invalid(&self, reason: impl Into<String>) -> CodecError {
        CodecError::invalid(self.name, reason)
    }

    /// A complaint about something valid that is not implemented.
    pub(super) fn unsupported(&self, what: &str) -> CodecError {
        CodecError::Unsupported(format!("{} with {what}", self.name))
    }

    /// The member as it stands; `null` counts as absent.
    pub(super) fn member(&self, key: &str) -> Option<&'a Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    /// An integer. A string of digits is one too: netCDF-C writes them.
    pub(super) fn integer(&self, key: &str) -> Result<Option<i64>, CodecError> {
        let Some(value) = self.member(key) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        number.map(Some).ok_or_else(|| self.invalid(format!("`{key}` must be an integer")))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, CodecError> {
        let Some(value) = self.member(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.invalid(format!("`{key}` must be a string")))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, CodecError> {
        let Some(value) = self.member(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.invalid(format!("`{key}` must be true or false")))
    }

    /// A required list of whole numbers.
    pub(super) fn numbers(&self, key: &str) -> Result<Vec<u64>, CodecError> {
        let complaint = || self.invalid(format!("`{key}` must be a list of whole numbers"));
        let list = self.member(key).and_then(Value::as_array).ok_or_else(complaint)?;
        list.iter().map(|number| number.as_u64().ok_or_else(complaint)).collect()
    }

    /// A required list of codecs: objects, or names alone.
    pub(super) fn codecs(&self, key: &str) -> Result<Vec<CodecMetadata>, CodecError> {
        let complaint = || self.invalid(format!("`{key}` must be a list of codecs"));
        let list = self.member(key).and_then(Value::as_array).ok_or_else(complaint)?;
        list.iter().map(|value| codec(value).ok_or_else(complaint)).collect()
    }
}

/// A codec as the JSON of a list gives it.
fn codec(value: &Value) -> Option<CodecMetadata> {
    let members = match value {
        Value::String(name) => return Some(CodecMetadata::new(name, Value::Null)),
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let configuration = match members.get("configuration") {
        None => Value::Null,
        Some(configuration) if configuration.is_object() => configuration.clone(),
        Some(_) => return None,
    };
    let must_understand = match members.get("must_understand") {
        None => true,
        Some(value) => value.as_bool()?,
    };
    let codec = CodecMetadata::new(members.get("name")?.as_str()?, configuration);
    Some(CodecMetadata { must_understand, ..codec })
}
