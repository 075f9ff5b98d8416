//! A full disk under the real server: 507, the old value intact, nothing left behind, and writes succeed again
//! when there is space.
//!
//! Space ends here where the system lets no file of the process grow further, which needs no rights to arrange. What
//! happens when other steps of a write fail is tested in the local store.

use std::process::Command;

use reqwest::StatusCode;

use crate::support::client;
use crate::support::process::Running;
use crate::support::stamped::{number_of, value};

/// Longest file, in blocks of 512 bytes.
const BLOCKS: usize = 4_096;

#[tokio::test]
async fn a_write_to_a_full_disk_is_507_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("w={}", folder.path().display());
    let mut command = Command::new("/bin/sh");
    // With the error comes a signal, which must not end the server.
    let script = format!("ulimit -f {BLOCKS}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_zarrd"), "serve", "--writable", &mount]);
    command.env_clear().env("ZARRD__LOG__LEVEL", "off");
    let server = Running::of(command);
    let base = format!("http://{}/store/w", server.address);
    let client = client::client();
    let put = |key: &'static str, number, bytes| {
        let request = client.put(format!("{base}/{key}")).body(value(key, number, bytes));
        async move { request.send().await.unwrap() }
    };
    let number = |key: &'static str| {
        let request = client.get(format!("{base}/{key}"));
        async move { number_of(key, &request.send().await.unwrap().bytes().await.unwrap()) }
    };

    assert_eq!(put("a/old", 1, 1_000).await.status(), StatusCode::CREATED);
    for round in 0..4 {
        for key in ["a/old", "b/new"] {
            let refused = put(key, 2, BLOCKS * 512 + 1).await;
            assert_eq!(refused.status(), StatusCode::INSUFFICIENT_STORAGE, "{key}, round {round}");
            let problem: serde_json::Value = refused.json().await.unwrap();
            assert_eq!(problem["code"], "storage-full");
        }
        assert_eq!(number("a/old").await, 1);
    }
    let missing = client.get(format!("{base}/b/new")).send().await.unwrap();
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert!(!folder.path().join("b").exists());

    assert_eq!(put("a/old", 3, BLOCKS * 512).await.status(), StatusCode::NO_CONTENT, "as long as may be");
    assert_eq!(put("b/new", 4, 1_000).await.status(), StatusCode::CREATED);
    assert_eq!((number("a/old").await, number("b/new").await), (3, 4));
    let staging = std::fs::read_dir(folder.path().join(".zarr-server/staging")).unwrap();
    assert_eq!(staging.count(), 0);
}
