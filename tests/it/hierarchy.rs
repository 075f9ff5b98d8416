//! Hierarchies that are not as a new writer makes them: Zarr v1, keys nested without a word of it, drafts.

use axum::http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zarrd::store::SharedStore;

use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, put};

const V1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/v1");

fn v1_store() -> SharedStore {
    zarrd::store::open(V1, &zarrd::store::StoreOptions::default()).unwrap()
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
async fn a_file_called_meta_that_is_no_document_of_zarr_v1_makes_no_node() {
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
async fn newer_documents_win_over_those_of_zarr_v1() {
    let store = memory();
    put(&store, "a/meta", "not JSON").await;
    Array::of(&[3]).store(&store, "a").await;
    let server = Server::of(store);
    let node = server.get("/v1/nodes/m/a").await;
    assert_eq!((node.status, &node.json()["zarr_format"]), (StatusCode::OK, &json!(3)));
}

#[tokio::test]
async fn a_draft_of_zarr_v3_is_told_to_be_one_and_its_bytes_are_served() {
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
async fn an_array_can_be_the_root_of_a_draft() {
    let store = memory();
    put(&store, "meta/root.array.json", "{}").await;
    let server = Server::of(store);
    server.get("/v1/data/m").await.refuses(501, "unsupported", "the root");
}
