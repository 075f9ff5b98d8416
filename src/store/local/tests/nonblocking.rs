//! Non-blocking reads return what blocking reads return.

use std::os::unix::fs::FileExt;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use rustix::fs::{Advice, fadvise};

use super::*;
use crate::cpu::{ComputePool, ComputePoolOptions};
use crate::key::{StoreKey, StorePrefix};
use crate::store::local::root::TryOpen;
use crate::store::tests::{key, read};
use crate::store::{ByteRange, Shortcuts, Store, StoreError, Version};

/// What happens to the files below a root, and its name.
type Change<'a> = (&'a str, &'a dyn Fn(&Path));

/// A read-only store over a directory of its own.
fn served() -> (TempDir, LocalStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::open(directory.path(), &LocalOptions::default()).unwrap();
    (directory, store)
}

/// The same store, where every read takes a thread.
fn by_threads(directory: &TempDir) -> LocalStore {
    let mut store = LocalStore::open(directory.path(), &LocalOptions::default()).unwrap();
    Arc::get_mut(&mut store.shared).unwrap().root.nonblocking = false;
    store
}

/// Bytes without a repeated sequence.
fn bytes(length: u32) -> Vec<u8> {
    (0..length / 4).flat_map(u32::to_le_bytes).collect()
}

#[tokio::test]
async fn blocking_and_nonblocking_reads_agree() {
    let (directory, store) = served();
    let other = by_threads(&directory);
    let sizes = [0, 4, 16 << 10, 256 << 10, (256 << 10) + 4, 1 << 20, (1 << 20) + 4, 5 << 20];
    for size in sizes {
        std::fs::write(directory.path().join(size.to_string()), bytes(size)).unwrap();
    }
    std::fs::create_dir(directory.path().join("directory")).unwrap();
    symlink("4", directory.path().join("link")).unwrap();
    let keys =
        sizes.iter().map(u32::to_string).chain(["none", "directory", "link", "4/4"].map(str::to_owned));
    let strange = Version::strong("strange");
    for key in keys.map(|text| key(&text)) {
        assert_eq!(store.head(&key).await.unwrap(), other.head(&key).await.unwrap(), "{key}");
        for range in [
            ByteRange::Whole,
            ByteRange::Bounded(1, 3),
            ByteRange::Bounded(70_000, 140_001),
            ByteRange::From(1 << 20),
            ByteRange::Suffix(300_000),
        ] {
            for version in [None, Some(&strange)] {
                let answer = |value: Result<Option<crate::store::Value>, StoreError>| async {
                    match value {
                        Ok(Some(value)) => {
                            let (info, range) = (value.info.clone(), value.range.clone());
                            format!("{info:?} {range:?} {:?}", value.bytes(1 << 30).await.unwrap())
                        }
                        none_or_error => format!("{none_or_error:?}"),
                    }
                };
                let one = answer(store.get(&key, range, version).await).await;
                let two = answer(other.get(&key, range, version).await).await;
                assert!(one == two, "{key} {range:?}");
            }
        }
    }
}

#[tokio::test]
async fn reads_from_memory_use_no_thread() {
    let (directory, store) = served();
    std::fs::write(directory.path().join("small"), bytes(16 << 10)).unwrap();
    std::fs::write(directory.path().join("large"), bytes(8 << 20)).unwrap();
    // On a file system without non-blocking reads, each head and read takes a thread, and each piece of the large
    // value.
    let (fewest, most) = if store.shared.root.nonblocking { (0, 40) } else { (400, u64::MAX) };
    for _ in 0..100 {
        assert!(store.head(&key("small")).await.unwrap().is_some());
        assert_eq!(read(&store, "small").await.unwrap().len(), 16 << 10);
        assert_eq!(read(&store, "none").await, None);
        assert_eq!(read(&store, "large").await.unwrap().len(), 8 << 20);
    }
    let hops = store.hops();
    assert!((fewest..=most).contains(&hops), "{hops}");
}

#[tokio::test]
async fn a_thread_of_the_pool_reads_more_from_memory_than_one_of_the_reactor() {
    let (directory, store) = served();
    std::fs::write(directory.path().join("a"), bytes(1 << 20)).unwrap();
    let (store, cpu) = (Arc::new(store), ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap());
    // The first read waits until the file's version is settled, and reads it again.
    assert_eq!(read(&*store, "a").await.unwrap().len(), 1 << 20);
    let before = store.hops();
    assert_eq!(read(&*store, "a").await.unwrap().len(), 1 << 20);
    assert_eq!(store.hops() - before, 1, "the reactor has other tasks");
    let reader = Arc::clone(&store);
    let value = cpu.spawn_future(async move { read(&*reader, "a").await }).await.unwrap();
    assert!(value.unwrap() == bytes(1 << 20));
    assert_eq!(store.hops() - before, if store.reads_nonblocking() { 1 } else { 2 });
}

#[tokio::test]
async fn files_that_are_not_in_memory_are_read() {
    let (directory, store) = served();
    let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
    for (name, length) in [("small", 64 << 10), ("large", 3 << 20)] {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes(length)).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        for keep in [0, 40_960, 1 << 20] {
            fadvise(&file, keep, None, Advice::DontNeed).unwrap();
            assert!(read(&store, name).await.unwrap() == bytes(length), "{name} {keep}");
            fadvise(&file, keep, None, Advice::DontNeed).unwrap();
            let value = store.get(&key(name), ByteRange::Whole, None).await.unwrap().unwrap();
            let on_pool = cpu.spawn_future(value.bytes(1 << 30)).await.unwrap();
            assert!(on_pool.unwrap() == bytes(length), "{name} {keep} on the pool");
        }
    }
}

#[tokio::test]
async fn changes_of_other_programs_are_visible_at_once() {
    let (directory, store) = served();
    let path = directory.path().join("a");
    for _ in 0..5 {
        assert_eq!(read(&store, "a").await, None);
        std::fs::write(&path, "one").unwrap();
        assert_eq!(read(&store, "a").await.unwrap(), "one");
        let version = store.head(&key("a")).await.unwrap().unwrap().version;
        std::fs::write(directory.path().join("b"), "other").unwrap();
        std::fs::rename(directory.path().join("b"), &path).unwrap();
        assert_eq!(read(&store, "a").await.unwrap(), "other");
        let old = store.get(&key("a"), ByteRange::Whole, Some(&version)).await;
        assert!(matches!(old, Err(StoreError::VersionChanged)));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(store.head(&key("a")).await.unwrap(), None);
    }
}

#[tokio::test]
async fn pieces_of_a_read_keep_their_bytes_while_later_ones_are_read() {
    let (directory, store) = served();
    let all = bytes(5 << 20);
    std::fs::write(directory.path().join("a"), &all).unwrap();
    let value = store.get(&key("a"), ByteRange::Bounded(3, (5 << 20) - 5), None).await.unwrap().unwrap();
    let pieces: Vec<Bytes> = value.body.into_stream().try_collect().await.unwrap();
    assert!(pieces.concat() == all[3..all.len() - 5]);
}

#[tokio::test]
async fn a_file_written_to_between_two_pieces_ends_the_read() {
    let (directory, store) = served();
    let path = directory.path().join("a");
    std::fs::write(&path, bytes(3 << 20)).unwrap();
    let past = std::time::SystemTime::UNIX_EPOCH;
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(past).unwrap();
    let mut stream = store.get(&key("a"), ByteRange::Whole, None).await.unwrap().unwrap().body.into_stream();
    assert!(stream.try_next().await.unwrap().is_some());
    file.write_all_at(b"new", 2 << 20).unwrap();
    assert!(matches!(stream.try_next().await, Err(StoreError::VersionChanged)));
}

#[tokio::test]
async fn a_root_that_was_removed_is_not_a_store_without_values() {
    let (directory, store) = served();
    assert_eq!(read(&store, "a").await, None);
    drop(directory);
    assert!(store.head(&key("a")).await.is_err());
    assert!(store.get(&key("a"), ByteRange::Whole, None).await.is_err());
    for prefix in ["", "a/"] {
        let prefix = StorePrefix::parse(prefix).unwrap();
        assert!(store.list_prefix(&prefix, None).try_collect::<Vec<_>>().await.is_err(), "{prefix:?}");
        assert!(store.list_dir(&prefix).await.is_err(), "{prefix:?}");
    }
}

#[test]
fn files_of_proc_and_across_mount_points_are_read_on_threads() {
    let open = |path: &str| LocalStore::open(Path::new(path), &LocalOptions::default()).unwrap();
    assert!(!open("/proc").shared.root.nonblocking);
    // Nor across a mount point, for any root.
    let mut store = open("/");
    Arc::get_mut(&mut store.shared).unwrap().root.nonblocking = true;
    assert!(matches!(store.shared.root.try_open_file("proc/version"), TryOpen::WouldBlock));
}

/// The version of a file once its times are old enough to prove that it did not change. Links may be refused.
async fn settled_version(store: &LocalStore, key: &StoreKey) -> Option<Version> {
    loop {
        let version = store.head(key).await.unwrap_or_default()?.version;
        if version.is_settled() {
            return Some(version);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_validation_never_reports_an_unchanged_version_for_a_changed_file() {
    let replace = |root: &Path| std::fs::rename(root.join("new"), root.join("c/0/0")).unwrap();
    let changes: [Change; 11] = [
        ("created", &|root| std::fs::create_dir_all(root.join("c/0")).unwrap()),
        ("with a file", &|root| std::fs::write(root.join("c/0/0"), "1").unwrap()),
        ("written in place", &|root| std::fs::write(root.join("c/0/0"), "12").unwrap()),
        ("replaced", &|root| {
            std::fs::write(root.join("new"), "123").unwrap();
            replace(root);
        }),
        ("renamed away", &|root| std::fs::rename(root.join("c/0"), root.join("c/1")).unwrap()),
        ("a link to another directory", &|root| {
            std::fs::create_dir(root.join("other")).unwrap();
            std::fs::write(root.join("other/0"), "1234").unwrap();
            symlink("../other", root.join("c/0")).unwrap();
        }),
        ("no link", &|root| std::fs::remove_file(root.join("c/0")).unwrap()),
        ("renamed back", &|root| std::fs::rename(root.join("c/1"), root.join("c/0")).unwrap()),
        ("replaced by a link", &|root| {
            symlink("../../other/0", root.join("new")).unwrap();
            replace(root);
        }),
        ("no file", &|root| std::fs::remove_file(root.join("c/0/0")).unwrap()),
        ("a directory", &|root| std::fs::create_dir(root.join("c/0/0")).unwrap()),
    ];
    for symlinks in [Symlinks::Deny, Symlinks::Within, Symlinks::Follow] {
        let directory = tempfile::tempdir().unwrap();
        let (root, store) = (directory.path(), with_links(directory.path(), symlinks));
        let key = key("c/0/0");
        let mut before = None;
        for (what, change) in &changes {
            change(root);
            let now = settled_version(&store, &key).await;
            let still = store.validate_cached(&key, before.as_ref());
            assert!(!still || before == now, "{symlinks:?} {what}: {before:?} {now:?}");
            if now.is_some() {
                assert_ne!(before, now, "{symlinks:?} {what}");
                let is_plain = store.reads_nonblocking() && *what != "replaced by a link";
                assert_eq!(store.validate_cached(&key, now.as_ref()), is_plain, "{symlinks:?} {what}");
                assert!(!store.validate_cached(&key, Some(&Version::strong("strange"))));
            }
            before = now;
        }
        drop(directory);
        assert!(!store.validate_cached(&key, None), "nothing can be said of a root that was removed");
    }
}

#[tokio::test]
async fn fresh_writes_of_others_have_a_settled_version_when_read() {
    let (directory, store) = served();
    let path = directory.path().join("a");
    std::fs::write(&path, "one").unwrap();
    let version = store.head(&key("a")).await.unwrap().unwrap().version;
    assert!(version.is_strong() && version.is_settled() || !store.reads_nonblocking(), "{version:?}");
    let value = store.get(&key("a"), ByteRange::Whole, None).await.unwrap().unwrap();
    assert!(value.info.version == version || !store.reads_nonblocking());
}

#[tokio::test]
async fn files_with_future_times_are_read_at_a_matching_version() {
    let (directory, store) = served();
    let write = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        let hour = std::time::SystemTime::now() + Duration::from_hours(1);
        std::fs::File::options().write(true).open(path).unwrap().set_modified(hour).unwrap();
    };
    write("a", &bytes(4 << 20));
    for range in [ByteRange::Whole, ByteRange::Bounded(0, 100)] {
        let version = store.head(&key("a")).await.unwrap().unwrap().version;
        assert!(!version.is_strong() && !version.is_settled());
        assert_ne!(store.head(&key("a")).await.unwrap().unwrap().version, version, "each read has its own");
        assert!(!store.validate_cached(&key("a"), Some(&version)));
        let value = store.get(&key("a"), range, version.pin()).await.unwrap().unwrap();
        assert_eq!(value.info.version, version);
        // A client that got the tag sends it as a strong one.
        let received = Version::strong(version.tag());
        let refused = store.get(&key("a"), range, Some(&received)).await;
        assert!(matches!(refused, Err(StoreError::VersionChanged)));
        write("a", &bytes((4 << 20) + 4));
        let changed = store.get(&key("a"), range, version.pin()).await;
        assert!(matches!(changed, Err(StoreError::VersionChanged)));
        write("a", &bytes(4 << 20));
    }
}
