//! The description of a node, in one form for all versions; single chunks; and the demo, seen as any hierarchy.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use zarrd::http::Peer;
use zarrd::store::{ByteRange, SharedStore};

use crate::support::counting::Counting;
use crate::support::data_types::data_type;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Format, memory};
use crate::support::model::spell;
use crate::support::server::{Server, erase, put};

const LITTLE: Codec = Codec::Bytes { big: false };

async fn node(server: &Server, path: &str) -> Value {
    let answer = server.get(&format!("/v1/nodes/{path}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
    assert_eq!(answer.header("content-type"), "application/json");
    answer.json()
}

async fn groups(store: &SharedStore) {
    put(store, "zarr.json", r#"{"zarr_format": 3, "node_type": "group", "attributes": {"a": [1.50, 123456789012345678901234567890]}}"#)
        .await;
    put(store, "old/.zgroup", r#"{"zarr_format": 2}"#).await;
    put(store, "old/.zattrs", r#"{"b": "c"}"#).await;
}

#[tokio::test]
async fn arrays_of_every_version_are_described_as_v3() {
    let store = memory();
    let codecs = [Codec::Transpose(vec![1, 0]), Shards::of(&[3, 2], &[LITTLE, Codec::Zstd]).codec()];
    let sharded =
        Array::of(&[10, 7]).chunks(&[4, 6]).codecs(codecs).members(json!({ "dimension_names": ["y", null] }));
    sharded.store(&store, "a b/\u{e9}").await;
    let v2 = Format::V2 { compressor: Some(Codec::Gzip), fortran: true, big: true, separator: '/' };
    Array::of(&[5, 3]).chunks(&[2, 2]).data_type(data_type("int32")).format(v2).store(&store, "v2").await;
    put(&store, "v2/.zattrs", r#"{"_ARRAY_DIMENSIONS": ["p", "q"], "unit": "m"}"#).await;
    let server = Server::of(store);

    let found = node(&server, "m/a%20b/%C3%A9").await;
    assert_eq!(found["path"], "a b/\u{e9}");
    assert_eq!((&found["node_type"], &found["zarr_format"]), (&json!("array"), &json!(3)));
    assert_eq!(found["metadata"]["dimension_names"], json!(["y", null]));
    assert_eq!(found["metadata"]["codecs"][1]["name"], "sharding_indexed");
    assert_eq!(
        found["chunks"],
        json!({ "chunk_shape": [4, 6], "grid_shape": [3, 2], "sharded": true, "decoded_chunk_shape": [2, 3] })
    );
    let links = &found["links"];
    assert_eq!(links["data"], "/v1/data/m/a%20b/%C3%A9");
    for link in ["self", "store", "plain", "unshard", "data"] {
        assert_eq!(server.get(links[link].as_str().unwrap()).await.status, StatusCode::OK, "{link}");
    }
    let chunk = format!("{}0/0", links["chunk"].as_str().unwrap());
    assert_eq!(server.get(&chunk).await.header("array-shape"), "[4, 6]");

    let found = node(&server, "m/v2").await;
    assert_eq!((&found["node_type"], &found["zarr_format"]), (&json!("array"), &json!(2)));
    let metadata = &found["metadata"];
    assert_eq!((&metadata["zarr_format"], &metadata["data_type"]), (&json!(3), &json!("int32")));
    assert_eq!(
        metadata["chunk_key_encoding"],
        json!({ "name": "v2", "configuration": { "separator": "/" } })
    );
    assert_eq!(
        (&metadata["dimension_names"], &metadata["attributes"]["unit"]),
        (&json!(["p", "q"]), &json!("m"))
    );
    let names: Vec<&str> =
        metadata["codecs"].as_array().unwrap().iter().filter_map(|codec| codec["name"].as_str()).collect();
    assert_eq!(names, ["transpose", "bytes", "gzip"]);
}

#[tokio::test]
async fn the_v3_description_is_a_document_of_the_same_array() {
    let store = memory();
    let v2 = Format::V2 { compressor: None, fortran: true, big: true, separator: '.' };
    let array = Array::of(&[5, 3]).chunks(&[2, 2]).data_type(data_type("float32")).format(v2).random(3, &[]);
    let model = array.store(&store, "v2").await;
    let server = Server::of(store.clone());
    put(&store, "v2/zarr.json", node(&server, "m/v2").await["metadata"].to_string()).await;
    assert_eq!(node(&server, "m/v2").await["zarr_format"], 3, "`zarr.json` wins");
    assert_eq!(server.elements("m/v2", "").await, model.elements);
}

#[tokio::test]
async fn a_group_lists_only_the_nodes_below_it() {
    let store = memory();
    groups(&store).await;
    Array::of(&[3]).store(&store, "b").await;
    put(&store, "old/v2/.zarray", "{ broken").await;
    put(&store, "implicit/deep/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    put(&store, "__reserved/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    put(&store, "readme.txt", "no node").await;
    put(&store, "c d/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    let server = Server::of(store);

    for root in ["m", "m/"] {
        let found = node(&server, root).await;
        assert_eq!((&found["path"], &found["node_type"]), (&json!(""), &json!("group")));
        assert_eq!(
            found["metadata"]["attributes"].to_string(),
            r#"{"a":[1.50,123456789012345678901234567890]}"#,
            "numbers keep their text"
        );
        let child =
            |name: &str, kind: &str, url: &str| json!({ "name": name, "node_type": kind, "href": url });
        assert_eq!(
            found["children"],
            json!([
                child("b", "array", "/v1/nodes/m/b"),
                child("c d", "group", "/v1/nodes/m/c%20d"),
                child("old", "group", "/v1/nodes/m/old"),
            ])
        );
        assert_eq!(found["children_truncated"], false);
        for child in found["children"].as_array().unwrap() {
            assert_eq!(server.get(child["href"].as_str().unwrap()).await.status, StatusCode::OK);
        }
    }
    let old = node(&server, "m/old").await;
    assert_eq!((&old["zarr_format"], &old["metadata"]["attributes"]), (&json!(2), &json!({ "b": "c" })));
    // One broken document does not hide its siblings, nor itself.
    assert_eq!(old["children"], json!([{ "name": "v2", "node_type": null, "href": "/v1/nodes/m/old/v2" }]));
    server.get("/v1/nodes/m/old/v2").await.refuses(500, "invalid-metadata", "broken");
    server.get("/v1/nodes/m/implicit").await.refuses(404, "not-found", "no document");
    assert_eq!(node(&server, "m/implicit/deep").await["children"], json!([]));
}

#[tokio::test]
async fn a_changed_document_is_visible_at_once() {
    let store = memory();
    let server = Server::of(store.clone());
    for length in [3, 5, 4] {
        Array::of(&[length]).store(&store, "a").await;
        assert_eq!(node(&server, "m/a").await["metadata"]["shape"], json!([length]));
        assert_eq!(server.elements("m/a", "").await.len(), 2 * length);
        assert_eq!(server.get(&format!("/v1/data/m/a?expected_shape={length}")).await.status, StatusCode::OK);
    }
    erase(&store, "a/zarr.json").await;
    server.get("/v1/data/m/a").await.refuses(404, "not-found", "erased");
}

#[tokio::test]
async fn a_document_is_read_once_for_many_requests() {
    for (bytes, reads) in [(10, 1), (10 << 10, 1), (2 << 20, 1)] {
        let store = memory();
        let counting = Counting::new(store.clone());
        let attributes = json!({ "long": "x".repeat(bytes) });
        Array::of(&[3]).members(json!({ "attributes": attributes })).store(&store, "a").await;
        let server = Server::of(counting.clone());
        for _ in 0..3 {
            assert_eq!(server.elements("m/a", "0").await.as_ref(), [1, 0]);
        }
        assert_eq!(counting.documents(), reads, "{bytes}");
    }
}

#[tokio::test]
async fn an_array_can_be_the_root_of_a_mount() {
    let store = memory();
    let model = Array::of(&[]).store(&store, "x").await;
    let root = memory();
    for key in ["zarr.json", "c"] {
        let key_below = zarrd::key::StoreKey::parse(&format!("x/{key}")).unwrap();
        let value = store.get(&key_below, ByteRange::Whole, None).await.unwrap().unwrap();
        put(&root, key, value.bytes(1 << 20).await.unwrap()).await;
    }
    let server = Server::of(root);
    assert_eq!(node(&server, "m").await["chunks"]["grid_shape"], json!([]));
    for url in ["/v1/data/m", "/v1/data/m/", "/v1/data/m?slice=...", "/v1/chunk/m/c", "/v1/data/m?slice=()"] {
        let answer = server.get(url).await;
        assert_eq!((answer.status, answer.body.as_ref()), (StatusCode::OK, &*model.elements), "{url}");
        assert_eq!(answer.header("array-shape"), "[]");
    }
    assert_eq!(server.get("/v1/data/m?format=json").await.body, "1");
}

#[tokio::test]
async fn chunks_are_addressed_alike_in_every_format_and_trimmed_at_the_edge() {
    let v2 = |separator| Format::V2 { compressor: Some(Codec::Zlib), fortran: false, big: false, separator };
    let v3 = |encoding, separator| Format::V3 { encoding, separator };
    for format in [v2('.'), v2('/'), v3("default", '/'), v3("default", '.'), v3("v2", '.'), v3("v2", '/')] {
        let store = memory();
        let array = Array::of(&[5, 7]).chunks(&[2, 3]).format(format.clone());
        let model = array.store(&store, "a").await;
        let server = Server::of(store);
        for coords in array.grid() {
            let answer = server.get(&format!("/v1/chunk/m/a/c/{}/{}", coords[0], coords[1])).await;
            let dims = array.chunk_box(&coords);
            let expected = model.select(&dims);
            assert_eq!(answer.body, expected.elements, "{format:?} {}", spell(&dims));
            assert_eq!(answer.header("array-shape"), format!("{:?}", expected.shape));
        }
    }
}

#[tokio::test]
async fn an_array_named_c_has_chunks_too() {
    let store = memory();
    Array::of(&[2]).store(&store, "c").await;
    Array::of(&[3]).store(&store, "x/c/0").await;
    let server = Server::of(store);
    assert_eq!(server.get("/v1/chunk/m/c/c/0").await.body.as_ref(), [1, 0, 2, 0]);
    assert_eq!(server.get("/v1/chunk/m/x/c/0/c/0").await.header("array-shape"), "[3]");
}

#[tokio::test]
async fn every_array_of_the_demo_opens_and_has_its_values() {
    let store = memory();
    zarrd::app::demo::fill(&store).await.unwrap();
    let server = Server::of(store);
    // The children of the root, arrays last.
    let (mut found, mut left) = (Vec::new(), vec!["/v1/nodes/m/".to_owned()]);
    while let Some(url) = left.pop() {
        let node = server.get(&url).await.json();
        let path = node["path"].as_str().unwrap().to_owned();
        match node["children"].as_array() {
            Some(children) => {
                left.extend(children.iter().map(|child| child["href"].as_str().unwrap().to_owned()));
            }
            None => found.push(path),
        }
    }
    found.sort();
    let known = [
        ("field", "0,52,95", "\"NaN\""),
        ("image/0", "0,258,76:79", "[156,151,141]"),
        ("image/1", "1,128,17:20", "[94,208,173]"),
        ("image/2", "2,64,20:25", "[5,164,3,2,168]"),
        ("image/labels/nuclei/0", "258,76", "52"),
        ("image/labels/nuclei/1", "128,40:43", "[52,52,0]"),
        ("image/labels/nuclei/2", "64,20:22", "[52,0]"),
        ("lat", "::44", "[-89.0,-1.0,87.0]"),
        ("lon", "-1", "179.0"),
        ("points/0/vertex_attributes/activity", "0,0,0", "[]"),
        // One fragment has all eleven rows of the chunk.
        (
            "points/0/vertex_fragments",
            "0,0,1",
            "[71,70,86,90,1,0,0,0,1,0,0,0,1,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,11,0,0,0,0,0,0,0,0,0,0,0]",
        ),
        ("points/0/vertices", "0,0,0", "[]"),
        ("sharded", "40,48,56", "1296"),
        ("sharded", "0,0,0", "0"),
        ("time", "::-8", "[23.0,15.0,7.0]"),
        ("tree/branch/leaf", "", "[0,1,4,9,16,25,36,49,64,81]"),
        ("tree/other/yes", "", "true"),
        ("v2/blosc", "299,396:", "[299396,299397,299398,299399]"),
    ];
    let mut paths: Vec<&str> = known.iter().map(|(path, ..)| *path).collect();
    paths.dedup();
    assert_eq!(found, paths);
    for (path, slice, value) in known {
        let answer = server.get(&format!("/v1/data/m/{path}?slice={slice}&format=json")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
        assert_eq!(answer.body, value, "{path} {slice}");
    }
    for line in zarrd::app::demo::curl_lines("") {
        let url = line.split('\'').nth(1).unwrap().replace("/demo/", "/m/");
        assert_eq!(server.get(&url).await.status, StatusCode::OK, "{line}");
    }
}

#[tokio::test]
async fn a_long_document_is_read_once_a_version_and_shared_by_all_responses() {
    let store = memory();
    let group = |number: usize| {
        let attributes = json!({ "long": vec![json!({ "": number }); 60_000] });
        json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes }).to_string()
    };
    put(&store, "g/zarr.json", group(1)).await;
    let counting = Counting::new(std::sync::Arc::clone(&store));
    let server = Server::of(std::sync::Arc::clone(&counting) as SharedStore);
    let before = server.in_flight_bytes();
    let (site, ask) =
        (server.site(), || Request::builder().uri("/v1/nodes/m/g").body(Body::empty()).unwrap());
    let answers: Vec<_> = futures::future::join_all((0..8).map(|_| site.handle(ask(), Peer::LOOPBACK))).await;
    let held = server.in_flight_bytes() - before;
    // The text, and the charge of each of eight streams.
    assert!((group(1).len() as u64..(8 << 20) + (1 << 20)).contains(&held), "{held}");
    let tag = |answer: &axum::response::Response| answer.headers()["etag"].clone();
    assert!(
        answers.iter().all(|answer| answer.status() == StatusCode::OK && tag(answer) == tag(&answers[0]))
    );
    drop(answers);
    assert_eq!(server.in_flight_bytes(), before);
    let first = server.get("/v1/nodes/m/g").await;
    assert_eq!(first.json()["metadata"].to_string(), group(1));
    assert_eq!(counting.documents(), 1);
    put(&store, "g/zarr.json", group(2)).await;
    let second = server.get("/v1/nodes/m/g").await;
    assert_eq!(second.json()["metadata"].to_string(), group(2));
    assert_ne!(first.header("etag"), second.header("etag"));
    assert_eq!(counting.documents(), 2);
}

#[tokio::test]
async fn an_unknown_view_of_a_node_is_refused_with_the_known_ones() {
    let store = memory();
    Array::of(&[2]).store(&store, "a").await;
    let detail =
        Server::of(store).get("/v1/nodes/m/a?view=whole").await.refuses(400, "invalid-request", "a view");
    assert!(["complete", "rebased", "partial"].iter().all(|view| detail.contains(view)), "{detail}");
}
