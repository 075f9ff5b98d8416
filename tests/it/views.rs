//! Views respond as stores do: listings, ranges, conditions, redirects, and no writes; and the plain view.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use zarrd::http::Peer;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::copied::{list_all, read_all};
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, put};
use crate::support::unlistable::Unlistable;

const LITTLE: Codec = Codec::Bytes { big: false };

/// A document with short-hand names, and its form for clients.
const SHORT: &str = r#"{"zarr_format":3,"node_type":"array","shape":[2],"data_type":{"name":"uint8"},"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},"chunk_key_encoding":"default","fill_value":1.0e1,"codecs":["bytes","gzip"],"attributes":{"codecs":["gzip"],"n":1.50}}"#;
const SPELT: &str = r#"{"zarr_format":3,"node_type":"array","shape":[2],"data_type":"uint8","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}},"fill_value":10,"codecs":[{"name":"bytes"},{"name":"gzip","configuration":{"level":5}}],"attributes":{"codecs":["gzip"],"n":1.50}}"#;
const GROUP: &str = r#"{ "zarr_format": 3, "node_type": "group" }"#;

/// A hierarchy of a group `g` with a sharded array `g/s`, one without shards, one of v2 and something else.
async fn hierarchy() -> (Server, zarrd::store::SharedStore) {
    let store = memory();
    put(&store, "zarr.json", GROUP).await;
    put(&store, "g/zarr.json", GROUP).await;
    put(&store, "g/notes.txt", "words").await;
    put(&store, "g/s/c/readme", "no chunk").await;
    let codecs = [Shards::of(&[2, 2], &[LITTLE]).codec()];
    Array::of(&[12, 5]).chunks(&[4, 4]).codecs(codecs).store(&store, "g/s").await;
    Array::of(&[12, 5]).chunks(&[4, 4]).store(&store, "g/u").await;
    let format = crate::support::hierarchy::Format::V2 {
        compressor: None,
        fortran: false,
        big: false,
        separator: '.',
    };
    Array::of(&[12, 5]).chunks(&[4, 4]).format(format).store(&store, "g/v2").await;
    (Server::of(store.clone()), store)
}

#[tokio::test]
async fn keys_that_need_no_change_are_the_stored_values() {
    let (server, _) = hierarchy().await;
    let stored = read_all(&server, "/store/m/").await;
    assert_eq!(read_all(&server, "/plain/m/").await, stored);
    assert_eq!(list_all(&server, "/plain/m/", None).await, list_all(&server, "/store/m/", None).await);
    let unsharded = read_all(&server, "/unshard/m/").await;
    for (key, value) in stored {
        if !key.starts_with("g/s/c/") && key != "g/s/zarr.json" {
            assert_eq!(unsharded.get(&key), Some(&value), "{key}");
        }
    }
}

#[tokio::test]
async fn pages_of_one_level_of_a_view_are_the_listing_of_that_level() {
    let (server, _) = hierarchy().await;
    for view in ["/store/m/", "/plain/m/", "/unshard/m/", "/rechunk/m/auto/raw/"] {
        for prefix in ["", "g/", "g/s/", "g/s/c/", "g/s/c/0/", "g/u/", "g/u/c/2/", "g/v2/", "none/"] {
            let whole = list_page(&server, &format!("{view}{prefix}?format=json")).await;
            assert_eq!(whole.1, None);
            assert!(whole.0.is_empty() == (prefix == "none/") || prefix.contains("/c/"), "{view}{prefix}");
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let page = list_page(&server, &format!("{view}{prefix}?format=json&limit=1{after}")).await;
                seen.extend(page.0);
                let Some(next) = page.1 else { break };
                after = format!("&after={next}");
            }
            assert_eq!(seen, whole.0, "{view}{prefix}");
        }
    }
}

/// Keys and prefixes of a page in order, and where the next begins.
async fn list_page(server: &Server, url: &str) -> (Vec<String>, Option<String>) {
    let answer = server.get(url).await;
    assert_eq!(answer.status, StatusCode::OK, "{url}");
    let page: Value = serde_json::from_slice(&answer.body).unwrap();
    let text = |text: &Value| text.as_str().unwrap().to_owned();
    let mut names: Vec<String> =
        page["keys"].as_array().unwrap().iter().map(|key| text(&key["key"])).collect();
    names.extend(page["prefixes"].as_array().unwrap().iter().map(text));
    names.sort_unstable();
    (names, page["next"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn documents_are_normalized_for_clients() {
    let store = memory();
    put(&store, "a/zarr.json", SHORT).await;
    let copies = |copy: &str| {
        format!(
            r#"{{"zarr_format":3, "node_type":"group","consolidated_metadata":{{"kind":"inline","metadata":{{"a": {copy} }}}} }}"#
        )
    };
    put(&store, "zarr.json", copies(SHORT)).await;
    let server = Server::of(store.clone());
    for view in ["plain", "unshard"] {
        let document = server.get(&format!("/{view}/m/a/zarr.json")).await;
        assert_eq!((document.status, &*document.body), (StatusCode::OK, SPELT.as_bytes()));
        assert_eq!(document.header("content-type"), "application/json");
        let stored = server.get("/store/m/a/zarr.json").await;
        assert_ne!(document.header("etag"), stored.header("etag"));
        let group = server.get(&format!("/{view}/m/zarr.json")).await;
        assert_eq!(group.body, copies(SPELT));
        let again = server.get(&format!("/{view}/m/zarr.json?consolidated")).await.json();
        let spelt: Value = serde_json::from_str(SPELT).unwrap();
        assert_eq!(again["consolidated_metadata"]["metadata"]["a"], spelt);
    }
    // The version follows the stored one.
    let before = server.get("/plain/m/a/zarr.json").await;
    put(&store, "a/zarr.json", SHORT.replace("1.50", "2.50")).await;
    let revalidated =
        server.ask(Method::GET, "/plain/m/a/zarr.json", &[("if-none-match", before.header("etag"))]).await;
    assert_eq!(
        (revalidated.status, &*revalidated.body),
        (StatusCode::OK, SPELT.replace("1.50", "2.50").as_bytes())
    );
}

#[tokio::test]
async fn listings_of_a_view_by_level_equal_the_full_listing() {
    let (server, _) = hierarchy().await;
    for view in ["plain", "unshard"] {
        let keys = list_all(&server, &format!("/{view}/m/"), None).await;
        let mut prefixes = vec![String::new()];
        while let Some(prefix) = prefixes.pop() {
            let listing = server.get(&format!("/{view}/m/{prefix}?format=json")).await.json();
            let (mut direct, mut below): (Vec<Value>, Vec<String>) = Default::default();
            for (key, size, etag) in &keys {
                match key.strip_prefix(&prefix).map(|rest| rest.split_once('/')) {
                    None => {}
                    Some(None) => direct.push(json!([key, size, etag])),
                    Some(Some((name, _))) => below.push(format!("{prefix}{name}/")),
                }
            }
            below.dedup();
            let listed: Vec<Value> = listing["keys"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| json!([entry["key"], entry["size"], entry["etag"]]))
                .collect();
            assert_eq!(listed, direct, "{view} {prefix}");
            assert_eq!(listing["prefixes"], json!(below), "{view} {prefix}");
            let recursive = list_all(&server, &format!("/{view}/m/{prefix}"), None).await;
            let expected: Vec<_> =
                keys.iter().filter(|(key, ..)| key.starts_with(&prefix)).cloned().collect();
            assert_eq!(recursive, expected, "{view} {prefix}");
            prefixes.extend(below);
        }
    }
}

#[tokio::test]
async fn pages_of_a_recursive_listing_are_the_full_listing() {
    let (server, _) = hierarchy().await;
    for url in ["/plain/m/", "/unshard/m/", "/unshard/m/g/s/", "/unshard/m/g/s/c/1/"] {
        let whole = list_all(&server, url, None).await;
        assert!(whole.len() > 1, "{url}");
        for limit in [1, 2, 7] {
            assert_eq!(list_all(&server, url, Some(limit)).await, whole, "{url} by {limit}");
        }
    }
}

#[tokio::test]
async fn views_respond_as_stores_do_and_are_read_only() {
    let (server, store) = hierarchy().await;
    let before = read_all(&server, "/store/m/").await;
    for view in ["plain", "unshard"] {
        let url = |rest: &str| format!("/{view}/m{rest}");
        let root = server.get(&url("")).await;
        assert_eq!((root.status, root.header("location")), (StatusCode::MOVED_PERMANENTLY, "./m/"));
        let prefix = server.get(&url("/g/s")).await;
        assert_eq!((prefix.status, prefix.header("location")), (StatusCode::MOVED_PERMANENTLY, "./s/"));
        let page = server.get(&url("/g/")).await;
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert!(String::from_utf8_lossy(&page.body).contains("s/"));
        let options = server.ask(Method::OPTIONS, &url("/g/s/zarr.json"), &[]).await;
        assert_eq!(options.header("allow"), "GET, HEAD, OPTIONS, PROPFIND");
        let found = server.request("PROPFIND", &url("/g/s/"), &[("depth", "infinity")], "").await;
        assert_eq!(found.status, StatusCode::MULTI_STATUS);
        assert!(String::from_utf8_lossy(&found.body).contains(&format!("/{view}/m/g/s/c/2/1")));
        for method in ["PUT", "PATCH", "DELETE", "POST", "MKCOL", "COPY", "MOVE"] {
            for key in ["/g/s/c/0/0", "/g/notes.txt", "/new", "/g/"] {
                let refused = server.request(method, &url(key), &[("destination", "/store/m/x")], "x").await;
                refused.refuses(405, "not-allowed", &format!("{method} {view} {key}"));
            }
        }
        server.get(&format!("/{view}/other/a")).await.refuses(404, "unknown-mount", view);
        server.get(&url("/g/nothing")).await.refuses(404, "not-found", view);
        server.get(&url("/g/nothing/")).await.refuses(404, "not-found", view);
        server.get(&url("/g/%2e%2e/x")).await.refuses(400, "invalid-request", view);
    }
    drop(store);
    assert_eq!(read_all(&server, "/store/m/").await, before);
}

#[tokio::test]
async fn a_view_of_a_store_that_cannot_list_is_readable() {
    let (_, store) = hierarchy().await;
    let server = Server::of(Unlistable::new(store.clone()));
    let expected = Server::of(store);
    for key in ["g/s/zarr.json", "g/s/c/5/2", "g/u/c/1/1", "g/v2/.zarray", "g/v2/1.1"] {
        let (read, wanted) = (
            server.get(&format!("/unshard/m/{key}")).await,
            expected.get(&format!("/unshard/m/{key}")).await,
        );
        assert_eq!((read.status, read.body), (StatusCode::OK, wanted.body), "{key}");
    }
    for prefix in ["", "g/s/", "g/s/c/"] {
        server.get(&format!("/unshard/m/{prefix}?format=json")).await.refuses(405, "not-allowed", prefix);
    }
}

/// An array of this many shards, each of one byte, which declares another of the same chunks.
async fn many_shards(count: usize) -> SharedStore {
    let index = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let sharding = json!({"chunk_shape": [1], "codecs": [{"name": "bytes"}], "index_codecs": index});
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [count], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        "attributes": {"dependent-arrays": {"one": {"data_type": "uint8", "fill_value": 0}}},
    });
    let store = memory();
    put(&store, "a/zarr.json", document.to_string()).await;
    let shard = [[7].as_slice(), &0_u64.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    for number in 0..count {
        put(&store, &format!("a/c/{number}"), shard.clone()).await;
    }
    store
}

/// The chunks of a family are held while they are listed.
#[tokio::test]
async fn a_listing_over_the_request_limit_is_413_and_over_the_free_budget_503() {
    const LISTINGS: [&str; 4] = ["/plain/m/", "/unshard/m/", "/unshard/m/a/c/", "/rechunk/m/1/raw/"];
    let store = many_shards(1000).await;
    let served = |inflight_bytes: u64| {
        let mut server = Server::build(Mount::read_only("m", Arc::clone(&store)));
        (server.http.inflight_size, server.http.streamed_response_size) = (inflight_bytes, 16 << 10);
        server.finish()
    };
    let small = served(64 << 10);
    for listing in LISTINGS {
        let answer = small.get(&format!("{listing}?recursive&format=json")).await;
        let detail = answer.refuses(413, "too-large", listing);
        assert!(detail.contains("http.inflight_size"), "{detail}");
        assert_eq!(small.in_flight_bytes(), 0, "{listing}");
    }
    let server = served(1 << 20);
    for listing in LISTINGS {
        let url = format!("{listing}?recursive&format=json");
        // Listings in HTML are held until their clients have taken them.
        let mut held = Vec::new();
        loop {
            let request = Request::get(format!("{listing}?recursive")).body(Body::empty()).unwrap();
            let answer = server.site().handle(request, Peer::LOOPBACK).await;
            if answer.status() != StatusCode::OK {
                break;
            }
            held.push(answer);
        }
        let detail = server.get(&url).await.refuses(503, "overloaded", listing);
        assert!(!detail.contains("backend"), "{detail}");
        held.clear();
        assert_eq!(server.in_flight_bytes(), 0, "{listing}");
        let listed = server.get(&url).await;
        assert_eq!(
            (listed.status, listed.json()["keys"].as_array().unwrap().len() >= 1000),
            (StatusCode::OK, true)
        );
    }
}

#[tokio::test]
async fn a_rechunked_group_with_oversized_consolidated_metadata_has_none() {
    let store = memory();
    let inline = json!({"kind": "inline", "must_understand": false, "metadata": {}});
    let mut group = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": inline});
    put(&store, "zarr.json", group.to_string()).await;
    group.as_object_mut().unwrap().remove("consolidated_metadata");
    group["attributes"] = json!({ "text": "x".repeat(100_000) });
    put(&store, "g/zarr.json", group.to_string()).await;
    for (inflight_bytes, is_made) in [(64 << 20, true), (128 << 10, false)] {
        let mut server = Server::build(Mount::read_only("m", Arc::clone(&store)));
        (server.http.inflight_size, server.http.streamed_response_size) = (inflight_bytes, 16 << 10);
        let server = server.finish();
        let document = server.get("/rechunk/m/auto/raw/zarr.json").await.json();
        assert_eq!(document["consolidated_metadata"].is_object(), is_made, "{inflight_bytes}");
        assert_eq!(server.in_flight_bytes(), 0);
    }
}
