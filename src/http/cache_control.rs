//! [`CacheControl`]: the `Cache-Control` headers of a mount (RFC 9111, section 5.2), by kind of response.
//!
//! The default is `no-cache`: caches may store the response but must revalidate it on each use, which is always correct.
//! Listings, nodes and other generated documents always have it. Errors are never cached.

use std::fmt;

use axum::http::HeaderValue;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::validators::is_metadata;
use crate::key::StoreKey;

/// The default, which is correct for every response.
const REVALIDATE: &str = "no-cache";

/// `Cache-Control` by kind of response. In the configuration it is one text for all stored values, or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheControl {
    /// For stored metadata documents, recognised by their keys: `zarr.json`, `.zarray`, `.zgroup`, `.zattrs`, `.zmetadata`
    /// and all keys that end in `.json`.
    pub metadata: String,
    /// For all other stored values.
    pub chunks: String,
    /// For decoded elements. They depend on metadata and chunks, and may change with a release of the server.
    pub decoded: String,
}

/// The table form of the configuration.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    metadata: String,
    chunks: String,
    decoded: String,
}

impl Default for Table {
    fn default() -> Self {
        let [metadata, chunks, decoded] = [REVALIDATE; 3].map(str::to_owned);
        Self { metadata, chunks, decoded }
    }
}

impl From<Table> for CacheControl {
    fn from(Table { metadata, chunks, decoded }: Table) -> Self {
        Self { metadata, chunks, decoded }
    }
}

impl Default for CacheControl {
    fn default() -> Self {
        Table::default().into()
    }
}

impl Serialize for CacheControl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.metadata == self.chunks && self.decoded == REVALIDATE {
            return serializer.serialize_str(&self.chunks);
        }
        let Self { metadata, chunks, decoded } = self.clone();
        Table { metadata, chunks, decoded }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CacheControl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = CacheControl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a table of `metadata`, `chunks` and `decoded`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CacheControl, E> {
                let (metadata, chunks) = (text.to_owned(), text.to_owned());
                Ok(Table { metadata, chunks, ..Table::default() }.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<CacheControl, A::Error> {
                Table::deserialize(MapAccessDeserializer::new(table)).map(CacheControl::from)
            }
        }
        deserializer.deserialize_any(TextOrTable)
    }
}

impl CacheControl {
    /// The header of a stored value.
    pub(crate) fn of_value(&self, key: &StoreKey) -> HeaderValue {
        header(if is_metadata(key) { &self.metadata } else { &self.chunks })
    }

    /// The header of decoded elements.
    pub(crate) fn of_decoded(&self) -> HeaderValue {
        header(&self.decoded)
    }

    /// Whether all texts are valid header values.
    pub(crate) fn is_valid(&self) -> bool {
        [&self.metadata, &self.chunks, &self.decoded]
            .into_iter()
            .all(|text| HeaderValue::from_str(text).is_ok())
    }
}

/// The header value. Its validity was checked when the state was built.
fn header(text: &str) -> HeaderValue {
    if text == REVALIDATE {
        return HeaderValue::from_static(REVALIDATE);
    }
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(REVALIDATE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(metadata: &str, chunks: &str, decoded: &str) -> CacheControl {
        let [metadata, chunks, decoded] = [metadata, chunks, decoded].map(str::to_owned);
        CacheControl { metadata, chunks, decoded }
    }

    #[test]
    fn a_text_applies_to_all_stored_values_and_a_table_to_the_named_kinds() {
        for (setting, expected) in [
            (r#""max-age=9""#, of("max-age=9", "max-age=9", "no-cache")),
            (r#"{"chunks": "max-age=9"}"#, of("no-cache", "max-age=9", "no-cache")),
            (r#"{"metadata": "a", "decoded": "b"}"#, of("a", "no-cache", "b")),
            ("{}", CacheControl::default()),
        ] {
            let read: CacheControl = serde_json::from_str(setting).unwrap();
            assert_eq!(read, expected, "{setting}");
            let written = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<CacheControl>(&written).unwrap(), expected, "{written}");
        }
        assert!(serde_json::from_str::<CacheControl>(r#"{"chunk": "a"}"#).is_err());
        assert!(!of("a", "b", "c\n").is_valid());
    }

    #[test]
    fn the_key_of_a_value_determines_its_header() {
        let classes = of("m", "c", "d");
        for (key, expected) in
            [("zarr.json", "m"), ("a/.zattrs", "m"), ("a/x.json", "m"), ("a/c/0", "c"), ("zarr.json/0", "c")]
        {
            assert_eq!(classes.of_value(&StoreKey::parse(key).unwrap()), expected, "{key}");
        }
    }
}
