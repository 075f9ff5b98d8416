//! Tests of GET and HEAD of keys: bytes, ranges, conditions, paths.

use super::{Headers, Server};

const VALUES: &[(&str, &[u8])] =
    &[("zarr.json", b"{}"), ("a/zarr.json", b"{}"), ("a/c/0", b"0123456789"), ("empty", b"")];

#[tokio::test]
async fn a_value_is_served_whole_with_its_length_version_and_type() {
    let server = Server::new(VALUES);
    let answer = server.get("/store/m/a/c/0").await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, "0123456789"));
    for (name, value) in [
        ("content-length", "10"),
        ("content-type", "application/octet-stream"),
        ("etag", "\"v3\""),
        ("last-modified", "Sun, 09 Sep 2001 01:46:43 GMT"),
        ("accept-ranges", "bytes"),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
        ("content-encoding", ""),
        ("content-range", ""),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert_eq!(server.get("/store/m/a/zarr.json").await.header("content-type"), "application/json");
    let empty = server.get("/store/m/empty").await;
    assert_eq!((empty.status.as_u16(), empty.header("content-length"), empty.text()), (200, "0", ""));
}

#[tokio::test]
async fn one_range_is_served_and_other_forms_are_ignored() {
    let server = Server::new(VALUES);
    for (line, status, content_range, body) in [
        ("bytes=2-4", 206, "bytes 2-4/10", "234"),
        ("bytes=0-0", 206, "bytes 0-0/10", "0"),
        ("bytes=8-", 206, "bytes 8-9/10", "89"),
        ("bytes=8-99", 206, "bytes 8-9/10", "89"),
        ("bytes=-3", 206, "bytes 7-9/10", "789"),
        ("bytes=-99", 206, "bytes 0-9/10", "0123456789"),
        ("bytes=0-18446744073709551615", 206, "bytes 0-9/10", "0123456789"),
        ("bytes=0-99999999999999999999999", 200, "", "0123456789"),
        ("bytes=8-9, 2-4", 200, "", "0123456789"),
        ("bytes=5-2", 200, "", "0123456789"),
        ("items=0-1", 200, "", "0123456789"),
        ("garbage", 200, "", "0123456789"),
    ] {
        let answer = server.send("GET", "/store/m/a/c/0", &[("range", line)]).await;
        assert_eq!(answer.status.as_u16(), status, "{line}");
        assert_eq!((answer.header("content-range"), answer.text()), (content_range, body), "{line}");
        assert_eq!(answer.header("content-length"), body.len().to_string(), "{line}");
        assert_eq!(answer.header("etag"), "\"v3\"", "{line}");
    }
}

#[tokio::test]
async fn a_range_outside_the_value_is_416_with_the_length() {
    let server = Server::new(VALUES);
    for (url, line, content_range) in [
        ("/store/m/a/c/0", "bytes=10-", "bytes */10"),
        ("/store/m/a/c/0", "bytes=10-12", "bytes */10"),
        ("/store/m/a/c/0", "bytes=-0", "bytes */10"),
        ("/store/m/empty", "bytes=0-", "bytes */0"),
        ("/store/m/empty", "bytes=-1", "bytes */0"),
    ] {
        let answer = server.send("GET", url, &[("range", line)]).await;
        assert_eq!(answer.status.as_u16(), 416, "{url} {line}");
        assert_eq!(answer.header("content-range"), content_range);
        assert_eq!(answer.problem(), "range-not-satisfiable");
    }
    let missing = server.send("GET", "/store/m/none", &[("range", "bytes=0-")]).await;
    assert_eq!(missing.status.as_u16(), 404);
}

#[tokio::test]
async fn conditions_come_before_ranges() {
    let server = Server::new(VALUES);
    let (ours, other) = ("\"v3\"", "\"v2\"");
    for if_match in ["", ours, other] {
        for if_none_match in ["", ours, other] {
            for if_range in ["", ours, other, "W/\"v3\"", "Sun, 09 Sep 2001 01:46:43 GMT"] {
                for line in ["", "bytes=2-4", "bytes=99-", "bytes=0-1,3-4"] {
                    let headers = [
                        ("if-match", if_match),
                        ("if-none-match", if_none_match),
                        ("if-range", if_range),
                        ("range", line),
                    ];
                    let sent: Vec<_> = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
                    let answer = server.send("GET", "/store/m/a/c/0", &sent).await;
                    let whole =
                        line.is_empty() || line.contains(',') || !(if_range.is_empty() || if_range == ours);
                    let expected = match (if_match == other, if_none_match == ours, whole, line) {
                        (true, ..) => 412,
                        (_, true, ..) => 304,
                        (_, _, true, _) => 200,
                        (.., "bytes=99-") => 416,
                        _ => 206,
                    };
                    assert_eq!(answer.status.as_u16(), expected, "{sent:?}");
                    if expected == 304 {
                        assert_eq!((answer.header("etag"), answer.text()), (ours, ""));
                        assert_eq!(answer.header("content-length"), "");
                    }
                    // HEAD ignores ranges and agrees in all else.
                    let head = server.send("HEAD", "/store/m/a/c/0", &sent).await;
                    let expected = if matches!(expected, 206 | 416) { 200 } else { expected };
                    assert_eq!(head.status.as_u16(), expected, "{sent:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn conditions_on_a_missing_value_are_ignored() {
    let server = Server::new(VALUES);
    for header in ["if-match", "if-none-match"] {
        for tag in ["*", "\"x\"", "garbage"] {
            let answer = server.send("GET", "/store/m/none", &[(header, tag)]).await;
            assert_eq!(answer.status.as_u16(), 404, "{header} {tag}");
        }
    }
}

#[tokio::test]
async fn a_read_makes_only_the_backend_calls_that_it_needs() {
    let server = Server::new(VALUES);
    let verbs: [(Headers<'_>, &[&str]); 7] = [
        (&[], &["get"]),
        (&[("range", "bytes=0-1")], &["get"]),
        (&[("if-match", "\"v3\""), ("range", "bytes=0-1")], &["get"]),
        (&[("if-match", "\"v2\"")], &["get"]),
        (&[("if-none-match", "\"v3\"")], &["head"]),
        (&[("if-none-match", "\"v2\"")], &["head", "get"]),
        (&[("if-range", "\"v3\""), ("range", "bytes=0-1")], &["head", "get"]),
    ];
    for (headers, asked) in verbs {
        server.send("GET", "/store/m/a/c/0", headers).await;
        assert_eq!(server.store.take_asked(), asked, "{headers:?}");
    }
    server.send("HEAD", "/store/m/a/c/0", &[]).await;
    assert_eq!(server.store.take_asked(), ["head"]);
    // A missing document that clients probe for causes no listing.
    server.get("/store/m/a/.zarray").await;
    assert_eq!(server.store.take_asked(), ["get"]);
}

#[tokio::test]
async fn a_value_that_changes_between_head_and_read_is_retried_and_never_mixed() {
    let server = Server::new(VALUES);
    *server.store.flips.lock().unwrap() = 2;
    let answer = server.send("GET", "/store/m/a/c/0", &[("if-none-match", "\"old\"")]).await;
    assert_eq!((answer.status.as_u16(), answer.header("etag")), (200, "\"v6\""));
    *server.store.flips.lock().unwrap() = 99;
    let answer = server.send("GET", "/store/m/a/c/0", &[("if-none-match", "\"old\"")]).await;
    assert_eq!(answer.status.as_u16(), 503);
}

#[tokio::test]
async fn a_missing_key_is_404_and_a_prefix_without_its_slash_is_redirected() {
    let server = Server::new(VALUES);
    for method in ["GET", "HEAD"] {
        for url in ["/store/m/none", "/store/m/a/c/1", "/store/m/.zarray", "/store/m/zarr.json/x"] {
            let answer = server.send(method, url, &[]).await;
            assert_eq!(answer.status.as_u16(), 404, "{method} {url}");
            assert_eq!(answer.header("access-control-allow-origin"), "*");
        }
        for (url, location) in [
            ("/store/m/a", "./a/"),
            ("/store/m/a/c?recursive&x=1", "./c/?recursive&x=1"),
            ("/store/m", "./m/"),
        ] {
            let answer = server.send(method, url, &[]).await;
            assert_eq!(
                (answer.status.as_u16(), answer.header("location")),
                (301, location),
                "{method} {url}"
            );
            assert_eq!(answer.header("access-control-allow-origin"), "*");
            assert_eq!(answer.header("cache-control"), "no-cache");
        }
    }
    for method in ["PUT", "DELETE"] {
        assert_ne!(server.send(method, "/store/w/a", &[]).await.status.as_u16(), 301);
    }
}

#[tokio::test]
async fn a_prefix_that_cannot_be_listed_is_still_a_missing_key() {
    let server = Server::new(VALUES);
    *server.store.list_cut.lock().unwrap() = Some(0);
    assert_eq!(server.get("/store/m/a").await.status.as_u16(), 404);
}

#[tokio::test]
async fn hostile_paths_never_leave_the_mount() {
    let server =
        Server::new(&[("%2e%2e/x", b"odd"), ("a+b", b"plus"), ("a b", b"space"), ("zarr.json", b"{}")]);
    for (url, status) in [
        ("/store/m/../m/zarr.json", 400),
        ("/store/m/%2e%2e/zarr.json", 400),
        ("/store/m/.%2E/zarr.json", 400),
        ("/store/m/./zarr.json", 400),
        ("/store/m/a%2f..%2fzarr.json", 400),
        ("/store/m/%2Fetc%2Fpasswd", 400),
        ("/store/m/zarr.json%00", 400),
        ("/store/m/a%0d%0ab", 400),
        ("/store/m/%ff", 400),
        ("/store/m/%", 400),
        ("/store/m/%g0", 400),
        ("/store/%2e%2e/zarr.json", 400),
        ("/store/m/%252e%252e/x", 200),
        ("/store/m/%2e%2e%2fx", 400),
        ("/store/m/a+b", 200),
        ("/store/m/a%2Bb", 200),
        ("/store/m/a%20b", 200),
        ("/store/m//zarr.json", 200),
        ("/store/m///zarr.json?x=%ff&limit=no", 200),
        ("/store/M/zarr.json", 404),
        ("/store/mm/zarr.json", 404),
        ("/store/m%20/zarr.json", 404),
        ("/store/m/ZARR.json", 404),
        ("/storem/zarr.json", 404),
    ] {
        let answer = server.get(url).await;
        assert_eq!(answer.status.as_u16(), status, "{url}");
        if status >= 400 {
            answer.problem();
        }
    }
    assert_eq!(server.get("/store/none/zarr.json").await.problem(), "unknown-mount");
}

#[tokio::test]
async fn head_has_the_headers_of_get_on_every_route() {
    let server = Server::new(VALUES);
    for url in [
        "/",
        "/v1/mounts",
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/docs/",
        "/store/m",
        "/store/m/",
        "/store/m/?format=json",
        "/store/m/?format=nonsense",
        "/store/m/a/?recursive",
        "/store/m/none/",
        "/store/m/a",
        "/store/m/a/c/0",
        "/store/m/empty",
        "/store/m/zarr.json",
        "/store/m/none",
        "/store/none/x",
        "/store/m/%ff",
        "/nowhere",
    ] {
        let (get, head) = (server.get(url).await, server.send("HEAD", url, &[]).await);
        assert_eq!(get.status, head.status, "{url}");
        assert_eq!(head.text(), "", "{url}");
        let comparable = |mut headers: axum::http::HeaderMap| {
            headers.remove("x-request-id");
            headers
        };
        assert_eq!(comparable(get.headers), comparable(head.headers), "{url}");
    }
}
