//! An array is erased and created again as another one while elements of the former one are written: none of them gets into the other.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::changing::Changing;
use crate::support::counting::Counting;
use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server, contents, no_caches};

fn writable(store: SharedStore) -> Mount {
    Mount { writable: true, ..Mount::read_only("m", store) }
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
        let server = server(Mount { allow_prefix_delete: true, ..writable(store) });
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
        assert_eq!(server.ask(Method::DELETE, "/v1/nodes/m/a", &[]).await.status, 204);
        assert_eq!(create(&server, "a", &array("float32")).await.status, 201);
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
