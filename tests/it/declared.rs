//! Dependent arrays in views (`tests/data/dependent`): each is a node of its own, for readers that know nothing
//! of its declaration, and its chunks are the stored bytes.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd::chunk::ChunkKeyEncoding;
use zarrd::store::SharedStore;

use crate::dependents::{
    FOLDER, at, codes, elements, expected, numbers_of, parsed, prefixed, primary, server,
};
use crate::support::copied::{copy, list_all, read_all};
use crate::support::counting::Counting;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, erase, put};

/// The expectations for each array with a path of its own.
fn rebased() -> Vec<(String, String, Value)> {
    expected().into_iter().filter(|(_, _, node)| !node["rebased"].is_null()).collect()
}

#[tokio::test]
async fn every_dependent_array_is_shown_with_its_rebased_document() {
    let server = server();
    let mut shown = 0;
    for (family, path, mut expected) in rebased() {
        let what = at(&family, &path);
        if expected["diagnostics"].to_string().contains("bytes_codec_without_endian") {
            // Views state the byte order, which some readers require.
            expected["rebased"]["codecs"][0] =
                json!({"name": "bytes", "configuration": {"endian": "little"}});
        }
        for view in ["plain", "unshard"] {
            let document = server.get(&format!("/{view}/{what}/zarr.json")).await;
            assert_eq!(document.status, StatusCode::OK, "{view} {what}");
            assert_eq!(document.json(), expected["rebased"], "{view} {what}");
            assert_eq!(document.header("content-type"), "application/json");
        }
        shown += 1;
    }
    assert_eq!(shown, 35);
}

#[tokio::test]
async fn chunks_in_a_view_are_the_stored_bytes_under_keys_of_the_default_encoding() {
    let server = server();
    let mut chunks = 0;
    for (family, path, expected) in rebased() {
        let array = parsed(&expected["metadata"]);
        let keys = ChunkKeyEncoding::new(array.chunk_key_encoding);
        for key in expected["keys"].as_array().unwrap() {
            let key = key.as_str().unwrap();
            let coords = keys.decode(key, array.shape.len()).unwrap();
            let shown = ChunkKeyEncoding::canonical().encode(&coords);
            let stored = server.get(&format!("/store/{}/{key}", at(&family, ""))).await;
            let plain = server.get(&format!("/plain/{}/{shown}", at(&family, &path))).await;
            assert_eq!(plain.status, stored.status, "{family} {path} {key}");
            if plain.status == StatusCode::OK {
                assert_eq!(plain.body, stored.body, "{family} {path} {key}");
                assert_eq!(plain.header("etag"), stored.header("etag"), "{family} {path} {key}");
                chunks += 1;
            }
        }
    }
    assert!(chunks > 100, "{chunks}");
}

#[tokio::test]
async fn a_copy_of_a_view_contains_every_array_with_its_elements() {
    for view in ["plain", "unshard"] {
        let copied = Server::of(copy(&server(), &format!("/{view}/m/")).await);
        let mut arrays = 0;
        for (family, path, expected) in rebased() {
            // This one is read by those who take little for granted, as the convention's lenient readers do.
            if codes(&expected["diagnostics"]).contains(&"bytes_codec_without_endian")
                || expected["sum"].is_null()
            {
                continue;
            }
            let what = at(&family, &path);
            let first = numbers_of(&expected["slice_first"]);
            let rank = expected["slice_shape"].as_array().unwrap().len();
            let slice = format!("&slice={}", vec!["0:5"; rank].join(","));
            assert_eq!(elements(&copied, &what, &slice).await, first, "{view} {what}");
            let sum: f64 = elements(&copied, &what, "").await.iter().sum();
            assert_eq!(Some(sum), expected["sum"].as_f64(), "{view} {what}");
            arrays += 1;
        }
        assert_eq!(arrays, 30, "{view}");
    }
}

#[tokio::test]
async fn listings_of_dependents_by_level_and_by_page_equal_the_full_listing() {
    let server = server();
    for view in ["plain", "unshard"] {
        let keys = list_all(&server, &format!("/{view}/m/"), None).await;
        assert_eq!(keys.len(), read_all(&server, &format!("/{view}/m/")).await.len(), "{view}");
        let mut prefixes = vec![String::new()];
        while let Some(prefix) = prefixes.pop() {
            let listing = server.get(&format!("/{view}/m/{prefix}?format=json")).await.json();
            let below: BTreeSet<String> = keys
                .iter()
                .filter_map(|(key, ..)| key.strip_prefix(&prefix)?.split_once('/'))
                .map(|(name, _)| format!("{prefix}{name}/"))
                .collect();
            assert_eq!(listing["prefixes"], json!(below), "{view} {prefix}");
            let direct: Vec<Value> = keys
                .iter()
                .filter(|(key, ..)| key.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/')))
                .map(|(key, ..)| json!(key))
                .collect();
            let listed: Vec<Value> =
                listing["keys"].as_array().unwrap().iter().map(|entry| entry["key"].clone()).collect();
            assert_eq!(listed, direct, "{view} {prefix}");
            prefixes.extend(below);
        }
        for family in ["suffix_siblings", "other_encodings", "swapped_prefixes"] {
            let url = format!("/{view}/m/{family}.zarr/");
            let whole = list_all(&server, &url, None).await;
            assert_eq!(list_all(&server, &url, Some(3)).await, whole, "{url}");
        }
    }
}

#[tokio::test]
async fn hidden_dependents_are_not_nodes_and_unusable_ones_hide_nothing() {
    let server = server();
    let mut withheld = 0;
    for (family, path, expected) in expected().into_iter().filter(|(_, path, _)| !path.is_empty()) {
        if expected["rebased"].is_null() {
            let url = format!("/plain/{}/zarr.json", at(&family, &path));
            server.get(&url).await.refuses(404, "not-found", &url);
            withheld += 1;
        }
    }
    assert_eq!(withheld, 7);
    // Swapped: below the path of one are the chunks of the other, as they are stored.
    let swapped = "swapped_prefixes.zarr/x/c/0/0";
    let stored = server.get(&format!("/store/m/{swapped}")).await;
    assert_eq!(server.get(&format!("/plain/m/{swapped}")).await.body, stored.body);
    // The stored keys of what is shown show nothing, and what declares is not there any more.
    server.get("/plain/m/suffix_siblings.zarr/c/0/0.mask").await.refuses(404, "not-found", "a stored key");
    let document = server.get("/plain/m/suffix_siblings.zarr/zarr.json").await.json();
    assert_eq!(document["attributes"].get("dependent-arrays"), None);
    // Another test reads colliding chunks with `allow_collision`: as chunks they are valid.
    let bad = server.get("/plain/m/key_collision.zarr/bad/c/0/0").await;
    assert_eq!(bad.body, server.get("/store/m/key_collision.zarr/c/0/0").await.body);
}

/// A store of an array `a` that declares `one`, and in that `deep`, each with a chunk, and what is no array's.
async fn nested() -> SharedStore {
    let store = memory();
    let deep = json!({"chunk_key_encoding": prefixed("n/"), "fill_value": 9});
    let one = json!({
        "chunk_key_encoding": prefixed("o-"), "attributes": {"unit": "m", "dependent-arrays": {"deep": deep}},
    });
    let document = primary(&json!({"dependent-arrays": {"one": one}}));
    put(&store, "a/zarr.json", document.to_string()).await;
    for (key, value) in
        [("c/0", "ab"), ("o-c/1", "cd"), ("n/c/0", "ef"), ("n/c/x", "words"), ("one/notes", "")]
    {
        put(&store, &format!("a/{key}"), value).await;
    }
    put(&store, "zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    store
}

async fn keys(server: &Server, url: &str) -> Vec<String> {
    read_all(server, url).await.into_keys().collect()
}

#[tokio::test]
async fn dependents_of_dependents_are_shown_below_them_and_other_keys_unchanged() {
    let server = Server::of(nested().await);
    let expected = [
        "a/c/0",
        "a/n/c/x",
        "a/one/c/1",
        "a/one/deep/c/0",
        "a/one/deep/zarr.json",
        "a/one/notes",
        "a/one/zarr.json",
        "a/zarr.json",
        "zarr.json",
    ];
    assert_eq!(keys(&server, "/plain/m/").await, expected);
    assert_eq!(&*server.get("/plain/m/a/one/deep/c/0").await.body, b"ef");
    let one = server.get("/plain/m/a/one/zarr.json").await.json();
    assert_eq!(one["attributes"], json!({"unit": "m"}));
    let page = server.get("/plain/m/a/").await;
    assert!(String::from_utf8_lossy(&page.body).contains("href=\"one/\""), "{:?}", page.body);
    let found = server.request("PROPFIND", "/plain/m/a/one/", &[("depth", "1")], "").await;
    assert!(String::from_utf8_lossy(&found.body).contains("/plain/m/a/one/deep"), "{:?}", found.body);
    let slash = server.get("/plain/m/a/one").await;
    assert_eq!((slash.status, slash.header("location")), (StatusCode::MOVED_PERMANENTLY, "./one/"));
    for missing in ["a/one/c/0", "a/one/c/2", "a/n/c/0", "a/o-c/1", "a/one/other/zarr.json", "a/c/zarr.json"]
    {
        server.get(&format!("/plain/m/{missing}")).await.refuses(404, "not-found", missing);
    }
    // The store has none of its keys.
    assert_eq!(keys(&server, "/store/m/a/one/").await, ["a/one/notes"]);
}

#[tokio::test]
async fn a_derived_document_follows_every_change_of_the_declaring_one() {
    let store = nested().await;
    let server = Server::of(store.clone());
    let before = server.get("/plain/m/a/one/zarr.json").await;
    let again = [("if-none-match", before.header("etag"))];
    let same = server.ask(Method::GET, "/plain/m/a/one/zarr.json", &again).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
    let one = json!({"chunk_key_encoding": prefixed("n/"), "attributes": {"unit": "s"}});
    put(&store, "a/zarr.json", primary(&json!({"dependent-arrays": {"one": one}})).to_string()).await;
    let after = server.ask(Method::GET, "/plain/m/a/one/zarr.json", &again).await;
    assert_eq!((after.status, &after.json()["attributes"]), (StatusCode::OK, &json!({"unit": "s"})));
    assert_eq!(&*server.get("/plain/m/a/one/c/0").await.body, b"ef");
    server.get("/plain/m/a/one/deep/zarr.json").await.refuses(404, "not-found", "no longer declared");
    erase(&store, "a/zarr.json").await;
    server.get("/plain/m/a/one/zarr.json").await.refuses(404, "not-found", "its primary is gone");
    server.get("/plain/m/a/one/c/0").await.refuses(404, "not-found", "its primary is gone");
}

#[tokio::test]
async fn a_stored_node_is_shown_in_place_of_a_declared_one() {
    let store = nested().await;
    let server = Server::of(store.clone());
    assert_eq!(server.get("/plain/m/a/one/c/1").await.status, StatusCode::OK);
    let mut stored = primary(&json!({}));
    stored["chunk_key_encoding"] = prefixed("k/");
    for name in ["one", "b", "zz"] {
        put(&store, &format!("a/{name}/zarr.json"), stored.to_string()).await;
        put(&store, &format!("a/{name}/k/c/0"), "gh").await;
    }
    let expected = [
        "a/b/c/0",
        "a/b/zarr.json",
        "a/c/0",
        "a/n/c/x",
        "a/one/c/0",
        "a/one/notes",
        "a/one/zarr.json",
        "a/zarr.json",
        "a/zz/c/0",
        "a/zz/zarr.json",
        "zarr.json",
    ];
    // The chunks of what is declared and not shown are not visible.
    assert_eq!(keys(&server, "/plain/m/").await, expected);
    assert_eq!(&*server.get("/plain/m/a/one/c/0").await.body, b"gh");
    server.get("/plain/m/a/one/c/1").await.refuses(404, "not-found", "no longer the declared one's");
    server.get("/plain/m/a/one/deep/zarr.json").await.refuses(
        404,
        "not-found",
        "declared in what is not there",
    );
    let level = server.get("/plain/m/a/?format=json").await.json();
    assert_eq!(level["prefixes"], json!(["a/b/", "a/c/", "a/n/", "a/one/", "a/zz/"]));
    for limit in [1, 2, 3] {
        let whole = list_all(&server, "/plain/m/", None).await;
        assert_eq!(list_all(&server, "/plain/m/", Some(limit)).await, whole, "{limit}");
    }
}

#[tokio::test]
async fn a_valid_dependent_of_an_invalid_primary_is_shown() {
    let store = memory();
    let mut document = primary(&json!({"dependent-arrays": {"one": {"fill_value": 1}, "two": {}}}));
    document["fill_value"] = json!("no number");
    put(&store, "a/zarr.json", document.to_string()).await;
    put(&store, "a/c/0", "ab").await;
    let server = Server::of(store);
    assert_eq!(keys(&server, "/plain/m/").await, ["a/c/0", "a/one/c/0", "a/one/zarr.json", "a/zarr.json"]);
    let document = server.get("/plain/m/a/zarr.json").await.json();
    assert_eq!((&document["fill_value"], &document["attributes"]), (&json!("no number"), &json!({})));
}

#[tokio::test]
async fn a_dependent_is_cached_until_a_node_is_stored_in_its_place() {
    let store = nested().await;
    let counting = Counting::new(store.clone());
    let server = Server::of(counting.clone());
    for url in ["/plain/m/a/one/c/1", "/v1/data/m/a/one"] {
        assert_eq!(server.get(url).await.status, StatusCode::OK);
        counting.reset();
        assert_eq!(server.get(url).await.status, StatusCode::OK);
        assert_eq!(counting.documents(), 0, "{url}: no document is read again");
    }
    put(&store, "a/one/zarr.json", primary(&json!({})).to_string()).await;
    assert_eq!(server.elements("m/a/one", "").await.as_ref(), [7; 4]);
    erase(&store, "a/one/zarr.json").await;
    assert_eq!(server.elements("m/a/one", "").await.as_ref(), b"\x07\x07cd");
}

#[tokio::test]
async fn a_thousand_dependents_are_listed_and_read() {
    let store = memory();
    let dependents: serde_json::Map<String, Value> = (0..1000)
        .map(|number| (format!("d{number}"), json!({"chunk_key_encoding": prefixed(&format!("p{number}/"))})))
        .collect();
    put(&store, "a/zarr.json", primary(&json!({"dependent-arrays": dependents})).to_string()).await;
    put(&store, "a/p999/c/1", "xy").await;
    let server = Server::of(store);
    let listed = list_all(&server, "/plain/m/a/", None).await;
    assert_eq!(listed.len(), 1002);
    assert!(listed.iter().any(|(key, ..)| key == "a/d999/c/1"));
    let page = server.get("/plain/m/a/").await;
    assert!(String::from_utf8_lossy(&page.body).contains("href=\"d500/\""));
    assert_eq!(&*server.get("/plain/m/a/d999/c/1").await.body, b"xy");
}

#[tokio::test]
async fn consolidated_metadata_includes_declared_arrays_on_request() {
    let server = Server::of(nested().await);
    let names = async |query: &str| {
        let document = server.get(&format!("/plain/m/zarr.json?consolidated{query}")).await.json();
        let copies = document["consolidated_metadata"]["metadata"].as_object().unwrap().clone();
        copies.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["a"]);
    assert_eq!(names("&virtual=0").await, ["a"]);
    assert_eq!(names("&virtual=1").await, ["a", "a/one", "a/one/deep"]);
}

#[tokio::test]
async fn a_sharded_dependent_is_shown_without_its_shards() {
    let store = memory();
    let codecs = [Shards::of(&[2], &[Codec::Bytes { big: false }]).codec()];
    let array = Array::of(&[16]).chunks(&[8]).codecs(codecs);
    array.store(&store, "stored").await;
    let mut document = array.document().1;
    let encoding = json!({"name": "suffix", "configuration": {"suffix": ".d", "base_encoding": "v2"}});
    document["attributes"] = json!({"dependent-arrays": {"d": {"chunk_key_encoding": encoding}}});
    put(&store, "a/zarr.json", document.to_string()).await;
    let server = Server::of(store.clone());
    for chunk in 0..2 {
        let shard = server.get(&format!("/store/m/stored/c/{chunk}")).await.body;
        put(&store, &format!("a/{chunk}.d"), shard).await;
    }
    let expected: Vec<String> = (0..8).map(|chunk| format!("a/d/c/{chunk}")).collect();
    let shown = keys(&server, "/unshard/m/a/d/").await;
    assert_eq!(shown, [expected, vec!["a/d/zarr.json".to_owned()]].concat());
    for chunk in 0..8 {
        let one = server.get(&format!("/unshard/m/a/d/c/{chunk}")).await;
        assert_eq!(one.body, server.get(&format!("/unshard/m/stored/c/{chunk}")).await.body);
    }
    let copied = Server::of(copy(&server, "/unshard/m/").await);
    assert_eq!(copied.elements("m/a/d", "").await, server.elements("m/stored", "").await);
    assert_eq!(keys(&server, "/plain/m/a/d/").await, ["a/d/c/0", "a/d/c/1", "a/d/zarr.json"]);
}

#[tokio::test]
async fn keys_of_known_encodings_are_rebased_and_others_unchanged() {
    let text = std::fs::read_to_string(format!("{FOLDER}/cke_vectors.json")).unwrap();
    let vectors: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(vectors.len(), 52);
    for (number, vector) in vectors.iter().enumerate() {
        let coords: Vec<u64> = serde_json::from_value(vector["index"].clone()).unwrap();
        let shape: Vec<u64> = coords.iter().map(|coord| coord + 1).collect();
        let mut array = primary(&json!({}));
        array["shape"] = json!(shape);
        array["chunk_grid"]["configuration"]["chunk_shape"] = json!(vec![1; shape.len()]);
        let mut declares = array.clone();
        array["chunk_key_encoding"] = vector["encoding"].clone();
        let dependent = json!({"chunk_key_encoding": vector["encoding"], "attributes": {}});
        declares["attributes"] = json!({"dependent-arrays": {"d": dependent}});
        // Nothing that the vectors' keys could be taken for.
        declares["chunk_key_encoding"] = prefixed("_/");
        let store = memory();
        put(&store, "a/zarr.json", array.to_string()).await;
        put(&store, "b/zarr.json", declares.to_string()).await;
        let server = Server::of(store.clone());
        let Some(key) = vector["key"].as_str() else {
            let shown = server.get("/plain/m/a/zarr.json").await.json();
            assert_eq!(name_of(&shown["chunk_key_encoding"]), name_of(&vector["encoding"]), "{vector}");
            let code = vector["error"].as_str().unwrap();
            let status = if code.starts_with("unsupported") { 501 } else { 422 };
            server.get("/v1/nodes/m/b/d").await.refuses(status, code, &vector.to_string());
            server.get("/plain/m/b/d/zarr.json").await.refuses(404, "not-found", &vector.to_string());
            continue;
        };
        for prefix in ["a", "b"] {
            put(&store, &format!("{prefix}/{key}"), format!("{number:03}")).await;
        }
        let value = format!("{number:03}");
        let shown = ChunkKeyEncoding::canonical().encode(&coords);
        let core = ["default", "v2"].map(Some).contains(&name_of(&vector["encoding"]));
        let expected = if core { key } else { &shown };
        let found = keys(&server, "/plain/m/a/").await;
        assert_eq!(found, [format!("a/{expected}"), "a/zarr.json".to_owned()], "{vector}");
        assert_eq!(server.get(&format!("/plain/m/a/{expected}")).await.body, value, "{vector}");
        let found = keys(&server, "/plain/m/b/").await;
        let expected = [format!("b/d/{shown}"), "b/d/zarr.json".to_owned(), "b/zarr.json".to_owned()];
        assert_eq!(found, expected, "{vector}");
        assert_eq!(server.get(&format!("/plain/m/b/d/{shown}")).await.body, value, "{vector}");
    }
}

/// The name of an encoding, long or short.
fn name_of(encoding: &Value) -> Option<&str> {
    encoding.as_str().or_else(|| encoding["name"].as_str())
}
