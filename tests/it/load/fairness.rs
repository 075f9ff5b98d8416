//! Capacity for small responses, however slowly long ones are read.

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use serde_json::{Value, json};
use zarrd::array::ReadLimits;
use zarrd::http::{HttpOptions, Peer};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, put};

/// Bytes of the array that is read slowly; all of them are its fill value.
const LONG: u64 = 128 << 20;
/// What one of its responses holds: two segments, an eighth of the budget of all.
const BAND_BYTES: u64 = 1 << 20;

async fn server() -> Server {
    let store = memory();
    let array_of = |shape: &[u64], chunk: &[u64]| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 7,
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk } },
            "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "bytes" }],
        })
        .to_string()
    };
    let array = |length: u64, chunk: u64| array_of(&[length], &[chunk]);
    put(&store, "long/zarr.json", array(LONG, BAND_BYTES)).await;
    put(&store, "tiny/zarr.json", array(16, 16)).await;
    put(&store, "tiny/c/0", vec![1; 16]).await;
    put(&store, "small", "0123456789").await;
    Array::of(&[2, 3]).store(&store, "numbers").await;
    put(&store, "group/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    put(&store, "group/x/zarr.json", named(&array(16, 16), &["x"])).await;
    put(&store, "group/x/c/0", vec![1; 16]).await;
    put(&store, "group/place/zarr.json", named(&texts(), &["place"])).await;
    put(&store, "group/place/c/0", two_texts("ab", "c")).await;
    put(&store, "group/at_places/zarr.json", named(&array_of(&[2, 3], &[2, 3]), &["place", "z"])).await;
    put(&store, "texts/zarr.json", texts()).await;
    put(&store, "texts/c/0", two_texts("ab", "c")).await;
    put(&store, "long_texts/zarr.json", texts()).await;
    put(&store, "long_texts/c/0", two_texts(&"ab".repeat(50_000), "c")).await;
    for (group, one) in [("places", "ab".to_owned()), ("long_places", "ab".repeat(50_000))] {
        put(&store, &format!("{group}/zarr.json"), r#"{"zarr_format": 3, "node_type": "group"}"#).await;
        put(&store, &format!("{group}/place/zarr.json"), named(&texts(), &["place"])).await;
        put(&store, &format!("{group}/place/c/0"), two_texts(&one, "c")).await;
        put(&store, &format!("{group}/v/zarr.json"), named(&array(2, 2), &["place"])).await;
        put(&store, &format!("{group}/v/c/0"), vec![1; 2]).await;
    }
    put_points(&store, "uncounted", json!(null)).await;
    put_points(&store, "counted", json!(1_u64 << 40)).await;
    let mut builder = Server::build(Mount::read_only("m", store));
    builder.read = ReadLimits { segment_size: BAND_BYTES, ..ReadLimits::default() };
    builder.http = HttpOptions {
        inflight_size: 16 << 20,
        streamed_response_size: 256 << 10,
        admission_timeout: Duration::from_millis(50),
        ..HttpOptions::default()
    };
    builder.finish()
}

/// The metadata of an array with names of its dimensions.
fn named(metadata: &str, dimensions: &[&str]) -> String {
    let mut metadata: serde_json::Value = serde_json::from_str(metadata).unwrap();
    metadata["dimension_names"] = json!(dimensions);
    metadata.to_string()
}

/// Stores two points in Zarr Vector Format, and how many there are.
async fn put_points(store: &SharedStore, name: &str, count: Value) {
    let group = |attributes: Value| {
        json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes }).to_string()
    };
    let root = json!({
        "zarr_vectors": {
            "zv_version": "0.9.2", "chunk_shape": [10, 10], "bounds": [[0, 0], [9, 9]], "geometry_types": ["point_cloud"],
        },
        "multiscales": [{ "axes": [{ "name": "x" }, { "name": "y" }], "datasets": [{ "path": "0" }] }],
    });
    put(store, &format!("{name}/zarr.json"), group(root)).await;
    let level = json!({ "zarr_vectors_level": { "level": 0, "vertex_count": count } });
    put(store, &format!("{name}/0/zarr.json"), group(level)).await;
    let vertices = json!({
        "zarr_format": 3, "node_type": "array", "shape": [1, 1], "data_type": "variable_length_bytes", "fill_value": "",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1, 1] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "vlen-bytes" }],
        "attributes": { "nonempty_chunks": ["0.0"], "dtype": "float32", "encoding": "raw" },
    });
    put(store, &format!("{name}/0/vertices/zarr.json"), vertices.to_string()).await;
    let points: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let cell = [&1_u32.to_le_bytes()[..], &16_u32.to_le_bytes(), &points].concat();
    put(store, &format!("{name}/0/vertices/c/0/0"), cell).await;
}

/// The metadata of two texts.
fn texts() -> String {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "string", "fill_value": "",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "vlen-utf8" }],
    })
    .to_string()
}

/// Two texts as they are stored: each behind its length, after their number.
fn two_texts(one: &str, other: &str) -> Vec<u8> {
    let mut stored = 2_u32.to_le_bytes().to_vec();
    for text in [one, other] {
        stored.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
        stored.extend_from_slice(text.as_bytes());
    }
    stored
}

fn from(last: u8) -> Peer {
    Peer { address: Ipv4Addr::new(192, 0, 2, last).into(), is_encrypted: false }
}

/// The head of a response whose body is not read yet.
async fn begin(server: &Server, url: &str, from: Peer) -> Response<Body> {
    let request = Request::builder().uri(url).body(Body::empty()).unwrap();
    server.site().handle(request, from).await
}

#[tokio::test]
async fn slow_readers_of_long_slices_do_not_block_small_responses() {
    let server = server().await;
    let mut unread = Vec::new();
    for address in 1..=3 {
        for _ in 0..8 {
            let answer = begin(&server, "/v1/data/m/long", from(address)).await;
            if answer.status() == 200 {
                unread.push(answer);
            }
        }
    }
    assert!(unread.len() >= 5, "{} long answers at a time", unread.len());
    // More of the same wait all the while.
    let waiting: Vec<_> = (10..14)
        .map(|address| {
            let server = server.clone();
            tokio::spawn(async move {
                loop {
                    assert_eq!(begin(&server, "/v1/data/m/long", from(address)).await.status(), 503);
                }
            })
        })
        .collect();
    let bounded = json!({ "get": [{ "key": "small", "offset": 1, "length": 2 }] }).to_string();
    let whole = json!({ "get": [{ "key": "small" }, { "key": "small", "offset": 3 }] }).to_string();
    for round in 0..20 {
        for url in [
            "/v1/data/m/long?slice=:4",
            "/v1/data/m/long?slice=:4&format=json",
            "/v1/chunk/m/tiny/c/0?format=npy",
            "/v1/nodes/m/long",
            "/store/m/long/zarr.json",
            "/store/m/small",
            "/store/m/?format=json",
            "/store/m/",
            "/s3/m?list-type=2",
            "/rechunk/m/8/raw/tiny/c/0",
            // The length of these is known only once they were made.
            "/v1/data/m/numbers?format=csv",
            "/v1/data/m/texts?format=json",
            "/v1/data/m/texts?format=csv",
            "/v1/data/m/texts?format=arrow",
            "/v1/data/m/texts?format=parquet",
            "/v1/data/m/texts?format=nc",
            "/v1/data/m/group/x?coords=1&format=csv",
            "/v1/data/m/group/x?coords=1&format=json",
            "/v1/data/m/group/x?coords=1&format=arrow",
            "/v1/data/m/group/x?coords=1&format=parquet",
            "/v1/data/m/group/at_places?coords=1&format=csv",
            "/v1/data/m/group/at_places?coords=1&format=json",
            "/v1/data/m/group/at_places?coords=1&format=parquet",
            "/v1/data/m/group/x?format=nc",
            "/dap/m/numbers.ascii",
            "/dap/m/numbers.dods",
            "/dap/m/texts.ascii",
            "/dap/m/texts.dods",
            "/dap/m/texts.dap",
            "/v1/stats/m/numbers",
            "/v1/vectors/m/uncounted/vertices",
            "/v1/vectors/m/uncounted/vertices?format=bin",
            "/v1/vectors/m/counted/vertices?limit=10",
            "/v1/vectors/m/counted/vertices?limit=10&format=arrow",
            // That of the labels that this selects by, once they were read.
            "/v1/data/m/places/v?sel.place=ab",
        ] {
            let request = Request::builder().uri(url).body(Body::empty()).unwrap();
            let answer = server.send_from(request, from(100)).await;
            assert_eq!(answer.status, 200, "round {round}, {url}: {:?}", answer.body);
        }
        for parts in [&bounded, &whole] {
            // Without `Content-Length`, capacity for the longest body would be reserved.
            let request =
                Request::builder().method("POST").uri("/v1/partial/m").header("content-length", parts.len());
            let request = request.body(Body::from(parts.clone())).unwrap();
            let answer = server.send_from(request, from(100)).await;
            assert_eq!(answer.status, 200, "round {round}, {parts}: {:?}", answer.body);
        }
    }
    // What turns out to be long waits for memory as long ones do, and is not too large.
    let long_texts = [
        "/v1/data/m/long_texts?format=json",
        "/v1/data/m/long_texts?format=csv",
        "/dap/m/long_texts.ascii",
        "/dap/m/long_texts.dap",
        "/v1/data/m/long_places/v?sel.place=c",
    ];
    for url in long_texts {
        assert_eq!(begin(&server, url, from(100)).await.status(), 503, "{url}");
    }
    for task in waiting {
        assert!(!task.is_finished(), "a long response was admitted");
        task.abort();
    }
    drop(unread);
    assert_eq!(begin(&server, "/v1/data/m/long", from(100)).await.status(), 200);
    for url in long_texts {
        assert_eq!(begin(&server, url, from(100)).await.status(), 200, "{url}");
    }
}
