//! Zarr v3 documents: `zarr.json` (Zarr core 3.1, "Metadata").
//!
//! Unknown members and extensions are rejected by name unless the document marks them as ignorable. The order of codecs
//! and their configurations are validated later, by `codec`. The module `consolidated` parses inline consolidated metadata.

use serde_json::{Map, Value};

use super::extension::{self, Extension, into_object, optional, required};
use super::json::parse_with_attributes;
use super::parser::ATTRIBUTES;
use super::{
    ArrayMetadata, Attributes, ChunkGridMetadata, ChunkKeyEncodingMetadata, CodecMetadata, DataType,
    FillValue, GroupMetadata, MetadataError, MetadataLimits, ZarrFormat, consolidated, draft,
};
use crate::units::counted;

/// The node described by a `zarr.json`.
#[derive(Clone, Debug, PartialEq)]
pub enum V3Node {
    /// `"node_type": "array"`
    Array(ArrayMetadata),
    /// `"node_type": "group"`
    Group(GroupMetadata),
}

/// The members of an array's document.
pub(super) const ARRAY_MEMBERS: [&str; 11] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "storage_transformers",
    "dimension_names",
];
/// The members of a group's document.
const GROUP_MEMBERS: [&str; 3] = ["zarr_format", "node_type", "attributes"];

/// Parses `zarr.json`.
///
/// # Errors
/// [`MetadataError`] names the invalid or unsupported member.
pub fn parse(document: &[u8], limits: &MetadataLimits) -> Result<V3Node, MetadataError> {
    let document = consolidated::without_copies(document, limits);
    let (value, attributes) = parse_with_attributes(&document, limits)?;
    let members = into_object(value)?;
    check_format(&members)?;
    match required(&members, "node_type")?.as_str() {
        Some("array") => array(&members, limits, attributes).map(V3Node::Array),
        Some("group") => group(&members, attributes).map(V3Node::Group),
        _ => Err(MetadataError::invalid("node_type", "must be \"array\" or \"group\"")),
    }
}

fn check_format(members: &Map<String, Value>) -> Result<(), MetadataError> {
    draft::check_not_draft(members)?;
    match required(members, "zarr_format")?.as_u64() {
        Some(3) => Ok(()),
        _ => Err(MetadataError::invalid("zarr_format", "must be 3")),
    }
}

/// Rejects unknown members, unless they have `"must_understand": false`.
fn check_members(members: &Map<String, Value>, known: &[&str]) -> Result<(), MetadataError> {
    // The parsers of known members check their contents; attributes, for example, may have any names.
    for (name, value) in members.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
        let ignorable = match value.get("must_understand") {
            Some(Value::Bool(must_understand)) => !must_understand,
            Some(_) => {
                return Err(MetadataError::invalid(name.as_str(), "`must_understand` must be true or false"));
            }
            None => false,
        };
        // Some writers omit `must_understand` here, or write `null` even on arrays; it never changes the data.
        let consolidated = name == consolidated::INLINE && (value.is_null() || value.is_object());
        if !ignorable && !consolidated {
            return Err(MetadataError::unsupported("member", name.as_str()));
        }
    }
    Ok(())
}

fn group(
    members: &Map<String, Value>,
    attributes: Option<Attributes>,
) -> Result<GroupMetadata, MetadataError> {
    check_members(members, &GROUP_MEMBERS)?;
    let is_consolidated = members.get(consolidated::INLINE).is_some_and(Value::is_object);
    let attributes = checked_attributes(members, attributes)?;
    Ok(GroupMetadata { zarr_format: ZarrFormat::V3, is_consolidated, attributes })
}

/// The array described by the members of its document and its attributes.
pub(super) fn array(
    members: &Map<String, Value>,
    limits: &MetadataLimits,
    attributes: Option<Attributes>,
) -> Result<ArrayMetadata, MetadataError> {
    check_members(members, &ARRAY_MEMBERS)?;
    let shape = extension::lengths(required(members, "shape")?, "shape", limits.rank)?;
    let data_type = DataType::from_v3(required(members, "data_type")?)?;
    let chunk_grid = ChunkGridMetadata::from_v3(required(members, "chunk_grid")?, &shape)?;
    let chunk_key_encoding = required(members, "chunk_key_encoding")?;
    let chunk_key_encoding = ChunkKeyEncodingMetadata::from_v3(chunk_key_encoding, shape.len())?;
    let fill_value = FillValue::from_v3_leniently(&data_type, members.get("fill_value"))?;
    let codecs = codecs(required(members, "codecs")?, limits)?;
    check_storage_transformers(members, limits)?;
    let dimension_names = dimension_names(members, shape.len())?;
    Ok(ArrayMetadata {
        zarr_format: ZarrFormat::V3,
        shape,
        data_type,
        chunk_grid,
        chunk_key_encoding,
        fill_value,
        has_fill_value: true,
        codecs,
        attributes: checked_attributes(members, attributes)?,
        dimension_names,
    })
}

/// The attributes, if the member is an object, `null` or absent.
fn checked_attributes(
    members: &Map<String, Value>,
    attributes: Option<Attributes>,
) -> Result<Attributes, MetadataError> {
    match (attributes, members.get(ATTRIBUTES)) {
        (Some(attributes), _) => Ok(attributes),
        (None, None | Some(Value::Null)) => Ok(Attributes::default()),
        (None, Some(_)) => Err(MetadataError::invalid(ATTRIBUTES, "must be an object")),
    }
}

fn codecs(value: &Value, limits: &MetadataLimits) -> Result<Vec<CodecMetadata>, MetadataError> {
    let items = extension::items(value, "codecs", limits.codecs)?;
    if items.is_empty() {
        return Err(MetadataError::invalid("codecs", "must have an array -> bytes codec"));
    }
    items.iter().enumerate().map(|(index, item)| codec(item, index)).collect()
}

fn codec(value: &Value, index: usize) -> Result<CodecMetadata, MetadataError> {
    let Extension { name, configuration, must_understand, .. } =
        Extension::parse(value, &format!("codecs[{index}]"))?;
    // The codec's name before the specification was final.
    let name = if name == "endian" { "bytes".to_owned() } else { name };
    Ok(CodecMetadata { name, configuration, must_understand })
}

/// Rejects storage transformers: none is defined, so each one is unknown.
fn check_storage_transformers(
    members: &Map<String, Value>,
    limits: &MetadataLimits,
) -> Result<(), MetadataError> {
    const MEMBER: &str = "storage_transformers";
    let Some(value) = optional(members, MEMBER) else { return Ok(()) };
    match extension::items(value, MEMBER, limits.codecs)?.first() {
        None => Ok(()),
        Some(first) => {
            Err(MetadataError::unsupported("storage transformer", Extension::parse(first, MEMBER)?.name))
        }
    }
}

fn dimension_names(
    members: &Map<String, Value>,
    rank: usize,
) -> Result<Option<Vec<Option<String>>>, MetadataError> {
    const MEMBER: &str = "dimension_names";
    let Some(value) = optional(members, MEMBER) else { return Ok(None) };
    let items = extension::items(value, MEMBER, usize::MAX)?;
    if items.len() != rank {
        let reason =
            format!("has {}; the array has {}", counted(items.len(), "name"), counted(rank, "dimension"));
        return Err(MetadataError::invalid(MEMBER, reason));
    }
    let name = |item: &Value| match item {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone())),
        _ => Err(MetadataError::invalid(MEMBER, "must hold strings and nulls")),
    };
    items.iter().map(name).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Separator;
    use super::*;

    /// A valid array document of shape [20, 30] with some members replaced.
    fn array_with(members: Value) -> Result<ArrayMetadata, MetadataError> {
        let mut document = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": [20, 30],
            "data_type": "int16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [7, 8]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": -1,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        });
        let Value::Object(members) = members else { panic!("members") };
        document.as_object_mut().unwrap().extend(members);
        match parse(document.to_string().as_bytes(), &MetadataLimits::default())? {
            V3Node::Array(array) => Ok(array),
            V3Node::Group(_) => panic!("a group"),
        }
    }

    fn group(document: &str) -> Result<GroupMetadata, MetadataError> {
        match parse(document.as_bytes(), &MetadataLimits::default())? {
            V3Node::Group(group) => Ok(group),
            V3Node::Array(_) => panic!("an array"),
        }
    }

    fn is_unsupported<T>(result: Result<T, MetadataError>, what: &'static str, name: &str) -> bool {
        result.err() == Some(MetadataError::unsupported(what, name))
    }

    #[test]
    fn an_array_document_is_parsed() {
        let array = array_with(json!({"attributes": {"a": 1}, "dimension_names": ["y", null]})).unwrap();
        assert_eq!(array.zarr_format, ZarrFormat::V3);
        assert_eq!(array.shape, [20, 30]);
        assert_eq!(array.data_type, DataType::Int16);
        assert_eq!(array.chunk_grid, ChunkGridMetadata::Regular { chunk_shape: vec![7, 8] });
        assert_eq!(array.chunk_key_encoding, ChunkKeyEncodingMetadata::Default(Separator::Slash));
        assert_eq!(array.fill_value.as_bytes(), [0xff, 0xff]);
        assert_eq!(array.codecs, [CodecMetadata::new("bytes", json!({"endian": "little"}))]);
        assert_eq!(array.attributes.get("a"), Some(json!(1)));
        assert_eq!(array.dimension_names, Some(vec![Some("y".to_owned()), None]));
    }

    #[test]
    fn a_group_needs_only_format_and_type() {
        let expected = GroupMetadata {
            zarr_format: ZarrFormat::V3,
            is_consolidated: false,
            attributes: Attributes::default(),
        };
        assert_eq!(group(r#"{"zarr_format":3,"node_type":"group"}"#), Ok(expected));
    }

    #[test]
    fn unknown_members_are_rejected_unless_they_may_be_ignored() {
        assert!(array_with(json!({"x": {"must_understand": false}})).is_ok());
        assert!(is_unsupported(array_with(json!({"x": {"must_understand": true}})), "member", "x"));
        assert!(is_unsupported(array_with(json!({"x": {"name": "y"}})), "member", "x"));
        assert!(is_unsupported(array_with(json!({"x": false})), "member", "x"));
        assert!(is_unsupported(array_with(json!({"x": null})), "member", "x"));
        assert!(array_with(json!({"x": {"must_understand": 0}})).is_err());
        assert!(array_with(json!({"attributes": {"must_understand": 0}})).is_ok());
        let document = r#"{"zarr_format":3,"node_type":"group","shape":[1]}"#;
        assert!(is_unsupported(group(document), "member", "shape"));
    }

    #[test]
    fn consolidated_metadata_is_accepted_on_groups_and_arrays() {
        assert!(array_with(json!({"consolidated_metadata": null})).is_ok());
        for consolidated in ["null", r#"{"kind":"inline","must_understand":false,"metadata":{}}"#, "{}"] {
            let document =
                format!(r#"{{"zarr_format":3,"node_type":"group","consolidated_metadata":{consolidated}}}"#);
            assert!(group(&document).is_ok(), "{document}");
        }
    }

    #[test]
    fn short_hand_names_and_objects_mean_the_same() {
        let array = array_with(json!({
            "data_type": {"name": "int16"}, "chunk_key_encoding": "default", "codecs": ["crc32c", {"name": "gzip"}],
        }));
        let codecs = array.unwrap().codecs;
        assert_eq!(codecs, [CodecMetadata::new("crc32c", json!({})), CodecMetadata::new("gzip", json!({}))]);
    }

    #[test]
    fn a_chunk_key_encoding_has_its_default_separator() {
        use ChunkKeyEncodingMetadata::{Default, V2};
        for (encoding, expected) in [
            (json!("default"), Default(Separator::Slash)),
            (json!({"name": "default"}), Default(Separator::Slash)),
            (json!({"name": "default", "configuration": {}}), Default(Separator::Slash)),
            (json!({"name": "default", "configuration": {"separator": "."}}), Default(Separator::Dot)),
            (json!("v2"), V2(Separator::Dot)),
            (json!({"name": "v2", "configuration": {"separator": "/"}}), V2(Separator::Slash)),
        ] {
            let array = array_with(json!({"chunk_key_encoding": encoding})).unwrap();
            assert_eq!(array.chunk_key_encoding, expected);
        }
    }

    #[test]
    fn the_endian_codec_of_old_writers_is_parsed_as_bytes() {
        let codecs = json!([{"name": "endian", "configuration": {"endian": "big"}}]);
        let array = array_with(json!({"codecs": codecs})).unwrap();
        assert_eq!(array.codecs, [CodecMetadata::new("bytes", json!({"endian": "big"}))]);
    }

    #[test]
    fn unknown_codecs_are_accepted_and_may_be_marked_as_ignorable() {
        let array =
            array_with(json!({"codecs": ["bytes", {"name": "x", "must_understand": false}]})).unwrap();
        assert_eq!(array.codecs.iter().map(|codec| codec.must_understand).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn unknown_extensions_are_named_in_the_error() {
        assert!(is_unsupported(array_with(json!({"data_type": "int3"})), "data type", "int3"));
        assert!(is_unsupported(array_with(json!({"chunk_grid": "voronoi"})), "chunk grid", "voronoi"));
        assert!(is_unsupported(array_with(json!({"chunk_key_encoding": "p"})), "chunk key encoding", "p"));
        let transformers = json!({"storage_transformers": [{"name": "t"}]});
        assert!(is_unsupported(array_with(transformers), "storage transformer", "t"));
    }

    #[test]
    fn a_null_optional_member_is_absent() {
        let members = json!({"attributes": null, "storage_transformers": null, "dimension_names": null});
        assert_eq!(array_with(members), array_with(json!({"storage_transformers": []})));
    }

    #[test]
    fn arrays_of_rank_0_and_of_length_0_are_accepted() {
        let rank_0 = json!({"chunk_shape": []});
        let grid = json!({"name": "regular", "configuration": rank_0});
        assert!(array_with(json!({"shape": [], "chunk_grid": grid, "dimension_names": []})).is_ok());
        assert!(array_with(json!({"shape": [0, 30]})).is_ok());
        let grid = json!({"name": "regular", "configuration": {"chunk_shape": [0, 8]}});
        assert!(array_with(json!({"shape": [0, 30], "chunk_grid": grid})).is_ok());
        assert!(array_with(json!({"shape": [1, 30], "chunk_grid": grid})).is_err());
    }

    #[test]
    fn a_huge_shape_is_accepted() {
        let shape = json!([9_223_372_036_854_775_807_u64, 9_223_372_036_854_775_807_u64]);
        assert!(array_with(json!({"shape": shape})).is_ok());
    }

    #[test]
    fn a_draft_of_v3_is_named_in_the_error() {
        let entry_point =
            r#"{"zarr_format":"https://purl.org/zarr/spec/protocol/core/3.0","metadata_encoding":"x"}"#;
        assert!(is_unsupported(group(entry_point), "format", "a draft of Zarr v3"));
        assert!(is_unsupported(group(r#"{"chunk_memory_layout":"C"}"#), "format", "a draft of Zarr v3"));
    }
}
