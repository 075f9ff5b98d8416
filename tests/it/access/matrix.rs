//! Every route and method of the router's own list, for every kind of caller.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ask, grant, known, server, token};

/// A route of the list with values for its parameters: the URL, and the methods it accepts.
fn sample(path: &str) -> (String, &'static str) {
    let node = if path.contains("chunk") { "arr/c/0" } else { "arr" };
    let url = path
        .replace("{mount}", "m")
        .replace("{method}", "auto")
        .replace("{chunks}", "auto")
        .replace("{codec}", "raw")
        .replace("{tms}/{z}/{x}/{y}", "native/0/0/0")
        .replace("{key}", "arr/zarr.json")
        .replace("{path}", node)
        .replace("{prefix}", "arr");
    let body = match path {
        "/v1/partial/{mount}" => r#"{"get": [{"key": "arr/c/0"}]}"#,
        "/v1/batch/{mount}" => r#"{"items": [{"path": "arr"}]}"#,
        "/v1/erase/{mount}" => r#"{"keys": ["none"]}"#,
        _ => "",
    };
    (url, body)
}

/// The scopes that a caller needs for a method of a route: none of them where it is enough to have some right to the mount.
/// `None` if the method is public.
fn needed(path: &str, method: &str) -> Option<&'static [&'static str]> {
    if !path.contains("{mount}") {
        return None;
    }
    let is_listing = path.ends_with('/') || !path.contains("{key}");
    let is_store = ["/store/", "/plain/", "/unshard/", "/rechunk/", "/pyramid/", "/s3/"]
        .iter()
        .any(|word| path.starts_with(word));
    Some(match method {
        "OPTIONS" => return None,
        // Each key and each selection of the body has a result of its own; and a bucket is only said to be there.
        "POST" | "PUT" if path == "/s3/{mount}" => &[],
        "POST" if path == "/v1/batch/{mount}" => &[],
        "POST" if path.starts_with("/s3/") => &["write"],
        "GET" | "HEAD" if is_store && is_listing => &["list"],
        "PUT" | "PATCH" | "MKCOL" => &["write"],
        "DELETE" | "POST" if path.starts_with("/v1/cache") => &["admin"],
        "DELETE" => &["delete"],
        "PROPFIND" => &["list"],
        "COPY" => &["read", "write"],
        "MOVE" => &["read", "write", "delete"],
        "POST" if path.starts_with("/v1/erase") => &["delete"],
        "GET" | "HEAD" | "POST" => &["read"],
        other => panic!("the table does not say what {other} {path} needs"),
    })
}

const SCOPES: [&str; 5] = ["read", "list", "write", "delete", "admin"];

#[tokio::test]
async fn every_method_of_every_route_is_limited_to_callers_with_the_right() {
    let api: Value = serde_json::from_str(&zarrd::web::openapi()).unwrap();
    let mut routes: Vec<(String, String)> = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        // Documented apart, and served by the route of all questions.
        if path.starts_with("/v1/vectors/{mount}/{path}/") {
            continue;
        }
        let known = ["get", "head", "put", "post", "patch", "delete"];
        let listed = methods.as_object().unwrap().keys().filter(|method| known.contains(&method.as_str()));
        routes.extend(listed.map(|method| (path.clone(), method.to_uppercase())));
        if path.starts_with("/store/") && path.ends_with("{key}") {
            let of_webdav = ["PROPFIND", "MKCOL", "COPY", "MOVE"];
            routes.extend(of_webdav.map(|method| (path.clone(), method.to_owned())));
        }
        routes.push((path.clone(), "OPTIONS".to_owned()));
    }
    assert!(routes.len() > 60, "{}", routes.len());

    let mut tokens: BTreeMap<String, Value> = SCOPES
        .iter()
        .map(|scope| ((*scope).to_owned(), known(scope, json!([grant("m", "", &[scope])]))))
        .collect();
    tokens.insert("all".to_owned(), known("all", json!([grant("m", "", &SCOPES)])));
    tokens.insert("none".to_owned(), known("none", json!([grant("m", "another", &["read"])])));
    tokens.insert("foreign".to_owned(), known("foreign", json!([grant("other", "", &SCOPES)])));
    let mut late = known("late", json!([grant("m", "", &SCOPES)]));
    late["expires"] = json!("2026-01-01");
    tokens.insert("late".to_owned(), late);
    let callers: Vec<String> = std::iter::once(String::new()).chain(tokens.keys().cloned()).collect();

    let mut asked = 0;
    let unchanged = server(json!({ "tokens": tokens }), &[]).await.0;
    for (path, method) in &routes {
        let (url, body) = sample(path);
        let needed = needed(path, method);
        for caller in &callers {
            // Each caller that writes has a store of its own.
            let changed = match method.as_str() {
                "GET" | "HEAD" | "OPTIONS" | "PROPFIND" => None,
                _ => Some(server(json!({ "tokens": tokens }), &[]).await.0),
            };
            let server = changed.as_ref().unwrap_or(&unchanged);
            let bearer = format!("Bearer {}", token(caller));
            let mut headers =
                vec![("destination", "/store/m/copy"), ("overwrite", "F"), ("content-range", "bytes 0-0/*")];
            if method == "PUT" {
                headers.clear();
            }
            if !caller.is_empty() {
                headers.push(("authorization", &bearer));
            }
            let answer = ask(server, method, &url, &headers, body).await;
            let has = |scope: &&str| caller == "all" || caller == *scope;
            let expected = match (needed, caller.as_str()) {
                // A bad token is reported wherever tokens are checked.
                (None, "late") if method != "OPTIONS" && !is_for_anybody(path) => Some(401),
                (Some(_), "" | "late") => Some(401),
                (None, _) => None,
                (Some(_), "foreign") => Some(403),
                // Keys in bodies are checked one by one by the handler.
                (Some(needed), _) if needed.iter().all(has) => None,
                (Some(_), _) => Some(403),
            };
            let status = answer.status.as_u16();
            let is_refused = matches!(status, 401 | 403);
            assert_eq!(
                is_refused.then_some(status),
                expected,
                "{caller:?} {method} {url}: {:?}",
                answer.body
            );
            if status == 401 {
                assert!(answer.header("www-authenticate").starts_with("Bearer"), "{caller:?} {method} {url}");
            }
            if is_refused && method != "HEAD" {
                let body = String::from_utf8_lossy(&answer.body);
                let sign = match path {
                    s3 if s3.starts_with("/s3") => "<Code>AccessDenied</Code>",
                    dap if dap.starts_with("/dap") => "Error {",
                    _ => "\"request_id\"",
                };
                assert!(body.contains(sign), "{caller:?} {method} {url}: {body}");
            }
            asked += 1;
        }
    }
    assert_eq!(asked, routes.len() * callers.len());
}

/// Whether no credential is checked.
fn is_for_anybody(path: &str) -> bool {
    ["/healthz", "/openapi.json", "/metrics", "/v1/legend"].contains(&path)
}
