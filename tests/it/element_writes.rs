//! Writes of elements against a naive model: random arrays, selections and bodies, many writers at once, and bad input.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use futures::future::join_all;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tokio::time::sleep;
use zarrd::cache::ValueCache;
use zarrd::services::Mount;
use zarrd::store::{CachePolicy, LocalOptions, LocalStore, SharedStore};

use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Format, memory, noise};
use crate::support::model::{Dim, spell};
use crate::support::property::holds;
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::{Answer, Server, contents, no_caches, put};
use crate::support::strategies::{case, random_selection};

pub(crate) fn writable(store: &SharedStore) -> Mount {
    Mount { writable: true, ..Mount::read_only("m", Arc::clone(store)) }
}

fn server(store: &SharedStore) -> Server {
    Server::build(writable(store)).finish()
}

impl Server {
    async fn put_elements(&self, url: &str, media_type: &str, body: impl Into<Body>) -> Answer {
        self.request("PUT", url, &[("content-type", media_type)], body).await
    }

    async fn put_bytes(&self, url: &str, body: impl Into<Body>) -> Answer {
        self.put_elements(url, "application/octet-stream", body).await
    }

    async fn put_json(&self, url: &str, body: &Value) -> Answer {
        self.put_elements(url, "application/json", body.to_string()).await
    }
}

/// The same selection with positive steps.
fn forward(dims: Vec<Dim>) -> Vec<Dim> {
    let forward = |dim| match dim {
        Dim::Slice { start, stop, step: Some(step) } if step < 0 => {
            Dim::Slice { start, stop, step: Some(step.checked_neg().unwrap_or(i64::MAX)) }
        }
        dim => dim,
    };
    dims.into_iter().map(forward).collect()
}

#[test]
fn random_writes_to_random_arrays_match_a_naive_model() {
    let writes = prop::collection::vec((random_selection(), any::<u64>(), any::<bool>()), 1..=4);
    let band = select(&[64_u64, 2000, 64 << 20][..]);
    holds(96, (case(), writes, band, any::<[bool; 2]>()), async |(case, writes, band, [cached, erases])| {
        let store = memory();
        let array = case.array();
        let mut model = array.store(&store, "a").await;
        let mut builder = Server::build(writable(&store));
        builder.write.band_size = band;
        builder.write.erase_fill = erases;
        if !cached {
            builder.cache = no_caches();
        }
        let server = builder.finish();
        for (drawn, seed, is_big) in writes {
            let dims = forward(drawn.dims(&model.shape));
            let mut elements: Vec<u8> = noise(seed).take(model.select(&dims).elements.len()).collect();
            case.data_type.tame(&mut elements);
            let mut sent = elements.clone();
            let is_big = is_big && !case.data_type.is_variable();
            if is_big {
                case.data_type.swap(&mut sent);
            }
            let sent = case.data_type.packed(&sent);
            let endian = if is_big { "big" } else { "little" };
            let url = format!("/v1/data/m/a?slice={}&endian={endian}", spell(&dims));
            let answer = server.put_bytes(&url, sent).await;
            if answer.status == 413 && band < 64 << 20 {
                assert_eq!(answer.json()["written"], false);
            } else {
                assert_eq!(answer.status, 204, "{url}: {:?}", answer.body);
                model.assign(&dims, &elements);
            }
            let read = server.get("/v1/data/m/a").await;
            assert_eq!(read.status, 200, "{:?}", read.body);
            assert!(
                read.body == case.data_type.packed(&model.elements),
                "{url}: other elements than the model's"
            );
        }
        // As another server sees it, which has cached nothing.
        let read = Server::of(store).get("/v1/data/m/a").await;
        assert!(read.body == case.data_type.packed(&model.elements));
    });
}

/// A sharded array of zeros: one shard of 16 × 16 inner chunks of 4 × 4.
fn shard() -> Array {
    let codecs = [Codec::Shards(Box::new(Shards::of(&[4, 4], &[Codec::Bytes { big: false }, Codec::Zstd])))];
    Array::of(&[64, 64]).chunks(&[64, 64]).codecs(codecs).members(json!({ "fill_value": 0 })).uniform(0)
}

/// Writes each element of the array `a` with a request of its own, through these servers in turn.
async fn write_one_by_one(servers: &[Server], side: u16, clients: u16) {
    let client = |client: u16| {
        let servers = servers.to_vec();
        tokio::spawn(async move {
            for number in (0..side * side).filter(|number| number % clients == client) {
                let server = &servers[usize::from(number) % servers.len()];
                let url = format!("/v1/data/m/a?slice={},{}", number / side, number % side);
                loop {
                    let answer = server.put_bytes(&url, (number + 1).to_le_bytes().to_vec()).await;
                    if answer.status == 204 {
                        break;
                    }
                    assert_eq!((answer.status.as_u16(), &*answer.code()), (503, "contended"), "{answer:?}");
                    assert_eq!(answer.json()["written"], false);
                }
            }
        })
    };
    for done in join_all((0..clients).map(client)).await {
        done.unwrap();
    }
}

fn numbers(bytes: &[u8]) -> Vec<u16> {
    bytes.as_chunks().0.iter().copied().map(u16::from_le_bytes).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_element_is_lost_when_many_clients_write_one_shard() {
    let store = memory();
    shard().store(&store, "a").await;
    let server = server(&store);
    write_one_by_one(std::slice::from_ref(&server), 64, 32).await;
    let read = server.get("/v1/data/m/a").await;
    assert_eq!(numbers(&read.body), (1..=64 * 64).collect::<Vec<u16>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_element_is_lost_when_two_servers_write_one_shard_of_a_bucket() {
    let bucket = TestS3::start().await;
    shard().store(&bucket.store(), "a").await;
    let servers = [server(&bucket.store()), server(&bucket.store())];
    write_one_by_one(&servers, 16, 16).await;
    for server in servers {
        let read = numbers(&server.elements("m/a", ":16,:16").await);
        assert_eq!(read, (1..=16 * 16).collect::<Vec<u16>>());
    }
}

#[tokio::test]
async fn the_counts_say_what_was_written_whole_and_what_was_merged() {
    let store = memory();
    Array::of(&[6, 10]).chunks(&[2, 4]).store(&store, "a").await;
    let server = server(&store);
    for (slice, counts) in [
        ("", "values=9, whole=6, merged=3"),
        ("0:4,0:5", "values=4, whole=2, merged=2"),
        (":,8:", "values=3, whole=0, merged=3"),
        ("::2,1", "values=3, whole=0, merged=3"),
        ("0:0", "values=0, whole=0, merged=0"),
    ] {
        let answer = server.put_json(&format!("/v1/data/m/a?slice={slice}"), &json!(7)).await;
        assert_eq!((answer.status.as_u16(), answer.header("zarrd-written")), (204, counts), "{slice}");
    }
    // A chunk across the edge is read: the array may grow meanwhile.
    let answer = server.put_json("/v1/chunk/m/a/c/2/2", &json!([[1, 2], [3, 4]])).await;
    assert_eq!(answer.header("zarrd-written"), "values=1, whole=0, merged=1");
    assert_eq!(numbers(&server.elements("m/a", "4:,8:").await), [1, 2, 3, 4]);
}

/// Of whole chunks each byte is stored once. A part stores its chunk, or its shard, once for all that wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_few_bytes_are_stored_as_chunks_allow() {
    let bucket = TestS3::start().await;
    let server = server(&bucket.store());
    let headers = [("content-type", "application/json")];
    for (name, shards) in [("plain", Value::Null), ("sharded", json!([64]))] {
        let array =
            json!({"shape": [64], "data_type": "uint8", "chunks": [16], "shards": shards, "codecs": "raw"});
        let made = server.request("PUT", &format!("/v1/nodes/m/{name}"), &headers, array.to_string()).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        assert_eq!(server.put_bytes(&format!("/v1/data/m/{name}"), vec![1; 64]).await.status, 204);
    }
    let stores = async |url: &str, body: Vec<u8>| {
        let before = bucket.requests(Kind::Put);
        assert_eq!(server.put_bytes(url, body).await.status, 204);
        bucket.requests(Kind::Put) - before
    };
    assert_eq!(bucket.value("plain/c/0").unwrap().len(), 16);
    assert_eq!(stores("/v1/data/m/plain", vec![2; 64]).await, 4, "64 bytes for 64");
    assert_eq!(stores("/v1/data/m/plain?slice=3:5", vec![3; 2]).await, 1, "16 bytes for 2");
    assert_eq!(stores("/v1/data/m/plain?slice=14:18", vec![3; 4]).await, 2, "32 bytes for 4");
    assert_eq!(stores("/v1/data/m/sharded?slice=14:18", vec![3; 4]).await, 1, "one shard for 4");

    let rule = Rule { kinds: vec![Kind::Put], key: "sharded/c/0", when: When::Nth(0), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let before = bucket.requests(Kind::Put);
    let writes: Vec<_> = (0..64_u8)
        .map(|place| {
            let server = server.clone();
            let url = format!("/v1/data/m/sharded?slice={place}:{}", place + 1);
            tokio::spawn(async move { server.put_bytes(&url, vec![place]).await.status })
        })
        .collect();
    bucket.until_one_waits().await;
    // The others wait for the first one by then, or most of them.
    sleep(Duration::from_millis(300)).await;
    bucket.go_on();
    for write in join_all(writes).await {
        assert_eq!(write.unwrap(), 204);
    }
    let stores = bucket.requests(Kind::Put) - before;
    assert!(stores <= 8, "the shard was stored {stores} times for 64 writes");
    assert_eq!(server.elements("m/sharded", "").await, (0..64).collect::<Vec<u8>>());
}

#[tokio::test]
async fn a_write_without_a_condition_is_stored_whatever_becomes_of_conditional_ones_beside_it() {
    let store = memory();
    Array::of(&[64]).chunks(&[64]).store(&store, "a").await;
    let server = server(&store);
    let headers = [("content-type", "application/json"), ("if-match", "\"another\"")];
    let writes = (0..64_u16).map(|place| {
        let (server, url) = (&server, format!("/v1/data/m/a?slice={place}"));
        async move {
            if place % 2 == 0 {
                server.put_json(&url, &json!(place)).await.status
            } else {
                server.request("PUT", &url, &headers, "99").await.status
            }
        }
    });
    for (place, status) in join_all(writes).await.into_iter().enumerate() {
        assert_eq!(status, if place % 2 == 0 { 204 } else { 412 }, "{place}");
    }
    let found = numbers(&server.elements("m/a", "").await);
    assert!(found.iter().zip(0..).all(|(found, place)| place % 2 == 1 || *found == place), "{found:?}");
    assert!(!found.contains(&99), "{found:?}");
}

#[tokio::test]
async fn a_slice_is_written_only_if_nothing_of_it_has_changed() {
    let store = memory();
    Array::of(&[4, 4]).chunks(&[2, 4]).store(&store, "a").await;
    let server = server(&store);
    let url = "/v1/data/m/a?slice=0,1:3";
    for format in ["bytes", "npy", "json", "csv"] {
        let tag = server.get(&format!("{url}&format={format}")).await.header("etag").to_owned();
        let headers = [("content-type", "application/json"), ("if-match", &tag)];
        let answer = server.request("PUT", url, &headers, "[1,2]").await;
        assert_eq!(answer.status, 204, "{format}: {:?}", answer.body);
        let now = server.get(&format!("{url}&format=json")).await;
        assert_eq!(answer.header("etag"), now.header("etag"));
        let again = server.request("PUT", url, &headers, "[3,4]").await;
        assert_eq!((again.status.as_u16(), &again.json()["written"]), (412, &json!(false)));
    }
    let spans = server.request(
        "PUT",
        "/v1/data/m/a",
        &[("content-type", "application/json"), ("if-match", "\"x\"")],
        "1",
    );
    assert_eq!(spans.await.refuses(400, "condition-spans-values", "two chunks"), spans_text());
    let none =
        server.request("PUT", url, &[("content-type", "application/json"), ("if-none-match", "*")], "1");
    none.await.refuses(400, "invalid-request", "another condition");
    let any = server.request(
        "PUT",
        "/v1/data/m/a",
        &[("content-type", "application/json"), ("if-match", "*")],
        "1",
    );
    assert_eq!(any.await.status, 204);
}

fn spans_text() -> &'static str {
    "the selection lies in several stored values, which cannot be written in one step under a condition: select less, or \
     leave `If-Match` out"
}

/// An npy file of this head.
fn npy(descr: &str, order: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let head = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend(u16::try_from(head.len()).unwrap().to_le_bytes());
    file.extend(head.as_bytes());
    file.extend(elements);
    file
}

#[tokio::test]
async fn bodies_of_every_format_are_the_same_elements() {
    let store = memory();
    Array::of(&[3, 2]).chunks(&[2, 2]).store(&store, "a").await;
    let server = server(&store);
    let elements: Vec<u8> = (1..=6_u16).flat_map(u16::to_le_bytes).collect();
    let swapped: Vec<u8> = (1..=6_u16).flat_map(u16::to_be_bytes).collect();
    let bytes: Vec<u8> = (1..=6).collect();
    for (query, media_type, body) in [
        ("", "application/octet-stream", elements.clone()),
        ("?endian=big", "application/octet-stream", swapped.clone()),
        ("?format=bytes", "", elements.clone()),
        ("", "application/x-npy", npy("'<u2'", "False", "(3, 2)", &elements)),
        ("?f=npy", "text/plain", npy("'>u2'", "False", "(3, 2)", &swapped)),
        ("?cast=safe", "application/x-npy", npy("'|u1'", "False", "(3, 2)", &bytes)),
        ("", "application/json; charset=utf-8", b"[[1,2],[3,4],[5,6]]".to_vec()),
    ] {
        assert_eq!(server.put_json("/v1/data/m/a", &json!(0)).await.status, 204);
        let answer = server.put_elements(&format!("/v1/data/m/a{query}"), media_type, body.clone()).await;
        assert_eq!(answer.status, 204, "{query} {media_type}: {:?}", answer.body);
        assert_eq!(server.elements("m/a", "").await, elements, "{query} {media_type}");
        // In pieces, without a length.
        server.put_json("/v1/data/m/a", &json!(0)).await;
        let pieces = body.chunks(3).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
        let pieces = Body::from_stream(futures::stream::iter(pieces));
        let answer = server.put_elements(&format!("/v1/data/m/a{query}"), media_type, pieces).await;
        assert_eq!(answer.status, 204, "{query} {media_type}: {:?}", answer.body);
        assert_eq!(server.elements("m/a", "").await, elements, "{query} {media_type}");
    }
}

#[tokio::test]
async fn bad_input_is_refused_by_name_and_leaves_the_store_as_it_was() {
    let store = memory();
    Array::of(&[4, 6]).chunks(&[2, 3]).store(&store, "a").await;
    Array::of(&[4]).data_type(crate::support::data_types::data_type("bool")).store(&store, "b").await;
    put(&store, "g/zarr.json", r#"{"zarr_format":3,"node_type":"group"}"#).await;
    let before = contents(&store).await;
    let server = server(&store);
    let elements = vec![1_u8; 48];
    let json = "application/json";
    let plain = "application/octet-stream";
    let numpy = "application/x-npy";
    for (url, media_type, body, status, code) in [
        ("a", plain, elements[..47].to_vec(), 400, "shape-mismatch"),
        ("a", plain, [&elements[..], b"x"].concat(), 400, "shape-mismatch"),
        ("a?slice=0", plain, elements.clone(), 400, "shape-mismatch"),
        ("a?slice=0,::-1", plain, elements[..12].to_vec(), 400, "invalid-request"),
        ("a?slice=9", plain, elements.clone(), 400, "invalid-request"),
        ("a?slice=0,0,0", plain, elements.clone(), 400, "invalid-request"),
        ("a?fields=x", plain, elements.clone(), 400, "invalid-request"),
        ("a?cast=unsafe", plain, elements.clone(), 400, "invalid-request"),
        ("a?expected_shape=4,7", plain, elements.clone(), 409, "conflict"),
        ("a", "text/csv", elements.clone(), 415, "unsupported-media-type"),
        ("a?format=csv", plain, elements.clone(), 415, "unsupported-media-type"),
        ("a", numpy, npy("'<u2'", "False", "(4, 6)", &elements[..40]), 400, "shape-mismatch"),
        ("a", numpy, npy("'<u2'", "False", "(6, 4)", &elements), 400, "shape-mismatch"),
        ("a", numpy, npy("'<i2'", "False", "(4, 6)", &elements), 400, "data-type-mismatch"),
        ("a?cast=safe", numpy, npy("'<f8'", "False", "(4, 6)", &elements), 400, "data-type-mismatch"),
        ("a", numpy, npy("'<u2'", "True", "(4, 6)", &elements), 400, "invalid-request"),
        ("a", numpy, elements.clone(), 400, "invalid-request"),
        ("a", numpy, b"\x93NUMPY\x01".to_vec(), 400, "invalid-request"),
        ("a", numpy, b"\x93NUMPY\x02\0\xff\xff\xff\xff".to_vec(), 400, "invalid-request"),
        ("a", json, b"[[1,2]]".to_vec(), 400, "shape-mismatch"),
        ("a", json, b"1.5".to_vec(), 400, "invalid-request"),
        ("a", json, b"\"NaN\"".to_vec(), 400, "invalid-request"),
        ("a", json, b"-1".to_vec(), 400, "invalid-request"),
        ("a", json, b"65536".to_vec(), 400, "invalid-request"),
        ("a", json, b"null".to_vec(), 400, "invalid-request"),
        ("a", json, b"".to_vec(), 400, "invalid-request"),
        ("a", json, b"[".repeat(100_000), 400, "invalid-request"),
        ("b", plain, vec![0, 1, 2, 1], 400, "invalid-request"),
        ("b", json, b"[0, 1, 0, 1]".to_vec(), 400, "invalid-request"),
        ("g", json, b"1".to_vec(), 404, "not-found"),
        ("none", json, b"1".to_vec(), 404, "not-found"),
    ] {
        let what = format!(
            "{url} {media_type} {:?}",
            String::from_utf8_lossy(&body).chars().take(30).collect::<String>()
        );
        let answer = server.put_elements(&format!("/v1/data/m/{url}"), media_type, body.clone()).await;
        let detail = answer.refuses(status, code, &what);
        assert!(!detail.is_empty(), "{what}");
        assert_eq!(answer.json()["written"], false, "{what}");
        let pieces = futures::stream::iter(
            body.chunks(5).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>(),
        );
        let answer =
            server.put_elements(&format!("/v1/data/m/{url}"), media_type, Body::from_stream(pieces)).await;
        answer.refuses(status, code, &what);
    }
    let wrong_digest = [("content-type", plain), ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
    let answer = server.request("PUT", "/v1/data/m/a", &wrong_digest, elements.clone()).await;
    answer.refuses(400, "digest-mismatch", "a digest");
    let coded = [("content-type", plain), ("content-encoding", "gzip")];
    server.request("PUT", "/v1/data/m/a", &coded, elements.clone()).await.refuses(
        415,
        "unsupported-media-type",
        "a coding",
    );
    let read_only = Server::of(Arc::clone(&store)).put_bytes("/v1/data/m/a", elements).await;
    read_only.refuses(405, "not-allowed", "a read-only mount");
    assert_eq!(contents(&store).await, before);
}

#[tokio::test]
async fn a_number_that_a_cast_cannot_represent_is_refused_and_not_written() {
    let store = memory();
    let server = server(&store);
    let headers = [("content-type", "application/json")];
    let create = async |path: &str, body: Value| {
        server.request("PUT", &format!("/v1/nodes/m/{path}"), &headers, body.to_string()).await
    };
    let float = json!({"shape": [1], "data_type": "float64"});
    assert_eq!(create("float", float).await.status, 201);
    let codecs = json!([
        {"name": "cast_value", "configuration": {"data_type": "int8"}},
        {"name": "bytes"},
    ]);
    let small =
        json!({"shape": [1], "data_type": "float64", "codecs": codecs, "chunks": [4], "fill_value": 0});
    let made = create("small", small).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let before = contents(&store).await;
    let large = npy("'<i8'", "False", "(1,)", &9_007_199_254_740_993_i64.to_le_bytes());
    let url = "/v1/data/m/float?cast=safe";
    let cast = server.put_elements(url, "application/x-npy", large.clone()).await;
    cast.refuses(400, "invalid-request", "an integer that no float is");
    let appended = server.request("POST", "/v1/data/m/float?append=0&cast=safe&format=npy", &[], large).await;
    appended.refuses(400, "invalid-request", "the same, appended");
    let encoded = server.put_json("/v1/data/m/small", &json!([300])).await;
    encoded.refuses(400, "invalid-request", "a number that the codec does not store");
    let longer = server.request("POST", "/v1/data/m/small?append=0", &headers, "[300]").await;
    longer.refuses(400, "invalid-request", "the same, appended");
    for refused in [cast, appended, encoded, longer] {
        assert_eq!(refused.json()["written"], false, "{:?}", refused.body);
    }
    let fill =
        json!({"shape": [1], "data_type": "float64", "codecs": codecs, "chunks": [4], "fill_value": 300});
    let refused = create("fill", fill).await;
    refused.refuses(400, "invalid-request", "a fill value that the codec does not store");
    assert_eq!(refused.json()["written"], false);
    let mut after = contents(&store).await;
    after.retain(|key, _| !key.contains(".zarr-server"));
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_digest_is_checked_before_anything_is_written() {
    let store = memory();
    Array::of(&[4]).chunks(&[2]).store(&store, "a").await;
    let mut builder = Server::build(writable(&store));
    builder.write.max_whole_size = 100;
    let server = builder.finish();
    // Of eight zeros.
    let headers = [("content-type", "application/octet-stream"), ("content-md5", "feo2Kz+sjgCVaklSo9T0dA==")];
    let answer = server.request("PUT", "/v1/data/m/a", &headers, vec![0; 8]).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(numbers(&server.elements("m/a", "").await), [0; 4]);
    Array::of(&[400]).store(&store, "long").await;
    let answer = server.request("PUT", "/v1/data/m/long", &headers, vec![0; 800]).await;
    answer.refuses(413, "digest-too-long", "a long body with a digest");
    let text = "1, ".repeat(400);
    let answer = server.put_elements("/v1/data/m/long", "application/json", format!("[{text}]")).await;
    answer.refuses(413, "too-large", "a long text");
}

#[tokio::test]
async fn a_selection_that_does_not_fit_is_refused_with_slices_that_do() {
    let store = memory();
    Array::of(&[8, 100]).chunks(&[4, 10]).store(&store, "a").await;
    let mut builder = Server::build(writable(&store));
    builder.write.band_size = 400;
    let server = builder.finish();
    let answer = server.put_bytes("/v1/data/m/a", vec![0; 1600]).await;
    answer.refuses(413, "too-large", "a row of chunks that is too large");
    let problem = answer.json();
    assert_eq!((&problem["setting"], &problem["limit"]), (&json!("write.band_size"), &json!(400)));
    for slice in problem["suggested_slices"].as_array().unwrap() {
        let answer =
            server.put_json(&format!("/v1/data/m/a?slice={}", slice.as_str().unwrap()), &json!(3)).await;
        assert_eq!(answer.status, 204);
    }
    assert!(!problem["suggested_slices"].as_array().unwrap().is_empty());
    // Slices that are written replace chunks as a whole.
    let problem = server.put_bytes("/v1/data/m/a?slice=:,5:95", vec![0; 1440]).await.json();
    assert_eq!(problem["suggested_slices"], json!(["0:8,5:40", "0:8,40:80", "0:8,80:95"]), "{problem}");
    // One element has no size, whatever it fills.
    assert_eq!(server.put_json("/v1/data/m/a", &json!(5)).await.status, 204);
    assert_eq!(numbers(&server.elements("m/a", "").await), vec![5; 800]);
}

#[tokio::test]
async fn a_body_that_ends_early_says_which_bands_are_stored() {
    let store = memory();
    Array::of(&[8, 4]).chunks(&[2, 4]).store(&store, "a").await;
    let mut builder = Server::build(writable(&store));
    builder.write.band_size = 16;
    let server = builder.finish();
    let pieces = [vec![1_u8; 16], vec![2; 16], vec![3; 10]];
    let body = Body::from_stream(futures::stream::iter(pieces.map(Ok::<_, std::io::Error>)));
    let answer = server.put_bytes("/v1/data/m/a", body).await;
    answer.refuses(400, "shape-mismatch", "a short body");
    let problem = answer.json();
    assert_eq!(problem["written"], "some");
    assert_eq!(problem["stored_slices"], json!(["0:2,0:4", "2:4,0:4"]));
    let read = numbers(&server.elements("m/a", ":6:2,0").await);
    assert_eq!(read, [0x0101, 0x0202, 4 * 4 + 1]);
}

#[tokio::test]
async fn chunks_of_fill_are_erased_where_that_is_configured() {
    let sharded = [Codec::Shards(Box::new(Shards::of(&[2], &[Codec::Bytes { big: false }])))];
    for codecs in [vec![Codec::Bytes { big: false }], sharded.to_vec()] {
        for erases in [true, false] {
            let store = memory();
            Array::of(&[8]).chunks(&[4]).codecs(codecs.clone()).store(&store, "a").await;
            let mut builder = Server::build(writable(&store));
            builder.write.erase_fill = erases;
            let server = builder.finish();
            // The fill value of the array.
            for slice in ["0:2", "2:4"] {
                assert_eq!(
                    server.put_json(&format!("/v1/data/m/a?slice={slice}"), &json!(513)).await.status,
                    204
                );
            }
            assert_eq!(contents(&store).await.contains_key("a/c/0"), !erases);
            assert_eq!(numbers(&server.elements("m/a", ":5").await), [513, 513, 513, 513, 5]);
        }
    }
}

#[tokio::test]
async fn inner_chunks_that_no_write_touches_are_copied_as_they_are_stored() {
    let store = memory();
    let codecs = [Codec::Shards(Box::new(Shards::of(&[2], &[Codec::Bytes { big: false }, Codec::Crc32c])))];
    Array::of(&[8]).codecs(codecs).store(&store, "a").await;
    let mut shard = contents(&store).await["a/c/0"].to_vec();
    // The last inner chunk does not decode.
    let last = shard.iter().rposition(|byte| *byte == 8).unwrap();
    let at = (0..last).find(|&at| shard[at..at + 2] == [7, 0]).unwrap();
    shard[at] ^= 0xff;
    put(&store, "a/c/0", shard).await;
    let server = server(&store);
    assert_eq!(server.put_json("/v1/data/m/a?slice=1", &json!(9)).await.status, 204);
    assert_eq!(numbers(&server.elements("m/a", ":6").await), [1, 9, 3, 4, 5, 6]);
    assert_eq!(server.get("/v1/data/m/a?slice=6:").await.code(), "corrupt-data");
    // A write that has to decode it is refused; one that covers it is not.
    let refused = server.put_json("/v1/data/m/a?slice=7", &json!(9)).await;
    refused.refuses(500, "corrupt-data", "a part of what does not decode");
    assert_eq!(refused.json()["written"], false);
    assert_eq!(server.put_json("/v1/data/m/a?slice=6:", &json!(9)).await.status, 204);
    assert_eq!(numbers(&server.elements("m/a", "").await), [1, 9, 3, 4, 5, 6, 9, 9]);
}

#[tokio::test]
async fn arrays_of_both_formats_without_dimensions_and_elements_are_written() {
    let store = memory();
    let v2 = Format::V2 { compressor: Some(Codec::Zlib), fortran: true, big: true, separator: '.' };
    Array::of(&[3, 4]).chunks(&[2, 2]).format(v2).store(&store, "v2").await;
    Array::of(&[]).store(&store, "scalar").await;
    Array::of(&[0, 4]).chunks(&[1, 4]).store(&store, "empty").await;
    let server = server(&store);
    assert_eq!(server.put_json("/v1/data/m/v2?slice=1:,2", &json!([100, 200])).await.status, 204);
    assert_eq!(numbers(&server.elements("m/v2", ":,2").await), [3, 100, 200]);
    assert_eq!(server.put_json("/v1/data/m/scalar", &json!(77)).await.status, 204);
    assert_eq!(numbers(&server.elements("m/scalar", "").await), [77]);
    let nothing = server.put_bytes("/v1/data/m/empty", Vec::new()).await;
    assert_eq!(
        (nothing.status.as_u16(), nothing.header("zarrd-written")),
        (204, "values=0, whole=0, merged=0")
    );
}

#[tokio::test]
async fn what_was_written_is_read_at_once_whatever_the_freshness() {
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let local: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    let store = ValueCache::new(16 << 20).wrap("m", local, CachePolicy::Ttl(Duration::from_hours(1)));
    Array::of(&[4, 4]).chunks(&[2, 2]).store(&store, "a").await;
    // Versions are settled, so that they are cached.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let server = server(&store);
    for number in 1..20_u16 {
        server.elements("m/a", "").await;
        server.elements("m/a", "0").await;
        assert_eq!(server.put_json("/v1/data/m/a?slice=0,0", &json!(number)).await.status, 204);
        assert_eq!(numbers(&server.elements("m/a", "0").await), [number, 2, 3, 4]);
        assert_eq!(numbers(&server.elements("m/a", "").await)[0], number);
    }
}

#[tokio::test]
async fn a_request_to_write_needs_the_scope_of_writing() {
    let store = memory();
    Array::of(&[2]).store(&store, "a").await;
    let server = server(&store);
    let options = server.ask(Method::OPTIONS, "/v1/data/m/a", &[]).await;
    assert!(options.header("allow").contains("PUT"), "{options:?}");
    let foreign = Request::put("/v1/data/m/a").header("origin", "http://other.example");
    let foreign = foreign.header("host", "127.0.0.1").header("content-type", "application/json");
    let answer = server.send(foreign.body(Body::from("1")).unwrap()).await;
    assert_eq!(answer.status, 403);
    assert_eq!(numbers(&server.elements("m/a", "").await), [1, 2]);
}
