//! `writers = "one"`: where a backend ignores conditions, the only server that writes to it checks them, and loses nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use futures::future::join_all;
use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::{SharedStore, StoreOptions, Writers, open};

use crate::support::data_types::data_type;
use crate::support::hierarchy::Array;
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::{Answer, Server, cpu};

const CLIENTS: usize = 8;

fn serve(store: &SharedStore) -> Server {
    let mount = Mount::read_only("m", Arc::clone(store));
    Server::build(Mount { writable: true, allow_prefix_delete: true, ..mount }).finish()
}

/// The same backend, which ignores conditions, by the protocol of S3 and as a web server.
async fn backend(writers: Writers) -> (TestS3, [(&'static str, SharedStore); 2]) {
    let bucket = TestS3::start().await;
    bucket.ignore_conditions();
    let s3 = bucket.store_with(|options| options.writers = writers);
    let options = StoreOptions { writable: true, writers, ..StoreOptions::default() };
    let http = open(&bucket.url(), &options, &cpu()).unwrap();
    (bucket, [("s3", s3), ("http", http)])
}

fn array(length: usize, chunk: usize) -> Array {
    Array::of(&[length]).data_type(data_type("uint8")).chunks(&[chunk]).uniform(0)
}

async fn send(server: &Server, method: &str, url: &str, body: Vec<u8>) -> Answer {
    let length = body.len().to_string();
    let headers = [("content-type", "application/octet-stream"), ("content-length", &*length)];
    server.request(method, url, &headers, body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_of_many_clients_are_all_kept() {
    let (_bucket, stores) = backend(Writers::One).await;
    for (name, store) in stores {
        array(0, 8).store(&store, name).await;
        let server = serve(&store);
        let url = format!("/v1/data/m/{name}?append=0");
        let clients = (0..CLIENTS).map(|client| {
            let (server, url) = (&server, &url);
            async move {
                for number in 0..4 {
                    let byte = u8::try_from(1 + client * 4 + number).unwrap();
                    let answer = send(server, "POST", url, vec![byte; 3]).await;
                    assert_eq!(answer.status, 200, "{name}: {:?}", answer.body);
                }
            }
        });
        join_all(clients).await;
        let elements = server.elements(&format!("m/{name}"), "").await;
        let mut rows: Vec<u8> = elements.chunks(3).map(|row| row[0]).collect();
        assert!(elements.chunks(3).all(|row| row == [row[0]; 3]), "{name}: {elements:?}");
        rows.sort_unstable();
        assert_eq!(rows, (1..=32).collect::<Vec<u8>>(), "{name}: each append is there once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_one_chunk_that_many_clients_write_by_two_routes_are_all_kept() {
    let (_bucket, stores) = backend(Writers::One).await;
    for (name, store) in stores {
        let server = serve(&store);
        array(CLIENTS * 8, CLIENTS * 8).store(&store, name).await;
        let whole = send(&server, "PUT", &format!("/v1/data/m/{name}"), vec![0; CLIENTS * 8]).await;
        assert_eq!(whole.status, 204, "{name}: {:?}", whole.body);
        let clients = (0..CLIENTS).map(|client| {
            let server = &server;
            async move {
                for place in client * 8..(client + 1) * 8 {
                    let byte = vec![u8::try_from(place + 1).unwrap()];
                    let answer = if place % 2 == 0 {
                        let url = format!("/v1/data/m/{name}?slice={place}:{}", place + 1);
                        send(server, "PUT", &url, byte).await
                    } else {
                        let range = format!("bytes {place}-{place}/*");
                        let url = format!("/store/m/{name}/c/0");
                        server.request("PATCH", &url, &[("content-range", &range)], byte).await
                    };
                    assert_eq!(answer.status, 204, "{name} {place}: {:?}", answer.body);
                }
            }
        });
        join_all(clients).await;
        let elements = server.elements(&format!("m/{name}"), "").await;
        assert_eq!(elements, (1..=64).collect::<Vec<u8>>(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_concurrent_writes_under_one_condition_one_succeeds() {
    let (_bucket, stores) = backend(Writers::One).await;
    for (name, store) in stores {
        // Both are mounts of one process at one place.
        let servers = [serve(&store), serve(&store)];
        let key = format!("/store/m/{name}/key");
        let write = async |(header, value): (&'static str, String), method: Method| {
            let race = (0..CLIENTS * 2).map(|client| {
                let request = Request::builder().method(&method).uri(&key).header(header, &value);
                servers[client % 2]
                    .send(request.body(Body::from(format!("client {client} after {value}"))).unwrap())
            });
            let answers = join_all(race).await;
            let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|one| one.status.is_success());
            assert_eq!(won.len(), 1, "{name}");
            assert!(lost.iter().all(|answer| answer.status == 412), "{name}: {lost:?}");
            won.into_iter().next().unwrap()
        };
        let created = write(("if-none-match", "*".to_owned()), Method::PUT).await;
        let replaced = write(("if-match", created.header("etag").to_owned()), Method::PUT).await;
        write(("if-match", replaced.header("etag").to_owned()), Method::DELETE).await;
        assert_eq!(servers[0].get(&key).await.status, 404, "{name}");
    }
}

#[tokio::test]
async fn without_it_they_are_refused_and_the_refusal_says_how_they_are_not() {
    let (_bucket, stores) = backend(Writers::Any).await;
    for (name, store) in stores {
        array(6, 4).store(&store, name).await;
        let server = serve(&store);
        let before = server.elements(&format!("m/{name}"), "").await;
        for (method, url) in [
            ("POST", format!("/v1/data/m/{name}?append=0")),
            ("PUT", format!("/v1/data/m/{name}?slice=1:2")),
            ("PUT", format!("/v1/data/m/{name}?slice=5:6")),
        ] {
            let refused = send(&server, method, &url, vec![9]).await;
            let detail = refused.refuses(501, "unsupported", &url);
            assert!(detail.contains("`writers = \"one\"`"), "{name} {url}: {detail}");
            assert_eq!(refused.json()["written"], false, "{name} {url}");
        }
        let headers = [("content-type", "application/merge-patch+json")];
        let resized =
            server.request("PATCH", &format!("/v1/nodes/m/{name}"), &headers, r#"{"shape":[9]}"#).await;
        let detail = resized.refuses(501, "unsupported", "a change of shape");
        assert!(detail.contains("`writers = \"one\"`"), "{name}: {detail}");
        let copied = server.ask(Method::PUT, &format!("/v1/nodes/m/copy?copy={name}"), &[]).await;
        assert_eq!(copied.status, 501, "{name}: {:?}", copied.body);
        let key = format!("/store/m/{name}/zarr.json");
        let stored = server.ask(Method::PUT, &key, &[("if-none-match", "*")]).await;
        let detail = stored.refuses(405, "not-allowed", "a value");
        assert!(detail.contains("`writers = \"one\"`"), "{name}: {detail}");
        assert_eq!(server.elements(&format!("m/{name}"), "").await, before, "{name}");
    }
}

#[tokio::test]
async fn the_records_of_the_server_are_none_of_the_keys() {
    let (bucket, [_, (_, store)]) = backend(Writers::One).await;
    array(0, 8).store(&store, "a").await;
    let server = serve(&store);
    assert_eq!(send(&server, "POST", "/v1/data/m/a?append=0", vec![1]).await.status, 200);
    let record = bucket.keys().into_iter().find(|key| key.contains("-records/appends/")).unwrap();
    let key = record.rsplit_once("prefix/").map_or(&*record, |(_, key)| key);
    assert_eq!(server.get(&format!("/store/m/{key}")).await.status, 404);
    let request = Request::put(format!("/store/m/{key}")).body(Body::from("mine")).unwrap();
    server.send(request).await.refuses(400, "invalid-request", key);
}

/// Lets the next request of a kind for a key wait.
fn hold(bucket: &TestS3, kind: Kind, key: &'static str) {
    bucket.inject(vec![Rule { kinds: vec![kind], key, when: When::Nth(0), fault: Fault::Wait }], 1);
}

/// Long enough for a request that nothing holds up to be done.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_whose_client_leaves_erases_nothing_that_is_acknowledged_later() {
    let (bucket, stores) = backend(Writers::One).await;
    for (name, store) in stores {
        let server = serve(&store);
        let key = format!("/store/m/{name}/key");
        let first = server.request("PUT", &key, &[], "one").await;
        let tag = first.header("etag").to_owned();
        hold(&bucket, Kind::Delete, "/key");
        let (client, url, condition) = (server.clone(), key.clone(), tag.clone());
        let erasing =
            tokio::spawn(async move { client.ask(Method::DELETE, &url, &[("if-match", &condition)]).await });
        bucket.until_one_waits().await;
        erasing.abort();
        assert!(erasing.await.is_err(), "{name}");
        let (client, url) = (server.clone(), key.clone());
        let writing =
            tokio::spawn(async move { client.request("PUT", &url, &[("if-match", &tag)], "two").await });
        a_while().await;
        bucket.go_on();
        let late = writing.await.unwrap();
        assert_eq!(late.status, 412, "{name}: {:?}", late.body);
        assert_eq!(server.get(&key).await.status, 404, "{name}");
        assert_eq!(server.request("PUT", &key, &[], "three").await.status, 204, "{name}");
        a_while().await;
        assert_eq!(server.get(&key).await.body, "three", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_prefix_has_no_value_that_was_written_before() {
    let (bucket, [(_, store), _]) = backend(Writers::One).await;
    let server = serve(&store);
    let tag = server.request("PUT", "/store/m/p/key", &[], "one").await.header("etag").to_owned();
    for number in 0..40 {
        bucket.insert(&format!("p/other/{number}"), "other");
    }
    hold(&bucket, Kind::Put, "/p/key");
    let client = server.clone();
    let writing = tokio::spawn(async move {
        client.request("PUT", "/store/m/p/key", &[("if-match", &tag)], "two").await.status
    });
    bucket.until_one_waits().await;
    let client = server.clone();
    let erasing =
        tokio::spawn(async move { client.ask(Method::DELETE, "/store/m/p/", &[]).await.status.as_u16() });
    a_while().await;
    bucket.go_on();
    assert_eq!((writing.await.unwrap().as_u16(), erasing.await.unwrap()), (204, 204));
    assert_eq!(server.get("/store/m/p/key").await.status, 404);
    let left: Vec<String> = bucket.keys().into_iter().filter(|key| key.contains("/p/")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_of_another_process_is_waited_for() {
    let (bucket, stores) = backend(Writers::One).await;
    for (name, store) in stores {
        array(0, 8).store(&store, name).await;
        // Each has a name of its own in the records, as the processes before and after a restart have.
        let [before, after] = [serve(&store), serve(&store)];
        let url = format!("/v1/data/m/{name}?append=0");
        assert_eq!(send(&before, "POST", &url, vec![1]).await.status, 200, "{name}");
        hold(&bucket, Kind::Put, "/c/0");
        let (client, held) = (before.clone(), url.clone());
        let late = tokio::spawn(async move { send(&client, "POST", &held, vec![9]).await.status });
        bucket.until_one_waits().await;
        let refused = send(&after, "POST", &url, vec![2]).await;
        refused.refuses(503, "contended", name);
        assert_eq!(refused.json()["written"], false, "{name}");
        bucket.go_on();
        assert_eq!(late.await.unwrap(), 200, "{name}");
        let wait = async { while send(&after, "POST", &url, vec![2]).await.status != 200 {} };
        assert!(tokio::time::timeout(Duration::from_secs(20), wait).await.is_ok(), "{name}");
        assert_eq!(after.elements(&format!("m/{name}"), "").await, [1, 9, 2][..], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_are_sent_to_a_bucket_that_heeds_them() {
    let bucket = TestS3::start().await;
    let store = bucket.store_with(|options| options.writers = Writers::One);
    let server = serve(&store);
    let tag = server.request("PUT", "/store/m/key", &[], "one").await.header("etag").to_owned();
    for method in [Method::PUT, Method::DELETE] {
        let kind = if method == Method::PUT { Kind::Put } else { Kind::Delete };
        bucket.insert("key", "one");
        hold(&bucket, kind, "/key");
        let (client, condition, verb) = (server.clone(), tag.clone(), method.to_string());
        let late = tokio::spawn(async move {
            client.request(&verb, "/store/m/key", &[("if-match", &condition)], "late").await.status
        });
        bucket.until_one_waits().await;
        // By the process that was started after this one was killed.
        bucket.insert("key", "two");
        bucket.go_on();
        assert_eq!(late.await.unwrap(), 412, "{method}");
        assert_eq!(bucket.value("key").unwrap(), "two", "{method}");
    }
}

/// How a web server names versions.
#[derive(Clone, Copy, Debug)]
enum Naming {
    /// Not at all: there is the second of a change, and the length.
    Time,
    /// By an entity tag of both.
    Tag,
}

/// A web server whose names for versions have the second of a change.
#[derive(Clone, Debug)]
struct SecondsServer {
    naming: Naming,
    values: Arc<Mutex<BTreeMap<String, (Bytes, SystemTime)>>>,
    /// What each version of each path has named.
    named: Arc<Mutex<BTreeMap<(String, String), Bytes>>>,
    /// The paths of versions that have named two contents.
    ambiguous: Arc<Mutex<Vec<String>>>,
}

/// The second of now.
fn second() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Waits for a second to begin.
async fn next_second() {
    let now = second();
    while second() == now {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl SecondsServer {
    fn new(naming: Naming) -> Self {
        Self { naming, values: Arc::default(), named: Arc::default(), ambiguous: Arc::default() }
    }

    /// Serves it. Returns the URL of the directory of all values.
    async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/data", listener.local_addr().unwrap());
        let ours = self.clone();
        let router =
            axum::Router::new().fallback(move |request: Request<Body>| ours.clone().respond(request));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        url
    }

    fn put(&self, path: String, body: Bytes) {
        let seconds = second();
        let version = format!("{seconds:x}-{:x}", body.len());
        let before = self.named.lock().unwrap().insert((path.clone(), version), body.clone());
        if before.is_some_and(|before| before != body) {
            self.ambiguous.lock().unwrap().push(path.clone());
        }
        self.values.lock().unwrap().insert(path, (body, UNIX_EPOCH + Duration::from_secs(seconds)));
    }

    async fn respond(self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let (path, answer) = (head.uri.path().to_owned(), Response::builder());
        let empty = |status: StatusCode| Response::builder().status(status).body(Body::empty()).unwrap();
        match head.method.as_str() {
            "PUT" => {
                self.put(path, body);
                empty(StatusCode::NO_CONTENT)
            }
            "DELETE" => match self.values.lock().unwrap().remove(&path) {
                Some(_) => empty(StatusCode::NO_CONTENT),
                None => empty(StatusCode::NOT_FOUND),
            },
            "GET" | "HEAD" => match self.values.lock().unwrap().get(&path) {
                Some((bytes, changed)) => {
                    let mut answer = answer
                        .header("last-modified", httpdate::fmt_http_date(*changed))
                        .header("content-length", bytes.len());
                    if matches!(self.naming, Naming::Tag) {
                        let seconds = changed.duration_since(UNIX_EPOCH).unwrap().as_secs();
                        answer = answer.header("etag", format!("\"{seconds:x}-{:x}\"", bytes.len()));
                    }
                    let is_head = head.method == Method::HEAD;
                    answer.body(if is_head { Body::empty() } else { Body::from(bytes.clone()) }).unwrap()
                }
                None => empty(StatusCode::NOT_FOUND),
            },
            _ => empty(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    /// Opens it as the only writer.
    async fn open(&self) -> (SharedStore, Server) {
        let options = StoreOptions { writable: true, writers: Writers::One, ..StoreOptions::default() };
        let store = open(&self.start().await, &options, &cpu()).unwrap();
        let server = serve(&store);
        (store, server)
    }

    /// Checks that no version has named two contents.
    fn is_unambiguous(&self) {
        let ambiguous = self.ambiguous.lock().unwrap();
        assert!(ambiguous.is_empty(), "{:?}: {ambiguous:?}", self.naming);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_erased_and_written_again_within_a_second_is_another_version() {
    for naming in [Naming::Time, Naming::Tag] {
        let backend = SecondsServer::new(naming);
        let (store, server) = backend.open().await;
        array(4, 4).store(&store, "a").await;
        let (key, url) = ("/store/m/a/c/0", "/v1/data/m/a");
        tokio::time::sleep(Duration::from_secs(2)).await;
        next_second().await;
        let first = server.request("PUT", key, &[], "1111").await;
        assert_eq!(server.get(url).await.body, "1111", "{naming:?}");
        assert_eq!(server.ask(Method::DELETE, key, &[]).await.status, 204, "{naming:?}");
        let second = server.request("PUT", key, &[], "2222").await;
        assert_ne!(first.header("etag"), second.header("etag"), "{naming:?}");
        assert_eq!(server.get(url).await.body, "2222", "{naming:?}");
        let late = server.request("PUT", key, &[("if-match", first.header("etag"))], "3333").await;
        assert_eq!(late.status, 412, "{naming:?}: {:?}", late.body);
        backend.is_unambiguous();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_values_of_changing_length_within_a_second_each_is_another_version() {
    for naming in [Naming::Time, Naming::Tag] {
        let backend = SecondsServer::new(naming);
        let (_store, server) = backend.open().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        next_second().await;
        let mut tags = Vec::new();
        for value in ["AAAA", "BBBBB", "CCCC"] {
            let stored = server.request("PUT", "/store/m/k", &[], value).await;
            tags.push(stored.header("etag").to_owned());
        }
        let changed = server.ask(Method::GET, "/store/m/k", &[("if-none-match", &tags[0])]).await;
        assert_eq!((changed.status.as_u16(), &changed.body[..]), (200, &b"CCCC"[..]), "{naming:?}");
        let distinct: std::collections::BTreeSet<_> = tags.iter().collect();
        assert_eq!(distinct.len(), 3, "{naming:?}: {tags:?}");
        backend.is_unambiguous();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_array_that_is_erased_and_created_within_a_second_is_the_new_one() {
    for naming in [Naming::Time, Naming::Tag] {
        let backend = SecondsServer::new(naming);
        let (_store, server) = backend.open().await;
        let document = |name: &str| array(4, 4).data_type(data_type(name)).document().1.to_string();
        tokio::time::sleep(Duration::from_secs(2)).await;
        next_second().await;
        let key = "/store/m/a/zarr.json";
        assert_eq!(server.request("PUT", key, &[], document("uint16")).await.status, 204, "{naming:?}");
        assert_eq!(server.get("/v1/nodes/m/a").await.json()["metadata"]["data_type"], "uint16");
        assert_eq!(server.ask(Method::DELETE, key, &[]).await.status, 204, "{naming:?}");
        assert_eq!(server.request("PUT", key, &[], document("uint32")).await.status, 204, "{naming:?}");
        let node = server.get("/v1/nodes/m/a").await.json();
        assert_eq!(node["metadata"]["data_type"], "uint32", "{naming:?}");
        backend.is_unambiguous();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_process_before_wrote_within_the_second_is_another_version() {
    for naming in [Naming::Time, Naming::Tag] {
        let backend = SecondsServer::new(naming);
        next_second().await;
        backend.put("/data/k".to_owned(), Bytes::from_static(b"1111"));
        let (_store, server) = backend.open().await;
        let before = server.get("/store/m/k").await.header("etag").to_owned();
        let after = server.request("PUT", "/store/m/k", &[], "2222").await;
        assert_eq!(after.status, 204, "{naming:?}: {:?}", after.body);
        assert_ne!(after.header("etag"), before, "{naming:?}");
        backend.is_unambiguous();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_server_that_names_versions_by_seconds_loses_no_write_either() {
    let backend = SecondsServer::new(Naming::Time);
    let (store, server) = backend.open().await;
    array(4, 4).store(&store, "a").await;
    let read = async || server.get("/store/m/a/c/0").await.header("etag").to_owned();
    assert_eq!(send(&server, "PUT", "/v1/data/m/a", vec![1; 4]).await.status, 204);
    let before = read().await;
    // Within the same second, and as long.
    assert_eq!(send(&server, "PUT", "/v1/data/m/a?slice=0", vec![2]).await.status, 204);
    assert_ne!(read().await, before, "a write that is acknowledged has another version");
    let late = server.request("PUT", "/store/m/a/c/0", &[("if-match", &before)], "1111").await;
    assert_eq!(late.status, 412, "{:?}", late.body);
    let writes = (1..4).map(|place| {
        let (server, url) = (&server, format!("/v1/data/m/a?slice={place}"));
        async move { send(server, "PUT", &url, vec![2]).await.status.as_u16() }
    });
    assert_eq!(join_all(writes).await, [204; 3]);
    let elements: Value = server.get("/v1/data/m/a?format=json").await.json();
    assert_eq!(elements, json!([2, 2, 2, 2]));
    backend.is_unambiguous();
}
