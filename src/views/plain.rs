//! Changes to the document of an array in the plain view (Zarr core 3.1, "Extension definition", "Chunk key encoding").
//!
//! Some clients reject short forms. So names of extensions become objects, missing members of configurations are filled
//! in, and data types and fill values are spelled as clients know them. Elements and the bytes of chunks stay the same,
//! and so do all other members.

use serde_json::{Map, Value, json};

use super::client_names::use_client_names;
use crate::metadata::dependents::is_declaration;
use crate::metadata::{ChunkKeyEncodingMetadata, DataType, spell_out_codecs};

/// Members that mean the same if they are `null` or absent; some clients reject `null`.
const OPTIONAL: [&str; 2] = ["dimension_names", "storage_transformers"];

/// Whether a view replaces the chunk key encoding of an array by the default one.
pub(super) fn needs_default_encoding(encoding: &ChunkKeyEncodingMetadata) -> bool {
    match encoding {
        // Every client knows these.
        ChunkKeyEncodingMetadata::Default(_)
        | ChunkKeyEncodingMetadata::V2(_)
        | ChunkKeyEncodingMetadata::V2Unspecified => false,
        ChunkKeyEncodingMetadata::Extended(_) => true,
    }
}

/// Sets the default chunk key encoding in a document.
pub(super) fn set_default_encoding(document: &mut Map<String, Value>) {
    document.insert("chunk_key_encoding".to_owned(), encoding("default", "/"));
}

/// Rewrites an array's document in the form that most clients read. Returns whether anything changed.
pub(super) fn normalize_document(document: &mut Map<String, Value>) -> bool {
    let data_type = document.get("data_type").and_then(|data_type| DataType::from_v3(data_type).ok());
    let rank = document.get("shape").and_then(Value::as_array).map_or(0, Vec::len);
    let codecs = document.get_mut("codecs");
    let mut changed = codecs.is_some_and(|codecs| spell_out_codecs(codecs, rank, data_type.as_ref()));
    let object = match document.get("chunk_key_encoding") {
        Some(Value::String(name)) => Some(match name.as_str() {
            "default" => encoding(name, "/"),
            "v2" => encoding(name, "."),
            other => json!({ "name": other }),
        }),
        _ => None,
    };
    if let Some(object) = object {
        document.insert("chunk_key_encoding".to_owned(), object);
        changed = true;
    }
    // Declared arrays are nodes of their own in a view, and their keys differ from the declared ones.
    if let Some(Value::Object(attributes)) = document.get_mut("attributes") {
        let before = attributes.len();
        attributes.retain(|name, _| !is_declaration(name));
        changed |= attributes.len() < before;
    }
    for member in OPTIONAL {
        if document.get(member).is_some_and(Value::is_null) {
            document.shift_remove(member);
            changed = true;
        }
    }
    // Clients know a data type without a configuration by its name only.
    if let Some(name) = document.get("data_type").and_then(bare_name) {
        document.insert("data_type".to_owned(), Value::String(name));
        changed = true;
    }
    data_type.is_some_and(|data_type| use_client_names(document, &data_type)) | changed
}

fn encoding(name: &str, separator: &str) -> Value {
    json!({ "name": name, "configuration": { "separator": separator } })
}

/// The name of an extension object without other information.
fn bare_name(extension: &Value) -> Option<String> {
    let members = extension.as_object()?;
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    let is_alone = members.iter().all(|(member, value)| match member.as_str() {
        "name" => true,
        "configuration" => is_empty(value),
        "must_understand" => value == &Value::Bool(true),
        _ => false,
    });
    members.get("name").filter(|_| is_alone)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelt_out(text: &str) -> String {
        let Ok(Value::Object(mut document)) = serde_json::from_str(text) else { panic!("{text}") };
        let before = Value::Object(document.clone()).to_string();
        let changed = normalize_document(&mut document);
        let after = Value::Object(document).to_string();
        assert_eq!(changed, before != after, "{text}");
        after
    }

    #[test]
    fn turns_names_into_objects_and_adds_a_level_to_gzip() {
        for (text, expected) in [
            (
                r#"{"data_type":"uint8","fill_value":0,"codecs":["bytes","gzip"]}"#,
                r#"{"data_type":"uint8","fill_value":0,"codecs":[{"name":"bytes"},{"name":"gzip","configuration":{"level":5}}]}"#,
            ),
            (
                r#"{"chunk_key_encoding":"default"}"#,
                r#"{"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}}}"#,
            ),
            (
                r#"{"chunk_key_encoding":"v2"}"#,
                r#"{"chunk_key_encoding":{"name":"v2","configuration":{"separator":"."}}}"#,
            ),
            (r#"{"data_type":{"name":"int16"},"fill_value":1}"#, r#"{"data_type":"int16","fill_value":1}"#),
            (
                r#"{"dimension_names":null,"storage_transformers":null,"attributes":{"b":null,"dependent-arrays":{},"a":1}}"#,
                r#"{"attributes":{"b":null,"a":1}}"#,
            ),
        ] {
            assert_eq!(spelt_out(text), expected);
        }
    }

    #[test]
    fn keeps_what_every_client_reads() {
        for text in [
            r#"{"data_type":"float32","codecs":[{"name":"gzip","configuration":{"level":1}}],"fill_value":1.50}"#,
            r#"{"data_type":"int16","fill_value":0,"chunk_key_encoding":{"name":"v2"}}"#,
            r#"{"data_type":{"name":"numpy.datetime64","configuration":{"unit":"s"}}}"#,
            r#"{"data_type":"uint8","fill_value":"no number"}"#,
            r#"{"codecs":1,"chunk_key_encoding":[],"data_type":{}}"#,
            "{}",
        ] {
            assert_eq!(spelt_out(text), text);
        }
    }
}
