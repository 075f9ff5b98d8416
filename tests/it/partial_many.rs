//! `/v1/partial` and `/v1/erase`: parts of many values, and many keys, in one request.

use serde_json::{Value, json};
use zarrd::http::CacheControl;
use zarrd::services::Mount;
use zarrd::store::{SharedStore, StoreOptions};

use crate::support::counting::Counting;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, cpu, put};

fn writable(store: SharedStore) -> Server {
    Server::build(Mount { writable: true, ..Mount::read_only("m", store) }).finish()
}

async fn post(server: &Server, url: &str, document: &Value) -> Answer {
    server.request("POST", url, &[("content-type", "application/json")], document.to_string()).await
}

async fn partial(server: &Server, document: Value) -> Answer {
    post(server, "/v1/partial/m", &document).await
}

/// The frames of an answer; `None` for a key that does not exist.
fn frames(answer: &Answer) -> Vec<Option<String>> {
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.header("content-type"), "application/octet-stream");
    assert_eq!(answer.header("content-length"), answer.body.len().to_string());
    let mut rest = &answer.body[..];
    let mut frames = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<8>() {
        let length = u64::from_le_bytes(*length);
        rest = after;
        if length == u64::MAX {
            frames.push(None);
            continue;
        }
        let (bytes, after) = rest.split_at(usize::try_from(length).unwrap());
        frames.push(Some(String::from_utf8(bytes.to_vec()).unwrap()));
        rest = after;
    }
    assert!(rest.is_empty());
    frames
}

async fn digits() -> SharedStore {
    let store = memory();
    put(&store, "a/c/0", "0123456789").await;
    put(&store, "a/zarr.json", "{}").await;
    put(&store, "empty", "").await;
    store
}

#[tokio::test]
async fn parts_are_returned_in_the_requested_order_with_their_lengths() {
    let server = Server::of(digits().await);
    let asked = json!({ "get": [
        { "key": "a/c/0", "offset": 2, "length": 3 },
        { "key": "a/none" },
        { "key": "a/c/0", "suffix": 3 },
        { "key": "a/zarr.json" },
        { "key": "empty" },
        { "key": "a/c/0", "offset": 8 },
        { "key": "a/c/0", "offset": 8, "length": 18_446_744_073_709_551_615_u64 },
        { "key": "a/c/0", "suffix": 99 },
        { "key": "a/none", "offset": 5, "length": 1 },
    ] });
    let expected = [
        Some("234"),
        None,
        Some("789"),
        Some("{}"),
        Some(""),
        Some("89"),
        Some("89"),
        Some("0123456789"),
        None,
    ];
    assert_eq!(frames(&partial(&server, asked).await), expected.map(|text| text.map(str::to_owned)));
    assert_eq!(frames(&partial(&server, json!({ "get": [] })).await), []);
}

#[tokio::test]
async fn a_part_outside_of_its_value_is_named() {
    let server = Server::of(digits().await);
    for (part, size) in [
        (json!({ "key": "a/c/0", "offset": 10 }), 10),
        (json!({ "key": "a/c/0", "offset": 10, "length": 5 }), 10),
        (json!({ "key": "empty", "offset": 0, "length": 1 }), 0),
        (json!({ "key": "empty", "suffix": 1 }), 0),
    ] {
        let key = part["key"].clone();
        let answer = partial(&server, json!({ "get": [{ "key": "a/zarr.json" }, part] })).await;
        let detail = answer.refuses(416, "range-not-satisfiable", "outside");
        assert!(detail.starts_with("part 1: "), "{detail}");
        let problem = answer.json();
        assert_eq!((&problem["part"], &problem["key"], &problem["size"]), (&1.into(), &key, &size.into()));
    }
}

#[tokio::test]
async fn each_part_is_one_request_and_nothing_over_the_limit_is_read() {
    let counting = Counting::new(digits().await);
    let mut builder = Server::build(Mount::read_only("m", counting.clone()));
    builder.http.max_buffered_response_size = 500;
    let server = builder.finish();
    let parts = |count: usize| json!({ "get": vec![json!({ "key": "a/c/0" }); count] });
    assert_eq!(frames(&partial(&server, parts(10)).await).len(), 10);
    assert_eq!(counting.ranges().len(), 10);
    let answer = partial(&server, parts(40)).await;
    answer.refuses(413, "too-large", "a body over the limit");
    let mut builder = Server::build(Mount::read_only("m", counting.clone()));
    builder.http.max_buffered_response_size = 2000;
    let server = builder.finish();
    put(&(counting.clone() as SharedStore), "b/c/0", vec![b'x'; 1500]).await;
    let twice = json!({ "get": [{ "key": "b/c/0" }, { "key": "b/c/0", "suffix": 501 }] });
    let answer = partial(&server, twice).await;
    answer.refuses(413, "too-large", "an answer over the limit");
    assert_eq!(answer.json()["limit"], 2000);
}

#[tokio::test]
async fn malformed_bodies_are_refused_and_write_nothing() {
    let store = digits().await;
    let server = writable(store);
    let part = json!({ "key": "new", "offset": 0, "base64": "AAAA" });
    let with = |name: &str, value: Value| {
        let mut other = part.clone();
        other[name] = value;
        json!({ "set": [part, other] })
    };
    let get = |part: Value| json!({ "get": [part] });
    for document in [
        json!({}),
        json!([]),
        json!("get"),
        json!({ "get": [], "set": [] }),
        json!({ "gett": [] }),
        json!({ "get": [{}] }),
        json!({ "get": vec![json!({ "key": "a" }); 1001] }),
        json!({ "set": vec![part.clone(); 1001] }),
        get(json!({ "key": "a", "offsett": 1 })),
        get(json!({ "key": "a", "offset": -1 })),
        get(json!({ "key": "a", "offset": 1.5 })),
        get(json!({ "key": "a", "offset": "1" })),
        get(json!({ "key": "a", "length": 5 })),
        get(json!({ "key": "a", "offset": 1, "length": 0 })),
        get(json!({ "key": "a", "suffix": 0 })),
        get(json!({ "key": "a", "offset": 1, "suffix": 5 })),
        get(json!({ "key": "" })),
        get(json!({ "key": "../a" })),
        get(json!({ "key": "/a" })),
        get(json!({ "key": 5 })),
        with("key", json!("a//b")),
        with("base64", json!("AAA")),
        with("base64", json!("A A=")),
        with("base64", json!("")),
        with("offset", json!(-1)),
        with("offset", Value::Null),
        with("length", json!(3)),
    ] {
        let answer = partial(&server, document.clone()).await;
        let detail = answer.refuses(400, "invalid-request", &document.to_string());
        assert!(!detail.is_empty() && detail.len() < 600, "{detail}");
    }
    for text in ["", "{", "\u{0}", &"[".repeat(100_000), &format!("{{\"{}\":1}}", "x".repeat(100_000))] {
        let answer = server.request("POST", "/v1/partial/m", &[], text.to_owned()).await;
        assert!(answer.refuses(400, "invalid-request", "garbage").len() < 600);
    }
    let answer = server.request("POST", "/v1/partial/m", &[("content-encoding", "gzip")], "{}").await;
    answer.refuses(415, "unsupported-media-type", "gzip");
    post(&server, "/v1/partial/none", &json!({ "get": [] })).await.refuses(404, "unknown-mount", "no mount");
    assert_eq!(server.get("/store/m/new").await.status, 404);
}

#[tokio::test]
async fn parts_of_one_key_are_written_together_in_order() {
    let server = writable(digits().await);
    // "abcd", "XY", "hello"
    let answer = partial(
        &server,
        json!({ "set": [
            { "key": "new", "offset": 1, "base64": "YWJjZA==" },
            { "key": "a/c/0", "offset": 9, "base64": "aGVsbG8=" },
            { "key": "new", "offset": 2, "base64": "WFk=" },
        ] }),
    )
    .await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let written = answer.json()["written"].clone();
    for (place, key, value) in [(0, "new", "\0aXYd"), (1, "a/c/0", "012345678hello")] {
        let read = server.get(&format!("/store/m/{key}")).await;
        assert_eq!(read.body, value, "{key}");
        assert_eq!(written[place], json!({ "key": key, "etag": read.header("etag") }));
    }
    assert_eq!(written.as_array().unwrap().len(), 2);
    assert_eq!(partial(&server, json!({ "set": [] })).await.json(), json!({ "written": [] }));
}

#[tokio::test]
async fn a_failed_batch_reports_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { writable: true, ..StoreOptions::default() };
    let store = zarrd::store::open(folder.path().to_str().unwrap(), &options, &cpu()).unwrap();
    put(&store, "file", "before").await;
    let server = writable(store);
    let part = |key: &str| json!({ "key": key, "offset": 0, "base64": "WFk=" });
    let answer = partial(&server, json!({ "set": [part("one"), part("file/below"), part("two")] })).await;
    let detail = answer.refuses(409, "conflict", "a key below a key");
    assert!(detail.starts_with("part 1: "), "{detail}");
    let problem = answer.json();
    assert_eq!(problem["key"], "file/below");
    let written: Vec<&str> =
        problem["written"].as_array().unwrap().iter().map(|key| key["key"].as_str().unwrap()).collect();
    for key in ["one", "two"] {
        let is_there = server.get(&format!("/store/m/{key}")).await.status == 200;
        assert_eq!(is_there, written.contains(&key), "{key}");
    }
    assert!(written.contains(&"one") && !written.contains(&"file/below"), "{written:?}");
    assert_eq!(server.get("/store/m/file").await.body, "before");
}

#[tokio::test]
async fn many_keys_are_erased_in_one_request_and_missing_ones_skipped() {
    let store = digits().await;
    for key in 0..40 {
        put(&store, &format!("k/{key}"), "x").await;
    }
    let server = writable(store);
    let mut keys: Vec<String> = (0..40).map(|key| format!("k/{key}")).collect();
    keys.extend(["none", "a/zarr.json", "a/zarr.json"].map(str::to_owned));
    let answer = post(&server, "/v1/erase/m", &json!({ "keys": keys })).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({ "erased": 41 })));
    assert_eq!(server.get("/store/m/k/7").await.status, 404);
    assert_eq!(server.get("/store/m/a/c/0").await.status, 200);
    for document in [
        json!({}),
        json!({ "keys": "a/c/0" }),
        json!({ "keys": ["a/c/0"], "prefix": "a" }),
        json!({ "keys": ["a/c/0", ".."] }),
        json!({ "keys": vec!["a/c/0"; 1001] }),
    ] {
        post(&server, "/v1/erase/m", &document).await.refuses(400, "invalid-request", "not understood");
    }
    assert_eq!(server.get("/store/m/a/c/0").await.status, 200);
}

#[tokio::test]
async fn read_only_mounts_and_pages_of_other_origins_write_nothing() {
    let store = digits().await;
    let set = json!({ "set": [{ "key": "a/c/0", "offset": 0, "base64": "WFk=" }] });
    let erase = json!({ "keys": ["a/c/0"] });
    let read_only = Server::of(store.clone());
    for (url, document) in [("/v1/partial/m", &set), ("/v1/erase/m", &erase)] {
        let answer = post(&read_only, url, document).await;
        answer.refuses(405, "not-allowed", url);
        assert_eq!(answer.header("allow"), "POST, OPTIONS");
        let strange = [("origin", "https://x.example"), ("host", "here")];
        let answer = writable(store.clone()).request("POST", url, &strange, document.to_string()).await;
        answer.refuses(403, "cross-origin-write", url);
    }
    let strange = [("origin", "https://x.example"), ("host", "here")];
    let get = json!({ "get": [{ "key": "a/c/0" }] }).to_string();
    let answer = writable(store.clone()).request("POST", "/v1/partial/m", &strange, get).await;
    assert_eq!(frames(&answer), [Some("0123456789".to_owned())], "reading is for every page");
    let own = [("origin", "https://localhost"), ("host", "localhost")];
    let answer = writable(store).request("POST", "/v1/partial/m", &own, set.to_string()).await;
    assert_eq!(answer.status, 200, "the server's own pages may write");
}

#[tokio::test]
async fn cache_control_follows_the_kind_of_response() {
    let store = memory();
    Array::of(&[4]).store(&store, "a").await;
    let [metadata, chunks, decoded] = ["max-age=1", "max-age=2", "max-age=3"].map(str::to_owned);
    let cache_control = CacheControl { metadata, chunks, decoded };
    let classes = Server::build(Mount { cache_control, ..Mount::read_only("m", store.clone()) }).finish();
    let default = Server::of(store);
    for (url, status, expected) in [
        ("/store/m/a/zarr.json", 200, "max-age=1"),
        ("/store/m/a/c/0", 200, "max-age=2"),
        ("/v1/data/m/a", 200, "max-age=3"),
        ("/v1/data/m/a?format=json", 200, "max-age=3"),
        ("/v1/chunk/m/a/c/0", 200, "max-age=3"),
        ("/store/m/a/", 200, "no-cache"),
        ("/v1/nodes/m/a", 200, "no-cache"),
        ("/store/m/a", 301, "no-cache"),
        ("/store/m/a/c/9", 404, "no-store"),
        ("/v1/data/m/none", 404, "no-store"),
        ("/v1/data/m/a?slice=9", 400, "no-store"),
    ] {
        let answer = classes.get(url).await;
        assert_eq!((answer.status.as_u16(), answer.header("cache-control")), (status, expected), "{url}");
        let tag = answer.header("etag");
        if !tag.is_empty() {
            let headers = [("if-none-match", tag)];
            let same = classes.ask(axum::http::Method::GET, url, &headers).await;
            assert_eq!((same.status.as_u16(), same.header("cache-control")), (304, expected), "{url}");
        }
        let expected = if status < 400 { "no-cache" } else { "no-store" };
        assert_eq!(default.get(url).await.header("cache-control"), expected, "{url}");
    }
}
