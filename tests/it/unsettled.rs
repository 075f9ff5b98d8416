//! Unsettled files, whose timestamps cannot show the next write: they are not cached, their entity tags are weak, and
//! they are read and written as others are.
//!
//! Files with future timestamps stand for files written a moment ago on a file system with coarse timestamps: they
//! stay as they are for as long as a test takes.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::{Method, StatusCode};
use tempfile::TempDir;
use zarrd::cache::ValueCache;
use zarrd::services::Mount;
use zarrd::store::{CachePolicy, Durability, LocalOptions, LocalStore, SharedStore, StoreOptions, open};

use crate::support::encode::{Codec, Shards};
use crate::support::hierarchy::Array;
use crate::support::server::{Server, cpu};

/// Gives all files below a directory a time that is not yet.
fn unsettle(root: &Path) {
    for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            unsettle(&entry.path());
        } else {
            let file = fs::File::options().write(true).open(entry.path()).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_hours(1)).unwrap();
        }
    }
}

/// Two mounts of the same kind of array, plain and sharded: one whose files have times of the future, and one where times
/// are not believed.
async fn served() -> Vec<(TempDir, Server)> {
    let mut made = Vec::new();
    for trusts_file_times in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let options = LocalOptions {
            writable: true,
            durability: Durability::Rename,
            trusts_file_times,
            ..LocalOptions::default()
        };
        let local: SharedStore = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
        let plain = Array::of(&[4, 8]).chunks(&[1, 8]).uniform(1);
        plain.store(&local, "a").await;
        plain.codecs([Shards::of(&[1, 4], &[Codec::Bytes { big: false }]).codec()]).store(&local, "s").await;
        let freshness = if trusts_file_times { CachePolicy::Always } else { CachePolicy::Uncached };
        let store = ValueCache::new(16 << 20).wrap("m", local, freshness);
        let server = Server::build(Mount { writable: true, ..Mount::read_only("m", store) }).finish();
        if trusts_file_times {
            unsettle(directory.path());
        }
        made.push((directory, server));
    }
    made
}

#[tokio::test]
async fn an_unsettled_file_is_not_cached_and_has_a_new_weak_etag_each_time() {
    for (_directory, server) in served().await {
        for url in ["/store/m/a/c/0/0", "/v1/data/m/a?slice=:,3", "/v1/data/m/s?slice=:,3", "/v1/nodes/m/a"] {
            let mut tags = std::collections::HashSet::new();
            for _ in 0..3 {
                let answer = server.get(url).await;
                assert_eq!(answer.status, StatusCode::OK, "{url}");
                let tag = answer.header("etag").to_owned();
                if url.starts_with("/v1/nodes") {
                    // Made of its own text, whatever the documents' versions are.
                    continue;
                }
                assert!(tag.starts_with("W/\""), "{url}: {tag}");
                assert!(tags.insert(tag.clone()), "{url}: {tag} twice");
                assert_ne!(answer.header("cache-status"), "zarrd; hit", "{url}");
                let strong = tag.trim_start_matches("W/");
                for tag in [&*tag, strong] {
                    let known = server.ask(Method::GET, url, &[("if-none-match", tag)]).await;
                    assert_eq!((known.status, &known.body), (StatusCode::OK, &answer.body), "{url}");
                    let held = server.ask(Method::GET, url, &[("if-match", tag)]).await;
                    assert_eq!(held.status, StatusCode::PRECONDITION_FAILED, "{url}");
                    let part = [("range", "bytes=0-1"), ("if-range", tag)];
                    assert_eq!(server.ask(Method::GET, url, &part).await.status, StatusCode::OK, "{url}");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_etag_of_an_unsettled_file_never_satisfies_a_conditional_write() {
    for (directory, server) in served().await {
        let url = "/store/m/a/c/0/0";
        let tag = server.get(url).await.header("etag").to_owned();
        for tag in [&*tag, tag.trim_start_matches("W/")] {
            let written = server.request("PUT", url, &[("if-match", tag)], "new").await;
            assert_eq!(written.status, StatusCode::PRECONDITION_FAILED);
            let erased = server.request("DELETE", url, &[("if-match", tag)], "").await;
            assert_eq!(erased.status, StatusCode::PRECONDITION_FAILED);
        }
        // A read-modify-write by the server has seen the current content.
        let part = server.request("PATCH", url, &[("content-range", "bytes 2-3/*")], "xy").await;
        assert_eq!(part.status, StatusCode::NO_CONTENT, "{:?}", part.body);
        assert_eq!(fs::read(directory.path().join("a/c/0/0")).unwrap()[..5], *b"\x01\x01xy\x01");
        assert_eq!(server.get(url).await.body[..5], *b"\x01\x01xy\x01");
    }
}

#[tokio::test]
async fn index_and_data_of_an_unsettled_shard_are_read_at_one_version() {
    for (directory, server) in served().await {
        for byte in [1, 7, 3, 9] {
            let other = tempfile::tempdir().unwrap();
            let writable = LocalOptions { writable: true, ..LocalOptions::default() };
            let store: SharedStore = Arc::new(LocalStore::open(other.path(), &writable).unwrap());
            let codec = Shards::of(&[1, 4], &[Codec::Bytes { big: false }]).codec();
            Array::of(&[4, 8]).chunks(&[1, 8]).uniform(byte).codecs([codec]).store(&store, "s").await;
            for row in 0..4 {
                let shard = format!("s/c/{row}/0");
                fs::copy(other.path().join(&shard), directory.path().join(&shard)).unwrap();
            }
            unsettle(directory.path());
            for _ in 0..3 {
                let answer = server.get("/v1/data/m/s?slice=1:3,2:6").await;
                assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, &[byte; 16][..]));
                assert_eq!(server.get("/unshard/m/s/c/0/1").await.body[..], [byte; 8]);
            }
        }
    }
}

#[tokio::test]
async fn a_replaced_unsettled_zip_file_is_read_by_its_new_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.zip");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/zip");
    let server = Server::of(open(file.to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap());
    for name in ["v3-stored.zip", "v2-deflated.zip", "v3-stored.zip"] {
        fs::copy(fixture.join(name), &file).unwrap();
        unsettle(directory.path());
        for _ in 0..3 {
            let element = server.elements("m/deep/a", "3,7").await;
            assert_eq!(element, 97_i16.to_le_bytes()[..], "{name}");
            let tag = server.get("/store/m/deep/a/c/0/0").await.header("etag").to_owned();
            assert_eq!(tag.starts_with("W/"), name == "v3-stored.zip", "{name}: {tag}");
        }
    }
}

#[tokio::test]
async fn a_file_just_written_by_another_program_is_settled_once_read() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::open(directory.path(), &LocalOptions::default()).unwrap();
    let server = Server::of(Arc::new(store));
    let mut tags = std::collections::HashSet::new();
    for round in 0..5 {
        fs::write(directory.path().join("k"), format!("{round}")).unwrap();
        let answer = server.get("/store/m/k").await;
        let tag = answer.header("etag").to_owned();
        assert_eq!(answer.body, format!("{round}"));
        assert!(tags.insert(tag.clone()), "{tag}");
        // On a remote file system this takes longer.
        if tag.starts_with("W/") {
            let part = server.ask(Method::GET, "/store/m/k", &[("if-match", &*tag)]).await;
            assert_eq!(part.status, StatusCode::PRECONDITION_FAILED);
        } else {
            let known = server.ask(Method::GET, "/store/m/k", &[("if-none-match", &*tag)]).await;
            assert_eq!(known.status, StatusCode::NOT_MODIFIED);
            let part =
                server.ask(Method::GET, "/store/m/k", &[("if-match", &*tag), ("range", "bytes=0-0")]).await;
            assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
        }
    }
}
