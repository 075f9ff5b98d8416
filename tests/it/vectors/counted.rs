//! The reads of a query: the touched chunks and nothing else.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use zarrd::http::Peer;
use zarrd::store::SharedStore;

use super::{ask, get_json, held};
use crate::support::counting::Counting;
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// The number of chunks along each axis, and of vertices in each chunk.
const EDGE: i64 = 10;
const ROWS: usize = 100;

fn group(attributes: &Value) -> String {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}).to_string()
}

/// Declares the number of vertices.
async fn declare(store: &SharedStore, count: Value) {
    let level = json!({"zarr_vectors_level": {"level": 0, "vertex_count": count}});
    put(store, "s/0/zarr.json", group(&level)).await;
}

/// A cloud of 10^5 points in 10^3 chunks, each of edge 10.
async fn cloud() -> SharedStore {
    let store = memory();
    let axes: Vec<Value> = ["x", "y", "z"].map(|name| json!({"name": name, "type": "space"})).to_vec();
    let root = json!({
        "zarr_vectors": {
            "zv_version": "0.9.2", "chunk_shape": [10, 10, 10], "bounds": [[0, 0, 0], [99.9, 99.9, 99.9]],
            "geometry_types": ["point_cloud"],
        },
        "multiscales": [{"axes": axes, "datasets": [{"path": "0"}], "metadata": {"format": "zarr_vectors"}}],
    });
    put(&store, "s/zarr.json", group(&root)).await;
    declare(&store, json!(EDGE.pow(3) as usize * ROWS)).await;
    let mut names = Vec::new();
    let mut seed = 1_u32;
    let mut number = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / (1 << 24) as f32 * 9.9
    };
    for (x, y, z) in (0..EDGE).flat_map(|x| (0..EDGE).flat_map(move |y| (0..EDGE).map(move |z| (x, y, z)))) {
        names.push(format!("{x}.{y}.{z}"));
        let row = |number: &mut dyn FnMut() -> f32| [x, y, z].map(|at| (at * 10) as f32 + number());
        let rows: Vec<u8> = (0..ROWS).flat_map(|_| row(&mut number)).flat_map(f32::to_le_bytes).collect();
        let cell = [&1_u32.to_le_bytes()[..], &(rows.len() as u32).to_le_bytes(), &rows].concat();
        put(&store, &format!("s/0/vertices/c/{x}/{y}/{z}"), cell).await;
    }
    names.sort();
    let vertices = json!({
        "zarr_format": 3, "node_type": "array", "shape": [EDGE, EDGE, EDGE], "data_type": "variable_length_bytes",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": "",
        "codecs": [{"name": "vlen-bytes", "configuration": {}}],
        "attributes": {"nonempty_chunks": names, "dtype": "float32", "encoding": "raw"},
    });
    put(&store, "s/0/vertices/zarr.json", vertices.to_string()).await;
    store
}

#[tokio::test]
async fn only_the_touched_chunks_are_read() {
    let counting = Counting::new(cloud().await);
    let server = Server::of(Arc::clone(&counting) as SharedStore);
    let bbox = "bbox=30,40,0,40,50,100&interval=half-open";
    let found = get_json(&server, &format!("s/vertices?{bbox}")).await;
    assert_eq!((&found["stats"]["chunks"], &found["stats"]["rows"]), (&json!(10), &json!(1000)));
    assert_eq!(counting.ranges().len(), 10, "a read for each touched chunk");
    assert_eq!(counting.bytes(), 10 * (8 + ROWS as u64 * 12));
    // The single HEAD request is for fragments in Zarr v1; the store has none in any version.
    assert_eq!((counting.heads(), counting.lists()), (1, 1), "and one listing, of the levels");
    // Cached values are not read again, and a box that touches nothing reads nothing.
    counting.reset();
    let arrow = ask(&server, &format!("s/vertices?{bbox}&format=arrow")).await;
    assert_eq!((arrow.status, arrow.header("x-zvf-rows")), (StatusCode::OK, "1000"));
    assert_eq!(counting.bytes(), 0);
    get_json(&server, "s/chunks?bbox=0,0,0,100,100,100").await;
    get_json(&server, "s/amplification?dry_run=1").await;
    get_json(&server, "s/vertices?bbox=-9,-9,-9,-1,-1,-1").await;
    assert_eq!(counting.ranges(), [], "metadata answers these");
}

#[tokio::test]
async fn a_long_stream_ends_with_row_counts_as_trailers() {
    let server = Server::of(cloud().await);
    let answer = ask(&server, "s/vertices?format=arrow").await;
    assert_eq!((answer.status, answer.header("x-zvf-chunks")), (StatusCode::OK, "1000"));
    // The response is longer than what is buffered before the head.
    assert_eq!((answer.header("x-zvf-rows"), answer.header("content-length")), ("", ""));
    assert!(answer.header("trailer").contains("X-ZVF-Rows"));
    assert_eq!(&answer.body[answer.body.len() - 8..], [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    assert!(answer.body.len() > 100_000 * (12 + 24 + 4));
}

#[tokio::test]
async fn buffered_responses_have_a_limit() {
    let mut builder = Server::build(zarrd::services::Mount::read_only("m", cloud().await));
    builder.http.max_buffered_response_size = 100_000;
    let server = builder.finish();
    for format in ["json", "bin"] {
        let answer = ask(&server, &format!("s/vertices?format={format}")).await;
        answer.refuses(413, "too_many_rows", format);
        let (estimate, limit) =
            (answer.json()["estimate"].as_u64().unwrap(), answer.json()["limit"].as_u64().unwrap());
        assert!(estimate >= 50_000 && limit < 20_000, "{estimate} {limit}");
        let page = ask(&server, &format!("s/vertices?format={format}&limit=500")).await;
        assert_eq!(page.status, StatusCode::OK, "a page fits");
    }
    assert_eq!(ask(&server, "s/vertices?format=arrow").await.status, StatusCode::OK, "a stream has none");
}

#[tokio::test]
async fn vertices_are_charged_what_they_take_whatever_their_level_declares() {
    // What a response is charged at least.
    const LEAST: u64 = 128 << 10;
    for declared in [json!(0), json!(null), json!(u64::MAX)] {
        let store = cloud().await;
        declare(&store, declared.clone()).await;
        let server = Server::of(store);
        for format in ["json", "bin"] {
            let what = format!("{declared} {format}");
            let (length, charged) = held(&server, &format!("s/vertices?format={format}")).await;
            let beside = charged.checked_sub(length).unwrap();
            assert!(length > 2 << 20 && beside < 1024, "{what}: {length} {charged}");
            let page = held(&server, &format!("s/vertices?format={format}&limit=10")).await;
            assert!(page.0 < LEAST && page.1 == LEAST, "{what}: {page:?}");
        }
        let page = held(&server, "s/vertices?format=arrow&limit=10").await;
        assert!(page.0 < LEAST && page.1 == LEAST, "{declared}: {page:?}");
        let head = server.ask(Method::HEAD, "/v1/vectors/m/s/vertices", &[]).await;
        assert_eq!((head.status, server.in_flight_bytes()), (StatusCode::OK, 0));
    }
}

#[tokio::test]
async fn a_short_page_is_not_refused_for_the_number_of_vertices_of_its_level() {
    for declared in [json!(null), json!(u64::MAX)] {
        let store = cloud().await;
        declare(&store, declared.clone()).await;
        let mut builder = Server::build(zarrd::services::Mount::read_only("m", store));
        (builder.http.inflight_size, builder.http.streamed_response_size) = (16 << 20, 64 << 10);
        builder.http.admission_timeout = Duration::from_millis(1);
        let server = builder.finish();
        // Some of the whole leave no memory for a long one.
        let whole =
            || Request::builder().uri("/v1/vectors/m/s/vertices?format=bin").body(Body::empty()).unwrap();
        let mut unread = Vec::new();
        let refused = loop {
            let answer = server.site().handle(whole(), Peer::LOOPBACK).await;
            if answer.status() != StatusCode::OK {
                break answer.status();
            }
            unread.push(answer);
        };
        assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE, "{declared}: {} are unread", unread.len());
        for format in ["json", "bin", "arrow"] {
            let page = ask(&server, &format!("s/vertices?limit=10&format={format}")).await;
            assert_eq!(page.status, StatusCode::OK, "{declared} {format}");
        }
    }
}
