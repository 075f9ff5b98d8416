//! Appends to several arrays of a group in one step: all of them grow, or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::{LocalOptions, LocalStore, SharedStore};

use crate::appends::{log, server};
use crate::support::counting::until;
use crate::support::hierarchy::{Array, memory};
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::{Answer, Server, contents, put};

const PLAIN: &str = "application/octet-stream";

/// The names and the bytes of parts.
type Parts = &'static [(&'static str, &'static [u8])];

/// A body in parts.
fn form(boundary: &str, parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, bytes) in parts {
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"f\"\r\ncontent-type: {PLAIN}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    body
}

impl Server {
    async fn append_form(&self, key: &str, url: &str, parts: &[(&str, &[u8])]) -> Answer {
        self.append_form_between("x", key, url, parts).await
    }

    /// The same with another text between the parts.
    async fn append_form_between(
        &self,
        boundary: &str,
        key: &str,
        url: &str,
        parts: &[(&str, &[u8])],
    ) -> Answer {
        let media_type = format!("multipart/form-data; boundary={boundary}");
        let headers = [("content-type", media_type.as_str()), ("idempotency-key", key)];
        self.request("POST", &format!("/v1/data/m/{url}"), &headers, form(boundary, parts)).await
    }
}

/// A group with arrays of this length: one of bytes, one of pairs of them, and consolidated metadata.
async fn dataset(store: &SharedStore, length: usize) {
    log(length).store(store, "g/t").await;
    let pairs = Array::of(&[length, 2]).data_type(crate::support::data_types::data_type("uint8"));
    pairs.chunks(&[4, 2]).uniform(0).store(store, "g/sub/p").await;
    let copies = server(store).get("/store/m/g/zarr.json?consolidated").await;
    assert_eq!(copies.status, 404);
    put(store, "g/zarr.json", r#"{"zarr_format":3,"node_type":"group"}"#).await;
    let copies = server(store).get("/store/m/g/zarr.json?consolidated").await;
    put(store, "g/zarr.json", copies.body).await;
}

async fn shapes(server: &Server) -> [Value; 4] {
    let copies = server.get("/store/m/g/zarr.json").await.json();
    let copy = |path: &str| copies["consolidated_metadata"]["metadata"][path]["shape"].clone();
    let own =
        async |path: &str| server.get(&format!("/store/m/g/{path}/zarr.json")).await.json()["shape"].clone();
    [own("t").await, own("sub/p").await, copy("t"), copy("sub/p")]
}

#[tokio::test]
async fn arrays_of_a_group_grow_in_one_step() {
    let store = memory();
    dataset(&store, 3).await;
    let server = server(&store);
    let parts: [(&str, &[u8]); 2] = [("t", &[1, 2]), ("sub/p", &[3, 4, 5, 6])];
    let answer = server.append_form("one", "g?append=0&at=3", &parts).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.json(), json!({"start": 3, "stop": 5}));
    assert_eq!(shapes(&server).await, [json!([5]), json!([5, 2]), json!([5]), json!([5, 2])]);
    assert_eq!(server.json("g/sub/p?slice=3:").await, json!([[3, 4], [5, 6]]));
    // Sent again, it is answered; with other elements, refused.
    assert_eq!(server.append_form("one", "g?append=0&at=3", &parts).await.json(), answer.json());
    let again = server.append_form_between("another", "one", "g?append=0&at=3", &parts).await;
    assert_eq!(again.json(), answer.json(), "{:?}", again.body);
    let other = server.append_form("one", "g?append=0&at=3", &[("t", &[9]), ("sub/p", &[9, 9])]).await;
    other.refuses(422, "idempotency-key-used", "other elements");
    // Arrays of different lengths do not grow together.
    assert_eq!(server.append("g/t?append=0", [7]).await.status, 200);
    let refused = server.append_form("two", "g?append=0", &[("t", &[9]), ("sub/p", &[9, 9])]).await;
    refused.refuses(409, "different-lengths", "one is longer");
    assert_eq!(refused.json()["written"], false);
    assert_eq!(server.json("g/t").await, json!([0, 0, 0, 1, 2, 7]));
}

#[tokio::test]
async fn appends_of_many_clients_to_a_group_all_come_through() {
    let directory = tempfile::tempdir().unwrap();
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    let store: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
    dataset(&store, 0).await;
    let server = server(&store);
    let clients = (0..8_u8).map(|client| {
        let server = server.clone();
        tokio::spawn(async move {
            for number in 0..12_u8 {
                let parts: [(&str, &[u8]); 2] = [("t", &[client]), ("sub/p", &[client, number])];
                let answer = server.append_form(&format!("{client}-{number}"), "g?append=0", &parts).await;
                assert_eq!(answer.status, 200, "{answer:?}");
            }
        })
    });
    for client in join_all(clients).await {
        client.unwrap();
    }
    let clients: Vec<u64> = serde_json::from_value(server.json("g/t").await).unwrap();
    let pairs: Vec<[u64; 2]> = serde_json::from_value(server.json("g/sub/p").await).unwrap();
    assert_eq!(clients, pairs.iter().map(|[client, _]| *client).collect::<Vec<_>>());
    let expected: BTreeSet<[u64; 2]> =
        (0..8).flat_map(|client| (0..12).map(move |number| [client, number])).collect();
    assert_eq!(pairs.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(pairs.len(), expected.len());
}

#[tokio::test]
async fn an_array_of_a_group_that_is_made_again_gets_the_elements_again() {
    let store = memory();
    let mount = Mount { writable: true, ..Mount::read_only("m", Arc::clone(&store)) };
    let server = Server::build(Mount { allow_prefix_delete: true, ..mount }).finish();
    let headers = [("content-type", "application/json")];
    let create = async |length: u64| {
        let body = json!({"shape": [length], "data_type": "uint8", "chunks": [8]}).to_string();
        assert_eq!(server.request("PUT", "/v1/nodes/m/g/t", &headers, body).await.status, 201);
    };
    create(0).await;
    let parts: [(&str, &[u8]); 1] = [("t", &[1, 2])];
    let first = server.append_form("one", "g?append=0", &parts).await;
    assert_eq!(first.json(), json!({"start": 0, "stop": 2}), "{:?}", first.body);
    assert_eq!(server.append_form("one", "g?append=0", &parts).await.json(), first.json(), "done once");
    assert_eq!(server.request("DELETE", "/v1/nodes/m/g/t", &[], "").await.status, 204);
    // It is longer than the append was.
    create(5).await;
    let again = server.append_form("one", "g?append=0", &parts).await;
    assert_eq!(again.json(), json!({"start": 5, "stop": 7}), "{:?}", again.body);
    assert_eq!(server.json("g/t").await, json!([0, 0, 0, 0, 0, 1, 2]));
}

#[tokio::test]
async fn bad_parts_are_refused_by_name_and_leave_the_store_as_it_was() {
    let store = memory();
    dataset(&store, 3).await;
    let before = contents(&store).await;
    let server = server(&store);
    let cases: [(&str, Parts, u16, &str); 8] = [
        ("g?append=0", &[], 400, "invalid-request"),
        ("g?append=0", &[("t", &[1]), ("x", &[1])], 404, "not-found"),
        ("g?append=0", &[("t", &[1]), ("t", &[1])], 400, "invalid-request"),
        ("g?append=0", &[("t", &[1]), ("sub", &[1])], 404, "not-found"),
        ("g?append=0", &[("t", &[1]), ("../g/t", &[1])], 400, "invalid-request"),
        ("g?append=0", &[("t", &[1, 2]), ("sub/p", &[1, 2])], 400, "shape-mismatch"),
        ("g?append=0", &[("t", &[1]), ("sub/p", &[1])], 400, "shape-mismatch"),
        ("g/t?append=0", &[("", &[1])], 400, "invalid-request"),
    ];
    for (url, parts, status, code) in cases {
        let answer = server.append_form("k", url, parts).await;
        answer.refuses(status, code, &format!("{url} {parts:?}"));
        assert_eq!(answer.json()["written"], false, "{url} {parts:?}");
    }
    let headers = [("content-type", "multipart/form-data; boundary=x")];
    let cut = form("x", &[("t", &[1])]);
    let answer =
        server.request("POST", "/v1/data/m/g?append=0", &headers, cut[..cut.len() - 9].to_vec()).await;
    answer.refuses(400, "invalid-request", "a body that ends early");
    assert_eq!(contents(&store).await, before);
}

/// A server breaks off in a step of a group, at a request of this kind and key; another one goes on, by an append to the group or
/// to one array of it.
async fn break_off_in_a_step(key: &'static str, nth: usize, by_array: bool, is_decided: bool) {
    let bucket = TestS3::start().await;
    dataset(&bucket.store(), 3).await;
    let [late, prompt] = [server(&bucket.store()), server(&bucket.store())];
    bucket.inject(vec![Rule { kinds: vec![Kind::Put], key, when: When::Nth(nth), fault: Fault::Wait }], 1);
    let parts: [(&str, &[u8]); 2] = [("t", &[1]), ("sub/p", &[1, 1])];
    let held = tokio::spawn(async move {
        let answer = late.append_form("late", "g?append=0", &parts).await;
        (late, answer)
    });
    bucket.until_one_waits().await;
    // What the other array is given is noted by then, or a moment later: that would renew the lease.
    let noted = || records(&bucket).filter(|(_, record)| record["pending"] != json!([])).count();
    until(|| is_decided || noted() == 2).await;
    end_leases(&bucket);
    let before = if is_decided { 4 } else { 3 };
    if by_array {
        let answer = prompt.append_until_done("prompt", "g/t?append=0", &[2]).await;
        assert_eq!(answer["start"], before);
    } else {
        let answer = prompt.append_form("prompt", "g?append=0", &[("t", &[2]), ("sub/p", &[2, 2])]).await;
        assert_eq!(answer.json(), json!({"start": before, "stop": before + 1}), "{:?}", answer.body);
    }
    bucket.go_on();
    let (late, answer) = held.await.unwrap();
    let mut is_there = answer.status == 200;
    if !is_there && !by_array {
        // Sent again, it is done once.
        let again = late.append_form("late", "g?append=0", &parts).await;
        assert_eq!(again.status, 200, "{:?} {:?}", answer.body, again.body);
        is_there = true;
    }
    for server in [late, prompt] {
        let t = server.json("g/t").await;
        let p = server.json("g/sub/p").await;
        let (t, p) = (t.as_array().unwrap(), p.as_array().unwrap());
        let count = |row: u64| t.iter().filter(|element| element.as_u64() == Some(row)).count();
        assert_eq!((count(1), count(2)), (usize::from(is_there || is_decided), 1), "{t:?} {p:?}");
        if !by_array {
            let firsts: Vec<&Value> = p.iter().map(|pair| &pair[0]).collect();
            assert_eq!(firsts, t.iter().collect::<Vec<_>>());
        }
    }
}

/// The records of appends, and their keys.
fn records(bucket: &TestS3) -> impl Iterator<Item = (String, Value)> {
    bucket.keys().into_iter().filter(|key| key.contains("/appends/")).map(|key| {
        let key = key.strip_prefix("some/prefix/").unwrap().to_owned();
        let record = serde_json::from_slice(&bucket.value(&key).unwrap()).unwrap();
        (key, record)
    })
}

/// Lets all leases of owners end, as time does.
fn end_leases(bucket: &TestS3) {
    for (key, mut record) in records(bucket) {
        if record["until"] != 0 {
            record["until"] = json!(1);
            bucket.insert(&key, record.to_string());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_was_not_decided_never_is() {
    for by_array in [false, true] {
        break_off_in_a_step("g/t/c/0", 0, by_array, false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_was_decided_is_finished_by_who_comes_next() {
    for by_array in [false, true] {
        break_off_in_a_step("g/t/zarr.json", 0, by_array, true).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_step_that_failed_the_next_one_waits_for_no_lease() {
    let parts: [(&str, &[u8]); 2] = [("t", &[1]), ("sub/p", &[1, 1])];
    // The documents are read under the leases; the shape is refused after the step was decided.
    for (kind, fault, is_decided) in
        [(Kind::Get, Fault::Status(403), false), (Kind::Put, Fault::Status(412), true)]
    {
        let bucket = TestS3::start().await;
        dataset(&bucket.store(), 3).await;
        let [one, other] = [server(&bucket.store()), server(&bucket.store())];
        let lease = Rule { kinds: vec![Kind::Put], key: "/appends/", when: When::Nth(0), fault: Fault::Wait };
        bucket.inject(vec![lease], 1);
        let append = tokio::spawn(async move { one.append_form("one", "g?append=0", &parts).await });
        bucket.until_one_waits().await;
        bucket
            .inject(vec![Rule { kinds: vec![kind], key: "g/sub/p/zarr.json", when: When::Always, fault }], 1);
        bucket.go_on();
        let failed = append.await.unwrap();
        assert!(failed.status.is_client_error() || failed.status.is_server_error(), "{failed:?}");
        assert!(bucket.heal() > 0);
        let records: Vec<String> =
            bucket.keys().into_iter().filter(|key| key.contains("/appends/")).collect();
        assert!(records.len() > 1, "{failed:?}");
        for key in records {
            let record = bucket.value(key.strip_prefix("some/prefix/").unwrap()).unwrap();
            let until = serde_json::from_slice::<Value>(&record).unwrap()["until"].as_u64().unwrap();
            assert!(until <= u64::from(is_decided), "{key} is held until {until}");
        }
        let appended = other.append_form("other", "g?append=0", &parts).await;
        let start = if is_decided { 4 } else { 3 };
        assert_eq!(appended.json(), json!({"start": start, "stop": start + 1}), "{appended:?}");
    }
}

/// The group of a bucket whose server decides a step and is then held up at the shape of `t`; another server has `t` meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_array_that_another_server_has_shrunk_does_not_grow_by_a_step_again() {
    let bucket = TestS3::start().await;
    dataset(&bucket.store(), 3).await;
    let [late, prompt] = [server(&bucket.store()), server(&bucket.store())];
    let rule = Rule { kinds: vec![Kind::Put], key: "g/t/zarr.json", when: When::Nth(0), fault: Fault::Wait };
    bucket.inject(vec![rule], 1);
    let held = tokio::spawn(async move {
        late.append_form("late", "g?append=0", &[("t", &[1]), ("sub/p", &[1, 1])]).await
    });
    bucket.until_one_waits().await;
    end_leases(&bucket);
    // It finishes the decided step first, and then takes the row away.
    let headers = [("content-type", "application/merge-patch+json")];
    let shrunk = prompt.request("PATCH", "/v1/nodes/m/g/t", &headers, r#"{"shape": [3]}"#).await;
    assert_eq!(shrunk.status, 200, "{:?}", shrunk.body);
    bucket.go_on();
    let answer = held.await.unwrap();
    assert_eq!(prompt.json("g/t").await, json!([0, 0, 0]), "{:?}", answer.body);
    assert_eq!(prompt.json("g/sub/p").await, json!([[0, 0], [0, 0], [0, 0], [1, 1]]));
}

/// The decision is refused, and so is what the leases of some arrays are given back with: who takes one of these next asks whether the step
/// was decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_decision_was_refused_is_not_decided_when_its_lease_is_given_back() {
    for refused in [vec![0], vec![0, 1], vec![0, 2]] {
        let bucket = TestS3::start().await;
        dataset(&bucket.store(), 3).await;
        let [one, other] = [server(&bucket.store()), server(&bucket.store())];
        let before = bucket.value("g/sub/p/c/0/0");
        let last = Rule { kinds: vec![Kind::Put], key: "g/t/c/0", when: When::Nth(0), fault: Fault::Wait };
        bucket.inject(vec![last], 1);
        let append = tokio::spawn(async move {
            one.append_form("one", "g?append=0", &[("t", &[1]), ("sub/p", &[1, 1])]).await
        });
        bucket.until_one_waits().await;
        until(|| bucket.value("g/sub/p/c/0/0") != before).await;
        // Both arrays say what is appended: the next change of a record is the decision, and the leases are given back after it.
        let rules = refused.iter().map(|&nth| {
            let (when, fault) = (When::Nth(nth), Fault::Status(412));
            Rule { kinds: vec![Kind::Put], key: "/appends/", when, fault }
        });
        bucket.inject(rules.collect(), 1);
        bucket.go_on();
        let answer = append.await.unwrap();
        assert_eq!(bucket.heal(), refused.len(), "{answer:?}");
        end_leases(&bucket);
        // It was done again, or refused because the lease of an array was not given back.
        let is_there = answer.status == 200;
        assert!(is_there || answer.json()["written"] == false, "{answer:?}");
        let start = 3 + u64::from(is_there);
        for (path, row) in [("g/t", &[2][..]), ("g/sub/p", &[2, 2])] {
            let appended = other.append_until_done("other", &format!("{path}?append=0"), row).await;
            assert_eq!(appended["start"], start, "{path} {refused:?} {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_step_takes_as_many_requests_for_each_array_however_many_there_are() {
    let mut counts = Vec::new();
    for arrays in [4, 12, 20] {
        let bucket = TestS3::start().await;
        let store = bucket.store();
        put(&store, "g/zarr.json", r#"{"zarr_format":3,"node_type":"group"}"#).await;
        let names: Vec<String> = (0..arrays).map(|number| format!("a{number:02}")).collect();
        for name in &names {
            log(3).store(&store, &format!("g/{name}")).await;
        }
        let server = server(&store);
        let requests =
            || [Kind::Get, Kind::Head, Kind::Put].map(|kind| bucket.requests(kind)).iter().sum::<usize>();
        let before = requests();
        let parts: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &[1][..])).collect();
        let answer = server.append_form("one", "g?append=0", &parts).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        counts.push(requests() - before);
    }
    // On a busy machine some more renew leases. If each array asked for all leases, it would be 1.75 times as many.
    let (first, second) = (counts[1] - counts[0], counts[2] - counts[1]);
    assert!(second * 4 <= first * 5, "{counts:?}");
}

/// Two groups, one in the other, and steps of both at the same time, whose arrays are the same but for one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_steps_with_arrays_in_common_one_waits_for_the_other() {
    let bucket = TestS3::start().await;
    let store = bucket.store();
    for group in ["g", "g/sub"] {
        put(&store, &format!("{group}/zarr.json"), r#"{"zarr_format":3,"node_type":"group"}"#).await;
    }
    let names: Vec<String> = (0..8).map(|number| format!("x{number}")).collect();
    log(0).store(&store, "g/b").await;
    for name in &names {
        log(0).store(&store, &format!("g/sub/{name}")).await;
    }
    let [one, other] = [server(&store), server(&store)];
    for (round, servers) in
        [[&one, &one], [&one, &other], [&one, &one], [&one, &other]].into_iter().enumerate()
    {
        let within: Vec<String> = names.iter().map(|name| format!("sub/{name}")).collect();
        let parts = |names: &[String], row: u8| -> Vec<(String, Vec<u8>)> {
            names.iter().map(|name| (name.clone(), vec![row])).collect()
        };
        let append = async |server: &Server, group: &str, parts: Vec<(String, Vec<u8>)>| {
            let parts: Vec<(&str, &[u8])> =
                parts.iter().map(|(name, row)| (name.as_str(), row.as_slice())).collect();
            server.append_form(&format!("{group}-{round}"), &format!("{group}?append=0"), &parts).await
        };
        let mut outer = parts(&within, 1);
        outer.push(("b".to_owned(), vec![1]));
        let (inner, outer) =
            futures::join!(append(servers[0], "g/sub", parts(&names, 2)), append(servers[1], "g", outer));
        // `b` is shorter than the others where those have a row more.
        assert_eq!(inner.status, 200, "{round}: {inner:?}");
        assert!(outer.status == 200 || outer.json()["code"] == "different-lengths", "{round}: {outer:?}");
        let rows = outer.status.as_u16();
        for path in within.iter().map(|name| format!("g/{name}")).chain(["g/b".to_owned()]) {
            let headers = [("content-type", "application/merge-patch+json")];
            let shrunk =
                one.request("PATCH", &format!("/v1/nodes/m/{path}"), &headers, r#"{"shape": [0]}"#).await;
            assert_eq!(shrunk.status, 200, "{round} {rows}: {:?}", shrunk.body);
        }
    }
}

#[tokio::test]
async fn arrays_of_texts_grow_in_one_step() {
    let store = memory();
    let server = server(&store);
    let headers = [("content-type", "application/json")];
    for (name, body) in [
        ("texts", json!({"shape": [0], "data_type": "string", "chunks": [4]})),
        ("words", json!({"shape": [0, 2], "data_type": "string", "chunks": [1, 2]})),
    ] {
        let made = server.request("PUT", &format!("/v1/nodes/m/g/{name}"), &headers, body.to_string()).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
    }
    let mut body = Vec::new();
    for (name, text) in [("texts", r#"["abc"]"#), ("words", r#"[["d", "e"]]"#)] {
        let part = format!(
            "--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\ncontent-type: application/json\r\n\r\n{text}\r\n"
        );
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(b"--x--\r\n");
    let headers = [("content-type", "multipart/form-data; boundary=x")];
    let answer = server.request("POST", "/v1/data/m/g?append=0", &headers, body).await;
    assert_eq!(answer.json(), json!({"start": 0, "stop": 1}), "{answer:?}");
    assert_eq!(server.json("g/texts").await, json!(["abc"]));
    assert_eq!(server.json("g/words").await, json!([["d", "e"]]));
}

/// As in `late_writes`, of the decision. Another server finishes the step, and makes one of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_decision_that_was_stored_and_failed_on_its_condition_it_is_not_known_whether_it_holds() {
    let bucket = TestS3::start().await;
    dataset(&bucket.store(), 0).await;
    let [one, other] = [server(&bucket.store()), server(&bucket.store())].map(Arc::new);
    let append = async |server: &Server, key: &str, byte: u8| {
        let parts: [(&str, &[u8]); 2] = [("t", &[byte]), ("sub/p", &[byte, byte])];
        server.append_form(key, "g?append=0", &parts).await
    };
    // The requests before the first append to a bucket are others.
    assert_eq!(append(&one, "first", 1).await.status, 200);
    // Three leases are taken and two steps noted before the decision.
    let fault = Fault::DoneThenFailLater(412);
    bucket.inject(vec![Rule { kinds: vec![Kind::Put], key: "/appends/", when: When::Nth(5), fault }], 1);
    let held = tokio::spawn({
        let one = Arc::clone(&one);
        async move { append(&one, "held", 2).await }
    });
    bucket.until_one_waits().await;
    let append_until_done = async |server: &Server, key: &str, byte: u8| {
        while append(server, key, byte).await.status != 200 {}
    };
    append_until_done(&other, "other", 3).await;
    bucket.go_on();
    let unknown = held.await.unwrap();
    assert_eq!((unknown.status.as_u16(), &unknown.json()["written"]), (503, &json!("unknown")));
    append_until_done(&one, "held", 2).await;
    assert_eq!(one.json("g/t").await, json!([1, 2, 3]));
    assert_eq!(one.json("g/sub/p").await, json!([[1, 1], [2, 2], [3, 3]]));
}
