//! An array is erased and created again as another one while elements of the former one are written: none of them gets into the other.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::changing::Changing;
use crate::support::counting::{Counting, until};
use crate::support::hierarchy::memory;
use crate::support::s3::{Fault, Kind, Rule, TestS3, When};
use crate::support::server::{Answer, Server, contents, no_caches};

fn writable(store: SharedStore) -> Mount {
    Mount { writable: true, ..Mount::read_only("m", store) }
}

/// Another server in front of the same store, which erases nodes.
fn erasing(store: SharedStore) -> Server {
    server(Mount { allow_prefix_delete: true, ..writable(store) })
}

fn server(mount: Mount) -> Server {
    let mut builder = Server::build(mount);
    builder.cache = no_caches();
    builder.finish()
}

fn array(data_type: &str) -> Value {
    json!({"shape": [4], "data_type": data_type, "chunks": [4], "codecs": "raw"})
}

async fn put_json(server: &Server, url: &str, body: &Value) -> Answer {
    server.request("PUT", url, &[("content-type", "application/json")], body.to_string()).await
}

async fn create(server: &Server, name: &str, array: &Value) -> Answer {
    put_json(server, &format!("/v1/nodes/m/{name}"), array).await
}

#[tokio::test]
async fn writes_that_wait_for_others_are_not_stored_in_an_array_that_was_created_again_as_another_one() {
    for (part, is_whole) in [("0:2", false), ("0:4", true)] {
        let inner = memory();
        let gated = Counting::gated(Arc::clone(&inner));
        let store: SharedStore = Arc::clone(&gated) as SharedStore;
        let server = server(writable(store));
        let other = erasing(Arc::clone(&inner));
        assert_eq!(create(&server, "a", &array("uint8")).await.status, 201);
        let write = |slice: &'static str, body: Value| {
            let server = server.clone();
            tokio::spawn(
                async move { put_json(&server, &format!("/v1/data/m/a?slice={slice}"), &body).await },
            )
        };
        // It reads the chunk, and the others wait for it.
        let first = write("2:4", json!([7, 7]));
        gated.waiting(1).await;
        let body = if is_whole { json!([8, 8, 8, 8]) } else { json!([8, 8]) };
        let others = [write(part, body.clone()), write(part, body)];
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(other.ask(Method::DELETE, "/v1/nodes/m/a", &[]).await.status, 204);
        assert_eq!(create(&other, "a", &array("float32")).await.status, 201);
        gated.open();
        for written in [first].into_iter().chain(others) {
            let written = written.await.unwrap();
            written.refuses(409, "conflict", "another type");
            assert_eq!(written.json()["written"], false);
        }
        assert_eq!(contents(&inner).await.keys().collect::<Vec<_>>(), ["a/zarr.json", "zarr.json"]);
    }
}

#[tokio::test]
async fn what_was_stored_while_another_array_was_created_is_erased_again() {
    let inner = memory();
    let before = server(writable(Arc::clone(&inner)));
    assert_eq!(create(&before, "b", &array("float32")).await.status, 201);
    let other = before.get("/store/m/b/zarr.json").await.body;
    assert_eq!(create(&before, "a", &array("uint8")).await.status, 201);
    let changing = Changing::before_write(Arc::clone(&inner), "a/c/0", "a/zarr.json", other);
    let server = server(writable(changing));
    let written = put_json(&server, "/v1/data/m/a", &json!([7, 7, 7, 7])).await;
    written.refuses(409, "conflict", "another type");
    assert_eq!(written.json()["written"], false);
    assert_eq!(
        contents(&inner).await.keys().collect::<Vec<_>>(),
        ["a/zarr.json", "b/zarr.json", "zarr.json"]
    );
}

#[tokio::test]
async fn writes_for_an_array_and_for_its_successor_are_not_stored_together() {
    let inner = memory();
    let gated = Counting::gated(Arc::clone(&inner));
    let store: SharedStore = Arc::clone(&gated) as SharedStore;
    let (server, other) = (server(writable(store)), erasing(Arc::clone(&inner)));
    let filled = |fill_value: u8| json!({"shape": [4], "data_type": "uint8", "chunks": [4], "codecs": "raw", "fill_value": fill_value});
    let write = |slice: &'static str| {
        let server = server.clone();
        tokio::spawn(
            async move { put_json(&server, &format!("/v1/data/m/a?slice={slice}"), &json!([7])).await },
        )
    };
    assert_eq!(create(&server, "a", &filled(1)).await.status, 201);
    let first = write("0:1");
    gated.waiting(1).await;
    let second = write("1:2");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(other.ask(Method::DELETE, "/v1/nodes/m/a", &[]).await.status, 204);
    assert_eq!(create(&other, "a", &filled(2)).await.status, 201);
    let third = write("2:3");
    tokio::time::sleep(Duration::from_millis(50)).await;
    gated.open();
    for written in [first, second] {
        written.await.unwrap().refuses(409, "conflict", "another type");
    }
    assert_eq!(third.await.unwrap().status, 204);
    assert_eq!(other.get("/v1/data/m/a?format=json").await.json(), json!([2, 2, 7, 2]));
}

#[tokio::test]
async fn an_array_is_erased_with_the_values_that_are_being_stored_meanwhile() {
    let bucket = TestS3::start().await;
    let server = erasing(bucket.store());
    assert_eq!(create(&server, "a", &array("uint8")).await.status, 201);
    bucket.inject(
        vec![Rule { kinds: vec![Kind::Put], key: "a/c/0", when: When::Nth(0), fault: Fault::Wait }],
        1,
    );
    let (writer, eraser) = (server.clone(), server.clone());
    let write = tokio::spawn(async move { put_json(&writer, "/v1/data/m/a", &json!([7, 7, 7, 7])).await });
    bucket.until_one_waits().await;
    let erase = tokio::spawn(async move { eraser.ask(Method::DELETE, "/v1/nodes/m/a", &[]).await });
    until(|| !bucket.keys().iter().any(|key| key.ends_with("a/zarr.json"))).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!erase.is_finished());
    bucket.go_on();
    assert_eq!(erase.await.unwrap().status, 204);
    assert!(!bucket.keys().iter().any(|key| key.contains("a/")), "{:?}", bucket.keys());
    assert_eq!(create(&server, "a", &array("float32")).await.status, 201);
    write.await.unwrap().refuses(409, "conflict", "another type");
    assert_eq!(server.get("/v1/data/m/a?format=json").await.json(), json!([0.0, 0.0, 0.0, 0.0]));
}

#[tokio::test]
async fn an_append_ends_where_its_array_is_erased_and_leaves_no_value() {
    let bucket = TestS3::start().await;
    let server = erasing(bucket.store());
    let rows = json!({"shape": [0], "data_type": "uint8", "chunks": [1], "codecs": "raw"});
    assert_eq!(create(&server, "a", &rows).await.status, 201);
    bucket.inject(
        vec![Rule { kinds: vec![Kind::Put], key: "a/c/", when: When::Nth(0), fault: Fault::Wait }],
        1,
    );
    let (writer, eraser) = (server.clone(), server.clone());
    let append = tokio::spawn(async move {
        let body = json!(vec![7; 200]).to_string();
        writer.request("POST", "/v1/data/m/a?append=0", &[("content-type", "application/json")], body).await
    });
    bucket.until_one_waits().await;
    let erase = tokio::spawn(async move { eraser.ask(Method::DELETE, "/v1/nodes/m/a", &[]).await });
    until(|| !bucket.keys().iter().any(|key| key.ends_with("a/zarr.json"))).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!erase.is_finished());
    bucket.go_on();
    append.await.unwrap().refuses(409, "conflict", "its array is gone");
    assert_eq!(erase.await.unwrap().status, 204);
    assert!(!bucket.keys().iter().any(|key| key.contains("a/c/")), "{:?}", bucket.keys());
    assert_eq!(create(&server, "a", &rows).await.status, 201);
}
