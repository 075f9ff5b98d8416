//! Tests of backend faults: no fault becomes a successful response.

use std::sync::Arc;
use std::time::Duration;

use super::{Headers, Server};
use crate::error::{Classify, ErrorClass};
use crate::http::HttpOptions;
use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
#[error("AccessDenied: s3.secret-host.example/secret-bucket")]
struct Backend;

pub(super) fn faults() -> Vec<StoreError> {
    let cause = || Arc::new(Backend);
    vec![
        StoreError::Backend(cause()),
        StoreError::Busy(cause()),
        StoreError::TimedOut(cause()),
        StoreError::StorageFull(cause()),
        StoreError::WrongLength,
        StoreError::VersionChanged,
        StoreError::ValueTooLarge { size: 2, limit: 1 },
        StoreError::NotSupported("this"),
        StoreError::NotListable,
        StoreError::ReadOnly,
        StoreError::KeyClash,
        StoreError::InvalidKey("too long"),
        StoreError::ConditionFailed,
    ]
}

const REQUESTS: &[(&str, &str, Headers<'_>)] = &[
    ("GET", "/store/m/a", &[]),
    ("GET", "/store/m/a", &[("range", "bytes=0-1")]),
    ("GET", "/store/m/a", &[("if-none-match", "\"v1\"")]),
    ("GET", "/store/m/a", &[("if-none-match", "\"x\""), ("range", "bytes=0-1")]),
    ("GET", "/store/m/a", &[("if-match", "*")]),
    ("GET", "/store/m/none", &[]),
    ("HEAD", "/store/m/a", &[]),
    ("HEAD", "/store/m/none", &[]),
    ("GET", "/store/m/", &[]),
    ("GET", "/store/m/?format=json", &[]),
    ("GET", "/store/m/?recursive", &[]),
    ("GET", "/store/m/?recursive&format=json", &[]),
    ("PUT", "/store/m/a", &[]),
    ("PUT", "/store/m/a", &[("if-match", "*")]),
    ("DELETE", "/store/m/a", &[]),
    ("DELETE", "/store/m/", &[]),
    ("PROPFIND", "/store/m/a", &[]),
    ("PROPFIND", "/store/m/a/", &[("depth", "0")]),
    ("PROPFIND", "/store/m/", &[("depth", "1")]),
    ("PROPFIND", "/store/m/", &[]),
    ("MKCOL", "/store/m/new/", &[]),
    ("COPY", "/store/m/a", &[("destination", "/store/m/b")]),
    ("COPY", "/store/m/a/", &[("destination", "/store/m/b/")]),
    ("MOVE", "/store/m/a", &[("destination", "/store/m/b")]),
];

#[tokio::test]
async fn no_fault_becomes_a_success_or_a_missing_key() {
    let mut injected = 0;
    for fault in faults() {
        for (method, url, headers) in REQUESTS {
            let server = Server::new(&[("a", b"0123456789")]);
            *server.store.fault.lock().unwrap() = Some(fault.clone());
            let answer = server.send(method, url, headers).await;
            let status = answer.status.as_u16();
            assert!(status >= 400 && status != 404 && status != 416, "{fault:?} {method} {url}: {status}");
            injected += server.store.take_asked().len();
            if *method == "HEAD" {
                continue;
            }
            let text = answer.text();
            assert!(!text.contains("secret"), "{text}");
            answer.problem();
            if fault.class() == ErrorClass::BackendFailed {
                let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
                assert!(status == 502 && detail.starts_with("a backend of this mount"), "{detail}");
            }
        }
    }
    assert!(injected >= faults().len() * REQUESTS.len());
}

#[tokio::test]
async fn busy_slow_and_broken_backends_have_different_statuses() {
    for (fault, status, retry) in [
        (StoreError::Backend(Arc::new(Backend)), 502, false),
        (StoreError::Busy(Arc::new(Backend)), 503, true),
        (StoreError::TimedOut(Arc::new(Backend)), 504, false),
        (StoreError::StorageFull(Arc::new(Backend)), 507, false),
    ] {
        let server = Server::new(&[]);
        *server.store.fault.lock().unwrap() = Some(fault);
        let answer = server.get("/store/m/a").await;
        assert_eq!((answer.status.as_u16(), answer.headers.contains_key("retry-after")), (status, retry));
    }
}

#[tokio::test]
async fn a_body_that_fails_midway_is_cut_off_and_never_ends_early() {
    static VALUE: [u8; 100_000] = [7; 100_000];
    for after in [0, 1, 9, 65_536, 99_999] {
        for headers in [&[][..], &[("range", "bytes=0-99999")][..]] {
            let server = Server::new(&[("a", &VALUE)]);
            *server.store.cut.lock().unwrap() = Some((after, StoreError::WrongLength));
            let answer = server.send("GET", "/store/m/a", headers).await;
            if after == 0 {
                assert_eq!(answer.status.as_u16(), 502);
            } else {
                assert_eq!(answer.header("content-length"), "100000");
                assert!(answer.body.is_err(), "cut after {after}");
            }
        }
    }
}

/// So that a proxy can request it from another server.
#[tokio::test]
async fn a_short_body_that_fails_midway_is_502() {
    for after in 0..10 {
        for headers in [&[][..], &[("range", "bytes=0-9")][..]] {
            let server = Server::new(&[("a", b"0123456789")]);
            *server.store.cut.lock().unwrap() = Some((after, StoreError::WrongLength));
            let answer = server.send("GET", "/store/m/a", headers).await;
            assert_eq!(answer.status.as_u16(), 502, "cut after {after}");
        }
    }
}

#[tokio::test]
async fn a_backend_that_hangs_is_504_at_the_deadline() {
    let options = HttpOptions { response_timeout: Duration::from_millis(20), ..HttpOptions::default() };
    let server = Server::with_options(&[("a", b"1")], options);
    *server.store.hangs.lock().unwrap() = true;
    for (method, headers) in [
        ("GET", &[][..]),
        ("HEAD", &[][..]),
        ("PUT", &[][..]),
        ("PUT", &[("if-match", "*")][..]),
        ("DELETE", &[][..]),
        ("PROPFIND", &[][..]),
        ("MKCOL", &[][..]),
        ("COPY", &[("destination", "/store/m/b")][..]),
        ("MOVE", &[("destination", "/store/m/b")][..]),
    ] {
        let answer = server.send(method, "/store/m/a", headers).await;
        assert_eq!(answer.status.as_u16(), 504, "{method} {headers:?}");
        if method == "DELETE" {
            assert_eq!(answer.json()["written"], "unknown", "the erasure goes on");
        }
    }
}

#[tokio::test]
async fn a_backend_that_hangs_is_not_ready() {
    let options = HttpOptions { readiness_timeout: Duration::from_millis(20), ..HttpOptions::default() };
    let server = Server::with_options(&[("a", b"1")], options);
    *server.store.hangs.lock().unwrap() = true;
    let ready = server.get("/readyz").await;
    assert_eq!(ready.json()["mounts"]["m"], "unavailable");
}

#[tokio::test]
async fn metrics_are_served_beside_a_backend_that_hangs_for_longer_than_a_response_may_take() {
    let options = HttpOptions {
        response_timeout: Duration::from_secs(2),
        readiness_timeout: Duration::from_mins(1),
        public_metrics: true,
        ..HttpOptions::default()
    };
    let server = Server::with_options(&[("a", b"1")], options);
    *server.store.hangs.lock().unwrap() = true;
    let metrics = server.get("/metrics").await;
    assert_eq!(metrics.status.as_u16(), 200);
    assert!(metrics.text().contains("zarrd_mount_ready{mount=\"m\"} 0"), "{}", metrics.text());
    assert_eq!(server.get("/readyz").await.json()["mounts"]["m"], "unavailable");
}

#[tokio::test]
async fn a_panic_is_500_for_that_request_without_details() {
    let server = Server::new(&[("a", b"1")]);
    *server.store.panics.lock().unwrap() = true;
    let answer = server.send("GET", "/store/m/a", &[("if-none-match", "\"x\"")]).await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (500, "internal"));
    assert!(!answer.text().contains("as requested"));
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert_eq!(server.get("/store/m/a").await.status.as_u16(), 200);
}
