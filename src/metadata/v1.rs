//! Zarr v1 documents: `meta` and `attrs` (Zarr v1, "Metadata"). v1 has only arrays.
//!
//! A document is rewritten as the equivalent v2 document, which is then parsed: `compression` and its options become a
//! `compressor`. Members unknown to v1 (filters, other separators) are dropped, because they must not change the data.

use serde_json::{Map, Value, json};

use super::extension::{into_object, optional, required};
use super::json::parse_document;
use super::{ArrayMetadata, MetadataError, MetadataLimits, V2CodecLookup, ZarrFormat, v2};

/// The members that have the same meaning in both versions.
const SHARED: [&str; 5] = ["shape", "chunks", "dtype", "fill_value", "order"];

/// Parses `meta`, and `attrs` if present. `None` if the document is not one of Zarr v1, because other files may have the
/// name `meta` too.
///
/// # Errors
/// [`MetadataError`] for an invalid document with `"zarr_format": 1`.
pub fn parse_array(
    meta: &[u8],
    attrs: Option<&[u8]>,
    codecs: V2CodecLookup,
    limits: &MetadataLimits,
) -> Result<Option<ArrayMetadata>, MetadataError> {
    let Ok(document) = parse_document(meta, limits) else { return Ok(None) };
    let Ok(members) = into_object(document) else { return Ok(None) };
    if members.get("zarr_format").and_then(Value::as_u64) != Some(1) {
        return Ok(None);
    }
    let members = as_v2(members, codecs)?;
    let array = v2::array(&members, v2::attributes(attrs, limits)?, codecs, limits)?;
    Ok(Some(ArrayMetadata { zarr_format: ZarrFormat::V1, ..array }))
}

/// The members of the v2 document that means the same.
fn as_v2(
    mut members: Map<String, Value>,
    codecs: V2CodecLookup,
) -> Result<Map<String, Value>, MetadataError> {
    let compressor = compressor(&members, codecs)?;
    let mut rewritten = Map::new();
    for member in SHARED {
        if let Some(value) = members.shift_remove(member) {
            rewritten.insert(member.to_owned(), value);
        }
    }
    rewritten.insert("compressor".to_owned(), compressor);
    rewritten.insert("dimension_separator".to_owned(), json!("."));
    Ok(rewritten)
}

/// The v2 compressor. Options that are no object are the first that the compressor takes.
fn compressor(members: &Map<String, Value>, codecs: V2CodecLookup) -> Result<Value, MetadataError> {
    const OPTIONS: &str = "compression_opts";
    let id = match required(members, "compression")? {
        Value::Null => return Ok(Value::Null),
        Value::String(name) if name == "none" => return Ok(Value::Null),
        Value::String(name) if !name.is_empty() => name.clone(),
        _ => return Err(MetadataError::invalid("compression", "must be a name or null")),
    };
    let mut compressor = match optional(members, OPTIONS) {
        None => Map::new(),
        Some(Value::Object(options)) => options.clone(),
        Some(first @ (Value::Number(_) | Value::String(_))) => {
            let name = codecs(&id).map_or("level", |(_, codec)| codec.v1_option);
            Map::from_iter([(name.to_owned(), first.clone())])
        }
        Some(_) => {
            return Err(MetadataError::invalid(OPTIONS, "must be a number, a string, an object or null"));
        }
    };
    compressor.insert("id".to_owned(), Value::String(id));
    Ok(Value::Object(compressor))
}

#[cfg(test)]
mod tests {
    use super::super::test_codecs::test_codec;
    use super::super::{ChunkKeyEncodingMetadata, CodecMetadata, DataType, Separator};
    use super::*;

    fn meta_with(members: Value) -> Vec<u8> {
        let mut document = json!({
            "zarr_format": 1, "shape": [20, 30], "chunks": [7, 8], "dtype": "<i4", "compression": null,
            "compression_opts": null, "fill_value": 42, "order": "C",
        });
        let Value::Object(members) = members else { panic!("members") };
        document.as_object_mut().unwrap().extend(members);
        document.to_string().into_bytes()
    }

    fn array_with(members: Value) -> Result<Option<ArrayMetadata>, MetadataError> {
        parse_array(&meta_with(members), None, test_codec, &MetadataLimits::default())
    }

    fn last_codec(members: Value) -> CodecMetadata {
        array_with(members).unwrap().unwrap().codecs.pop().unwrap()
    }

    #[test]
    fn an_array_document_is_parsed() {
        let attrs = br#"{"_ARRAY_DIMENSIONS":["y","x"],"a":NaN}"#;
        let array = parse_array(&meta_with(json!({})), Some(attrs), test_codec, &MetadataLimits::default());
        let array = array.unwrap().unwrap();
        assert_eq!(array.zarr_format, ZarrFormat::V1);
        assert_eq!(array.data_type, DataType::Int32);
        assert_eq!(array.shape, [20, 30]);
        assert_eq!(array.fill_value.as_bytes(), [42, 0, 0, 0]);
        assert_eq!(array.chunk_key_encoding, ChunkKeyEncodingMetadata::V2(Separator::Dot));
        assert_eq!(array.codecs, [CodecMetadata::new("bytes", json!({"endian": "little"}))]);
        assert_eq!(array.attributes.get("a"), Some(json!("NaN")));
    }

    #[test]
    fn compression_options_may_be_a_number_a_string_an_object_or_nothing() {
        for (name, options, expected) in [
            ("zlib", json!(1), CodecMetadata::new("zlib", json!({"level": 1}))),
            ("zlib", json!(null), CodecMetadata::new("zlib", json!({}))),
            ("bz2", json!(9), CodecMetadata::new("numcodecs.bz2", json!({"level": 9}))),
            ("blosc", json!("zstd"), CodecMetadata::new("blosc", json!({"cname": "zstd"}))),
            (
                "blosc",
                json!({"cname": "lz4", "clevel": 5, "shuffle": 1}),
                CodecMetadata::new("blosc", json!({"cname": "lz4", "clevel": 5, "shuffle": 1})),
            ),
            ("lzma", json!({"preset": 1}), CodecMetadata::new("numcodecs.lzma", json!({"preset": 1}))),
        ] {
            let members = json!({"compression": name, "compression_opts": options});
            assert_eq!(last_codec(members), expected);
        }
        for none in [json!(null), json!("none")] {
            let codec = last_codec(json!({"compression": none, "compression_opts": 1}));
            assert_eq!(codec.name, "bytes");
        }
        for bad in [json!(true), json!([1])] {
            assert!(array_with(json!({"compression": "zlib", "compression_opts": bad})).is_err());
        }
        assert!(array_with(json!({"compression": 1})).is_err());
    }

    #[test]
    fn members_unknown_to_v1_are_ignored() {
        let more = json!({
            "filters": [{"id": "delta", "dtype": "<i4"}], "dimension_separator": "/", "compressor": {"id": "zlib"},
        });
        assert_eq!(array_with(more), array_with(json!({})));
    }

    #[test]
    fn documents_of_other_formats_are_no_arrays() {
        let limits = MetadataLimits::default();
        for text in ["", "binary\0", "[1]", "{}", r#"{"zarr_format": 2}"#, r#"{"zarr_format": "1"}"#, "1"] {
            assert_eq!(parse_array(text.as_bytes(), None, test_codec, &limits), Ok(None), "{text}");
        }
    }

    #[test]
    fn a_missing_member_is_named_in_the_error_and_invalid_ones_are_rejected() {
        for member in ["shape", "chunks", "dtype", "compression", "order"] {
            let mut parsed: Value = serde_json::from_slice(&meta_with(json!({}))).unwrap();
            parsed.as_object_mut().unwrap().remove(member);
            let error =
                parse_array(parsed.to_string().as_bytes(), None, test_codec, &MetadataLimits::default());
            assert_eq!(error, Err(MetadataError::invalid(member, "is missing")));
        }
        assert!(array_with(json!({"shape": [1, -2]})).is_err());
        assert!(array_with(json!({"dtype": "|O"})).is_err());
    }
}
