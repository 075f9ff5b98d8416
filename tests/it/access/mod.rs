//! Authorization: forged credentials, every route for every kind of caller, and what is disclosed to whom.
#![expect(clippy::too_many_lines, reason = "tables of what is refused are long")]

mod coordinates;
mod decided;
mod disclosure;
mod forged;
mod issued;
mod matrix;
mod names;
mod pages;
mod redirected;
mod s3_keys;
mod shared;
mod signed_pages;
mod signing_in;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zarrd::auth::{Access, AccessOptions, Environment, FetchKeys, Scope};
use zarrd::http::Peer;
use zarrd::services::Mount;
use zarrd::store::{SharedStore, StoreError};

use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server, put};

/// The time in these tests, in seconds since 1970.
pub const NOW: u64 = 1_800_000_000;

pub fn clock() -> u64 {
    NOW
}

/// Key sets of issuers on the web, if available, and how often they were fetched.
#[derive(Debug, Default)]
pub struct TestWeb {
    document: Mutex<Option<Bytes>>,
    fetches: AtomicUsize,
    hangs: AtomicBool,
}

impl TestWeb {
    pub fn set(&self, document: Option<&Value>) {
        *self.document.lock().unwrap() = document.map(|document| document.to_string().into());
    }

    /// From now on there is no answer.
    pub fn hang(&self) {
        self.hangs.store(true, Ordering::Relaxed);
    }

    pub fn fetches(&self) -> usize {
        self.fetches.load(Ordering::Relaxed)
    }
}

impl FetchKeys for TestWeb {
    fn fetch(&self, _url: String, _most_bytes: usize) -> BoxFuture<'static, Result<Bytes, StoreError>> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        if self.hangs.load(Ordering::Relaxed) {
            return std::future::pending().boxed();
        }
        let document = self.document.lock().unwrap().clone();
        let down = || StoreError::TimedOut(Arc::new(std::io::Error::other("the web is down")));
        async move { document.ok_or_else(down) }.boxed()
    }
}

/// The secret of a token of this name.
pub fn secret(name: &str) -> String {
    format!("{name}-{}", "s".repeat(32))
}

/// The token of this name.
pub fn token(name: &str) -> String {
    format!("zs_{name}_{}", secret(name))
}

/// The configuration of a token of this name.
pub fn known(name: &str, grants: impl Into<Value>) -> Value {
    let grants = grants.into();
    let mut sha256 = String::new();
    for byte in Sha256::digest(secret(name).as_bytes()) {
        write!(sha256, "{byte:02x}").unwrap();
    }
    json!({ "sha256": sha256, "grants": grants })
}

/// The grants of one mount.
pub fn grant(mount: &str, prefix: &str, scopes: &[&str]) -> Value {
    json!({ "mount": mount, "prefix": prefix, "scopes": scopes })
}

/// The authorization rules.
pub fn access(options: Value, anonymous: &[(&str, &[Scope])], web: &Arc<TestWeb>) -> Access {
    let options: AccessOptions = serde_json::from_value(options).unwrap();
    options.check(|_| true).unwrap();
    let anonymous: BTreeMap<String, Vec<Scope>> =
        anonymous.iter().map(|(name, scopes)| ((*name).to_owned(), scopes.to_vec())).collect();
    let world = Environment { clock, web: Arc::clone(web) as Arc<dyn FetchKeys> };
    Access::new(&options, &anonymous, &BTreeMap::new(), world).unwrap()
}

/// A store of a group with an array `arr` of two chunks, and the group `g` with an array `in`.
pub async fn filled() -> SharedStore {
    let store = memory();
    let group = json!({ "zarr_format": 3, "node_type": "group" }).to_string();
    let array = json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [2] } },
        "chunk_key_encoding": { "name": "default" }, "codecs": [{ "name": "bytes" }],
    });
    for path in ["", "g/"] {
        put(&store, &format!("{path}zarr.json"), group.clone()).await;
    }
    for path in ["arr", "g/in"] {
        put(&store, &format!("{path}/zarr.json"), array.to_string()).await;
        for chunk in 0..2 {
            put(&store, &format!("{path}/c/{chunk}"), vec![1_u8, 2]).await;
        }
    }
    store
}

/// A server with two writable mounts, `m` and `other`, and these authorization rules.
pub async fn server(options: Value, anonymous: &[(&str, &[Scope])]) -> (Server, Arc<TestWeb>) {
    let writable = async |name: &str| Mount {
        writable: true,
        allow_prefix_delete: true,
        ..Mount::read_only(name, filled().await)
    };
    let server = Server::build(writable("m").await).beside(writable("other").await).finish();
    let web = Arc::default();
    server.set_access(access(options, anonymous, &web));
    (server, web)
}

/// A new caller each time.
pub fn stranger() -> Peer {
    static COUNT: AtomicU32 = AtomicU32::new(0x0a00_0000);
    let address = Ipv4Addr::from(COUNT.fetch_add(1, Ordering::Relaxed));
    Peer { address: IpAddr::V4(address), is_encrypted: true }
}

/// The response to a request of a new caller.
pub async fn ask(server: &Server, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, value.as_bytes());
    }
    server.send_from(request.body(Body::from(body.to_owned())).unwrap(), stranger()).await
}

/// The response to GET by the holder of a token.
pub async fn get_as(server: &Server, holder: &str, url: &str) -> Answer {
    ask(server, "GET", url, &[("authorization", &format!("Bearer {holder}"))], "").await
}
