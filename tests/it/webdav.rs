//! COPY and MOVE on backends with and without directories.

use axum::http::{Method, StatusCode};
use futures::TryStreamExt;
use zarrd::key::StorePrefix;
use zarrd::services::Mount;
use zarrd::store::{SharedStore, StoreOptions, open};

use crate::support::hierarchy::memory;
use crate::support::server::{Server, cpu, put};

async fn keys(store: &SharedStore) -> Vec<String> {
    let listing = store.list_prefix(&StorePrefix::root(), None);
    listing.map_ok(|entry| entry.key.to_string()).try_collect().await.unwrap()
}

#[tokio::test]
async fn prefixes_are_copied_moved_and_replaced_in_memory_and_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { writable: true, ..StoreOptions::default() };
    let files = open(folder.path().to_str().unwrap(), &options, &cpu()).unwrap();
    for store in [memory(), files] {
        put(&store, "key", "key").await;
        for number in 0..300 {
            put(&store, &format!("dir/sub/{number:03}"), number.to_string()).await;
        }
        put(&store, "dir/zarr.json", "{}").await;
        let mount =
            Mount { writable: true, allow_prefix_delete: true, ..Mount::read_only("m", store.clone()) };
        let server = Server::build(mount).finish();
        let ask = async |verb: &str, from: &str, to: &str| {
            let method = Method::from_bytes(verb.as_bytes()).unwrap();
            let to = format!("/store/m/{to}");
            server.ask(method, &format!("/store/m/{from}"), &[("destination", &to)]).await.status.as_u16()
        };
        let before = keys(&store).await;
        // Away and back: nothing is lost, and nothing is left behind.
        assert_eq!(ask("MOVE", "dir/", "away/").await, 201);
        assert!(keys(&store).await.iter().all(|key| !key.starts_with("dir/")));
        assert_eq!(ask("MOVE", "away", "dir").await, 201);
        assert_eq!(keys(&store).await, before);
        for number in [0, 299] {
            let value = server.get(&format!("/store/m/dir/sub/{number:03}")).await;
            assert_eq!(value.body, number.to_string());
        }
        // A prefix in the place of a key, and a key in the place of a prefix.
        assert_eq!(ask("COPY", "dir/sub/", "key").await, 204);
        assert_eq!(server.get("/store/m/key/007").await.body, "7");
        assert_eq!(server.get("/store/m/key").await.status, StatusCode::MOVED_PERMANENTLY);
        assert_eq!(ask("COPY", "dir/zarr.json", "key").await, 204);
        assert_eq!(server.get("/store/m/key").await.body, "{}");
        assert_eq!(server.get("/store/m/key/007").await.status, StatusCode::NOT_FOUND);
        assert_eq!(ask("MOVE", "key", "dir").await, 204);
        assert_eq!(keys(&store).await, ["dir"]);
        assert_eq!(ask("MOVE", "dir", "dir/").await, 403);
    }
}
