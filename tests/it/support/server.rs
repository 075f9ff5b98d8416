//! A server without a socket: requests go directly to its endpoint.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use zarrd::app::{ConnectionLimits, Shutdown, serve};
use zarrd::array::{ChunkSource, DirectSource, FetchOptions, ReadLimits, Reader};
use zarrd::auth::Access;
use zarrd::cache::{BoundedNodeCache, CacheOptions, CachedSource, Caches, EncodedCache, ValueCache};
use zarrd::codec::CodecLimits;
use zarrd::config::ServerOptions;
use zarrd::cpu::{ComputePool, ComputePoolOptions};
use zarrd::http::{HttpOptions, Peer};
use zarrd::key::{StoreKey, StorePrefix};
use zarrd::metadata::MetadataLimits;
use zarrd::services::{AppState, ArrayEngine, Mount};
use zarrd::store::{ByteRange, SharedStore, ValueBody, WriteCondition};
use zarrd::views::pyramid::PyramidOptions;
use zarrd::web::Endpoint;
use zarrd::write::{AppendWriter, ArrayWriter, WriteOptions};

use super::counting::{CountingSource, Decodes};

/// Of connections, where they do not matter.
fn limits() -> ServerOptions {
    ServerOptions {
        first_byte_timeout: Duration::from_mins(1),
        tls_handshake_timeout: Duration::from_mins(1),
        header_timeout: Duration::from_mins(1),
        idle_timeout: Duration::from_mins(1),
        write_stall_timeout: Duration::from_mins(1),
        min_write_rate: 0,
        min_write_rate_window: Duration::from_mins(1),
        drain_timeout: Duration::from_secs(1),
        max_connections: 100,
        ..ServerOptions::default()
    }
}

/// An answer, collected; its body may have broken off.
#[derive(Debug)]
pub struct Attempt {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Result<Bytes, axum::Error>,
}

/// An answer, collected.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// A header's text; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// The `code` of a problem document; `ok` for an answer that is none.
    pub fn code_or_ok(&self) -> String {
        if self.status.is_success() { "ok".to_owned() } else { self.code() }
    }

    /// The `code` of a problem document.
    pub fn code(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        self.json()["code"].as_str().unwrap().to_owned()
    }

    /// Fails unless this is a complete problem document of this status and code, which a page of another origin can read
    /// and whose request can be found in the log. Returns its `detail`.
    pub fn refuses(&self, status: u16, code: &str, what: &str) -> String {
        assert_eq!(self.header("access-control-allow-origin"), "*", "{what}");
        self.is_problem(status, code, what)
    }

    /// As [`Self::refuses`], for a response that pages of other origins may not read.
    pub fn is_problem(&self, status: u16, code: &str, what: &str) -> String {
        assert_eq!((self.status.as_u16(), &*self.code()), (status, code), "{what}: {:?}", self.body);
        let problem = self.json();
        assert_eq!(problem["status"], status, "{what}");
        assert_eq!(problem["request_id"], self.header("x-request-id"), "{what}");
        assert!(!self.header("x-request-id").is_empty(), "{what}");
        problem["detail"].as_str().unwrap_or_default().to_owned()
    }
}

/// A server.
#[derive(Clone)]
pub struct Server(Endpoint, Option<AppState>);

/// Nothing is cached.
pub fn no_caches() -> CacheOptions {
    CacheOptions {
        decoded_size: 0,
        index_size: 0,
        node_size: 0,
        value_size: 0,
        encoded_size: 0,
        zip_directory_size: 0,
        references_size: 0,
        ..CacheOptions::default()
    }
}

/// The parts of a server.
pub struct ServerBuilder {
    mounts: Vec<Mount>,
    pub cache: CacheOptions,
    pub fetch: FetchOptions,
    pub read: ReadLimits,
    pub write: WriteOptions,
    pub pyramid: PyramidOptions,
    pub http: HttpOptions,
    pub metadata: MetadataLimits,
    pub codec: CodecLimits,
    /// The pool, if it is not that of all servers.
    pub cpu: Option<ComputePool>,
    /// Where decoded chunks are counted.
    pub decodes: Option<Decodes>,
    /// The cache of the mounts' stores, if they have one.
    pub values: Option<ValueCache>,
}

impl Server {
    /// A server with one read-only mount called `m`.
    pub fn of(store: SharedStore) -> Self {
        Self::build(Mount::read_only("m", store)).finish()
    }

    pub fn build(mount: Mount) -> ServerBuilder {
        ServerBuilder {
            mounts: vec![mount],
            cache: CacheOptions::default(),
            fetch: FetchOptions::default(),
            read: ReadLimits::default(),
            write: WriteOptions::default(),
            pyramid: PyramidOptions::default(),
            http: HttpOptions::default(),
            metadata: MetadataLimits::default(),
            codec: CodecLimits::default(),
            cpu: None,
            decodes: None,
            values: None,
        }
    }

    /// What is served.
    pub fn site(&self) -> Endpoint {
        self.0.clone()
    }

    /// A server of an endpoint.
    pub fn at(site: Endpoint) -> Self {
        Self(site, None)
    }

    pub async fn get(&self, url: &str) -> Answer {
        self.ask(Method::GET, url, &[]).await
    }

    pub async fn ask(&self, method: Method, url: &str, headers: &[(&'static str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(url);
        for &(name, value) in headers {
            request = request.header(name, HeaderValue::from_str(value).unwrap());
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// A request with a body.
    pub async fn request(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.into();
        // As clients do with a body that they have.
        if let Some(length @ 1..) = body.size_hint().exact()
            && !headers.iter().any(|(name, _)| *name == "content-length")
        {
            request = request.header("content-length", length);
        }
        self.send(request.body(body).unwrap()).await
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let Attempt { status, headers, body } = self.attempt(request).await;
        Answer { status, headers, body: body.expect("the body ends well") }
    }

    /// Bytes of responses in flight.
    pub fn in_flight_bytes(&self) -> u64 {
        self.1.as_ref().expect("it was built here").traffic.load().in_flight_bytes
    }

    /// Replaces the authorization of requests.
    pub fn set_access(&self, access: Access) {
        self.1.as_ref().expect("it was built here").access.set_rules(access);
    }

    /// As [`Self::send`], from somewhere.
    pub async fn send_from(&self, request: Request<Body>, from: Peer) -> Answer {
        let Attempt { status, headers, body } = self.attempt_from(request, from).await;
        Answer { status, headers, body: body.expect("the body ends well") }
    }

    /// As [`Self::send`], where the answer may break off.
    pub async fn attempt(&self, request: Request<Body>) -> Attempt {
        self.attempt_from(request, Peer::LOOPBACK).await
    }

    async fn attempt_from(&self, request: Request<Body>, from: Peer) -> Attempt {
        let answer = self.0.handle(request, from).await;
        let (parts, body) = answer.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await;
        Attempt { status: parts.status, headers: parts.headers, body }
    }

    /// The same server on a port of this machine. Returns its address.
    pub async fn listen(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(
            listener,
            self.0.clone(),
            ConnectionLimits::new(limits(), 100),
            Shutdown::default(),
        ));
        address
    }

    /// The canonical bytes of a slice, which must be answered.
    pub async fn elements(&self, path: &str, slice: &str) -> Bytes {
        let answer = self.get(&format!("/v1/data/{path}?slice={slice}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path} {slice}: {:?}", answer.body);
        answer.body
    }
}

/// One pool for all servers of a test run: property tests make hundreds of them.
pub fn cpu() -> ComputePool {
    static CPU: LazyLock<ComputePool> = LazyLock::new(|| {
        zarrd::cpu::check_threads();
        ComputePool::new(ComputePoolOptions::default()).unwrap()
    });
    CPU.clone()
}

impl ServerBuilder {
    /// With one more mount.
    pub fn beside(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }

    pub fn finish(self) -> Server {
        self.finish_with_admin().0
    }

    /// The server, and the one at its admin listener.
    pub fn finish_with_admin(self) -> (Server, Server) {
        let cpu = self.cpu.unwrap_or_else(cpu);
        let mut source: Arc<dyn ChunkSource> = Arc::new(DirectSource::new(cpu.clone(), self.fetch));
        if let Some(decodes) = self.decodes {
            source = Arc::new(CountingSource { inner: source, decodes });
        }
        let source = CachedSource::new(source, &self.cache);
        let nodes = BoundedNodeCache::new(self.cache.node_size);
        let encoded = EncodedCache::new(self.cache.encoded_size);
        let mut caches = Caches::default().and(source.clone()).and(nodes.clone()).and(encoded.clone());
        if let Some(values) = self.values {
            caches = caches.and(values);
        }
        let writer = ArrayWriter::new(cpu.clone(), self.write, zarrd::config::unix_seconds);
        let arrays = ArrayEngine {
            reader: Reader::new(Arc::new(source), cpu.clone()),
            appends: AppendWriter::new(writer.clone(), cpu.clone()),
            writer,
            cpu,
            memo: Arc::new(nodes),
            answers_bytes: self.cache.response_bytes(),
            encoded,
            caches,
            read: self.read,
            pyramid: self.pyramid,
            metadata: self.metadata,
            codec: self.codec,
        };
        let state = AppState::new(self.mounts, arrays, self.http).unwrap();
        let (site, admin) = (Endpoint::whole(state.clone()), Endpoint::admin(&state));
        (Server(site, Some(state)), Server::at(admin))
    }
}

/// Stores a value.
pub async fn put(store: &SharedStore, key: &str, value: impl Into<Bytes>) {
    let body = ValueBody::Bytes(value.into()).into_stream().boxed();
    store.set(&StoreKey::parse(key).unwrap(), body, WriteCondition::Always).await.unwrap();
}

/// Everything that a store has.
pub async fn contents(store: &SharedStore) -> BTreeMap<String, Bytes> {
    let mut keys = store.list_prefix(&StorePrefix::root(), None);
    let mut contents = BTreeMap::new();
    while let Some(entry) = keys.try_next().await.unwrap() {
        let value = store.get(&entry.key, ByteRange::Whole, None).await.unwrap().unwrap();
        contents.insert(entry.key.to_string(), value.bytes(1 << 30).await.unwrap());
    }
    contents
}

/// Erases a value.
pub async fn erase(store: &SharedStore, key: &str) {
    store.erase(&StoreKey::parse(key).unwrap(), WriteCondition::Always).await.unwrap();
}
