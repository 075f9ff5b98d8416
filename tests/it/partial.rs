//! PATCH: parts of values are written without losing others and without visible intermediate states.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use zarrd::http::HttpOptions;
use zarrd::services::Mount;
use zarrd::store::{Durability, LocalOptions, SharedStore, StoreOptions};

use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server, cpu, put};

/// A server whose mount `m` may be written.
fn writable(store: SharedStore) -> Server {
    Server::build(Mount { writable: true, ..Mount::read_only("m", store) }).finish()
}

async fn patch(server: &Server, key: &str, range: &str, body: &'static str) -> Answer {
    server.request("PATCH", &format!("/store/m/{key}"), &[("content-range", range)], body).await
}

async fn text(server: &Server, key: &str) -> String {
    String::from_utf8(server.get(&format!("/store/m/{key}")).await.body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_part_is_written_at_its_content_range() {
    let server = writable(memory());
    for (range, body, status, value) in [
        ("bytes 2-4/*", "cde", 201, "\0\0cde"),
        ("bytes 0-1/5", "ab", 204, "abcde"),
        ("bytes 4-5/6", "EF", 204, "abcdEF"),
        ("bytes 8-8/9", "i", 204, "abcdEF\0\0i"),
        ("BYTES 0-8/*", "replacing", 204, "replacing"),
    ] {
        let answer = patch(&server, "a/c/0", range, body).await;
        assert_eq!(answer.status, status, "{range}: {:?}", answer.body);
        assert!(answer.body.is_empty());
        assert_eq!(text(&server, "a/c/0").await, value, "{range}");
        let tag = answer.header("etag");
        assert!(!tag.is_empty() && tag == server.get("/store/m/a/c/0").await.header("etag"), "{tag}");
    }
}

#[tokio::test]
async fn a_length_after_the_write_is_checked() {
    let server = writable(memory());
    let before = patch(&server, "a", "bytes 0-3/4", "abcd").await;
    for (range, asked, result) in [("bytes 0-0/3", 3, 4), ("bytes 0-0/5", 5, 4), ("bytes 9-9/20", 20, 10)] {
        let answer = patch(&server, "a", range, "X").await;
        let detail = answer.refuses(409, "conflict", range);
        assert!(detail.contains(&format!("{result} bytes long, not {asked}")), "{detail}");
        assert_eq!((&answer.json()["asked"], &answer.json()["result"]), (&asked.into(), &result.into()));
    }
    assert_eq!(patch(&server, "none", "bytes 1-1/1", "X").await.status, 400, "no value ends before its part");
    assert_eq!(patch(&server, "none", "bytes 1-1/3", "X").await.status, 409);
    assert_eq!(server.get("/store/m/none").await.status, 404);
    assert_eq!(server.get("/store/m/a").await.header("etag"), before.header("etag"));
}

#[tokio::test]
async fn a_body_without_a_range_or_of_a_wrong_length_writes_nothing() {
    let store = memory();
    put(&store, "a", "before").await;
    let server = writable(store);
    for headers in [
        &[][..],
        &[("content-range", "")],
        &[("content-range", "bytes */4")],
        &[("content-range", "bytes=0-3/*")],
        &[("content-range", "bytes 3-0/*")],
        &[("content-range", "bytes 0-3/3")],
        &[("content-range", "items 0-3/*")],
        &[("content-range", "bytes 0-99999999999999999999/*")],
        &[("content-range", "bytes 0-18446744073709551615/*")],
        &[("content-range", "bytes 0-3/*"), ("content-range", "bytes 0-3/*")],
    ] {
        let answer = server.request("PATCH", "/store/m/a", headers, "abcd").await;
        let detail = answer.refuses(400, "invalid-request", &format!("{headers:?}"));
        assert!(detail.contains("`bytes 10-19/*`"), "{detail}");
        assert_eq!(answer.header("accept-patch"), "application/octet-stream");
    }
    let streamed = |parts: &[&'static str]| {
        let parts: Vec<_> =
            parts.iter().map(|part| Ok::<_, String>(Bytes::from_static(part.as_bytes()))).collect();
        Body::from_stream(futures::stream::iter(parts))
    };
    for body in [
        Body::from("abc"),
        Body::from("abcde"),
        Body::empty(),
        streamed(&["ab", "c"]),
        streamed(&["abcd", "e"]),
        streamed(&["abcdefgh"]),
        streamed(&[]),
    ] {
        let answer = server.request("PATCH", "/store/m/a", &[("content-range", "bytes 0-3/*")], body).await;
        let detail = answer.refuses(400, "invalid-request", "the body");
        assert!(detail.contains("4 bytes"), "{detail}");
    }
    let announced = [("content-range", "bytes 0-3/*"), ("content-length", "3")];
    let unread =
        Body::from_stream(futures::stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, String>>> {
            panic!("the body was read")
        }));
    let answer = server.request("PATCH", "/store/m/a", &announced, unread).await;
    answer.refuses(400, "invalid-request", "a body that announces another length");
    assert_eq!(text(&server, "a").await, "before");
    let place = [("content-range", "bytes 0-3/*")];
    let answer = server.request("PATCH", "/store/m/a", &place, streamed(&["ab", "", "cd"])).await;
    assert_eq!((answer.status.as_u16(), text(&server, "a").await), (204, "abcdre".to_owned()));
}

#[tokio::test]
async fn partial_writes_have_the_limits_of_put() {
    let store = memory();
    put(&store, "a", "before").await;
    let http = HttpOptions {
        max_value_size: 8,
        body_stall_timeout: Duration::from_millis(20),
        ..HttpOptions::default()
    };
    let mount = Mount { writable: true, ..Mount::read_only("m", store.clone()) };
    let mut builder = Server::build(mount);
    builder.http = http;
    let server = builder.finish();
    let exact = patch(&server, "a", "bytes 7-7/8", "X").await;
    assert_eq!(exact.status, 204, "{:?}", exact.body);
    for (range, body) in
        [("bytes 8-8/*", "X"), ("bytes 0-8/*", "012345678"), ("bytes 4000000000-4000000000/*", "X")]
    {
        patch(&server, "a", range, body).await.refuses(413, "too-large", range);
    }
    put(&store, "long", "123456789").await;
    patch(&server, "long", "bytes 0-0/*", "X").await.refuses(
        413,
        "too-large",
        "a value that is too long already",
    );
    let encoded = [("content-range", "bytes 0-0/*"), ("content-encoding", "gzip")];
    let answer = server.request("PATCH", "/store/m/a", &encoded, "X").await;
    answer.refuses(415, "unsupported-media-type", "a content-encoded part");
    let stalled = futures::stream::iter([Ok::<_, String>(Bytes::from_static(b"X"))]);
    let stalled = Body::from_stream(stalled.chain(futures::stream::pending()));
    let answer = server.request("PATCH", "/store/m/a", &[("content-range", "bytes 0-1/*")], stalled).await;
    answer.refuses(408, "body-too-slow", "a body that never ends");
    assert_eq!(text(&server, "a").await, "before\0X");
    assert_eq!(text(&server, "long").await, "123456789");
}

#[tokio::test]
async fn only_writable_mounts_accept_and_announce_partial_writes() {
    let store = memory();
    put(&store, "a", "before").await;
    let server = Server::of(store.clone());
    let answer = patch(&server, "a", "bytes 0-0/*", "X").await;
    answer.refuses(405, "not-allowed", "a read-only mount");
    assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS, PROPFIND");
    let options = server.request("OPTIONS", "/store/m/a", &[], "").await;
    assert_eq!((options.status.as_u16(), options.header("accept-patch")), (204, ""));
    let server = writable(store);
    let options = server.request("OPTIONS", "/store/m/a", &[], "").await;
    assert_eq!(options.header("accept-patch"), "application/octet-stream");
    assert_eq!(
        options.header("allow"),
        "GET, HEAD, PUT, PATCH, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE"
    );
    assert_eq!(text(&server, "a").await, "before");
}

#[tokio::test]
async fn pages_of_other_origins_may_patch_only_where_they_may_write() {
    for writes in [false, true] {
        let mut builder = Server::build(Mount { writable: true, ..Mount::read_only("m", memory()) });
        builder.http.cors.allow_writes = writes;
        let answer =
            builder.finish().request("OPTIONS", "/store/m/a", &[("origin", "https://x.example")], "").await;
        let methods = answer.header("access-control-allow-methods");
        assert_eq!(methods.split(", ").any(|method| method == "PATCH"), writes, "{methods}");
        let headers = answer.header("access-control-allow-headers");
        assert_eq!(headers.split(", ").any(|header| header == "Content-Range"), writes, "{headers}");
    }
}

/// How many write at a time, and how often each.
const WRITERS: usize = 16;
const WRITES: u8 = 50;

/// Every writer counts up a pair of bytes of its own in one value, while a reader reads it.
async fn count_together(store: SharedStore) {
    put(&store, "counts", vec![0; WRITERS * 2]).await;
    let server = Arc::new(writable(store));
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (server, done) = (Arc::clone(&server), Arc::clone(&done));
        tokio::spawn(async move {
            let (mut last, mut reads) = (vec![0; WRITERS * 2], 0);
            while !done.load(SeqCst) || reads == 0 {
                let answer = server.get("/store/m/counts").await;
                assert_eq!((answer.status.as_u16(), answer.body.len()), (200, WRITERS * 2));
                for (place, pair) in answer.body.chunks(2).enumerate() {
                    assert_eq!(pair[0], pair[1], "a write is seen whole or not at all");
                    assert!(pair[0] >= last[place * 2], "what was seen does not go back");
                }
                last = answer.body.to_vec();
                reads += 1;
                tokio::task::yield_now().await;
            }
        })
    };
    let writers = (0..WRITERS).map(|writer| {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let range = format!("bytes {}-{}/{}", writer * 2, writer * 2 + 1, WRITERS * 2);
            for count in 1..=WRITES {
                let body = vec![count, count];
                let place = [("content-range", &*range)];
                let answer = server.request("PATCH", "/store/m/counts", &place, body).await;
                assert_eq!(answer.status, 204, "{:?}", answer.body);
            }
        })
    });
    for writer in join_all(writers).await {
        writer.unwrap();
    }
    done.store(true, SeqCst);
    reader.await.unwrap();
    assert_eq!(server.get("/store/m/counts").await.body, vec![WRITES; WRITERS * 2], "no write is lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_partial_writes_lose_nothing_in_memory() {
    count_together(memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_partial_writes_lose_nothing_in_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalOptions { durability: Durability::Rename, ..LocalOptions::default() };
    let options = StoreOptions { writable: true, local, ..StoreOptions::default() };
    let store = zarrd::store::open(folder.path().to_str().unwrap(), &options, &cpu()).unwrap();
    count_together(store).await;
}

#[tokio::test]
async fn a_client_that_disconnects_within_its_part_writes_nothing() {
    let store = memory();
    put(&store, "a", "before").await;
    let server = writable(store);
    let begun = futures::stream::iter([Ok::<_, String>(Bytes::from_static(b"X"))]);
    let body = Body::from_stream(begun.chain(futures::stream::pending()));
    let place = [("content-range", "bytes 0-1/*")];
    let left = server.request("PATCH", "/store/m/a", &place, body);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(20), left).await.is_err());
    assert_eq!(text(&server, "a").await, "before");
}
