//! What the plain view changes in an array's document (Zarr core 3.1, "Extension definition", "Chunk key encoding").
//!
//! Names that stand for extension objects become these objects, what a configuration must have is filled in, and types
//! and fill values have the spelling that clients in use know, as they refuse a document without. The elements stay the
//! same, and so do the chunks' bytes. Whatever else a document says is left alone.

use serde_json::{Map, Value, json};

use super::client_names::spell_elements;
use crate::metadata::dependents::is_declaration;
use crate::metadata::{ChunkKeyEncodingMetadata, DataType, spell_out_codecs};

/// The members in which `null` means that there is nothing, and which some clients want left out then.
const OPTIONAL: [&str; 2] = ["dimension_names", "storage_transformers"];

/// Whether a view shows an array's keys in another encoding than the stored one, which is the default one then.
pub(super) fn is_rebased(encoding: &ChunkKeyEncodingMetadata) -> bool {
    match encoding {
        // These every client knows.
        ChunkKeyEncodingMetadata::Default(_)
        | ChunkKeyEncodingMetadata::V2(_)
        | ChunkKeyEncodingMetadata::V2Unspecified => false,
        ChunkKeyEncodingMetadata::Extended(_) => true,
    }
}

/// Gives a document the default encoding.
pub(super) fn rebase(document: &mut Map<String, Value>) {
    document.insert("chunk_key_encoding".to_owned(), encoding("default", "/"));
}

/// Spells an array's document out. Returns whether anything changed.
pub(super) fn spell_out(document: &mut Map<String, Value>) -> bool {
    let data_type = document.get("data_type").and_then(|data_type| DataType::from_v3(data_type).ok());
    let rank = document.get("shape").and_then(Value::as_array).map_or(0, Vec::len);
    let codecs = document.get_mut("codecs");
    let mut changed = codecs.is_some_and(|codecs| spell_out_codecs(codecs, rank, data_type.as_ref()));
    let spelt = match document.get("chunk_key_encoding") {
        Some(Value::String(name)) => Some(match name.as_str() {
            "default" => encoding(name, "/"),
            "v2" => encoding(name, "."),
            other => json!({ "name": other }),
        }),
        _ => None,
    };
    if let Some(spelt) = spelt {
        document.insert("chunk_key_encoding".to_owned(), spelt);
        changed = true;
    }
    // What it declares are nodes of their own here, and their keys others than it says.
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
    // Of data types it is the name that they know, where there is no more to say.
    if let Some(name) = document.get("data_type").and_then(name_alone) {
        document.insert("data_type".to_owned(), Value::String(name));
        changed = true;
    }
    data_type.is_some_and(|data_type| spell_elements(document, &data_type)) | changed
}

fn encoding(name: &str, separator: &str) -> Value {
    json!({ "name": name, "configuration": { "separator": separator } })
}

/// The name of an extension object that says nothing else.
fn name_alone(extension: &Value) -> Option<String> {
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
        let changed = spell_out(&mut document);
        let after = Value::Object(document).to_string();
        assert_eq!(changed, before != after, "{text}");
        after
    }

    #[test]
    fn names_become_objects_and_gzip_gets_a_level() {
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
    fn what_every_client_reads_is_left_alone() {
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
