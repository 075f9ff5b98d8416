//! Directory entries that are not values: special files, odd names, and what is not a key.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::writes::nothing_is_staged;
use super::*;
use crate::store::tests::{body, key, keys, prefix, put, read};
use crate::store::{DirListing, Shortcuts, Store, StoreError, WriteCondition};

#[tokio::test]
async fn a_pipe_or_a_socket_is_no_value_and_does_not_block() {
    let (directory, store) = store();
    let pipe = directory.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = UnixListener::bind(directory.path().join("socket")).unwrap();
    put(&store, "value", "x").await;
    let reads = async {
        for _ in 0..200 {
            assert_eq!(read(&store, "pipe").await, None);
            assert_eq!(read(&store, "socket").await, None);
        }
        assert_eq!(read(&store, "value").await.unwrap(), "x");
    };
    tokio::time::timeout(Duration::from_secs(30), reads).await.expect("reading a pipe hangs");
    assert_eq!(keys(&store, "").await, ["value"]);
}

#[tokio::test]
async fn names_are_as_long_as_the_file_system_holds_and_longer_ones_are_absent() {
    let (_directory, store) = store();
    let (longest, longer) = ("n".repeat(255), "n".repeat(256));
    put(&store, &format!("{longest}/{longest}"), "x").await;
    assert_eq!(read(&store, &format!("{longest}/{longest}")).await.unwrap(), "x");
    for text in [longer.clone(), format!("a/{longer}"), format!("{longer}/a")] {
        assert_eq!(read(&store, &text).await, None);
        assert!(!store.erase(&key(&text), WriteCondition::Always).await.unwrap());
        let error = store.set(&key(&text), body("x"), WriteCondition::Always).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidKey(_)), "{error:?}");
        assert!(keys(&store, &format!("{text}/")).await.is_empty());
    }
}

#[tokio::test]
async fn a_key_cannot_also_be_a_prefix() {
    let (directory, store) = store();
    put(&store, "a/b", "x").await;
    for text in ["a", "a/b/c", "a/b/c/d"] {
        assert_eq!(read(&store, text).await, None);
        let error = store.set(&key(text), body("y"), WriteCondition::Always).await.unwrap_err();
        assert!(matches!(error, StoreError::KeyClash), "{text}: {error:?}");
        assert!(!store.erase(&key(text), WriteCondition::Always).await.unwrap());
    }
    assert_eq!(read(&store, "a/b").await.unwrap(), "x");
    nothing_is_staged(directory.path()).await;
}

#[tokio::test]
async fn directories_without_keys_do_not_exist_and_block_no_key() {
    let (directory, store) = store();
    std::fs::create_dir_all(directory.path().join("a/b/c")).unwrap();
    std::fs::create_dir_all(directory.path().join("a/d")).unwrap();
    assert_eq!(store.list_dir(&prefix("")).await.unwrap(), DirListing::default());
    assert!(store.set(&key("a"), body("x"), WriteCondition::IfAbsent).await.unwrap().created);
    assert_eq!(read(&store, "a").await.unwrap(), "x");

    put(&store, "p/q/r/s", "x").await;
    assert!(store.erase(&key("p/q/r/s"), WriteCondition::Always).await.unwrap());
    assert!(!directory.path().join("p").exists());
    put(&store, "p/q/r/s", "x").await;
    put(&store, "p/t", "x").await;
    assert!(store.erase(&key("p/q/r/s"), WriteCondition::Always).await.unwrap());
    assert_eq!(keys(&store, "").await, ["a", "p/t"]);
    store.erase_prefix(&prefix("")).await.unwrap();
    assert!(directory.path().exists(), "the root stays");
}

#[tokio::test]
async fn the_stores_own_directory_is_no_part_of_the_store() {
    let (directory, store) = store();
    put(&store, "a", "x").await;
    std::fs::create_dir_all(directory.path().join("below/.zarr-server/staging")).unwrap();
    std::fs::write(directory.path().join("below/.zarr-server/staging/x"), "x").unwrap();
    for text in [".zarr-server/lock", ".zarr-server", "below/.zarr-server/staging/x", ".ZARR-Server/lock"] {
        assert_eq!(read(&store, text).await, None, "{text}");
        let error = store.set(&key(text), body("x"), WriteCondition::Always).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidKey(_)), "{error:?}");
        assert!(!store.erase(&key(text), WriteCondition::Always).await.unwrap());
    }
    assert_eq!(keys(&store, "").await, ["a"]);
    assert!(keys(&store, ".zarr-server/").await.is_empty());
    assert_eq!(store.list_dir(&prefix(".zarr-server/")).await.unwrap(), DirListing::default());
    assert_eq!(store.list_dir(&prefix("")).await.unwrap().prefixes, []);
    assert_eq!(store.erase_prefix(&prefix("")).await.unwrap(), 1);
    assert!(directory.path().join(".zarr-server/lock").exists());
}

#[tokio::test]
async fn listings_leave_out_names_that_cannot_be_keys() {
    let (directory, store) = store();
    for name in [&b"not-utf8-\xff"[..], b"control-\x01", b"good"] {
        std::fs::write(directory.path().join(OsStr::from_bytes(name)), "x").unwrap();
    }
    assert_eq!(keys(&store, "").await, ["good"]);
    assert_eq!(store.list_dir(&prefix("")).await.unwrap().keys.len(), 1);
}

#[tokio::test]
async fn long_listings_are_complete_and_resume_anywhere() {
    use futures::stream::TryStreamExt;
    let (directory, store) = store();
    let mut all = Vec::new();
    for outer in 0..40 {
        std::fs::create_dir(directory.path().join(format!("d{outer}"))).unwrap();
        for inner in 0..80 {
            let text = format!("d{outer}/{inner}");
            std::fs::write(directory.path().join(&text), "").unwrap();
            all.push(text);
        }
    }
    all.sort_unstable();
    assert_eq!(keys(&store, "").await, all);
    for at in [0, 1, 1_023, 1_024, 3_199] {
        let rest: Vec<_> = store.list_prefix(&prefix(""), Some(&key(&all[at]))).try_collect().await.unwrap();
        let rest: Vec<_> = rest.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(rest, all[at + 1..]);
    }
}

#[tokio::test]
async fn a_page_of_a_long_directory_costs_and_holds_a_page() {
    use crate::store::local::list::{Below, NAMES_BYTES, Walk};
    const FILES: usize = 5_600;
    let (directory, store) = store();
    let mut all: Vec<String> = (0..FILES).map(|number| format!("{number}{}", "n".repeat(95))).collect();
    for name in &all {
        std::fs::write(directory.path().join(name), "").unwrap();
    }
    all.sort_unstable();
    for below in [Below::Directly, Below::All] {
        for at in [0, FILES / 2, FILES - 3] {
            let mut walk = Walk::new(store.shared.clone(), below, &prefix(""), &all[at]);
            let first = walk.step().unwrap();
            let first: Vec<_> = first.iter().map(crate::store::DirEntry::text).collect();
            // Exactly these entries were examined.
            assert!(first.len() <= 64, "{}", first.len());
            assert_eq!(first, all[at + 1..][..first.len()]);
            assert!(walk.held_bytes() < 256 << 10, "{}", walk.held_bytes());
        }
        let (mut walk, mut seen) = (Walk::new(store.shared.clone(), below, &prefix(""), ""), Vec::new());
        while !walk.is_done() {
            seen.extend(walk.step().unwrap().iter().map(|entry| entry.text().to_owned()));
            assert!(walk.held_bytes() <= NAMES_BYTES, "{}", walk.held_bytes());
        }
        // More than are held at once.
        assert!(all.iter().map(String::len).sum::<usize>() > NAMES_BYTES);
        assert!(seen == all, "{} of {FILES}", seen.len());
    }
}

#[tokio::test]
async fn no_read_waits_behind_walks_through_directories() {
    use futures::{FutureExt, StreamExt};

    let (directory, store) = store();
    put(&store, "folder/a/value", "x").await;
    std::fs::create_dir(directory.path().join("folder/b")).unwrap();
    std::os::unix::fs::symlink("a", directory.path().join("folder/link")).unwrap();
    for number in 0..20 {
        put(&store, &format!("folder/{number}"), "x").await;
    }
    let walks = store.blocking.walks.clone();
    let all = u32::try_from(walks.available_permits()).unwrap();
    let in_flight = walks.acquire_many_owned(all).await.unwrap();
    let (folder, root) = (prefix("folder/"), prefix(""));
    let mut listing = store.list_dir_after(&folder, "");
    let mut erasing = store.erase_prefix(&folder);
    assert!(listing.next().now_or_never().is_none() && (&mut erasing).now_or_never().is_none());
    // By a link, so that it takes a thread.
    assert_eq!(read(&store, "folder/link/value").await.unwrap(), "x");
    let mut seen = store.sample_prefixes(&folder, 100).unwrap().await.unwrap();
    seen.sort_unstable();
    assert_eq!(seen, ["folder/a/", "folder/b/", "folder/link/"].map(prefix));
    assert_eq!(store.sample_prefixes(&root, 100).unwrap().await.unwrap(), [prefix("folder/")]);
    assert!(store.sample_prefixes(&folder, 3).unwrap().await.unwrap().len() <= 3);
    drop(in_flight);
    assert!(listing.next().await.is_some());
}

#[tokio::test]
async fn no_key_is_absent_when_the_root_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let store = LocalStore::open(&root, &LocalOptions::default()).unwrap();
    assert_eq!(store.head(&key("a")).await.unwrap(), None);
    std::fs::remove_dir(&root).unwrap();
    assert!(matches!(store.head(&key("a")).await, Err(StoreError::Backend(_))));
    assert!(matches!(store.check().await, Err(StoreError::Backend(_))));
}

#[tokio::test]
async fn a_read_only_store_writes_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::open(directory.path(), &LocalOptions::default()).unwrap();
    let always = WriteCondition::Always;
    assert!(matches!(store.set(&key("a"), body("x"), always.clone()).await, Err(StoreError::ReadOnly)));
    assert!(matches!(store.erase(&key("a"), always).await, Err(StoreError::ReadOnly)));
    assert!(matches!(store.erase_prefix(&prefix("")).await, Err(StoreError::ReadOnly)));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
