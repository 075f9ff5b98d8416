//! Atomic writes, and what remains of those that did not finish.

use std::collections::HashSet;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};

use super::*;
use crate::cpu::{ComputePool, ComputePoolOptions};
use crate::store::tests::{body, broken_body, key, put, read};
use crate::store::{ByteRange, Shortcuts, Store, StoreError, ValueBody, WriteCondition};

#[tokio::test]
async fn a_body_that_breaks_off_leaves_the_old_value_and_nothing_else() {
    let (directory, store) = store();
    put(&store, "a", "old").await;
    for pieces in [0, 1, 5] {
        let error = store.set(&key("a"), broken_body(pieces), WriteCondition::Always).await.unwrap_err();
        assert!(matches!(error, StoreError::BodyAborted(_)), "{error:?}");
    }
    assert_eq!(read(&store, "a").await.unwrap(), "old");
    nothing_is_staged(directory.path()).await;
}

#[tokio::test]
async fn a_value_in_memory_is_written_in_one_step_on_one_thread() {
    let (directory, store) = store();
    for (number, length) in [0, 5, 3 << 20].into_iter().enumerate() {
        let (before, name) = (store.hops(), format!("d/{number}"));
        put(&store, &name, vec![1; length]).await;
        assert_eq!(store.hops() - before, 1, "{length} bytes");
        assert_eq!(read(&store, &name).await.unwrap(), vec![1; length]);
    }
    nothing_is_staged(directory.path()).await;
}

#[tokio::test]
async fn all_pieces_of_a_value_are_written_whenever_they_arrive() {
    let (_directory, store) = store();
    // Bit `n` of `late` says whether piece `n`, or the end, is waited for.
    for late in 0..1 << 4 {
        let pieces = futures::stream::iter((0..4).map(move |piece: u8| (piece, late >> piece & 1 == 1)));
        let arriving = pieces.then(|(piece, is_late)| async move {
            if is_late {
                tokio::task::yield_now().await;
            }
            (piece < 3).then(|| Ok(Bytes::from(vec![piece; 1 << 10])))
        });
        let body = arriving.filter_map(std::future::ready).boxed();
        store.set(&key("a"), body, WriteCondition::Always).await.unwrap();
        let expected = [[0; 1 << 10], [1; 1 << 10], [2; 1 << 10]].concat();
        assert!(read(&store, "a").await.unwrap() == expected, "{late:b}");
    }
}

#[tokio::test]
async fn a_cancelled_write_leaves_nothing() {
    let (directory, store) = store();
    let pieces = futures::stream::iter((0..4).map(|_| Ok(Bytes::from(vec![1; 1 << 20]))));
    let endless = pieces.chain(futures::stream::pending()).boxed();
    let key = key("a");
    let set = store.set(&key, endless, WriteCondition::Always);
    assert!(tokio::time::timeout(Duration::from_millis(200), set).await.is_err());
    nothing_is_staged(directory.path()).await;
    assert_eq!(read(&store, "a").await, None);
}

#[tokio::test]
async fn a_write_is_finished_after_its_last_byte_even_if_the_caller_is_dropped() {
    let (directory, store) = store();
    let (ended, end) = tokio::sync::oneshot::channel();
    let mut ended = Some(ended);
    let tail = futures::stream::poll_fn(move |_| {
        ended.take().map(|ended| ended.send(()));
        std::task::Poll::Ready(None)
    });
    let pieces = futures::stream::iter([Ok(Bytes::from_static(b"value"))]).chain(tail).boxed();
    let store = std::sync::Arc::new(store);
    let (writer, written) = (std::sync::Arc::clone(&store), key("a"));
    let task = tokio::spawn(async move { writer.set(&written, pieces, WriteCondition::Always).await });
    end.await.unwrap();
    task.abort();
    for _ in 0..500 {
        if read(&*store, "a").await.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(read(&*store, "a").await.unwrap(), "value");
    nothing_is_staged(directory.path()).await;
}

/// Clean-up goes on in the background, so this waits a little.
pub(super) async fn nothing_is_staged(root: &std::path::Path) {
    for _ in 0..500 {
        if staged(root).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("left behind: {:?}", staged(root));
}

#[tokio::test]
async fn staging_files_of_a_dead_writer_are_removed_at_the_next_start() {
    let (directory, first) = store();
    drop(first);
    let staging = directory.path().join(RESERVED).join("staging");
    for (name, age) in [("old", 3_700), ("young", 0)] {
        let file = std::fs::File::create(staging.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    symlink("../../a", staging.join("link")).unwrap();
    std::fs::write(directory.path().join("a"), "x").unwrap();
    LocalStore::open(directory.path(), &LocalOptions::default()).unwrap();
    assert_eq!(staged(directory.path()).len(), 3, "readers remove nothing");
    let store = writable(directory.path());
    assert!(staged(directory.path()).is_empty());
    assert_eq!(read(&store, "a").await.unwrap(), "x", "what a link led to stays");
}

#[tokio::test]
async fn a_clean_shutdown_is_distinguished_from_unsynced_writes() {
    let directory = tempfile::tempdir().unwrap();
    let open = |durability| {
        let options = LocalOptions { writable: true, durability, ..LocalOptions::default() };
        LocalStore::open(directory.path(), &options).unwrap()
    };
    let lock = directory.path().join(RESERVED).join("lock");
    let is_marked = || std::fs::metadata(&lock).unwrap().len() > 0;
    for (durability, marked) in
        [(Durability::Fsync, true), (Durability::Rename, false), (Durability::Fsync, true)]
    {
        let store = open(durability);
        put(&store, "a", "x").await;
        assert!(!is_marked(), "open");
        drop(store);
        assert_eq!(is_marked(), marked, "closed");
    }
    let store = open(Durability::Fsync);
    store.shared.refuse_writes();
    drop(store);
    assert!(!is_marked(), "closed after a disk that failed");
}

#[tokio::test]
async fn no_two_contents_of_a_key_have_one_version() {
    let (_directory, store) = store();
    let mut versions = HashSet::new();
    for n in 0..1_000 {
        let outcome = put(&store, "a", format!("{n:04}")).await;
        assert!(versions.insert(outcome.version.unwrap()), "write {n} has the version of an earlier one");
        if n % 3 == 0 {
            assert!(store.erase(&key("a"), WriteCondition::Always).await.unwrap());
        }
    }
}

#[tokio::test]
async fn a_value_keeps_its_bytes_while_it_is_read_and_replaced() {
    let (_directory, store) = store();
    put(&store, "a", vec![1; 4 << 20]).await;
    let value = store.get(&key("a"), ByteRange::Whole, None).await.unwrap().unwrap();
    assert!(!matches!(value.body, ValueBody::Bytes(_)), "not read yet");
    put(&store, "a", vec![2; 4 << 20]).await;
    assert!(value.bytes(1 << 30).await.unwrap().iter().all(|byte| *byte == 1));
    let part = store.get(&key("a"), ByteRange::Suffix(1 << 20), None).await.unwrap().unwrap();
    assert!(matches!(&part.body, ValueBody::Bytes(bytes) if bytes.iter().all(|byte| *byte == 2)));
}

#[tokio::test]
async fn a_read_of_a_file_that_changes_meanwhile_is_an_error() {
    let (directory, store) = store();
    let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
    let path = directory.path().join("a");
    for change in [
        |file: &std::fs::File| file.set_len(1 << 20),
        |file: &std::fs::File| std::os::unix::fs::FileExt::write_all_at(file, &[9; 16], 3 << 20),
    ] {
        put(&store, "a", vec![1; 4 << 20]).await;
        let open = async || store.get(&key("a"), ByteRange::Whole, None).await.unwrap().unwrap();
        let (mut stream, at_once, on_pool) = (open().await.body.into_stream(), open().await, open().await);
        stream.try_next().await.unwrap().unwrap();
        change(&std::fs::File::options().write(true).open(&path).unwrap()).unwrap();
        let rest: Result<Vec<_>, _> = stream.try_collect().await;
        assert!(matches!(rest.unwrap_err(), StoreError::VersionChanged));
        assert!(matches!(at_once.bytes(1 << 30).await.unwrap_err(), StoreError::VersionChanged));
        let on_pool = cpu.spawn_future(on_pool.bytes(1 << 30)).await.unwrap();
        assert!(matches!(on_pool.unwrap_err(), StoreError::VersionChanged));
    }
}

#[tokio::test]
async fn no_write_is_acknowledged_after_one_that_did_not_reach_the_disk() {
    let (_directory, store) = store();
    put(&store, "a", "x").await;
    store.shared.refuse_writes();
    let always = WriteCondition::Always;
    assert!(matches!(store.set(&key("a"), body("y"), always.clone()).await, Err(StoreError::Backend(_))));
    assert!(matches!(store.erase(&key("a"), always).await, Err(StoreError::Backend(_))));
    assert!(store.check().await.is_err());
    assert_eq!(read(&store, "a").await.unwrap(), "x");
}

#[tokio::test]
async fn values_have_the_usual_file_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, store) = store();
    put(&store, "a", "x").await;
    let usual = directory.path().join("usual");
    std::fs::write(&usual, "x").unwrap();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(directory.path().join("a")), mode(usual));
    assert_eq!(
        mode(directory.path().join(RESERVED)) & 0o077,
        0,
        "but others have no access to the staging area"
    );
}

#[tokio::test]
async fn own_writes_have_a_settled_version_at_once() {
    let (_directory, store) = store();
    for round in 0..20 {
        let outcome = put(&store, "a", round.to_string()).await;
        let version = outcome.version.unwrap();
        assert!(version.is_settled() || !store.reads_nonblocking());
        assert_eq!(store.validate_cached(&key("a"), Some(&version)), store.reads_nonblocking());
        let found = store.head(&key("a")).await.unwrap().unwrap().version;
        assert!(found == version || !store.reads_nonblocking(), "{found:?} {version:?}");
    }
}
