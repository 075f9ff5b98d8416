//! Responses of more than 128 KiB: they are cached when they are requested again, and match what is stored.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use futures::StreamExt;
use serde_json::Value;
use tokio::runtime::Handle;
use zarrd::http::Peer;
use zarrd::services::Mount;
use zarrd::store::{LocalOptions, LocalStore, SharedStore};

use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, no_caches};

/// A plane of 512 KiB in 8 chunks.
const PLANE: &str = "/v1/data/m/a?slice=1";

fn planes() -> Array {
    Array::of(&[3, 512, 512]).chunks(&[1, 64, 512]).random(7, &[])
}

/// Responses as one segment, and in parts that are made while they are sent.
const SEGMENTS: [u64; 2] = [32 << 20, 100 << 10];

/// A server of planes that makes segments of this size, and its admin listener.
async fn served(segment_size: u64) -> (Server, Server) {
    let store = memory();
    planes().store(&store, "a").await;
    let mut server = Server::build(Mount::read_only("m", store));
    server.read.segment_size = segment_size;
    server.finish_with_admin()
}

/// A response whose body is not read.
async fn begun(server: &Server) -> Body {
    let request = Request::get(PLANE).body(Body::empty()).unwrap();
    let answer = server.site().handle(request, Peer::LOOPBACK).await;
    assert_eq!(answer.status(), StatusCode::OK);
    answer.into_body()
}

/// Waits until all tasks have ended: a response that is made while it is sent enters the cache in a task after its end.
pub async fn settle() {
    let settled = async {
        while Handle::current().metrics().num_alive_tasks() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), settled).await.expect("the tasks of the responses end");
}

/// Purges all caches, and returns how many responses they had.
async fn purged(admin: &Server) -> u64 {
    settle().await;
    let answer = admin.ask(Method::DELETE, "/v1/cache/m", &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
    serde_json::from_slice::<Value>(&answer.body).unwrap()["answers"].as_u64().unwrap()
}

#[tokio::test]
async fn a_long_response_is_cached_when_it_is_requested_again_from_cached_chunks() {
    for segment_size in SEGMENTS {
        check_cached(&served(segment_size).await).await;
    }
}

async fn check_cached((server, admin): &(Server, Server)) {
    for plane in 0..3 {
        for _ in 0..2 {
            server.get(&format!("/v1/data/m/a?slice={plane},:128")).await;
        }
    }
    assert_eq!(purged(admin).await, 3, "of 128 KiB each: they are cached once their chunks are");
    for plane in 0..3 {
        server.get(&format!("/v1/data/m/a?slice={plane}")).await;
    }
    assert_eq!(purged(admin).await, 0, "requested once each");
    server.get(PLANE).await;
    assert_eq!(purged(admin).await, 0, "its chunks had to be read");
    let first = server.get(PLANE).await;
    let second = server.get(PLANE).await;
    settle().await;
    let third = server.get(PLANE).await;
    assert_eq!((&first.body, &second.body), (&second.body, &third.body));
    assert_eq!(third.header("cache-status"), "zarrd; hit");
    assert_eq!(third.header("content-length"), (512 << 10).to_string());
    assert_eq!(purged(admin).await, 1);
}

#[tokio::test]
async fn a_part_of_a_long_response_and_a_conditional_one_are_not_cached() {
    for segment_size in SEGMENTS {
        let (server, admin) = served(segment_size).await;
        for _ in 0..4 {
            server.ask(Method::GET, PLANE, &[("range", "bytes=0-300000")]).await;
            server.ask(Method::HEAD, PLANE, &[]).await;
            server.ask(Method::GET, PLANE, &[("if-none-match", "\"other\"")]).await;
        }
        assert_eq!(purged(&admin).await, 0);
    }
}

#[tokio::test]
async fn a_long_response_that_is_not_read_to_its_end_is_not_cached() {
    let (server, admin) = served(SEGMENTS[1]).await;
    server.get(PLANE).await;
    let mut body = begun(&server).await.into_data_stream();
    assert!(server.in_flight_bytes() >= 512 << 10, "all of what is collected is charged");
    body.next().await.unwrap().unwrap();
    drop(body);
    assert_eq!((purged(&admin).await, server.in_flight_bytes()), (0, 0));
}

#[tokio::test]
async fn a_long_response_that_began_before_a_purge_is_not_cached_after_it() {
    let (server, admin) = served(SEGMENTS[1]).await;
    server.get(PLANE).await;
    let body = begun(&server).await;
    assert_eq!(purged(&admin).await, 0);
    assert_eq!(to_bytes(body, 1 << 20).await.unwrap().len(), 512 << 10);
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
    let [whole, in_parts] = SEGMENTS.map(|segment_size| {
        let mut server = Server::build(mount());
        server.read.segment_size = segment_size;
        server.finish()
    });
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
            for (time, server) in [&whole, &in_parts].into_iter().cycle().take(12).enumerate() {
                let answer = server.get(url).await;
                assert!(answer.body == expected.body, "{what}: {url}, time {time}");
                assert_eq!(answer.header("etag"), expected.header("etag"), "{what}: {url}, time {time}");
            }
            bodies.push(expected.body);
        }
        assert!(bodies.iter().all(|body| body.len() > 128 << 10));
    }
}
