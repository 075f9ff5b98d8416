//! What an append has sent and that arrives late, or may: it changes no append that was acknowledged since, and the lease of the array is
//! kept until it cannot arrive any more.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::appends::{end_lease, log, record_key, server};
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::Server;

fn rule(kind: Kind, key: &'static str, when: When, fault: Fault) -> Rule {
    Rule { kinds: vec![kind], key, when, fault }
}

/// A bucket with an array of three rows, and two servers.
async fn start() -> (TestS3, [Arc<Server>; 2]) {
    let bucket = TestS3::start().await;
    log(3).store(&bucket.store(), "a").await;
    let servers = [server(&bucket.store()), server(&bucket.store())].map(Arc::new);
    (bucket, servers)
}

/// The version of a value in S3 is a digest of its bytes. An append that stores what an earlier attempt has left there keeps the version,
/// so that it would not keep away what another owner has sent at this version before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elements_that_arrive_late_change_no_append_of_the_bytes_that_were_there_already() {
    let (bucket, [late, prompt]) = start().await;
    // Of this attempt, the elements stay.
    bucket.inject(vec![rule(Kind::Put, "a/zarr.json", When::Always, Fault::Status(403))], 1);
    assert_ne!(prompt.append_as("prompt", "a?append=0", [2, 2, 2]).await.status, 200);
    end_lease(&bucket);
    bucket.inject(vec![rule(Kind::Put, "a/c/0", When::Nth(0), Fault::Wait)], 1);
    let held = tokio::spawn(async move {
        let answer = late.append_as("late", "a?append=0", [1, 1]).await;
        (late, answer)
    });
    bucket.until_one_waits().await;
    end_lease(&bucket);
    let same = tokio::spawn({
        let prompt = Arc::clone(&prompt);
        async move { prompt.append_until_done("prompt", "a?append=0", &[2, 2, 2]).await }
    });
    // Before the other server finds out that it has lost the lease.
    sleep(Duration::from_millis(500)).await;
    bucket.go_on();
    assert_eq!(same.await.unwrap()["start"], 3);
    let (late, answer) = held.await.unwrap();
    if answer.status != 200 {
        late.append_until_done("late", "a?append=0", &[1, 1]).await;
    }
    for server in [late, prompt] {
        assert_eq!(server.json("a").await, json!([0, 0, 0, 2, 2, 2, 1, 1]), "{:?}", answer.body);
    }
}

/// An append is acknowledged, and then its elements are given the values that were there before, so that the stored value has the version
/// again at which another owner has sent its elements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elements_that_arrive_late_change_no_value_that_was_given_its_former_bytes() {
    let (bucket, [late, prompt]) = start().await;
    // The chunk is as this program stores it, with this behind its rows.
    prompt.append_until_done("base", "a?append=0", &[0]).await;
    let former = bucket.value("a/c/0").unwrap()[4];
    bucket.inject(vec![rule(Kind::Put, "a/c/0", When::Nth(0), Fault::Wait)], 1);
    let held = tokio::spawn(async move { late.append_as("late", "a?append=0", [1]).await });
    bucket.until_one_waits().await;
    end_lease(&bucket);
    let changed = tokio::spawn({
        let prompt = Arc::clone(&prompt);
        async move {
            assert_eq!(prompt.append_until_done("prompt", "a?append=0", &[5]).await["start"], 4);
            let headers = [("content-type", "application/octet-stream")];
            let answer = prompt.request("PUT", "/v1/data/m/a?slice=4:5", &headers, vec![former]).await;
            assert_eq!(answer.status, 204, "{:?}", answer.body);
        }
    });
    // Before the other server finds out that it has lost the lease.
    sleep(Duration::from_millis(500)).await;
    bucket.go_on();
    changed.await.unwrap();
    let rows = match held.await.unwrap().status.as_u16() {
        200 => json!([0, 0, 0, 0, former, 1]),
        _ => json!([0, 0, 0, 0, former]),
    };
    assert_eq!(prompt.json("a").await, rows);
}

/// An array that grows while elements of an earlier owner may arrive, has fill values in its new part afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elements_that_arrive_late_are_not_seen_in_an_array_that_has_grown() {
    let (bucket, [late, prompt]) = start().await;
    bucket.inject(vec![rule(Kind::Put, "a/c/0", When::Nth(0), Fault::Wait)], 1);
    let held = tokio::spawn(async move { late.append_as("late", "a?append=0", [1, 1]).await });
    bucket.until_one_waits().await;
    end_lease(&bucket);
    let grown = tokio::spawn({
        let prompt = Arc::clone(&prompt);
        async move {
            let headers = [("content-type", "application/merge-patch+json")];
            prompt.request("PATCH", "/v1/nodes/m/a", &headers, r#"{"shape": [6]}"#).await
        }
    });
    sleep(Duration::from_millis(1500)).await;
    bucket.go_on();
    let answer = grown.await.unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let rows = if held.await.unwrap().status == 200 {
        json!([0, 0, 0, 7, 7, 7, 1, 1])
    } else {
        json!([0, 0, 0, 7, 7, 7])
    };
    assert_eq!(prompt.json("a").await, rows);
}

/// It is not known whether the elements of an append are stored: they may still arrive. No other append begins before the lease has ended,
/// also at the server that has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_append_whose_elements_may_still_arrive_the_lease_ends_by_itself() {
    let (bucket, [one, other]) = start().await;
    bucket.inject(
        vec![
            rule(Kind::Put, "a/c/0", When::Nth(0), Fault::Status(500)),
            // The first shows which version there is, before the elements are stored; the second whether they are.
            rule(Kind::Head, "a/c/0", When::Nth(1), Fault::Status(403)),
        ],
        1,
    );
    let unknown = one.append("a?append=0", [1, 1]).await;
    assert_eq!(
        (unknown.status.as_u16(), &unknown.json()["written"]),
        (503, &json!(false)),
        "{:?}",
        unknown.body
    );
    for server in [&one, &other] {
        let refused = server.append("a?append=0", [0]).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["written"]),
            (503, &json!(false)),
            "{:?}",
            refused.body
        );
    }
    assert_eq!(other.append_until_done("other", "a?append=0", &[2]).await["start"], 3);
    assert_eq!(one.json("a").await, json!([0, 0, 0, 2]));
}

/// A lease is renewed, and the response to that is lost: it is still that of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_whose_renewal_was_not_answered_is_not_lost() {
    let (bucket, [server, _]) = start().await;
    bucket.inject(vec![rule(Kind::Put, "a/c/0", When::Nth(0), Fault::Wait)], 1);
    let append = tokio::spawn(async move { (server.append("a?append=0", [1]).await, server) });
    bucket.until_one_waits().await;
    let epoch = record(&bucket)["epoch"].clone();
    bucket.inject(
        vec![
            rule(Kind::Put, "/appends/", When::Always, Fault::DoneThen(500)),
            rule(Kind::Head, "/appends/", When::Always, Fault::Status(403)),
        ],
        1,
    );
    // It is renewed when half of it has passed.
    let noted = record(&bucket);
    while record(&bucket)["until"] == noted["until"] {
        sleep(Duration::from_millis(50)).await;
    }
    assert!(bucket.heal() > 0);
    sleep(Duration::from_millis(1500)).await;
    bucket.go_on();
    let (answer, server) = append.await.unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(server.json("a").await, json!([0, 0, 0, 1]));
    assert_eq!(record(&bucket)["epoch"], epoch, "the lease was taken again");
}

fn record(bucket: &TestS3) -> Value {
    serde_json::from_slice(&bucket.value(&record_key(bucket)).unwrap()).unwrap()
}

/// A request that checks the lease is not answered. What is done under the lease goes on, and ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_of_the_lease_that_is_not_answered_holds_up_no_append() {
    let (bucket, [server, _]) = start().await;
    // The requests before the first append to a bucket are others.
    server.append_until_done("first", "a?append=0", &[1]).await;
    bucket.inject(
        vec![
            rule(Kind::Put, "a/c/0", When::Nth(0), Fault::Wait),
            // The first is sent before the elements are.
            rule(Kind::Head, "/appends/", When::Nth(1), Fault::Hang),
        ],
        1,
    );
    let append = tokio::spawn(async move { server.append("a?append=0", [1]).await });
    bucket.until_one_waits().await;
    sleep(Duration::from_millis(1500)).await;
    bucket.go_on();
    let answer = timeout(Duration::from_secs(15), append).await.expect("it goes on").unwrap();
    assert_eq!((answer.status.as_u16(), bucket.heal()), (200, 2), "{:?}", answer.body);
}

/// A proxy in front of the bucket sends the document of an append again, whose response was lost: the condition does not hold any more.
/// Others change the attributes meanwhile, so that the document is not the one that was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_document_was_stored_is_done_although_its_condition_fails_afterwards() {
    let (bucket, [one, other]) = start().await;
    let mut rows = vec![0, 0, 0];
    for (number, url) in [(1, "a?append=0"), (2, "a?append=0&at=4")] {
        let fault = Fault::DoneThenFailLater(412);
        bucket.inject(vec![rule(Kind::Put, "a/zarr.json", When::Nth(0), fault)], 1);
        let append = tokio::spawn({
            let one = Arc::clone(&one);
            async move { one.append(url, [number]).await }
        });
        bucket.until_one_waits().await;
        let headers = [("content-type", "application/merge-patch+json")];
        let attributes = json!({"attributes": {"n": number}}).to_string();
        let patched = other.request("PATCH", "/v1/nodes/m/a", &headers, attributes).await;
        assert_eq!(patched.status, 200, "{:?}", patched.body);
        bucket.go_on();
        let answer = append.await.unwrap();
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_eq!(answer.json()["start"], rows.len());
        rows.push(number);
        assert_eq!(other.json("a").await, json!(rows));
        assert_eq!(other.get("/store/m/a/zarr.json").await.json()["attributes"]["n"], number);
    }
}

/// Each append reads the chunk that it adds to, and stores it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_to_a_long_chunk_in_a_bucket_keep_what_it_has() {
    let bucket = TestS3::start().await;
    log(0).chunks(&[1 << 20]).store(&bucket.store(), "a").await;
    let server = server(&bucket.store());
    let mut elements = Vec::new();
    for number in 1..4 {
        let appended = vec![number; 100_000];
        server.append_until_done(&number.to_string(), "a?append=0", &appended).await;
        elements.extend(appended);
    }
    assert!(server.elements("m/a", "").await == elements);
}
