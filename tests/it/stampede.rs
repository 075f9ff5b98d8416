//! Single flight: one load for all waiters, owned by none of them, and never a stale or mixed response.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use futures::future::join_all;
use tokio::task::JoinHandle;
use zarrd::cache::CacheOptions;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::counting::{Counting, Decodes, until};
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::model::{Dim, Model};
use crate::support::server::{Answer, Server, no_caches, put};

const LITTLE: Codec = Codec::Bytes { big: false };
/// Bytes of the index of the shard below: 16 inner chunks and a checksum.
const INDEX: u64 = 16 * 16 + 4;
/// Bytes of one of its inner chunks: 64 elements of two bytes.
const INNER: u64 = 128;

/// One shard of 32 × 32 elements in 4 × 4 inner chunks, uncompressed, so that byte ranges are known.
fn shard() -> Array {
    Array::of(&[32, 32]).codecs([Shards::of(&[8, 8], &[LITTLE]).codec()])
}

/// A shard, its server, and the server's reads.
struct Scene {
    server: Server,
    counting: Arc<Counting>,
    store: SharedStore,
    model: Model,
    decodes: Decodes,
}

impl Scene {
    async fn new(counting: impl Fn(SharedStore) -> Arc<Counting>) -> Self {
        Self::with(counting, 0, CacheOptions::default()).await
    }

    async fn with(
        counting: impl Fn(SharedStore) -> Arc<Counting>,
        gap_bytes: u64,
        cache: CacheOptions,
    ) -> Self {
        let store = memory();
        let model = shard().store(&store, "a").await;
        let counting = counting(Arc::clone(&store));
        let mut server = Server::build(Mount::read_only("m", Arc::clone(&counting) as SharedStore));
        let decodes = Decodes::default();
        server.fetch.max_coalesce_gap = gap_bytes;
        server.cache = cache;
        server.decodes = Some(Arc::clone(&decodes));
        Self { server: server.finish(), counting, store, model, decodes }
    }

    fn ask(&self, slice: &str) -> JoinHandle<Answer> {
        let (server, url) = (self.server.clone(), format!("/v1/data/m/a?slice={slice}"));
        tokio::spawn(async move { server.get(&url).await })
    }

    /// How often each inner chunk that was decoded at all was.
    fn decodes(&self) -> Vec<usize> {
        self.decodes.lock().unwrap().values().copied().collect()
    }

    fn assert_no_range_was_read_twice(&self) {
        let ranges = self.counting.ranges();
        let distinct: HashSet<_> = ranges.iter().collect();
        assert_eq!(distinct.len(), ranges.len(), "{ranges:?}");
    }

    fn assert_one_index_read(&self) {
        let end = 16 * INNER + INDEX;
        let index = self.counting.ranges().into_iter().filter(|range| range.end == end).count();
        assert_eq!(index, 1, "{:?}", self.counting.ranges());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_requests_for_one_slice_read_and_decode_it_once() {
    let scene = Scene::new(Counting::new).await;
    let answers = join_all((0..1000).map(|_| scene.ask("4:12,4:12"))).await;
    let slice = |start, stop| Dim::Slice { start: Some(start), stop: Some(stop), step: None };
    let expected = scene.model.select(&[slice(4, 12), slice(4, 12)]).elements;
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!((answer.status, &*answer.body), (StatusCode::OK, &*expected));
    }
    scene.assert_one_index_read();
    // Inner chunks (0,0), (0,1) and (1,0), (1,1) are two pairs of neighbours.
    assert_eq!(scene.counting.ranges().len(), 3, "{:?}", scene.counting.ranges());
    assert_eq!(scene.counting.bytes(), INDEX + 4 * INNER);
    assert_eq!(scene.decodes(), [1; 4]);
    assert_eq!(scene.counting.documents(), 1, "the metadata is read once, too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_overlapping_requests_read_every_byte_once_and_decode_every_inner_chunk_once() {
    let scene = Scene::new(Counting::new).await;
    let answers = join_all((0..1000_i64).map(|number| {
        let (row, column) = (number * 7 % 29, number * 11 % 25);
        let slice = |start, length| Dim::Slice { start: Some(start), stop: Some(start + length), step: None };
        let dims = [slice(row, 4), slice(column, 9)];
        let expected = scene.model.select(&dims).elements;
        let asked = scene.ask(&crate::support::model::spell(&dims));
        async move { (asked.await.unwrap(), expected) }
    }))
    .await;
    for (answer, expected) in answers {
        assert_eq!((answer.status, &*answer.body), (StatusCode::OK, &*expected));
    }
    scene.assert_one_index_read();
    scene.assert_no_range_was_read_twice();
    assert_eq!(scene.counting.bytes(), INDEX + 16 * INNER, "{:?}", scene.counting.ranges());
    assert_eq!(scene.decodes(), [1; 16]);
}

#[tokio::test]
async fn a_disconnected_client_neither_restarts_nor_fails_a_shared_load() {
    let scene = Scene::new(Counting::gated).await;
    let first = scene.ask("0:8,0:8");
    scene.counting.waiting(1).await;
    let others = [scene.ask("0:8,0:8"), scene.ask("0:8,0:8")];
    scene.counting.waiting(3).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    scene.counting.open();
    for other in others {
        assert_eq!(other.await.unwrap().status, StatusCode::OK);
    }
    assert_eq!(
        scene.counting.ranges().len(),
        2,
        "the index and the inner chunk: {:?}",
        scene.counting.ranges()
    );
    assert_eq!(scene.counting.given_up(), 0);
}

#[tokio::test]
async fn a_load_is_cancelled_when_its_last_waiter_leaves() {
    let scene = Scene::new(Counting::gated).await;
    let clients = [scene.ask("0:8,0:8"), scene.ask("0:8,0:8")];
    scene.counting.waiting(2).await;
    clients.iter().for_each(JoinHandle::abort);
    until(|| scene.counting.given_up() == 1).await;
    scene.counting.open();
    assert_eq!(scene.ask("0:8,0:8").await.unwrap().status, StatusCode::OK, "the next one starts afresh");
    assert_eq!(scene.counting.ranges().len(), 3);
}

#[tokio::test]
async fn a_failed_load_fails_all_waiters_and_is_not_cached() {
    let scene = Scene::new(Counting::gated).await;
    let clients: Vec<_> = (0..10).map(|_| scene.ask("0:8,0:8")).collect();
    scene.counting.waiting(10).await;
    scene.counting.fail(true);
    scene.counting.open();
    for client in clients {
        let answer = client.await.unwrap();
        assert_eq!((answer.status, answer.code()), (StatusCode::BAD_GATEWAY, "backend-failed".to_owned()));
    }
    assert_eq!(scene.counting.ranges().len(), 1, "{:?}", scene.counting.ranges());
    scene.counting.fail(false);
    assert_eq!(scene.ask("0:8,0:8").await.unwrap().status, StatusCode::OK);
}

#[tokio::test]
async fn a_value_rewritten_between_requests_is_never_served_from_a_cache() {
    let scene = Scene::new(Counting::new).await;
    for byte in 1..=20 {
        let array = shard().uniform(byte);
        put(&scene.store, "a/c/0/0", array.chunk(&array.model(), &[0, 0])).await;
        let answer = scene.ask("::3,::5").await.unwrap();
        assert!(answer.body.iter().all(|&found| found == byte), "{byte}: {:?}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_shard_rewritten_during_a_read_never_gives_a_mixed_response() {
    for cache in [CacheOptions::default(), no_caches()] {
        let scene = Scene::with(Counting::new, 0, cache).await;
        // Encoded to different lengths: an old index on a new shard would point astray.
        let shards: Vec<Vec<u8>> = (1..=4)
            .map(|byte| {
                let codecs = Shards { scattered: byte % 2 == 0, ..Shards::of(&[8, 8], &[LITTLE]) }.codec();
                let array = shard().codecs([codecs]).uniform(byte);
                array.chunk(&array.model(), &[0, 0])
            })
            .collect();
        put(&scene.store, "a/c/0/0", shards[0].clone()).await;
        let store = Arc::clone(&scene.store);
        let writer = tokio::spawn(async move {
            for shard in shards.iter().cycle() {
                put(&store, "a/c/0/0", shard.clone()).await;
                tokio::task::yield_now().await;
            }
        });
        let mut answered = 0;
        for _ in 0..20 {
            for answer in join_all((0..10).map(|_| scene.ask("::3,::5"))).await {
                let answer = answer.unwrap();
                if answer.status == StatusCode::OK {
                    answered += 1;
                    let first = answer.body[0];
                    assert!(answer.body.iter().all(|&byte| byte == first), "mixed: {:?}", answer.body);
                } else {
                    // Changed at every try: to be asked again.
                    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{:?}", answer.body);
                    assert!(!answer.header("retry-after").is_empty());
                }
            }
        }
        writer.abort();
        assert!(answered > 0, "at least one client is answered");
    }
}

#[tokio::test]
async fn a_slice_of_a_shard_reads_the_index_and_the_inner_chunks_it_needs() {
    for (slice, ranges, inner_chunks) in [
        ("0,0", 1, 1),
        ("0:8,8:16", 1, 1),
        ("0,:", 1, 4),
        (":,0", 4, 4),
        (":16,:", 1, 8),
        ("::31,::31", 4, 4),
        ("7:9,7:9", 2, 4),
    ] {
        let scene = Scene::new(Counting::new).await;
        assert_eq!(scene.ask(slice).await.unwrap().status, StatusCode::OK);
        scene.assert_one_index_read();
        let read = scene.counting.ranges();
        assert_eq!(read.len(), 1 + ranges, "{slice}: {read:?}");
        assert_eq!(scene.counting.bytes(), INDEX + inner_chunks * INNER, "{slice}: {read:?}");
        scene.counting.reset();
        assert_eq!(scene.ask(slice).await.unwrap().status, StatusCode::OK);
        assert_eq!(scene.counting.ranges(), [], "{slice}: what was read is cached");
    }
}

#[tokio::test]
async fn inner_chunks_within_the_gap_are_one_read() {
    let scene = Scene::with(Counting::new, 3 * INNER, CacheOptions::default()).await;
    assert_eq!(scene.ask(":,0").await.unwrap().status, StatusCode::OK);
    let mut lengths: Vec<u64> = scene.counting.ranges().iter().map(|range| range.end - range.start).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [INDEX, 13 * INNER]);
    assert_eq!(scene.decodes(), [1; 4], "what lies between is not decoded");
}

#[tokio::test]
async fn responses_without_elements_read_none() {
    let scene = Scene::new(Counting::new).await;
    let url = "/v1/data/m/a?slice=0,0";
    let head = scene.server.ask(Method::HEAD, url, &[]).await;
    assert_eq!(head.status, StatusCode::OK);
    let unchanged = scene.server.ask(Method::GET, url, &[("if-none-match", head.header("etag"))]).await;
    assert_eq!(unchanged.status, StatusCode::NOT_MODIFIED);
    let changed = scene.server.ask(Method::GET, url, &[("if-match", "\"other\"")]).await;
    assert_eq!(changed.status, StatusCode::PRECONDITION_FAILED);
    let outside = scene.server.ask(Method::GET, url, &[("range", "bytes=2-")]).await;
    assert_eq!(outside.status, StatusCode::RANGE_NOT_SATISFIABLE);
    let empty = scene.server.get("/v1/data/m/a?slice=5:5").await;
    assert_eq!((empty.status, empty.body.len()), (StatusCode::OK, 0));

    let mut small = Server::build(Mount::read_only("m", Arc::clone(&scene.counting) as SharedStore));
    small.read.max_response_size = 100;
    let refused = small.finish().get("/v1/data/m/a").await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(scene.counting.ranges(), []);
    assert!(scene.decodes().is_empty());
}
