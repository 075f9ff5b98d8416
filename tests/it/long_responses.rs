//! Responses of more than 128 KiB: they are cached when they are requested again, and match what is stored.

use std::fs;
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use serde_json::Value;
use zarrd::services::Mount;
use zarrd::store::{LocalOptions, LocalStore, SharedStore};

use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, no_caches};

/// A plane of 512 KiB in 8 chunks.
const PLANE: &str = "/v1/data/m/a?slice=1";

fn planes() -> Array {
    Array::of(&[3, 512, 512]).chunks(&[1, 64, 512]).random(7, &[])
}

/// Purges all caches, and returns how many responses they had.
async fn purged(admin: &Server) -> u64 {
    let answer = admin.ask(Method::DELETE, "/v1/cache/m", &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
    serde_json::from_slice::<Value>(&answer.body).unwrap()["answers"].as_u64().unwrap()
}

#[tokio::test]
async fn a_long_response_is_cached_when_it_is_requested_again_from_cached_chunks() {
    let store = memory();
    planes().store(&store, "a").await;
    let (server, admin) = Server::build(Mount::read_only("m", store)).finish_with_admin();
    for plane in 0..3 {
        for _ in 0..2 {
            server.get(&format!("/v1/data/m/a?slice={plane},:128")).await;
        }
    }
    assert_eq!(purged(&admin).await, 3, "of 128 KiB each: they are cached once their chunks are");
    for plane in 0..3 {
        server.get(&format!("/v1/data/m/a?slice={plane}")).await;
    }
    assert_eq!(purged(&admin).await, 0, "requested once each");
    server.get(PLANE).await;
    assert_eq!(purged(&admin).await, 0, "its chunks had to be read");
    let first = server.get(PLANE).await;
    let second = server.get(PLANE).await;
    let third = server.get(PLANE).await;
    assert_eq!((&first.body, &second.body), (&second.body, &third.body));
    assert_eq!(third.header("cache-status"), "zarrd; hit");
    assert_eq!(third.header("content-length"), (512 << 10).to_string());
    assert_eq!(purged(&admin).await, 1);
}

#[tokio::test]
async fn a_part_of_a_long_response_and_a_conditional_one_are_not_cached() {
    let store = memory();
    planes().store(&store, "a").await;
    let (server, admin) = Server::build(Mount::read_only("m", store)).finish_with_admin();
    for _ in 0..4 {
        server.ask(Method::GET, PLANE, &[("range", "bytes=0-300000")]).await;
        server.ask(Method::HEAD, PLANE, &[]).await;
        server.ask(Method::GET, PLANE, &[("if-none-match", "\"other\"")]).await;
    }
    assert_eq!(purged(&admin).await, 0);
}

#[tokio::test]
async fn a_long_response_equals_an_uncached_one_whatever_changes() {
    let directory = tempfile::tempdir().unwrap();
    let local =
        LocalStore::open(directory.path(), &LocalOptions { writable: true, ..LocalOptions::default() });
    let store: SharedStore = Arc::new(local.unwrap());
    planes().store(&store, "a").await;
    let mount = || Mount::read_only("m", Arc::clone(&store));
    let server = Server::of(Arc::clone(&store));
    let mut uncached = Server::build(mount());
    uncached.cache = no_caches();
    let uncached = uncached.finish();
    let chunk = directory.path().join("a/c/1/3/0");
    let written = fs::read(&chunk).unwrap();
    let changes: [(&str, &dyn Fn()); 4] = [
        ("as it was made", &|| ()),
        ("a chunk written in place", &|| fs::write(&chunk, vec![9; written.len()]).unwrap()),
        ("a chunk erased", &|| fs::remove_file(&chunk).unwrap()),
        ("the chunk written again", &|| fs::write(&chunk, &written).unwrap()),
    ];
    for (what, change) in changes {
        change();
        let mut bodies = Vec::new();
        for url in [PLANE, "/v1/data/m/a?slice=1&format=npy", "/v1/data/m/a?slice=1,::2&format=json"] {
            let expected = uncached.get(url).await;
            assert_eq!(expected.status, StatusCode::OK);
            for time in 0..6 {
                let answer = server.get(url).await;
                assert!(answer.body == expected.body, "{what}: {url}, time {time}");
                assert_eq!(answer.header("etag"), expected.header("etag"), "{what}: {url}, time {time}");
            }
            bodies.push(expected.body);
        }
        assert!(bodies.iter().all(|body| body.len() > 128 << 10));
    }
}
