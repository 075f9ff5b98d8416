//! Dependent arrays (`tests/data/dependent`): their completed documents, their chunks, their elements,
//! and the reasons why some are refused.

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::chunk::{ChunkGrid, ChunkKeyEncoding};
use zarrd::metadata::v3::{self, V3Node};
use zarrd::metadata::{ArrayMetadata, MetadataLimits};
use zarrd::store::StoreOptions;

use crate::support::counting::Counting;
use crate::support::hierarchy::memory;
use crate::support::server::{Server, cpu, put};

pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dependent");

pub fn server() -> Server {
    Server::of(zarrd::store::open(FOLDER, &StoreOptions::default(), &cpu()).unwrap())
}

/// Each array of each family: the family, the path below its primary, and what is expected of it.
pub fn expected() -> Vec<(String, String, Value)> {
    let text = std::fs::read_to_string(format!("{FOLDER}/expected_dependent.json")).unwrap();
    let families: Value = serde_json::from_str(&text).unwrap();
    let mut all = Vec::new();
    for (family, found) in families.as_object().unwrap() {
        for (path, node) in found["nodes"].as_object().unwrap() {
            all.push((family.clone(), path.clone(), node.clone()));
        }
    }
    assert_eq!(all.len(), 43, "all that there are");
    all
}

/// `m/family.zarr/path`.
pub fn at(family: &str, path: &str) -> String {
    let slash = if path.is_empty() { "" } else { "/" };
    format!("m/{family}.zarr{slash}{path}")
}

pub fn codes(diagnostics: &Value) -> Vec<&str> {
    // Objects in responses, pairs in expectations.
    diagnostics
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found.get("code").or(found.get(0)).and_then(Value::as_str).unwrap())
        .collect()
}

async fn node(server: &Server, path: &str) -> Value {
    let answer = server.get(&format!("/v1/nodes/{path}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
    answer.json()
}

pub fn parsed(document: &Value) -> ArrayMetadata {
    match v3::parse(document.to_string().as_bytes(), &MetadataLimits::default()).unwrap() {
        V3Node::Array(array) => array,
        V3Node::Group(_) => panic!("{document} is a group"),
    }
}

#[tokio::test]
async fn every_document_is_completed_and_rebased_as_expected() {
    let server = server();
    let mut documents = 0;
    for (family, path, expected) in expected() {
        let what = at(&family, &path);
        let is_primary = path.is_empty();
        if !expected["error"].is_null() && !is_primary {
            continue;
        }
        let found = node(&server, &what).await;
        assert_eq!(codes(&found["diagnostics"]), codes(&expected["diagnostics"]), "{what}");
        if !expected["error"].is_null() {
            assert_eq!(found["error"]["code"], expected["error"][0], "{what}");
            continue;
        }
        let rebased = server.get(&format!("/v1/nodes/{what}?view=rebased")).await;
        if expected["rebased"].is_null() {
            rebased.refuses(404, "name_shadows_chunk_key", &what);
        } else {
            assert_eq!(rebased.json()["metadata"], expected["rebased"], "{what}");
        }
        if !is_primary {
            assert_eq!(found["metadata"], expected["metadata"], "{what}");
            assert_eq!(
                (&found["virtual"], &found["primary"]),
                (&json!(true), &json!(format!("{family}.zarr")))
            );
        }
        documents += 1;
        // The keys are those of the document as it was written.
        let array = parsed(&expected["metadata"]);
        let (grid, keys) = (
            ChunkGrid::new(&array.shape, &array.chunk_grid),
            ChunkKeyEncoding::new(array.chunk_key_encoding),
        );
        let chunks: u64 = grid.grid_shape().iter().product();
        assert_eq!(json!(chunks), expected["n_keys"], "{what}");
        for key in expected["keys"].as_array().unwrap() {
            let coords = keys.decode(key.as_str().unwrap(), array.shape.len()).unwrap();
            assert!(grid.contains(&coords), "{what} {key}");
            assert_eq!(keys.encode(&coords), key.as_str().unwrap(), "{what}");
        }
    }
    assert_eq!(documents, 37);
}

fn numbers(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
        number => found.push(number.as_f64().unwrap()),
    }
}

pub async fn elements(server: &Server, path: &str, query: &str) -> Vec<f64> {
    let answer = server.get(&format!("/v1/data/{path}?format=json{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{path} {query}: {:?}", answer.body);
    numbers_of(&answer.json())
}

/// The numbers in a nest of lists.
pub fn numbers_of(value: &Value) -> Vec<f64> {
    let mut found = Vec::new();
    numbers(value, &mut found);
    found
}

#[tokio::test]
async fn every_array_of_a_family_has_the_expected_elements() {
    let server = server();
    let mut arrays = 0;
    for (family, path, expected) in expected() {
        let Some(first) = expected["slice_first"].as_array() else { continue };
        let what = at(&family, &path);
        let rank = expected["slice_shape"].as_array().unwrap().len();
        let slice = format!("&slice={}", vec!["0:5"; rank].join(","));
        let first: Vec<f64> = first.iter().map(|number| number.as_f64().unwrap()).collect();
        assert_eq!(elements(&server, &what, &slice).await, first, "{what}");
        let sum: f64 = elements(&server, &what, "").await.iter().sum();
        assert_eq!(Some(sum), expected["sum"].as_f64(), "{what}");
        arrays += 1;
    }
    assert_eq!(arrays, 33);
}

#[tokio::test]
async fn an_unusable_dependent_is_refused_by_its_code_and_hides_nothing_else() {
    let server = server();
    let mut refused = 0;
    for (family, path, expected) in expected().into_iter().filter(|(_, path, _)| !path.is_empty()) {
        let what = at(&family, &path);
        let listed = node(&server, &at(&family, "")).await;
        let entry =
            listed["dependents"].as_array().unwrap().iter().find(|entry| entry["name"] == path.as_str());
        let entry = entry.unwrap_or_else(|| panic!("{what} is not listed: {listed}"));
        assert_eq!(entry["error"]["code"], expected["error"][0], "{what}");
        for route in ["nodes", "data"] {
            let answer = server.get(&format!("/v1/{route}/{what}")).await;
            match expected["error"][0].as_str() {
                Some(code) => {
                    answer.refuses(422, code, &what);
                    refused += 1;
                }
                None if answer.status == StatusCode::CONFLICT => {
                    answer.refuses(409, "key_collision", &what);
                    assert!(codes(&expected["diagnostics"]).contains(&"key_collision"), "{what}");
                }
                None => assert_eq!(answer.status, StatusCode::OK, "{what}: {:?}", answer.body),
            }
            let strict = server.get(&format!("/v1/{route}/{what}?strict=1&slice=")).await;
            match expected["strict_error"][0].as_str() {
                Some(code) => {
                    strict.refuses(422, code, &what);
                }
                // Members of the other spelling alone are not declared.
                None if family.starts_with("seed_example") => {
                    strict.refuses(404, "dependent_not_found", &what);
                }
                None if route == "nodes" => assert_eq!(strict.status, StatusCode::OK, "{what}"),
                None => {}
            }
        }
    }
    assert_eq!(refused, 10);
    for (path, status, code) in [
        ("m/suffix_siblings.zarr/nothing", 404, "dependent_not_found"),
        ("m/suffix_siblings.zarr/mask/deeper", 404, "dependent_not_found"),
        ("m/ambiguous_declaration.zarr/x", 404, "dependent_not_found"),
        ("m/seed_example_raw.zarr/s1", 422, "invalid_json"),
        ("m/nowhere/s1", 404, "not-found"),
    ] {
        server.get(&format!("/v1/nodes/{path}")).await.refuses(status, code, path);
        server.get(&format!("/v1/data/{path}")).await.refuses(status, code, path);
    }
}

#[tokio::test]
async fn colliding_chunks_are_read_only_with_allow_collision() {
    let server = server();
    let path = "m/key_collision.zarr";
    let refused = server.get(&format!("/v1/data/{path}/bad?slice=0")).await;
    assert!(refused.refuses(409, "key_collision", "bad").contains("allow_collision"));
    server.get(&format!("/v1/chunk/{path}/bad/c/0/0")).await.refuses(409, "key_collision", "a chunk of bad");
    let bad = elements(&server, &format!("{path}/bad"), "&allow_collision=1").await;
    assert_eq!(bad, elements(&server, path, "&slice=:64,:64").await);
    // Another view of the same chunks is no collision.
    assert_eq!(elements(&server, "m/core_only_0d.zarr/dot", "").await, [7.0]);
}

/// A primary of four elements in chunks of two, whose attributes are these.
pub fn primary(attributes: &Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 7,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": "default", "codecs": ["bytes"], "attributes": attributes,
    })
}

pub fn prefixed(prefix: &str) -> Value {
    json!({"name": "prefix", "configuration": {"prefix": prefix, "base_encoding": "default"}})
}

#[tokio::test]
async fn chunks_of_nested_dependents_are_stored_below_the_outermost_array() {
    let store = memory();
    let nested = json!({"chunk_key_encoding": prefixed("n/"), "fill_value": 18_446_744_073_709_551_615_u64});
    let one = json!({
        "data_type": "uint64", "chunk_key_encoding": prefixed("o/"), "fill_value": 1,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"dependent-arrays": {"deep": nested}},
    });
    let document = primary(&json!({"unit": "m", "dependent-arrays": {"one": one}}));
    put(&store, "a/zarr.json", document.to_string()).await;
    put(&store, "a/n/c/1", [5_u64.to_le_bytes(), 6_u64.to_le_bytes()].concat()).await;
    let server = Server::of(store.clone());

    let found = node(&server, "m/a").await;
    let paths: Vec<&str> =
        found["dependents"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["a/one", "a/one/deep"]);
    for entry in found["dependents"].as_array().unwrap() {
        assert_eq!(server.get(entry["href"].as_str().unwrap()).await.status, StatusCode::OK);
    }
    let deep = node(&server, "m/a/one/deep").await;
    assert_eq!(deep["primary"], "a");
    assert_eq!(
        (&deep["metadata"]["data_type"], &deep["metadata"]["attributes"]),
        (&json!("uint64"), &json!({}))
    );
    assert_eq!(deep["metadata"]["fill_value"].to_string(), "18446744073709551615", "numbers keep their text");
    assert_eq!(node(&server, "m/a/one/deep?view=partial").await["metadata"], nested);
    let answer = server.get("/v1/data/m/a/one/deep?format=json").await;
    assert_eq!(answer.body.as_ref(), b"[18446744073709551615,18446744073709551615,5,6]");

    // A stored node wins over a declared one, and what the declaration says now is what there is.
    put(&store, "a/one/zarr.json", primary(&json!({})).to_string()).await;
    assert_eq!(server.elements("m/a/one", "").await.as_ref(), [7; 4]);
    put(&store, "a/zarr.json", primary(&json!({"dependent-arrays": {"two": {}}})).to_string()).await;
    assert_eq!(server.elements("m/a/two", "").await.as_ref(), [7; 4]);
}

#[tokio::test]
async fn an_array_and_its_dependents_read_each_chunk_once() {
    let store = memory();
    let twin = json!({"twin": {"attributes": {}}});
    put(&store, "a/zarr.json", primary(&json!({"dependent-arrays": twin})).to_string()).await;
    put(&store, "a/c/0", "ab").await;
    let counting = Counting::new(store);
    let server = Server::of(counting.clone());
    assert_eq!(server.elements("m/a", "0:2").await.as_ref(), b"ab");
    let read = counting.bytes();
    assert_eq!(server.elements("m/a/twin", "0:2").await.as_ref(), b"ab");
    assert_eq!(counting.bytes(), read);
}

#[tokio::test]
async fn only_arrays_of_v3_declare_anything() {
    let store = memory();
    let group =
        json!({"zarr_format": 3, "node_type": "group", "attributes": {"dependent-arrays": {"a": {}}}});
    put(&store, "g/zarr.json", group.to_string()).await;
    let zarray = json!({
        "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "order": "C", "fill_value": 0,
        "filters": null, "compressor": null,
    });
    put(&store, "v2/.zarray", zarray.to_string()).await;
    put(&store, "v2/.zattrs", json!({"dependent-arrays": {"a": {}}}).to_string()).await;
    let server = Server::of(store);
    assert_eq!(codes(&node(&server, "m/g").await["diagnostics"]), ["declared_on_group"]);
    assert_eq!(node(&server, "m/v2").await.get("dependents"), None);
    for path in ["m/g/a", "m/v2/a"] {
        server.get(&format!("/v1/nodes/{path}")).await.refuses(404, "not-found", path);
    }
}

#[tokio::test]
async fn arrays_with_extension_keys_are_opened() {
    for (encoding, key) in [
        (prefixed("p/"), "p/c/1"),
        (json!({"name": "suffix", "configuration": {"suffix": ".bin", "base_encoding": "v2"}}), "1.bin"),
        (json!("fanout"), "d0/1/c"),
        (json!({"name": "template", "configuration": {"format": "t-{0:03}"}}), "t-001"),
        (json!({"name": "zarrs.default_suffix", "configuration": {"suffix": ".x"}}), "c/1.x"),
    ] {
        let store = memory();
        let mut document = primary(&json!({}));
        document["chunk_key_encoding"] = encoding.clone();
        put(&store, "a/zarr.json", document.to_string()).await;
        put(&store, &format!("a/{key}"), "xy").await;
        let server = Server::of(store);
        assert_eq!(server.elements("m/a", "").await.as_ref(), b"\x07\x07xy", "{encoding}");
        assert_eq!(server.get("/v1/chunk/m/a/c/1").await.body.as_ref(), b"xy", "{encoding}");
    }
    let store = memory();
    let mut document = primary(&json!({}));
    document["chunk_key_encoding"] = prefixed("../");
    put(&store, "a/zarr.json", document.to_string()).await;
    Server::of(store).get("/v1/data/m/a").await.refuses(
        500,
        "invalid-metadata",
        "a prefix that leaves the array",
    );
}
