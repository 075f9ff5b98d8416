//! The reads of a query: the touched chunks and nothing else.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::store::SharedStore;

use super::{ask, get_json};
use crate::support::counting::Counting;
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};

/// The number of chunks along each axis, and of vertices in each chunk.
const EDGE: i64 = 10;
const ROWS: usize = 100;

fn group(attributes: &Value) -> String {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes}).to_string()
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
    let count = EDGE.pow(3) as usize * ROWS;
    put(&store, "s/0/zarr.json", group(&json!({"zarr_vectors_level": {"level": 0, "vertex_count": count}})))
        .await;
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
