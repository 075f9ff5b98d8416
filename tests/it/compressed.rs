//! Content codings: which responses are compressed and which never are; every variant has its own entity tag and length.

use std::io::Read;

use axum::http::Method;
use bytes::Bytes;
use serde_json::json;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, put};

/// A group's document of some length.
fn document() -> String {
    json!({ "zarr_format": 3, "node_type": "group", "attributes": { "a": vec![1; 3000] } }).to_string()
}

async fn store() -> SharedStore {
    let store = memory();
    put(&store, "zarr.json", document()).await;
    put(&store, "small/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    for name in ["v2/.zgroup", "v2/.zattrs", "v2/.zmetadata", "v2/.zarray", "notes.json", "text/0"] {
        put(&store, name, json!({ "zarr_format": 2, "metadata": {}, "a": vec![1; 3000] }).to_string()).await;
    }
    for child in 0..60 {
        put(&store, &format!("many/child-number-{child}/zarr.json"), "{}").await;
    }
    Array::of(&[64, 64]).chunks(&[64, 64]).uniform(7).store(&store, "a").await;
    store
}

async fn server() -> Server {
    Server::of(store().await)
}

async fn asked(
    server: &Server,
    method: Method,
    url: &str,
    codings: &str,
    more: &[(&'static str, &str)],
) -> Answer {
    server.ask(method, url, &[&[("accept-encoding", codings)], more].concat()).await
}

/// A body without its coding.
fn decoded(answer: &Answer) -> Bytes {
    let mut text = Vec::new();
    match answer.header("content-encoding") {
        "" => return answer.body.clone(),
        "gzip" => flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut text).map(drop).unwrap(),
        "zstd" => zstd::stream::copy_decode(&answer.body[..], &mut text).unwrap(),
        other => panic!("{other}"),
    }
    text.into()
}

fn varies_by_coding(answer: &Answer) -> bool {
    answer.headers.get_all("vary").iter().any(|value| value == "accept-encoding")
}

/// Responses that are compressed if the client accepts it.
const TEXTS: [&str; 14] = [
    "/store/m/zarr.json",
    "/store/m/v2/.zgroup",
    "/store/m/v2/.zattrs",
    "/store/m/v2/.zmetadata",
    "/store/m/v2/.zarray",
    "/plain/m/zarr.json",
    "/v1/nodes/m",
    "/store/m/many/",
    "/store/m/many/?format=json",
    "/store/m/?recursive",
    "/openapi.json",
    "/v1/data/m/a?format=json",
    "/v1/data/m/a?format=csv",
    "/docs/swagger-ui.css",
];

#[tokio::test]
async fn textual_responses_are_compressed_on_request_with_an_etag_and_length_of_their_own() {
    let server = server().await;
    for url in TEXTS {
        let plain = server.get(url).await;
        assert_eq!((plain.status.as_u16(), plain.header("content-encoding")), (200, ""), "{url}");
        assert!(varies_by_coding(&plain), "{url}");
        if url.contains("recursive") {
            // Streamed responses have no length, and are sent uncompressed.
            continue;
        }
        for coding in ["gzip", "zstd"] {
            let answer = asked(&server, Method::GET, url, coding, &[]).await;
            assert_eq!((answer.status.as_u16(), answer.header("content-encoding")), (200, coding), "{url}");
            assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{url}");
            assert!(answer.body.len() < plain.body.len(), "{url}");
            assert_eq!(decoded(&answer), plain.body, "{url}");
            assert!(varies_by_coding(&answer), "{url}");
            assert_eq!(answer.header("content-type"), plain.header("content-type"), "{url}");
            let tag = plain.header("etag").trim_end_matches('"');
            let expected = if tag.is_empty() { String::new() } else { format!("{tag};{coding}\"") };
            assert_eq!(answer.header("etag"), expected, "{url}");
            let head = asked(&server, Method::HEAD, url, coding, &[]).await;
            for name in ["content-length", "content-encoding", "content-type", "etag", "accept-ranges"] {
                assert_eq!(head.header(name), answer.header(name), "{url}: {name}");
            }
            assert!(head.body.is_empty() && varies_by_coding(&head), "{url}");
        }
    }
}

#[tokio::test]
async fn the_weights_of_accept_encoding_choose_the_content_coding() {
    let server = server().await;
    for (accepted, coding) in [
        ("gzip, deflate, br", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd;q=0.5, gzip;q=0.8", "gzip"),
        ("gzip;q=0, *", "zstd"),
        ("identity", ""),
        ("br", ""),
        ("gzip;q=0", ""),
        ("identity, gzip;q=0.1", ""),
        ("", ""),
    ] {
        let answer = asked(&server, Method::GET, "/store/m/zarr.json", accepted, &[]).await;
        assert_eq!(answer.header("content-encoding"), coding, "{accepted}");
        assert_eq!(decoded(&answer), document(), "{accepted}");
    }
}

#[tokio::test]
async fn chunks_ranges_and_stored_values_are_never_compressed() {
    let server = server().await;
    for url in [
        "/store/m/a/c/0/0",
        "/plain/m/a/c/0/0",
        "/unshard/m/a/c/0/0",
        "/rechunk/m/auto/raw/a/c/0/0",
        "/s3/m/a/c/0/0",
        "/s3/m/zarr.json",
        "/store/m/notes.json",
        "/store/m/text/0",
        "/v1/data/m/a",
        "/v1/data/m/a?format=npy",
        "/v1/data/m/a?format=arrow",
        "/v1/chunk/m/a/c/0/0",
        // Short ones.
        "/store/m/small/zarr.json",
        "/healthz",
        "/v1/nodes/m/small",
        "/store/m/nothing",
    ] {
        let plain = server.get(url).await;
        for method in [Method::GET, Method::HEAD] {
            let answer = asked(&server, method.clone(), url, "gzip, zstd", &[]).await;
            assert_eq!((answer.status, answer.header("content-encoding")), (plain.status, ""), "{url}");
            assert_eq!(answer.header("etag"), plain.header("etag"), "{url}");
            if method == Method::GET && plain.status.is_success() {
                assert_eq!(answer.body, plain.body, "{url}");
            }
        }
    }
    let range = [("range", "bytes=10-19")];
    for url in ["/store/m/zarr.json", "/plain/m/zarr.json"] {
        let answer = asked(&server, Method::GET, url, "gzip, zstd", &range).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-encoding")), (206, ""), "{url}");
        assert_eq!(answer.body, document().as_bytes()[10..20], "{url}");
        assert_eq!(answer.header("etag"), server.get(url).await.header("etag"), "{url}");
    }
}

#[tokio::test]
async fn a_compressed_response_is_revalidated_by_its_own_etag() {
    let server = server().await;
    for url in ["/store/m/zarr.json", "/v1/nodes/m", "/v1/data/m/a?format=json", "/openapi.json"] {
        let (plain, gzip) = (server.get(url).await, asked(&server, Method::GET, url, "gzip", &[]).await);
        let (plain, gzip) = (plain.header("etag"), gzip.header("etag"));
        for (codings, held, status, tag) in [
            ("gzip", gzip, 304, gzip),
            ("gzip, zstd", gzip, 304, gzip),
            ("gzip", plain, 304, plain),
            ("gzip", &*format!("{plain}, {gzip}"), 304, gzip),
            ("identity", &*format!("{plain}, {gzip}"), 304, plain),
            // The client cannot use its cached copy.
            ("identity", gzip, 200, plain),
            ("zstd", "\"other;zstd\"", 200, ""),
        ] {
            let answer = asked(&server, Method::GET, url, codings, &[("if-none-match", held)]).await;
            assert_eq!(answer.status.as_u16(), status, "{url} {codings} {held}");
            assert!(varies_by_coding(&answer), "{url} {codings} {held}");
            if !tag.is_empty() {
                assert_eq!(answer.header("etag"), tag, "{url} {codings} {held}");
            }
        }
        let kept = asked(&server, Method::GET, url, "gzip", &[("if-match", gzip)]).await;
        assert_eq!(kept.status, 200, "{url}");
    }
}

#[tokio::test]
async fn a_range_of_a_compressed_response_is_never_combined_with_the_uncompressed_one() {
    let server = server().await;
    let url = "/store/m/zarr.json";
    let tag = asked(&server, Method::GET, url, "gzip", &[]).await.header("etag").to_owned();
    let range = ("range", "bytes=10-19");
    let answer = asked(&server, Method::GET, url, "gzip", &[range, ("if-range", &tag)]).await;
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, document().as_bytes()));
    let answer = asked(&server, Method::GET, url, "gzip", &[range, ("if-match", &tag)]).await;
    assert_eq!(answer.status, 412);
}

#[tokio::test]
async fn a_conditional_write_accepts_the_etag_of_a_compressed_response() {
    let server = Server::build(Mount { writable: true, ..Mount::read_only("m", store().await) }).finish();
    let url = "/store/m/zarr.json";
    let read = async || asked(&server, Method::GET, url, "gzip", &[]).await.header("etag").to_owned();
    let write =
        async |tag: &str| server.request("PUT", url, &[("if-match", tag)], document() + " ").await.status;
    let tag = read().await;
    assert_eq!(write(&tag).await, 204);
    assert_eq!(write(&tag).await, 412, "it was written in between");
    assert_eq!(write(&read().await).await, 204);
    let again = read().await;
    let refused = server.request("PUT", url, &[("if-none-match", &again)], "x").await;
    assert_eq!(refused.status, 412);
    assert_eq!(server.request("DELETE", url, &[("if-match", &tag)], "").await.status, 412);
    assert_eq!(server.request("DELETE", url, &[("if-match", &again)], "").await.status, 204);
}

#[tokio::test]
async fn long_errors_are_compressed() {
    let store = memory();
    for child in 0..80 {
        put(&store, &format!("folder-number-{child}/key"), "x").await;
    }
    let server = Server::of(store);
    let plain = server.get("/v1/nodes/m").await;
    let answer = asked(&server, Method::GET, "/v1/nodes/m", "gzip", &[]).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-encoding")), (404, "gzip"));
    let problem: serde_json::Value = serde_json::from_slice(&decoded(&answer)).unwrap();
    assert_eq!(problem["children"], plain.json()["children"]);
}

#[tokio::test]
async fn a_response_is_sent_uncompressed_when_memory_for_a_second_copy_is_short() {
    let mut server = Server::build(Mount::read_only("m", store().await));
    server.http.inflight_size = 1 << 20;
    server.http.max_inflight_requests = 1;
    let answer = asked(&server.finish(), Method::GET, "/store/m/zarr.json", "gzip", &[]).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-encoding")), (200, ""));
    assert_eq!(answer.body, document());
}
