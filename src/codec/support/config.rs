//! [`CodecConfig`]: typed access to a codec's configuration, with errors that name the codec and the member.
//!
//! Zarr core 3.1, "Extension definition". Unknown members are ignored, because v2 documents have many of them; a codec can
//! refuse them with [`CodecConfig::require_only`]. The meaning of the values is up to each codec.

use serde_json::{Map, Value};

use super::number::{self, Number};
use super::representation::Representation;
use crate::codec::CodecError;
use crate::metadata::{CodecMetadata, DataType, FillValue};

/// A codec's configuration, and its name for errors.
#[derive(Clone, Copy)]
pub(crate) struct CodecConfig<'a> {
    name: &'a str,
    members: &'a Map<String, Value>,
}

impl<'a> CodecConfig<'a> {
    pub(crate) fn new(codec: &'a CodecMetadata) -> Self {
        Self { name: &codec.name, members: &codec.configuration }
    }

    /// An error in this configuration.
    pub(crate) fn invalid(&self, reason: impl Into<String>) -> CodecError {
        CodecError::invalid(self.name, reason)
    }

    /// An error for something valid that is not implemented.
    pub(crate) fn unsupported(&self, what: &str) -> CodecError {
        CodecError::unsupported(format!("{} with {what}", self.name))
    }

    /// Refuses members other than these. Some specifications reserve all others for later versions.
    pub(crate) fn require_only(&self, known: &[&str]) -> Result<(), CodecError> {
        match self.members.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(other) => Err(self.invalid(format!("`{other}` is not a part of the configuration"))),
        }
    }

    /// A number in any spelling of a fill value of its type that is found in documents.
    pub(crate) fn scalar(&self, data_type: &DataType, written: &Value) -> Result<Number, CodecError> {
        let scalar = Some(written).filter(|written| written.is_number() || written.is_string());
        // A fill value that is too large for its float type becomes infinity; an operand of arithmetic must not.
        let says_infinity = || written.as_str().is_some_and(|name| name.parse().is_ok_and(f64::is_infinite));
        scalar
            .and_then(|written| FillValue::from_v2(data_type, Some(written)).ok())
            .and_then(|fill_value| number::read_element(data_type, fill_value.as_bytes()))
            .filter(|number| {
                !matches!(number, Number::Float(float) if float.is_infinite()) || says_infinity()
            })
            .ok_or_else(|| self.invalid(format!("{written} is not a number of type `{}`", data_type.name())))
    }

    /// The member as written; `null` counts as absent.
    pub(crate) fn member(&self, key: &str) -> Option<&'a Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    /// An integer. A string of digits counts as one, because netCDF-C writes them.
    pub(crate) fn integer(&self, key: &str) -> Result<Option<i64>, CodecError> {
        let Some(value) = self.member(key) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        number.map(Some).ok_or_else(|| self.invalid(format!("`{key}` must be an integer")))
    }

    /// A finite number.
    pub(crate) fn float(&self, key: &str) -> Result<Option<f64>, CodecError> {
        let Some(value) = self.member(key) else { return Ok(None) };
        let number = value.as_f64().filter(|number| number.is_finite());
        number.map(Some).ok_or_else(|| self.invalid(format!("`{key}` must be a number")))
    }

    /// A data type of numbers in any of numpy's spellings, as numcodecs' filters have it. Its byte order is ignored: between
    /// codecs, elements are in canonical form.
    pub(crate) fn numpy_type(&self, key: &str) -> Result<Option<DataType>, CodecError> {
        let Some(name) = self.string(key)? else { return Ok(None) };
        match DataType::from_numpy(name) {
            Ok((data_type, _)) if number::is_numpy_number(&data_type) => Ok(Some(data_type)),
            Ok(_) | Err(_) => Err(self.unsupported(&format!("`{key}` `{name}`"))),
        }
    }

    /// The data type as which a filter reads the array's elements: the array's own by default, and always one of the same
    /// size.
    pub(crate) fn view_type(&self, key: &str, array: &Representation) -> Result<DataType, CodecError> {
        let own = &array.data_type;
        match self.numpy_type(key)? {
            Some(view) if view.element_bytes() == own.element_bytes() => Ok(view),
            None if number::is_numpy_number(own) => Ok(own.clone()),
            Some(view) => {
                let (view, own) = (view.name(), own.name());
                Err(self.invalid(format!("`{key}` is `{view}`, which differs in size from `{own}`")))
            }
            None => Err(self.unsupported(&format!("elements of type `{}`", own.name()))),
        }
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<&'a str>, CodecError> {
        let Some(value) = self.member(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.invalid(format!("`{key}` must be a string")))
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>, CodecError> {
        let Some(value) = self.member(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.invalid(format!("`{key}` must be true or false")))
    }

    /// A required list of whole numbers.
    pub(crate) fn numbers(&self, key: &str) -> Result<Vec<u64>, CodecError> {
        let error = || self.invalid(format!("`{key}` must be a list of whole numbers"));
        let list = self.member(key).and_then(Value::as_array).ok_or_else(error)?;
        list.iter().map(|number| number.as_u64().ok_or_else(error)).collect()
    }

    /// A required list of codecs: objects, or names alone.
    pub(crate) fn codecs(&self, key: &str) -> Result<Vec<CodecMetadata>, CodecError> {
        let error = || self.invalid(format!("`{key}` must be a list of codecs"));
        let list = self.member(key).and_then(Value::as_array).ok_or_else(error)?;
        list.iter().map(|value| codec(value).ok_or_else(error)).collect()
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
