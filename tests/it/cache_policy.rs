//! Cache policies: the maximum age of a response, and the requests that it saves.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use tempfile::TempDir;
use zarrd::cache::ValueCache;
use zarrd::key::StoreKey;
use zarrd::services::Mount;
use zarrd::store::{CachePolicy, LocalOptions, LocalStore, SharedStore, WriteCondition};

use crate::support::counting::Counting;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::{Server, put};

const LITTLE: Codec = Codec::Bytes { big: false };
const LONG: [CachePolicy; 2] = [CachePolicy::Ttl(Duration::from_hours(1)), CachePolicy::Immutable];
const URL: &str = "/v1/data/m/a?slice=:,3,5";

/// An array in four chunks, or shards of four inner chunks each, all of whose bytes are this one.
fn array(byte: u8, sharded: bool) -> Array {
    let fill = serde_json::json!({ "fill_value": 0 });
    let plain = Array::of(&[4, 8, 8]).chunks(&[1, 8, 8]).members(fill).uniform(byte);
    if sharded { plain.codecs([Shards::of(&[1, 4, 4], &[LITTLE]).codec()]) } else { plain }
}

fn chunk(byte: u8, sharded: bool) -> Vec<u8> {
    let array = array(byte, sharded);
    array.chunk(&array.model(), &[0, 0, 0])
}

/// A server of a directory with such an array, with this cache policy, and its store, which cannot say
/// without waiting and counts its requests.
async fn served(freshness: CachePolicy, sharded: bool) -> (TempDir, Server, Arc<Counting>) {
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let local: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    array(1, sharded).store(&local, "a").await;
    let counting = Counting::new(local);
    let store = ValueCache::new(16 << 20).wrap("m", Arc::clone(&counting) as SharedStore, freshness);
    let mount = Mount { writable: true, ..Mount::read_only("m", store) };
    (directory, Server::build(mount).finish(), counting)
}

/// Writes a chunk as another program would.
fn write(root: &Path, chunk_number: usize, bytes: &[u8]) {
    fs::write(root.join("new"), bytes).unwrap();
    fs::rename(root.join("new"), root.join(format!("a/c/{chunk_number}/0/0"))).unwrap();
}

#[tokio::test]
async fn within_the_ttl_the_store_gets_no_request() {
    for freshness in LONG {
        for sharded in [false, true] {
            let (directory, server, store) = served(freshness, sharded).await;
            let tag = server.get(URL).await.header("etag").to_owned();
            let raw = server.get("/store/m/a/c/2/0/0").await;
            write(directory.path(), 2, &chunk(9, sharded));
            store.reset();
            for _ in 0..3 {
                assert_eq!(server.get(URL).await.body, [1; 8][..], "{freshness}");
                let not_modified = server.ask(Method::GET, URL, &[("if-none-match", &tag)]).await;
                assert_eq!(not_modified.status, StatusCode::NOT_MODIFIED);
                assert_eq!(server.get("/store/m/a/c/2/0/0").await.body, raw.body);
                assert_eq!(
                    server.ask(Method::HEAD, "/store/m/a/c/2/0/0", &[]).await.header("etag"),
                    raw.header("etag")
                );
            }
            assert_eq!((store.heads(), store.ranges().len(), store.documents()), (0, 0, 0), "{freshness}");
        }
    }
}

#[tokio::test]
async fn values_of_a_remote_store_are_cached_up_to_a_mebibyte() {
    let store = memory();
    for (key, length) in [("short", 1 << 20), ("long", (1 << 20) + 1)] {
        put(&store, key, vec![7; length]).await;
    }
    let counting = Counting::remote(store);
    let cached =
        ValueCache::new(16 << 20).wrap("m", Arc::clone(&counting) as SharedStore, CachePolicy::Immutable);
    let server = Server::build(Mount::read_only("m", cached)).finish();
    for (key, requests) in [("short", 1), ("long", 3)] {
        counting.reset();
        for _ in 0..3 {
            assert!(server.get(&format!("/store/m/{key}")).await.body.iter().all(|&byte| byte == 7));
        }
        assert_eq!(counting.ranges().len(), requests, "{key}");
    }
}

#[tokio::test]
async fn by_default_no_response_is_older_than_its_request() {
    for sharded in [false, true] {
        let (directory, server, _) = served(CachePolicy::default(), sharded).await;
        for byte in 2..20 {
            write(directory.path(), 2, &chunk(byte, sharded));
            assert_eq!(server.get(URL).await.body[4], byte);
            assert_eq!(server.get("/store/m/a/c/2/0/0").await.body, chunk(byte, sharded));
        }
    }
}

#[tokio::test]
async fn writes_through_the_server_are_visible_at_once() {
    for freshness in LONG {
        let (_directory, server, _) = served(freshness, false).await;
        for byte in 2..9 {
            let key = "/store/m/a/c/2/0/0";
            assert_eq!(
                server.request("PUT", key, &[], chunk(byte, false)).await.status,
                StatusCode::NO_CONTENT
            );
            for _ in 0..2 {
                assert_eq!(server.get(URL).await.body[4], byte, "{freshness}");
                assert_eq!(server.get(key).await.body, chunk(byte, false));
            }
        }
        assert_eq!(
            server.ask(Method::DELETE, "/store/m/a/c/2/0/0", &[]).await.status,
            StatusCode::NO_CONTENT
        );
        assert_eq!(server.get(URL).await.body[4], 0);
        assert_eq!(server.get("/store/m/a/c/2/0/0").await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn after_the_ttl_writes_of_others_are_visible() {
    let age = Duration::from_millis(150);
    let (directory, server, _) = served(CachePolicy::Ttl(age), false).await;
    let old_ones = (1..8).map(|byte| {
        write(directory.path(), 2, &chunk(byte, false));
        (byte, Instant::now())
    });
    for (byte, written) in old_ones {
        loop {
            let asked = Instant::now();
            let slice = server.get(URL).await.body[4];
            let raw = server.get("/store/m/a/c/2/0/0").await.body[0];
            if (slice, raw) == (byte, byte) {
                break;
            }
            assert!(asked < written + age, "an answer is {:?} old", asked - written);
        }
    }
}

#[tokio::test]
async fn a_value_found_to_have_changed_is_revalidated() {
    for freshness in LONG {
        let (directory, server, _) = served(freshness, true).await;
        assert_eq!(server.get("/v1/data/m/a?slice=2,0,0").await.body, [1, 1][..]);
        write(directory.path(), 2, &chunk(7, true));
        // Another inner chunk of the same shard, which no check has found to have changed.
        for _ in 0..2 {
            assert_eq!(server.get("/v1/data/m/a?slice=2,7,7").await.body, [7, 7][..], "{freshness}");
            assert_eq!(server.get("/v1/data/m/a?slice=2,0,0").await.body, [7, 7][..], "{freshness}");
        }
    }
}

/// A server of a bucket with a value `g/k` that it has cached, and of which it has a copy at `g/other`.
async fn served_from_bucket(policy: CachePolicy) -> (TestS3, SharedStore, Server) {
    let bucket = TestS3::start().await;
    bucket.insert("g/k", "old");
    bucket.insert("g/other", "new");
    let store = ValueCache::new(16 << 20).wrap("m", bucket.store(), policy);
    let mount =
        Mount { writable: true, allow_prefix_delete: true, ..Mount::read_only("m", Arc::clone(&store)) };
    let server = Server::build(mount).finish();
    assert_eq!(server.get("/store/m/g/k").await.body, "old");
    (bucket, store, server)
}

/// Lets the next request of a kind for `g/k` wait.
fn hold(bucket: &TestS3, kind: Kind) {
    bucket.inject(vec![Rule { kinds: vec![kind], key: "g/k", when: When::Nth(0), fault: Fault::Wait }], 1);
}

/// Reads `g/k` until the response has this status and body, at most ten seconds.
async fn until_read(server: &Server, status: u16, body: &str, what: &str) {
    let wait = async {
        loop {
            let answer = server.get("/store/m/g/k").await;
            if answer.status == status && (status != 200 || answer.body == body) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), wait).await.is_ok(), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_whose_client_leaves_is_visible_once_it_is_done() {
    for policy in LONG {
        for url in ["/store/m/g/k", "/store/m/g/"] {
            let (bucket, _store, server) = served_from_bucket(policy).await;
            hold(&bucket, Kind::Delete);
            let client = server.clone();
            let erasing = tokio::spawn(async move { client.ask(Method::DELETE, url, &[]).await });
            bucket.until_one_waits().await;
            erasing.abort();
            assert!(erasing.await.is_err());
            // It is read, and cached, while the backend has it.
            assert_eq!(server.get("/store/m/g/k").await.body, "old");
            bucket.go_on();
            until_read(&server, 404, "", &format!("{policy} {url}")).await;
            assert_eq!(bucket.value("g/k"), None);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_whose_client_leaves_is_visible_once_it_is_done() {
    for policy in LONG {
        let (bucket, store, server) = served_from_bucket(policy).await;
        hold(&bucket, Kind::Put);
        let [from, to] = ["g/other", "g/k"].map(|key| StoreKey::parse(key).unwrap());
        let copying = tokio::spawn(async move { store.copy(&from, None, &to, WriteCondition::Always).await });
        bucket.until_one_waits().await;
        copying.abort();
        assert!(copying.await.is_err());
        assert_eq!(server.get("/store/m/g/k").await.body, "old");
        bucket.go_on();
        until_read(&server, 200, "new", &policy.to_string()).await;
    }
}
