//! Invalid and extreme metadata documents: each has its error, nothing is allocated for declared sizes,
//! and the bytes stay readable.

use std::fmt::Write;

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, put};

/// A server with this document as `m/a/zarr.json` and a good array as `m/good`.
async fn serve(document: impl Into<bytes::Bytes>) -> (Server, SharedStore) {
    let store = memory();
    Array::of(&[3]).store(&store, "good").await;
    put(&store, "a/zarr.json", document).await;
    (Server::of(store.clone()), store)
}

fn with(members: Value) -> String {
    Array::of(&[4, 4]).members(members).document().1.to_string()
}

/// After any document, other requests are served, and its bytes are readable.
async fn assert_works(server: &Server, what: &str) {
    assert_eq!(server.elements("m/good", "").await.as_ref(), [1, 0, 2, 0, 3, 0], "{what}");
    assert_eq!(server.get("/store/m/a/zarr.json").await.status, StatusCode::OK, "{what}");
}

#[tokio::test]
async fn unsupported_features_are_501_by_name_and_their_bytes_are_served() {
    for (members, name) in [
        (json!({ "data_type": "int3" }), "int3"),
        (json!({ "data_type": { "name": "tensor", "configuration": { "rank": 2 } } }), "tensor"),
        (json!({ "chunk_grid": { "name": "voronoi", "configuration": {} } }), "voronoi"),
        (json!({ "chunk_key_encoding": { "name": "morton" } }), "morton"),
        (json!({ "storage_transformers": [{ "name": "cipher" }] }), "cipher"),
        (json!({ "mystery": 1 }), "mystery"),
        (json!({ "mystery": { "must_understand": true } }), "mystery"),
    ] {
        let (server, _) = serve(with(members)).await;
        for url in ["/v1/nodes/m/a", "/v1/data/m/a", "/v1/chunk/m/a/c/0/0"] {
            let detail = server.get(url).await.refuses(501, "unsupported", name);
            assert!(detail.contains(name), "{detail}");
        }
        assert_works(&server, name).await;
    }
    let (server, _) = serve(with(json!({ "mystery": { "must_understand": false } }))).await;
    assert_eq!(server.get("/v1/data/m/a").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_array_with_an_unknown_codec_has_metadata_but_no_elements() {
    let codecs = json!(["bytes", { "name": "imagecodecs_jpegxl", "configuration": {} }]);
    let (server, store) =
        serve(with(json!({ "data_type": "uint8", "fill_value": 0, "codecs": codecs }))).await;
    put(&store, "a/c/0/0", "jpeg").await;
    let node = server.get("/v1/nodes/m/a").await;
    assert_eq!(node.status, StatusCode::OK);
    assert!(node.json()["unreadable"].as_str().unwrap().contains("imagecodecs_jpegxl"), "{:?}", node.body);
    let detail = server.get("/v1/data/m/a").await.refuses(501, "unsupported", "an unknown codec");
    assert!(detail.contains("imagecodecs_jpegxl"), "{detail}");
    assert_eq!(server.get("/store/m/a/c/0/0").await.body, "jpeg");
}

#[tokio::test]
async fn documents_that_break_the_specification_are_invalid_metadata() {
    for members in [
        json!({ "shape": [-1, 4] }),
        json!({ "shape": [4.0, 4] }),
        json!({ "shape": ["4", 4] }),
        json!({ "shape": 16 }),
        json!({ "shape": [4] }),
        json!({ "shape": [u64::MAX, 4] }),
        json!({ "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [0, 4] } } }),
        json!({ "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [4] } } }),
        json!({ "chunk_grid": { "name": "regular" } }),
        json!({ "data_type": "r12" }),
        json!({ "data_type": { "name": "uint16", "must_understand": false } }),
        json!({ "fill_value": -1 }),
        json!({ "fill_value": "NaN" }),
        json!({ "codecs": [] }),
        json!({ "dimension_names": ["x"] }),
        json!({ "zarr_format": 2 }),
        json!({ "node_type": "table" }),
        json!({ "attributes": [] }),
        json!({ "chunk_key_encoding": { "name": "default", "configuration": { "separator": ":" } } }),
    ] {
        let what = members.to_string();
        let (server, _) = serve(with(members)).await;
        for url in ["/v1/nodes/m/a", "/v1/data/m/a", "/v1/data/m/a?slice=0,0", "/v1/chunk/m/a/c/0/0"] {
            server.get(url).await.refuses(500, "invalid-metadata", &what);
        }
        assert_works(&server, &what).await;
    }
}

#[tokio::test]
async fn impossible_codec_chains_are_invalid_metadata_when_elements_are_requested() {
    let bytes = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let shards = |inner: Value, index: Value| {
        json!({ "name": "sharding_indexed", "configuration": {
            "chunk_shape": inner, "codecs": [&bytes], "index_codecs": index,
        } })
    };
    let mut nested = bytes.clone();
    for _ in 0..10 {
        let configuration = json!({ "chunk_shape": [4, 4], "codecs": [nested], "index_codecs": [&bytes] });
        nested = json!({ "name": "sharding_indexed", "configuration": configuration });
    }
    for codecs in [
        json!(["gzip"]),
        json!([&bytes, &bytes]),
        json!([{ "name": "gzip", "configuration": { "level": 1 } }, &bytes]),
        json!([{ "name": "transpose", "configuration": { "order": [0, 0] } }, &bytes]),
        json!([{ "name": "transpose", "configuration": { "order": [0] } }, &bytes]),
        json!([&bytes, { "name": "gzip", "configuration": { "level": 11 } }]),
        json!([shards(json!([3, 4]), json!([&bytes]))]),
        json!([shards(json!([4]), json!([&bytes]))]),
        json!([shards(json!([0, 4]), json!([&bytes]))]),
        json!([shards(json!([2, 2]), json!([&bytes, { "name": "gzip", "configuration": { "level": 1 } }]))]),
        json!([shards(json!([2, 2]), json!([]))]),
        json!([nested]),
    ] {
        let what = codecs.to_string();
        let (server, _) = serve(with(json!({ "codecs": codecs }))).await;
        server.get("/v1/data/m/a").await.refuses(500, "invalid-metadata", &what);
        let node = server.get("/v1/nodes/m/a").await;
        assert_eq!(node.status, StatusCode::OK, "{what}");
        assert!(node.json()["unreadable"].is_string(), "{what}");
        assert_works(&server, &what).await;
    }
}

#[tokio::test]
async fn invalid_and_oversized_json_documents_are_refused() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let deep_attributes =
        format!(r#"{{"zarr_format": 3, "node_type": "group", "attributes": {{"a": {deep}}}}}"#);
    let mut rank = String::from("1");
    for _ in 1..1_000_000 {
        write!(rank, ",1").unwrap();
    }
    let wide = with(json!({})).replace("\"shape\":[4,4]", &format!("\"shape\":[{rank}]"));
    assert!(wide.len() > 1_000_000);
    for (what, document) in [
        ("nothing", Vec::new()),
        ("no object", b"[]".to_vec()),
        ("half a document", b"{\"zarr_format\": 3,".to_vec()),
        ("two documents", b"{}{}".to_vec()),
        ("no UTF-8", b"{\"a\": \"\xff\"}".to_vec()),
        ("a control character", b"{\"a\": \"\0\"}".to_vec()),
        ("half a surrogate", br#"{"a": "\ud800"}"#.to_vec()),
        ("a member twice", br#"{"zarr_format": 3, "zarr_format": 3, "node_type": "group"}"#.to_vec()),
        ("a number beyond all", with(json!({})).replace("[4,4]", "[1e400,4]").into_bytes()),
        (
            "a number without end",
            with(json!({})).replace("[4,4]", &format!("[{},4]", "9".repeat(100_000))).into_bytes(),
        ),
        ("a million lists in lists", deep.into_bytes()),
        ("a million lists in attributes", deep_attributes.into_bytes()),
        ("a million dimensions", wide.into_bytes()),
    ] {
        let (server, _) = serve(document).await;
        for url in ["/v1/nodes/m/a", "/v1/data/m/a"] {
            server.get(url).await.refuses(500, "invalid-metadata", what);
        }
        assert_works(&server, what).await;
    }
    let (server, _) = serve(with(json!({ "attributes": { "long": "x".repeat(5 << 20) } }))).await;
    let answer = server.get("/v1/nodes/m/a").await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_ne!(answer.code(), "internal");
    assert_works(&server, "5 MiB").await;
}

#[tokio::test]
async fn an_array_of_the_largest_shape_has_metadata_and_fill_values() {
    let huge = json!([1_u64 << 62, 1_u64 << 62]);
    let store = memory();
    Array::of(&[3]).store(&store, "good").await;
    put(&store, "a/zarr.json", with(json!({ "shape": huge, "fill_value": 9 }))).await;
    let mut server = Server::build(Mount::read_only("m", store));
    // All that is suggested is read.
    server.read.max_response_size = 1 << 20;
    let server = server.finish();
    let node = server.get("/v1/nodes/m/a").await.json();
    assert_eq!(node["metadata"]["shape"], huge);
    let last = (1_u64 << 62) - 1;
    for slice in
        ["0,0".to_owned(), format!("{last},{last}"), "-1,-1".to_owned(), "7,1000000000000".to_owned()]
    {
        assert_eq!(server.elements("m/a", &slice).await.as_ref(), [9, 0], "{slice}");
    }
    let wide = server.get(&format!("/v1/data/m/a?slice=::{last},::{last}")).await;
    assert_eq!((wide.status, wide.body.len()), (StatusCode::OK, 8));
    for slice in ["", "0", ":,0", "::2,::-3", "...", "::1000000,0"] {
        let answer = server.get(&format!("/v1/data/m/a?slice={slice}")).await;
        answer.refuses(413, "too-large", slice);
        for suggested in answer.json()["suggested_slices"].as_array().unwrap() {
            server.elements("m/a", suggested.as_str().unwrap()).await;
        }
    }
    let chunk = format!("/v1/chunk/m/a/c/{}/{}", last / 4, last / 4);
    assert_eq!(server.get(&chunk).await.body.len(), 32);
    assert_works(&server, "huge").await;
}

#[tokio::test]
async fn a_chunk_larger_than_memory_is_refused_even_when_absent() {
    let grid = |edge: u64| json!({ "name": "regular", "configuration": { "chunk_shape": [edge, edge] } });
    for edge in [1 << 46, 1 << 23, 1 << 62] {
        let (server, store) = serve(with(json!({ "shape": [edge, edge], "chunk_grid": grid(edge) }))).await;
        for stored in [false, true] {
            if stored {
                put(&store, "a/c/0/0", vec![0; 100]).await;
            }
            server.get("/v1/data/m/a?slice=0,0").await.refuses(413, "too-large", "a chunk");
            server.get("/v1/chunk/m/a/c/0/0").await.refuses(413, "too-large", "a chunk");
            assert_eq!(server.get("/v1/nodes/m/a").await.status, StatusCode::OK);
        }
        assert_works(&server, "a chunk").await;
    }
}

#[tokio::test]
async fn a_shard_with_too_many_inner_chunks_is_refused() {
    let bytes = json!({ "name": "bytes", "configuration": { "endian": "little" } });
    let shards = json!([{ "name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 1], "codecs": [&bytes], "index_codecs": [&bytes],
    } }]);
    let edge = 1_u64 << 20;
    let grid = json!({ "name": "regular", "configuration": { "chunk_shape": [edge, edge] } });
    let (server, store) =
        serve(with(json!({ "shape": [edge, edge], "chunk_grid": grid, "codecs": shards }))).await;
    put(&store, "a/c/0/0", vec![0; 100]).await;
    server.get("/v1/data/m/a?slice=0,0").await.refuses(500, "invalid-metadata", "2^40 inner chunks");
    assert_works(&server, "2^40 inner chunks").await;
}
