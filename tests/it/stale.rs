//! `freshness = "…, stale:1h"`: responses while the backend fails or is slow.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use zarrd::cache::{StaleCache, ValueCache};
use zarrd::services::Mount;
use zarrd::store::{Freshness, SharedStore};

use crate::support::hierarchy::{Array, memory};
use crate::support::remote::{Fault, Remote};
use crate::support::server::{Answer, Server, erase, put};

const SLICE: &str = "/v1/data/m/a?slice=:,3,5";
const OUTAGES: [Fault; 2] = [Fault::Fails, Fault::Hangs];

/// An array in four chunks; its last chunk is missing.
fn array(byte: u8) -> Array {
    Array::of(&[4, 8, 8]).chunks(&[1, 8, 8]).members(serde_json::json!({ "fill_value": 0 })).uniform(byte)
}

struct Scene {
    server: Server,
    remote: Arc<Remote>,
    store: SharedStore,
}

impl Scene {
    async fn new(freshness: &str) -> Self {
        let freshness: Freshness = freshness.parse().unwrap();
        let store = memory();
        array(1).store(&store, "a").await;
        erase(&store, "a/c/3/0/0").await;
        let remote = Remote::new(Arc::clone(&store));
        let stale = StaleCache::new(1 << 20).of_mount("m", freshness);
        let staleness = stale.as_ref().map(|stale| Arc::clone(stale.staleness()));
        let values = ValueCache::new(16 << 20);
        let shared = Arc::clone(&remote) as SharedStore;
        let cached = values.wrap_stale("m", shared, freshness.policy, stale);
        let mount = Mount { staleness, ..Mount::read_only("m", cached) };
        Self { server: Server::build(mount).finish(), remote, store }
    }

    /// Another program writes the array.
    async fn rewrite(&self, byte: u8) {
        array(byte).store(&self.store, "a").await;
    }

    /// Asks until the response is not stale any more.
    async fn recovered(&self, url: &str) -> Answer {
        for _ in 0..600 {
            let answer = self.server.get(url).await;
            if answer.status == StatusCode::OK && answer.header("age").is_empty() {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the backend responds again, and {url} is still stale");
    }
}

fn is_stale(answer: &Answer) -> bool {
    let (age, status) = (answer.header("age"), answer.header("cache-status"));
    assert_eq!(age.is_empty(), status != "zarrd; hit; detail=stale", "{age} {status}");
    assert!(age.is_empty() || age.parse::<u64>().is_ok_and(|age| age < 3600), "{age}");
    !age.is_empty()
}

fn elements(byte: u8) -> Bytes {
    [[byte; 2], [byte; 2], [byte; 2], [0; 2]].concat().into()
}

#[tokio::test]
async fn what_was_read_before_is_served_while_the_backend_fails_or_hangs_and_says_its_age() {
    for freshness in ["always, stale:1h", "ttl:0s, stale:1h", "ttl:20ms, stale:1h"] {
        for fault in OUTAGES {
            let scene = Scene::new(freshness).await;
            let before = scene.server.get(SLICE).await;
            let node = scene.server.get("/v1/nodes/m/a").await;
            assert_eq!((before.status, before.body.clone()), (StatusCode::OK, elements(1)), "{freshness}");
            assert!(!is_stale(&before) && !is_stale(&node));
            scene.remote.set_fault(Some(fault));
            scene.rewrite(9).await;
            // Beyond the time for which no lookup is needed.
            tokio::time::sleep(Duration::from_millis(40)).await;
            for _ in 0..3 {
                let answer = scene.server.get(SLICE).await;
                assert_eq!((answer.status, answer.body.clone()), (StatusCode::OK, elements(1)), "{fault:?}");
                assert!(is_stale(&answer), "{freshness} {fault:?}");
                assert_eq!(answer.header("etag"), before.header("etag"));
                let tag = [("if-none-match", before.header("etag"))];
                let unchanged = scene.server.ask(Method::GET, SLICE, &tag).await;
                assert_eq!(unchanged.status, StatusCode::NOT_MODIFIED);
                assert!(is_stale(&unchanged));
            }
            let again = scene.server.get("/v1/nodes/m/a").await;
            assert_eq!((again.status, &again.body), (StatusCode::OK, &node.body), "{freshness} {fault:?}");
            scene.remote.set_fault(None);
            assert_eq!(scene.recovered(SLICE).await.body, vec![9; 8], "{freshness} {fault:?}");
        }
    }
}

#[tokio::test]
async fn stored_values_in_memory_and_known_absence_are_served_too() {
    let cases = OUTAGES
        .into_iter()
        .flat_map(|fault| ["ttl:0s, stale:1h", "always, stale:1h"].map(|freshness| (fault, freshness)));
    for (fault, freshness) in cases {
        let scene = Scene::new(freshness).await;
        let urls = ["/store/m/a/zarr.json", "/store/m/a/c/0/0/0"];
        let mut before = Vec::new();
        for url in urls {
            before.push(scene.server.get(url).await.body);
        }
        let absent = scene.server.get("/store/m/a/c/3/0/0").await;
        assert!(absent.status == StatusCode::NOT_FOUND && !is_stale(&absent));
        scene.remote.set_fault(Some(fault));
        for (url, body) in urls.into_iter().zip(before) {
            let answer = scene.server.get(url).await;
            assert_eq!((answer.status, &answer.body), (StatusCode::OK, &body), "{url} {fault:?} {freshness}");
            assert!(is_stale(&answer), "{url} {fault:?} {freshness}");
        }
        let absent = scene.server.get("/store/m/a/c/3/0/0").await;
        assert!(
            absent.status == StatusCode::NOT_FOUND && is_stale(&absent),
            "it may have been written since"
        );
    }
}

/// The state of the mount, once what the server knows of it has changed from `before`.
async fn state_after(scene: &Scene, before: &str) -> (StatusCode, String) {
    for _ in 0..600 {
        let answer = scene.server.get("/readyz").await;
        let state = answer.json()["mounts"]["m"].as_str().unwrap().to_owned();
        if state != before {
            return (answer.status, state);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the state stays {before}");
}

#[tokio::test]
async fn a_server_stays_ready_while_it_serves_what_was_read_before_its_backend_failed() {
    let scene = Scene::new("ttl:0s, stale:1h").await;
    assert_eq!(state_after(&scene, "").await, (StatusCode::OK, "ready".to_owned()));
    scene.remote.set_fault(Some(Fault::Fails));
    assert_eq!(state_after(&scene, "ready").await, (StatusCode::OK, "stale".to_owned()));
    scene.remote.set_fault(None);
    assert_eq!(state_after(&scene, "stale").await, (StatusCode::OK, "ready".to_owned()));
    // A refusal is a response, in place of which nothing is served.
    scene.remote.set_fault(Some(Fault::Refuses));
    let unready = (StatusCode::SERVICE_UNAVAILABLE, "unavailable".to_owned());
    assert_eq!(state_after(&scene, "ready").await, unready);
    // Of a backend that was never seen to respond, nothing is cached; nor may it be used where `stale` does not allow that.
    for (freshness, sees_it_respond) in
        [("ttl:0s, stale:1h", false), ("ttl:0s, stale:0s", true), ("always", true)]
    {
        let scene = Scene::new(freshness).await;
        if sees_it_respond {
            assert_eq!(state_after(&scene, "").await, (StatusCode::OK, "ready".to_owned()));
        }
        scene.remote.set_fault(Some(Fault::Fails));
        assert_eq!(state_after(&scene, "ready").await, unready, "{freshness}");
    }
}

#[tokio::test]
async fn a_stored_value_that_comes_from_memory_says_so() {
    let scene = Scene::new("ttl:1h").await;
    for url in ["/store/m/a/c/0/0/0", "/store/m/a/zarr.json"] {
        let first = scene.server.get(url).await;
        assert_eq!((first.status, first.header("cache-status")), (StatusCode::OK, ""), "{url}");
        let second = scene.server.get(url).await;
        assert_eq!(second.header("cache-status"), "zarrd; hit", "{url}");
        assert_eq!(second.body, first.body);
    }
}

#[tokio::test]
async fn a_failure_is_reported_where_nothing_was_read_before_or_it_is_too_old() {
    let scene = Scene::new("always, stale:1h").await;
    scene.server.get(SLICE).await;
    scene.remote.set_fault(Some(Fault::Fails));
    assert_eq!(scene.server.get("/store/m/a/c/7/0/0").await.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(scene.server.get("/v1/data/m/b").await.status, StatusCode::GATEWAY_TIMEOUT);

    for freshness in ["always", "ttl:0s", "always, stale:1ms", "ttl:0s, stale:1ms"] {
        let scene = Scene::new(freshness).await;
        assert_eq!(scene.server.get(SLICE).await.status, StatusCode::OK);
        scene.remote.set_fault(Some(Fault::Fails));
        tokio::time::sleep(Duration::from_millis(5)).await;
        let answer = scene.server.get(SLICE).await;
        assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT, "{freshness}");
        assert!(!is_stale(&answer));
    }
}

#[tokio::test]
async fn a_refusal_is_an_answer_of_the_backend_and_is_passed_on() {
    let scene = Scene::new("always, stale:1h").await;
    assert_eq!(scene.server.get(SLICE).await.status, StatusCode::OK);
    scene.remote.set_fault(Some(Fault::Refuses));
    assert_eq!(scene.server.get(SLICE).await.status, StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn a_backend_that_fails_is_asked_once_a_second_and_not_by_each_request() {
    let scene = Scene::new("always, stale:1h").await;
    scene.server.get(SLICE).await;
    scene.remote.set_fault(Some(Fault::Hangs));
    scene.server.get(SLICE).await;
    scene.remote.take_requests();
    let start = std::time::Instant::now();
    for _ in 0..200 {
        assert!(is_stale(&scene.server.get(SLICE).await));
    }
    let (requests, seconds) = (scene.remote.take_requests().len() as u64, start.elapsed().as_secs());
    assert!(requests <= seconds + 1, "{requests} requests in {seconds} s");
}

#[tokio::test]
async fn what_changed_is_served_as_soon_as_the_backend_says_so() {
    let scene = Scene::new("ttl:0s, stale:1h").await;
    let url = "/store/m/a/c/0/0/0";
    let before = scene.server.get(url).await;
    put(&scene.store, "a/c/0/0/0", vec![7; 64]).await;
    let after = scene.server.get(url).await;
    assert!(after.body == vec![7; 64] && after.body != before.body && !is_stale(&after));
}

#[tokio::test]
async fn a_page_of_an_array_is_complete_but_for_the_list_at_its_side_while_the_backend_hangs() {
    let scene = Scene::new("always, stale:1h").await;
    put(&scene.store, "zarr.json", r#"{"zarr_format":3,"node_type":"group"}"#).await;
    array(1).store(&scene.store, "sibling").await;
    let page = async || {
        let answer = scene.server.ask(Method::GET, "/view/m/a", &[("accept", "text/html")]).await;
        assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
        String::from_utf8(answer.body.to_vec()).unwrap()
    };
    let before = page().await;
    assert!(before.contains("/view/m/sibling") && before.contains("4 × 8 × 8"), "{before}");
    scene.remote.set_fault(Some(Fault::Hangs));
    let after = page().await;
    assert!(!after.contains("/view/m/sibling") && after.contains("4 × 8 × 8"), "{after}");
}

#[tokio::test]
async fn a_page_of_a_group_says_that_the_backend_hangs_and_has_the_nodes_of_its_consolidated_metadata() {
    let consolidated = r#"{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","must_understand":false,
        "metadata":{"a":{"node_type":"array"}}}}"#;
    for (document, is_listed) in [(consolidated, true), (r#"{"zarr_format":3,"node_type":"group"}"#, false)] {
        let scene = Scene::new("always, stale:1h").await;
        put(&scene.store, "zarr.json", document).await;
        let page = async || {
            let answer = scene.server.ask(Method::GET, "/view/m/", &[("accept", "text/html")]).await;
            assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
            String::from_utf8(answer.body.to_vec()).unwrap()
        };
        let before = page().await;
        assert!(before.contains("/view/m/a") && !before.contains("does not answer"), "{before}");
        scene.remote.set_fault(Some(Fault::Hangs));
        let after = page().await;
        assert!(after.contains("The storage does not answer"), "{after}");
        assert_eq!(after.contains("/view/m/a"), is_listed, "{after}");
        assert_eq!(after.contains("cannot be listed"), !is_listed, "{after}");
    }
}
