//! Pages of other origins, and pages that use DNS rebinding: they write nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zarrd::auth::Scope;
use zarrd::http::{CorsOptions, HttpOptions};
use zarrd::services::Mount;

use super::{access, ask, filled, grant, known, server, token};
use crate::support::server::Server;

/// Requests that write: method, URL, headers, body, and the status where they are allowed.
type Write = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str, u16);

const WRITES: [Write; 9] = [
    ("PUT", "/store/m/new", &[], "x", 201),
    ("PATCH", "/store/m/new", &[("content-range", "bytes 0-0/*")], "y", 204),
    ("COPY", "/store/m/new", &[("destination", "/store/m/copy")], "", 201),
    ("MOVE", "/store/m/copy", &[("destination", "/store/m/moved")], "", 201),
    ("MKCOL", "/store/m/folder", &[], "", 201),
    ("POST", "/v1/partial/m", &[], r#"{"set": [{"key": "new", "offset": 0, "base64": "AA=="}]}"#, 200),
    ("POST", "/v1/erase/m", &[], r#"{"keys": ["moved"]}"#, 200),
    ("DELETE", "/store/m/new", &[], "", 204),
    ("DELETE", "/store/m/g/", &[], "", 204),
];

/// Each is answered with its own status, or all are refused like this.
async fn all(server: &Server, headers: &[(&str, &str)], refused: Option<(u16, &str)>) -> Vec<String> {
    let mut details = Vec::new();
    for (method, url, own, body, status) in WRITES {
        let headers = [own, headers].concat();
        let answer = ask(server, method, url, &headers, body).await;
        match refused {
            Some((status, code)) => {
                details.push(answer.refuses(status, code, &format!("{method} {url} {headers:?}")));
            }
            None => assert_eq!(answer.status, status, "{method} {url} {headers:?}: {:?}", answer.body),
        }
    }
    details
}

async fn open(http: HttpOptions) -> Server {
    let mount = async |name: &str| Mount {
        writable: true,
        allow_prefix_delete: true,
        ..Mount::read_only(name, filled().await)
    };
    let rooted = Mount { hosts: vec!["Own.Example.".to_owned()], ..mount("rooted").await };
    let mut builder = Server::build(mount("m").await).beside(rooted);
    builder.http = http;
    builder.finish()
}

fn cors(origins: &[&str], writes: bool) -> HttpOptions {
    let origins = origins.iter().map(|&origin| origin.to_owned()).collect();
    HttpOptions {
        cors: CorsOptions { allowed_origins: origins, allow_writes: writes, ..CorsOptions::default() },
        ..HttpOptions::default()
    }
}

#[tokio::test]
async fn a_page_that_uses_dns_rebinding_writes_nothing() {
    for host in [
        "evil.example",
        "evil.example:8000",
        "EVIL.example.",
        "localhost.evil.example",
        "127.0.0.1.nip.example",
    ] {
        let server = open(HttpOptions::default()).await;
        let origin = format!("http://{}", host.to_ascii_lowercase());
        let refused = Some((421, "unknown-host"));
        for detail in all(&server, &[("host", host), ("origin", &origin)], refused).await {
            assert!(detail.contains("`http.hosts`"), "{detail}");
        }
        // It may read public content.
        let answer =
            ask(&server, "GET", "/store/m/zarr.json", &[("host", host), ("origin", &origin)], "").await;
        assert_eq!(answer.status, 200, "{host}");
        let get = r#"{"get": [{"key": "zarr.json"}]}"#;
        let headers = [("host", host), ("origin", &*origin)];
        assert_eq!(ask(&server, "POST", "/v1/partial/m", &headers, get).await.status, 200, "{host}");
        assert_eq!(ask(&server, "GET", "/store/m/new", &headers, "").await.status, 404, "{host}: written");
    }
}

#[tokio::test]
async fn a_publicly_writable_mount_refuses_dns_rebinding_beside_tokens() {
    let (server, _) = server(
        json!({ "tokens": { "a": known("a", json!([grant("m", "", &["read", "write", "delete"])])) } }),
        &[("m", &[Scope::Read, Scope::Write, Scope::Delete])],
    )
    .await;
    let evil = [("host", "evil.example"), ("origin", "http://evil.example")];
    all(&server, &evil, Some((421, "unknown-host"))).await;
    // The holder of a token is known, by whatever name the server is reached.
    let bearer = format!("Bearer {}", token("a"));
    let known = [evil.as_slice(), &[("authorization", &bearer)]].concat();
    all(&server, &known, None).await;
}

#[tokio::test]
async fn pages_of_the_server_may_write_under_its_names_and_addresses() {
    let named = HttpOptions { hosts: vec!["Data.Example".to_owned()], ..HttpOptions::default() };
    for host in [
        "localhost",
        "LocalHost:8000",
        "localhost.",
        "zarrd.localhost:8000",
        "127.0.0.1:8000",
        "192.0.2.7",
        "[::1]",
        "[2001:DB8::1]:8000",
        "data.example",
        "DATA.example.:8443",
        "own.example",
    ] {
        // A browser writes the name in lower case, and no port where it is the scheme's own.
        let lower = host.to_ascii_lowercase();
        for (origin, host) in
            [(format!("http://{lower}"), host.to_owned()), (format!("https://{lower}"), host.to_owned())]
        {
            let server = open(named.clone()).await;
            if host == "own.example" {
                let headers = [("host", &*host), ("origin", &*origin)];
                let answer = ask(&server, "PUT", "/new", &headers, "x").await;
                assert_eq!(answer.status, 201, "{host}: {:?}", answer.body);
            } else {
                all(&server, &[("host", &host), ("origin", &origin)], None).await;
            }
        }
    }
    for (host, origin) in [
        ("localhost:80", "http://localhost"),
        ("localhost", "http://localhost:80"),
        ("localhost:443", "https://localhost"),
    ] {
        let server = open(named.clone()).await;
        all(&server, &[("host", host), ("origin", origin)], None).await;
    }
}

#[tokio::test]
async fn pages_of_other_origins_write_only_where_they_are_listed() {
    let bearer = format!("Bearer {}", token("a"));
    let tokens =
        json!({ "tokens": { "a": known("a", json!([grant("m", "", &["read", "write", "delete"])])) } });
    for origin in
        ["https://other.example", "http://localhost:9000", "null", "http://127.0.0.1", "file://", ""]
    {
        for http in [
            cors(&["*"], false),
            cors(&["https://other.example"], false),
            cors(&["https://good.example"], true),
        ] {
            let refused = Some((403, "cross-origin-write"));
            let listed = http.cors.allowed_origins == ["*"];
            let server = open(http).await;
            for headers in [
                vec![("host", "localhost:8000"), ("origin", origin)],
                vec![("host", "localhost:8000"), ("origin", origin), ("origin", "http://localhost:8000")],
            ] {
                if listed {
                    for detail in all(&server, &headers, refused).await {
                        assert!(detail.contains("`http.cors.allow_writes`"), "{detail}");
                    }
                } else {
                    refused_quietly(&server, &headers).await;
                }
            }
        }
        // With a token too, which the page may have stolen.
        let (server, _) = server(tokens.clone(), &[]).await;
        let headers = [("host", "any.example"), ("origin", origin), ("authorization", &bearer)];
        all(&server, &headers, Some((403, "cross-origin-write"))).await;
    }
    for http in [cors(&["*"], true), cors(&["https://other.example"], true)] {
        let server = open(http).await;
        all(&server, &[("host", "localhost:8000"), ("origin", "https://other.example")], None).await;
    }
}

/// Every write is 403; the page is not even let to read that.
async fn refused_quietly(server: &Server, headers: &[(&str, &str)]) {
    for (method, url, own, body, _) in WRITES {
        let answer = ask(server, method, url, &[own, headers].concat(), body).await;
        answer.is_problem(403, "cross-origin-write", &format!("{method} {url}"));
    }
}

#[tokio::test]
async fn clients_other_than_browsers_may_write_under_any_host_name() {
    for host in ["zarrd", "zarrd:8000", "evil.example", "data.internal"] {
        let server = open(HttpOptions::default()).await;
        all(&server, &[("host", host)], None).await;
    }
    all(&open(HttpOptions::default()).await, &[], None).await;
    // A browser without an `Origin` header still identifies itself.
    let server = open(HttpOptions::default()).await;
    let headers = [("host", "evil.example"), ("sec-fetch-site", "same-origin")];
    all(&server, &headers, Some((421, "unknown-host"))).await;
    let headers = [("host", "localhost"), ("sec-fetch-site", "cross-site")];
    all(&server, &headers, Some((403, "cross-origin-write"))).await;
}

#[tokio::test]
async fn reads_by_post_are_allowed_for_pages_of_every_origin() {
    let server = open(HttpOptions::default()).await;
    let headers = [("host", "evil.example"), ("origin", "https://other.example")];
    let answer = ask(&server, "POST", "/v1/vectors/m/arr/vertices", &headers, "{}").await;
    assert!(![403, 421].contains(&answer.status.as_u16()), "{:?}", answer.body);
}

/// The method and a URL of every route that writes.
fn writes_of_the_api() -> Vec<(String, String)> {
    let api: Value = serde_json::from_str(&zarrd::web::openapi()).unwrap();
    let mut writes = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        if ["/v1/vectors/", "/v1/partial/", "/v1/batch/"].iter().any(|reads| path.starts_with(reads)) {
            continue;
        }
        for method in
            ["put", "post", "patch", "delete"].iter().filter(|method| methods.get(**method).is_some())
        {
            let url = path.replace("{mount}", "m").replace("{key}", "arr/c/0");
            let url = url.replace("{prefix}", "arr").replace("{path}", "arr");
            // Without `append` it reads.
            let is_append = *method == "post" && path.starts_with("/v1/data/");
            writes.push((method.to_uppercase(), if is_append { url + "?append=0" } else { url }));
        }
    }
    assert!(writes.len() >= 9, "{writes:?}");
    writes
}

#[tokio::test]
async fn every_route_that_writes_refuses_pages_of_unlisted_origins() {
    let everything = ["read", "list", "write", "delete", "admin"];
    let tokens = BTreeMap::from([("all", known("all", json!([grant("m", "", &everything)])))]);
    let (server, web) = server(json!({}), &[]).await;
    server.set_access(access(json!({ "tokens": tokens }), &[], &web));
    let bearer = format!("Bearer {}", token("all"));
    let headers = [("host", "localhost"), ("origin", "https://evil.example"), ("authorization", &*bearer)];
    for (method, url) in writes_of_the_api() {
        let answer = ask(&server, &method, &url, &headers, "").await;
        if url.starts_with("/s3/") {
            let text = String::from_utf8_lossy(&answer.body);
            assert_eq!(answer.status, 403, "{method} {url}");
            assert!(text.contains("<Code>AccessDenied</Code>") && text.contains("allow_writes"), "{text}");
        } else {
            answer.refuses(403, "cross-origin-write", &format!("{method} {url}"));
        }
    }
}

#[tokio::test]
async fn every_route_that_writes_refuses_pages_that_use_dns_rebinding() {
    let server = open(HttpOptions::default()).await;
    let headers = [("host", "evil.example"), ("origin", "http://evil.example")];
    for (method, url) in writes_of_the_api() {
        let answer = ask(&server, &method, &url, &headers, "").await;
        if url.starts_with("/s3/") {
            assert_eq!(answer.status, 421, "{method} {url}: {:?}", answer.body);
        } else {
            answer.refuses(421, "unknown-host", &format!("{method} {url}"));
        }
    }
}
