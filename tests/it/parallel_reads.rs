//! Which threads read chunks, and inner chunks of shards: those that decode them, where the store reads without blocking and the
//! chunks are long.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};
use zarrd::array::FetchOptions;
use zarrd::cpu::{ComputePool, ComputePoolOptions};
use zarrd::key::StoreKey;
use zarrd::services::Mount;
use zarrd::store::{ByteRange, LocalOptions, LocalStore, SharedStore};

use crate::support::counting::{Counting, until};
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, no_caches, put};

const URL: &str = "/v1/data/m/a";
/// The elements of a long chunk.
const LONG: usize = 128 << 10;

/// A server of a store with one shard, of four inner chunks with `chunk` times `uint16`, the second of which is missing.
struct Scene {
    server: Server,
    elements: Vec<u8>,
    counting: Arc<Counting>,
}

impl Scene {
    async fn new(store: SharedStore, chunk: usize, open: fn(SharedStore) -> Arc<Counting>) -> Self {
        Self::with(store, chunk, open, FetchOptions::default()).await
    }

    async fn with(
        store: SharedStore,
        chunk: usize,
        open: fn(SharedStore) -> Arc<Counting>,
        fetch: FetchOptions,
    ) -> Self {
        let shards = Shards::of(&[chunk], &[Codec::Bytes { big: false }, Codec::Zstd]).codec();
        let array = Array::of(&[4 * chunk]).codecs([shards]).random(1, &[vec![(chunk, chunk)]]);
        let model = array.store(&store, "a").await;
        let counting = open(store);
        let mut server = Server::build(Mount::read_only("m", counting.clone()));
        server.cache = no_caches();
        // No fetch has two chunks.
        server.fetch = FetchOptions { max_coalesce_size: 1, ..fetch };
        Self { server: server.finish(), elements: model.elements, counting }
    }

    async fn check(&self) {
        let answer = self.server.get(URL).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.body == self.elements, "the elements are those of the model");
    }

    /// Of the inner chunks that were read, how many were read by threads of the pool, and how many by others.
    fn read_by(&self) -> (usize, usize) {
        // The first read is that of the index.
        let reads = self.counting.reads().split_off(1);
        let on_pool = reads.iter().filter(|read| read.is_on_pool()).count();
        (on_pool, reads.len() - on_pool)
    }
}

#[tokio::test]
async fn threads_that_decode_read_long_chunks_of_a_store_in_memory_and_no_other_chunks() {
    for (chunk, open, expected) in [
        (LONG, Counting::new as fn(_) -> _, (3, 0)),
        (LONG, Counting::remote, (0, 3)),
        (1 << 10, Counting::new, (0, 3)),
    ] {
        let scene = Scene::new(memory(), chunk, open).await;
        scene.check().await;
        assert_eq!(scene.read_by(), expected, "{chunk} elements");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn threads_that_decode_read_long_chunks_of_files_that_are_read_without_blocking() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let store = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    let scene = Scene::new(store, LONG, Counting::new).await;
    scene.check().await;
    assert_eq!(scene.read_by(), (3, 0));
}

/// A local store with an array of two chunks with `chunk` random `uint16` each, without compression, and of a third that is missing.
async fn whole_chunks(chunk: usize) -> (tempfile::TempDir, SharedStore, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let files: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    let array = Array::of(&[3 * chunk]).chunks(&[chunk]).codecs([Codec::Bytes { big: false }]);
    let model = array.random(1, &[vec![(chunk, chunk)]]).store(&files, "a").await;
    (directory, files, model.elements)
}

/// The keys of chunks that a request for all elements reads, which of them a thread of the pool reads, or tries to, and how often.
async fn read_whole_chunks(
    url: &str,
    counting: Arc<Counting>,
    fetch: FetchOptions,
    elements: &[u8],
) -> Vec<(String, bool, usize)> {
    let mut server = Server::build(Mount::read_only("m", counting.clone()));
    (server.cache, server.fetch) = (no_caches(), fetch);
    let answer = server.finish().get(url).await;
    assert!(answer.status == StatusCode::OK && answer.body == elements, "{url}: {}", answer.status);
    let mut keys: BTreeMap<String, (bool, usize)> = BTreeMap::new();
    for read in counting.reads() {
        let (on_pool, tries) = keys.entry(read.key.clone()).or_default();
        *on_pool |= read.is_on_pool();
        *tries += read.tries;
    }
    keys.into_iter().map(|(key, (on_pool, tries))| (key, on_pool, tries)).collect()
}

#[tokio::test]
async fn threads_that_decode_read_long_whole_chunks_that_are_in_memory_and_no_others() {
    let one_at_a_time = FetchOptions { max_concurrency: 1, inflight_size: 1, ..FetchOptions::default() };
    for (chunk, open, on_pool) in [
        (1 << 20, Counting::new as fn(_) -> _, true),
        (1 << 20, Counting::not_in_memory, false),
        (1 << 20, Counting::partly_in_memory, true),
        (LONG, Counting::new, false),
    ] {
        for fetch in [FetchOptions::default(), one_at_a_time] {
            let (_directory, files, elements) = whole_chunks(chunk).await;
            let on_pool = on_pool && files.capabilities().nonblocking;
            let expected = [("a/c/0", on_pool), ("a/c/1", false), ("a/c/2", on_pool)];
            let expected = expected.map(|(key, on_pool)| (key.to_owned(), on_pool, usize::from(on_pool)));
            assert_eq!(
                read_whole_chunks(URL, open(files), fetch, &elements).await,
                expected,
                "{chunk} elements"
            );
        }
    }
}

#[tokio::test]
async fn a_derived_chunk_tries_once_to_read_each_chunk_that_it_is_made_of() {
    for open in [Counting::new as fn(_) -> _, Counting::partly_in_memory] {
        let (_directory, files, elements) = whole_chunks(1 << 20).await;
        let tries = usize::from(files.capabilities().nonblocking);
        let url = format!("/rechunk/m/{}/raw/a/c/0", 3 << 20);
        let reads = read_whole_chunks(&url, open(files), FetchOptions::default(), &elements).await;
        let tried: Vec<_> = reads.iter().map(|(key, _, tries)| (key.as_str(), *tries)).collect();
        assert_eq!(tried, [("a/c/0", tries), ("a/c/1", 0), ("a/c/2", tries)]);
    }
}

#[tokio::test]
async fn few_files_are_open_while_their_chunks_wait_for_a_thread() {
    // Three requests with as many chunks as one fetches at a time.
    const CHUNKS: usize = 3 * 32;
    let (directory, files, _elements) = whole_chunks(1 << 20).await;
    let document = files.get(&StoreKey::parse("a/zarr.json").unwrap(), ByteRange::Whole, None).await.unwrap();
    let mut document: Value =
        serde_json::from_slice(&document.unwrap().bytes(1 << 20).await.unwrap()).unwrap();
    document["shape"] = json!([CHUNKS << 20]);
    put(&files, "a/zarr.json", document.to_string()).await;
    let chunk = |number: usize| directory.path().join(format!("a/c/{number}"));
    for number in (1..CHUNKS).filter(|&number| number != 2) {
        std::fs::hard_link(chunk(0), chunk(number)).unwrap();
    }
    let nonblocking = files.capabilities().nonblocking;
    let (counting, cpu) =
        (Counting::new(files), ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap());
    let mut server = Server::build(Mount::read_only("m", counting.clone()));
    server.cache = no_caches();
    server.fetch = FetchOptions { inflight_size: 4 << 30, ..FetchOptions::default() };
    server.cpu = Some(cpu.clone());
    let server = server.finish();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let busy = tokio::spawn(async move { cpu.spawn_background(move || wait.recv()).await });
    let answers = [0, 32, 64].map(|first: usize| {
        let (server, slice) = (server.clone(), format!("{}:{}:{}", first << 20, (first + 32) << 20, 1 << 20));
        tokio::spawn(async move { server.get(&format!("{URL}?slice={slice}")).await })
    });
    until(|| counting.reads().len() == CHUNKS && counting.unread_files() <= 64).await;
    assert_eq!(counting.unread_files(), if nonblocking { 64 } else { 0 });
    go.send(()).unwrap();
    busy.await.unwrap().unwrap().unwrap();
    for answer in answers {
        let answer = answer.await.unwrap();
        assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, 2 * 32));
    }
}

#[tokio::test]
async fn one_fetch_at_a_time_and_less_memory_than_a_chunk_are_enough() {
    let fetch = FetchOptions { max_concurrency: 1, inflight_size: 1, ..FetchOptions::default() };
    let scene = Scene::with(memory(), LONG, Counting::new, fetch).await;
    scene.check().await;
    assert_eq!((scene.read_by(), scene.counting.max_in_flight()), ((3, 0), 1));
}

#[tokio::test]
async fn a_read_that_fails_on_the_pool_is_a_problem_and_the_next_one_succeeds() {
    let scene = Scene::new(memory(), LONG, Counting::new).await;
    scene.counting.fail(true);
    let answer = scene.server.get(URL).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    scene.counting.fail(false);
    scene.check().await;
}

#[tokio::test]
async fn reads_on_the_pool_are_given_up_when_the_client_has_gone() {
    let scene = Scene::new(memory(), LONG, Counting::gated).await;
    let request = tokio::spawn({
        let site = scene.server.clone();
        async move { site.get(URL).await }
    });
    until(|| scene.counting.in_flight() > 0).await;
    // The index is read; the chunks wait.
    scene.counting.pass(1);
    until(|| scene.counting.in_flight() == 3).await;
    request.abort();
    until(|| scene.counting.given_up() == 3).await;
    scene.counting.open();
    scene.check().await;
}
