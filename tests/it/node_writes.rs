//! Nodes are created, changed and erased by `/v1/nodes`, and hierarchies stay true.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use futures::stream::{self, StreamExt};
use proptest::prelude::*;
use serde_json::{Value, json};
use zarrd::array::NodeOpener;
use zarrd::cache::BoundedNodeCache;
use zarrd::codec::CodecLimits;
use zarrd::hierarchy::Hierarchy;
use zarrd::key::NodePath;
use zarrd::metadata::MetadataLimits;
use zarrd::services::Mount;
use zarrd::store::{BudgetExceeded, LocalOptions, LocalStore, MemoryBudget, SharedStore};
use zarrd::write::{ArrayWriter, NodePatch, NodeWriteError, NodeWriter, WriteOptions};

use crate::access::{access, grant, known, token};
use crate::support::hierarchy::memory;
use crate::support::journal::Journal;
use crate::support::property::holds;
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::{Answer, Server, contents, cpu, put};

fn server(store: &SharedStore) -> Server {
    let mount = Mount { writable: true, allow_prefix_delete: true, ..Mount::read_only("m", store.clone()) };
    Server::build(mount).finish()
}

async fn document(store: &SharedStore, key: &str) -> Value {
    serde_json::from_slice(&contents(store).await[key]).unwrap()
}

impl Server {
    async fn send_json(&self, method: &str, url: &str, body: &Value) -> Answer {
        self.request(method, url, &[("content-type", "application/json")], body.to_string()).await
    }

    async fn create(&self, path: &str, body: &Value) -> Answer {
        self.send_json("PUT", &format!("/v1/nodes/m/{path}"), body).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_changes_while_it_is_erased_under_its_entity_tag_stays() {
    let bucket = TestS3::start().await;
    put(&bucket.store(), "g/zarr.json", r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#).await;
    let [late, prompt] = [server(&bucket.store()), server(&bucket.store())];
    let tag = late.get("/v1/nodes/m/g").await.header("etag").to_owned();
    let kinds = vec![Kind::Put, Kind::Delete];
    bucket.inject(vec![Rule { kinds, key: "g/zarr.json", when: When::Nth(0), fault: Fault::Wait }], 1);
    let held = tokio::spawn(async move {
        late.request("DELETE", "/v1/nodes/m/g", &[("if-match", tag.as_str())], "").await
    });
    bucket.until_one_waits().await;
    let headers = [("content-type", "application/json")];
    let changed = prompt.request("PATCH", "/v1/nodes/m/g", &headers, r#"{"attributes": {"a": 1}}"#).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    bucket.go_on();
    assert_eq!(held.await.unwrap().status, 412);
    assert_eq!(prompt.get("/v1/nodes/m/g").await.json()["metadata"]["attributes"], json!({"a": 1}));
}

#[tokio::test]
async fn a_change_under_the_nodes_entity_tag_succeeds_beside_writes_of_its_elements() {
    let store = memory();
    let server = server(&store);
    let headers = [("content-type", "application/json")];
    let array = r#"{"shape": [4], "data_type": "uint8", "chunks": [64]}"#;
    assert_eq!(server.request("PUT", "/v1/nodes/m/a", &headers, array).await.status, 201);
    let write = async || {
        for value in 0..40 {
            let written = server.request("PUT", "/v1/data/m/a?slice=0", &headers, value.to_string()).await;
            assert_eq!(written.status, 204, "{:?}", written.body);
        }
    };
    let grow = async || {
        for length in 5..25 {
            let tag = server.get("/v1/nodes/m/a").await.header("etag").to_owned();
            let headers = [("content-type", "application/json"), ("if-match", tag.as_str())];
            let shape = format!(r#"{{"shape": [{length}]}}"#);
            let changed = server.request("PATCH", "/v1/nodes/m/a", &headers, shape).await;
            assert_eq!(changed.status, 200, "{:?}", changed.body);
        }
    };
    tokio::join!(write(), write(), grow());
    assert_eq!(server.get("/v1/data/m/a?slice=4:&format=json").await.json(), json!(vec![0; 20]));
}

#[tokio::test]
async fn an_array_needs_no_more_than_a_shape_and_a_type() {
    let store = memory();
    let server = server(&store);
    let answer = server.create("a/b/c", &json!({"shape": [1000, 1000], "data_type": "float32"})).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.header("location"), "/v1/nodes/m/a/b/c");
    assert!(!answer.header("etag").is_empty());
    assert_eq!(answer.json()["metadata"]["shape"], json!([1000, 1000]));
    let stored = document(&store, "a/b/c/zarr.json").await;
    assert_eq!(stored["chunk_grid"]["configuration"]["chunk_shape"], json!([512, 512]));
    assert_eq!(stored["codecs"][1]["name"], "zstd");
    for group in ["zarr.json", "a/zarr.json", "a/b/zarr.json"] {
        assert_eq!(document(&store, group).await["node_type"], "group");
    }
    let written = server.send_json("PUT", "/v1/data/m/a/b/c?slice=3,4:6", &json!([1.5, -2.0])).await;
    assert_eq!(written.status, 204);
    assert_eq!(
        server.get("/v1/data/m/a/b/c?slice=3,3:7&format=json").await.json(),
        json!([0.0, 1.5, -2.0, 0.0])
    );
}

#[tokio::test]
async fn what_is_said_of_a_new_array_is_in_its_document() {
    let store = memory();
    let server = server(&store);
    let said = json!({
        "shape": [100, 60], "data_type": "int16", "chunks": [10, 20], "shards": [50, 60], "codecs": "gzip-6",
        "fill_value": -1, "dimension_names": ["y", "x"], "attributes": {"units": "K"},
    });
    assert_eq!(server.create("s", &said).await.status, 201);
    let stored = document(&store, "s/zarr.json").await;
    assert_eq!(stored["chunk_grid"]["configuration"]["chunk_shape"], json!([50, 60]));
    assert_eq!(stored["codecs"][0]["configuration"]["chunk_shape"], json!([10, 20]));
    assert_eq!(
        stored["codecs"][0]["configuration"]["codecs"][1],
        json!({"name": "gzip", "configuration": {"level": 6}})
    );
    assert_eq!(
        (&stored["fill_value"], &stored["dimension_names"], &stored["attributes"]),
        (&json!(-1), &json!(["y", "x"]), &json!({"units": "K"}))
    );
    // Another one takes all that is not said from it.
    assert_eq!(server.create("t", &json!({"like": "s", "shape": [7, 7]})).await.status, 201);
    let mut like = stored.clone();
    like["shape"] = json!([7, 7]);
    assert_eq!(document(&store, "t/zarr.json").await, like);
    // Version 2, described and as a whole document.
    let said =
        json!({"zarr_format": 2, "shape": [6], "data_type": "<f8", "chunks": [4], "dimension_names": ["x"]});
    assert_eq!(server.create("v2/a", &said).await.status, 201);
    let stored = document(&store, "v2/a/.zarray").await;
    assert_eq!((&stored["dtype"], &stored["chunks"]), (&json!("<f8"), &json!([4])));
    assert_eq!(document(&store, "v2/a/.zattrs").await, json!({"_ARRAY_DIMENSIONS": ["x"]}));
    assert_eq!(document(&store, "v2/.zgroup").await, json!({"zarr_format": 2}));
    assert_eq!(server.create("v2/c", &json!({"like": "v2/a", "shape": [5]})).await.status, 201);
    let mut like = stored.clone();
    like["shape"] = json!([5]);
    assert_eq!(document(&store, "v2/c/.zarray").await, like);
    let whole = json!({
        "zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "|u1", "compressor": null, "fill_value": 9, "order": "C",
        "filters": null,
    });
    assert_eq!(server.create("v2/b", &whole).await.status, 201);
    assert_eq!(server.get("/v1/data/m/v2/b?format=json").await.json(), json!([9, 9, 9]));
    // As other programs write it.
    let whole = json!({
        "zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": ">i2", "fill_value": null, "order": "F",
        "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
        "filters": [{"id": "delta", "dtype": ">i2", "astype": ">i2"}], "dimension_separator": "/",
    });
    assert_eq!(server.create("v2/d", &whole).await.status, 201);
    assert_eq!(server.create("v2/e", &json!({"like": "v2/d", "shape": [2, 6]})).await.status, 201);
    let (stored, like) = (document(&store, "v2/d/.zarray").await, document(&store, "v2/e/.zarray").await);
    for member in ["chunks", "dtype", "order", "compressor", "filters", "dimension_separator"] {
        assert_eq!(like[member], stored[member], "{member}");
    }
    assert_eq!(server.create("v2/f", &json!({"like": "v2/d", "codecs": "raw"})).await.status, 201);
    let like = document(&store, "v2/f/.zarray").await;
    for member in ["dtype", "order", "fill_value", "dimension_separator"] {
        assert_eq!(like[member], stored[member], "{member}");
    }
    assert_eq!((&like["compressor"], &like["filters"]), (&Value::Null, &Value::Null));
    // Names are those that are said, or as many as there are dimensions.
    let named = json!({"like": "v2/a", "shape": [5], "dimension_names": ["t"]});
    assert_eq!(server.create("v2/g", &named).await.status, 201);
    assert_eq!(document(&store, "v2/g/.zattrs").await, json!({"_ARRAY_DIMENSIONS": ["t"]}));
    for (path, format) in [("v2/h/.zattrs", 2), ("v3/h/zarr.json", 3)] {
        let (path, name) = (path.rsplit_once('/').unwrap().0, path);
        let said = json!({"like": "v2/a", "shape": [5, 5], "chunks": [2, 2], "zarr_format": format});
        assert_eq!(server.create(path, &said).await.status, 201);
        assert!(!document(&store, name).await.to_string().contains("_ARRAY_DIMENSIONS"), "{name}");
    }
    assert_eq!(server.create("g", &json!({"node_type": "group", "attributes": {"a": 1}})).await.status, 201);
    assert_eq!(document(&store, "g/zarr.json").await["attributes"], json!({"a": 1}));
}

#[tokio::test]
async fn a_long_document_is_stored_as_long_as_it_was_sent_and_a_short_one_indented() {
    let store = memory();
    let server = server(&store);
    // Each value is on three lines of its own where documents are indented.
    for (name, values) in [("short", 10), ("long", 150_000)] {
        let body = json!({"node_type": "group", "attributes": {"values": vec![json!({"": 1}); values]}});
        let answer = server.create(name, &body).await;
        assert_eq!(answer.status, 201, "{name}: {:?}", answer.body);
        let text = &contents(&store).await[&format!("{name}/zarr.json")];
        assert_eq!(text.contains(&b'\n'), name == "short");
        assert_eq!(document(&store, &format!("{name}/zarr.json")).await["attributes"], body["attributes"]);
    }
}

#[tokio::test]
async fn bad_nodes_are_refused_and_nothing_is_written() {
    let store = memory();
    put(&store, "zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    let server = server(&store);
    assert_eq!(server.create("a", &json!({"shape": [4], "data_type": "int8"})).await.status, 201);
    let before = contents(&store).await;
    let array = |change: Value| {
        let mut array = json!({"shape": [4, 4], "data_type": "int8"});
        array.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        array
    };
    for (path, body, status, said) in [
        ("x", json!({"data_type": "int8"}), 400, "`shape` is missing"),
        ("x", json!({"shape": [4]}), 400, "`data_type` is missing"),
        ("x", array(json!({"data_type": "int7"})), 501, "int7"),
        ("x", array(json!({"chunks": "some"})), 400, "`chunks`"),
        ("x", array(json!({"chunks": [0, 1]})), 400, "chunk"),
        ("x", array(json!({"chunks": [1]})), 400, "chunk"),
        ("x", array(json!({"shards": [3, 3], "chunks": [2, 2]})), 400, "shard"),
        ("x", array(json!({"codecs": "zstd-99"})), 400, "`codecs`"),
        ("x", array(json!({"codecs": []})), 400, "codec"),
        ("x", array(json!({"fill_value": 300})), 400, "fill_value"),
        ("x", array(json!({"fill_value": "NaN"})), 400, "fill_value"),
        ("x", array(json!({"dimension_names": ["x"]})), 400, "dimension_names"),
        ("x", array(json!({"dimension_names": ["x", null], "zarr_format": 2})), 400, "dimension_names"),
        ("x", array(json!({"colour": 1})), 400, "`colour` is no member of the body; it has `shape`, "),
        (
            "x",
            json!({"shap": [4], "data_type": "int8"}),
            400,
            "`shap` is no member of the body; did you mean `shape`?",
        ),
        ("x", array(json!({"shape": [4, -1]})), 400, "`shape` must be a list of whole numbers, such as"),
        ("x", array(json!({"shape": "4"})), 400, "`shape` must be a list of whole numbers, such as"),
        ("x", array(json!({"zarr_format": 1})), 400, "`zarr_format`"),
        ("x", array(json!({"like": "none"})), 400, "`like`"),
        ("x", array(json!({"shape": [1_u64 << 62, 4]})), 400, "2^63"),
        ("x", array(json!({"shape": [u64::MAX]})), 400, "2^63"),
        ("x", json!({"node_type": "group", "shape": [1]}), 400, "a group has"),
        ("x", json!({"zarr_format": 3, "node_type": "array", "chunk_grid": {}}), 400, "shape"),
        ("x", json!([]), 400, "JSON"),
        ("a", json!({"node_type": "group"}), 412, "there is a node"),
        ("", json!({"node_type": "group"}), 412, "there is a node"),
        ("a/b/c", array(json!({})), 409, "is an array"),
    ] {
        let answer = server.create(path, &body).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        let problem = answer.json();
        assert!(problem["detail"].as_str().unwrap().contains(said), "{said}: {problem}");
        assert_ne!(problem["written"], true, "{problem}");
        assert_eq!(contents(&store).await, before, "{body}");
    }
}

#[tokio::test]
async fn attributes_are_merged_under_the_condition_of_the_request() {
    for format in [3, 2] {
        let store = memory();
        let server = server(&store);
        let array =
            json!({"zarr_format": format, "shape": [4], "data_type": "int8", "attributes": {"a": 1, "b": 2}});
        let made = server.create("a", &array).await;
        let url = "/v1/nodes/m/a";
        let changed =
            server.send_json("PATCH", url, &json!({"attributes": {"a": null, "c": {"d": 1.5}}})).await;
        assert_eq!(changed.status, 200, "{changed:?}");
        assert_eq!(changed.json()["metadata"]["attributes"], json!({"b": 2, "c": {"d": 1.5}}));
        let body = json!({"attributes": {"x": 1}}).to_string();
        let stale = server.request("PATCH", url, &[("if-match", made.header("etag"))], body.clone()).await;
        assert_eq!(stale.status, 412, "{stale:?}");
        let current = server.get(url).await;
        assert_eq!(current.header("etag"), changed.header("etag"));
        let held = server.request("PATCH", url, &[("if-match", current.header("etag"))], body).await;
        assert_eq!(held.status, 200, "{held:?}");
        for (body, said) in [
            (json!({"fill_value": 1}), "expected one of `shape`, `attributes`, `dimension_names`"),
            (json!({"shape": null}), "`shape`"),
            (json!({"dimension_names": ["x", "y"]}), "has 2 items, and the array 1 dimension: "),
            (json!({"dimension_names": [1]}), "`dimension_names`"),
            (json!({"dimension_names": {}}), "`dimension_names`"),
            (json!({"shape": [1, 2]}), "dimensions"),
            (json!({"shape": [-1]}), "`shape`"),
            (json!({"shape": [1_u64 << 63]}), "2^63"),
            (json!({"attributes": []}), "`attributes`"),
            // These are not the lengths of `shape`, the first member.
            (json!([[1]]), "must be an object"),
        ] {
            let answer = server.send_json("PATCH", url, &body).await;
            assert!(answer.refuses(400, "invalid-request", url).contains(said), "{body}: {answer:?}");
            assert_eq!(answer.json()["written"], false, "{body}");
        }
    }
}

#[tokio::test]
async fn a_patch_of_nothing_and_of_a_node_without_dimensions_writes_nothing() {
    let store = memory();
    let server = server(&store);
    assert_eq!(server.create("g", &json!({"node_type": "group"})).await.status, 201);
    let before = contents(&store).await;
    let missing = server.send_json("PATCH", "/v1/nodes/m/none", &json!({"attributes": {"a": 1}})).await;
    missing.refuses(404, "not-found", "a node that is missing");
    assert_eq!(missing.json()["written"], false);
    let group = server.send_json("PATCH", "/v1/nodes/m/g", &json!({"dimension_names": []})).await;
    assert!(group.refuses(400, "invalid-request", "a group").contains("no dimensions"));
    assert_eq!(group.json()["written"], false);
    assert_eq!(contents(&store).await, before);
}

#[tokio::test]
async fn a_null_member_removes_all_attributes_or_names() {
    for format in [3, 2] {
        let store = memory();
        let server = server(&store);
        let array =
            json!({"zarr_format": format, "shape": [4, 2], "data_type": "int8", "attributes": {"a": 1}});
        assert_eq!(server.create("g/a", &array).await.status, 201);
        let group = json!({"zarr_format": format, "node_type": "group", "attributes": {"a": 1}});
        assert_eq!(server.create("g/h", &group).await.status, 201);
        let patch = async |path: &str, body: Value| {
            let answer = server.send_json("PATCH", &format!("/v1/nodes/m/g/{path}"), &body).await;
            assert_eq!(answer.status, 200, "{format} {body}: {answer:?}");
            answer.json()
        };
        for path in ["a", "h"] {
            let cleared = patch(path, json!({"attributes": null})).await;
            assert_eq!(cleared["metadata"]["attributes"], json!({}), "{format} {path}");
        }
        let named = patch("a", json!({"dimension_names": ["y", "x"], "shape": [6, 2]})).await;
        assert_eq!(named["metadata"]["dimension_names"], json!(["y", "x"]), "{format}");
        assert_eq!(server.get("/v1/data/m/g/a?isel.y=5&isel.x=0&format=json").await.json(), 0, "{format}");
        let unnamed = patch("a", json!({"dimension_names": null})).await;
        assert!(unnamed["metadata"]["dimension_names"].is_null(), "{format}: {unnamed}");
        let half =
            server.send_json("PATCH", "/v1/nodes/m/g/a", &json!({"dimension_names": ["y", null]})).await;
        assert_eq!(half.status, if format == 3 { 200 } else { 400 }, "{half:?}");
    }
}

#[tokio::test]
async fn names_that_the_specification_reserves_are_no_names_of_new_nodes() {
    let store = memory();
    let server = server(&store);
    assert_eq!(server.create("a", &json!({"shape": [4], "data_type": "int8"})).await.status, 201);
    let before = contents(&store).await;
    let file = npy("|u1", "(1,)", &[1]);
    for path in [
        "__x",
        "a__/__x/b",
        "...",
        "b/..../c",
        "zarr.json",
        ".zarray",
        "b/.zattrs",
        ".zgroup/b",
        ".zmetadata",
        "%2e%2e",
        "b%01",
        "b%7f/c",
        "b%00",
    ] {
        for body in
            [json!({"node_type": "group"}), json!({"zarr_format": 2, "shape": [1], "data_type": "int8"})]
        {
            let answer = server.create(path, &body).await;
            answer.refuses(400, "invalid-request", path);
        }
        let copy = server.ask(axum::http::Method::PUT, &format!("/v1/nodes/m/{path}?copy=a"), &[]).await;
        copy.refuses(400, "invalid-request", path);
        let url = format!("/v1/data/m/{path}?create&format=npy");
        server.request("PUT", &url, &[], file.clone()).await.refuses(400, "invalid-request", path);
        assert_eq!(contents(&store).await, before, "{path}");
    }
    for path in ["_x", "b/x__", "a..b", "...c"] {
        assert_eq!(server.create(path, &json!({"node_type": "group"})).await.status, 201, "{path}");
    }
}

/// An array of two dimensions as the writes of a test leave it, element by element.
struct Grid {
    shape: [usize; 2],
    elements: BTreeMap<[usize; 2], i16>,
}

impl Grid {
    fn rows(&self) -> Value {
        let row = |y| (0..self.shape[1]).map(|x| self.elements.get(&[y, x]).copied().unwrap_or(-7)).collect();
        (0..self.shape[0]).map(row).collect::<Vec<Vec<i16>>>().into()
    }
}

#[test]
fn shrinking_and_growing_brings_no_old_element_back() {
    let shapes = prop::collection::vec([0_usize..13, 0_usize..13], 1..6);
    holds(
        64,
        (shapes, any::<bool>(), 1_usize..6, 1_usize..6),
        async |(shapes, is_sharded, height, width)| {
            let store = memory();
            let server = server(&store);
            let shards = if is_sharded { json!([height * 2, width * 2]) } else { json!("none") };
            let array = json!({
                "shape": [9, 9], "data_type": "int16", "fill_value": -7, "chunks": [height, width], "shards": shards,
            });
            assert_eq!(server.create("a", &array).await.status, 201);
            let mut grid = Grid { shape: [9, 9], elements: BTreeMap::new() };
            for (round, shape) in shapes.into_iter().enumerate() {
                // All elements are written before each change.
                let number = i16::try_from(round).unwrap() + 1;
                if grid.shape.iter().all(|length| *length > 0) {
                    let written = server.send_json("PUT", "/v1/data/m/a", &json!(number)).await;
                    assert_eq!(written.status, 204, "{written:?}");
                }
                let all = (0..grid.shape[0]).flat_map(|y| (0..grid.shape[1]).map(move |x| [y, x]));
                grid.elements = all.map(|place| (place, number)).collect();
                let changed = server.send_json("PATCH", "/v1/nodes/m/a", &json!({"shape": shape})).await;
                assert_eq!(changed.status, 200, "{changed:?}");
                grid.shape = shape;
                grid.elements.retain(|[y, x], _| *y < shape[0] && *x < shape[1]);
                let read = server.get("/v1/data/m/a?format=json").await;
                assert_eq!(read.json(), grid.rows(), "{shape:?}");
            }
        },
    );
}

#[tokio::test]
async fn chunks_left_by_others_are_not_seen_when_an_array_grows() {
    let store = memory();
    let server = server(&store);
    let array = json!({"shape": [4], "data_type": "uint8", "chunks": [2], "codecs": "raw"});
    assert_eq!(server.create("a", &array).await.status, 201);
    // As a client leaves them that changes the document alone.
    put(&store, "a/c/2", vec![9, 9]).await;
    put(&store, "a/c/4", vec![9, 9]).await;
    let grown = server.send_json("PATCH", "/v1/nodes/m/a", &json!({"shape": [9]})).await;
    assert_eq!(grown.status, 200);
    assert_eq!(server.get("/v1/data/m/a?format=json").await.json(), json!([0, 0, 0, 0, 0, 0, 0, 0, 0]));
    let huge = server.send_json("PATCH", "/v1/nodes/m/a", &json!({"shape": [1_u64 << 40]})).await;
    assert_eq!(huge.status, 413, "{huge:?}");
    assert_eq!(huge.json()["written"], false);
}

#[tokio::test]
async fn consolidated_metadata_above_a_node_stays_true() {
    let store = memory();
    let group = json!({
        "zarr_format": 3, "node_type": "group",
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {}},
    });
    put(&store, "v3/zarr.json", group.to_string()).await;
    put(&store, "v2/.zgroup", r#"{"zarr_format": 2}"#).await;
    let copies = json!({"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}}});
    put(&store, "v2/.zmetadata", copies.to_string()).await;
    let server = server(&store);
    let array = |format| json!({"zarr_format": format, "shape": [4], "data_type": "int8"});
    for (root, format) in [("v3", 3), ("v2", 2)] {
        assert_eq!(server.create(&format!("{root}/g/a"), &array(format)).await.status, 201);
        let url = format!("/v1/nodes/m/{root}/g/a");
        let patch = json!({"shape": [6], "attributes": {"n": 1}});
        assert_eq!(server.send_json("PATCH", &url, &patch).await.status, 200);
    }
    let inline = document(&store, "v3/zarr.json").await["consolidated_metadata"]["metadata"].clone();
    assert_eq!(inline["g"]["node_type"], "group");
    assert_eq!(inline["g/a"], document(&store, "v3/g/a/zarr.json").await);
    let copies = document(&store, "v2/.zmetadata").await["metadata"].clone();
    assert_eq!(copies["g/.zgroup"], json!({"zarr_format": 2}));
    assert_eq!(copies["g/a/.zarray"], document(&store, "v2/g/a/.zarray").await);
    assert_eq!(copies["g/a/.zattrs"], json!({"n": 1}));
    for root in ["v3", "v2"] {
        let erased = server.ask(axum::http::Method::DELETE, &format!("/v1/nodes/m/{root}/g"), &[]).await;
        assert_eq!(erased.status, 204, "{erased:?}");
    }
    assert_eq!(document(&store, "v3/zarr.json").await["consolidated_metadata"]["metadata"], json!({}));
    assert_eq!(document(&store, "v2/.zmetadata").await["metadata"], json!({".zgroup": {"zarr_format": 2}}));
    let left: Vec<_> = contents(&store).await.into_keys().collect();
    assert_eq!(left, ["v2/.zgroup", "v2/.zmetadata", "v3/zarr.json", "zarr.json"]);
}

#[tokio::test]
async fn of_many_who_change_a_node_none_is_lost() {
    let store = memory();
    let server = server(&store);
    assert_eq!(server.create("a", &json!({"shape": [4], "data_type": "int8"})).await.status, 201);
    let change = |number: u32| {
        let server = server.clone();
        async move {
            let body = json!({"attributes": {format!("n{number}"): number}});
            loop {
                let answer = server.send_json("PATCH", "/v1/nodes/m/a", &body).await;
                if answer.status == 200 {
                    return;
                }
                assert_eq!((answer.status.as_u16(), &*answer.code()), (503, "contended"), "{answer:?}");
            }
        }
    };
    futures::future::join_all((0..16).map(change)).await;
    let attributes = document(&store, "a/zarr.json").await["attributes"].clone();
    assert_eq!(attributes.as_object().unwrap().len(), 16);
}

/// An npy file of version 1.0.
fn npy(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let head = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = u16::try_from(head.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, head.as_bytes(), elements].concat()
}

#[tokio::test]
async fn an_npy_file_becomes_an_array_which_is_there_once_all_of_it_is_stored() {
    let store = memory();
    let server = server(&store);
    let url = "/v1/data/m/new/a?create&format=npy";
    let elements: Vec<u8> = (0..12_u16).flat_map(u16::to_be_bytes).collect();
    // Cut off, of another length than its head says, and no npy file.
    let whole = npy(">u2", "(3, 4)", &elements);
    for (body, said) in [
        (&whole[..20], "ends in its head"),
        (&whole[..whole.len() - 2], "bytes"),
        (b"hello".as_slice(), "npy"),
        (&npy("|O", "(1,)", &[0; 8]), "type"),
    ] {
        let answer = server.request("PUT", url, &[], body.to_vec()).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["written"]), (400, &json!(false)), "{answer:?}");
        assert!(answer.json()["detail"].as_str().unwrap().contains(said), "{said}: {answer:?}");
        assert!(contents(&store).await.is_empty());
    }
    let made = server.request("PUT", url, &[], whole.clone()).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.header("location"), "/v1/nodes/m/new/a");
    let read = server.get("/v1/data/m/new/a?format=json").await;
    assert_eq!(read.json(), json!([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]));
    assert_eq!(document(&store, "new/zarr.json").await["node_type"], "group");
    let before = contents(&store).await;
    let again = server.request("PUT", url, &[], whole).await;
    assert_eq!((again.status.as_u16(), &*again.code()), (409, "conflict"));
    let part =
        server.request("PUT", "/v1/data/m/b?create&format=npy&slice=0", &[], npy("|u1", "()", &[1])).await;
    assert!(part.refuses(400, "invalid-request", "part").contains("whole npy file"));
    assert_eq!(contents(&store).await, before);
}

#[tokio::test]
async fn an_array_whose_chunks_are_erased_while_it_is_created_is_not_made() {
    for prefix in ["/store/m/a/", "/v1/nodes/m/a"] {
        let store = memory();
        let mount =
            Mount { writable: true, allow_prefix_delete: true, ..Mount::read_only("m", store.clone()) };
        let mut builder = Server::build(mount);
        builder.write = WriteOptions { band_size: 1 << 20, ..WriteOptions::default() };
        let server = builder.finish();
        let whole = npy("|u1", "(3145728,)", &vec![7; 3 << 20]);
        let made = slow_put(&server, "/v1/data/m/a?create&format=npy", whole, async {
            while !contents(&store).await.contains_key("a/c/0") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let erased = server.ask(axum::http::Method::DELETE, prefix, &[]).await;
            if prefix.starts_with("/store") {
                assert_eq!(erased.status, 204, "{erased:?}");
            } else {
                // They are not what an erasure has left.
                erased.refuses(503, "contended", "an array that is created");
            }
        })
        .await;
        let node = server.get("/v1/nodes/m/a").await;
        if prefix.starts_with("/store") {
            made.refuses(409, "conflict", "erased meanwhile");
            assert_eq!(node.status, 404, "{node:?}");
        } else {
            assert_eq!((made.status.as_u16(), node.status.as_u16()), (201, 200), "{made:?}");
        }
    }
}

#[tokio::test]
async fn nodes_are_erased_only_where_prefixes_may_be() {
    let store = memory();
    put(&store, "g/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    let mount = Mount { writable: true, ..Mount::read_only("m", store.clone()) };
    let careful = Server::build(mount).beside(Mount::read_only("r", store.clone())).finish();
    let answer = careful.ask(axum::http::Method::DELETE, "/v1/nodes/m/g", &[]).await;
    assert!(answer.refuses(405, "not-allowed", "g").contains("mounts.m.allow_prefix_delete"));
    for method in ["PUT", "PATCH", "DELETE"] {
        let answer = careful.send_json(method, "/v1/nodes/r/g", &json!({})).await;
        assert!(answer.refuses(405, "not-allowed", method).contains("mounts.r.writable"));
    }
    let server = server(&store);
    let stale = server.ask(axum::http::Method::DELETE, "/v1/nodes/m/g", &[("if-match", "\"x\"")]).await;
    assert_eq!(stale.status, 412);
    assert_eq!(server.ask(axum::http::Method::DELETE, "/v1/nodes/m/g", &[]).await.status, 204);
    assert_eq!(server.ask(axum::http::Method::DELETE, "/v1/nodes/m/g", &[]).await.status, 404);
    assert!(contents(&store).await.is_empty());
}

/// A body of which all but the last byte is sent, and the last one when the sender says so.
fn slow_body(bytes: &[u8]) -> (futures::channel::oneshot::Sender<()>, Body) {
    let (finish, finished) = futures::channel::oneshot::channel();
    let (last, first) = bytes.split_last().map(|(last, first)| (*last, first.to_vec())).unwrap();
    let pieces = stream::iter([Ok::<_, std::io::Error>(first)]).chain(stream::once(async move {
        finished.await.unwrap();
        Ok(vec![last])
    }));
    (finish, Body::from_stream(pieces))
}

/// Begins a PUT of a slow body, runs `meanwhile`, and sends the rest.
async fn slow_put(server: &Server, url: &str, bytes: Vec<u8>, meanwhile: impl Future<Output = ()>) -> Answer {
    let (finish, body) = slow_body(&bytes);
    let request = Request::put(url).body(body).unwrap();
    let begun = tokio::spawn({
        let server = server.clone();
        async move { server.send(request).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    meanwhile.await;
    finish.send(()).unwrap();
    begun.await.unwrap()
}

#[tokio::test]
async fn a_write_that_began_before_an_array_grew_replaces_nothing_behind_its_old_edge() {
    let server = server(&memory());
    let array = json!({"shape": [4], "data_type": "uint8", "chunks": [8], "codecs": "raw"});
    assert_eq!(server.create("a", &array).await.status, 201);
    let written = slow_put(&server, "/v1/data/m/a?format=bytes", vec![1; 4], async {
        assert_eq!(server.send_json("PATCH", "/v1/nodes/m/a", &json!({"shape": [8]})).await.status, 200);
        assert_eq!(server.send_json("PUT", "/v1/data/m/a?slice=4:8", &json!([9, 9, 9, 9])).await.status, 204);
    });
    assert_eq!(written.await.status, 204);
    assert_eq!(server.get("/v1/data/m/a?format=json").await.json(), json!([1, 1, 1, 1, 9, 9, 9, 9]));
}

#[tokio::test]
async fn a_slow_body_is_not_written_to_an_array_that_was_created_again_as_another_one() {
    for is_local in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let options = LocalOptions { writable: true, ..LocalOptions::default() };
        let local = || Arc::new(LocalStore::open(directory.path(), &options).unwrap());
        let store: SharedStore = if is_local { local() } else { memory() };
        let mount = Mount { writable: true, ..Mount::read_only("m", Arc::clone(&store)) };
        let server = Server::build(Mount { allow_prefix_delete: true, ..mount }).finish();
        let array = |shape: u64, data_type: &str| json!({"shape": [shape], "data_type": data_type, "chunks": [4], "codecs": "raw"});
        let first = array(4, "uint8");
        for (name, now, is_written) in [
            ("type", Some(array(4, "int16")), false),
            (
                "chunks",
                Some(json!({"shape": [4], "data_type": "uint8", "chunks": [2], "codecs": "raw"})),
                false,
            ),
            (
                "fill",
                Some(json!({"shape": [4], "data_type": "uint8", "chunks": [4], "fill_value": 7})),
                false,
            ),
            ("group", Some(json!({"node_type": "group"})), false),
            ("gone", None, false),
            ("longer", Some(array(6, "uint8")), true),
            ("same", Some(first.clone()), true),
        ] {
            assert_eq!(server.create(name, &first).await.status, 201);
            let url = format!("/v1/nodes/m/{name}");
            let elements = format!("/v1/data/m/{name}?format=bytes");
            let written = slow_put(&server, &elements, vec![9; 4], async {
                let erased = server.ask(axum::http::Method::DELETE, &url, &[]).await;
                assert_eq!(erased.status, 204, "{erased:?}");
                if let Some(now) = &now {
                    assert_eq!(server.create(name, now).await.status, 201, "{name}");
                }
            });
            let written = written.await;
            if is_written {
                assert_eq!(written.status, 204, "{name}: {written:?}");
                continue;
            }
            let detail = written.refuses(409, "conflict", name);
            assert!(detail.contains("created again"), "{detail}");
            assert_eq!(written.json()["written"], false, "{name}");
            let keys = contents(&store).await;
            assert!(!keys.keys().any(|key| key.starts_with(&format!("{name}/c/"))), "{name}: {keys:?}");
        }
    }
}

#[tokio::test]
async fn a_slow_body_is_not_appended_to_an_array_that_was_created_again_as_another_one() {
    let store = memory();
    let mount = Mount { writable: true, ..Mount::read_only("m", Arc::clone(&store)) };
    let server = Server::build(Mount { allow_prefix_delete: true, ..mount }).finish();
    let array =
        |data_type: &str| json!({"shape": [0], "data_type": data_type, "chunks": [4], "codecs": "raw"});
    assert_eq!(server.create("a", &array("uint16")).await.status, 201);
    let (finish, body) = slow_body(&[9; 4]);
    let request = Request::post("/v1/data/m/a?append=0&format=bytes").header("content-length", "4");
    let request = request.body(body).unwrap();
    let begun = tokio::spawn({
        let server = server.clone();
        async move { server.send(request).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.ask(axum::http::Method::DELETE, "/v1/nodes/m/a", &[]).await.status, 204);
    assert_eq!(server.create("a", &array("uint8")).await.status, 201);
    finish.send(()).unwrap();
    let answer = begun.await.unwrap();
    answer.refuses(409, "conflict", "another type");
    assert_eq!(answer.json()["written"], false);
    assert_eq!(server.get("/v1/data/m/a?format=json").await.json(), json!([]));
}

#[tokio::test]
async fn of_clients_that_create_an_array_of_npy_files_one_succeeds_and_none_changes_it() {
    for descr in ["|u1", "<f8"] {
        let store = memory();
        let server = server(&store);
        let url = "/v1/data/m/a?create&format=npy";
        let item = if descr == "|u1" { 1 } else { 8 };
        let two = if descr == "|u1" { vec![2; 4] } else { 2_f64.to_le_bytes().repeat(4) };
        assert_eq!(two.len(), 4 * item);
        let first = slow_put(&server, url, npy(descr, "(4,)", &two), async {
            let other = server.request("PUT", url, &[], npy("|u1", "(4,)", &[1; 4])).await;
            other.refuses(503, "contended", "a node is being made");
            assert_eq!(other.json()["written"], false);
        });
        assert_eq!(first.await.status, 201);
        let again = server.request("PUT", url, &[], npy("|u1", "(4,)", &[1; 4])).await;
        again.refuses(409, "conflict", "it is there");
        assert_eq!(server.send_json("PUT", "/v1/data/m/a?slice=:2", &json!([5, 5])).await.status, 204);
        let elements = server.get("/v1/data/m/a?format=json").await.json();
        assert_eq!(elements, if item == 1 { json!([5, 5, 2, 2]) } else { json!([5.0, 5.0, 2.0, 2.0]) });
    }
}

/// Memory without a limit.
#[derive(Debug)]
struct Unlimited;

impl MemoryBudget for Unlimited {
    fn reserve(&self, _bytes: u64) -> Result<(), BudgetExceeded> {
        Ok(())
    }

    fn release(&self, _bytes: u64) {}

    fn client(&self) -> u64 {
        0
    }
}

#[tokio::test]
async fn a_change_of_shape_begun_on_an_older_document_clears_nothing() {
    let store = memory();
    let server = server(&store);
    let array = json!({"shape": [3], "data_type": "uint8", "chunks": [2], "codecs": "raw"});
    assert_eq!(server.create("a", &array).await.status, 201);
    let hierarchy = Hierarchy::new(store.clone(), MetadataLimits::default(), cpu());
    let cache = Arc::new(BoundedNodeCache::new(0));
    let opener = NodeOpener::new("m".into(), hierarchy, CodecLimits::default(), cache);
    let path = NodePath::parse("a").unwrap();
    let older = opener.open(&path).await.unwrap();
    // Another client lets it grow, and writes behind the old edge, within the last chunk and in a new one.
    assert_eq!(server.send_json("PATCH", "/v1/nodes/m/a", &json!({"shape": [6]})).await.status, 200);
    assert_eq!(server.send_json("PUT", "/v1/data/m/a?slice=3:", &json!([7, 8, 9])).await.status, 204);
    let elements = ArrayWriter::new(cpu(), WriteOptions::default(), zarrd::config::unix_seconds);
    let writer = NodeWriter::new(opener, (elements, cpu()), MetadataLimits::default(), Arc::new(Unlimited));
    let patch: NodePatch = serde_json::from_value(json!({"shape": [6]})).unwrap();
    let refused = writer.patch(&path, older.clone(), &patch, true).await;
    assert!(matches!(refused, Err(NodeWriteError::ConditionFailed)), "{refused:?}");
    writer.patch(&path, older, &patch, false).await.unwrap();
    assert_eq!(server.get("/v1/data/m/a?format=json").await.json(), json!([0, 0, 0, 7, 8, 9]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_clients_that_let_an_array_grow_none_clears_what_another_has_written_since() {
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let store: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    let server = server(&store);
    for round in 0..30 {
        let array = json!({"shape": [4], "data_type": "uint8", "chunks": [1], "codecs": "raw"});
        let path = format!("a{round}");
        assert_eq!(server.create(&path, &array).await.status, 201);
        let clients = (0..4).map(|client| {
            let (server, path) = (server.clone(), path.clone());
            tokio::spawn(async move {
                let url = format!("/v1/nodes/m/{path}");
                let grown = server.send_json("PATCH", &url, &json!({"shape": [40]})).await;
                assert_eq!(grown.status, 200, "{grown:?}");
                let url = format!("/v1/data/m/{path}?slice={}", 10 + client);
                assert_eq!(server.send_json("PUT", &url, &json!(9)).await.status, 204);
            })
        });
        for client in clients {
            client.await.unwrap();
        }
        let read = server.get(&format!("/v1/data/m/{path}?slice=10:14&format=json")).await;
        assert_eq!(read.json(), json!([9, 9, 9, 9]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_clients_that_create_a_node_at_most_one_succeeds_and_it_has_its_own_attributes() {
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let store: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    let server = server(&store);
    for round in 0..30 {
        let path = format!("g{round}");
        let clients = (0..4).map(|client| {
            let (server, path) = (server.clone(), path.clone());
            let format = if client == 3 { 3 } else { 2 };
            let body = json!({"node_type": "group", "zarr_format": format, "attributes": {"who": client}});
            tokio::spawn(async move { server.create(&path, &body).await })
        });
        let mut made = Vec::new();
        for (client, answer) in clients.collect::<Vec<_>>().into_iter().enumerate() {
            let answer = answer.await.unwrap();
            assert!(matches!(answer.status.as_u16(), 201 | 412), "{answer:?}");
            if answer.status == 201 {
                made.push(client);
            }
        }
        assert!(made.len() <= 1, "{made:?}");
        let found = server.get(&format!("/v1/nodes/m/{path}")).await;
        match made.first() {
            Some(client) => assert_eq!(found.json()["metadata"]["attributes"], json!({"who": client})),
            None => assert_eq!(found.status, 404, "{found:?}"),
        }
    }
}

#[tokio::test]
async fn a_change_that_would_make_a_node_unreadable_is_refused_and_an_unreadable_node_can_be_erased() {
    let store = memory();
    let server = server(&store);
    let mut deep = json!(1);
    for _ in 0..64 {
        deep = json!({ "x": deep });
    }
    for format in [3, 2] {
        let path = format!("g{format}");
        let group = json!({"node_type": "group", "zarr_format": format});
        assert_eq!(server.create(&path, &group).await.status, 201);
        let before = contents(&store).await;
        for attribute in [&deep, &json!("x".repeat(5 << 20))] {
            let url = format!("/v1/nodes/m/{path}");
            let body = json!({"attributes": {"a": attribute}});
            let refused = server.send_json("PATCH", &url, &body).await;
            assert_eq!(
                (refused.status.as_u16(), &refused.json()["written"]),
                (400, &json!(false)),
                "{refused:?}"
            );
            let created =
                json!({"node_type": "group", "zarr_format": format, "attributes": {"a": attribute}});
            assert_eq!(server.create("new", &created).await.status, 400);
        }
        assert_eq!(contents(&store).await, before);
    }
    put(&store, "broken/zarr.json", "{").await;
    assert_eq!(server.get("/v1/nodes/m/broken").await.status, 500);
    assert_eq!(server.ask(axum::http::Method::DELETE, "/v1/nodes/m/broken", &[]).await.status, 204);
    assert_eq!(server.get("/v1/nodes/m/broken").await.status, 404);
}

#[tokio::test]
async fn a_node_whose_copies_above_cannot_follow_is_stored_and_said_to_be() {
    let store = memory();
    put(&store, ".zgroup", r#"{"zarr_format": 2}"#).await;
    put(&store, ".zmetadata", json!({"metadata": {"x": "x".repeat(3000)}}).to_string()).await;
    let mut builder = Server::build(Mount { writable: true, ..Mount::read_only("m", store.clone()) });
    builder.metadata = MetadataLimits { consolidated_bytes: 2000, ..MetadataLimits::default() };
    let server = builder.finish();
    let made = server.create("a", &json!({"zarr_format": 2, "shape": [4], "data_type": "int8"})).await;
    assert!(made.status.is_server_error(), "{made:?}");
    assert_eq!(made.json()["written"], "some");
    assert!(made.json()["detail"].as_str().unwrap().starts_with("the node is stored, but"), "{made:?}");
    assert_eq!(server.get("/v1/data/m/a?format=json").await.json(), json!([0, 0, 0, 0]));
}

#[tokio::test]
async fn who_may_only_write_is_not_shown_what_is_stored() {
    let store = memory();
    let server = server(&store);
    let secret = json!({"node_type": "group", "attributes": {"key": "hunter2"}});
    assert_eq!(server.create("g", &secret).await.status, 201);
    let tokens = json!({ "ann": known("ann", json!([grant("m", "", &["write"])])) });
    server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    let bearer = format!("Bearer {}", token("ann"));
    let changed = server.request("PATCH", "/v1/nodes/m/g", &[("authorization", &bearer)], "{}").await;
    assert_eq!((changed.status.as_u16(), changed.body.len()), (204, 0), "{changed:?}");
    let group = r#"{"node_type": "group"}"#;
    let made = server.request("PUT", "/v1/nodes/m/h", &[("authorization", &bearer)], group).await;
    assert_eq!((made.status.as_u16(), made.body.len()), (201, 0), "{made:?}");
    assert_eq!(
        server.ask(axum::http::Method::GET, "/v1/nodes/m/g", &[("authorization", &bearer)]).await.status,
        403
    );
}

#[tokio::test]
async fn the_nodes_below_an_erased_group_are_gone_before_any_of_their_values() {
    let journal = Journal::new(memory());
    let store: SharedStore = journal.clone();
    let server = server(&store);
    let array = json!({"shape": [4], "data_type": "int8", "chunks": [2], "fill_value": 7});
    for (path, body) in [
        ("g", json!({"node_type": "group"})),
        ("g/inner", json!({"node_type": "group"})),
        ("g/inner/a", array.clone()),
        ("g/b", array),
    ] {
        assert_eq!(server.create(path, &body).await.status, 201, "{path}");
    }
    for path in ["g/inner/a", "g/b"] {
        put(&store, &format!("{path}/c/0"), vec![1_u8, 2]).await;
    }
    journal.keep_prefixes();
    let broken_off = server.ask(axum::http::Method::DELETE, "/v1/nodes/m/g", &[]).await;
    assert!(broken_off.status.is_server_error(), "{broken_off:?}");
    for path in ["g", "g/inner", "g/inner/a", "g/b"] {
        assert_eq!(server.get(&format!("/v1/nodes/m/{path}")).await.status, 404, "{path}");
    }
    let kept: Vec<String> = contents(&store).await.into_keys().collect();
    assert_eq!(kept, ["g/b/c/0", "g/inner/a/c/0", "zarr.json"]);
}
