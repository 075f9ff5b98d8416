//! Pages of other origins (Fetch standard, "CORS protocol"): listed origins may read every response, others none.

use axum::http::Method;
use zarrd::http::{CorsOptions, HttpOptions};
use zarrd::services::Mount;

use crate::support::hierarchy::{Array, memory};
use crate::support::process::{run, text};
use crate::support::server::{Answer, Server, put};

const LISTED: &str = "https://good.com";

/// Origins that resemble the listed one.
const OTHERS: [&str; 14] = [
    "https://good.com.evil.com",
    "https://evilgood.com",
    "http://good.com",
    "https://good.com:444",
    "https://good.com:443",
    "https://good.com/",
    "https://GOOD.com",
    "https://good.com.",
    "https://good.com@evil.com",
    "https://evil.com#https://good.com",
    "https://xn--good.com",
    "https://good.com, https://evil.com",
    "null",
    "*",
];

/// A request, and how it is answered: method, path, headers, status.
type ExpectedRequest = (&'static str, &'static str, &'static [(&'static str, &'static str)], u16);

/// Requests of all kinds.
const REQUESTS: [ExpectedRequest; 17] = [
    ("GET", "/store/m/text", &[], 200),
    ("HEAD", "/store/m/text", &[], 200),
    ("GET", "/store/m/text", &[("range", "bytes=0-1")], 206),
    ("GET", "/store/m/text", &[("range", "bytes=99-")], 416),
    ("GET", "/store/m/text", &[("if-none-match", "*")], 304),
    ("GET", "/store/m/text", &[("if-match", "\"x\"")], 412),
    ("GET", "/store/m/a", &[], 301),
    ("GET", "/store/m/%ff", &[], 400),
    ("GET", "/store/m/none", &[], 404),
    ("GET", "/nowhere", &[], 404),
    ("GET", "/v1/data/m/a", &[], 200),
    ("GET", "/v1/data/m/a", &[("accept", "image/bmp")], 406),
    ("GET", "/v1/nodes/m/a", &[], 200),
    ("PUT", "/store/m/text", &[], 405),
    ("TRACE", "/store/m/text", &[], 405),
    ("OPTIONS", "/store/m/text", &[], 204),
    ("GET", "/healthz", &[], 200),
];

async fn server(cors: CorsOptions) -> Server {
    let store = memory();
    Array::of(&[4, 4]).store(&store, "a").await;
    put(&store, "text", "0123456789").await;
    let mut builder = Server::build(Mount::read_only("m", store));
    builder.http = HttpOptions { cors, ..HttpOptions::default() };
    builder.finish()
}

fn listed() -> CorsOptions {
    CorsOptions {
        allowed_origins: vec![LISTED.to_owned(), "http://localhost:8080".to_owned()],
        ..CorsOptions::default()
    }
}

async fn asked(
    server: &Server,
    origin: Option<&str>,
    (method, url, headers, status): ExpectedRequest,
) -> Answer {
    let mut sent = headers.to_vec();
    sent.extend(origin.map(|origin| ("origin", origin)));
    // Writes of other origins are refused before the method is checked.
    let status = if method == "PUT" && origin.is_some() { 403 } else { status };
    let answer = server.request(method, url, &sent, axum::body::Body::empty()).await;
    assert_eq!(answer.status.as_u16(), status, "{method} {url}");
    assert!(!answer.headers.contains_key("set-cookie"), "{method} {url}");
    answer
}

/// Whether `Vary` says that the response depends on the origin.
fn varies(answer: &Answer) -> bool {
    let all = answer.headers.get_all("vary").iter().flat_map(|value| value.to_str().unwrap().split(','));
    all.map(str::trim).any(|name| name.eq_ignore_ascii_case("origin"))
}

#[tokio::test]
async fn listed_origins_are_echoed_and_every_response_varies() {
    let server = server(listed()).await;
    for request in REQUESTS {
        for origin in [LISTED, "http://localhost:8080"] {
            let answer = asked(&server, Some(origin), request).await;
            assert_eq!(answer.header("access-control-allow-origin"), origin, "{request:?}");
            assert!(varies(&answer), "{request:?}");
        }
        for origin in OTHERS {
            let answer = asked(&server, Some(origin), request).await;
            assert!(varies(&answer), "{request:?} {origin}");
            let cors_header = answer.headers.keys().find(|name| name.as_str().starts_with("access-control-"));
            assert_eq!(cors_header, None, "{request:?} {origin}");
        }
        let answer = asked(&server, None, request).await;
        assert!(
            varies(&answer) && !answer.headers.contains_key("access-control-allow-origin"),
            "{request:?}"
        );
    }
}

#[tokio::test]
async fn a_wildcard_origin_does_not_vary_and_cors_can_be_off() {
    let any = server(CorsOptions::default()).await;
    let off = server(CorsOptions { allowed_origins: vec![], ..CorsOptions::default() }).await;
    for request in REQUESTS {
        for origin in [Some(LISTED), Some("null"), None] {
            let answer = asked(&any, origin, request).await;
            assert_eq!(answer.header("access-control-allow-origin"), "*", "{request:?}");
            assert!(!answer.headers.contains_key("access-control-allow-credentials") && !varies(&answer));
            let answer = asked(&off, origin, request).await;
            let cors_header = answer.headers.keys().find(|name| name.as_str().starts_with("access-control-"));
            assert_eq!(cors_header, None, "{request:?}");
        }
    }
}

#[tokio::test]
async fn a_preflight_lists_the_headers_that_reads_need() {
    let server = server(listed()).await;
    let headers = [
        ("origin", LISTED),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "range"),
    ];
    let answer = server.ask(Method::OPTIONS, "/store/m/text", &headers).await;
    let allowed: Vec<&str> = answer.header("access-control-allow-headers").split(", ").collect();
    for name in ["Range", "If-None-Match", "If-Match", "Authorization"] {
        assert!(allowed.contains(&name), "{name}: {allowed:?}");
    }
    assert_eq!(answer.header("access-control-max-age"), "86400");
    let exposed = server.ask(Method::GET, "/store/m/text", &headers[..1]).await;
    let exposed: Vec<&str> = exposed.header("access-control-expose-headers").split(", ").collect();
    for name in [
        "ETag",
        "Content-Range",
        "Content-Length",
        "Accept-Ranges",
        "Array-Shape",
        "Array-Data-Type",
        "Array-Dimension-Names",
        "Cache-Status",
        "Retry-After",
        "Server-Timing",
        "X-Request-Id",
    ] {
        assert!(exposed.contains(&name), "{name}: {exposed:?}");
    }
    let wide = CorsOptions { allow_credentials: true, ..listed() };
    let answer = self::server(wide).await.ask(Method::GET, "/store/m/text", &headers[..1]).await;
    assert_eq!(answer.header("access-control-allow-credentials"), "true");
}

#[tokio::test]
async fn a_preflight_lists_every_documented_header_where_pages_may_write() {
    let server = server(CorsOptions { allow_writes: true, ..listed() }).await;
    let headers = [("origin", LISTED), ("access-control-request-method", "POST")];
    let answer = server.ask(Method::OPTIONS, "/v1/data/m/a", &headers).await;
    let allowed = answer.header("access-control-allow-headers").to_ascii_lowercase();
    let document: serde_json::Value = serde_json::from_str(&zarrd::web::openapi()).unwrap();
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.filter_map(|item| item.as_object()).flat_map(|item| item.values());
    let parameters = operations.filter_map(|operation| operation["parameters"].as_array()).flatten();
    let mut names: Vec<String> = parameters
        .filter(|parameter| parameter["in"] == "header")
        .map(|parameter| parameter["name"].as_str().unwrap().to_ascii_lowercase())
        .collect();
    names.extend(["traceparent", "content-encoding", "x-amz-copy-source-if-match"].map(str::to_owned));
    assert!(names.iter().any(|name| name == "idempotency-key"), "{names:?}");
    for name in names {
        assert!(allowed.split(", ").any(|listed| listed == name), "{name}: {allowed}");
    }
}

#[test]
fn credentials_with_a_wildcard_origin_are_refused_at_startup() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    for (rules, line, says) in [
        ("allowed_origins = ['*']\nallow_credentials = true", 3, "by name"),
        ("allowed_origins = ['*', 'https://a.example']", 2, "only entry"),
        ("allowed_origins = ['null']", 2, "`null`"),
        ("allowed_origins = ['https://a.example/']", 2, "`https://a.example/`"),
    ] {
        std::fs::write(&file, format!("[http.cors]\n{rules}\n")).unwrap();
        let output = run(&["serve", "--config", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{rules}: {message}");
        let place = format!("zarrd.toml:{line}: ");
        assert!(message.contains(&place) && message.contains(says), "{rules}: {message}");
    }
}
