//! The fast path and the router, compared by what they respond with.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use bytes::Bytes;

use super::Server;
use crate::http::Peer;

const ARRAY: &[u8] = br#"{"zarr_format":3,"node_type":"array","shape":[4],"data_type":"uint8",
    "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4]}},
    "chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes"}]}"#;

/// The response through the fast path, or through the router. Ids and timings are left out.
async fn respond(server: &Server, request: Request<Body>, is_fast: bool) -> (StatusCode, HeaderMap, Bytes) {
    let response = if is_fast {
        server.site.handle(request, Peer::LOOPBACK).await
    } else {
        server.site.handle_routed(request, Peer::LOOPBACK).await
    };
    let (mut head, body) = response.into_parts();
    for of_one_request in ["server-timing", "cache-status"] {
        head.headers.remove(of_one_request);
    }
    (head.status, head.headers, to_bytes(body, usize::MAX).await.unwrap())
}

#[tokio::test]
async fn the_fast_path_and_the_router_give_the_same_response() {
    let server = Server::new(&[("a/zarr.json", ARRAY), ("a/c/0", b"\x01\x02\x03\x04")]);
    for path in [
        "/store/m/a/zarr.json",
        "/store/m/a/zarr.json?consolidated",
        "/store/m/a",
        "/store/m/a/?format=json",
        "/store/m/none",
        "/store/none/a",
        "/store/m/a//b",
        "/v1/data/m/a",
        "/v1/data/m/a?format=json",
        "/v1/data/m/a?slice=1:3",
        "/v1/data/m/a?slcie=1",
        "/v1/chunk/m/a/c/0",
        "/v1/chunk/m/a/c/9",
        "/plain/m/a/zarr.json",
        "/unshard/m/a/c/0",
    ] {
        for method in ["GET", "HEAD"] {
            for header in [("x-request-id", "one"), ("range", "bytes=1-2"), ("if-none-match", "*")] {
                let request = || {
                    let request = Request::builder().method(method).uri(path).header("x-request-id", "one");
                    request.header(header.0, header.1).body(Body::empty()).unwrap()
                };
                let fast = respond(&server, request(), true).await;
                let routed = respond(&server, request(), false).await;
                assert_eq!(fast, routed, "{method} {path} with {header:?}");
            }
        }
    }
}

#[tokio::test]
async fn head_has_the_length_of_get_and_no_body_on_the_fast_path_and_the_router() {
    let server = Server::new(&[("a", b"12345")]);
    for is_fast in [true, false] {
        let request = |method: &str, path: &str| {
            Request::builder().method(method).uri(path).body(Body::empty()).unwrap()
        };
        let (status, headers, body) = respond(&server, request("HEAD", "/store/m/a"), is_fast).await;
        assert_eq!(
            (status, &headers["content-length"], body.len()),
            (StatusCode::OK, &"5".parse().unwrap(), 0)
        );
        let (_, of_get, body) = respond(&server, request("GET", "/store/m/none"), is_fast).await;
        let (_, of_head, none) = respond(&server, request("HEAD", "/store/m/none"), is_fast).await;
        assert_eq!(of_get["content-length"], body.len().to_string().as_str());
        assert_eq!((&of_head["content-length"], none.len()), (&of_get["content-length"], 0));
    }
}
