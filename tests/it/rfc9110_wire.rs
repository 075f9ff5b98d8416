//! Behaviour that needs a real connection: dates, HTTP/1.1 against HTTP/2, and immediate visibility of changes.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use zarrd::services::Mount;
use zarrd::store::StoreOptions;

use crate::support::client;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, cpu, put};

fn client(http2: bool) -> reqwest::Client {
    let builder = client::builder().redirect(reqwest::redirect::Policy::none());
    let builder = if http2 { builder.http2_prior_knowledge() } else { builder.http1_only() };
    builder.build().unwrap()
}

/// A request: method, path, headers, body.
type TestRequest<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

async fn exchange(
    client: &reqwest::Client,
    address: SocketAddr,
    (method, path, headers, body): TestRequest<'_>,
) -> (u16, HeaderMap, Bytes) {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    // With an id of its own, a problem document is the same each time.
    let mut request =
        client.request(method, format!("http://{address}{path}")).header("x-request-id", "same");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_empty() {
        request = request.body(body.to_owned());
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.headers().clone(), answer.bytes().await.unwrap())
}

#[tokio::test]
async fn both_versions_of_http_give_equal_responses_with_a_date() {
    let store = memory();
    Array::of(&[8, 8]).chunks(&[4, 4]).store(&store, "a").await;
    put(&store, "text", "0123456789").await;
    let server = Server::build(Mount { writable: true, ..Mount::read_only("m", store) }).finish();
    let tag = server.get("/store/m/text").await.header("etag").to_owned();
    let address = server.listen().await;
    let (one, two) = (client(false), client(true));
    let asked: &[TestRequest<'_>] = &[
        ("GET", "/", &[], ""),
        ("GET", "/v1/mounts", &[], ""),
        ("GET", "/openapi.json", &[], ""),
        ("GET", "/store/m/text", &[], ""),
        ("HEAD", "/store/m/text", &[], ""),
        ("GET", "/store/m/text", &[("range", "bytes=2-4")], ""),
        ("GET", "/store/m/text", &[("range", "bytes=-3"), ("if-range", &tag)], ""),
        ("GET", "/store/m/text", &[("range", "bytes=1-2,4-5")], ""),
        ("GET", "/store/m/text", &[("range", "bytes=99-")], ""),
        ("GET", "/store/m/text", &[("if-none-match", &tag)], ""),
        ("HEAD", "/store/m/text", &[("if-none-match", &tag)], ""),
        ("GET", "/store/m/text", &[("if-match", "\"other\"")], ""),
        ("GET", "/store/m/none", &[], ""),
        ("HEAD", "/store/m/none", &[], ""),
        ("GET", "/store/m/%ff", &[], ""),
        ("GET", "/store/m/a", &[], ""),
        ("GET", "/store/m/a/", &[], ""),
        ("GET", "/store/m/?recursive", &[("accept", "application/json")], ""),
        ("GET", "/store/m/?recursive", &[], ""),
        ("OPTIONS", "/store/m/text", &[("origin", "https://x.example")], ""),
        ("POST", "/store/m/text", &[], ""),
        ("PUT", "/store/m/text", &[("if-match", "\"other\"")], "new"),
        ("PUT", "/store/m/text", &[("content-encoding", "gzip")], "new"),
        ("PATCH", "/store/m/text", &[], "new"),
        ("PATCH", "/store/m/text", &[("content-range", "bytes 0-1/*")], "new"),
        ("PATCH", "/store/m/text", &[("content-range", "bytes 0-2/*"), ("if-none-match", "*")], "new"),
        ("DELETE", "/store/m/text", &[("if-match", "\"other\"")], ""),
        ("POST", "/v1/partial/m", &[], r#"{"get":[{"key":"text","offset":3},{"key":"none"}]}"#),
        ("POST", "/v1/partial/m", &[], r#"{"get":[{"key":"text","offset":30}]}"#),
        ("GET", "/v1/nodes/m/a", &[], ""),
        ("GET", "/v1/data/m/a?slice=0", &[], ""),
        ("GET", "/v1/data/m/a", &[("range", "bytes=3-7")], ""),
        ("GET", "/v1/data/m/a?format=json", &[], ""),
        ("GET", "/v1/chunk/m/a/c/1/1?format=npy", &[], ""),
        ("GET", "/nowhere", &[], ""),
    ];
    for &request in asked {
        let mut answers = Vec::new();
        for client in [&one, &two] {
            let (status, mut headers, body) = exchange(client, address, request).await;
            let date = headers.remove("date").unwrap_or_else(|| panic!("{request:?} has no date"));
            let date = httpdate::parse_http_date(date.to_str().unwrap()).unwrap();
            let age = SystemTime::now().duration_since(date).unwrap_or_default();
            assert!(age < Duration::from_mins(10), "{request:?}: {age:?}");
            for name in ["server-timing", "cache-status", "connection", "transfer-encoding"] {
                headers.remove(name);
            }
            answers.push((status, headers, body));
        }
        assert_eq!(answers[0], answers[1], "{request:?}");
    }
    assert_eq!(server.get("/store/m/text").await.body, "0123456789");
    // A write through one is visible through the other.
    for (writer, reader, text) in [(&one, &two, "one"), (&two, &one, "two")] {
        let (status, headers, _) = exchange(writer, address, ("PUT", "/store/m/text", &[], text)).await;
        assert_eq!(status, 204);
        let place = [("content-range", "bytes 3-3/4")];
        let (status, patched, _) = exchange(writer, address, ("PATCH", "/store/m/text", &place, "!")).await;
        assert_eq!(status, 204);
        assert_ne!(headers["etag"], patched["etag"]);
        let (status, headers, body) = exchange(reader, address, ("GET", "/store/m/text", &[], "")).await;
        assert_eq!((status, body), (200, Bytes::from(format!("{text}!"))));
        assert_eq!(headers["etag"], patched["etag"]);
        let modified = httpdate::parse_http_date(headers["last-modified"].to_str().unwrap()).unwrap();
        let date = httpdate::parse_http_date(headers["date"].to_str().unwrap()).unwrap();
        assert!(modified <= date + Duration::from_secs(1), "{modified:?} {date:?}");
    }
}

/// A replacement by another program: a file is written beside the old one and renamed over it.
fn replace(root: &Path, key: &str, bytes: &[u8]) {
    let path = root.join(key);
    let beside = path.with_extension("beside");
    std::fs::write(&beside, bytes).unwrap();
    std::fs::rename(&beside, &path).unwrap();
}

#[tokio::test]
async fn external_changes_are_visible_whatever_cache_directives_a_request_has() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let options = StoreOptions::default();
    let array = |fill: u8, note: &str| {
        Array::of(&[4, 4]).uniform(fill).members(serde_json::json!({ "attributes": { "note": note } }))
    };
    std::fs::create_dir_all(root.join("a/c/0")).unwrap();
    let change = |fill: u8, note: &str| {
        let array = array(fill, note);
        replace(root, "a/zarr.json", array.document().1.to_string().as_bytes());
        let chunk = array.chunk(&array.model(), &[0, 0]);
        replace(root, "a/c/0/0", &chunk);
        chunk
    };
    change(1, "first");
    let store = zarrd::store::open(root.to_str().unwrap(), &options, &cpu()).unwrap();
    let server = Server::of(store);
    for (count, headers) in [
        &[][..],
        &[("cache-control", "no-cache")],
        &[("cache-control", "max-age=0")],
        &[("cache-control", "max-age=3600")],
        &[("cache-control", "no-store")],
        &[("cache-control", "only-if-cached")],
        &[("pragma", "no-cache")],
    ]
    .into_iter()
    .enumerate()
    {
        let urls = [
            "/store/m/a/c/0/0",
            "/store/m/a/zarr.json",
            "/v1/nodes/m/a",
            "/v1/data/m/a",
            "/v1/chunk/m/a/c/0/0",
        ];
        let mut before = Vec::new();
        for url in urls {
            let answer = server.ask(Method::GET, url, headers).await;
            assert_eq!(answer.status, 200, "{url}: {:?}", answer.body);
            // Once more, from the cache.
            assert_eq!(server.ask(Method::GET, url, headers).await.body, answer.body, "{url}");
            before.push(answer);
        }
        let note = format!("change {count}");
        let chunk = change(u8::try_from(count).unwrap() + 2, &note);
        for (url, before) in urls.into_iter().zip(before) {
            let same = [headers, &[("if-none-match", before.header("etag"))]].concat();
            let answer = server.ask(Method::GET, url, &same).await;
            assert_eq!(answer.status, 200, "{url} {headers:?}: it is not what it was");
            assert_ne!(answer.header("etag"), before.header("etag"), "{url} {headers:?}");
            assert_ne!(answer.body, before.body, "{url} {headers:?}");
            let now = [headers, &[("if-none-match", answer.header("etag"))]].concat();
            assert_eq!(server.ask(Method::GET, url, &now).await.status, 304, "{url} {headers:?}");
        }
        assert_eq!(server.get(urls[0]).await.body, chunk);
        let node = server.get(urls[2]).await.json();
        assert_eq!(node["metadata"]["attributes"]["note"], note);
    }
}
