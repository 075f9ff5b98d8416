//! Purging and filling caches: purged entries are requested again, once, and never come back.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd::cache::ValueCache;
use zarrd::http::RateOptions;
use zarrd::services::Mount;
use zarrd::store::{CachePolicy, LocalOptions, LocalStore, SharedStore};

use crate::support::counting::Counting;
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory};
use crate::support::server::{Answer, Server};

const LITTLE: Codec = Codec::Bytes { big: false };

/// Four shards of four inner chunks each.
fn sharded() -> Array {
    Array::of(&[16, 16]).chunks(&[8, 8]).codecs([Shards::of(&[4, 4], &[LITTLE]).codec()]).random(1, &[])
}

/// A server of arrays `a` and `b` below `g`, and its admin listener, over a store that counts.
async fn served(open: fn(SharedStore) -> Arc<Counting>) -> (Server, Server, Arc<Counting>) {
    let store = memory();
    for name in ["g/a", "g/b"] {
        sharded().store(&store, name).await;
    }
    let counting = open(store);
    let builder = Server::build(Mount::read_only("m", Arc::clone(&counting) as SharedStore));
    let (server, admin) = builder.finish_with_admin();
    (server, admin, counting)
}

/// Fails unless an answer has these members.
fn says(answer: &Value, members: &Value) {
    for (name, member) in members.as_object().unwrap() {
        assert_eq!(&answer[name], member, "{name} of {answer}");
    }
}

async fn purge(admin: &Server, path: &str) -> Answer {
    let answer = admin.ask(Method::DELETE, &format!("/v1/cache/{path}"), &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {:?}", answer.body);
    answer
}

#[tokio::test]
async fn a_purge_causes_one_more_read_of_the_purged_entries_alone() {
    let (server, admin, counting) = served(Counting::new).await;
    let expected = [server.elements("m/g/a", ":,:").await, server.elements("m/g/b", ":,:").await];
    let all = counting.ranges().len();
    counting.reset();
    server.elements("m/g/a", ":,:").await;
    assert!(counting.ranges().is_empty());

    let purged = purge(&admin, "m/g/a").await.json();
    assert!(purged["forgotten"].as_u64().unwrap() > 16 + 4, "{purged}");
    assert_eq!(purged["durable"], true);
    assert_eq!(server.elements("m/g/b", ":,:").await, expected[1]);
    assert_eq!((counting.ranges().len(), counting.documents()), (0, 0), "entries beside it stay cached");
    assert_eq!(server.elements("m/g/a", ":,:").await, expected[0]);
    assert_eq!(counting.ranges().len() * 2, all, "each range once");
    assert_eq!(counting.documents(), 1);
    counting.reset();
    server.elements("m/g/a", ":,:").await;
    assert_eq!((counting.ranges().len(), counting.documents()), (0, 0), "and then it is cached again");

    purge(&admin, "m").await;
    server.elements("m/g/a", ":,:").await;
    server.elements("m/g/b", ":,:").await;
    assert_eq!((counting.ranges().len(), counting.documents()), (all, 2), "a mount as a whole");
}

#[tokio::test]
async fn a_purge_during_a_load_discards_its_result() {
    let (server, admin, counting) = served(Counting::gated).await;
    let ask = || {
        let server = server.clone();
        tokio::spawn(async move { server.elements("m/g/a", ":4,:4").await })
    };
    let before = ask();
    counting.waiting(1).await;
    purge(&admin, "m/g").await;
    // A request after the purge does not share a load that began before it.
    let after = ask();
    counting.waiting(2).await;
    counting.open();
    assert_eq!(before.await.unwrap(), after.await.unwrap());
    let indexes = |counting: &Counting| counting.ranges().iter().filter(|range| range.start > 0).count();
    assert!(indexes(&counting) >= 2, "{:?}", counting.ranges());
    counting.reset();
    purge(&admin, "m/g").await;
    server.elements("m/g/a", ":4,:4").await;
    assert_eq!(counting.ranges().len(), 2, "index and inner chunk");
}

#[tokio::test]
async fn a_purge_also_drops_values_that_are_immutable() {
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let local: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    sharded().store(&local, "a").await;
    let counting = Counting::new(local);
    let values = ValueCache::new(16 << 20);
    let store = values.wrap("m", Arc::clone(&counting) as SharedStore, CachePolicy::Immutable);
    let mut builder = Server::build(Mount::read_only("m", store));
    builder.values = Some(values);
    let (server, admin) = builder.finish_with_admin();
    server.get("/store/m/a/c/0/0").await;
    server.elements("m/a", ":,:").await;
    counting.reset();
    // Another program writes, which the server would never notice.
    let file = directory.path().join("a/c/0/0");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[0] ^= 0xff;
    std::fs::write(directory.path().join("new"), &bytes).unwrap();
    std::fs::rename(directory.path().join("new"), &file).unwrap();
    assert_ne!(server.get("/store/m/a/c/0/0").await.body, bytes);
    let stale = server.elements("m/a", ":1,:1").await;
    assert_eq!((counting.heads(), counting.ranges().len()), (0, 0));

    purge(&admin, "m/a/c/0").await;
    assert_eq!(server.get("/store/m/a/c/0/0").await.body, bytes);
    assert_ne!(server.elements("m/a", ":1,:1").await, stale);
    counting.reset();
    server.get("/store/m/a/c/0/0").await;
    server.elements("m/a", ":1,:1").await;
    assert_eq!((counting.heads(), counting.ranges().len()), (0, 0), "and then not again");
}

#[tokio::test]
async fn prefetched_chunks_are_not_read_again() {
    let (server, admin, counting) = served(Counting::new).await;
    let warm = async |query: &str| {
        let answer = admin.request("POST", &format!("/v1/cache/m/{query}"), &[], "").await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {:?}", answer.body);
        answer.json()
    };
    let report = warm("?level=metadata").await;
    assert_eq!(report["nodes"], 2, "the search goes on below a prefix without a document: {report}");
    says(&report, &json!({ "arrays": 2, "complete": true }));
    assert!(counting.ranges().is_empty());

    let report = warm("g/a").await;
    says(&report, &json!({ "indexes": 4, "chunks": 0, "arrays": 1 }));
    assert_eq!(counting.ranges().len(), 4, "indexes: {:?}", counting.ranges());

    let report = warm("g?level=chunks").await;
    says(&report, &json!({ "chunks": 8, "failed": 0, "complete": true, "decoded_bytes": 2 * 16 * 16 * 2 }));
    counting.reset();
    for array in ["g/a", "g/b"] {
        let answer = server.get(&format!("/v1/data/m/{array}")).await;
        assert_eq!(answer.header("cache-status"), "zarrd; hit");
    }
    assert_eq!((counting.ranges().len(), counting.documents()), (0, 0));
}

#[tokio::test]
async fn a_prefetch_ends_at_its_limits() {
    // Otherwise all would be there before a timer expires.
    let (_, admin, counting) = served(|store| Counting::slow(store, Duration::from_millis(20))).await;
    // Capacity for one shard of 8 × 8 elements of 2 bytes.
    let answer = admin.request("POST", "/v1/cache/m/g/a?level=chunks&bytes=200", &[], "").await.json();
    says(&answer, &json!({ "chunks": 1, "complete": false }));
    counting.reset();
    let answer = admin.request("POST", "/v1/cache/m/g/b?level=chunks&seconds=0", &[], "").await.json();
    assert_eq!(answer["complete"], false, "{answer}");
    counting.fail(true);
    purge(&admin, "m").await;
    let answer = admin.request("POST", "/v1/cache/m/g?level=chunks", &[], "").await.json();
    says(&answer, &json!({ "chunks": 0, "complete": false }));
    assert!(answer["failed"].as_u64().unwrap() > 0, "{answer}");
}

#[tokio::test]
async fn caches_are_purged_and_filled_only_at_the_admin_listener() {
    let (server, admin, _) = served(Counting::new).await;
    for (method, path) in
        [("DELETE", "m"), ("DELETE", "m/g"), ("POST", "m"), ("POST", "m/g"), ("DELETE", "none")]
    {
        let answer = server.request(method, &format!("/v1/cache/{path}"), &[], "").await;
        answer.refuses(403, "forbidden", &format!("{method} {path}"));
    }
    let detail = admin.request("POST", "/v1/cache/m/nothing", &[], "").await.is_problem(
        404,
        "not-found",
        "no such node",
    );
    assert!(detail.contains("`/nothing` of the mount `m`"), "{detail}");
    admin.request("DELETE", "/v1/cache/none/a", &[], "").await.is_problem(
        404,
        "unknown-mount",
        "no such mount",
    );
    let detail = admin.request("POST", "/v1/cache/m/g?level=all", &[], "").await.is_problem(
        400,
        "invalid-request",
        "no such level",
    );
    assert!(
        detail.contains("`metadata`, `indexes`, `chunks`") && !detail.contains("deserialize"),
        "{detail}"
    );
    let detail = admin.request("GET", "/v2/nothing", &[], "").await.is_problem(404, "not-found", "no route");
    assert!(
        !detail.contains("/v1/mounts") && !detail.contains("/docs/"),
        "the admin listener has neither: {detail}"
    );
    let detail = admin.request("POST", "/v1/cache/m/g?view=plain", &[], "").await.is_problem(
        400,
        "invalid-request",
        "no such view",
    );
    assert!(detail.contains("`rechunk/{chunks}/{codec}`"), "{detail}");
    admin.request("POST", "/v1/cache/m/g?much=1", &[], "").await.is_problem(
        400,
        "invalid-request",
        "no such parameter",
    );
    admin.request("DELETE", "/v1/cache/m/a%2fb", &[], "").await.is_problem(
        400,
        "invalid-request",
        "an escaped slash",
    );
}

#[tokio::test]
async fn the_admin_listener_refuses_pages_of_other_origins() {
    let (_, admin, _) = served(Counting::new).await;
    let asked = [
        ("GET", "/metrics"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/nowhere"),
        ("OPTIONS", "/v1/cache/m/g"),
        ("POST", "/v1/cache/m/g"),
        ("DELETE", "/v1/cache/m/g"),
    ];
    let has_cors_headers =
        |answer: &Answer| answer.headers.keys().any(|name| name.as_str().starts_with("access-control-"));
    for (method, url) in asked {
        for (host, origin, status, code) in [
            ("127.0.0.1:8002", "https://evil.example", 403, "cross-origin"),
            ("127.0.0.1:8002", "http://127.0.0.1:8000", 403, "cross-origin"),
            ("127.0.0.1:8002", "null", 403, "cross-origin"),
            ("evil.example:8002", "http://evil.example:8002", 421, "unknown-host"),
        ] {
            let answer = admin.request(method, url, &[("host", host), ("origin", origin)], "").await;
            assert_eq!((answer.status.as_u16(), &*answer.code()), (status, code), "{method} {url} {origin}");
            assert!(!has_cors_headers(&answer), "{method} {url} {origin}: {:?}", answer.headers);
        }
        // The administrator uses programs, or a page of the listener itself.
        let own = ("origin", "http://localhost:8002");
        for headers in [vec![], vec![("host", "127.0.0.1:8002")], vec![("host", "localhost:8002"), own]] {
            let answer = admin.request(method, url, &headers, "").await;
            assert!(![403, 421].contains(&answer.status.as_u16()), "{method} {url}: {:?}", answer.body);
            assert!(!has_cors_headers(&answer), "{method} {url}: {:?}", answer.headers);
        }
    }
}

#[tokio::test]
async fn the_admin_listener_answers_only_to_names_safe_from_dns_rebinding() {
    let mut builder =
        Server::build(Mount { hosts: vec!["data.example".to_owned()], ..Mount::read_only("m", memory()) });
    builder.http.hosts = vec!["zarrd.internal".to_owned()];
    let (_, admin) = builder.finish_with_admin();
    for (host, known) in [
        ("127.0.0.1:8001", true),
        ("[::1]:8001", true),
        ("192.0.2.1", true),
        ("localhost:8001", true),
        ("ZARRD.internal.:8001", true),
        ("data.example", true),
        ("evil.example:8001", false),
        ("localhost.evil.example", false),
        ("", false),
    ] {
        for (method, path) in
            [("GET", "/metrics"), ("HEAD", "/metrics"), ("GET", "/nothing"), ("DELETE", "/v1/cache/m")]
        {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let answer = admin.ask(method.clone(), path, &[("host", host)]).await;
            assert_eq!(answer.status != 421, known, "{method} {path} of {host:?}: {}", answer.status);
            if !known && method != Method::HEAD {
                let detail = answer.is_problem(421, "unknown-host", host);
                assert!(detail.contains("`http.hosts`"), "{detail}");
            }
        }
    }
    // Over HTTP/2 the host is in the URL; old programs name none.
    for (url, status) in
        [("http://evil.example/metrics", 421), ("http://127.0.0.1/metrics", 200), ("/metrics", 200)]
    {
        assert_eq!(admin.get(url).await.status, status, "{url}");
    }
}

#[tokio::test]
async fn rate_limits_do_not_apply_to_the_admin_listener() {
    let mut builder = Server::build(Mount::read_only("m", memory()));
    builder.http.rate_limit = RateOptions { request_rate: 1, request_burst: 1, ..RateOptions::default() };
    let (server, admin) = builder.finish_with_admin();
    while server.get("/store/m/none").await.status != 429 {}
    for _ in 0..10 {
        purge(&admin, "m").await;
        assert_eq!(admin.get("/metrics").await.status, 200);
    }
}
