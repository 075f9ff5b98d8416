//! Conditions and ranges of stored values in complete tables (RFC 9110, sections 13 and 14), and HEAD against GET on every
//! route.

use axum::http::{HeaderMap, Method, StatusCode};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server, erase, put};

/// Older than anything there is.
const LONG_AGO: &str = "Mon, 01 Jan 1990 00:00:00 GMT";
const VALUE: &str = "0123456789";
const URL: &str = "/store/m/a/c/0";

fn writable(store: SharedStore) -> Server {
    Server::build(Mount { writable: true, ..Mount::read_only("m", store) }).finish()
}

/// A condition of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Condition {
    Absent,
    Holds,
    Fails,
}

use Condition::{Absent, Fails, Holds};

/// If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since.
type Four = [Condition; 4];

fn all() -> impl Iterator<Item = Four> {
    let each = [Absent, Holds, Fails];
    each.into_iter().flat_map(move |one| {
        each.into_iter().flat_map(move |two| {
            each.into_iter().flat_map(move |three| each.into_iter().map(move |four| [one, two, three, four]))
        })
    })
}

/// The headers that make the conditions hold or fail for a value of this tag and date.
fn headers<'a>(conditions: Four, tag: &'a str, date: &'a str) -> Vec<(&'static str, &'a str)> {
    let choices = [
        ("if-match", tag, "\"other\""),
        ("if-unmodified-since", date, LONG_AGO),
        ("if-none-match", "\"other\"", tag),
        ("if-modified-since", LONG_AGO, date),
    ];
    let chosen =
        conditions.into_iter().zip(choices).filter_map(|(condition, (name, holds, fails))| match condition {
            Absent => None,
            Holds => Some((name, holds)),
            Fails => Some((name, fails)),
        });
    chosen.collect()
}

/// The evaluation of section 13.2.2: the status in place of the method's own, if conditions end the request.
fn ends(method: &str, exists: bool, [matches, unmodified, none_match, modified]: Four) -> Option<u16> {
    let reads = matches!(method, "GET" | "HEAD");
    if !exists {
        // Section 13.2.1: conditions count only where the answer without them would be a success. No tag matches what is
        // not there, and it has no date.
        return if reads {
            Some(404)
        } else if matches == Absent {
            None
        } else {
            Some(412)
        };
    }
    let first = if matches == Absent { unmodified } else { matches };
    if first == Fails {
        return Some(412);
    }
    match (none_match, modified) {
        (Fails, _) | (Absent, Fails) if reads => Some(304),
        (Fails, _) => Some(412),
        _ => None,
    }
}

#[tokio::test]
async fn every_method_honours_every_condition() {
    let store = memory();
    let server = writable(store.clone());
    let mut seen = std::collections::BTreeSet::new();
    for exists in [true, false] {
        for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE"] {
            for conditions in all() {
                if exists {
                    put(&store, "a/c/0", VALUE).await;
                } else {
                    erase(&store, "a/c/0").await;
                }
                let before = server.ask(Method::HEAD, URL, &[]).await;
                let (tag, date) = if exists {
                    (before.header("etag"), before.header("last-modified"))
                } else {
                    ("\"gone\"", "Fri, 01 Jan 2021 00:00:00 GMT")
                };
                let mut sent = headers(conditions, tag, date);
                if method == "PATCH" {
                    sent.push(("content-range", "bytes 0-2/*"));
                }
                let body = if matches!(method, "PUT" | "PATCH") { "new" } else { "" };
                let answer = server.request(method, URL, &sent, body).await;
                let own = match (method, exists) {
                    ("GET" | "HEAD", _) => 200,
                    ("PUT" | "PATCH", false) => 201,
                    _ => 204,
                };
                let expected = ends(method, exists, conditions).unwrap_or(own);
                let what = format!("{method} {conditions:?} exists: {exists}");
                assert_eq!(answer.status, expected, "{what}");
                seen.insert(expected);
                check(&server, method, &what, &answer, &before).await;
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [200, 201, 204, 304, 404, 412]);
}

/// The stored value after a request, and its description in the response.
async fn check(server: &Server, method: &str, what: &str, answer: &Answer, before: &Answer) {
    let now = server.get(URL).await;
    let unchanged = (now.status, now.header("etag")) == (before.status, before.header("etag"));
    if method == "GET" || method == "HEAD" || !answer.status.is_success() {
        assert!(unchanged, "{what}");
    } else {
        let stored = match (method, before.status.as_u16()) {
            ("DELETE", _) => None,
            ("PATCH", 200) => Some("new3456789"),
            _ => Some("new"),
        };
        assert_eq!((now.status == 200).then_some(&*now.body), stored.map(str::as_bytes), "{what}");
        if stored.is_some() {
            assert_eq!(answer.header("etag"), now.header("etag"), "{what}");
        }
    }
    match answer.status.as_u16() {
        200 | 304 => {
            for name in ["etag", "last-modified", "cache-control"] {
                assert_eq!(answer.header(name), before.header(name), "{what}");
            }
            let body = if method == "GET" && answer.status == 200 { VALUE } else { "" };
            assert_eq!(answer.body, body, "{what}");
        }
        404 | 412 if method != "HEAD" => {
            answer.code();
        }
        _ => assert!(answer.body.is_empty(), "{what}"),
    }
}

#[tokio::test]
async fn all_forms_of_ranges_are_answered() {
    let store = memory();
    put(&store, "a/c/0", VALUE).await;
    put(&store, "empty", "").await;
    let server = Server::of(store);
    let killer =
        format!("bytes={}", (0..1300).map(|first| format!("{first}-")).collect::<Vec<_>>().join(","));
    for (line, status, range, body) in [
        ("bytes=0-0", 206, "bytes 0-0/10", "0"),
        ("bytes=2-4", 206, "bytes 2-4/10", "234"),
        ("bytes=9-9", 206, "bytes 9-9/10", "9"),
        ("bytes=8-", 206, "bytes 8-9/10", "89"),
        ("bytes=0-", 206, "bytes 0-9/10", VALUE),
        ("bytes=8-100", 206, "bytes 8-9/10", "89"),
        ("bytes=0-18446744073709551615", 206, "bytes 0-9/10", VALUE),
        ("bytes=-1", 206, "bytes 9-9/10", "9"),
        ("bytes=-10", 206, "bytes 0-9/10", VALUE),
        ("bytes=-11", 206, "bytes 0-9/10", VALUE),
        ("bytes=-18446744073709551615", 206, "bytes 0-9/10", VALUE),
        ("BYTES=2-4", 206, "bytes 2-4/10", "234"),
        ("bytes=,2-4,", 206, "bytes 2-4/10", "234"),
        ("bytes=10-", 416, "bytes */10", ""),
        ("bytes=10-10", 416, "bytes */10", ""),
        ("bytes=18446744073709551615-", 416, "bytes */10", ""),
        ("bytes=18446744073709551615-18446744073709551615", 416, "bytes */10", ""),
        ("bytes=-0", 416, "bytes */10", ""),
        ("bytes=0-1,3-4", 200, "", VALUE),
        ("bytes=8-9, 2-4", 200, "", VALUE),
        ("bytes=0-0,-1", 200, "", VALUE),
        ("bytes=0-99,20-", 200, "", VALUE),
        (&killer, 200, "", VALUE),
        ("bytes=5-2", 200, "", VALUE),
        ("bytes=-", 200, "", VALUE),
        ("bytes=", 200, "", VALUE),
        ("bytes=,", 200, "", VALUE),
        ("bytes=x-y", 200, "", VALUE),
        ("bytes=0x0-0x1", 200, "", VALUE),
        ("bytes=+1-2", 200, "", VALUE),
        ("bytes=1.0-2", 200, "", VALUE),
        ("bytes=18446744073709551616-", 200, "", VALUE),
        ("bytes=0-18446744073709551616", 200, "", VALUE),
        ("bytes=-18446744073709551616", 200, "", VALUE),
        ("bytes 0-1", 200, "", VALUE),
        ("items=0-1", 200, "", VALUE),
        ("seconds=0-1", 200, "", VALUE),
        ("none", 200, "", VALUE),
    ] {
        let answer = server.ask(Method::GET, URL, &[("range", line)]).await;
        assert_eq!(answer.status, status, "{line}");
        assert_eq!(answer.header("content-range"), range, "{line}");
        assert_eq!(answer.header("accept-ranges"), "bytes", "{line}");
        assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{line}");
        if status == 416 {
            answer.refuses(416, "range-not-satisfiable", line);
        } else {
            assert_eq!(answer.body, body, "{line}");
        }
        let head = server.ask(Method::HEAD, URL, &[("range", line)]).await;
        assert_eq!((head.status.as_u16(), head.header("content-length")), (200, "10"), "{line}");
        assert_eq!(head.header("content-range"), "", "{line}");
        if status != 416 {
            assert_eq!(answer.header("etag"), head.header("etag"), "{line}");
        }
    }
    for (line, status) in [("bytes=0-", 416), ("bytes=0-0", 416), ("bytes=-1", 416), ("bytes=0-0,1-1", 200)] {
        let answer = server.ask(Method::GET, "/store/m/empty", &[("range", line)]).await;
        assert_eq!(answer.status, status, "{line}");
        assert_eq!(answer.header("content-range"), if status == 416 { "bytes */0" } else { "" }, "{line}");
    }
    let missing = server.ask(Method::GET, "/store/m/none", &[("range", "bytes=0-1")]).await;
    missing.refuses(404, "not-found", "a range of nothing");
}

#[tokio::test]
async fn if_range_applies_a_range_only_for_the_same_strong_etag() {
    let store = memory();
    put(&store, "a/c/0", VALUE).await;
    let server = Server::of(store.clone());
    let old = server.ask(Method::HEAD, URL, &[]).await;
    put(&store, "a/c/0", VALUE).await;
    let now = server.ask(Method::HEAD, URL, &[]).await;
    let tag = now.header("etag");
    assert_ne!(tag, old.header("etag"));
    let weak = format!("W/{tag}");
    for (if_range, inside, outside) in [
        (tag, 206, 416),
        (&weak, 200, 200),
        (old.header("etag"), 200, 200),
        (now.header("last-modified"), 200, 200),
        (LONG_AGO, 200, 200),
        ("*", 200, 200),
        ("garbage", 200, 200),
        ("", 200, 200),
    ] {
        for (range, status) in [("bytes=2-4", inside), ("bytes=99-", outside), ("bytes=0-1,3-4", 200)] {
            let sent = [("range", range), ("if-range", if_range)];
            let answer = server.ask(Method::GET, URL, &sent).await;
            assert_eq!(answer.status, status, "{sent:?}");
            match status {
                200 => assert_eq!(answer.body, VALUE, "{sent:?}"),
                206 => assert_eq!((&answer.body[..], answer.header("etag")), (&b"234"[..], tag), "{sent:?}"),
                _ => drop(answer.refuses(416, "range-not-satisfiable", range)),
            }
        }
    }
    let without = server.ask(Method::GET, URL, &[("if-range", "\"other\"")]).await;
    assert_eq!(without.status, 200, "without a range there is nothing to it");
}

/// The routes of the API document that answer GET, with all their places filled in. In S3, HEAD of a bucket is not that of
/// its listing but an operation of its own, which asks whether there is such a bucket.
fn urls() -> Vec<String> {
    let document: serde_json::Value = serde_json::from_str(&zarrd::web::openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let mut urls = Vec::new();
    let gets =
        paths.iter().filter(|(path, operations)| operations.get("get").is_some() && *path != "/s3/{mount}");
    for (path, _) in gets {
        let rests = match path.as_str() {
            path if path.starts_with("/v1/chunk/") => &["a/c/0/0", "a/c/9/9", "a", "none/c/0", "%ff"][..],
            path if path.contains("{path}") => &["a", "g", "none", "a/zarr.json", "%ff", ".."],
            path if path.contains("{key}") => &[
                "a/zarr.json",
                "a/c/0/0",
                "a/",
                "g",
                "g/",
                "none",
                "none/",
                "a/c/0/0/x",
                "%ff",
                "..",
                "a%2fb",
            ],
            _ => &[""],
        };
        for mount in ["m", "none", "%ff"] {
            for rest in rests {
                let url = path.replace("{mount}", mount).replace("{path}", rest).replace("{key}", rest);
                let url = url.replace("{chunks}", "3,8").replace("{codec}", "zstd");
                let url = url.replace("{method}", "mean");
                let url = url.replace("{tms}/{z}/{x}/{y}", "native/0/0/0");
                let url = url.replace("{level}", "0").replace("{chunk}", "0.0").replace("{id}", "0");
                assert!(!url.contains('{'), "{url}: this test does not know how to fill it in");
                let queries =
                    ["", "?format=json", "?format=nonsense", "?slice=0", "?recursive", "?consolidated"];
                // Of a mount that is not there, queries make no difference.
                let queries = if mount == "m" { &queries[..] } else { &queries[..2] };
                urls.extend(queries.iter().map(|query| format!("{url}{query}")));
            }
        }
    }
    urls.sort();
    urls.dedup();
    urls
}

/// Headers that differ between responses.
fn without_chance(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in ["x-request-id", "x-amz-request-id", "server-timing", "cache-status", "date", "retry-after"] {
        headers.remove(name);
    }
    headers
}

/// Headers that are known only once pictures are drawn or statistics are computed, which HEAD does not do (section 9.3.2).
pub const OF_GENERATED: [&str; 3] = ["content-length", "image-range", "image-range-from"];

/// Whether a URL's response is drawn or computed for each request.
pub fn is_generated(url: &str) -> bool {
    ["/v1/image/", "/tiles/", "/v1/stats/"].iter().any(|route| url.starts_with(route))
}

#[tokio::test]
async fn head_answers_with_the_headers_of_get_on_every_route() {
    let store = memory();
    Array::of(&[8, 8]).chunks(&[4, 4]).store(&store, "a").await;
    put(&store, "g/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    put(&store, "zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    let server = Server::of(store);
    let mut statuses = std::collections::BTreeSet::new();
    for url in urls() {
        let first = server.get(&url).await;
        let all = [
            &[][..],
            &[("if-match", "\"other\"")],
            &[("if-none-match", first.header("etag"))],
            &[("accept", "image/x-none")],
            &[("origin", "https://x.example")],
        ];
        // What is refused has no representation to choose from.
        let some = if first.status == StatusCode::OK { &all[..] } else { &all[..2] };
        for sent in some {
            let get = server.ask(Method::GET, &url, sent).await;
            let head = server.ask(Method::HEAD, &url, sent).await;
            assert_eq!(get.status, head.status, "{url} {sent:?}");
            assert!(head.body.is_empty(), "{url} {sent:?}");
            let (mut of_get, mut of_head) = (without_chance(&get.headers), without_chance(&head.headers));
            if is_generated(&url) {
                for name in OF_GENERATED {
                    of_get.remove(name);
                    of_head.remove(name);
                }
            }
            assert_eq!(of_get, of_head, "{url} {sent:?}");
            if get.status == StatusCode::OK && !get.header("content-length").is_empty() {
                assert_eq!(get.header("content-length"), get.body.len().to_string(), "{url}");
            }
            statuses.insert(get.status.as_u16());
        }
    }
    for status in [200, 301, 304, 400, 404, 406, 412] {
        assert!(statuses.contains(&status), "{statuses:?}");
    }
}
