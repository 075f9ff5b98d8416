//! Nodes are copied and moved by `/v1/nodes`: whole or not at all for readers, and nothing is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::Method;
use bytes::Bytes;
use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::{LocalOptions, LocalStore, SharedStore, Symlinks};
use zarrd::write::WriteOptions;

use crate::access::{access, grant, known, token};
use crate::support::hierarchy::memory;
use crate::support::journal::Journal;
use crate::support::s3::TestS3;
use crate::support::server::{Answer, Server, contents, erase, put};

/// A mount in which everything may be done.
fn mount(name: &str, store: &SharedStore) -> Mount {
    Mount { writable: true, allow_prefix_delete: true, ..Mount::read_only(name, store.clone()) }
}

/// A server of a store as `m`.
fn server(store: &SharedStore) -> Server {
    Server::build(mount("m", store)).finish()
}

impl Server {
    async fn transfer(&self, target: &str, query: &str) -> Answer {
        self.ask(Method::PUT, &format!("/v1/nodes/{target}?{query}"), &[]).await
    }

    async fn make(&self, path: &str, body: &Value) {
        let headers = [("content-type", "application/json")];
        let made = self.request("PUT", &format!("/v1/nodes/{path}"), &headers, body.to_string()).await;
        assert_eq!(made.status, 201, "{made:?}");
    }

    async fn fill(&self, path: &str, element: i32) {
        let headers = [("content-type", "application/json")];
        let url = format!("/v1/data/{path}");
        let written = self.request("PUT", &url, &headers, element.to_string()).await;
        assert_eq!(written.status, 204, "{written:?}");
    }
}

/// What is below a prefix, by the rest of the key.
async fn below(store: &SharedStore, prefix: &str) -> BTreeMap<String, Bytes> {
    let all = contents(store).await.into_iter();
    all.filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.to_owned(), value))).collect()
}

async fn document(store: &SharedStore, key: &str) -> Value {
    serde_json::from_slice(&contents(store).await[key]).unwrap()
}

/// Stores a group `s` of two levels with arrays of both formats.
async fn fill(server: &Server, mount: &str) {
    let array = json!({
        "shape": [5, 7], "data_type": "int16", "chunks": [2, 3], "shards": [4, 6], "fill_value": -1,
        "dimension_names": ["y", "x"], "attributes": {"units": "K"},
    });
    server.make(&format!("{mount}/s"), &json!({"node_type": "group", "attributes": {"n": 1.5}})).await;
    server.make(&format!("{mount}/s/g/a"), &array).await;
    server.fill(&format!("{mount}/s/g/a?slice=1:4,2:6"), 9).await;
    let of_v2 = json!({
        "zarr_format": 2, "shape": [4], "data_type": "<f8", "chunks": [2], "attributes": {"old": true},
    });
    server.make(&format!("{mount}/s/v2/b"), &of_v2).await;
    server.fill(&format!("{mount}/s/v2/b"), 3).await;
    server.make(&format!("{mount}/s/empty"), &json!({"shape": [3], "data_type": "uint8"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_node_is_what_its_source_is_on_every_backend() {
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let local: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    let s3 = TestS3::start().await;
    let stores = [("local", local), ("memory", memory()), ("s3", s3.store())];
    let mut builder = Server::build(mount("local", &stores[0].1));
    for (name, store) in &stores[1..] {
        builder = builder.beside(mount(name, store));
    }
    let server = builder.finish();
    for (from, source) in &stores {
        fill(&server, from).await;
        let expected = below(source, "s/").await;
        assert_eq!(expected.len(), 10, "{expected:?}");
        for (to, target) in &stores {
            let path = format!("{to}/copies/of_{from}");
            let name = if from == to { "s".to_owned() } else { format!("{from}:s") };
            let made = server.transfer(&path, &format!("copy={name}")).await;
            assert_eq!(made.status, 201, "{from} {to}: {made:?}");
            assert_eq!(made.header("location"), format!("/v1/nodes/{path}"));
            assert_eq!(made.json()["metadata"]["attributes"], json!({"n": 1.5}));
            assert_eq!(below(target, &format!("copies/of_{from}/")).await, expected, "{from} {to}");
            assert_eq!(document(target, "copies/zarr.json").await["node_type"], "group");
            for array in ["g/a", "v2/b", "empty"] {
                let read =
                    async |path: &str| server.get(&format!("/v1/data/{path}/{array}?format=json")).await;
                let (one, other) = (read(&format!("{from}/s")).await, read(&path).await);
                assert_eq!((one.status.as_u16(), one.body), (200, other.body), "{from} {to} {array}");
            }
        }
        assert_eq!(below(source, "s/").await, expected, "a copy leaves its source");
    }
    assert_eq!(server.in_flight_bytes(), 0);
}

#[tokio::test]
async fn an_array_or_a_whole_mount_is_copied() {
    let (store, other) = (memory(), memory());
    let server = Server::build(mount("m", &store)).beside(mount("other", &other)).finish();
    fill(&server, "m").await;
    for (target, query, status) in [
        ("m/t", "copy=/s/g/a/", 201),
        ("m/s/g/c", "copy=s/g/a", 201),
        ("m/a:b", "copy=m:s/g/a", 201),
        ("m/d", "copy=/a:b", 201),
        ("other", "copy=m:", 201),
    ] {
        let made = server.transfer(target, query).await;
        assert_eq!(made.status, status, "{query}: {made:?}");
    }
    let array = below(&store, "s/g/a/").await;
    assert!(array.len() > 1);
    for prefix in ["t/", "s/g/c/", "a:b/", "d/"] {
        assert_eq!(below(&store, prefix).await, array, "{prefix}");
    }
    assert_eq!(contents(&other).await, contents(&store).await);
    // A copy is an array of its own.
    server.fill("m/t", 1).await;
    assert_eq!(below(&store, "s/g/a/").await, array);
}

#[tokio::test]
async fn a_moved_node_is_at_its_target_alone() {
    let (store, other) = (memory(), memory());
    let server = Server::build(mount("m", &store)).beside(mount("other", &other)).finish();
    fill(&server, "m").await;
    let expected = below(&store, "s/").await;
    let moved = server.transfer("m/t", "move=s").await;
    assert_eq!((moved.status.as_u16(), moved.header("location")), (201, "/v1/nodes/m/t"), "{moved:?}");
    assert_eq!((below(&store, "s/").await.len(), below(&store, "t/").await), (0, expected.clone()));
    assert_eq!(server.get("/v1/nodes/m/s").await.status, 404);
    let moved = server.transfer("other/u/v", "move=m:t").await;
    assert_eq!(moved.status, 201, "{moved:?}");
    assert_eq!((below(&store, "t/").await.len(), below(&other, "u/v/").await), (0, expected));
    assert_eq!(server.get("/v1/data/other/u/v/v2/b?format=json").await.json(), json!([3.0, 3.0, 3.0, 3.0]));
    assert_eq!(server.in_flight_bytes(), 0);
}

#[tokio::test]
async fn readers_see_no_part_of_a_node() {
    let journal = Journal::new(memory());
    let store: SharedStore = journal.clone();
    let server = server(&store);
    fill(&server, "m").await;
    journal.take();
    assert_eq!(server.transfer("m/t", "move=s").await.status, 201);
    let writes = journal.take();
    let place = |write: &str| {
        let found = writes.iter().position(|known| known == write);
        found.unwrap_or_else(|| panic!("{write}: {writes:?}"))
    };
    let is_document =
        |write: &str| [".json", ".zarray", ".zgroup", ".zattrs"].iter().any(|name| write.ends_with(name));
    let own = place("set t/zarr.json");
    let first_document = writes.iter().position(|write| is_document(write)).unwrap();
    let last_value =
        writes.iter().rposition(|write| write.starts_with("set") && !is_document(write)).unwrap();
    assert!(last_value < first_document, "values are first: {writes:?}");
    assert!(writes[..own].iter().all(|write| write.starts_with("set t/")), "{writes:?}");
    assert!(writes[own + 1..].iter().all(|write| write.starts_with("erase s/")), "{writes:?}");
    for (below, above) in [("t/g/a/zarr.json", "t/g/zarr.json"), ("t/v2/b/.zarray", "t/v2/.zgroup")] {
        assert!(place(&format!("set {below}")) < place(&format!("set {above}")), "{writes:?}");
        let of_source = |key: &str| place(&format!("erase {}", key.replacen('t', "s", 1)));
        assert!(of_source(above) < of_source(below), "{writes:?}");
    }
    assert_eq!(writes[own + 1], "erase s/zarr.json");
    assert!(place("set t/v2/b/.zattrs") < place("set t/v2/b/.zarray"), "{writes:?}");
}

#[tokio::test]
async fn a_copy_that_breaks_off_at_any_write_shows_no_node_and_can_be_made_again() {
    let inner = memory();
    fill(&server(&inner), "m").await;
    let expected = below(&inner, "s/").await;
    let mut broken_off = 0;
    for writes in 0.. {
        // The source has no faults.
        let target = memory();
        let journal = Journal::new(target.clone());
        let store: SharedStore = journal.clone();
        let server = Server::build(mount("m", &inner)).beside(mount("other", &store)).finish();
        journal.fail_after(writes);
        let answer = server.transfer("other/x/t", "copy=m:s").await;
        if answer.status == 201 {
            break;
        }
        broken_off += 1;
        assert!(answer.status.is_server_error(), "{answer:?}");
        assert_eq!(server.get("/v1/nodes/other/x/t").await.status, 404);
        for array in ["g/a", "v2/b", "empty"] {
            let url = |mount: &str| format!("/v1/data/{mount}/{array}?format=json");
            let seen = server.get(&url("other/x/t")).await;
            if seen.status != 404 {
                assert_eq!(
                    seen.json(),
                    server.get(&url("m/s")).await.json(),
                    "{array} after {writes} writes"
                );
            }
        }
        let has_written = !contents(&target).await.is_empty();
        let written = if has_written { json!("some") } else { json!(false) };
        assert_eq!(answer.json()["written"], written, "{answer:?}");
        journal.fail_after(usize::MAX);
        let again = server.transfer("other/x/t", "copy=m:s").await;
        assert_eq!(again.status, 201, "after {writes} writes: {again:?}");
        assert_eq!(below(&target, "x/t/").await, expected);
        assert_eq!(server.in_flight_bytes(), 0);
    }
    assert!(broken_off > expected.len(), "{broken_off}");
}

/// Moves `s` to `t` and lets it break off at each write in turn, then finishes it; at the end there is the node at its target alone.
async fn break_moves_off(finish: impl AsyncFn(&Server) -> Answer, completes_copies: bool) {
    let (mut broken_off, mut after_the_target) = (0, 0);
    for writes in 0.. {
        let inner = memory();
        let journal = Journal::new(inner.clone());
        let store: SharedStore = journal.clone();
        let server = Server::build(mount("m", &store)).finish();
        let group = json!({"zarr_format": 3, "node_type": "group",
            "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {}}});
        put(&inner, "zarr.json", group.to_string()).await;
        fill(&server, "m").await;
        let expected = below(&inner, "s/").await;
        let mut arrays = BTreeMap::new();
        for array in ["g/a", "v2/b", "empty"] {
            let whole = server.get(&format!("/v1/data/m/s/{array}?format=json")).await.body;
            arrays.insert(array, whole);
        }
        journal.fail_after(writes);
        let answer = server.transfer("m/t", "move=s").await;
        journal.fail_after(usize::MAX);
        let is_done = answer.status == 201;
        if !is_done {
            broken_off += 1;
            assert!(answer.status.is_server_error(), "{answer:?}");
            let is_there = server.get("/v1/nodes/m/t").await.status == 200;
            // No reader sees half of an array, neither here nor there.
            for (array, whole) in &arrays {
                for root in ["s", "t"] {
                    let read = server.get(&format!("/v1/data/m/{root}/{array}?format=json")).await;
                    assert!(read.status == 404 || read.body == *whole, "{root}/{array}: {read:?}");
                }
            }
            if is_there && !below(&inner, "s/").await.is_empty() {
                after_the_target += 1;
                let finished = finish(&server).await;
                assert!(finished.status.is_success(), "after {writes} writes: {finished:?}");
            } else if !is_there {
                assert_eq!(server.transfer("m/t", "move=s").await.status, 201, "after {writes} writes");
            }
        }
        assert_eq!(below(&inner, "t/").await, expected, "after {writes} writes");
        assert_eq!(below(&inner, "s/").await, BTreeMap::new(), "after {writes} writes");
        let copies = document(&inner, "zarr.json").await["consolidated_metadata"]["metadata"].clone();
        let names: Vec<&String> = copies.as_object().unwrap().keys().collect();
        let has_target = !names.is_empty() || !(completes_copies || is_done);
        assert!(names.iter().all(|name| name.starts_with('t')) && has_target, "{names:?}");
        assert_eq!(server.get("/v1/nodes/m/s").await.status, 404);
        let again = server.transfer("m/t", "move=s").await;
        assert_eq!(again.status, 404, "nothing is left: {again:?}");
        assert_eq!(server.in_flight_bytes(), 0);
        if is_done {
            break;
        }
    }
    assert!(broken_off > 20 && after_the_target > 5, "{broken_off} {after_the_target}");
}

#[tokio::test]
async fn a_move_that_breaks_off_at_any_write_is_finished_by_the_same_request() {
    break_moves_off(async |server: &Server| server.transfer("m/t", "move=s").await, true).await;
}

#[tokio::test]
async fn what_a_move_leaves_of_its_source_is_erased_by_an_erasure_of_the_source() {
    break_moves_off(async |server: &Server| server.ask(Method::DELETE, "/v1/nodes/m/s", &[]).await, false)
        .await;
}

#[tokio::test]
async fn a_repeated_move_erases_nothing_of_its_source_that_is_not_at_its_target() {
    let store = memory();
    let server = server(&store);
    let array = json!({"shape": [4], "data_type": "uint8", "chunks": [2], "codecs": "raw"});
    for (changed, value) in
        [("s/c/0", Some("12")), ("t/c/0", Some("12")), ("t/c/1", None), ("s/more", Some("12"))]
    {
        server.make("m/s", &array).await;
        server.fill("m/s", 1).await;
        assert_eq!(server.transfer("m/t", "copy=s").await.status, 201);
        let document = contents(&store).await["s/zarr.json"].clone();
        for has_document in [true, false] {
            match value {
                Some(value) => put(&store, changed, value).await,
                None => erase(&store, changed).await,
            }
            if !has_document {
                erase(&store, "s/zarr.json").await;
            }
            let before = contents(&store).await;
            let refused = server.transfer("m/t", "move=s").await;
            let detail = refused.refuses(409, "conflict", changed);
            assert!(detail.contains("is not the same there"), "{detail}");
            assert_eq!(refused.json()["written"], false, "{changed}");
            assert_eq!(contents(&store).await, before, "{changed}");
        }
        put(&store, "s/zarr.json", document).await;
        for node in ["s", "t"] {
            assert_eq!(server.ask(Method::DELETE, &format!("/v1/nodes/m/{node}"), &[]).await.status, 204);
        }
    }
    // A copy and its source are one node after a move of the one to the other, unless there must be none.
    server.make("m/s", &array).await;
    assert_eq!(server.transfer("m/t", "copy=s").await.status, 201);
    let headers = [("if-none-match", "*")];
    assert_eq!(server.ask(Method::PUT, "/v1/nodes/m/t?move=s", &headers).await.status, 412);
    assert_eq!(server.transfer("m/t", "move=s").await.status, 201);
    assert_eq!(
        (server.get("/v1/nodes/m/s").await.status, server.get("/v1/nodes/m/t").await.status),
        (404.try_into().unwrap(), 200.try_into().unwrap())
    );
}

#[tokio::test]
async fn a_repeated_move_between_two_mounts_of_one_place_loses_nothing() {
    let store = memory();
    let folder = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, symlinks: Symlinks::Follow, ..LocalOptions::default() };
    let outer = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(folder.path().join("g"), outer.path().join("g")).unwrap();
    let local =
        |path: &std::path::Path| -> SharedStore { Arc::new(LocalStore::open(path, &options).unwrap()) };
    for (one, other) in [(store.clone(), store), (local(outer.path()), local(folder.path()))] {
        let server = Server::build(mount("outer", &one)).beside(mount("inner", &other)).finish();
        server.make("inner/g", &json!({"shape": [4], "data_type": "uint8", "chunks": [1]})).await;
        server.fill("inner/g", 7).await;
        for (target, source) in [("inner/g", "outer:g"), ("outer/g", "inner:g")] {
            let refused = server.transfer(target, &format!("move={source}")).await;
            assert_eq!(refused.status, 409, "{target}: {refused:?}");
            assert_eq!(server.elements("inner/g", ":").await, vec![7; 4], "{target}");
        }
    }
}

#[tokio::test]
async fn an_erasure_without_a_node_erases_what_is_left_and_no_part_of_an_array() {
    let store = memory();
    let server = server(&store);
    let array = json!({"shape": [4], "data_type": "uint8", "chunks": [2], "codecs": "raw"});
    server.make("m/a", &array).await;
    server.fill("m/a", 1).await;
    let of_v2 = json!({"zarr_format": 2, "shape": [4, 4], "data_type": "|u1", "chunks": [2, 2]});
    server.make("m/old", &of_v2).await;
    put(&store, "old/0/0", "1111").await;
    put(&store, "left/c/0", "x").await;
    // Either may be an array.
    for (path, document) in
        [("broken", "{"), ("odd", r#"{"zarr_format": 3, "node_type": "array", "shape": [1]}"#)]
    {
        put(&store, &format!("{path}/zarr.json"), document).await;
        put(&store, &format!("{path}/c/0"), "x").await;
    }
    let before = contents(&store).await;
    for path in ["a/c", "a/c/0", "old/0", "none", "lef", "broken/c", "odd/c/0"] {
        let missing = server.ask(Method::DELETE, &format!("/v1/nodes/m/{path}"), &[]).await;
        assert_eq!(missing.status, 404, "{path}: {missing:?}");
        assert_eq!(contents(&store).await, before, "{path}");
    }
    // Under a condition there must be a node.
    let conditional = server.ask(Method::DELETE, "/v1/nodes/m/left", &[("if-match", "\"x\"")]).await;
    assert_eq!(conditional.status, 404, "{conditional:?}");
    assert_eq!(contents(&store).await, before);
    assert_eq!(server.ask(Method::DELETE, "/v1/nodes/m/left", &[]).await.status, 204);
    assert_eq!(server.ask(Method::DELETE, "/v1/nodes/m/left", &[]).await.status, 404);
    let kept = before.into_iter().filter(|(key, _)| key != "left/c/0").collect();
    assert_eq!(contents(&store).await, kept);
    // The root of a mount, which may hold anything, is erased only if it is a node.
    erase(&store, "zarr.json").await;
    assert_eq!(server.ask(Method::DELETE, "/v1/nodes/m", &[]).await.status, 404);
}

#[tokio::test]
async fn consolidated_metadata_of_both_hierarchies_stays_true() {
    let store = memory();
    let server = server(&store);
    fill(&server, "m").await;
    let inline = json!({"kind": "inline", "must_understand": false, "metadata": {}});
    for root in ["one", "two"] {
        let group = json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": inline});
        put(&store, &format!("{root}/zarr.json"), group.to_string()).await;
        put(&store, &format!("{root}/.zgroup"), r#"{"zarr_format": 2}"#).await;
        let copies = json!({"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}}});
        put(&store, &format!("{root}/.zmetadata"), copies.to_string()).await;
    }
    let copies = async |root: &str, document: &str| {
        let document = document_of(&store, root, document).await;
        let copies = document.get("consolidated_metadata").unwrap_or(&document)["metadata"].clone();
        copies.as_object().unwrap().clone()
    };
    assert_eq!(server.transfer("m/one/s", "copy=s").await.status, 201);
    let all = below(&store, "s/").await;
    let of_v3: Vec<_> = copies("one", "zarr.json").await.into_iter().collect();
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let names: Vec<_> = of_v3.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, named(&["s", "s/empty", "s/g", "s/g/a"]));
    for (path, copy) in of_v3 {
        let key = format!("{path}/zarr.json");
        let stored: Value = serde_json::from_slice(&all[key.strip_prefix("s/").unwrap()]).unwrap();
        assert_eq!(copy, stored, "{path}");
    }
    let of_v2: Vec<_> = copies("one", ".zmetadata").await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(of_v2, named(&[".zgroup", "s/v2/.zgroup", "s/v2/b/.zattrs", "s/v2/b/.zarray"]));
    // A move takes the copies along.
    let before = (copies("one", "zarr.json").await, copies("one", ".zmetadata").await);
    assert_eq!(server.transfer("m/two/s", "move=one/s").await.status, 201);
    assert_eq!((copies("two", "zarr.json").await, copies("two", ".zmetadata").await), before);
    assert_eq!(copies("one", "zarr.json").await.len(), 0);
}

async fn document_of(store: &SharedStore, root: &str, name: &str) -> Value {
    document(store, &format!("{root}/{name}")).await
}

#[tokio::test]
async fn what_cannot_be_copied_is_refused_and_nothing_is_written() {
    let (store, read_only) = (memory(), memory());
    let mut builder = Server::build(mount("m", &store))
        .beside(Mount::read_only("r", read_only.clone()))
        .beside(Mount { writable: true, ..Mount::read_only("careful", store.clone()) });
    builder.write = WriteOptions { max_values: 20, ..WriteOptions::default() };
    builder.http.max_value_size = 4096;
    let server = builder.finish();
    fill(&server, "m").await;
    put(&store, "old/meta", r#"{"zarr_format": 1}"#).await;
    put(&store, "left/c/9", "x").await;
    put(&store, "long/zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    put(&store, "long/value", vec![0; 5000]).await;
    put(&store, "many/zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    for number in 0..20 {
        put(&store, &format!("many/{number}"), "x").await;
    }
    put(&read_only, "g/zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    let before = contents(&store).await;
    for (target, query, status, said) in [
        ("m/s", "copy=r:g", 409, "there is a node at `/s`"),
        ("m/left", "copy=s/g/a", 409, "`left/c/9` is stored at the target already"),
        ("m/s/g/t", "copy=s", 409, "one is in the other"),
        ("m/s", "copy=", 409, "one is in the other"),
        ("m", "copy=s", 409, "one is in the other"),
        ("m/new", "copy=", 409, "one is in the other"),
        ("m/s/g/a/t", "copy=s/empty", 409, "`/s/g/a` is an array"),
        ("m/t", "copy=none", 404, "no array or group at `/none`"),
        ("m/t", "copy=m:s/g/a/c", 404, "no array or group"),
        ("m/t", "copy=unknown:s", 404, "no mount `unknown`"),
        ("m/t", "copy=unknown:s", 404, "the mounts are `careful`, `m`, `r`;"),
        ("m/t", "copy=..", 400, "`..`"),
        ("m/t", "copy=s&move=s", 400, "`copy` and `move` cannot be mixed"),
        ("m/t", "copy=s&copy=s", 400, "more than once"),
        ("m/t", "copi=s", 400, "did you mean `copy`"),
        ("m/t", "copy=many", 413, "`write.max_values`"),
        ("m/t", "copy=long", 413, "`long/value` has 5000 bytes"),
        ("m/t", "copy=old", 501, "v1"),
        ("r/t", "copy=m:s", 405, "mounts.r.writable"),
        ("m/t", "move=r:g", 405, "mounts.r.writable"),
        ("m/t", "move=careful:s", 405, "mounts.careful.allow_prefix_delete"),
    ] {
        let answer = server.transfer(target, query).await;
        assert_eq!(answer.status, status, "{target} {query}: {answer:?}");
        let problem = answer.json();
        assert!(problem["detail"].as_str().unwrap().contains(said), "{said}: {problem}");
        assert!(status == 405 || problem["written"] == false, "{problem}");
        assert_eq!(contents(&store).await, before, "{target} {query}");
    }
    let headers = [("if-none-match", "*")];
    let taken = server.ask(Method::PUT, "/v1/nodes/m/s?copy=r:g", &headers).await;
    assert_eq!((taken.status.as_u16(), &taken.json()["written"]), (412, &json!(false)));
    let conditional = server.ask(Method::PUT, "/v1/nodes/m/t?copy=s", &[("if-match", "\"x\"")]).await;
    assert_eq!(conditional.status, 400, "{conditional:?}");
    let with_body = server.request("PUT", "/v1/nodes/m/t?copy=s", &[], "{}").await;
    assert!(with_body.refuses(400, "invalid-request", "body").contains("no body"));
    assert_eq!(contents(&store).await, before);
    let copied = server.ask(Method::PUT, "/v1/nodes/m/t?copy=r:g", &headers).await;
    assert_eq!(copied.status, 201, "{copied:?}");
    assert_eq!(server.in_flight_bytes(), 0);
}

#[tokio::test]
async fn a_copy_takes_the_rights_to_read_its_source_and_a_move_to_erase_it() {
    let store = memory();
    let server = server(&store);
    fill(&server, "m").await;
    let grants =
        |own: &[&str], of_source: &[&str]| json!([grant("m", "t/", own), grant("m", "s/", of_source)]);
    let tokens = json!({
        "blind": known("blind", grants(&["write"], &["write"])),
        "copies": known("copies", grants(&["write"], &["read"])),
        "moves": known("moves", grants(&["write"], &["read", "delete"])),
        "reads": known("reads", grants(&["read"], &["read", "delete"])),
        "narrow": known("narrow", json!([grant("m", "t/", &["write"]), grant("m", "s/g/", &["read"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    let before = contents(&store).await;
    let send = async |who: &str, target: &str, query: &str| {
        let bearer = format!("Bearer {}", token(who));
        let url = format!("/v1/nodes/{target}?{query}");
        server.ask(Method::PUT, &url, &[("authorization", &bearer)]).await
    };
    for (who, target, query, status) in [
        ("blind", "m/t/a", "copy=s", 403),
        ("copies", "m/t/a", "move=s", 403),
        ("reads", "m/t/a", "copy=s", 403),
        ("copies", "m/u", "copy=s", 403),
        ("narrow", "m/t/a", "copy=s", 403),
        ("copies", "m/t/a", "copy=", 403),
        // Whether there is such a mount or node is not said.
        ("copies", "m/t/a", "copy=other:s", 403),
        ("copies", "m/t/a", "copy=u", 403),
    ] {
        let answer = send(who, target, query).await;
        assert_eq!(answer.status, status, "{who} {target} {query}: {answer:?}");
        assert_eq!(contents(&store).await, before);
    }
    // The group above is not theirs to make.
    put(&store, "zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    put(&store, "t/zarr.json", json!({"zarr_format": 3, "node_type": "group"}).to_string()).await;
    for (who, target, query) in
        [("copies", "m/t/a", "copy=s"), ("narrow", "m/t/b", "copy=s/g"), ("moves", "m/t/c", "move=s")]
    {
        let answer = send(who, target, query).await;
        assert_eq!(answer.status, 201, "{who} {target} {query}: {answer:?}");
        assert!(answer.body.is_empty(), "who may not read the target is not shown it");
    }
}

#[tokio::test]
async fn what_is_written_to_the_source_of_a_move_meanwhile_is_not_lost() {
    let journal = Journal::new(memory());
    let store: SharedStore = journal.clone();
    let server = server(&store);
    let array = json!({"shape": [4], "data_type": "uint8", "chunks": [2], "codecs": "raw"});
    server.make("m/a", &array).await;
    server.fill("m/a", 1).await;
    // A chunk that was copied already.
    journal.write_before("t/zarr.json", &[("a/c/1", &[8, 9])]);
    let moved = server.transfer("m/t", "move=a").await;
    assert_eq!((moved.status.as_u16(), &moved.json()["written"]), (409, &json!("some")), "{moved:?}");
    assert!(
        moved.json()["detail"].as_str().unwrap().contains("1 values of the source were written"),
        "{moved:?}"
    );
    assert_eq!(server.get("/v1/data/m/t?format=json").await.json(), json!([1, 1, 1, 1]));
    let left = below(&store, "a/").await;
    assert_eq!(left, BTreeMap::from([("c/1".to_owned(), Bytes::from_static(&[8, 9]))]));
    // A document that was read already: there is no node at the target, and the same request moves all of it.
    server.make("m/b", &array).await;
    server.fill("m/b", 1).await;
    let grown = contents(&store).await["b/zarr.json"].clone();
    let grown = String::from_utf8(grown.to_vec()).unwrap().replacen('4', "6", 1);
    journal.write_before("u/c/0", &[("b/c/2", &[5, 5]), ("b/zarr.json", grown.as_bytes())]);
    let moved = server.transfer("m/u", "move=b").await;
    assert_eq!((moved.status.as_u16(), &*moved.code()), (503, "contended"), "{moved:?}");
    assert_eq!(
        (server.get("/v1/nodes/m/u").await.status, &moved.json()["written"]),
        (404.try_into().unwrap(), &json!("some"))
    );
    assert_eq!(server.get("/v1/data/m/b?format=json").await.json(), json!([1, 1, 1, 1, 5, 5]));
    assert_eq!(server.transfer("m/u", "move=b").await.status, 201);
    assert_eq!(server.get("/v1/data/m/u?format=json").await.json(), json!([1, 1, 1, 1, 5, 5]));
    assert_eq!(below(&store, "b/").await.len(), 0);
}

#[tokio::test]
async fn a_copy_of_an_array_that_changes_has_no_fill_in_place_of_elements() {
    let journal = Journal::new(memory());
    let store: SharedStore = journal.clone();
    let server = server(&store);
    let array = json!({"shape": [4], "data_type": "uint8", "chunks": [2], "codecs": "raw"});
    server.make("m/a", &array).await;
    server.fill("m/a", 1).await;
    let document = String::from_utf8(contents(&store).await["a/zarr.json"].to_vec()).unwrap();
    let of_length = |length: &str| document.replacen('4', length, 1);
    // It grows: the copy has the length that it had before.
    journal.write_before("t/c/0", &[("a/c/2", &[5, 5]), ("a/zarr.json", of_length("6").as_bytes())]);
    assert_eq!(server.transfer("m/t", "copy=a").await.status, 201);
    assert_eq!(server.get("/v1/data/m/t?format=json").await.json(), json!([1, 1, 1, 1]));
    assert_eq!(server.get("/v1/data/m/a?format=json").await.json(), json!([1, 1, 1, 1, 5, 5]));
    // It shrinks: its chunks may be erased before they are copied.
    journal.write_before("u/c/0", &[("a/zarr.json", of_length("2").as_bytes())]);
    let shrunk = server.transfer("m/u", "copy=a").await;
    assert_eq!((shrunk.status.as_u16(), &*shrunk.code()), (503, "contended"), "{shrunk:?}");
    assert!(shrunk.json()["detail"].as_str().unwrap().contains("`a/zarr.json` of the source changed"));
    assert_eq!(server.get("/v1/nodes/m/u").await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_copies_to_one_path_one_succeeds_and_none_is_mixed_into_it() {
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let store: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    let server = server(&store);
    for source in 0..4 {
        let array = json!({"shape": [8], "data_type": "uint8", "chunks": [1], "codecs": "raw"});
        server.make(&format!("m/a{source}"), &array).await;
        // Each has other chunks.
        server.fill(&format!("m/a{source}?slice={}:{}", source * 2, source * 2 + 2), source + 1).await;
    }
    for round in 0..5 {
        let copies = (0..4).map(|source| {
            let server = server.clone();
            let (target, query) = (format!("m/t{round}"), format!("copy=a{source}"));
            tokio::spawn(async move { server.transfer(&target, &query).await })
        });
        let mut made = Vec::new();
        for (source, copy) in copies.collect::<Vec<_>>().into_iter().enumerate() {
            let answer = copy.await.unwrap();
            assert!(matches!(answer.status.as_u16(), 201 | 409 | 503), "{answer:?}");
            if answer.status == 201 {
                made.push(source);
            }
        }
        let [source] = made[..] else { panic!("{made:?}") };
        assert_eq!(below(&store, &format!("t{round}/")).await, below(&store, &format!("a{source}/")).await);
    }
}

#[tokio::test]
async fn a_copy_that_is_made_again_keeps_what_is_there_and_refuses_what_is_different() {
    let store = memory();
    let server = server(&store);
    let array = json!({"shape": [4], "data_type": "uint8", "chunks": [2], "codecs": "raw"});
    server.make("m/a", &array).await;
    server.fill("m/a", 1).await;
    put(&store, "t/c/0", vec![1, 1]).await;
    assert_eq!(server.transfer("m/t", "copy=a").await.status, 201);
    assert_eq!(server.get("/v1/data/m/t?format=json").await.json(), json!([1, 1, 1, 1]));
    for other in [vec![1, 2], vec![1]] {
        put(&store, "u/c/0", other.clone()).await;
        let before = contents(&store).await;
        let refused = server.transfer("m/u", "copy=a").await;
        assert!(refused.refuses(409, "conflict", "u").contains("`u/c/0` is stored at the target already"));
        let after = contents(&store).await;
        assert_eq!((&after["u/c/0"], after.contains_key("u/zarr.json")), (&before["u/c/0"], false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_overlaps_its_source_through_a_link_is_refused_and_writes_nothing() {
    let (outer, inner) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let local = |directory: &tempfile::TempDir| -> SharedStore {
        let options = LocalOptions { writable: true, symlinks: Symlinks::Follow, ..LocalOptions::default() };
        Arc::new(LocalStore::open(directory.path(), &options).unwrap())
    };
    let (in_outer, in_inner) = (local(&outer), local(&inner));
    let server = Server::build(mount("outer", &in_outer)).beside(mount("inner", &in_inner)).finish();
    server.make("inner/g", &json!({"node_type": "group"})).await;
    server.make("inner/g/a", &json!({"shape": [4], "data_type": "uint8", "chunks": [1]})).await;
    server.fill("inner/g/a", 7).await;
    server.make("outer/h", &json!({"node_type": "group"})).await;
    server.make("outer/apart", &json!({"node_type": "group"})).await;
    let link = |to: &std::path::Path, name: &str| {
        std::os::unix::fs::symlink(to, outer.path().join(name)).unwrap();
    };
    link(inner.path(), "link");
    link(&inner.path().join("g"), "h/link");
    link(&outer.path().join("apart"), "g");
    let before = contents(&in_inner).await;
    for (target, source) in [
        // The source lies in the other mount, and the target in the source.
        ("inner/g/z/e", "outer:link/g"),
        ("inner/g/z", "outer:link/g"),
        // A link in the source leads to what is above the target.
        ("inner/g/z/e", "outer:h"),
        ("outer/h/z", "outer:h"),
        ("outer/link/g/z", "outer:h"),
        // A link leads from one mount to the target in the other.
        ("outer/link/g/z/e", "inner:g"),
        ("outer/apart/z", "outer:g"),
    ] {
        for kind in ["copy", "move"] {
            let refused = server.transfer(target, &format!("{kind}={source}")).await;
            let what = format!("{kind} of {source} to {target}");
            let detail = refused.refuses(409, "conflict", &what);
            assert!(detail.contains("one is in the other"), "{what}: {detail}");
            assert_eq!(refused.json()["written"], false, "{what}");
        }
    }
    assert_eq!(contents(&in_inner).await, before);
    // A link that leads to neither of them does not matter.
    assert_eq!(server.transfer("inner/new/g", "copy=outer:link/g").await.status, 201);
    assert_eq!(server.transfer("outer/copied", "copy=inner:g").await.status, 201);
    assert_eq!(server.elements("outer/copied/a", ":").await, vec![7; 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_into_itself_by_ways_that_no_store_knows_loses_nothing() {
    const CHUNKS: usize = 300;
    // Two mounts of one place that do not know of each other, as two network file systems of one server are.
    let store = memory();
    let server = Server::build(mount("outer", &store)).beside(mount("inner", &store)).finish();
    server.make("inner/g", &json!({"node_type": "group"})).await;
    server.make("inner/g/a", &json!({"shape": [CHUNKS], "data_type": "uint8", "chunks": [1]})).await;
    server.fill("inner/g/a", 7).await;
    let moved = server.transfer("inner/g/z/e", "move=outer:g").await;
    let detail = moved.refuses(409, "conflict", "a move into itself");
    assert!(detail.contains("the node is at its target"), "{detail}");
    for path in ["g/a", "g/z/e/a"] {
        assert_eq!(server.elements(&format!("inner/{path}"), ":").await, vec![7; CHUNKS], "{path}");
    }
}
