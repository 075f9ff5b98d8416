//! Tests of the thread hops of reads of local files.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use futures::TryStreamExt;

use crate::http::{HttpOptions, Peer};
use crate::services::{AppState, ArrayEngine, Mount};
use crate::store::{LocalOptions, LocalStore};
use crate::web::Endpoint;

const ROUNDS: u64 = 100;

#[tokio::test]
async fn values_in_the_page_cache_are_read_without_another_thread() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("small"), vec![7; 16 << 10]).unwrap();
    std::fs::write(directory.path().join("large"), vec![7; 4 << 20]).unwrap();
    let store = Arc::new(LocalStore::open(directory.path(), &LocalOptions::default()).unwrap());
    let mounts = [Mount::read_only("d", store.clone())];
    let site =
        Endpoint::whole(AppState::new(mounts, ArrayEngine::uncached(), HttpOptions::default()).unwrap());
    let send = async |method: &str, key: &str, name: &str, value: &str| -> Response {
        let request = Request::builder().method(method).uri(format!("/store/d/{key}")).header(name, value);
        site.handle(request.body(Body::empty()).unwrap(), Peer::LOOPBACK).await
    };
    let tag = send("HEAD", "small", "accept", "*/*").await.headers()["etag"].to_str().unwrap().to_owned();
    for (method, key, name, value, status, length) in [
        ("GET", "small", "accept", "*/*", 200, 16 << 10),
        ("HEAD", "small", "accept", "*/*", 200, 0),
        ("GET", "small", "if-none-match", tag.as_str(), 304, 0),
        ("GET", "small", "if-match", tag.as_str(), 200, 16 << 10),
        ("GET", "large", "range", "bytes=65536-131071", 206, 64 << 10),
        ("GET", "large", "accept", "*/*", 200, 4 << 20),
    ] {
        let before = store.hops();
        for _ in 0..ROUNDS {
            let answer = send(method, key, name, value).await;
            assert_eq!(answer.status(), status);
            let body: Vec<_> = answer.into_body().into_data_stream().try_collect().await.unwrap();
            assert_eq!(body.concat().len(), length);
        }
        // The system may drop a page at any time, so a few hops are allowed. On a file system without nonblocking
        // reads, every read hops.
        let hops = store.hops() - before;
        assert!(
            if store.reads_nonblocking() { hops <= ROUNDS / 10 } else { hops >= ROUNDS },
            "{hops} {method} {key}"
        );
    }
}
