//! HEAD returns the headers of GET (RFC 9110, section 9.3.2) on every route.

use axum::http::{HeaderMap, Method};
use serde_json::Value;
use zarrd::services::Mount;

use super::{Served, long_timeouts};
use crate::rfc9110::{OF_GENERATED, is_generated};
use crate::support::client;
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Server, put};

/// Of one request alone.
const OF_ONE_REQUEST: [&str; 4] = ["date", "x-request-id", "server-timing", "cache-status"];

fn stable_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut kept: Vec<_> = headers
        .iter()
        .filter(|(name, _)| !OF_ONE_REQUEST.contains(&name.as_str()) && *name != "x-amz-request-id")
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    kept.sort();
    kept
}

async fn served() -> Served {
    let store = memory();
    Array::of(&[8, 8]).chunks(&[4, 4]).store(&store, "a").await;
    put(&store, "zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
    put(&store, "text", "0123456789").await;
    let mount = Mount { writable: true, ..Mount::read_only("m", store) };
    Served::start(Server::build(mount).finish().site(), long_timeouts()).await
}

#[tokio::test]
async fn head_matches_get_on_every_route() {
    let served = served().await;
    let document: Value = serde_json::from_str(&zarrd::web::openapi()).unwrap();
    let mut urls = vec!["/docs/".to_owned(), "/docs".to_owned(), "/nowhere".to_owned()];
    for (path, item) in document["paths"].as_object().unwrap() {
        // In S3, HEAD of a bucket checks its existence, and GET lists it.
        if item.get("get").is_none() || path == "/s3/{mount}" {
            continue;
        }
        assert!(item.get("head").is_some(), "{path} has GET and no HEAD");
        let filled = path.replace("{mount}", "m").replace("{method}", "mean");
        let filled = filled.replace("{chunks}", "4x4").replace("{codec}", "zstd");
        let filled = filled.replace("{tms}/{z}/{x}/{y}", "native/0/0/0");
        // The rest of the path: a value, an array, a chunk, and a missing key.
        let rests = ["text", "a", "a/", "a/zarr.json", "a/c/0/1", "none", "%ff"];
        let names = ["{key}", "{path}", "{level}", "{chunk}", "{id}", "{index}"];
        for rest in rests {
            let url = names.iter().fold(filled.clone(), |url, name| url.replace(name, rest));
            assert!(
                !url.contains('{') || url.contains("/v1/vectors/"),
                "{path} has a parameter that is not filled"
            );
            urls.push(url.replace(['{', '}'], ""));
        }
    }
    urls.sort();
    urls.dedup();
    let client = client::builder().http1_only().redirect(reqwest::redirect::Policy::none());
    let client = client.build().unwrap();
    let mut found = std::collections::BTreeMap::<u16, usize>::new();
    for url in urls {
        for (name, value) in [
            ("accept", "*/*"),
            ("accept", "application/json"),
            ("range", "bytes=1-2"),
            ("origin", "https://a"),
        ] {
            let ask = |method| {
                client.request(method, format!("http://{}{url}", served.address)).header(name, value)
            };
            // Ranges are for GET alone (section 14.2).
            let get = ask(Method::GET);
            let get = if name == "range" { get.header("if-range", "\"never\"") } else { get };
            let get = get.send().await.unwrap();
            let head = ask(Method::HEAD).send().await.unwrap();
            assert_eq!(head.status(), get.status(), "{url} {name}: {value}");
            let [of_head, of_get] = [&head, &get].map(|answer| {
                let mut headers = stable_headers(answer.headers());
                headers.retain(|(name, _)| !is_generated(&url) || !OF_GENERATED.contains(&name.as_str()));
                headers
            });
            assert_eq!(of_head, of_get, "{url} {name}: {value}");
            assert!(head.bytes().await.unwrap().is_empty());
            *found.entry(get.status().as_u16()).or_default() += 1;
        }
    }
    for status in [200, 301, 400, 404] {
        assert!(found.contains_key(&status), "no URL is answered with {status}: {found:?}");
    }
}

#[tokio::test]
async fn trace_and_connect_are_not_offered() {
    let served = served().await;
    for request in ["TRACE /store/m/text HTTP/1.1", "TRACE / HTTP/1.1", "CONNECT example.com:443 HTTP/1.1"] {
        let answer = served.ask(format!("{request}\r\nHost: x\r\nConnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: "), "{request}: {answer}");
    }
}
