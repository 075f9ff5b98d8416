//! Tests of the middleware: problems, CORS, limits, health, the API document.

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;

use super::Server;
use crate::http::{CorsOptions, HttpOptions, Peer};
use crate::store::StoreError;
use crate::web::openapi;

#[tokio::test]
async fn every_status_carries_the_cross_origin_headers() {
    let cors = CorsOptions { allow_writes: true, ..Default::default() };
    let options = HttpOptions { max_url_size: 100, cors, ..Default::default() };
    let server = Server::with_options(&[("a/b", b"0123456789")], options);
    let long = format!("/store/m/{}", "x".repeat(100));
    let mut seen = std::collections::BTreeSet::new();
    for (method, url, headers) in [
        ("GET", "/store/m/a/b", &[][..]),
        ("GET", "/store/m/a/b", &[("range", "bytes=0-1")][..]),
        ("GET", "/store/m/a/b", &[("range", "bytes=10-")][..]),
        ("GET", "/store/m/a/b", &[("if-none-match", "*")][..]),
        ("GET", "/store/m/a/b", &[("if-match", "\"x\"")][..]),
        ("GET", "/store/m/a", &[][..]),
        ("GET", "/store/m/", &[("accept", "image/png")][..]),
        ("GET", "/store/m/%ff", &[][..]),
        ("GET", "/store/m/none", &[][..]),
        ("GET", "/nowhere", &[][..]),
        ("GET", &long, &[][..]),
        ("PUT", "/store/m/new", &[][..]),
        ("PUT", "/store/m/new", &[][..]),
        ("PUT", "/store/m/new", &[("content-encoding", "gzip")][..]),
        ("PUT", "/store/m/new", &[("content-length", "999999999999")][..]),
        ("PUT", "/store/r/new", &[][..]),
        ("TRACE", "/store/m/a/b", &[][..]),
    ] {
        let mut sent = vec![("origin", "https://viewer.example")];
        sent.extend_from_slice(headers);
        let answer = server.send(method, url, &sent).await;
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{method} {url}");
        assert_eq!(answer.header("access-control-expose-headers"), "*", "{method} {url}");
        assert!(!answer.headers.contains_key("set-cookie") && answer.headers.contains_key("x-request-id"));
        seen.insert(answer.status.as_u16());
    }
    *server.store.fault.lock().unwrap() = Some(StoreError::WrongLength);
    let failed = server.get("/store/m/a/b").await;
    assert_eq!((failed.status.as_u16(), failed.header("access-control-allow-origin")), (502, "*"));
    let statuses = [200, 201, 204, 206, 301, 304, 400, 404, 405, 406, 412, 413, 414, 415, 416];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), statuses);
}

#[tokio::test]
async fn options_never_touches_a_backend() {
    let server = Server::new(&[("a", b"1")]);
    let preflight = [
        ("origin", "https://viewer.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "range"),
    ];
    for (url, allow) in [
        ("/store/m/a", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE"),
        ("/store/r/none", "GET, HEAD, OPTIONS, PROPFIND"),
        ("/store/m/", "GET, HEAD, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE"),
        ("/store/none/a", "GET, HEAD, OPTIONS"),
        ("/store/m/%ff", "GET, HEAD, OPTIONS"),
        ("/nowhere", "GET, HEAD, OPTIONS"),
        ("/v1/mounts", "GET,HEAD"),
        ("/v1/data/m/a", "GET, HEAD, PUT, POST, OPTIONS"),
        ("/v1/data/r/a", "GET, HEAD, POST, OPTIONS"),
        ("/v1/chunk/r/a/c/0", "GET, HEAD, OPTIONS"),
        ("/v1/nodes/r/a", "GET, HEAD, OPTIONS"),
    ] {
        let answer = server.send("OPTIONS", url, &preflight).await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (204, allow), "{url}");
        assert_eq!(answer.header("access-control-allow-methods"), "GET, HEAD, OPTIONS, PROPFIND");
        assert_eq!(answer.header("access-control-max-age"), "86400");
        for name in
            ["Range", "If-None-Match", "If-Match", "Authorization", "Content-Type", "Cache-Control", "Depth"]
        {
            assert!(answer.header("access-control-allow-headers").split(", ").any(|listed| listed == name));
        }
    }
    assert_eq!(server.store.take_asked(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_url_over_the_length_limit_is_414() {
    let server = Server::with_options(&[], HttpOptions { max_url_size: 64, ..Default::default() });
    for (length, status) in [(63, 404), (64, 404), (65, 414)] {
        let url = format!("/store/m/{}", "x".repeat(length - "/store/m/".len()));
        assert_eq!(server.get(&url).await.status.as_u16(), status, "{length}");
    }
}

#[tokio::test]
async fn trace_and_connect_are_refused_everywhere() {
    let server = Server::new(&[("a", b"1")]);
    for (method, url) in [("TRACE", "/store/m/a"), ("TRACE", "/"), ("CONNECT", "example.com:443")] {
        let answer = server.send(method, url, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "GET, HEAD, OPTIONS"), "{method}");
    }
}

#[tokio::test]
async fn a_valid_request_id_is_kept() {
    let server = Server::new(&[]);
    let answer = server.send("GET", "/store/m/none", &[("x-request-id", "abc-1")]).await;
    assert_eq!(answer.header("x-request-id"), "abc-1");
    assert_eq!(answer.json()["request_id"], "abc-1");
}

#[tokio::test]
async fn a_spent_budget_is_503_until_a_body_ends_except_for_health() {
    let options = HttpOptions {
        inflight_size: 2048,
        streamed_response_size: 1024,
        admission_timeout: Duration::from_millis(5),
        ..Default::default()
    };
    let server = Server::with_options(&[("a", b"0123456789")], options);
    let open = || async {
        let request = Request::get("/store/m/a").body(Body::empty()).unwrap();
        server.site.handle(request, Peer::LOOPBACK).await
    };
    let (first, second) = (open().await, open().await);
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    let refused = server.get("/store/m/a").await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (503, "overloaded"));
    assert!((1..=5).contains(&refused.header("retry-after").parse::<u32>().unwrap()));
    for url in ["/healthz", "/readyz", "/v1/mounts", "/", "/openapi.json"] {
        assert_eq!(server.get(url).await.status.as_u16(), 200, "{url}");
    }
    assert_eq!(server.send("OPTIONS", "/store/m/a", &[]).await.status.as_u16(), 204);
    drop(first);
    assert_eq!(server.get("/store/m/a").await.status.as_u16(), 200);
    drop(second);
}

#[tokio::test]
async fn readiness_reports_draining_and_failed_backends() {
    let server = Server::new(&[]);
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status.as_u16(), ready.json()["mounts"]["m"].as_str()), (200, Some("ready")));
    // Each backend is checked once for all mounts, and not again at once.
    server.get("/v1/mounts").await;
    assert_eq!(server.store.take_asked(), ["check"; 3]);
    server.state.lifecycle.set_draining();
    let draining = server.get("/readyz").await;
    assert_eq!((draining.status.as_u16(), draining.problem().as_str()), (503, "draining"));
    assert_eq!(server.get("/healthz").await.status.as_u16(), 200);
    let dead = Server::new(&[]);
    *dead.store.fault.lock().unwrap() = Some(StoreError::WrongLength);
    assert_eq!(dead.get("/readyz").await.problem(), "unavailable");
    assert_eq!(dead.get("/v1/mounts").await.json()["mounts"][0]["state"], "unavailable");
}

#[tokio::test]
async fn the_list_of_mounts_and_the_service_document_link_to_each_mount() {
    let server = Server::new(&[]);
    let mounts = server.get("/v1/mounts").await.json();
    assert_eq!(
        mounts["mounts"][0],
        serde_json::json!({"name": "m", "store": "/store/m/", "kind": "memory", "writable": true,
            "allow_prefix_delete": true, "state": "ready", "links": {"store": "/store/m/", "plain": "/plain/m/",
            "unshard": "/unshard/m/", "rechunk": "/rechunk/m/auto/raw/",
            "pyramid": "/pyramid/m/auto/auto/raw/", "nodes": "/v1/nodes/m/", "data": "/v1/data/m/"},
            "reads": {"memory": {"hits": 0, "misses": 0}}})
    );
    assert_eq!(
        (&mounts["mounts"][1]["writable"], mounts["mounts"].as_array().unwrap().len()),
        (&false.into(), 3)
    );
    let document = server.get("/").await.json();
    assert_eq!(document["stores"], serde_json::json!(["/store/m/", "/store/r/", "/store/w/"]));
    let page = server.send("GET", "/", &[("accept", "text/html")]).await;
    assert!(page.text().contains("<a href=\"/store/r/\">"));
}

#[tokio::test]
async fn the_script_of_pages_is_revalidated_where_an_old_page_names_it() {
    let server = Server::new(&[]);
    let home = server.send("GET", "/", &[("accept", "text/html")]).await;
    let path = home.text().split('"').find(|part| part.starts_with("/view/-/")).unwrap().to_owned();
    let script = server.get(&path).await;
    assert!(script.header("cache-control").contains("immutable"));
    for path in [&*path, "/view/-/before/page.js"] {
        let again = server.send("GET", path, &[("if-none-match", script.header("etag"))]).await;
        assert_eq!((again.status.as_u16(), again.text()), (304, ""), "{path}");
    }
    assert_eq!(server.get("/view/-/before/page.js").await.header("cache-control"), "no-cache");
}

#[tokio::test]
async fn the_documentation_is_served_without_the_internet() {
    let server = Server::new(&[]);
    assert_eq!(server.get("/openapi.json").await.text(), openapi());
    let page = server.get("/docs/").await;
    assert!(
        page.status.is_success() && !page.text().contains("http://") && !page.text().contains("https://")
    );
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    let script = server.get("/docs/swagger-initializer.js").await;
    assert!(script.text().contains("/openapi.json") && script.text().contains("validatorUrl: \"none\""));
    assert_eq!(server.get("/docs/nothing").await.problem(), "not-found");
}

#[test]
fn the_checked_in_api_document_matches_the_routes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/openapi.json");
    let generated = openapi();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &generated).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == generated,
        "openapi/openapi.json differs from the routes; run the test with UPDATE=1"
    );
}

#[test]
fn every_reference_in_the_api_document_is_to_a_schema_of_it() {
    let text = openapi();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let schemas = &document["components"]["schemas"];
    let references = text.split("\"#/components/schemas/").skip(1);
    for name in references.map(|rest| rest.split('"').next().unwrap()) {
        assert!(schemas.get(name).is_some(), "{name}");
    }
}
