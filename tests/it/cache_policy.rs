//! Cache policies: the maximum age of a response, and the requests that it saves.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use tempfile::TempDir;
use zarrd::cache::ValueCache;
use zarrd::services::Mount;
use zarrd::store::{CachePolicy, LocalOptions, LocalStore, SharedStore};

use crate::support::counting::Counting;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
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
