//! [`LocatedValue`]: the settings of all layers as one tree, in which every value carries its [`Origin`].
//!
//! Files are TOML 1.1; the environment is `ZARRD__SECTION__KEY`. No key is named here: the types that `read` fills decide which
//! keys exist.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::origin::Origin;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(super) struct LocatedValue {
    pub(super) node: ConfigValue,
    pub(super) origin: Origin,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum ConfigValue {
    Table(BTreeMap<String, LocatedValue>),
    Array(Vec<LocatedValue>),
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    /// A word of the environment: its reader decides whether it is text or a TOML value.
    Word(String),
}

impl LocatedValue {
    /// A TOML document.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`]. The text of the line is not part of it: it may hold a secret.
    pub(super) fn parse(text: &str, origin: &Origin) -> Result<Self, ConfigError> {
        let syntax = |error: &toml::de::Error| ConfigError::Syntax {
            origin: origin.at(text, error.span().map_or(0, |span| span.start)),
            reason: error.message().to_owned(),
        };
        let table = DeTable::parse(text).map_err(|error| syntax(&error))?;
        Self::from_table(text, origin, table.get_ref(), origin.clone())
    }

    fn from_table(
        text: &str,
        source: &Origin,
        table: &DeTable<'_>,
        origin: Origin,
    ) -> Result<Self, ConfigError> {
        let mut entries = BTreeMap::new();
        for (key, value) in table {
            let at = source.at(text, key.span().start);
            entries.insert(key.get_ref().to_string(), Self::from_value(text, source, value.get_ref(), at)?);
        }
        Ok(Self { node: ConfigValue::Table(entries), origin })
    }

    fn from_value(
        text: &str,
        source: &Origin,
        value: &DeValue<'_>,
        origin: Origin,
    ) -> Result<Self, ConfigError> {
        let node = match value {
            DeValue::String(string) => ConfigValue::String(string.to_string()),
            DeValue::Boolean(bool) => ConfigValue::Bool(*bool),
            DeValue::Datetime(datetime) => ConfigValue::String(datetime.to_string()),
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(integer) => ConfigValue::Integer(integer),
                Err(error) => return Err(ConfigError::Syntax { origin, reason: error.to_string() }),
            },
            DeValue::Float(float) => match float.as_str().parse() {
                Ok(float) => ConfigValue::Float(float),
                Err(_) => {
                    return Err(ConfigError::Syntax { origin, reason: "not a number".to_owned() });
                }
            },
            DeValue::Array(array) => {
                let mut entries = Vec::with_capacity(array.len());
                for value in array {
                    let at = source.at(text, value.span().start);
                    entries.push(Self::from_value(text, source, value.get_ref(), at)?);
                }
                ConfigValue::Array(entries)
            }
            DeValue::Table(table) => return Self::from_table(text, source, table, origin),
        };
        Ok(Self { node, origin })
    }

    /// The word of an environment variable as a TOML value; `None` if it is text without quotes.
    pub(super) fn parse_word(word: &str, origin: &Origin) -> Option<Self> {
        let value = DeValue::parse(word).ok()?;
        Self::from_value(word, origin, value.get_ref(), origin.clone()).ok()
    }

    /// Merges `over` into this entry: tables key by key; anything else is replaced.
    pub(super) fn merge(&mut self, over: Self) {
        self.origin = over.origin;
        match (&mut self.node, over.node) {
            (ConfigValue::Table(below), ConfigValue::Table(above)) => {
                for (key, entry) in above {
                    match below.get_mut(&key) {
                        Some(existing) => existing.merge(entry),
                        None => drop(below.insert(key, entry)),
                    }
                }
            }
            (node, above) => *node = above,
        }
    }

    /// Sets the value at a path of keys, and creates the tables above it.
    pub(super) fn set(&mut self, path: &[&str], entry: Self) {
        let mut over = entry;
        for key in path.iter().rev() {
            let origin = over.origin.clone();
            over = Self { node: ConfigValue::Table(BTreeMap::from([((*key).to_owned(), over)])), origin };
        }
        self.merge(over);
    }

    /// Where the value at a dotted path was written, or the nearest table above it.
    pub(super) fn origin_of(&self, path: &[&str]) -> Origin {
        let mut entry = self;
        for key in path {
            match &entry.node {
                ConfigValue::Table(entries) => match entries.get(*key) {
                    Some(inner) => entry = inner,
                    None => break,
                },
                _ => break,
            }
        }
        entry.origin.clone()
    }

    /// Replaces a value that exists. Its origin stays.
    pub(super) fn replace(&mut self, path: &[&str], node: ConfigValue) {
        let found = path.iter().try_fold(self, |entry, key| match &mut entry.node {
            ConfigValue::Table(entries) => entries.get_mut(*key),
            _ => None,
        });
        if let Some(entry) = found {
            entry.node = node;
        }
    }

    /// The text of this entry, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.node {
            ConfigValue::String(text) | ConfigValue::Word(text) => Some(text),
            _ => None,
        }
    }

    /// The value at a path of keys.
    pub(super) fn get(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |entry, key| match &entry.node {
            ConfigValue::Table(entries) => entries.get(*key),
            _ => None,
        })
    }
}
