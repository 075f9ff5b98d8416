//! Many writers at once.

use std::sync::Arc;

use futures::future::join_all;

use super::*;
use crate::store::tests::{body, key, put, read};
use crate::store::{Store, StoreError, WriteCondition};

const WRITERS: usize = 16;

/// How many of many writers of one value, which has these names, succeed; the others' conditions fail, and nothing else goes wrong.
async fn winners(store: &Arc<LocalStore>, names: &[&str], condition: &WriteCondition) -> usize {
    let writers = names.iter().cycle().take(WRITERS).enumerate().map(|(n, name)| {
        let (store, key, condition) = (Arc::clone(store), key(name), condition.clone());
        tokio::spawn(async move { store.set(&key, body(n.to_string()), condition).await })
    });
    let mut winners = 0;
    for result in join_all(writers).await {
        match result.unwrap() {
            Ok(_) => winners += 1,
            Err(error) => assert!(matches!(error, StoreError::ConditionFailed), "{error:?}"),
        }
    }
    winners
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_creations_succeeds() {
    let (_directory, store) = store();
    let store = Arc::new(store);
    for round in 0..50 {
        assert_eq!(winners(&store, &[&format!("a/{round}")], &WriteCondition::IfAbsent).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_replacements_succeeds() {
    let (_directory, store) = store();
    let store = Arc::new(store);
    put(&*store, "a", "0").await;
    for _ in 0..50 {
        let version = store.head(&key("a")).await.unwrap().unwrap().version;
        assert_eq!(winners(&store, &["a"], &WriteCondition::IfVersion(version)).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_one_value_through_links_to_directories_have_one_winner() {
    for symlinks in [Symlinks::Within, Symlinks::Follow] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("a/b")).unwrap();
        for (target, link) in [("a", "link"), ("link/b", "chain"), ("../b", "a/b/up")] {
            std::os::unix::fs::symlink(target, directory.path().join(link)).unwrap();
        }
        let options = LocalOptions {
            writable: true,
            symlinks,
            durability: Durability::Rename,
            ..LocalOptions::default()
        };
        let store = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
        for round in 0..50 {
            // Of some of them, directories are missing.
            let new = if round % 2 == 0 { "new/" } else { "" };
            let names = ["a/b", "link/b", "chain", "a/b/up"].map(|above| format!("{above}/{new}{round}"));
            let names = names.each_ref().map(String::as_str);
            assert_eq!(winners(&store, &names, &WriteCondition::IfAbsent).await, 1, "{round}");
            let version = store.head(&key(names[1])).await.unwrap().unwrap().version;
            assert_eq!(winners(&store, &names, &WriteCondition::IfVersion(version)).await, 1, "{round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_increment_under_a_version_counts() {
    let (_directory, store) = store();
    let store = Arc::new(store);
    put(&*store, "a", "0").await;
    let writers = (0..8).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut done = 0;
            while done < 25 {
                let version = store.head(&key("a")).await.unwrap().unwrap().version;
                let range = crate::store::ByteRange::Whole;
                let Ok(value) = store.get(&key("a"), range, Some(&version)).await else { continue };
                let old: u32 =
                    String::from_utf8_lossy(&value.unwrap().bytes(10).await.unwrap()).parse().unwrap();
                let condition = WriteCondition::IfVersion(version);
                done += u32::from(store.set(&key("a"), body((old + 1).to_string()), condition).await.is_ok());
            }
        })
    });
    for writer in join_all(writers).await {
        writer.unwrap();
    }
    assert_eq!(read(&*store, "a").await.unwrap(), "200");
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_that_others_create_and_remove_are_no_error() {
    let (_directory, store) = store();
    let store = Arc::new(store);
    let pairs = (0..8).map(|n| {
        let (store, key) = (Arc::clone(&store), key(&format!("a/b/c/{n}")));
        tokio::spawn(async move {
            for _ in 0..250 {
                store.set(&key, body("x"), WriteCondition::Always).await.unwrap();
                assert!(store.erase(&key, WriteCondition::Always).await.unwrap());
            }
        })
    });
    for pair in join_all(pairs).await {
        pair.unwrap();
    }
}
