//! Long values that are requested often are sent from memory, without copying: whole, in parts, over HTTP/1.1, HTTP/2 and TLS, as they
//! are stored now, and within the memory that was set aside for them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use futures::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zarrd::cache::ValueCache;
use zarrd::http::{HttpOptions, Peer};
use zarrd::services::Mount;
use zarrd::store::{CachePolicy, LocalOptions, LocalStore, SharedStore};

use crate::support::client;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::Array;
use crate::support::process::{Running, zarrd};
use crate::support::server::Server;
use crate::support::stamped::{Dice, number_of, value};

const KEY: &str = "a/b";
/// Not whole pages.
const BYTES: usize = (4 << 20) - 100;
/// Of a part in the middle.
const PART: std::ops::Range<usize> = 1_000_001..3_500_000;

/// A server of a directory, whose cache of values takes this much memory.
fn served(directory: &Path, value_size: u64, http: HttpOptions) -> Server {
    let store = Arc::new(LocalStore::open(directory, &LocalOptions::default()).unwrap());
    let values = ValueCache::new(value_size);
    let store = values.wrap("m", store, CachePolicy::Always);
    let mut server = Server::build(Mount::read_only("m", store));
    server.values = Some(values);
    server.http = http;
    server.finish()
}

fn write(directory: &Path, key: &str, number: u64) -> Bytes {
    let bytes = value(key, number, BYTES);
    fs::create_dir_all(directory.join("a")).unwrap();
    fs::write(directory.join("new"), &bytes).unwrap();
    fs::rename(directory.join("new"), directory.join(key)).unwrap();
    bytes
}

/// Requests a value until it comes from memory.
async fn until_cached(server: &Server, key: &str) {
    until_range_cached(server, key, &[]).await;
}

/// The same for a part of a value, if the headers have a range.
async fn until_range_cached(server: &Server, key: &str, headers: &[(&str, &str)]) {
    let url = format!("/store/m/{key}");
    let cached = async {
        while server.request("GET", &url, headers, "").await.header("cache-status") != "zarrd; hit" {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), cached).await.expect("it is cached");
}

#[tokio::test]
async fn a_response_from_the_cache_of_long_values_is_charged_as_a_stream() {
    let directory = tempfile::tempdir().unwrap();
    let expected = write(directory.path(), KEY, 1);
    let http = HttpOptions { inflight_size: 16 << 20, ..HttpOptions::default() };
    let server = served(directory.path(), 64 << 20, http);
    until_cached(&server, KEY).await;
    let mut bodies = Vec::new();
    for _ in 0..8 {
        let request = Request::get(format!("/store/m/{KEY}")).body(Body::empty()).unwrap();
        let answer = server.site().handle(request, Peer::LOOPBACK).await;
        assert_eq!(answer.status(), StatusCode::OK);
        bodies.push(answer.into_body().into_data_stream());
    }
    assert_eq!(server.in_flight_bytes(), 8 << 20, "they share one copy of 4 MiB");
    for body in &mut bodies {
        assert!(body.next().await.unwrap().unwrap() == expected);
    }
    drop(bodies);
    assert_eq!(server.in_flight_bytes(), 0);
}

#[tokio::test]
async fn values_that_are_still_being_sent_count_against_the_memory_of_long_values() {
    let directory = tempfile::tempdir().unwrap();
    // A quarter of the cache is for long values: 12 MiB, of which 9 MiB cached.
    let server = served(directory.path(), 48 << 20, HttpOptions::default());
    let keys = ["a/1", "a/2", "a/3", "a/4"];
    let mut held = Vec::new();
    for key in &keys[..3] {
        write(directory.path(), key, 7);
    }
    for key in &keys[..2] {
        until_cached(&server, key).await;
        let request = Request::get(format!("/store/m/{key}")).body(Body::empty()).unwrap();
        held.push(server.site().handle(request, Peer::LOOPBACK).await.into_body());
    }
    // The values change, so what is cached of them is used no more, but it is still being sent.
    for key in &keys[..2] {
        write(directory.path(), key, 8);
        assert_eq!(number_of(key, &server.get(&format!("/store/m/{key}")).await.body), 8);
    }
    until_cached(&server, keys[2]).await;
    write(directory.path(), keys[3], 7);
    for _ in 0..100 {
        let answer = server.get(&format!("/store/m/{}", keys[3])).await;
        assert_eq!(number_of(keys[3], &answer.body), 7);
        assert_eq!(answer.header("cache-status"), "", "there is no memory for a fourth value");
        tokio::task::yield_now().await;
    }
    for (key, body) in keys.iter().zip(held) {
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        assert_eq!(number_of(key, &bytes), 7, "as it was when its response began");
    }
    until_cached(&server, keys[3]).await;
}

/// Reads elements that are stored as they are decoded from three long values, for which there is memory. The values are replaced in
/// turn, so the memory is enough only if the elements hold none of it.
async fn check_elements_of_long_values(codec: Codec, range: impl Fn(usize) -> Option<String>) {
    let directory = tempfile::tempdir().unwrap();
    let store: SharedStore = Arc::new(
        LocalStore::open(directory.path(), &LocalOptions { writable: true, ..LocalOptions::default() })
            .unwrap(),
    );
    let array = Array::of(&[3, 1024, 1024]).chunks(&[1, 1024, 1024]).codecs([codec]);
    let array = array.random(5, &[]);
    let model = array.store(&store, "raw").await;
    let keys = [0, 1, 2].map(|at| format!("raw/{}", array.chunk_key(&[at, 0, 0])));
    let length = usize::try_from(fs::metadata(directory.path().join(&keys[0])).unwrap().len()).unwrap();
    assert!(length > 1 << 20, "{length}");
    let range = range(length);
    let range: Vec<(&str, &str)> = range.iter().map(|range| ("range", range.as_str())).collect();
    let server = served(directory.path(), 4 * 3 * (length as u64 + (8 << 10)), HttpOptions::default());
    for (at, key) in keys.iter().enumerate() {
        until_range_cached(&server, key, &range).await;
        let elements = server.elements("m/raw", &at.to_string()).await;
        assert!(elements == model.elements[at << 21..(at + 1) << 21], "chunk {at}");
        // The elements are now in the cache of decoded chunks; the stored value is evicted.
        let chunk = array.chunk(&model, &[at, 0, 0]);
        fs::write(directory.path().join("new"), &chunk).unwrap();
        fs::rename(directory.path().join("new"), directory.path().join(key)).unwrap();
        assert!(server.get(&format!("/store/m/{key}")).await.body == chunk);
    }
    until_range_cached(&server, &keys[0], &range).await;
}

#[tokio::test]
async fn elements_that_are_read_from_a_long_value_hold_none_of_its_memory() {
    check_elements_of_long_values(Codec::Bytes { big: false }, |_| None).await;
}

#[tokio::test]
async fn elements_that_are_read_from_a_part_of_a_long_value_hold_none_of_its_memory() {
    let shards = Shards::of(&[1, 1024, 1024], &[Codec::Bytes { big: false }]).codec();
    // The inner chunk is all of a shard but its index, which has two numbers and a checksum.
    check_elements_of_long_values(shards, |length| Some(format!("bytes=0-{}", length - 21))).await;
}

/// A server of the program.
fn running(directory: &Path, arguments: &[&str]) -> Running {
    let mount = format!("m={}", directory.display());
    let mut command = zarrd(&["serve", &mount]);
    command.args(arguments).env("ZARRD__LOG__LEVEL", "error");
    Running::of(command)
}

#[tokio::test]
async fn a_long_value_is_sent_whole_and_as_it_is_stored_now_over_every_protocol() {
    let directory = tempfile::tempdir().unwrap();
    let tls = |name: &str| format!("{}/tests/data/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let plain = running(directory.path(), &[]);
    let encrypted = {
        let configuration =
            format!("[server.tls]\ncertificate = \"{}\"\nkey = \"{}\"\n", tls("one.pem"), tls("one.key"));
        let file = directory.path().join("tls.toml");
        fs::write(&file, configuration).unwrap();
        running(directory.path(), &["--config", file.to_str().unwrap()])
    };
    let authority = reqwest::Certificate::from_pem(&fs::read(tls("authority.pem")).unwrap()).unwrap();
    let clients = [
        ("HTTP/1.1", format!("http://{}", plain.address), client::builder().http1_only()),
        ("HTTP/2", format!("http://{}", plain.address), client::builder().http2_prior_knowledge()),
        (
            "TLS",
            format!("https://{}", encrypted.address),
            client::builder().http1_only().tls_certs_only([authority.clone()]),
        ),
        (
            "TLS, HTTP/2",
            format!("https://{}", encrypted.address),
            client::builder().tls_certs_only([authority]),
        ),
    ];
    for (what, base, client) in clients {
        let client = client.build().unwrap();
        let url = format!("{base}/store/m/{KEY}");
        let range = format!("bytes={}-{}", PART.start, PART.end - 1);
        for number in 0..4 {
            let expected = write(directory.path(), KEY, number);
            let (mut hits, mut tries) = ([0, 0], 0);
            while hits.iter().any(|&hits| hits < 3) {
                tries += 1;
                assert!(tries < 10_000, "{what}: never cached");
                for (part, hits) in hits.iter_mut().enumerate() {
                    let request = client.get(&url);
                    let request = if part == 1 { request.header("Range", &range) } else { request };
                    let answer = request.send().await.unwrap();
                    let is_hit = answer.headers().get("cache-status").is_some_and(|hit| hit == "zarrd; hit");
                    *hits += usize::from(is_hit);
                    let wanted = if part == 1 { &expected[PART] } else { &expected[..] };
                    let body = answer.bytes().await.unwrap();
                    assert!(body == wanted, "{what}: version {number}, part {part}, {} bytes", body.len());
                }
            }
        }
    }
}

/// The next response on a connection: its body.
async fn read_response(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    body
}

#[tokio::test]
async fn the_end_of_a_response_is_right_if_its_value_is_evicted_before_the_client_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let server = running(directory.path(), &[]);
    let client = client::client();
    let url = format!("http://{}/store/m/{KEY}", server.address);
    for (number, unread) in (0..).zip([150_000, 300_000, 700_000].repeat(4)) {
        let expected = write(directory.path(), KEY, number);
        while !client.get(&url).send().await.unwrap().headers().contains_key("cache-status") {}
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = format!("GET /store/m/{KEY} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut received = vec![0; BYTES - unread];
        stream.read_exact(&mut received).await.unwrap();
        // It is evicted when it is found to have changed.
        write(directory.path(), KEY, number + 1000);
        assert_eq!(
            number_of(KEY, &client.get(&url).send().await.unwrap().bytes().await.unwrap()),
            number + 1000
        );
        stream.read_to_end(&mut received).await.unwrap();
        let head = received.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        assert!(received[head + 4..] == expected[..], "{unread} bytes were not read");
    }
}

#[tokio::test]
async fn slow_clients_get_one_version_whatever_is_written_and_evicted_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), KEY, 0);
    let server = running(directory.path(), &[]);
    let client = client::client();
    let url = format!("http://{}/store/m/{KEY}", server.address);
    let mut dice = Dice::of(11);
    let mut slow = Vec::new();
    let mut cached = 0;
    for number in 1..30 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = format!("GET /store/m/{KEY} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        // Two responses, one behind the other.
        stream.write_all(request.repeat(2).as_bytes()).await.unwrap();
        slow.push(stream);
        for _ in 0..8 {
            let answer = client.get(&url).send().await.unwrap();
            cached += usize::from(answer.headers().contains_key("cache-status"));
            number_of(KEY, &answer.bytes().await.unwrap());
        }
        write(directory.path(), KEY, number);
        if dice.below(2) == 0 {
            let mut stream = slow.swap_remove(usize::try_from(dice.below(slow.len() as u64)).unwrap());
            let first = number_of(KEY, &read_response(&mut stream).await);
            let second = number_of(KEY, &read_response(&mut stream).await);
            assert!(first <= second && second <= number, "{first} {second} {number}");
        }
    }
    assert!(cached > 20, "{cached} responses came from memory");
    for mut stream in slow {
        let first = number_of(KEY, &read_response(&mut stream).await);
        let second = number_of(KEY, &read_response(&mut stream).await);
        assert!(first <= second, "{first} {second}");
    }
}
