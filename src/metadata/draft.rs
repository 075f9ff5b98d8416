//! Detection of documents of drafts of Zarr v3, which differ from the final version in names and meaning.
//!
//! Drafts are not supported; detecting them allows for a precise error.

use serde_json::{Map, Value};

use super::MetadataError;

/// Members that only drafts had.
const MEMBERS: [&str; 5] =
    ["metadata_encoding", "metadata_key_suffix", "chunk_memory_layout", "compressor", "extensions"];

/// The error for a document of a draft.
#[must_use]
pub fn unsupported() -> MetadataError {
    MetadataError::unsupported("format", "a draft of Zarr v3")
}

/// Rejects the document of a draft.
pub(super) fn check_not_draft(members: &Map<String, Value>) -> Result<(), MetadataError> {
    let protocol = members.get("zarr_format").is_some_and(Value::is_string);
    let known = MEMBERS.iter().any(|member| marks_draft(member, members));
    // In drafts, types were type strings of numpy or objects with a fallback, and a grid had `type` instead of `name`.
    let data_type = members.get("data_type").is_some_and(|data_type| match data_type {
        Value::String(name) => name.starts_with(['<', '>', '|']),
        Value::Object(extension) => extension.contains_key("fallback"),
        _ => false,
    });
    let grid = members.get("chunk_grid").and_then(Value::as_object);
    let grid = grid.is_some_and(|grid| grid.contains_key("type") && !grid.contains_key("name"));
    if protocol || known || data_type || grid { Err(unsupported()) } else { Ok(()) }
}

/// Whether a member is present and the final version would not ignore it.
fn marks_draft(member: &str, members: &Map<String, Value>) -> bool {
    members.get(member).is_some_and(|value| value.get("must_understand") != Some(&Value::Bool(false)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{MetadataLimits, v3};
    use super::*;

    #[test]
    fn documents_with_any_sign_of_a_draft_are_rejected() {
        for document in [
            json!({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json"}),
            json!({"metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0"}),
            json!({"zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "<f8"}),
            json!({"zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "|b1"}),
            json!({"data_type": {"extension": "https://x.example", "type": "<M8[ns]", "fallback": "<i8"}}),
            json!({"chunk_grid": {"type": "regular", "chunk_shape": [1], "separator": "/"}}),
            json!({"shape": [1], "chunk_memory_layout": "C"}),
            json!({"shape": [1], "compressor": {"codec": "https://purl.org/zarr/spec/codec/gzip/1.0"}}),
            json!({"attributes": {}, "extensions": []}),
        ] {
            let parsed = v3::parse(document.to_string().as_bytes(), &MetadataLimits::default());
            assert_eq!(parsed.err(), Some(unsupported()), "{document}");
        }
    }

    #[test]
    fn documents_of_the_final_version_are_accepted() {
        for document in [
            json!({"zarr_format": 3, "node_type": "array", "data_type": "float64", "chunk_grid": {"name": "regular"}}),
            json!({"data_type": {"name": "struct", "configuration": {}}, "extensions": {"must_understand": false}}),
            json!({"attributes": {"fallback": 1, "compressor": {"codec": 1}, "extensions": []}}),
            json!({"chunk_grid": {"name": "x", "type": 1}}),
        ] {
            let Value::Object(members) = document else { panic!("members") };
            assert_eq!(check_not_draft(&members), Ok(()), "{members:?}");
        }
    }
}
