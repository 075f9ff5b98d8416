//! Tests of all parsers with hostile and foreign documents: no panics, errors for invalid documents, and correct results
//! for documents of other writers.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::test_codecs::test_codec;
use super::*;

const V3: &str = r#"{"zarr_format":3,"node_type":"array","shape":[4,6],"data_type":"float32",
    "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},
    "chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":"NaN",
    "codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":1}}],
    "attributes":{"a":[1,{"b":null}]},"dimension_names":["y","x"],"storage_transformers":[]}"#;
const V2: &str = r#"{"zarr_format":2,"shape":[4,6],"chunks":[2,3],"dtype":"<f4","fill_value":"NaN","order":"F",
    "compressor":{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1},"filters":[{"id":"delta","dtype":"<f4"}],
    "dimension_separator":"/"}"#;

/// Parses a document as every kind. No parser may panic; the result is that of the document's own kind.
fn parse_any(document: &[u8]) -> Result<(), MetadataError> {
    let limits = MetadataLimits::default();
    let v3 = v3::parse(document, &limits).map(|node| {
        // Every parsed document can be written and parsed again.
        let document = match node {
            v3::V3Node::Array(array) => array.to_document(),
            v3::V3Node::Group(group) => group.to_document(),
        };
        assert!(v3::parse(document.to_string().as_bytes(), &limits).is_ok(), "{document}");
    });
    let v2 =
        v2::parse_array(document, Some(document), test_codec, &limits).map(|array| drop(array.to_document()));
    let _ = v2::parse_group(document, Some(document), &limits);
    let is_v2 = document.windows(15).any(|window| window == b"\"zarr_format\":2");
    if is_v2 { v2 } else { v3 }
}

/// A document with the text of one member's value replaced.
fn with(document: &str, pointer: &str, value: &str) -> String {
    let mut parsed: Value = serde_json::from_str(document).unwrap();
    *parsed.pointer_mut(pointer).unwrap() = json!("@@@");
    parsed.to_string().replacen("\"@@@\"", value, 1)
}

#[test]
fn the_documents_that_other_tests_modify_are_valid() {
    assert_eq!(parse_any(V3.as_bytes()), Ok(()));
    assert_eq!(parse_any(V2.as_bytes()), Ok(()));
}

#[test]
fn invalid_v3_documents_are_rejected() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let many = format!("[{}1]", "1,".repeat(100));
    let codecs = format!("[{}\"bytes\"]", "\"crc32c\",".repeat(100));
    for (pointer, value) in [
        ("/zarr_format", "2"),
        ("/zarr_format", "3.0"),
        ("/zarr_format", "\"3\""),
        ("/zarr_format", "null"),
        ("/zarr_format", "[3]"),
        ("/node_type", "\"Array\""),
        ("/node_type", "null"),
        ("/node_type", "\"group\""),
        ("/shape", "[4]"),
        ("/shape", "[4,6,1]"),
        ("/shape", "[4,-6]"),
        ("/shape", "[4,6.0]"),
        ("/shape", "[4,6e0]"),
        ("/shape", "[4,\"6\"]"),
        ("/shape", "[4,true]"),
        ("/shape", "[4,null]"),
        ("/shape", "[4,9223372036854775808]"),
        ("/shape", "[4,1e400]"),
        ("/shape", "[4,NaN]"),
        ("/shape", "{}"),
        ("/shape", "4"),
        ("/shape", many.as_str()),
        ("/shape", deep.as_str()),
        ("/data_type", "\"float\""),
        ("/data_type", "\"<f4\""),
        ("/data_type", "\"r7\""),
        ("/data_type", "\"r8000000000\""),
        ("/data_type", "[\"float32\"]"),
        ("/data_type", "{\"name\":\"float32\",\"must_understand\":false}"),
        ("/chunk_grid", "\"regular\""),
        ("/chunk_grid", "\"rectilinear\""),
        (
            "/chunk_grid",
            "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\",\"chunk_shapes\":[1]}}",
        ),
        ("/chunk_grid", "[2,3]"),
        ("/chunk_grid/configuration", "null"),
        ("/chunk_grid/configuration", "{\"chunk_shape\":[2,3],\"offset\":[1,1]}"),
        ("/chunk_grid/configuration/chunk_shape", "[2]"),
        ("/chunk_grid/configuration/chunk_shape", "[2,0]"),
        ("/chunk_grid/configuration/chunk_shape", "[2,-3]"),
        ("/chunk_grid/configuration/chunk_shape", "[2,3.0]"),
        ("/chunk_grid/configuration/chunk_shape", "[2,9223372036854775808]"),
        ("/chunk_grid/configuration/chunk_shape", "[2,[3]]"),
        ("/chunk_grid/configuration/chunk_shape", "6"),
        ("/chunk_key_encoding", "null"),
        ("/chunk_key_encoding", "\"suffix\""),
        ("/chunk_key_encoding", "{\"name\":\"default\",\"separator\":\".\"}"),
        ("/chunk_key_encoding", "{\"name\":\"default\",\"must_understand\":false}"),
        ("/chunk_key_encoding/configuration/separator", "\"-\""),
        ("/chunk_key_encoding/configuration/separator", "\"\""),
        ("/chunk_key_encoding/configuration/separator", "null"),
        ("/fill_value", "\"none\""),
        ("/fill_value", "\"0x1ffffffff\""),
        ("/fill_value", "{}"),
        ("/fill_value", "[1,2]"),
        ("/codecs", "[]"),
        ("/codecs", "{}"),
        ("/codecs", "null"),
        ("/codecs", "[1]"),
        ("/codecs", "[\"\"]"),
        ("/codecs", "[{}]"),
        ("/codecs", "[{\"name\":\"bytes\",\"name\":\"gzip\"}]"),
        ("/codecs", "[{\"id\":\"bytes\"}]"),
        ("/codecs", codecs.as_str()),
        ("/codecs/0/configuration", "[]"),
        ("/attributes", "[]"),
        ("/attributes", "\"a\""),
        ("/attributes", deep.as_str()),
        ("/dimension_names", "[\"y\"]"),
        ("/dimension_names", "[\"y\",1]"),
        ("/dimension_names", "\"yx\""),
        ("/storage_transformers", "[{\"name\":\"x\"}]"),
        ("/storage_transformers", "[1]"),
        ("/storage_transformers", "{}"),
    ] {
        let document = with(V3, pointer, value);
        assert!(parse_any(document.as_bytes()).is_err(), "{document}");
    }
}

#[test]
fn invalid_v2_documents_are_rejected() {
    for (pointer, value) in [
        ("/shape", "[4]"),
        ("/shape", "[4,-6]"),
        ("/shape", "[4,6.0]"),
        ("/shape", "null"),
        ("/chunks", "[2]"),
        ("/chunks", "[2,0]"),
        ("/chunks", "true"),
        ("/chunks", "null"),
        ("/dtype", "\"<f3\""),
        ("/dtype", "\"|f4\""),
        ("/dtype", "\"|O\""),
        ("/dtype", "\"|S0\""),
        ("/dtype", "\"<U2147483647\""),
        ("/dtype", "[[\"a\",\"<i4\"]]"),
        ("/dtype", "null"),
        ("/fill_value", "\"x\""),
        ("/fill_value", "[1,2]"),
        ("/fill_value", "{}"),
        ("/order", "\"A\""),
        ("/order", "null"),
        ("/compressor", "\"gzip\""),
        ("/compressor", "{}"),
        ("/compressor", "{\"id\":1}"),
        ("/compressor", "[{\"id\":\"gzip\"}]"),
        ("/filters", "{\"id\":\"delta\"}"),
        ("/filters", "[null]"),
        ("/filters", "[{\"dtype\":\"<f4\"}]"),
        ("/dimension_separator", "\"\""),
        ("/dimension_separator", "0"),
    ] {
        let document = with(V2, pointer, value);
        assert!(parse_any(document.as_bytes()).is_err(), "{document}");
    }
    for format in ["1", "3", "\"2\"", "null"] {
        let document = with(V2, "/zarr_format", format);
        assert!(
            v2::parse_array(document.as_bytes(), None, test_codec, &MetadataLimits::default()).is_err(),
            "{document}"
        );
    }
}

#[test]
fn a_missing_member_is_named_in_the_error() {
    let limits = MetadataLimits::default();
    for (document, members) in [
        (
            V3,
            &["zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "codecs"]
                as &[_],
        ),
        (V2, &["zarr_format", "shape", "chunks", "dtype", "order"]),
    ] {
        for member in members {
            let mut parsed: Value = serde_json::from_str(document).unwrap();
            parsed.as_object_mut().unwrap().remove(*member);
            let text = parsed.to_string();
            let error = if document == V3 {
                v3::parse(text.as_bytes(), &limits).err()
            } else {
                v2::parse_array(text.as_bytes(), None, test_codec, &limits).err()
            };
            assert_eq!(error, Some(MetadataError::invalid(*member, "is missing")));
        }
    }
}

#[test]
fn an_error_does_not_repeat_a_document_of_megabytes() {
    let document = with(V3, "/data_type", &format!("\"{}\"", "é".repeat(1 << 20)));
    assert!(parse_any(document.as_bytes()).unwrap_err().to_string().len() < 1000);
}

/// JSON values of every kind, some similar to those in documents.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "bytes",
            "regular",
            "rectilinear",
            "inline",
            "default",
            "v2",
            "float16",
            "r16",
            "|V2",
            "<i8",
            "0x7e00",
            "NaN",
            "<M8[25s]",
            "|S3",
            "<U2",
            "numpy.datetime64",
            "fixed_length_utf32",
            "raw_bytes",
            "s",
            "NaT",
            "YWI="
        ])
        .prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let names = prop::sample::select(vec![
            "name",
            "configuration",
            "must_understand",
            "id",
            "chunk_shape",
            "chunk_shapes",
            "kind",
            "unit",
            "scale_factor",
            "length_bytes",
            "x",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..4).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

/// The pointers to every value in a document.
fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), member)).collect(),
        _ => Vec::new(),
    };
    children
        .into_iter()
        .flat_map(|(step, child)| {
            let below = pointers(child).into_iter().map(move |rest| format!("/{step}{rest}"));
            below.collect::<Vec<_>>()
        })
        .chain([String::new()])
        .collect()
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(document in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_any(&document);
    }

    #[test]
    fn a_document_with_bytes_changed_never_panics(
        v3 in any::<bool>(), at in any::<prop::sample::Index>(), new in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let mut document = if v3 { V3 } else { V2 }.as_bytes().to_vec();
        let index = at.index(document.len());
        document[index] = new;
        let _ = parse_any(&document);
        document.truncate(cut.index(document.len()));
        let _ = parse_any(&document);
    }

    #[test]
    fn a_document_with_a_value_changed_never_panics(
        v3 in any::<bool>(), at in any::<prop::sample::Index>(), value in any_json(),
    ) {
        let mut document: Value = serde_json::from_str(if v3 { V3 } else { V2 }).unwrap();
        let pointers = pointers(&document);
        *document.pointer_mut(&pointers[at.index(pointers.len())]).unwrap() = value;
        let _ = parse_any(document.to_string().as_bytes());
    }

    #[test]
    fn emitted_json_parses_to_the_same_value(value in any_json()) {
        let text = value.to_string();
        let read = parse_document(text.as_bytes(), &MetadataLimits::default());
        // Values have no repeated names, so neither does their text.
        prop_assert_eq!(read.map(|read| read.to_string()), Ok(text));
    }
}

/// Arrays of other writers, if the fixtures are present.
fn fixtures(folder: &str) -> Option<(std::path::PathBuf, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(folder);
    let expected = std::fs::read(folder.join("expected.json")).ok()?;
    Some((folder, serde_json::from_slice(&expected).unwrap()))
}

fn parse_fixture(folder: &Path, zarr_format: &Value) -> Result<ArrayMetadata, MetadataError> {
    let limits = MetadataLimits::default();
    if zarr_format == &json!(2) {
        let zattrs = std::fs::read(folder.join(".zattrs")).ok();
        return v2::parse_array(
            &std::fs::read(folder.join(".zarray")).unwrap(),
            zattrs.as_deref(),
            test_codec,
            &limits,
        );
    }
    match v3::parse(&std::fs::read(folder.join("zarr.json")).unwrap(), &limits)? {
        v3::V3Node::Array(array) => Ok(array),
        v3::V3Node::Group(_) => panic!("{} is a group", folder.display()),
    }
}

/// Whether the type must be supported: all but one that only a single project uses.
fn is_known(dtype: &Value) -> bool {
    dtype["name"] != "optional"
}

/// Compares the parsed arrays of a folder with `expected.json`. Returns the number of parsed arrays.
fn check_fixtures(folder: &str) -> usize {
    let Some((folder, expected)) = fixtures(folder) else {
        println!("skipped: there is no {folder} beside the project");
        return usize::MAX;
    };
    let mut read = 0;
    for entry in expected {
        let path = entry["path"].as_str().unwrap();
        let result = parse_fixture(&folder.join(path), &entry["zarr_format"]);
        if !is_known(&entry["dtype"]) {
            assert!(result.is_err(), "{path}: {result:?}");
            continue;
        }
        let array = match (result, entry["expect"].as_str()) {
            (Ok(array), _) => array,
            (Err(_), Some("reject")) | (Err(MetadataError::Unsupported { .. }), Some("no_oracle")) => {
                continue;
            }
            (Err(error), _) => panic!("{path}: {error}"),
        };
        read += 1;
        assert_eq!(json!(array.shape), entry["shape"], "{path}");
        if let (ChunkGridMetadata::Regular { chunk_shape }, Value::Array(chunks)) =
            (&array.chunk_grid, &entry["chunks"])
        {
            assert_eq!(json!(chunk_shape), json!(chunks), "{path}");
        }
        if let Some(separator) = entry["separator"].as_str() {
            let encodings = [Separator::Slash, Separator::Dot].map(ChunkKeyEncodingMetadata::V2);
            let found = match array.chunk_key_encoding {
                ChunkKeyEncodingMetadata::V2Unspecified => ChunkKeyEncodingMetadata::V2(Separator::Dot),
                given => given,
            };
            assert_eq!(found, encodings[usize::from(separator != "/")], "{path}");
        }
        // The bytes of a struct follow the byte orders of its parts, which `expected.json` does not give.
        if matches!(array.data_type, DataType::Struct(_)) {
            continue;
        }
        // `expected.json` gives fill values as JSON of either version; the elements must be equal.
        let expected = FillValue::from_v2(&array.data_type, entry.get("fill_value")).unwrap();
        assert_eq!(array.fill_value, expected, "{path}");
    }
    read
}

#[test]
fn documents_written_by_zarr_python_are_parsed_as_expected() {
    assert!(check_fixtures("generated") > 250);
}

#[test]
fn documents_of_other_projects_are_parsed_as_expected() {
    assert!(check_fixtures("public") > 150);
}
