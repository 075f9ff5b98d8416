//! Tests of PUT and DELETE.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use futures::StreamExt;

use super::Server;
use crate::admission::{AdmissionRequest, ClientBucket, Priority};
use crate::http::{HttpOptions, Peer};

fn small() -> Server {
    let options = HttpOptions {
        max_value_size: 8,
        body_stall_timeout: Duration::from_millis(20),
        ..HttpOptions::default()
    };
    Server::with_options(&[("old", b"before")], options)
}

#[tokio::test]
async fn a_put_creates_then_replaces_and_is_read_back() {
    let server = Server::new(&[]);
    let created = server.put("/store/m/a/c/0", &[], "one").await;
    assert_eq!((created.status.as_u16(), created.header("etag")), (201, "\"v1\""));
    let replaced = server.put("/store/m/a/c/0", &[], "three").await;
    assert_eq!((replaced.status.as_u16(), replaced.header("etag")), (204, "\"v2\""));
    let read = server.get("/store/m/a/c/0").await;
    assert_eq!((read.text(), read.header("etag")), ("three", "\"v2\""));
    assert_eq!(server.put("/store/m/empty", &[], "").await.status.as_u16(), 201);
    assert_eq!(server.store.value("empty").unwrap(), "");
}

#[tokio::test]
async fn conditions_apply_to_writes() {
    for (header, tag, on_old, on_new) in [
        ("if-none-match", "*", 412, 201),
        ("if-none-match", "\"v1\"", 412, 201),
        ("if-none-match", "\"v9\"", 204, 201),
        ("if-match", "*", 204, 412),
        ("if-match", "\"v1\"", 204, 412),
        ("if-match", "\"v9\"", 412, 412),
        ("if-match", "\"v9\", \"v1\"", 204, 412),
        ("if-match", "W/\"v1\"", 412, 412),
        ("if-match", "v1", 412, 412),
        ("if-unmodified-since", "Sun, 09 Sep 2001 01:46:41 GMT", 204, 201),
        ("if-unmodified-since", "Sun, 09 Sep 2001 01:46:40 GMT", 412, 201),
        ("if-unmodified-since", "garbage", 204, 201),
    ] {
        for (key, status) in [("old", on_old), ("new", on_new)] {
            let server = Server::new(&[("old", b"before")]);
            let answer = server.put(&format!("/store/m/{key}"), &[(header, tag)], "after").await;
            assert_eq!(answer.status.as_u16(), status, "{key} {header}: {tag}");
            let written = server.store.value(key).is_some_and(|value| value == "after");
            assert_eq!(written, status < 300, "{key} {header}: {tag}");
        }
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_nothing_is_stored() {
    let server = small();
    let exact = server.put("/store/m/new", &[], "12345678").await;
    assert_eq!(exact.status.as_u16(), 201);
    // With a length: refused before the store is called or a byte is read.
    server.store.take_asked();
    let unread =
        Body::from_stream(futures::stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, String>>> {
            panic!("the body was read")
        }));
    let announced = server.send_body("PUT", "/store/m/old", &[("content-length", "9")], unread).await;
    assert_eq!((announced.status.as_u16(), announced.problem().as_str()), (413, "too-large"));
    assert_eq!(server.store.take_asked(), Vec::<&str>::new());
    // Without a length: counted as it arrives.
    let parts = ["12345", "6789"].map(|part| Ok::<_, String>(Bytes::from_static(part.as_bytes())));
    let streamed = Body::from_stream(futures::stream::iter(parts));
    let streamed = server.send_body("PUT", "/store/m/old", &[], streamed).await;
    assert_eq!((streamed.status.as_u16(), streamed.problem().as_str()), (413, "too-large"));
    assert_eq!(server.store.value("old").unwrap(), "before");
}

#[tokio::test]
async fn a_body_that_fails_midway_stores_nothing() {
    let server = small();
    let broken = [Ok(Bytes::from_static(b"123")), Err("reset")];
    let broken = Body::from_stream(futures::stream::iter(broken));
    let answer = server.send_body("PUT", "/store/m/old", &[], broken).await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (400, "invalid-request"));
    let short = server.put("/store/m/old", &[("content-length", "5")], "123").await;
    assert_eq!(short.status.as_u16(), 400);
    let part = futures::stream::iter([Ok::<_, String>(Bytes::from_static(b"123"))]);
    let stalled = Body::from_stream(part.chain(futures::stream::pending()));
    let stalled = server.send_body("PUT", "/store/m/old", &[], stalled).await;
    assert_eq!((stalled.status.as_u16(), stalled.problem().as_str()), (408, "body-too-slow"));
    assert_eq!(server.store.value("old").unwrap(), "before");
}

#[tokio::test]
async fn a_client_that_disconnects_midway_stores_nothing() {
    let server = Server::new(&[("old", b"before")]);
    let part = futures::stream::iter([Ok::<_, String>(Bytes::from_static(b"123"))]);
    let body = Body::from_stream(part.chain(futures::stream::pending()));
    let left = tokio::time::timeout(
        std::time::Duration::from_millis(20),
        server.send_body("PUT", "/store/m/old", &[], body),
    );
    assert!(left.await.is_err());
    while *server.store.aborted.lock().unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.store.take_asked(), ["set"]);
    assert_eq!(server.store.value("old").unwrap(), "before");
}

#[tokio::test]
async fn a_body_that_the_store_buffers_is_charged_or_refused_before_it_is_read() {
    let options =
        HttpOptions { inflight_size: 16 << 10, streamed_response_size: 1 << 10, ..HttpOptions::default() };
    let server = Server::with_options(&[("old", b"before")], options);
    server.store.holds.store(u64::MAX, Ordering::Relaxed);
    let anyone = AdmissionRequest::of(Priority::Metadata, ClientBucket::numbered(1));
    let _others = server.state.traffic.admission.acquire(anyone, 8 << 10).await.unwrap();
    let unread = || {
        Body::from_stream(futures::stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, String>>> {
            panic!("the body was read")
        }))
    };
    for (bytes, status, code) in [("9000", 503, "overloaded"), ("20000", 413, "too-large")] {
        let answer = server.send_body("PUT", "/store/m/old", &[("content-length", bytes)], unread()).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (status, code), "{bytes}");
        assert_eq!(answer.json()["written"], false, "{bytes}");
        assert_eq!(answer.header("retry-after").is_empty(), status != 503);
    }
    assert_eq!(server.store.take_asked(), Vec::<&str>::new());
    // Without a length: charged as it arrives.
    let pieces = |count: usize| {
        Body::from_stream(futures::stream::iter(
            (0..count).map(|_| Ok::<_, String>(Bytes::from(vec![7; 1 << 10]))),
        ))
    };
    let refused = server.send_body("PUT", "/store/m/old", &[], pieces(9)).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (503, "overloaded"));
    assert_eq!(refused.json()["written"], false);
    assert_eq!(server.store.value("old").unwrap(), "before");
    assert_eq!(server.send_body("PUT", "/store/m/old", &[], pieces(4)).await.status.as_u16(), 204);
    assert_eq!(server.state.traffic.load().in_flight_bytes, 8 << 10, "the charge is returned");
    // A store that streams bodies takes them at any length.
    server.store.holds.store(0, Ordering::Relaxed);
    assert_eq!(server.send_body("PUT", "/store/m/old", &[], pieces(30)).await.status.as_u16(), 204);
}

#[tokio::test]
async fn parts_of_values_are_charged_from_their_text_to_their_last_byte() {
    let server = Server::new(&[]);
    *server.store.hangs.lock().unwrap() = true;
    let part = serde_json::json!({ "key": "new", "offset": 0, "base64": "AAAA".repeat(1 << 18) });
    let body = serde_json::json!({ "set": [part, part] }).to_string();
    let request = Request::post("/v1/partial/m").body(Body::from(body)).unwrap();
    let site = server.site.clone();
    let writing = tokio::spawn(async move { site.handle(request, Peer::LOOPBACK).await });
    // The text is gone; the store has not taken any of the bytes.
    let in_flight = || server.state.traffic.load().in_flight_bytes;
    for _ in 0..1000 {
        if server.store.asked.lock().unwrap().contains(&"get") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(in_flight(), 6 << 18);
    writing.abort();
    assert!(writing.await.is_err());
    assert_eq!(in_flight(), 0);
}

#[tokio::test]
async fn encoded_and_partial_bodies_are_refused() {
    let server = Server::new(&[]);
    for (header, value, status) in [
        ("content-encoding", "gzip", 415),
        ("content-encoding", "identity, gzip", 415),
        ("content-encoding", "identity", 201),
        ("content-range", "bytes 0-1/2", 400),
    ] {
        let answer = server.put(&format!("/store/m/{status}"), &[(header, value)], "ab").await;
        assert_eq!(answer.status.as_u16(), status, "{header}: {value}");
        assert_eq!(server.store.value(&status.to_string()).is_some(), status == 201);
    }
}

const READ: &str = "GET, HEAD, OPTIONS, PROPFIND";
const KEY: &str = "GET, HEAD, PUT, PATCH, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE";
const PREFIX: &str = "GET, HEAD, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE";
const KEPT_PREFIX: &str = "GET, HEAD, OPTIONS, PROPFIND, MKCOL, COPY";

#[tokio::test]
async fn methods_that_a_mount_does_not_offer_are_405_with_the_offered_ones() {
    let server = Server::new(&[("a/b", b"1")]);
    for (method, url, allow) in [
        ("PUT", "/store/r/a/b", READ),
        ("DELETE", "/store/r/a/b", READ),
        ("DELETE", "/store/r/a/", READ),
        ("DELETE", "/store/w/a/", KEPT_PREFIX),
        ("DELETE", "/store/w/", KEPT_PREFIX),
        ("PUT", "/store/m/a/", PREFIX),
        ("PUT", "/store/m/", PREFIX),
        ("PATCH", "/store/r/a/b", READ),
        ("PATCH", "/store/m/a/", PREFIX),
        ("POST", "/store/m/a/b", KEY),
        ("POST", "/store/r/a/b", READ),
        ("BREW", "/store/w/a/b", KEY),
        ("PUT", "/store/m", PREFIX),
        ("MKCOL", "/store/r/new", READ),
        ("COPY", "/store/r/a/b", READ),
        ("MOVE", "/store/r/a/", READ),
        ("PROPPATCH", "/store/m/a/b", KEY),
        ("LOCK", "/store/m/a/", PREFIX),
        ("UNLOCK", "/store/w/a/", KEPT_PREFIX),
        ("POST", "/v1/mounts", "GET,HEAD"),
        ("PUT", "/v1/data/r/a", "GET, HEAD, POST, OPTIONS"),
        ("POST", "/v1/data/r/a?append=0", "GET, HEAD, POST, OPTIONS"),
        ("PATCH", "/v1/data/r/a", "GET, HEAD, POST, OPTIONS"),
        ("DELETE", "/v1/data/r", "GET, HEAD, POST, OPTIONS"),
        ("PATCH", "/v1/data/m/a", "GET, HEAD, PUT, POST, OPTIONS"),
        ("PUT", "/v1/chunk/r/a/c/0", "GET, HEAD, OPTIONS"),
        ("POST", "/v1/chunk/r/a/c/0", "GET, HEAD, OPTIONS"),
        ("POST", "/v1/chunk/m/a/c/0", "GET, HEAD, PUT, OPTIONS"),
        ("PUT", "/v1/nodes/r/a", "GET, HEAD, OPTIONS"),
        ("POST", "/v1/nodes/r/a", "GET, HEAD, OPTIONS"),
        ("POST", "/v1/nodes/r", "GET, HEAD, OPTIONS"),
        ("POST", "/v1/nodes/w/a", "GET, HEAD, PUT, PATCH, OPTIONS"),
        ("POST", "/v1/nodes/m/a", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
    ] {
        let answer = server.send(method, url, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, allow), "{method} {url}");
        assert_eq!(answer.problem(), "not-allowed");
    }
    assert_eq!(server.store.take_asked(), Vec::<&str>::new());
}

#[tokio::test]
async fn deleting_a_missing_key_succeeds_and_conditions_apply() {
    for (key, headers, status) in [
        ("old", &[][..], 204),
        ("none", &[][..], 204),
        ("old", &[("if-match", "\"v1\"")][..], 204),
        ("old", &[("if-match", "\"v9\"")][..], 412),
        ("old", &[("if-match", "*")][..], 204),
        ("none", &[("if-match", "*")][..], 412),
        ("none", &[("if-match", "\"v1\"")][..], 412),
        ("old", &[("if-none-match", "*")][..], 412),
        ("none", &[("if-none-match", "*")][..], 204),
    ] {
        let server = Server::new(&[("old", b"before")]);
        let answer = server.send("DELETE", &format!("/store/m/{key}"), headers).await;
        assert_eq!(answer.status.as_u16(), status, "{key} {headers:?}");
        assert_eq!(server.store.value("old").is_none(), key == "old" && status == 204, "{key} {headers:?}");
    }
}

#[tokio::test]
async fn a_prefix_is_erased_where_the_mount_allows_it() {
    let server = Server::new(&[("a/1", b""), ("a/b/2", b""), ("ab", b"")]);
    assert_eq!(server.send("DELETE", "/store/m/a/", &[]).await.status.as_u16(), 204);
    assert!(server.store.value("a/1").is_none() && server.store.value("ab").is_some());
    assert_eq!(server.send("DELETE", "/store/m/", &[]).await.status.as_u16(), 204);
    assert!(server.store.value("ab").is_none());
}

#[tokio::test]
async fn a_body_that_does_not_match_its_digest_is_refused_and_not_stored() {
    // `after` matches the digests; `other` does not.
    for (header, digest) in [
        ("content-md5", "YyokBrvLzVU+7EWsFLQKCg=="),
        ("content-digest", "sha-256=:85WSOT7whZyxlqUmk9LOoA+y33hLPASuVKp8rbjlYvg=:"),
        ("repr-digest", "sha-256=:85WSOT7whZyxlqUmk9LOoA+y33hLPASuVKp8rbjlYvg=:"),
        ("x-amz-checksum-sha256", "85WSOT7whZyxlqUmk9LOoA+y33hLPASuVKp8rbjlYvg="),
        ("x-amz-checksum-crc32c", "bBbFdA=="),
    ] {
        let server = Server::new(&[("old", b"before")]);
        let wrong = server.put("/store/m/old", &[(header, digest)], "other").await;
        assert_eq!((wrong.status.as_u16(), wrong.problem().as_str()), (400, "digest-mismatch"), "{header}");
        assert_eq!(server.store.value("old").unwrap(), "before", "{header}");
        while *server.store.aborted.lock().unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        server.store.take_asked();
        let unreadable = server.put("/store/m/old", &[(header, "?")], "after").await;
        assert_eq!((unreadable.status.as_u16(), unreadable.problem().as_str()), (400, "invalid-request"));
        assert_eq!(
            server.store.take_asked(),
            Vec::<&str>::new(),
            "{header}: refused before the store is asked"
        );
        let right = server.put("/store/m/old", &[(header, digest)], "after").await;
        assert_eq!(right.status.as_u16(), 204, "{header}");
        assert_eq!(server.store.value("old").unwrap(), "after", "{header}");
    }
}

#[tokio::test]
async fn a_prefix_is_never_erased_under_a_condition() {
    let server = Server::new(&[("pre/a", b"1")]);
    for (name, value) in [
        ("if-match", "\"other\""),
        ("if-none-match", "*"),
        ("if-unmodified-since", "Wed, 21 Oct 2015 07:28:00 GMT"),
    ] {
        for url in ["/store/m/pre/", "/store/m/"] {
            let answer = server.send("DELETE", url, &[(name, value)]).await;
            assert_eq!(answer.status.as_u16(), 412, "{name} {url}");
        }
    }
    assert_eq!(server.store.value("pre/a").unwrap(), "1");
    assert_eq!(server.send("DELETE", "/store/m/pre/", &[]).await.status.as_u16(), 204);
}
