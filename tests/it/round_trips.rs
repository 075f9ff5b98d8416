//! A store that is far away: which requests a read of elements takes, and how many of them one after the other.
//!
//! The clock is that of the runtime and stands still while anything runs, so that only waiting is measured.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::json;
use tokio::time::Instant;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, Format, memory};
use crate::support::model::{Dim, Model, spell};
use crate::support::remote::{LATENCY, Remote};
use crate::support::server::{Server, put};

const LITTLE: Codec = Codec::Bytes { big: false };
const ALL: Dim = Dim::Slice { start: None, stop: None, step: None };

const V2: Format = Format::V2 { compressor: None, fortran: false, big: false, separator: '.' };

/// A server in front of a store that is far away, with the arrays `a` and `b`.
struct Scene {
    server: Server,
    remote: Arc<Remote>,
    store: SharedStore,
    model: Model,
}

/// What a request cost: the requests to the store, sorted, and the rounds they took.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    requests: Vec<String>,
    rounds: u128,
}

impl Scene {
    async fn new(array: &Array) -> Self {
        let store = memory();
        let model = array.store(&store, "a").await;
        array.store(&store, "b").await;
        let remote = Remote::new(Arc::clone(&store));
        let server = Server::build(Mount::read_only("m", Arc::clone(&remote) as SharedStore)).finish();
        Self { server, remote, store, model }
    }

    /// Asks for elements of an array, which must be right.
    async fn read(&self, array: &str, dims: &[Dim]) -> Cost {
        self.remote.take_requests();
        let start = Instant::now();
        let answer = self.server.get(&format!("/v1/data/m/{array}?slice={}", spell(dims))).await;
        let rounds = start.elapsed().as_micros().div_ceil(LATENCY.as_micros());
        assert_eq!((answer.status, &*answer.body), (StatusCode::OK, &*self.model.select(dims).elements));
        let mut requests = self.remote.take_requests();
        requests.sort();
        Cost { requests, rounds }
    }
}

fn cost(rounds: u128, requests: &[&str]) -> Cost {
    let mut requests: Vec<String> = requests.iter().map(|&request| request.to_owned()).collect();
    requests.sort();
    Cost { requests, rounds }
}

#[tokio::test(start_paused = true)]
async fn a_cold_chunk_of_v3_takes_its_document_and_then_itself() {
    let scene = Scene::new(&Array::of(&[4, 4]).chunks(&[2, 2]).codecs([LITTLE])).await;
    let one = [Dim::Index(1), Dim::Index(1)];
    // Of the first node of a mount, the format is not known.
    let of_any_format = ["GET a/zarr.json", "GET a/.zarray", "GET a/.zattrs", "GET a/c/0/0"];
    assert_eq!(scene.read("a", &one).await, cost(2, &of_any_format));
    assert_eq!(scene.read("b", &one).await, cost(2, &["GET b/zarr.json", "GET b/c/0/0"]));
}

#[tokio::test(start_paused = true)]
async fn a_cold_chunk_of_v2_takes_its_documents_at_once_and_then_itself() {
    let scene = Scene::new(&Array::of(&[4, 4]).chunks(&[2, 2]).format(V2)).await;
    let documents = ["GET a/zarr.json", "GET a/.zarray", "GET a/.zattrs", "GET a/0.0"];
    assert_eq!(scene.read("a", &[Dim::Index(1), Dim::Index(1)]).await, cost(2, &documents));
}

#[tokio::test(start_paused = true)]
async fn all_chunks_of_a_cold_slice_are_read_at_once() {
    let scene = Scene::new(&Array::of(&[32]).chunks(&[1]).codecs([LITTLE])).await;
    let Cost { requests, rounds } = scene.read("a", &[ALL]).await;
    assert_eq!((requests.len(), rounds), (3 + 32, 2));
}

#[tokio::test(start_paused = true)]
async fn a_cold_inner_chunk_takes_the_document_the_index_and_itself() {
    let shards = Shards::of(&[8, 8], &[LITTLE]);
    let scene = Scene::new(&Array::of(&[64, 64]).codecs([shards.codec()])).await;
    let Cost { requests, rounds } = scene.read("a", &[Dim::Index(1), Dim::Index(1)]).await;
    assert_eq!((requests.len(), rounds), (3 + 2, 3), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cold_plane_through_shards_takes_the_document_then_the_indexes_then_all_ranges() {
    // So small that they are decoded at once: the clock of the runtime runs on while other threads work.
    let shards = Shards::of(&[1, 1, 2], &[LITTLE]);
    let scene = Scene::new(&Array::of(&[8, 8, 4]).chunks(&[4, 4, 4]).codecs([shards.codec()])).await;
    let Cost { requests, rounds } = scene.read("a", &[ALL, ALL, Dim::Index(1)]).await;
    // The inner chunks of a shard are so near to each other that they are one range.
    assert_eq!((requests.len(), rounds), (3 + 4 + 4, 3), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cached_slice_is_revalidated_in_one_round() {
    let scene = Scene::new(&Array::of(&[32]).chunks(&[8]).codecs([LITTLE])).await;
    scene.read("a", &[ALL]).await;
    let chunks = ["HEAD a/c/0", "HEAD a/c/1", "HEAD a/c/2", "HEAD a/c/3", "HEAD a/zarr.json"];
    assert_eq!(scene.read("a", &[ALL]).await, cost(1, &chunks));
}

#[tokio::test(start_paused = true)]
async fn another_chunk_of_a_cached_array_is_read_while_the_document_is_revalidated() {
    let scene = Scene::new(&Array::of(&[32]).chunks(&[8]).codecs([LITTLE])).await;
    scene.read("a", &[Dim::Index(1)]).await;
    assert_eq!(scene.read("a", &[Dim::Index(9)]).await, cost(1, &["GET a/c/1", "HEAD a/zarr.json"]));
}

#[tokio::test(start_paused = true)]
async fn a_document_that_changed_counts_although_elements_were_read_by_the_old_one() {
    let array = Array::of(&[4]).codecs([LITTLE]).uniform(7);
    let scene = Scene::new(&array).await;
    scene.read("a", &[ALL]).await;

    let (name, mut document) = array.document();
    document["shape"] = json!([3]);
    put(&scene.store, &format!("a/{name}"), document.to_string()).await;
    let shorter = scene.server.get("/v1/data/m/a").await;
    assert_eq!((shorter.status, &*shorter.body), (StatusCode::OK, &scene.model.elements[..6]));

    document["data_type"] = json!("no such type");
    put(&scene.store, &format!("a/{name}"), document.to_string()).await;
    let refused = scene.server.get("/v1/data/m/a").await;
    assert!(refused.status != StatusCode::OK, "{refused:?}");
}
