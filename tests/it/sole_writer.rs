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
use crate::support::s3::TestS3;
use crate::support::server::{Answer, Server, cpu};

const CLIENTS: usize = 8;

fn serve(store: &SharedStore) -> Server {
    Server::build(Mount { writable: true, ..Mount::read_only("m", Arc::clone(store)) }).finish()
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

/// A web server whose only names for versions are times in seconds.
#[derive(Clone, Debug, Default)]
struct SecondsServer(Arc<Mutex<BTreeMap<String, (Bytes, SystemTime)>>>);

impl SecondsServer {
    async fn start(self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/data", listener.local_addr().unwrap());
        let router =
            axum::Router::new().fallback(move |request: Request<Body>| self.clone().respond(request));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        url
    }

    async fn respond(self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let mut values = self.0.lock().unwrap();
        let (path, answer) = (head.uri.path().to_owned(), Response::builder());
        match head.method.as_str() {
            "PUT" => {
                let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
                values.insert(path, (body, UNIX_EPOCH + Duration::from_secs(seconds)));
                answer.status(StatusCode::NO_CONTENT).body(Body::empty()).unwrap()
            }
            "GET" | "HEAD" => match values.get(&path) {
                Some((bytes, changed)) => {
                    let answer = answer
                        .header("last-modified", httpdate::fmt_http_date(*changed))
                        .header("content-length", bytes.len());
                    let is_head = head.method == Method::HEAD;
                    answer.body(if is_head { Body::empty() } else { Body::from(bytes.clone()) }).unwrap()
                }
                None => answer.status(StatusCode::NOT_FOUND).body(Body::empty()).unwrap(),
            },
            _ => answer.status(StatusCode::METHOD_NOT_ALLOWED).body(Body::empty()).unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_server_that_names_versions_by_seconds_loses_no_write_either() {
    let url = SecondsServer::default().start().await;
    let options = StoreOptions { writable: true, writers: Writers::One, ..StoreOptions::default() };
    let store = open(&url, &options, &cpu()).unwrap();
    array(4, 4).store(&store, "a").await;
    let server = serve(&store);
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
}
