//! A server that speaks S3 on a port of this machine, and fails as its script says.
//!
//! Path-style, unsigned or signed (signatures are not checked), one bucket. It is honest unless its script says
//! otherwise: conditions of writes are one step, entity tags are digests of the bytes, checksums are compared.

mod bucket;
mod fault;
mod wire;

pub use bucket::{BUCKET, Objects, tag};
pub use fault::{Fault, Rule, When};
pub use wire::Kind;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use zarrd::store::{BucketOptions, SharedStore, StoreOptions};

use self::bucket::Bucket;
use self::fault::Script;
use self::wire::Request;
use super::server::cpu;

/// The prefix of every key in the bucket.
const PREFIX: &str = "some/prefix/";

#[derive(Debug)]
pub struct TestS3 {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    bucket: Mutex<Bucket>,
    script: Mutex<Script>,
    counts: Mutex<HashMap<Kind, usize>>,
    /// The `traceparent` of each request that had one.
    traceparents: Mutex<Vec<String>>,
    /// The headers of the last request.
    last_headers: Mutex<Vec<(String, String)>>,
    /// That a request waits, and that it may go on.
    waits: Notify,
    goes_on: Notify,
}

impl TestS3 {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(converse(socket, Arc::clone(&ours)));
            }
        });
        Self { address, shared, accepting }
    }

    /// Options of a writable store here.
    pub fn options(&self) -> StoreOptions {
        StoreOptions {
            writable: true,
            bucket: BucketOptions {
                endpoint: Some(format!("http://{}", self.address)),
                allow_http: true,
                ..BucketOptions::default()
            },
            ..StoreOptions::default()
        }
    }

    /// A writable store here.
    pub fn store(&self) -> SharedStore {
        self.store_with(|_| ())
    }

    /// A store here that is opened otherwise.
    pub fn store_with(&self, change: impl FnOnce(&mut StoreOptions)) -> SharedStore {
        let mut options = self.options();
        change(&mut options);
        zarrd::store::open(&Self::s3_url(), &options, &cpu()).unwrap()
    }

    /// The URL of the bucket.
    pub fn s3_url() -> String {
        format!("s3://{BUCKET}/{PREFIX}")
    }

    /// The URL of the same bucket, for a client of plain HTTP.
    pub fn url(&self) -> String {
        format!("http://{}/{BUCKET}/{PREFIX}", self.address)
    }

    /// From now on, this goes wrong.
    pub fn inject(&self, rules: Vec<Rule>, seed: u64) {
        self.shared.script.lock().unwrap().set(rules, seed);
    }

    /// How many faults were injected since the rules were set; from now on, nothing goes wrong.
    pub fn heal(&self) -> usize {
        let mut script = self.shared.script.lock().unwrap();
        let injected = script.injected();
        script.set(Vec::new(), 1);
        injected
    }

    /// Returns once a request waits.
    pub async fn until_one_waits(&self) {
        self.shared.waits.notified().await;
    }

    /// Lets the request that waits go on.
    pub fn go_on(&self) {
        self.shared.goes_on.notify_one();
    }

    /// How many requests of a kind there were.
    pub fn requests(&self, kind: Kind) -> usize {
        self.shared.counts.lock().unwrap().get(&kind).copied().unwrap_or_default()
    }

    /// The `traceparent` headers of requests.
    pub fn traceparents(&self) -> Vec<String> {
        self.shared.traceparents.lock().unwrap().clone()
    }

    /// A header of the last request.
    pub fn last_header(&self, name: &str) -> Option<String> {
        let headers = self.shared.last_headers.lock().unwrap();
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// The URL of the server.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The value of a key of the store.
    pub fn value(&self, key: &str) -> Option<Bytes> {
        let bucket = self.shared.bucket.lock().unwrap();
        bucket.objects.get(&format!("{PREFIX}{key}")).map(|object| object.bytes.clone())
    }

    /// Sets a value as another client would. Returns its entity tag.
    pub fn insert(&self, key: &str, bytes: impl Into<Bytes>) -> String {
        let mut bucket = self.shared.bucket.lock().unwrap();
        bucket.insert(&format!("{PREFIX}{key}"), bytes.into(), Vec::new())
    }

    /// All keys of the bucket.
    pub fn keys(&self) -> Vec<String> {
        self.shared.bucket.lock().unwrap().objects.keys().cloned().collect()
    }

    /// The current content, to be restored later.
    pub fn objects(&self) -> Objects {
        self.shared.bucket.lock().unwrap().objects.clone()
    }

    pub fn put_back(&self, objects: &Objects) {
        self.shared.bucket.lock().unwrap().objects.clone_from(objects);
    }

    /// Uploads in parts that were neither completed nor withdrawn.
    pub fn unfinished_uploads(&self) -> usize {
        self.shared.bucket.lock().unwrap().unfinished()
    }

    /// How many uploads, or parts of them, carried a checksum.
    pub fn checksums(&self) -> usize {
        self.shared.bucket.lock().unwrap().checksums
    }

    pub fn ignore_conditions(&self) {
        self.shared.bucket.lock().unwrap().heeds_conditions = false;
    }

    pub fn drop_metadata(&self) {
        self.shared.bucket.lock().unwrap().keeps_metadata = false;
    }

    pub fn page_keys(&self, count: usize) {
        self.shared.bucket.lock().unwrap().page_keys = count;
    }
}

impl Drop for TestS3 {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn converse(mut socket: TcpStream, shared: Arc<Shared>) {
    let mut buffer = BytesMut::new();
    socket.set_nodelay(true).unwrap();
    while let Some(request) = Request::read(&mut socket, &mut buffer).await {
        let kind = request.kind();
        *shared.counts.lock().unwrap().entry(kind).or_default() += 1;
        shared.last_headers.lock().unwrap().clone_from(&request.headers);
        shared.traceparents.lock().unwrap().extend(request.header("traceparent").map(str::to_owned));
        let fault = shared.script.lock().unwrap().next(kind, &request.key);
        let wait = async || {
            shared.waits.notify_one();
            shared.goes_on.notified().await;
        };
        if fault == Some(Fault::Wait) {
            wait().await;
        }
        let waits_then = match fault {
            Some(Fault::Wait | Fault::DoneThenWait) => None,
            Some(Fault::DoneThenFailLater(status)) => Some(Fault::DoneThen(status)),
            fault => fault,
        };
        let sent = fault::answer(&mut shared.bucket.lock().unwrap(), kind, &request, waits_then);
        if matches!(fault, Some(Fault::DoneThenWait | Fault::DoneThenFailLater(_))) {
            wait().await;
        }
        if !sent.send(&mut socket).await {
            return;
        }
    }
}
