//! Appends against a naive model: random arrays, many clients, several servers, lost answers and owners that come too late.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::sleep;
use zarrd::cache::ValueCache;
use zarrd::services::Mount;
use zarrd::store::{CachePolicy, LocalOptions, LocalStore, SharedStore};

use crate::access::{access, grant, known, token};
use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::{Array, memory, noise};
use crate::support::property::holds;
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::{Answer, Server, contents, put};
use crate::support::strategies::case;

const PLAIN: &str = "application/octet-stream";

/// A server of a store behind a cache of values, as mounts are.
pub(crate) fn server(store: &SharedStore) -> Server {
    let store = ValueCache::new(16 << 20).wrap("m", Arc::clone(store), CachePolicy::Always);
    Server::build(Mount { writable: true, ..Mount::read_only("m", store) }).finish()
}

/// A body and its length, so that no more memory is held for it.
fn with_length(body: impl Into<Vec<u8>>) -> (Vec<u8>, String) {
    let body = body.into();
    let length = body.len().to_string();
    (body, length)
}

impl Server {
    pub(crate) async fn append(&self, url: &str, body: impl Into<Vec<u8>>) -> Answer {
        let (body, length) = with_length(body);
        let headers = [("content-type", PLAIN), ("content-length", &length)];
        self.request("POST", &format!("/v1/data/m/{url}"), &headers, body).await
    }

    pub(crate) async fn append_as(&self, key: &str, url: &str, body: impl Into<Vec<u8>>) -> Answer {
        let (body, length) = with_length(body);
        let headers = [("content-type", PLAIN), ("content-length", &length), ("idempotency-key", key)];
        self.request("POST", &format!("/v1/data/m/{url}"), &headers, body).await
    }

    /// The same until it is neither refused because another server appends, nor of unknown outcome.
    pub(crate) async fn append_until_done(&self, key: &str, url: &str, body: &[u8]) -> Value {
        for _ in 0..400 {
            let answer = self.append_as(key, url, body).await;
            if answer.status == 200 {
                return answer.json();
            }
            assert!(answer.status.is_server_error(), "{key}: {} {:?}", answer.status, answer.body);
            sleep(Duration::from_millis(20)).await;
        }
        panic!("{key} is never appended");
    }

    pub(crate) async fn json(&self, url: &str) -> Value {
        self.get(&format!("/v1/data/m/{url}{}format=json", if url.contains('?') { '&' } else { '?' }))
            .await
            .json()
    }
}

/// An array of bytes, of which several rows share a stored value.
pub(crate) fn log(rows: usize) -> Array {
    Array::of(&[rows]).data_type(crate::support::data_types::data_type("uint8")).chunks(&[8]).uniform(0)
}

#[test]
fn random_appends_to_random_arrays_match_a_naive_model() {
    let parts = prop::collection::vec((1_usize..4, any::<u64>()), 1..=4);
    holds(
        96,
        (case(), any::<prop::sample::Index>(), parts, any::<bool>()),
        async |(case, axis, parts, together)| {
            let store = memory();
            let array = case.array();
            let model = array.store(&store, "a").await;
            if model.shape.is_empty() || case.data_type.is_variable() {
                return;
            }
            let axis = axis.index(model.shape.len());
            let (outer, inner) = model.shape.split_at(axis);
            let outer: usize = outer.iter().product();
            let row = inner[1..].iter().product::<usize>() * case.data_type.element_bytes;
            let server = server(&store);
            let before = server.elements("m/a", "").await;
            let mut pieces: Vec<(usize, Vec<u8>)> = vec![(model.shape[axis], before.to_vec())];
            let url = format!("a?append={axis}");
            let bodies: Vec<(usize, Vec<u8>)> = parts
                .into_iter()
                .map(|(rows, seed)| {
                    let mut body: Vec<u8> = noise(seed).take(outer * rows * row).collect();
                    case.data_type.tame(&mut body);
                    (rows, body)
                })
                .collect();
            if outer * row == 0 {
                return;
            }
            // A rectilinear grid says nothing of what lies beyond its edges.
            if array.document().1["chunk_grid"]["name"] == "rectilinear" {
                let refused = server.append(&url, bodies[0].1.clone()).await;
                assert_eq!(refused.status.as_u16(), 501);
                return;
            }
            let mut answered = Vec::new();
            if together {
                let all = join_all(bodies.iter().map(|(_, body)| server.append(&url, body.clone()))).await;
                answered.extend(all);
            } else {
                for (_, body) in &bodies {
                    answered.push(server.append(&url, body.clone()).await);
                }
            }
            let mut placed: Vec<(u64, usize)> = Vec::new();
            for (number, answer) in answered.iter().enumerate() {
                assert_eq!(answer.status.as_u16(), 200, "{:?}", &answer.body);
                placed.push((answer.json()["start"].as_u64().unwrap(), number));
            }
            placed.sort_unstable();
            pieces.extend(placed.into_iter().map(|(_, number)| bodies[number].clone()));
            let mut expected = Vec::new();
            for place in 0..outer {
                for (rows, piece) in &pieces {
                    let length = rows * row;
                    expected.extend_from_slice(&piece[place * length..(place + 1) * length]);
                }
            }
            assert_eq!(&server.elements("m/a", "").await[..], &expected[..]);
        },
    );
}

#[tokio::test]
async fn each_format_of_bodies_appends_the_same_elements() {
    let store = memory();
    let shards = Codec::Shards(Box::new(Shards::of(&[1, 2], &[Codec::Bytes { big: false }])));
    Array::of(&[0, 4]).chunks(&[2, 4]).codecs([shards]).store(&store, "a").await;
    let server = server(&store);
    let numpy = |shape: &str, elements: &[u8]| {
        let head = format!("{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}, }}");
        [b"\x93NUMPY\x01\0", &u16::try_from(head.len()).unwrap().to_le_bytes()[..], head.as_bytes(), elements]
            .concat()
    };
    let elements: Vec<u8> = [1_u16, 2, 3, 4].into_iter().flat_map(u16::to_le_bytes).collect();
    for (query, media_type, body) in [
        ("append=0", PLAIN, elements.clone()),
        ("append=0&endian=big", PLAIN, [1_u16, 2, 3, 4].into_iter().flat_map(u16::to_be_bytes).collect()),
        ("append=0", "application/x-npy", numpy("(1, 4)", &elements)),
        ("append=0&f=npy", "text/plain", numpy("(4,)", &elements)),
        ("append=0", "application/json", b"[[1, 2, 3, 4]]".to_vec()),
    ] {
        let headers = [("content-type", media_type)];
        let answer = server.request("POST", &format!("/v1/data/m/a?{query}"), &headers, body).await;
        assert_eq!(answer.status, 200, "{query} {media_type}: {:?}", answer.body);
    }
    assert_eq!(server.json("a").await, json!(vec![[1, 2, 3, 4]; 5]));
    let two = [("content-type", "application/json")];
    let answer = server.request("POST", "/v1/data/m/a?append=0", &two, "[[5,6,7,8],[9,9,9,9]]").await;
    assert_eq!(answer.json(), json!({"start": 5, "stop": 7, "shape": [7, 4]}));
    assert_eq!(server.json("a?slice=5:").await, json!([[5, 6, 7, 8], [9, 9, 9, 9]]));
}

#[tokio::test]
async fn a_dimension_is_named_and_consolidated_metadata_follows() {
    let store = memory();
    let server = server(&store);
    let array = json!({"shape": [2, 3], "data_type": "uint8", "dimension_names": ["y", "time"]});
    put(
        &store,
        "g/zarr.json",
        r#"{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{}}}"#,
    )
    .await;
    let headers = [("content-type", "application/json")];
    assert_eq!(server.request("PUT", "/v1/nodes/m/g/a", &headers, array.to_string()).await.status, 201);
    let answer = server.append("g/a?append=time&at=3", [7, 8]).await;
    assert_eq!(answer.json(), json!({"start": 3, "stop": 4, "shape": [2, 4]}));
    assert_eq!(server.json("g/a").await, json!([[0, 0, 0, 7], [0, 0, 0, 8]]));
    let copies = server.get("/store/m/g/zarr.json").await.json();
    assert_eq!(copies["consolidated_metadata"]["metadata"]["a"]["shape"], json!([2, 4]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_are_stored_late_are_those_of_the_documents_that_are_stored_then() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "g/a").await;
    let group = r#"{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{}}}"#;
    put(&bucket.store(), "g/zarr.json", group).await;
    let [late, prompt] = [server(&bucket.store()), server(&bucket.store())];
    let rule = Rule { kinds: vec![Kind::Put], key: "g/zarr.json", when: When::Nth(0), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let held = tokio::spawn(async move {
        let headers = [("content-type", "application/merge-patch+json")];
        late.request("PATCH", "/v1/nodes/m/g/a", &headers, r#"{"attributes": {"n": 1}}"#).await
    });
    bucket.until_one_waits().await;
    assert_eq!(prompt.append_until_done("one", "g/a?append=0", &[7]).await["stop"], 4);
    bucket.go_on();
    let answer = held.await.unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let copies = prompt.get("/store/m/g/zarr.json").await.json();
    let copy = &copies["consolidated_metadata"]["metadata"]["a"];
    assert_eq!(*copy, prompt.get("/store/m/g/a/zarr.json").await.json());
    assert_eq!((&copy["shape"], &copy["attributes"]["n"]), (&json!([4]), &json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_clients_that_append_each_element_is_there_once() {
    let store = memory();
    log(0).store(&store, "a").await;
    let server = server(&store);
    let appends = (1..=100_u8).map(|number| server.append("a?append=0", vec![number; 3]));
    for (number, answer) in join_all(appends).await.into_iter().enumerate() {
        assert_eq!(answer.status, 200, "{number}: {:?}", answer.body);
        let start = answer.json()["start"].as_u64().unwrap();
        let expected = json!(vec![number + 1; 3]);
        assert_eq!(server.json(&format!("a?slice={start}:{}", start + 3)).await, expected);
    }
    assert_eq!(server.json("a").await.as_array().unwrap().len(), 300);
}

/// Appends through several servers while requests of the backend fail, and checks that each append is there once.
async fn append_through(bucket: &TestS3, rules: Vec<Rule>, seed: u64) -> usize {
    log(0).store(&bucket.store(), "a").await;
    let servers: Vec<Server> = (0..3).map(|_| server(&bucket.store())).collect();
    bucket.inject(rules, seed);
    let clients = (0..12_u8).map(|client| {
        let server = &servers[usize::from(client) % servers.len()];
        async move {
            for number in 0..4_u8 {
                let byte = 1 + client * 4 + number;
                server.append_until_done(&format!("k{byte}"), "a?append=0", &[byte, byte]).await;
            }
        }
    });
    join_all(clients).await;
    let injected = bucket.heal();
    let elements = server(&bucket.store()).elements("m/a", "").await;
    let mut pairs: Vec<u8> = elements.chunks(2).map(|pair| pair[0]).collect();
    assert!(elements.chunks(2).all(|pair| pair[0] == pair[1]), "{elements:?}");
    pairs.sort_unstable();
    assert_eq!(pairs, (1..=48).collect::<Vec<u8>>());
    injected
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_through_several_servers_to_one_bucket_are_each_there_once() {
    append_through(&TestS3::start().await, Vec::new(), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_answers_of_the_backend_lost_each_append_is_there_once() {
    let bucket = TestS3::start().await;
    let rule = |fault| Rule { kinds: vec![Kind::Put], key: "", when: When::PerMille(60), fault };
    let faults = [Fault::DoneThenReset, Fault::DoneThen(500), Fault::Status(503), Fault::ResetBeforeHead];
    assert!(append_through(&bucket, faults.map(rule).to_vec(), 7).await > 5);
}

#[tokio::test]
async fn an_append_that_is_sent_again_is_answered_and_not_done_again() {
    let bucket = TestS3::start().await;
    log(0).store(&bucket.store(), "a").await;
    let first = server(&bucket.store());
    let answer = first.append_as("one", "a?append=0", [1, 2]).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(first.append("a?append=0", [3]).await.status, 200);
    // Through this server, and through one that knows nothing but what is stored.
    for server in [first, server(&bucket.store())] {
        assert_eq!(server.append_until_done("one", "a?append=0", &[1, 2]).await, answer.json());
        let other = server.append_as("one", "a?append=0", [1, 3]).await;
        other.refuses(422, "idempotency-key-used", "other elements");
        assert_eq!(other.json()["written"], false);
        assert_eq!(server.json("a").await, json!([1, 2, 3]));
    }
}

#[tokio::test]
async fn an_array_that_is_made_again_or_has_shrunk_has_each_append_that_is_acknowledged() {
    let store = memory();
    let mount = Mount { writable: true, ..Mount::read_only("m", Arc::clone(&store)) };
    let server = Server::build(Mount { allow_prefix_delete: true, ..mount }).finish();
    let headers = [("content-type", "application/json")];
    let of_length = |length: u64| json!({"shape": [length], "data_type": "uint8", "chunks": [8]}).to_string();
    let create = async |length| {
        let answer = server.request("PUT", "/v1/nodes/m/a", &headers, of_length(length)).await;
        assert_eq!(answer.status, 201, "{:?}", answer.body);
    };
    create(0).await;
    // The append could be in the second of the new arrays by its length.
    for length in [0_u64, 4] {
        assert_eq!(server.append_as("one", "a?append=0", [1, 2]).await.status, 200);
        assert_eq!(server.request("DELETE", "/v1/nodes/m/a", &[], "").await.status, 204);
        create(length).await;
        assert_eq!(server.append_as("one", "a?append=0", [1, 2]).await.json()["start"], length);
        assert_eq!(server.json(&format!("a?slice={length}:")).await, json!([1, 2]));
    }
    let shrunk = server.request("PATCH", "/v1/nodes/m/a", &headers, r#"{"shape":[1]}"#).await;
    assert_eq!(shrunk.status, 200, "{:?}", shrunk.body);
    assert_eq!(server.append_as("one", "a?append=0", [1, 2]).await.json()["start"], 1);
    assert_eq!(server.json("a").await, json!([0, 1, 2]));
}

#[tokio::test]
async fn keys_of_an_erased_array_hold_up_no_append_to_the_next_one() {
    let mount = Mount { writable: true, ..Mount::read_only("m", memory()) };
    let server = Server::build(Mount { allow_prefix_delete: true, ..mount }).finish();
    for round in 0..2_usize {
        create(&server).await;
        let keys: Vec<String> = (0..300).map(|number| format!("{round}-{number}")).collect();
        let answers = join_all(keys.iter().map(|key| server.append_as(key, "a?append=0", [1]))).await;
        let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status != 200).collect();
        // Of 300 at once, those are refused that wait while more keys are used than are promised.
        assert!(refused.len() <= 300 - 256, "{round}: {refused:?}");
        for answer in refused {
            answer.refuses(503, "contended", "its key may have been used since");
        }
        assert_eq!(server.request("DELETE", "/v1/nodes/m/a", &[], "").await.status, 204);
    }
    create(&server).await;
    for key in ["one", "two", "three"] {
        let answers = join_all(["a", "b"].map(|part| {
            let (server, key) = (server.clone(), format!("{key}-{part}"));
            async move { server.append_as(&key, "a?append=0", [1]).await }
        }));
        for answer in answers.await {
            assert_eq!(answer.status, 200, "{key}: {:?}", answer.body);
        }
    }
}

#[tokio::test]
async fn at_says_where_the_array_must_end() {
    let store = memory();
    log(3).store(&store, "a").await;
    let server = server(&store);
    assert_eq!(server.append("a?append=0&at=3", [7]).await.status, 200);
    let refused = server.append("a?append=0&at=3", [7]).await;
    refused.refuses(409, "not-the-end", "sent again");
    assert_eq!((&refused.json()["length"], &refused.json()["written"]), (&json!(4), &json!(false)));
    assert_eq!(server.json("a").await, json!([0, 0, 0, 7]));
}

#[tokio::test]
async fn a_dimension_that_is_not_named_is_asked_for_by_name() {
    let store = memory();
    log(3).members(json!({"dimension_names": ["time"]})).store(&store, "a").await;
    let server = server(&store);
    for url in ["a?append", "a?append="] {
        let detail = server.append(url, [1]).await.refuses(400, "invalid-request", url);
        assert!(detail.contains("`append`") && detail.contains("time"), "{detail}");
    }
}

/// Eight clients write the chunk at the end of an array all the time, until `work` is done.
async fn beside_hot_writers(server: &Server, work: impl Future<Output = ()>) {
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let hot = (0..8_u8).map(|number| {
        let is_done = &is_done;
        async move {
            let mut written = 0;
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) || written == 0 {
                let url = format!("/v1/data/m/a?slice={number}:{}", number + 1);
                let headers = [("content-type", PLAIN), ("content-length", "1")];
                let answer = server.request("PUT", &url, &headers, vec![number]).await;
                assert_eq!(answer.status, 204, "{:?}", answer.body);
                written += 1;
            }
        }
    });
    let work = async {
        work.await;
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    futures::join!(join_all(hot), work);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_and_changes_of_shape_come_through_beside_writers_of_the_same_chunk() {
    let directory = tempfile::tempdir().unwrap();
    let options = zarrd::store::StoreOptions { writable: true, ..zarrd::store::StoreOptions::default() };
    let open =
        zarrd::store::open(directory.path().to_str().unwrap(), &options, &crate::support::server::cpu());
    let store = open.unwrap();
    let edge = Array::of(&[8]).data_type(crate::support::data_types::data_type("uint8")).chunks(&[64]);
    let edge = edge.uniform(0);
    edge.store(&store, "a").await;
    let fill = u8::try_from(edge.document().1["fill_value"].as_u64().unwrap()).unwrap();
    let server = server(&store);
    let headers = [("content-type", "application/json")];
    Box::pin(beside_hot_writers(&server, async {
        for length in 9..25 {
            let answer = server.append("a?append=0", [100]).await;
            assert_eq!(answer.status, 200, "{length}: {:?}", answer.body);
        }
        for length in 25..41 {
            let body = json!({"shape": [length]}).to_string();
            let answer = server.request("PATCH", "/v1/nodes/m/a", &headers, body).await;
            assert_eq!(answer.status, 200, "{length}: {:?}", answer.body);
        }
    }))
    .await;
    let expected: Vec<u8> = (0..8).chain([100; 16]).chain([fill; 16]).collect();
    assert_eq!(server.elements("m/a", "").await, expected);
}

/// The place of the record of the one array that there is.
pub(crate) fn record_key(bucket: &TestS3) -> String {
    let mut keys = bucket.keys().into_iter().filter(|key| key.contains("/appends/"));
    keys.next().unwrap().strip_prefix("some/prefix/").unwrap().to_owned()
}

/// Lets the lease of the owner end, as time does.
pub(crate) fn end_lease(bucket: &TestS3) {
    let key = record_key(bucket);
    let mut record: Value = serde_json::from_slice(&bucket.value(&key).unwrap()).unwrap();
    assert_ne!(record["until"], 0, "no server has the lease");
    record["until"] = json!(1);
    bucket.insert(&key, record.to_string());
}

/// One server is held up while it appends, at a request of this kind and key; another one takes the array over and appends.
async fn append_around(kind: Kind, key: &'static str) {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let [late, prompt] = [server(&bucket.store()), server(&bucket.store())];
    bucket.inject(vec![Rule { kinds: vec![kind], key, when: When::Nth(0), fault: Fault::Wait }], 1);
    let held = tokio::spawn(async move {
        let answer = late.append_as("late", "a?append=0", [1, 1]).await;
        (late, answer)
    });
    bucket.until_one_waits().await;
    end_lease(&bucket);
    assert_eq!(
        prompt.append_until_done("prompt", "a?append=0", &[2, 2, 2]).await,
        json!({"start": 3, "stop": 6, "shape": [6]})
    );
    bucket.go_on();
    let (late, answer) = held.await.unwrap();
    if answer.status != 200 {
        late.append_until_done("late", "a?append=0", &[1, 1]).await;
    }
    for server in [late, prompt] {
        assert_eq!(server.json("a").await, json!([0, 0, 0, 2, 2, 2, 1, 1]), "{:?}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_comes_too_late_with_its_document_changes_nothing() {
    append_around(Kind::Put, "a/zarr.json").await;
}

/// A server whose append of two rows is held up at the document of an array, another one that does something to the array meanwhile, and the
/// elements that are there in the end, when the first has appended.
async fn beside_a_held_document<F: Future<Output = ()>>(meanwhile: impl FnOnce(Arc<Server>) -> F) -> Value {
    let bucket = TestS3::start().await;
    let writable = |store| {
        let mount = Mount { writable: true, allow_prefix_delete: true, ..Mount::read_only("m", store) };
        Arc::new(Server::build(mount).finish())
    };
    let [late, prompt] = [writable(bucket.store()), writable(bucket.store())];
    create(&prompt).await;
    let rule = Rule { kinds: vec![Kind::Put], key: "a/zarr.json", when: When::Nth(0), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let server = Arc::clone(&late);
    let held = tokio::spawn(async move { server.append_as("late", "a?append=0", [1, 1]).await });
    bucket.until_one_waits().await;
    end_lease(&bucket);
    meanwhile(Arc::clone(&prompt)).await;
    bucket.go_on();
    let answer = held.await.unwrap();
    if answer.status != 200 {
        late.append_until_done("late", "a?append=0", &[1, 1]).await;
    }
    prompt.json("a").await
}

/// Creates the same array of three elements again and again.
pub(crate) async fn create(server: &Server) {
    let headers = [("content-type", "application/json")];
    let document = r#"{"shape": [3], "data_type": "uint8", "chunks": [8]}"#;
    let answer = server.request("PUT", "/v1/nodes/m/a", &headers, document).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_of_another_owner_that_says_the_same_is_not_taken_for_ones_own() {
    let elements = beside_a_held_document(async |prompt| {
        prompt.append_until_done("prompt", "a?append=0", &[2, 2]).await;
    });
    assert_eq!(elements.await, json!([0, 0, 0, 2, 2, 1, 1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_does_not_pass_where_the_array_has_its_shape_again() {
    let elements = beside_a_held_document(async |prompt| {
        prompt.append_until_done("prompt", "a?append=0", &[2, 2]).await;
        let headers = [("content-type", "application/merge-patch+json")];
        let answer = prompt.request("PATCH", "/v1/nodes/m/a", &headers, r#"{"shape": [3]}"#).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    });
    assert_eq!(elements.await, json!([0, 0, 0, 1, 1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_does_not_pass_where_the_same_array_is_made_again() {
    let elements = beside_a_held_document(async |prompt| {
        let answer = prompt.request("DELETE", "/v1/nodes/m/a", &[], "").await;
        assert_eq!(answer.status, 204, "{:?}", answer.body);
        create(&prompt).await;
    });
    assert_eq!(elements.await, json!([0, 0, 0, 1, 1]));
}

#[tokio::test]
async fn an_append_that_has_left_the_shape_is_done_again_whatever_was_appended_since() {
    let server = Server::build(Mount { writable: true, ..Mount::read_only("m", memory()) }).finish();
    create(&server).await;
    let first = server.append_as("one", "a?append=0", [7]).await;
    assert_eq!(first.json()["start"], 3, "{:?}", first.body);
    let headers = [("content-type", "application/merge-patch+json")];
    let answer = server.request("PATCH", "/v1/nodes/m/a", &headers, r#"{"shape": [3]}"#).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(server.append("a?append=0", [9]).await.json()["start"], 3);
    assert_eq!(server.append_as("one", "a?append=0", [7]).await.json()["start"], 4);
    assert_eq!(server.json("a").await, json!([0, 0, 0, 9, 7]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_comes_too_late_with_its_elements_changes_nothing() {
    append_around(Kind::Put, "a/c/0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_was_held_up_until_its_key_was_dropped_is_not_done_again() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let [late, prompt] = [server(&bucket.store()), server(&bucket.store())];
    // It has checked that conditions hold, which takes three writes, has the lease, and is about to say what it appends. Later it would
    // notice within a second that it lost the lease.
    let rule = Rule { kinds: vec![Kind::Put], key: "/appends/", when: When::Nth(4), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let held = tokio::spawn(async move { late.append_as("one", "a?append=0", [7]).await });
    bucket.until_one_waits().await;
    end_lease(&bucket);
    // The client has given up, and sends it to another server. Then more keys are used than are kept.
    prompt.append_until_done("one", "a?append=0", &[7]).await;
    let others: Vec<String> = (0..600).map(|number| format!("other-{number}")).collect();
    let appends = others.iter().map(|key| prompt.append_until_done(key, "a?append=0", &[2]));
    futures::future::join_all(appends).await;
    bucket.go_on();
    let refused = held.await.unwrap();
    refused.refuses(503, "contended", "its key may have been used since");
    assert_eq!(refused.json()["written"], false);
    let rows: Vec<u8> = serde_json::from_value(prompt.json("a").await).unwrap();
    let places: Vec<usize> = (0..rows.len()).filter(|place| rows[*place] == 7).collect();
    assert_eq!((rows.len(), places), (604, vec![3]));
}

/// A server settles what another one broke off; before it has the document, a third one appends. What is broken off is not taken for
/// done because the array is long enough by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_broke_off_is_not_taken_for_what_another_server_appended() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let before = bucket.objects();
    server(&bucket.store()).append_until_done("one", "a?append=0", &[7]).await;
    let key = record_key(&bucket);
    let mut record: Value = serde_json::from_slice(&bucket.value(&key).unwrap()).unwrap();
    // As if it had stored neither elements nor the shape.
    bucket.put_back(&before);
    // What is done stays pending in the record until something else is stored there.
    assert_eq!((record["pending"].as_array().unwrap().len(), &record["done"]), (1, &json!([])));
    record["until"] = json!(1);
    record["keys_used"] = json!(0);
    bucket.insert(&key, record.to_string());

    let [second, third] = [server(&bucket.store()), server(&bucket.store())];
    let fault = Fault::DoneThenWait;
    bucket.inject(vec![Rule { kinds: vec![Kind::Put], key: "a/zarr.json", when: When::Nth(0), fault }], 1);
    let held = tokio::spawn(async move {
        let answer = second.append_as("one", "a?append=0", [7]).await;
        (second, answer)
    });
    bucket.until_one_waits().await;
    end_lease(&bucket);
    assert_eq!(third.append_until_done("other", "a?append=0", &[2, 2, 2]).await["start"], 3);
    bucket.go_on();
    let (second, answer) = held.await.unwrap();
    if answer.status != 200 {
        second.append_until_done("one", "a?append=0", &[7]).await;
    }
    assert_eq!(third.json("a").await, json!([0, 0, 0, 2, 2, 2, 7]), "{:?}", answer.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_shape_that_comes_too_late_erases_no_appended_element() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let [late, prompt] = [server(&bucket.store()), server(&bucket.store())];
    // It waits before it clears what lies behind the edge, in the chunk that the append shares.
    let rule = Rule { kinds: vec![Kind::Put], key: "a/c/0", when: When::Nth(0), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let held = tokio::spawn(async move {
        let headers = [("content-type", "application/merge-patch+json")];
        let answer = late.request("PATCH", "/v1/nodes/m/a", &headers, r#"{"shape": [5]}"#).await;
        (late, answer)
    });
    bucket.until_one_waits().await;
    end_lease(&bucket);
    prompt.append_until_done("prompt", "a?append=0", &[2, 2, 2, 2]).await;
    bucket.go_on();
    let (late, answer) = held.await.unwrap();
    // It shrinks the array then, or is refused: what is left of the appended elements is as they were.
    let shape = if answer.status == 200 { 5 } else { 7 };
    for server in [late, prompt] {
        let expected: Vec<u8> = [0, 0, 0, 2, 2, 2, 2].into_iter().take(shape).collect();
        assert_eq!(server.json("a").await, json!(expected), "{:?}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_appends_is_waited_for_and_the_refusal_says_so() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let [first, second] = [server(&bucket.store()), server(&bucket.store())];
    let rule = Rule { kinds: vec![Kind::Put], key: "a/zarr.json", when: When::Nth(0), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let held = tokio::spawn(async move { first.append("a?append=0", [1]).await });
    bucket.until_one_waits().await;
    let refused = second.append("a?append=0", [2]).await;
    refused.refuses(503, "contended", "another server appends");
    assert_eq!(refused.json()["written"], false);
    assert!(!refused.header("retry-after").is_empty());
    bucket.go_on();
    assert_eq!(held.await.unwrap().status, 200);
    // The first gives its lease back soon, and nothing has to be settled then: the document gets no mark.
    assert_eq!(second.append_until_done("two", "a?append=0", &[2]).await["start"], 4);
    assert_eq!(second.json("a").await, json!([0, 0, 0, 1, 2]));
    assert!(bucket.value("a/zarr.json").unwrap().ends_with(b"}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_takes_longer_than_a_response_may_says_that_it_goes_on() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let mut builder = Server::build(Mount { writable: true, ..Mount::read_only("m", bucket.store()) });
    builder.http.response_timeout = Duration::from_millis(300);
    let server = builder.finish();
    let rule = Rule { kinds: vec![Kind::Put], key: "a/c/0", when: When::Nth(0), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let late = server.append("a?append=0", [1]).await;
    late.refuses(504, "timed-out", "goes on");
    assert_eq!(late.json()["written"], "unknown");
    bucket.go_on();
    for _ in 0..400 {
        if server.json("a").await == json!([0, 0, 0, 1]) {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("it has not gone on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_cannot_be_checked_for_a_moment_breaks_no_append_off() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let server = server(&bucket.store());
    let rule = Rule { kinds: vec![Kind::Put], key: "a/c/0", when: When::Nth(0), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let append = tokio::spawn(async move { (server.append("a?append=0", [1]).await, server) });
    bucket.until_one_waits().await;
    let (kinds, when, fault) = (vec![Kind::Head], When::Always, Fault::Status(403));
    bucket.inject(vec![Rule { kinds, key: "/appends/", when, fault }], 1);
    // It is checked each second.
    sleep(Duration::from_millis(1500)).await;
    assert!(bucket.heal() > 0);
    bucket.go_on();
    let (answer, server) = append.await.unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(server.json("a").await, json!([0, 0, 0, 1]));
}

#[tokio::test]
async fn readers_see_nothing_of_an_append_before_all_of_it() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let server = Arc::new(server(&bucket.store()));
    let rule = Rule { kinds: vec![Kind::Put], key: "a/zarr.json", when: When::Nth(0), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let appending = Arc::clone(&server);
    let held = tokio::spawn(async move { appending.append("a?append=0", vec![1; 20]).await });
    bucket.until_one_waits().await;
    // All chunks are stored by now.
    assert!(bucket.value("a/c/2").is_some());
    assert_eq!(server.json("a").await, json!([0, 0, 0]));
    bucket.go_on();
    assert_eq!(held.await.unwrap().status, 200);
    assert_eq!(server.json("a").await.as_array().unwrap().len(), 23);
}

#[tokio::test]
async fn bad_appends_are_refused_by_name_and_leave_the_store_as_it_was() {
    let store = memory();
    Array::of(&[2, 3]).chunks(&[2, 3]).store(&store, "a").await;
    put(&store, "g/zarr.json", r#"{"zarr_format":3,"node_type":"group"}"#).await;
    let before = contents(&store).await;
    let server = server(&store);
    let json = "application/json";
    for (url, media_type, body, status, code) in [
        ("a?append=0", PLAIN, vec![0; 7], 400, "shape-mismatch"),
        ("a?append=time", PLAIN, vec![0; 6], 400, "invalid-request"),
        ("a?append=2", PLAIN, vec![0; 6], 400, "invalid-request"),
        ("a?append", PLAIN, vec![0; 6], 400, "invalid-request"),
        ("a?append=0&append=1", PLAIN, vec![0; 6], 400, "invalid-request"),
        ("a?append=0&at=-1", PLAIN, vec![0; 6], 400, "invalid-request"),
        ("a?append=0&slice=0", PLAIN, vec![0; 6], 400, "invalid-request"),
        ("a?append=0&at=1", PLAIN, vec![0; 6], 409, "not-the-end"),
        ("a?append=0&expected_shape=1,3", PLAIN, vec![0; 6], 409, "conflict"),
        ("a?append=0", "text/csv", vec![0; 6], 415, "unsupported-media-type"),
        ("a?append=0", json, b"7".to_vec(), 400, "invalid-request"),
        ("a?append=0", json, b"[1,2,3]".to_vec(), 400, "shape-mismatch"),
        ("a?append=0", json, b"[[1,2]]".to_vec(), 400, "shape-mismatch"),
        ("a?append=0", json, b"[[1,2,3],[4]]".to_vec(), 400, "shape-mismatch"),
        ("a?append=0", json, b"[[1,2,-3]]".to_vec(), 400, "invalid-request"),
        ("a?append=0", "application/x-npy", vec![0; 6], 400, "invalid-request"),
        ("g?append=0", PLAIN, vec![0; 6], 404, "not-found"),
        ("x?append=0", PLAIN, vec![0; 6], 404, "not-found"),
    ] {
        let headers = [("content-type", media_type)];
        let answer = server.request("POST", &format!("/v1/data/m/{url}"), &headers, body).await;
        answer.refuses(status, code, url);
        assert_eq!(answer.json()["written"], false, "{url}");
    }
    let refused = server.append_as("a b", "a?append=0", vec![0; 6]).await;
    refused.refuses(400, "invalid-request", "a key with a space");
    assert_eq!(contents(&store).await, before);
    let read_only = Server::of(store);
    read_only.append("a?append=0", vec![0; 6]).await.refuses(405, "not-allowed", "read-only");
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_named_and_appending_goes_on_without_it() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let server = server(&bucket.store());
    assert_eq!(server.append("a?append=0", [1]).await.status, 200);
    let key = record_key(&bucket);
    for text in ["{".to_owned(), " ".repeat((1 << 20) + 1)] {
        bucket.insert(&key, text);
        let headers = [("content-type", "application/merge-patch+json")];
        let appended = server.append("a?append=0", [2]).await;
        let resized = server.request("PATCH", "/v1/nodes/m/a", &headers, r#"{"shape": [9]}"#).await;
        for (answer, what) in [(appended, "an append"), (resized, "a change of shape")] {
            let detail = answer.refuses(500, "corrupt-data", what);
            assert!(detail.contains(&format!("`{key}`")), "{what}: {detail}");
            assert!(detail.contains("delete it"), "{what}: {detail}");
            assert_eq!(answer.json()["written"], false, "{what}");
        }
    }
    let mut objects = bucket.objects();
    objects.retain(|name, _| !name.ends_with(&key));
    bucket.put_back(&objects);
    assert_eq!(server.append("a?append=0", [2]).await.status, 200);
    assert_eq!(server.json("a").await, json!([0, 0, 0, 1, 2]));
}

#[tokio::test]
async fn where_conditions_are_ignored_appending_is_not_supported() {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    bucket.ignore_conditions();
    let refused = server(&bucket.store()).append("a?append=0", [1]).await;
    assert_eq!(refused.status, 501, "{:?}", refused.body);
    assert_eq!(refused.json()["written"], false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_under_all_names_of_an_array_are_each_there_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let store: SharedStore = Arc::new(LocalStore::open(root, &options).unwrap());
    log(0).store(&store, "real/a").await;
    // To a group, to the array, and by way of another link.
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    std::os::unix::fs::symlink("a", root.join("real/b")).unwrap();
    std::fs::create_dir(root.join("far")).unwrap();
    std::os::unix::fs::symlink("../link", root.join("far/up")).unwrap();
    let server = server(&store);
    let names = ["real/a", "link/a", "real/b", "far/up/b"];
    let appends = names.into_iter().enumerate().map(|(client, name)| {
        let server = server.clone();
        tokio::spawn(async move {
            for number in 0..5 {
                let row = u8::try_from(client * 5 + number).unwrap();
                server.append_until_done(&row.to_string(), &format!("{name}?append=0"), &[row]).await;
            }
        })
    });
    for append in appends.collect::<Vec<_>>() {
        append.await.unwrap();
    }
    for name in names {
        let mut rows: Vec<u64> = serde_json::from_value(server.json(name).await).unwrap();
        rows.sort_unstable();
        assert_eq!(rows, (0..20).collect::<Vec<_>>(), "{name}");
    }
}

#[tokio::test]
async fn who_appends_needs_the_right_to_write_the_array_and_no_other() {
    let store = memory();
    for path in ["a", "g/b"] {
        log(1).store(&store, path).await;
    }
    let server = server(&store);
    let tokens = json!({
        "reader": known("reader", json!([grant("m", "", &["read", "list"])])),
        "writer": known("writer", json!([grant("m", "", &["write"])])),
        "below": known("below", json!([grant("m", "g", &["write"])])),
    });
    server.set_access(access(json!({ "tokens": tokens }), &[], &Arc::default()));
    for (caller, path, status) in [
        ("", "a", 401),
        ("reader", "a", 403),
        ("writer", "a", 200),
        ("writer", "g/b", 200),
        ("below", "a", 403),
        ("below", "g/b", 200),
    ] {
        let bearer = format!("Bearer {}", token(caller));
        let mut headers = vec![("content-type", PLAIN)];
        headers.extend((!caller.is_empty()).then_some(("authorization", bearer.as_str())));
        for query in ["append=0", "%61ppend=0"] {
            let url = format!("/v1/data/m/{path}?{query}");
            let answer = server.request("POST", &url, &headers, [7].as_slice()).await;
            assert_eq!(answer.status, status, "{caller} {url}: {:?}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_page_of_another_origin_appends_nothing() {
    let store = memory();
    log(1).store(&store, "a").await;
    let server = server(&store);
    let headers = [("content-type", "text/plain"), ("host", "localhost"), ("origin", "http://evil.example")];
    let refused =
        server.request("POST", "/v1/data/m/a?append=0&format=bytes", &headers, [7].as_slice()).await;
    assert_eq!(refused.status, 403, "{:?}", refused.body);
    assert_eq!(server.json("a").await, json!([0]));
}
