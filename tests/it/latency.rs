//! A slow store: the number of requests, their bytes, and how many of them are concurrent.
//!
//! The clock is that of the runtime and stands still while anything runs, so that only waiting is measured.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use tokio::time::Instant;
use zarrd::array::FetchOptions;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::client;
use crate::support::counting::Counting;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::model::{Dim, Model, spell};
use crate::support::process::Running;
use crate::support::s3::{Kind, TestS3};
use crate::support::server::{Answer, Server, erase, put};

/// Store requests of one request in flight at a time.
const CONCURRENCY: usize = 16;
const LATENCY: Duration = Duration::from_millis(20);
const LITTLE: Codec = Codec::Bytes { big: false };
const ALL: Dim = Dim::Slice { start: None, stop: None, step: None };

/// A server that has opened its one array, `a`, and nothing else.
struct Scene {
    server: Server,
    counting: Arc<Counting>,
    store: SharedStore,
    model: Model,
}

/// The cost of a request.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    heads: usize,
    reads: usize,
    bytes: u64,
    /// How often as long as one question takes.
    rounds: u32,
}

impl Scene {
    async fn new(array: &Array) -> Self {
        let store = memory();
        let model = array.store(&store, "a").await;
        let counting = Counting::slow(Arc::clone(&store), LATENCY);
        Self { server: Self::serve(&counting).await, counting, store, model }
    }

    async fn serve(counting: &Arc<Counting>) -> Server {
        Self::serve_with(counting, 0).await
    }

    /// A server that coalesces ranges within this gap.
    async fn serve_with(counting: &Arc<Counting>, coalesce_gap_bytes: u64) -> Server {
        let mut server = Server::build(Mount::read_only("m", Arc::clone(counting) as SharedStore));
        server.fetch.max_coalesce_gap = coalesce_gap_bytes;
        server.fetch.max_concurrency = CONCURRENCY;
        let server = server.finish();
        assert_eq!(server.get("/v1/nodes/m/a").await.status, StatusCode::OK);
        server
    }

    async fn ask(&self, dims: &[Dim], headers: &[(&'static str, &str)]) -> (Answer, Cost) {
        self.counting.reset();
        let start = Instant::now();
        let url = format!("/v1/data/m/a?slice={}", spell(dims));
        let answer = self.server.ask(Method::GET, &url, headers).await;
        // The clock of the runtime counts milliseconds.
        let rounds = start.elapsed().as_micros().div_ceil(LATENCY.as_micros());
        let most = self.counting.max_in_flight();
        assert!(most <= CONCURRENCY, "{most}");
        assert_eq!(self.counting.lists(), 0);
        let took = Cost {
            heads: self.counting.heads(),
            reads: self.counting.ranges().len(),
            bytes: self.counting.bytes(),
            rounds: u32::try_from(rounds).unwrap(),
        };
        (answer, took)
    }

    /// Asks for elements, which must be right.
    async fn read(&self, dims: &[Dim]) -> Cost {
        let (answer, took) = self.ask(dims, &[]).await;
        assert_eq!((answer.status, &*answer.body), (StatusCode::OK, &*self.model.select(dims).elements));
        took
    }
}

/// How many rounds this many store requests take at best.
fn rounds(questions: usize) -> u32 {
    u32::try_from(questions.div_ceil(CONCURRENCY)).unwrap()
}

/// 365 days of 4 × 4 elements, a day a chunk.
fn days() -> Array {
    Array::of(&[365, 4, 4]).chunks(&[1, 4, 4])
}

/// 4 × 4 shards of 4 × 4 × 4 inner chunks of 4 × 8 × 8 elements.
fn volume(at_start: bool) -> Array {
    let shards = Shards { at_start, ..Shards::of(&[4, 8, 8], &[LITTLE]) };
    Array::of(&[16, 128, 128]).chunks(&[16, 32, 32]).codecs([shards.codec()])
}

/// Bytes of the index of such a shard: 64 inner chunks and a checksum.
const INDEX: u64 = 64 * 16 + 4;
/// Bytes of such an inner chunk.
const INNER: u64 = 4 * 8 * 8 * 2;

#[tokio::test(start_paused = true)]
async fn one_pixel_through_365_chunks_is_365_concurrent_reads_and_no_head() {
    let scene = Scene::new(&days()).await;
    let pixel = [ALL, Dim::Index(1), Dim::Index(2)];
    let cold = Cost { heads: 0, reads: 365, bytes: 365 * 32, rounds: rounds(365) };
    assert_eq!(scene.read(&pixel).await, cold);
    let warm = Cost { heads: 365, reads: 0, bytes: 0, rounds: rounds(365) };
    assert_eq!(scene.read(&pixel).await, warm);
}

#[tokio::test(start_paused = true)]
async fn missing_chunks_are_requested_once_each() {
    let scene = Scene::new(&days()).await;
    for day in 0..365 {
        erase(&scene.store, &format!("a/c/{day}/0/0")).await;
    }
    let (answer, took) = scene.ask(&[ALL, Dim::Index(1), Dim::Index(2)], &[]).await;
    assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 365 * 2));
    assert_eq!(took, Cost { heads: 0, reads: 365, bytes: 0, rounds: rounds(365) });
}

#[tokio::test(start_paused = true)]
async fn one_plane_of_a_sharded_volume_reads_an_index_and_a_range_of_each_shard() {
    for at_start in [false, true] {
        let scene = Scene::new(&volume(at_start)).await;
        let plane = [Dim::Index(5), ALL, ALL];
        // The 16 inner chunks of each of the 16 shards are neighbours.
        let cold = Cost { heads: 0, reads: 32, bytes: 16 * (INDEX + 16 * INNER), rounds: rounds(32) };
        assert_eq!(scene.read(&plane).await, cold);
        let warm = Cost { heads: 16, reads: 0, bytes: 0, rounds: 1 };
        assert_eq!(scene.read(&plane).await, warm);
        // Other inner chunks of the same shards: the indexes are cached.
        let other = Cost { heads: 16, reads: 16, bytes: 16 * 16 * INNER, rounds: 2 };
        assert_eq!(scene.read(&[Dim::Index(9), ALL, ALL]).await, other);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plane_across_inner_chunks_reads_only_those() {
    let scene = Scene::new(&volume(false)).await;
    let plane = [ALL, ALL, Dim::Index(5)];
    // In each of 4 shards there are 16 inner chunks, none of them neighbours.
    let cold = Cost { heads: 0, reads: 4 + 64, bytes: 4 * (INDEX + 16 * INNER), rounds: rounds(4 + 64) };
    assert_eq!(scene.read(&plane).await, cold);
}

/// A configuration file's way to the backend: the gap, and that ranges of one shard are fetched concurrently.
#[tokio::test]
async fn ranges_within_the_configured_gap_are_coalesced() {
    let s3 = TestS3::start().await;
    // In reverse, and a byte between each two.
    let shards = Shards { scattered: true, ..Shards::of(&[4], &[LITTLE]) };
    let array = Array::of(&[64]).codecs([shards.codec()]);
    let model = array.store(&s3.store(), "a").await;
    for (gap, reads) in [(0, 16), (1, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("zarrd.toml");
        let endpoint = s3.options().bucket.endpoint.unwrap();
        let text = format!(
            "[fetch]\nmax_coalesce_gap = {gap}\n[cache]\ndecoded_size = 0\nindex_size = 0\n\
             [mounts.m]\nurl = '{}'\n[mounts.m.options]\nendpoint = '{endpoint}'\nallow_http = true\n",
            TestS3::s3_url(),
        );
        std::fs::write(&file, text).unwrap();
        let server = Running::start(&["serve", "--config", file.to_str().unwrap()]);
        let url = format!("http://{}/v1/data/m/a?slice=:", server.address);
        let before = s3.requests(Kind::Get);
        let body = client::get(url).await.unwrap().bytes().await.unwrap();
        assert_eq!(&*body, &*model.select(&[ALL]).elements);
        // The document and the index come first. Requests for documents of v2 may have been sent beside, and that of the
        // check at the start, which asks whether there is a bucket.
        let requests = s3.requests(Kind::Get) - before;
        assert!((2 + reads..=5 + reads).contains(&requests), "{gap}: {requests}");
    }
}

#[tokio::test]
async fn coalescing_reads_little_more_than_needed() {
    // A shard of 8 × 2 × 2 inner chunks of 8 KiB.
    let shards = Shards::of(&[1, 64, 64], &[LITTLE]);
    let array = Array::of(&[8, 128, 128]).codecs([shards.codec()]);
    let mut scene = Scene::new(&array).await;
    let inner = 64 * 64 * 2;
    for (dims, needed) in [
        ([Dim::Index(3), ALL, ALL], 4),
        ([ALL, Dim::Index(7), ALL], 8 * 2),
        ([ALL, ALL, Dim::Index(100)], 8 * 2),
        ([ALL, Dim::Index(100), Dim::Index(10)], 8),
    ] {
        scene.server = Scene::serve_with(&scene.counting, FetchOptions::default().max_coalesce_gap).await;
        let took = scene.read(&dims).await;
        let least = 8 * 2 * 2 * 16 + 4 + needed * inner;
        assert!(took.bytes * 100 <= least * 105, "{took:?}, {least} needed");
    }
}

#[tokio::test(start_paused = true)]
async fn parts_of_shards_are_read_concurrently_at_the_default_gap() {
    // So little that it is decoded on the spot: the runtime's clock runs on while other threads work.
    let shards = Shards::of(&[1, 16, 16], &[LITTLE]);
    let array = Array::of(&[8, 32, 32]).codecs([shards.codec()]);
    let mut scene = Scene::new(&array).await;
    for dims in [
        [Dim::Index(3), ALL, ALL],
        [ALL, Dim::Index(7), ALL],
        [ALL, ALL, Dim::Index(20)],
        [ALL, Dim::Index(20), Dim::Index(10)],
    ] {
        scene.server = Scene::serve_with(&scene.counting, FetchOptions::default().max_coalesce_gap).await;
        let took = scene.read(&dims).await;
        assert!(took.rounds <= rounds(took.reads) + 1, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_may_need_no_element_revalidate_and_read_nothing() {
    let mut scene = Scene::new(&days()).await;
    let pixel = [ALL, Dim::Index(1), Dim::Index(2)];
    let (answer, _) = scene.ask(&pixel, &[]).await;
    // Nothing is cached.
    scene.server = Scene::serve(&scene.counting).await;
    let (unchanged, took) = scene.ask(&pixel, &[("if-none-match", answer.header("etag"))]).await;
    assert_eq!(unchanged.status, StatusCode::NOT_MODIFIED);
    assert_eq!(took, Cost { heads: 365, reads: 0, bytes: 0, rounds: rounds(365) });
}

#[tokio::test(start_paused = true)]
async fn a_slice_out_of_a_million_chunks_costs_as_much_as_out_of_ten() {
    let mut all = Vec::new();
    for length in [10_usize, 1_000_000, 1_000_000_000_000] {
        let few = Array::of(&[10]).chunks(&[1]);
        let store = memory();
        few.store(&store, "a").await;
        let (name, mut document) = few.document();
        document["shape"] = serde_json::json!([length]);
        put(&store, &format!("a/{name}"), document.to_string()).await;
        let counting = Counting::slow(Arc::clone(&store), LATENCY);
        let server = Server::of(Arc::clone(&counting) as SharedStore);
        let start = Instant::now();
        let body = server.elements("m/a", "3:8").await;
        let counts = (counting.documents(), counting.lists(), counting.heads(), counting.ranges());
        all.push((body, counts, start.elapsed()));
    }
    assert_eq!(all[0].1, (1, 0, 0, vec![0..2; 5]));
    assert!(all.iter().all(|took| *took == all[0]), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_after_a_write_never_joins_an_earlier_read() {
    let array = Array::of(&[4]).uniform(1);
    let scene = Scene::new(&array).await;
    let ask = || {
        let server = scene.server.clone();
        tokio::spawn(async move { server.elements("m/a", ":").await })
    };
    let first = ask();
    // Answered already, and on its way.
    while scene.counting.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    let newer = array.uniform(2);
    put(&scene.store, "a/c/0", newer.chunk(&newer.model(), &[0])).await;
    let second = ask();
    assert_eq!(*first.await.unwrap(), [1; 8]);
    assert_eq!(*second.await.unwrap(), [2; 8]);
}
