//! Canonical spelling of codecs: objects with complete configurations, as every reader accepts them (Zarr core 3.1,
//! "Extension definition"; Zarr codecs, "bytes", "transpose").
//!
//! The meaning does not change. An invalid codec stays as it is; its parser reports the error.

use serde_json::{Map, Value, json};

use super::{DataType, Endianness};

/// The gzip level where a document gives none. Decoding does not depend on it.
const GZIP_LEVEL: u64 = 5;

/// The array to which a list of codecs applies.
#[derive(Clone, Copy, Debug)]
struct Of<'a> {
    /// Its number of dimensions; `None` if unknown.
    rank: Option<usize>,
    /// The type of its elements; `None` if unknown.
    data_type: Option<&'a DataType>,
}

/// Spells out the codecs of an array with a rank and a data type. Returns whether anything changed.
pub fn spell_out_codecs(codecs: &mut Value, rank: usize, data_type: Option<&DataType>) -> bool {
    spell_out(codecs, Of { rank: Some(rank), data_type })
}

/// Spells out a list of codecs. Recursive in the nesting of shards, which the depth limit of documents bounds.
fn spell_out(codecs: &mut Value, array: Of) -> bool {
    let Some(codecs) = codecs.as_array_mut() else { return false };
    let (mut changed, mut of) = (false, array);
    for codec in codecs {
        changed |= spell_out_codec(codec, of);
        match codec.get("name").and_then(Value::as_str) {
            Some("transpose") => {}
            Some("reshape") => of.rank = None,
            // Other codecs may change the data type to one with a byte order.
            _ => of.data_type = None,
        }
    }
    changed
}

fn spell_out_codec(codec: &mut Value, of: Of) -> bool {
    let mut changed = false;
    if let Value::String(name) = codec {
        *codec = json!({ "name": name });
        changed = true;
    }
    let Some(members) = codec.as_object_mut() else { return changed };
    let Some(name) = members.get("name").and_then(Value::as_str).map(str::to_owned) else { return changed };
    // These codecs must have a configuration, even if it is empty.
    let needs_order = matches!(name.as_str(), "bytes" | "endian") && has_byte_order(of.data_type);
    if (needs_order || name == "gzip" || name.starts_with("numcodecs."))
        && !members.contains_key("configuration")
    {
        members.insert("configuration".to_owned(), json!({}));
        changed = true;
    }
    let Some(configuration) = members.get_mut("configuration").and_then(Value::as_object_mut) else {
        return changed;
    };
    changed
        | match name.as_str() {
            "gzip" => complete(configuration, "level", || json!(GZIP_LEVEL)),
            "bytes" | "endian" if needs_order => {
                complete(configuration, "endian", || json!(Endianness::Little.name()))
            }
            "transpose" => of.rank.is_some_and(|rank| spell_out_order(configuration, rank)),
            "sharding_indexed" => {
                let index = Of { rank: None, data_type: Some(&DataType::UInt64) };
                [("codecs", of), ("index_codecs", index)].into_iter().fold(false, |changed, (list, of)| {
                    configuration.get_mut(list).is_some_and(|codecs| spell_out(codecs, of)) | changed
                })
            }
            _ => false,
        }
}

/// Whether elements have, or may have, a byte order.
fn has_byte_order(data_type: Option<&DataType>) -> bool {
    data_type.is_none_or(|data_type| !data_type.is_variable() && data_type.endian_unit_bytes() != Some(1))
}

fn complete(configuration: &mut Map<String, Value>, member: &str, value: impl Fn() -> Value) -> bool {
    let is_missing = configuration.get(member).is_none_or(Value::is_null);
    if is_missing {
        configuration.insert(member.to_owned(), value());
    }
    is_missing
}

/// Replaces the names that drafts of v3 gave two permutations.
fn spell_out_order(configuration: &mut Map<String, Value>, rank: usize) -> bool {
    let order: Vec<usize> = match configuration.get("order").and_then(Value::as_str) {
        Some("C") => (0..rank).collect(),
        Some("F") => (0..rank).rev().collect(),
        _ => return false,
    };
    configuration.insert("order".to_owned(), json!(order));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelt_out(codecs: &Value, data_type: &DataType) -> Value {
        let mut spelt = codecs.clone();
        assert_eq!(spell_out_codecs(&mut spelt, 2, Some(data_type)), spelt != *codecs, "{codecs}");
        spelt
    }

    #[test]
    fn names_are_replaced_by_objects_and_configurations_completed() {
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        for (codecs, expected) in [
            (json!(["bytes", "gzip"]), json!([little, {"name": "gzip", "configuration": {"level": 5}}])),
            (json!([{"name": "bytes", "configuration": {}}]), json!([little])),
            (json!(["numcodecs.crc32"]), json!([{"name": "numcodecs.crc32", "configuration": {}}])),
            (
                json!([{"name": "sharding_indexed", "configuration": {
                    "codecs": ["bytes"], "index_codecs": ["bytes", "crc32c"],
                }}]),
                json!([{"name": "sharding_indexed", "configuration": {
                    "codecs": [little], "index_codecs": [little, {"name": "crc32c"}],
                }}]),
            ),
            (
                json!([{"name": "transpose", "configuration": {"order": "F"}}]),
                json!([{"name": "transpose", "configuration": {"order": [1, 0]}}]),
            ),
        ] {
            assert_eq!(spelt_out(&codecs, &DataType::Int16), expected);
        }
        // An element of one byte has no byte order, but the result of a cast may have one.
        assert_eq!(spelt_out(&json!(["bytes"]), &DataType::UInt8), json!([{"name": "bytes"}]));
        let cast = json!({"name": "cast_value", "configuration": {"data_type": "int16"}});
        assert_eq!(spelt_out(&json!([cast, "bytes"]), &DataType::UInt8), json!([cast, little]));
    }

    #[test]
    fn complete_and_invalid_codecs_stay_unchanged() {
        for codecs in [
            json!([{"name": "bytes", "configuration": {"endian": "big"}}]),
            json!([{"name": "gzip", "configuration": {"level": 1}}]),
            json!([
                {"name": "reshape", "configuration": {"shape": [1]}},
                {"name": "transpose", "configuration": {"order": "F"}},
            ]),
            json!([{"name": "transpose", "configuration": {"order": "A"}}]),
            json!([1, null, {"name": 2}, {"name": "sharding_indexed"}, {"name": "gzip", "configuration": 3}]),
            json!({}),
        ] {
            assert_eq!(spelt_out(&codecs, &DataType::Int16), codecs);
        }
    }
}
