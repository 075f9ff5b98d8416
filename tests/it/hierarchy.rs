//! Hierarchies of old writers: Zarr v1, nested keys without a declared separator, drafts.

use axum::http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zarrd::metadata::Separator;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::hierarchy::{Array, Format, memory};
use crate::support::server::{Server, erase, put};
use crate::support::unlistable::Unlistable;

const V1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/v1");

fn v1_store() -> SharedStore {
    zarrd::store::open(V1, &zarrd::store::StoreOptions::default(), &crate::support::server::cpu()).unwrap()
}

#[tokio::test]
async fn the_arrays_of_zarr_v1_read_as_they_were_written() {
    let server = Server::of(v1_store());
    let expected: Vec<Value> =
        serde_json::from_slice(&std::fs::read(format!("{V1}/expected.json")).unwrap()).unwrap();
    assert_eq!(expected.len(), 11);
    for array in expected {
        let path = array["path"].as_str().unwrap();
        let elements = server.elements(&format!("m/{path}"), "").await;
        assert_eq!(format!("{:x}", Sha256::digest(&elements)), array["sha256"], "{path}");
        let part = server.get(&format!("/v1/data/m/{path}?slice=1:4,-2&format=json")).await.json();
        let column: Vec<&Value> = (1..4).map(|row| &array["values"][row][5]).collect();
        let numbers = |value: &Value| value.as_f64().unwrap();
        assert_eq!(
            part.as_array().unwrap().iter().map(numbers).collect::<Vec<_>>(),
            column.into_iter().map(numbers).collect::<Vec<_>>(),
            "{path}"
        );
    }
}

#[tokio::test]
async fn an_array_of_zarr_v1_is_described_as_v3_and_its_bytes_are_served() {
    let server = Server::of(v1_store());
    let node = server.get("/v1/nodes/m/blosc_F_i4").await.json();
    assert_eq!((&node["zarr_format"], &node["node_type"]), (&json!(1), &json!("array")));
    let metadata = &node["metadata"];
    assert_eq!((&metadata["zarr_format"], &metadata["data_type"]), (&json!(3), &json!("int32")));
    assert_eq!(
        metadata["chunk_key_encoding"],
        json!({ "name": "v2", "configuration": { "separator": "." } })
    );
    let names: Vec<&Value> =
        metadata["codecs"].as_array().unwrap().iter().map(|codec| &codec["name"]).collect();
    assert_eq!(names, ["transpose", "bytes", "blosc"]);
    assert_eq!(server.get("/v1/nodes/m/blosc_C_i4").await.json()["metadata"]["attributes"]["name"], "blosc");
    let raw = std::fs::read(format!("{V1}/blosc_F_i4/meta")).unwrap();
    assert_eq!(server.get("/store/m/blosc_F_i4/meta").await.body, raw);
    let chunk = server.get("/v1/chunk/m/zlib_C_i4/c/1/1").await;
    assert_eq!(chunk.body.as_ref(), (-7_i32).to_le_bytes().repeat(6), "the missing one");
}

#[tokio::test]
async fn a_file_named_meta_that_is_not_a_zarr_v1_document_is_not_a_node() {
    for stray in ["some notes", "{}", r#"{"zarr_format": 2}"#, "[1, 2", &"x".repeat(5 << 20)] {
        let store = memory();
        put(&store, "zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
        put(&store, "a/meta", stray.to_owned()).await;
        put(&store, "b/meta/root", stray.to_owned()).await;
        let server = Server::of(store);
        for url in ["/v1/nodes/m/a", "/v1/data/m/a", "/v1/nodes/m/b"] {
            server.get(url).await.refuses(404, "not-found", url);
        }
        assert_eq!(server.get("/v1/nodes/m").await.json()["children"], json!([]));
        assert_eq!(server.get("/store/m/a/meta").await.body, stray);
    }
}

#[tokio::test]
async fn a_broken_document_of_zarr_v1_is_invalid_metadata() {
    let store = memory();
    put(&store, "a/meta", r#"{"zarr_format": 1, "shape": [-1]}"#).await;
    put(
        &store,
        "b/meta",
        r#"{"zarr_format": 1, "shape": [1], "chunks": [1], "dtype": "|O", "order": "C",
        "compression": null, "fill_value": null}"#,
    )
    .await;
    let server = Server::of(store);
    server.get("/v1/nodes/m/a").await.refuses(500, "invalid-metadata", "a shape of -1");
    server.get("/v1/nodes/m/b").await.refuses(501, "unsupported", "pickled objects");
}

#[tokio::test]
async fn newer_documents_take_precedence_over_those_of_zarr_v1() {
    let store = memory();
    put(&store, "a/meta", "not JSON").await;
    Array::of(&[3]).store(&store, "a").await;
    let server = Server::of(store);
    let node = server.get("/v1/nodes/m/a").await;
    assert_eq!((node.status, &node.json()["zarr_format"]), (StatusCode::OK, &json!(3)));
}

#[tokio::test]
async fn a_draft_of_zarr_v3_is_refused_by_name_and_its_bytes_are_served() {
    let entry = r#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json",
        "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0", "extensions": []}"#;
    let array = r#"{"shape": [4], "data_type": "<f8", "chunk_grid": {"type": "regular", "chunk_shape": [2],
        "separator": "/"}, "chunk_memory_layout": "C", "fill_value": 0, "extensions": [], "attributes": {}}"#;
    let late = r#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": {"extension": "x",
        "type": "new", "fallback": "<f8"}, "chunk_grid": {"name": "regular"}}"#;
    for root in [true, false] {
        let store = memory();
        if root {
            put(&store, "zarr.json", entry).await;
        }
        put(&store, "meta/root.group.json", r#"{"attributes": {}, "extensions": []}"#).await;
        put(&store, "meta/root/g.group.json", r#"{"attributes": {}}"#).await;
        put(&store, "meta/root/g/a.array.json", array).await;
        put(&store, "data/root/g/a/c0", vec![0; 16]).await;
        put(&store, "below/zarr.json", entry).await;
        put(&store, "late/zarr.json", late).await;
        let server = Server::of(store);
        for path in ["m", "m/", "m/g", "m/g/a", "m/below", "m/late"] {
            let detail = server.get(&format!("/v1/nodes/{path}")).await.refuses(501, "unsupported", path);
            assert!(detail.contains("a draft of Zarr v3"), "{detail}");
        }
        server.get("/v1/data/m/g/a").await.refuses(501, "unsupported", "elements of a draft");
        for path in ["m/other", "m/g/b", "m/meta", "m/data"] {
            server.get(&format!("/v1/nodes/{path}")).await.refuses(404, "not-found", path);
        }
        assert_eq!(server.get("/store/m/meta/root/g/a.array.json").await.body, array);
    }
}

#[tokio::test]
async fn an_array_of_a_draft_at_the_root_is_unsupported() {
    let store = memory();
    put(&store, "meta/root.array.json", "{}").await;
    let server = Server::of(store);
    server.get("/v1/data/m").await.refuses(501, "unsupported", "the root");
}

/// A v2 array whose keys have this separator and whose document does not say so.
fn unsaid(shape: &[usize], separator: char) -> Array {
    let format = Format::V2 { compressor: None, fortran: false, big: false, separator };
    let chunks: Vec<usize> = shape.iter().map(|length| length.div_ceil(3)).collect();
    Array::of(shape).chunks(&chunks).format(format).members(json!({ "dimension_separator": null }))
}

#[tokio::test]
async fn nested_keys_of_a_v2_array_are_detected_without_a_declared_separator() {
    for shape in [&[7_usize, 5][..], &[4, 3, 5], &[9], &[]] {
        for separator in ['/', '.'] {
            for first_is_missing in [false, true] {
                let store = memory();
                let array = unsaid(shape, separator);
                let model = array.store(&store, "a/b").await;
                let server = Server::of(store.clone());
                if first_is_missing && !shape.is_empty() {
                    let first = array.chunk_key(&vec![0; shape.len()]);
                    erase(&store, &format!("a/b/{first}")).await;
                    put(&store, "a/b/.DS_Store", "stray").await;
                    put(&store, "a/b/notes/0.0", "stray").await;
                    let last = vec!["-1"; shape.len()].join(",");
                    let element = model.elements[model.elements.len() - 2..].to_vec();
                    assert_eq!(server.elements("m/a/b", &last).await, element, "{shape:?} {separator}");
                } else {
                    assert_eq!(server.elements("m/a/b", "").await, model.elements, "{shape:?} {separator}");
                }
                let found = &server.get("/v1/nodes/m/a/b").await.json()["metadata"]["chunk_key_encoding"];
                if shape.len() >= 2 {
                    assert_eq!(found["configuration"]["separator"], json!(separator));
                }
            }
        }
    }
}

#[tokio::test]
async fn an_array_without_chunks_is_all_fill_values_with_either_separator() {
    let store = memory();
    let (name, document) =
        unsaid(&[6, 6], '/').members(json!({ "dimension_separator": null, "fill_value": 5 })).document();
    put(&store, &format!("a/{name}"), document.to_string()).await;
    let server = Server::of(store.clone());
    assert_eq!(server.elements("m/a", "").await.as_ref(), [5, 0].repeat(36));
    let unlistable = Server::of(Unlistable::new(store));
    assert_eq!(unlistable.elements("m/a", "").await.as_ref(), [5, 0].repeat(36));
}

#[tokio::test]
async fn a_chunk_stored_after_the_array_was_read_is_found_under_either_separator() {
    for separator in ['/', '.'] {
        let store = memory();
        let array = unsaid(&[4, 4], separator);
        put(&store, "a/.zarray", array.document().1.to_string()).await;
        let server = Server::of(store.clone());
        for _ in 0..2 {
            assert_eq!(server.elements("m/a", "3,3").await.len(), 2);
        }
        let model = array.model();
        put(&store, &format!("a/{}", array.chunk_key(&[1, 1])), array.chunk(&model, &[1, 1])).await;
        assert_eq!(server.elements("m/a", "3,3").await.as_ref(), [16, 0], "{separator}");
    }
}

#[tokio::test]
async fn a_mount_can_set_the_separator_that_documents_omit() {
    let store = memory();
    let nested = unsaid(&[7, 5], '/');
    let model = nested.store(&store, "a").await;
    // Chunks under both names: unless the mount says otherwise, those under the name of the specification are read.
    put(&store, "a/0.0", vec![9; 12]).await;
    put(
        &store,
        "said/.zarray",
        nested.members(json!({ "dimension_separator": "." })).document().1.to_string(),
    )
    .await;
    put(&store, "said/0.0", vec![7; 12]).await;
    assert_eq!(Server::of(store.clone()).elements("m/a", "0,0").await.as_ref(), [9, 9]);
    let mount = Mount { dimension_separator: Some(Separator::Slash), ..Mount::read_only("m", store) };
    let server = Server::build(mount).finish();
    assert_eq!(server.elements("m/a", "").await, model.elements);
    assert_eq!(server.elements("m/said", "0,0").await.as_ref(), [7, 7], "documents that say it are right");
}

#[tokio::test]
async fn a_declared_separator_needs_no_request_for_a_chunk() {
    let store = memory();
    for (path, separator) in [("dots", '.'), ("slashes", '/')] {
        let format = Format::V2 { compressor: None, fortran: false, big: false, separator };
        Array::of(&[4, 4]).format(format).store(&store, path).await;
    }
    unsaid(&[4, 4], '/').store(&store, "open").await;
    put(&store, ".zgroup", r#"{"zarr_format": 2}"#).await;
    let blind = Unlistable::new(store);
    let server = Server::of(blind.clone());
    for path in ["dots", "slashes"] {
        assert_eq!(server.get(&format!("/v1/nodes/m/{path}")).await.status, StatusCode::OK);
    }
    assert_eq!(blind.chunk_requests(), 0);
    for _ in 0..3 {
        assert_eq!(server.get("/v1/nodes/m/open").await.status, StatusCode::OK);
    }
    assert_eq!(blind.chunk_requests(), 2, "once for each name, and cached");
}
