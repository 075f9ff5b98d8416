//! `/v1/batch`: each part is the response that its selection has by itself, whatever happens to the others.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use futures::StreamExt;
use serde_json::{Value, json};
use zarrd::array::ReadLimits;
use zarrd::http::Peer;
use zarrd::services::Mount;

use crate::access::{access, grant, known, token};
use crate::labels::dataset;
use crate::long_responses::settle;
use crate::support::hierarchy::{Array, memory};
use crate::support::remote::Remote;
use crate::support::server::{Answer, Server};

/// A part of a response.
struct Part {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Part {
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// The parts of a response.
fn parts(answer: &Answer) -> Vec<Part> {
    let boundary = answer.header("content-type").strip_prefix("multipart/mixed; boundary=").unwrap();
    let line = format!("--{boundary}");
    let mut rest = &answer.body[..];
    let mut found = Vec::new();
    loop {
        rest = rest.strip_prefix(line.as_bytes()).unwrap();
        if rest == b"--\r\n" {
            return found;
        }
        rest = rest.strip_prefix(b"\r\n").unwrap();
        let end = find(rest, b"\r\n\r\n").unwrap();
        let headers: Vec<(String, String)> = std::str::from_utf8(&rest[..end])
            .unwrap()
            .split("\r\n")
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        rest = &rest[end + 4..];
        let end = find(rest, format!("\r\n{line}").as_bytes()).unwrap();
        let status = headers.iter().find(|(name, _)| name == "status").unwrap().1.parse().unwrap();
        found.push(Part { status, headers, body: rest[..end].to_vec() });
        rest = &rest[end + 2..];
    }
}

async fn post(server: &Server, body: &Value) -> Answer {
    server.request("POST", "/v1/batch/m", &[("content-type", "application/json")], body.to_string()).await
}

async fn batch(server: &Server, items: Value) -> Vec<Part> {
    let answer = post(server, &json!({ "items": items })).await;
    assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
    parts(&answer)
}

#[tokio::test]
async fn each_part_is_the_response_of_its_own_request_in_order() {
    let server = Server::of(dataset().await);
    let items = json!([
        {"path": "g/v", "slice": "1:3,::2,-1", "format": "npy"},
        {"path": "lat", "format": "json"},
        {"path": "g/v", "sel": {"lat": 45.25}, "isel": {"time": 0}, "coords": 1, "format": "csv"},
        {"path": "g/v"},
        {"path": "g/v", "points": {"lat": [60], "lon": [90]}, "isel": {"time": 2}, "format": "json"},
    ]);
    let found = batch(&server, items).await;
    let urls = [
        "g/v?slice=1:3,::2,-1&format=npy",
        "lat?format=json",
        "g/v?sel.lat=45.25&isel.time=0&coords=1&format=csv",
        "g/v",
        "g/v?isel.time=2&isel.lat=0&isel.lon=1:2&format=json",
    ];
    assert_eq!(found.len(), urls.len());
    for (part, url) in found.iter().zip(urls) {
        let alone = server.get(&format!("/v1/data/m/{url}")).await;
        assert_eq!((part.status, &part.body[..]), (200, &alone.body[..]), "{url}");
        for name in ["content-type", "content-length"] {
            assert_eq!(part.header(name), alone.header(name), "{url}: {name}");
        }
        if !url.contains("isel.lon") {
            assert_eq!(part.header("etag"), alone.header("etag"), "{url}");
        }
    }
    assert_eq!(found[0].header("array-shape"), "[2, 2]");
}

#[tokio::test]
async fn what_fails_is_a_problem_of_its_own_and_the_others_arrive() {
    let mut builder = Server::build(Mount::read_only("m", dataset().await));
    builder.read = ReadLimits { max_response_size: 100, ..ReadLimits::default() };
    let server = builder.finish();
    let found = batch(
        &server,
        json!([
            {"path": "g/none"},
            {"path": "lat", "format": "json"},
            {"path": "g/v"},
            {"path": "g/v", "slice": "99"},
            {"path": "g/v", "silce": "0"},
            {"path": "../v"},
            {"path": "g/v", "sel": {"lat": 1}},
            {"path": "lat", "format": "json"},
        ]),
    )
    .await;
    let statuses: Vec<u16> = found.iter().map(|part| part.status).collect();
    assert_eq!(statuses, [404, 200, 413, 400, 400, 400, 400, 200]);
    assert_eq!(found[1].json(), json!([60.0, 45.25, 30.0]));
    for part in found.iter().filter(|part| part.status != 200) {
        assert_eq!(part.header("content-type"), "application/problem+json");
        let problem = part.json();
        assert_eq!(problem["status"], part.status);
        assert_ne!(problem["request_id"], "");
    }
    assert!(found[2].json()["suggested_slices"].is_array());
    assert!(found[4].json()["detail"].as_str().unwrap().contains("did you mean `slice`"));
    assert_eq!(found[6].json()["code"], "no-such-label");
}

#[tokio::test]
async fn a_selection_that_the_client_has_is_a_304_without_a_body() {
    let server = Server::of(dataset().await);
    let first = batch(&server, json!([{"path": "g/v"}])).await;
    let tag = first[0].header("etag");
    let found = batch(
        &server,
        json!([{"path": "g/v", "if_none_match": tag}, {"path": "g/v", "if_none_match": "\"other\""}]),
    )
    .await;
    assert_eq!((found[0].status, found[0].body.len(), found[0].header("etag")), (304, 0, tag));
    assert_eq!((found[1].status, &found[1].body), (200, &first[0].body));
}

#[tokio::test]
async fn a_body_that_is_no_batch_is_refused() {
    let server = Server::of(dataset().await);
    for body in [
        json!({}),
        json!([]),
        json!({"items": {}}),
        json!({"items": [{}]}),
        json!({"items": [{"slice": "0"}]}),
        json!({"items": [{"path": "lat", "path2": {"a": {"b": 1}}}]}),
        json!({"items": [], "more": 1}),
        json!({"items": vec![json!({"path": "lat"}); 1001]}),
    ] {
        post(&server, &body).await.refuses(
            400,
            "invalid-request",
            &body.to_string().chars().take(60).collect::<String>(),
        );
    }
    assert!(batch(&server, json!([])).await.is_empty());
    server.request("POST", "/v1/batch/none", &[], r#"{"items": []}"#).await.refuses(
        404,
        "unknown-mount",
        "mount",
    );
    let get = server.ask(Method::GET, "/v1/batch/m", &[]).await;
    get.refuses(405, "not-allowed", "GET");
    let encoded = server.request("POST", "/v1/batch/m", &[("content-encoding", "gzip")], "{}").await;
    encoded.refuses(415, "unsupported-media-type", "gzip");
}

#[tokio::test]
async fn each_selection_needs_the_right_to_its_array_and_pages_of_other_origins_may_read() {
    let server = Server::of(dataset().await);
    let tokens = json!({
        "all": known("all", json!([grant("m", "", &["read"])])),
        "some": known("some", json!([grant("m", "lat/", &["read"])])),
        "lists": known("lists", json!([grant("m", "", &["list", "write", "delete"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    let body = json!({"items": [{"path": "g/v"}, {"path": "lat"}, {"path": "g/none"}]}).to_string();
    for (name, expected) in [("all", [200, 200, 404]), ("some", [403, 200, 403]), ("lists", [403; 3])] {
        let bearer = format!("Bearer {}", token(name));
        let headers = [("authorization", bearer.as_str()), ("origin", "https://another.example")];
        let answer = server.request("POST", "/v1/batch/m", &headers, body.clone()).await;
        let statuses: Vec<u16> = parts(&answer).iter().map(|part| part.status).collect();
        assert_eq!(statuses, expected, "{name}");
    }
    let stranger = server.request("POST", "/v1/batch/m", &[], body).await;
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_part_ends_where_its_elements_do_even_if_they_have_lines_of_hyphens() {
    let store = crate::support::hierarchy::memory();
    let text = b"\r\n--0123\r\n\r\n--\r\n".repeat(4);
    let count = text.len() as u64;
    crate::labels::array(&store, "a", &[count], "uint8", &["x"], json!({}), text.clone()).await;
    let found = batch(&Server::of(store), json!([{"path": "a"}, {"path": "a"}])).await;
    assert!(found.iter().all(|part| part.body == text));
}

#[tokio::test]
async fn a_client_that_does_not_read_keeps_no_request_to_the_backend_half_done() {
    const CHUNKS: usize = 100;
    let store = memory();
    Array::of(&[4]).store(&store, "first").await;
    Array::of(&[CHUNKS]).chunks(&[1]).store(&store, "behind").await;
    let remote = Remote::new(store);
    let server = Server::of(remote.clone());
    let items = json!({"items": [{"path": "first"}, {"path": "behind", "if_none_match": "\"other\""}]});
    let request = Request::post("/v1/batch/m").header("content-type", "application/json");
    let request = request.body(Body::from(items.to_string())).unwrap();
    let answer = server.site().handle(request, Peer::LOOPBACK).await;
    let mut body = answer.into_body().into_data_stream();
    let first = body.next().await.unwrap().unwrap();
    assert!(find(&first, b"Status: 200").is_some());
    settle().await;
    let of_chunks =
        remote.take_requests().into_iter().filter(|request| request.starts_with("HEAD behind/c/"));
    assert_eq!(of_chunks.count(), CHUNKS);
}

#[tokio::test]
async fn the_right_to_a_declared_arrays_path_is_not_enough_to_read_it_in_a_batch() {
    let options = zarrd::store::StoreOptions::default();
    let store =
        zarrd::store::open(crate::dependents::FOLDER, &options, &crate::support::server::cpu()).unwrap();
    let server = Server::of(store);
    let family = "suffix_siblings.zarr";
    let path = format!("{family}/mask");
    let tokens = json!({
        "mask": known("mask", json!([grant("m", &path, &["read"])])),
        "family": known("family", json!([grant("m", family, &["read"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    for (name, status) in [("family", 200), ("mask", 403)] {
        let bearer = format!("Bearer {}", token(name));
        let body = json!({"items": [{"path": path}]}).to_string();
        let answer = server.request("POST", "/v1/batch/m", &[("authorization", &bearer)], body).await;
        assert_eq!(parts(&answer)[0].status, status, "{name}");
    }
}
