//! [`read`]: deserializes the tree of settings into the options structs, with errors that carry key and origin.
//!
//! An error of another deserializer would give neither line nor variable, and would repeat the value, which may be a secret. So
//! this one has an error of its own: [`Fault`] collects the path of keys and the origin on its way up.

use std::fmt;

use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::ConfigError;
use super::nearest::hint;
use super::origin::Origin;
use super::tree::{ConfigValue, LocatedValue};
use crate::error::{nearest, setting_key};

/// Deserializes a type from the tree.
///
/// # Errors
/// [`ConfigError::UnknownKey`] and [`ConfigError::InvalidValue`].
pub(super) fn read<T: DeserializeOwned>(root: &LocatedValue) -> Result<T, ConfigError> {
    T::deserialize(root).map_err(|fault| fault.finish(root))
}

/// An error, and the part of its path that is known so far.
#[derive(Debug)]
pub(super) struct Fault {
    problem: Problem,
    /// The keys from the innermost outwards.
    path: Vec<String>,
    origin: Option<Origin>,
}

#[derive(Debug)]
enum Problem {
    UnknownKey(&'static [&'static str]),
    /// What was expected, in words for users, and what was found.
    Type(String, &'static str),
    Invalid(String),
}

impl Fault {
    fn new(problem: Problem) -> Self {
        Self { problem, path: Vec::new(), origin: None }
    }

    /// The same fault, in the table that contains `key`.
    fn within(mut self, key: &str, origin: &Origin) -> Self {
        self.path.push(key.to_owned());
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }

    fn finish(mut self, root: &LocatedValue) -> ConfigError {
        self.path.reverse();
        let key = setting_key(self.path.iter().map(String::as_str));
        let origin = self.origin.unwrap_or_else(|| root.origin.clone());
        match self.problem {
            Problem::UnknownKey(known) => {
                let hint = hint(self.path.last().map_or("", String::as_str), known);
                ConfigError::UnknownKey { origin, key, hint }
            }
            Problem::Type(expected, found) => {
                let advice = if expected == "a list" && found == "text" {
                    "; write `[\"…\"]`, also for one entry"
                } else {
                    ""
                };
                let reason = format!("expected {expected}, found {found}{advice}");
                ConfigError::InvalidValue { origin, key, reason }
            }
            Problem::Invalid(reason) => ConfigError::InvalidValue { origin, key, reason },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::UnknownKey(_) => f.write_str("unknown key"),
            Problem::Type(expected, found) => write!(f, "expected {expected}, found {found}"),
            Problem::Invalid(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Fault {}

/// The kind of a value, without the value itself.
fn kind(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "true or false",
        Unexpected::Signed(number) if *number < 0 => "a negative number",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "a whole number",
        Unexpected::Float(_) => "a number with a fraction",
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::Bytes(_) => "text",
        Unexpected::Seq => "a list",
        Unexpected::Map => "a table",
        _ => "something else",
    }
}

/// What serde expects, without names of Rust's types.
fn in_words(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    match text.as_str() {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a string slice" => "text",
        "a sequence" => "a list",
        "a map" => "a table",
        // "struct LogOptions".
        text if text.starts_with("struct ") => "a table of settings, as in [section]",
        text if text.starts_with("enum ") => "one of its words",
        text => text,
    }
    .to_owned()
}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Problem::Invalid(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Problem::Type(in_words(expected), kind(&found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match kind(&found) {
            "a negative number" => "a negative number",
            "a whole number" => "a number outside its range",
            other => other,
        };
        Self::new(Problem::Type(in_words(expected), found))
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        let hint = nearest(found, known.iter().copied()).map(|known| format!("; did you mean `{known}`?"));
        Self::custom(format_args!("expected one of {}{}", known.join(", "), hint.unwrap_or_default()))
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::new(Problem::UnknownKey(known))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("the key `{field}` is missing"))
    }
}

impl<'de> Deserializer<'de> for &LocatedValue {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node {
            ConfigValue::Table(entries) => {
                visitor.visit_map(TableReader { entries: entries.iter(), value: None })
            }
            ConfigValue::Array(entries) => visitor.visit_seq(ArrayReader(entries.iter())),
            ConfigValue::Bool(bool) => visitor.visit_bool(*bool),
            ConfigValue::Integer(integer) => visitor.visit_i64(*integer),
            ConfigValue::Float(float) => visitor.visit_f64(*float),
            ConfigValue::String(string) => visitor.visit_str(string),
            ConfigValue::Word(word) => match LocatedValue::parse_word(word, &self.origin) {
                Some(value) => value.deserialize_any(visitor),
                None => visitor.visit_str(word),
            },
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // A word of the environment is text as it stands (`ACCESS_KEY_ID=12345`), unless it is quoted as TOML.
        match &self.node {
            ConfigValue::Word(word) => match LocatedValue::parse_word(word, &self.origin) {
                Some(LocatedValue { node: ConfigValue::String(string), .. }) => visitor.visit_string(string),
                _ => visitor.visit_str(word),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let word = <String as serde::Deserialize>::deserialize(self)?;
        let word: StringDeserializer<Fault> = word.into_deserializer();
        visitor.visit_enum(word)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct TableReader<'a> {
    entries: std::collections::btree_map::Iter<'a, String, LocatedValue>,
    value: Option<(&'a String, &'a LocatedValue)>,
}

impl<'de> MapAccess<'de> for TableReader<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, entry)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some((key, entry));
        let reader: StrDeserializer<'_, Fault> = key.as_str().into_deserializer();
        seed.deserialize(reader).map(Some).map_err(|fault| fault.within(key, &entry.origin))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, entry)) = self.value.take() else {
            return Err(serde::de::Error::custom("a value was requested before its key"));
        };
        seed.deserialize(entry).map_err(|fault| fault.within(key, &entry.origin))
    }
}

struct ArrayReader<'a>(std::slice::Iter<'a, LocatedValue>);

impl<'de> SeqAccess<'de> for ArrayReader<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(entry) = self.0.next() else {
            return Ok(None);
        };
        seed.deserialize(entry).map(Some).map_err(|mut fault| {
            fault.origin.get_or_insert_with(|| entry.origin.clone());
            fault
        })
    }
}
