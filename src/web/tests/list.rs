//! Tests of listings.

use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::{Method, Request};
use bytes::Bytes;
use futures::TryStreamExt;

use super::Server;
use crate::http::Peer;

const VALUES: &[(&str, &[u8])] =
    &[("zarr.json", b"{}"), ("a/zarr.json", b"{}"), ("a/c/0", b"0"), ("a/c/1", b"1")];

#[tokio::test]
async fn browsers_and_clients_without_a_preference_get_html() {
    const TO_PAGE: &str = "\n<form action=\"/view/m/a\" style=\"position:absolute;top:.5em;right:1em\">\
        <button>View as a page</button></form>\n";
    let server = Server::new(VALUES);
    // What leads browsers to the page comes after all links.
    for (accept, way) in
        [("*/*", ""), ("text/html", TO_PAGE), ("text/html,application/xhtml+xml,*/*;q=0.8", TO_PAGE)]
    {
        let answer = server.send("GET", "/store/m/a/", &[("accept", accept)]).await;
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        assert_eq!((answer.header("vary"), answer.header("cache-control")), ("Accept", "no-cache"));
        assert_eq!(
            answer.text(),
            format!(
                "<!DOCTYPE html>\n<html><head><title>Index of /store/m/a/</title><meta name=\"color-scheme\" content=\"light dark\"></head>\n<body><pre>\n\
                 <a href=\"../\">../</a>\n<a href=\"c/\">c/</a>\n<a href=\"zarr.json\">zarr.json</a>\n\
                 </pre>{way}</body></html>\n"
            )
        );
    }
}

#[tokio::test]
async fn a_recursive_html_listing_has_every_key_below() {
    let server = Server::new(VALUES);
    let answer = server.get("/store/m/a/?recursive").await;
    assert_eq!(
        answer.text(),
        "<!DOCTYPE html>\n<html><head><title>Index of /store/m/a/</title><meta name=\"color-scheme\" content=\"light dark\"></head>\n<body><pre>\n\
         <a href=\"../\">../</a>\n<a href=\"c/0\">c/0</a>\n<a href=\"c/1\">c/1</a>\n\
         <a href=\"zarr.json\">zarr.json</a>\n</pre></body></html>\n"
    );
    assert!(server.get("/store/m/a/?recursive=false").await.text().contains("\"c/\""));
}

#[tokio::test]
async fn clients_that_ask_for_json_get_json() {
    let server = Server::new(VALUES);
    let expected = serde_json::json!({
        "prefix": "a/",
        "keys": [{"key": "a/zarr.json", "size": 2, "etag": "\"v2\"", "modified": "2001-09-09T01:46:42.000Z"}],
        "prefixes": ["a/c/"],
        "next": null,
    });
    for (query, accept) in [("", "application/json"), ("?format=json", "text/html"), ("?f=json", "*/*")] {
        let answer = server.send("GET", &format!("/store/m/a/{query}"), &[("accept", accept)]).await;
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.json(), expected);
    }
}

#[tokio::test]
async fn json_pages_follow_each_other() {
    let server = Server::new(VALUES);
    for (base, all) in [
        ("/store/m/?format=json&recursive&limit=1", vec!["a/c/0", "a/c/1", "a/zarr.json", "zarr.json"]),
        ("/store/m/?format=json&limit=1", vec!["a/", "zarr.json"]),
    ] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("{base}{after}")).await.json();
            seen.extend(page["keys"].as_array().unwrap().iter().map(|key| key["key"].clone()));
            seen.extend(page["prefixes"].as_array().unwrap().clone());
            assert!(seen.len() <= all.len());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert_eq!(seen, all);
    }
}

#[tokio::test]
async fn an_unknown_prefix_is_empty_in_json_and_missing_in_html() {
    for (values, url, html) in [(VALUES, "/store/m/none/", 404), (&[], "/store/m/", 200)] {
        let server = Server::new(values);
        for query in ["?", "?recursive&"] {
            let page = server.get(&format!("{url}{query}format=html")).await;
            assert_eq!(page.status.as_u16(), html, "{url}{query}");
            let page = server.get(&format!("{url}{query}format=json")).await;
            assert_eq!(page.status.as_u16(), 200, "{url}{query}");
            assert!(page.json()["keys"].as_array().unwrap().is_empty());
        }
    }
}

#[tokio::test]
async fn a_refused_listing_has_a_problem_with_its_reason() {
    let server = Server::new(VALUES);
    for (url, accept, status, code) in [
        ("/store/m/?format=xml", "*/*", 400, "unknown-format"),
        ("/store/m/", "image/png", 406, "not-acceptable"),
        ("/store/m/?format=json&limit=0", "*/*", 400, "invalid-request"),
        ("/store/m/?format=json&limit=1001", "*/*", 400, "invalid-request"),
        ("/store/m/?format=json&limit=x", "*/*", 400, "invalid-request"),
        ("/store/m/?format=json&recursive&after=/", "*/*", 400, "invalid-request"),
        ("/store/none/", "*/*", 404, "unknown-mount"),
    ] {
        let answer = server.send("GET", url, &[("accept", accept)]).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (status, code), "{url}");
        assert!(!answer.json()["detail"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_failed_listing_is_never_returned_as_a_shorter_one() {
    let server = Server::new(VALUES);
    *server.store.list_cut.lock().unwrap() = Some(2);
    let json = server.get("/store/m/?recursive&format=json").await;
    assert_eq!((json.status.as_u16(), json.problem().as_str()), (502, "backend-failed"));
    for cut in [2, 0] {
        *server.store.list_cut.lock().unwrap() = Some(cut);
        assert_eq!(server.get("/store/m/?recursive").await.problem(), "backend-failed");
    }
}

#[tokio::test]
async fn a_missing_key_is_checked_as_a_prefix_only_where_a_client_may_mean_one() {
    let server = Server::new(VALUES);
    for (url, headers, status, asked) in [
        ("/store/m/a", &[][..], 301, &["get", "list_prefix"][..]),
        ("/store/m/a/c/9", &[][..], 404, &["get", "list_prefix"][..]),
        ("/store/m/a", &[("range", "bytes=0-9")][..], 404, &["get"][..]),
        ("/store/m/a/c/9", &[("range", "bytes=-9")][..], 404, &["get"][..]),
        ("/store/m/a/.zarray", &[][..], 404, &["get"][..]),
        ("/store/m/b/zarr.json", &[][..], 404, &["get"][..]),
        ("/store/m/.zgroup", &[][..], 404, &["get"][..]),
        ("/store/m/a/.zattrs", &[][..], 404, &["get"][..]),
        ("/store/m/.zmetadata", &[][..], 404, &["get"][..]),
    ] {
        assert_eq!(server.send("GET", url, headers).await.status.as_u16(), status, "{url}");
        assert_eq!(server.store.take_asked(), asked, "{url}");
    }
}

#[tokio::test]
async fn deleting_a_key_does_not_delete_a_prefix_of_the_same_name() {
    let server = Server::new(VALUES);
    assert_eq!(server.send("DELETE", "/store/m/a", &[]).await.status.as_u16(), 204);
    assert_eq!(server.store.take_asked(), ["erase"]);
    assert!(server.store.value("a/c/0").is_some());
    assert_eq!(server.send("DELETE", "/store/m/a/", &[]).await.status.as_u16(), 204);
    assert!(server.store.value("a/c/0").is_none() && server.store.value("zarr.json").is_some());
}

#[tokio::test]
async fn a_listing_is_fetched_only_as_far_as_it_is_read() {
    let server = Server::new(&[]);
    (0..20_000).for_each(|number| drop(server.store.insert(&format!("d/{number:05}"), Bytes::new())));
    for (method, url, depth) in [
        ("GET", "/store/m/d/", ""),
        ("GET", "/store/m/?recursive", ""),
        ("PROPFIND", "/store/m/d/", "1"),
        ("PROPFIND", "/store/m/", "infinity"),
    ] {
        server.store.taken.store(0, Ordering::Relaxed);
        let request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(url);
        let request = request.header("depth", depth).body(Body::empty()).unwrap();
        let mut body = server.site.handle(request, Peer::LOOPBACK).await.into_body().into_data_stream();
        let mut held = 0;
        for _ in 0..2 {
            held = held.max(body.try_next().await.unwrap().unwrap().len());
        }
        let taken = server.store.taken.load(Ordering::Relaxed);
        assert!(taken < 5_000, "{method} {url}: {taken} of 20000 entries for two parts of the answer");
        assert!(held < 70 << 10, "{method} {url}: {held} bytes at once");
        while body.try_next().await.unwrap().is_some() {}
        assert_eq!(server.store.taken.load(Ordering::Relaxed), 20_000);
    }
}

#[tokio::test]
async fn a_page_takes_no_more_of_a_listing_than_it_shows() {
    let server = Server::new(&[]);
    (0..5_000).for_each(|number| drop(server.store.insert(&format!("d/{number:05}"), Bytes::new())));
    for url in [
        "/store/m/d/?format=json&limit=10&after=d/02000",
        "/store/m/?format=json&recursive&limit=10&after=d/02000",
        "/s3/m?list-type=2&prefix=d/&delimiter=/&max-keys=10&start-after=d/02000",
        "/s3/m?list-type=2&prefix=d/0202&delimiter=/&max-keys=10",
        "/s3/m?list-type=2&prefix=d/0202&max-keys=10",
    ] {
        server.store.taken.store(0, Ordering::Relaxed);
        let answer = server.get(url).await;
        assert_eq!(
            answer.text().matches("etag\":").count().max(answer.text().matches("<Key>").count()),
            10,
            "{url}"
        );
        let taken = server.store.taken.load(Ordering::Relaxed);
        assert!((10..=11).contains(&taken), "{url}: {taken}");
    }
}

#[tokio::test]
async fn a_long_listing_that_fails_is_cut_off() {
    let server = Server::new(&[]);
    (0..20_000).for_each(|number| drop(server.store.insert(&format!("d/{number:05}"), Bytes::new())));
    for (cut, begins) in [(5, false), (15_000, true)] {
        *server.store.list_cut.lock().unwrap() = Some(cut);
        for (method, url, depth) in [
            ("GET", "/store/m/d/", ""),
            ("GET", "/store/m/?recursive", ""),
            ("PROPFIND", "/store/m/d/", "1"),
            ("PROPFIND", "/store/m/", "infinity"),
        ] {
            let answer = server.send(method, url, &[("depth", depth)]).await;
            if begins {
                assert!(answer.status.is_success() && answer.body.is_err(), "{method}: {}", answer.status);
            } else {
                assert_eq!(answer.status.as_u16(), 502, "{method}");
            }
        }
    }
}
