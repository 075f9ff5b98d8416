//! Tests of the whole router over a store in memory, through the responses that a client gets.

mod fast_path;
mod faults;
mod hops;
mod list;
mod load;
mod middleware;
mod read;
mod rights;
mod rooted;
mod s3;
mod transfer;
mod webdav;
mod wire;
mod write;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use futures::TryStreamExt;

use crate::http::{HttpOptions, Peer};
use crate::services::test_store::TestStore;
use crate::services::{AppState, Mount};
use crate::web::Endpoint;

/// Headers as names and values.
type Headers<'a> = &'a [(&'a str, &'a str)];

/// A server with one store behind three mounts: `m` is writable, `r` is read-only, `w` is writable without erasing
/// prefixes.
struct Server {
    store: Arc<TestStore>,
    state: AppState,
    site: Endpoint,
}

/// A response as a client got it.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    /// The body, or the error that cut it off.
    body: Result<Bytes, String>,
}

impl Server {
    fn new(values: &[(&str, &'static [u8])]) -> Self {
        Self::with_options(values, HttpOptions::default())
    }

    fn with_options(values: &[(&str, &'static [u8])], options: HttpOptions) -> Self {
        let store = TestStore::with(values);
        let mount = |name: &str| Mount::read_only(name, store.clone());
        let mounts = [
            Mount { writable: true, allow_prefix_delete: true, ..mount("m") },
            mount("r"),
            Mount { writable: true, ..mount("w") },
        ];
        let state = AppState::new(mounts, crate::services::ArrayEngine::uncached(), options).unwrap();
        let site = Endpoint::whole(state.clone());
        Self { store, state, site }
    }

    async fn send_body(&self, method: &str, url: &str, headers: Headers<'_>, body: Body) -> Answer {
        let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.site.handle(request.body(body).unwrap(), Peer::LOOPBACK).await;
        let (parts, body) = response.into_parts();
        let body: Result<Vec<Bytes>, _> = body.into_data_stream().try_collect().await;
        let body = body.map(|parts| parts.concat().into()).map_err(|error| error.to_string());
        Answer { status: parts.status, headers: parts.headers, body }
    }

    async fn send(&self, method: &str, url: &str, headers: Headers<'_>) -> Answer {
        self.send_body(method, url, headers, Body::empty()).await
    }

    async fn get(&self, url: &str) -> Answer {
        self.send("GET", url, &[]).await
    }

    async fn put(&self, url: &str, headers: Headers<'_>, body: &'static str) -> Answer {
        self.send_body("PUT", url, headers, Body::from(body)).await
    }
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(self.body.as_ref().unwrap()).unwrap()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.text()).unwrap()
    }

    /// The code of a problem document, after a check that all its parts agree.
    fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let document = self.json();
        assert_eq!(document["status"], self.status.as_u16());
        assert_eq!(document["request_id"], self.header("x-request-id"));
        document["code"].as_str().unwrap().to_owned()
    }
}
