//! A node is made while another one is made at its path, or while something above it is erased: what is acknowledged has all elements,
//! and what is refused leaves none in another node.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::Method;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::counting::until;
use crate::support::hierarchy::memory;
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::{Answer, Server, contents, no_caches, put};

/// A server of its own in front of a store.
fn server(store: SharedStore) -> Server {
    let mut builder =
        Server::build(Mount { writable: true, allow_prefix_delete: true, ..Mount::read_only("m", store) });
    builder.cache = no_caches();
    builder.finish()
}

const WHOLE: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
/// The elements of an array of several chunks.
static LONG: [u8; 3 << 20] = [7; 3 << 20];

/// Bytes, none of which is the fill value, as an npy file.
fn npy_of(elements: &[u8]) -> Vec<u8> {
    let head = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}\n", elements.len());
    let length = u16::try_from(head.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, head.as_bytes(), elements].concat()
}

fn npy() -> Vec<u8> {
    npy_of(&WHOLE)
}

/// An array of eight bytes in as many chunks.
fn array() -> Value {
    json!({"shape": [8], "data_type": "uint8", "chunks": [1], "codecs": "raw"})
}

impl Server {
    async fn create_array(&self, path: &str) -> Answer {
        self.request("PUT", &format!("/v1/data/m/{path}?create&format=npy"), &[], npy()).await
    }

    async fn make_node(&self, path: &str, node: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.request("PUT", &format!("/v1/nodes/m/{path}"), &headers, node.to_string()).await
    }

    async fn copy_node(&self, path: &str, query: &str) -> Answer {
        self.ask(Method::PUT, &format!("/v1/nodes/m/{path}?{query}"), &[]).await
    }

    async fn erase_node(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, &format!("/v1/nodes/m/{path}"), &[]).await
    }

    async fn bytes_of(&self, path: &str) -> Vec<u8> {
        self.get(&format!("/v1/data/m/{path}?format=bytes")).await.body.to_vec()
    }

    async fn elements_of(&self, path: &str) -> Value {
        self.get(&format!("/v1/data/m/{path}?format=json")).await.json()
    }
}

fn wait_at(kind: Kind, key: &'static str, nth: usize) -> Rule {
    Rule { kinds: vec![kind], key, when: When::Nth(nth), fault: Fault::Wait }
}

/// Records of leases, and keys below a path.
fn records(bucket: &TestS3) -> Vec<String> {
    bucket.keys().into_iter().filter(|key| key.contains("/appends/")).collect()
}

fn below(bucket: &TestS3, path: &str) -> Vec<String> {
    bucket.keys().into_iter().filter(|key| key.contains(&format!("prefix/{path}/"))).collect()
}

/// Begins a request, which waits at a request of its own to the backend.
async fn until_it_waits<F>(bucket: &TestS3, rule: Rule, request: F) -> JoinHandle<Answer>
where
    F: Future<Output = Answer> + Send + 'static,
{
    bucket.inject(vec![rule], 1);
    let begun = tokio::spawn(request);
    bucket.until_one_waits().await;
    begun
}

/// What makes a node at `g/sub/t`: an array without elements of the fill value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Making {
    Create,
    Copy,
    Move,
}

impl Making {
    async fn run(self, server: Server) -> Answer {
        match self {
            Self::Create => {
                server.request("PUT", "/v1/data/m/g/sub/t?create&format=npy", &[], npy_of(&LONG)).await
            }
            Self::Copy => server.copy_node("g/sub/t", "copy=s").await,
            Self::Move => server.copy_node("g/sub/t", "move=s").await,
        }
    }

    /// The elements.
    fn elements(self) -> &'static [u8] {
        if self == Self::Create { &LONG } else { &WHOLE }
    }

    /// The last of its values that is stored.
    fn value(self) -> &'static str {
        if self == Self::Create { "g/sub/t/c/2" } else { "g/sub/t/c/7" }
    }

    /// The number of the others.
    fn others(self) -> usize {
        if self == Self::Create { 2 } else { 7 }
    }
}

/// A bucket with the array `s` of eight chunks and the group `g` with a value in it, and two servers of it.
async fn prepared() -> (TestS3, [Server; 2]) {
    let bucket = TestS3::start().await;
    let servers = [server(bucket.store()), server(bucket.store())];
    let [one, _] = &servers;
    assert_eq!(one.make_node("s", &array()).await.status, 201);
    let elements = json!([1, 2, 3, 4, 5, 6, 7, 8]).to_string();
    let written = one.request("PUT", "/v1/data/m/s", &[("content-type", "application/json")], elements).await;
    assert_eq!(written.status, 204);
    assert_eq!(one.make_node("g/old", &array()).await.status, 201);
    bucket.insert("g/old/c/0", vec![1]);
    (bucket, servers)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_that_runs_refuses_each_other_node_at_its_path() {
    let (bucket, [one, other]) = prepared().await;
    let making =
        until_it_waits(&bucket, wait_at(Kind::Put, "g/sub/t/c/2", 0), Making::Create.run(one.clone()));
    let making = making.await;
    until(|| !below(&bucket, "g/sub/t").is_empty()).await;
    let group = json!({"node_type": "group"});
    let below = array();
    let refused = futures::join!(
        other.make_node("g/sub/t", &below),
        one.make_node("g/sub/t", &group),
        other.make_node("g/sub/t/below", &below),
        other.create_array("g/sub/t"),
        other.copy_node("g/sub/t", "copy=s"),
    );
    for answer in [refused.0, refused.1, refused.2, refused.3, refused.4] {
        answer.refuses(503, "contended", "a node is being made");
        assert_eq!(answer.json()["written"], false, "{answer:?}");
    }
    // Nor is what it has stored erased as what is left of another.
    other.erase_node("g/sub/t").await.refuses(503, "contended", "values of a node that is being made");
    bucket.go_on();
    assert_eq!(making.await.unwrap().status, 201);
    assert_eq!(other.bytes_of("g/sub/t").await, LONG);
    other.create_array("g/sub/t").await.refuses(409, "conflict", "it is there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_node_and_a_creation_at_the_same_path_one_is_made_and_it_has_its_own_elements() {
    let fill = json!([0, 0, 0, 0, 0, 0, 0, 0]);
    let make = |server: &Server| {
        let server = server.clone();
        async move { server.make_node("t", &array()).await }
    };
    // The creation comes and ends before the node's document is stored.
    let (bucket, [one, other]) = prepared().await;
    let node = until_it_waits(&bucket, wait_at(Kind::Put, "t/zarr.json", 0), make(&one)).await;
    assert_eq!(other.create_array("t").await.status, 201);
    bucket.go_on();
    assert_eq!(node.await.unwrap().status, 412);
    assert_eq!(other.elements_of("t").await, json!(WHOLE));
    // It comes after the document was stored.
    let (bucket, [one, other]) = prepared().await;
    let node = until_it_waits(&bucket, wait_at(Kind::Get, "/appends/", 1), make(&one)).await;
    other.create_array("t").await.refuses(409, "conflict", "the document is there");
    bucket.go_on();
    assert_eq!(node.await.unwrap().status, 201);
    assert_eq!(other.elements_of("t").await, fill);
    // It begins before, and stores its values after that.
    let (bucket, [one, other]) = prepared().await;
    bucket.inject(vec![wait_at(Kind::Put, "t/zarr.json", 0), wait_at(Kind::Put, "t/c/0", 0)], 1);
    let node = tokio::spawn(make(&one));
    bucket.until_one_waits().await;
    let creation = tokio::spawn(async move {
        let made = other.create_array("t").await;
        (other, made)
    });
    bucket.until_one_waits().await;
    bucket.go_on();
    node.await.unwrap().refuses(503, "contended", "a node is being made");
    assert!(!bucket.keys().iter().any(|key| key.ends_with("/t/zarr.json")), "{:?}", bucket.keys());
    bucket.go_on();
    let (other, made) = creation.await.unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(other.elements_of("t").await, json!(WHOLE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_is_not_acknowledged_for_the_elements_of_another() {
    let (bucket, [one, other]) = prepared().await;
    let document = wait_at(Kind::Put, "g/sub/t/zarr.json", 0);
    let making = until_it_waits(&bucket, document, Making::Create.run(one.clone())).await;
    for key in records(&bucket) {
        let key = key.strip_prefix("some/prefix/").unwrap().to_owned();
        let mut record: Value = serde_json::from_slice(&bucket.value(&key).unwrap()).unwrap();
        record["until"] = json!(1);
        bucket.insert(&key, record.to_string());
    }
    assert_eq!(other.erase_node("g/sub/t").await.status, 204);
    let others: Vec<u8> = vec![9; LONG.len()];
    let made = other.request("PUT", "/v1/data/m/g/sub/t?create&format=npy", &[], npy_of(&others)).await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    bucket.go_on();
    let answer = making.await.unwrap();
    assert!(!answer.status.is_success(), "{answer:?}");
    assert_eq!(other.bytes_of("g/sub/t").await, others);
}

#[tokio::test]
async fn values_of_a_creation_that_failed_are_in_no_other_array() {
    let (bucket, [one, other]) = prepared().await;
    bucket.inject(
        vec![Rule {
            kinds: vec![Kind::Put],
            key: "t/zarr.json",
            when: When::Always,
            fault: Fault::Status(403),
        }],
        1,
    );
    let failed = one.create_array("t").await;
    assert!(failed.status.is_server_error(), "{failed:?}");
    assert_eq!(failed.json()["written"], "some", "{failed:?}");
    bucket.heal();
    let refused = other.make_node("t", &array()).await;
    assert!(matches!(refused.status.as_u16(), 409 | 503), "{refused:?}");
    assert!(!bucket.keys().iter().any(|key| key.ends_with("/t/zarr.json")));
}

/// Erases a group while a node is made in it, which waits at a request to the backend.
async fn erase_around(making: Making, key: &'static str) {
    let (bucket, [one, other]) = prepared().await;
    let made = until_it_waits(&bucket, wait_at(Kind::Put, key, 0), making.run(one.clone())).await;
    // Values that were begun with this one are stored.
    until(|| below(&bucket, "g/sub/t").iter().filter(|key| key.contains("/c/")).count() >= making.others())
        .await;
    let erased = other.erase_node("g").await;
    assert_eq!(erased.status, 204, "{making:?} {key}: {erased:?}");
    assert_eq!(below(&bucket, "g"), Vec::<String>::new());
    bucket.go_on();
    let made = made.await.unwrap();
    let read = other.get("/v1/data/m/g/sub/t?format=json").await;
    made.refuses(409, "conflict", "values are erased");
    assert_eq!((read.status.as_u16(), &made.json()["written"]), (404, &json!("some")), "{made:?}");
    assert_eq!(other.elements_of("s").await, json!(WHOLE), "the source of {making:?} is whole");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_values_are_erased_while_it_is_made_is_not_made() {
    for making in [Making::Create, Making::Copy, Making::Move] {
        erase_around(making, making.value()).await;
        erase_around(making, "g/sub/t/zarr.json").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_takes_what_is_made_below_it_meanwhile() {
    for making in [Making::Create, Making::Copy, Making::Move] {
        let (bucket, [one, other]) = prepared().await;
        let erased = until_it_waits(&bucket, wait_at(Kind::Delete, "g/old/c/0", 0), {
            let other = other.clone();
            async move { other.erase_node("g").await }
        })
        .await;
        let made = making.run(one.clone()).await;
        assert_eq!(made.status, 201, "{making:?}: {made:?}");
        assert_eq!(one.bytes_of("g/sub/t").await, making.elements());
        bucket.go_on();
        let erased = erased.await.unwrap();
        assert_eq!(erased.status, 204, "{making:?}: {erased:?}");
        assert_eq!(below(&bucket, "g"), Vec::<String>::new(), "{making:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_group_of_which_a_part_is_erased_meanwhile_is_not_made() {
    for (key, is_leftover) in [("t/b/c/0", true), ("t/zarr.json", false)] {
        let (bucket, [one, other]) = prepared().await;
        for name in ["s2/a", "s2/b"] {
            assert_eq!(one.make_node(name, &array()).await.status, 201);
            bucket.insert(if name == "s2/a" { "s2/a/c/0" } else { "s2/b/c/0" }, vec![7]);
        }
        let made = until_it_waits(&bucket, wait_at(Kind::Put, key, 0), {
            let one = one.clone();
            async move { one.copy_node("t", "move=s2").await }
        })
        .await;
        until(|| !below(&bucket, "t/a").is_empty()).await;
        // What is stored of it is not what another has left.
        let erased = other.erase_node("t/a").await;
        if is_leftover {
            erased.refuses(503, "contended", "a node above it is being made");
            other.erase_node("t").await.refuses(503, "contended", "the node that is being made");
            // Another program may erase it nevertheless.
            assert_eq!(other.ask(Method::DELETE, "/store/m/t/a/", &[]).await.status, 204);
        } else {
            // By now it is a node of its own, which is erased as a whole.
            assert_eq!(erased.status, 204, "{erased:?}");
        }
        bucket.go_on();
        let made = made.await.unwrap();
        if is_leftover {
            made.refuses(409, "conflict", "a value is erased");
            assert_eq!(other.get("/v1/nodes/m/t").await.status, 404);
            assert_eq!(other.get("/v1/nodes/m/t/b").await.status, 404, "no node below it is left");
            assert_eq!(other.elements_of("s2/a").await, json!([7, 0, 0, 0, 0, 0, 0, 0]));
        } else if made.status != 201 {
            made.refuses(409, "conflict", "the first value is erased");
            assert_eq!(other.get("/v1/nodes/m/t").await.status, 404);
        }
    }
}

#[tokio::test]
async fn a_copy_beside_an_erasure_of_its_group_is_whole_or_not_there() {
    let inner = memory();
    let server = server(Arc::clone(&inner));
    assert_eq!(server.make_node("s", &array()).await.status, 201);
    for chunk in 0..8 {
        put(&inner, &format!("s/c/{chunk}"), vec![1]).await;
    }
    // Many rounds, in which both begin at the same time.
    for round in 0..20 {
        let group = json!({"node_type": "group"});
        assert_eq!(server.make_node(&format!("g{round}/sub"), &group).await.status, 201);
        let target = format!("g{round}/sub/t");
        let erase = async {
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            server.erase_node(&format!("g{round}")).await
        };
        let (made, erased) = futures::join!(server.copy_node(&target, "copy=s"), erase);
        // It may be gone again before the answer describes it.
        assert!(matches!(made.status.as_u16(), 201 | 404 | 409 | 503), "{made:?}");
        assert!(matches!(erased.status.as_u16(), 204 | 503), "{erased:?}");
        let left: BTreeMap<String, Bytes> = contents(&inner).await;
        let values = left.keys().filter(|key| key.starts_with(&format!("{target}/c/"))).count();
        if left.contains_key(&format!("{target}/zarr.json")) {
            assert_eq!((values, made.status.as_u16()), (8, 201), "round {round}");
        }
    }
}

#[tokio::test]
async fn no_record_is_left_of_a_node_that_was_made_or_refused() {
    let (bucket, [one, _]) = prepared().await;
    assert_eq!(records(&bucket), Vec::<String>::new());
    assert_eq!(one.create_array("a").await.status, 201);
    assert_eq!(one.copy_node("b", "copy=a").await.status, 201);
    assert_eq!(one.copy_node("d", "move=b").await.status, 201);
    let cut = npy().split_last().unwrap().1.to_vec();
    let refused = one.request("PUT", "/v1/data/m/e?create&format=npy", &[], cut).await;
    refused.refuses(400, "shape-mismatch", "a body that is cut");
    bucket.insert("left/c/0", vec![1]);
    one.create_array("left").await.refuses(409, "conflict", "chunks of another");
    assert_eq!(one.erase_node("left").await.status, 204);
    assert_eq!(records(&bucket), Vec::<String>::new());
    // That of an append stays, and knows nothing of the appends to a former array.
    let append = async || {
        let headers = [("content-type", "application/octet-stream"), ("idempotency-key", "k")];
        one.request("POST", "/v1/data/m/a?append=0", &headers, vec![9]).await
    };
    assert_eq!(append().await.json()["start"], 8);
    assert_eq!(append().await.json()["start"], 8);
    assert_eq!(one.erase_node("a").await.status, 204);
    assert_eq!(one.copy_node("a", "copy=s").await.status, 201);
    assert_eq!(append().await.json(), json!({"start": 8, "stop": 9, "shape": [9]}));
    assert_eq!(one.elements_of("a").await, json!([1, 2, 3, 4, 5, 6, 7, 8, 9]));
    assert_eq!(records(&bucket).len(), 1);
}
