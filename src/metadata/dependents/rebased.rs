//! Rebased documents: documents of dependents with default chunk keys and canonical spelling, for readers that know neither
//! the convention nor its chunk key encodings.

use serde_json::{Map, Value, json};

use super::completed::Completed;

/// The gzip level where a document gives none: readers require one, and decoding does not depend on it.
const GZIP_LEVEL: u64 = 5;

/// The document with default chunk keys, codecs as objects, and without declaration.
pub(super) fn rebased(completed: &Completed) -> Map<String, Value> {
    let mut document = Map::new();
    for (name, value) in completed.members() {
        let value = match name {
            "chunk_key_encoding" => json!({ "name": "default", "configuration": { "separator": "/" } }),
            "codecs" => codecs(value),
            // Some writers emit `null` for absent members, which some readers reject.
            _ if value.is_null() => continue,
            _ => value.clone(),
        };
        document.insert(name.to_owned(), value);
    }
    if let Some(attributes) = completed.attributes(false) {
        document.insert("attributes".to_owned(), Value::Object(attributes));
    }
    document
}

/// Codecs as objects, including nested ones.
fn codecs(value: &Value) -> Value {
    match value {
        Value::Array(codecs) => codecs.iter().map(codec).collect(),
        other => other.clone(),
    }
}

fn codec(value: &Value) -> Value {
    let mut codec = match value {
        Value::String(name) => json!({ "name": name }),
        other => other.clone(),
    };
    let Some(members) = codec.as_object_mut() else { return codec };
    if members.get("name").and_then(Value::as_str) == Some("gzip") {
        let configuration = members.entry("configuration").or_insert_with(|| json!({}));
        if let Some(configuration) = configuration.as_object_mut() {
            configuration.entry("level").or_insert_with(|| json!(GZIP_LEVEL));
        }
    }
    if let Some(configuration) = members.get_mut("configuration").and_then(Value::as_object_mut) {
        for inner in ["codecs", "index_codecs"] {
            if let Some(inner) = configuration.get_mut(inner) {
                *inner = codecs(inner);
            }
        }
    }
    codec
}
