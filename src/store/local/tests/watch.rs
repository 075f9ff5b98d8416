//! Every change that could give a watched key another value is reported before the call that made it returns.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, symlink};
use std::time::{Instant, SystemTime};

use super::*;
use crate::store::tests::key;
use crate::store::{Shortcuts, WatchToken};

/// What happens to the files below a root, and its name.
type Change<'a> = (&'a str, &'a dyn Fn(&Path));

/// A store with the keys `a/c/0/0` and `a/c/1/0`. The directory for temporary files must be on a file system that is watched.
fn served() -> (TempDir, LocalStore) {
    served_in(tempfile::tempdir().unwrap())
}

/// In a file system in memory, where many files are created in no time.
fn served_in_memory() -> (TempDir, LocalStore) {
    served_in(tempfile::tempdir_in("/dev/shm").unwrap())
}

fn served_in(directory: TempDir) -> (TempDir, LocalStore) {
    for chunk in ["0", "1"] {
        fs::create_dir_all(directory.path().join("a/c").join(chunk)).unwrap();
        fs::write(directory.path().join("a/c").join(chunk).join("0"), "old").unwrap();
    }
    fs::create_dir_all(directory.path().join("b")).unwrap();
    fs::hard_link(directory.path().join("a/c/1/0"), directory.path().join("b/name")).unwrap();
    let store = LocalStore::open(directory.path(), &LocalOptions::default()).unwrap();
    assert!(store.reads_nonblocking(), "{} cannot be watched; set TMPDIR", directory.path().display());
    (directory, store)
}

async fn watch(store: &LocalStore, keys: &[&str]) -> Option<WatchToken> {
    store.watch(keys.iter().map(|text| key(text)).collect()).await
}

/// Whether nothing was reported until now.
fn unchanged_since(store: &LocalStore, token: WatchToken) -> bool {
    store.unchanged_since(token, Instant::now()).is_some()
}

const KEYS: [&str; 3] = ["a/c/0/0", "a/c/1/0", "a/zarr.json"];

#[tokio::test]
async fn every_change_of_a_watched_key_is_reported() {
    let open = |root: &Path| OpenOptions::new().write(true).open(root.join("a/c/1/0")).unwrap();
    let changes: [Change<'_>; 18] = [
        ("written in place", &|root| fs::write(root.join("a/c/1/0"), "new").unwrap()),
        ("written at a place", &|root| open(root).write_all_at(b"x", 1).unwrap()),
        ("written by another name", &|root| fs::write(root.join("b/name"), "new").unwrap()),
        ("given a name in another directory", &|root| {
            fs::hard_link(root.join("a/c/1/0"), root.join("b/later")).unwrap();
        }),
        ("given a name outside, and written by it", &|root| {
            let outside = tempfile::tempdir_in(root.parent().unwrap()).unwrap();
            fs::hard_link(root.join("a/c/1/0"), outside.path().join("0")).unwrap();
            fs::write(outside.path().join("0"), "new").unwrap();
        }),
        ("extended", &|root| {
            OpenOptions::new().append(true).open(root.join("a/c/1/0")).unwrap().write_all(b"x").unwrap();
        }),
        ("truncated", &|root| open(root).set_len(1).unwrap()),
        ("dated otherwise", &|root| open(root).set_modified(SystemTime::UNIX_EPOCH).unwrap()),
        ("replaced", &|root| {
            fs::write(root.join("b/new"), "new").unwrap();
            fs::rename(root.join("b/new"), root.join("a/c/1/0")).unwrap();
        }),
        ("removed", &|root| fs::remove_file(root.join("a/c/1/0")).unwrap()),
        ("renamed", &|root| fs::rename(root.join("a/c/1/0"), root.join("b/0")).unwrap()),
        ("its directory renamed", &|root| fs::rename(root.join("a/c/1"), root.join("b/1")).unwrap()),
        ("a directory further up renamed", &|root| fs::rename(root.join("a"), root.join("x")).unwrap()),
        ("a directory further up removed", &|root| fs::remove_dir_all(root.join("a")).unwrap()),
        ("a missing file created", &|root| fs::write(root.join("a/zarr.json"), "{}").unwrap()),
        ("replaced by a link", &|root| {
            fs::remove_file(root.join("a/c/1/0")).unwrap();
            symlink("../0/0", root.join("a/c/1/0")).unwrap();
        }),
        ("a directory moved over another", &|root| {
            fs::create_dir(root.join("b/1")).unwrap();
            fs::remove_file(root.join("a/c/1/0")).unwrap();
            fs::rename(root.join("b/1"), root.join("a/c/1")).unwrap();
        }),
        ("more events than are counted", &|root| {
            // Equal events one after the other would be one.
            let files = [open(root), File::open(root.join("a/c/0/0")).unwrap()];
            for number in 0..20_000 {
                files[number % 2].set_modified(SystemTime::UNIX_EPOCH).unwrap();
            }
        }),
    ];
    for (what, change) in changes {
        let (directory, store) = served();
        let token = watch(&store, &KEYS).await.unwrap();
        assert!(unchanged_since(&store, token), "{what}");
        change(directory.path());
        assert!(!unchanged_since(&store, token), "{what}");
        assert!(!unchanged_since(&store, token), "{what}, checked again");
    }
}

#[tokio::test]
async fn a_write_that_began_before_the_watch_is_reported() {
    let (directory, store) = served();
    let path = directory.path().join("b/late");
    let file = File::create(&path).unwrap();
    fs::rename(&path, directory.path().join("a/c/1/0")).unwrap();
    let token = watch(&store, &KEYS).await.unwrap();
    file.write_all_at(b"late", 0).unwrap();
    assert!(!unchanged_since(&store, token));
}

#[tokio::test]
async fn unrelated_changes_are_not_reported_and_a_new_watch_has_its_own_token() {
    let (directory, store) = served();
    let root = directory.path();
    let token = watch(&store, &KEYS).await.unwrap();
    fs::read(root.join("a/c/1/0")).unwrap();
    fs::read_dir(root.join("a/c")).unwrap().count();
    fs::write(root.join("b/other"), "other").unwrap();
    assert!(unchanged_since(&store, token));
    fs::write(root.join("a/c/0/0"), "new").unwrap();
    let again = watch(&store, &KEYS).await.unwrap();
    assert!(!unchanged_since(&store, token));
    assert!(unchanged_since(&store, again));
    fs::rename(root.join("a/c/1"), root.join("b/1")).unwrap();
    fs::create_dir(root.join("a/c/1")).unwrap();
    let again = watch(&store, &KEYS).await.unwrap();
    assert!(unchanged_since(&store, again));
    fs::write(root.join("a/c/1/0"), "in the new directory").unwrap();
    assert!(!unchanged_since(&store, again));
}

#[tokio::test]
async fn files_without_notifications_are_not_watched() {
    let (directory, store) = served();
    let root = directory.path();
    symlink("a", root.join("link")).unwrap();
    assert_eq!(watch(&store, &["link/c/1/0"]).await, None, "behind a link");
    assert_eq!(watch(&store, &["none/c/1/0"]).await, None, "no such directory");
    symlink("1/0", root.join("a/c/2")).unwrap();
    assert_eq!(watch(&store, &["a/c/2"]).await, None, "a link");
    assert_eq!(watch(&store, &["a/c/1"]).await, None, "a directory");
    for symlinks in [Symlinks::Deny, Symlinks::Within, Symlinks::Follow] {
        assert!(watch(&with_links(root, symlinks), &["a/c/1/0"]).await.is_some());
    }
}

#[tokio::test]
async fn removed_files_free_their_watches() {
    let (directory, store) = served_in_memory();
    for round in 0..40 {
        let names: Vec<String> = (0..500).map(|name| format!("a/c/1/{name}")).collect();
        for name in &names {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(watch(&store, &names).await.is_some(), "{round}");
        for name in names {
            fs::remove_file(directory.path().join(name)).unwrap();
        }
    }
}

#[tokio::test]
async fn one_reading_of_reports_serves_all_that_ask_for_an_earlier_time() {
    let (directory, store) = served();
    let token = watch(&store, &KEYS).await.unwrap();
    let before = Instant::now();
    let read_at = store.unchanged_since(token, before).unwrap();
    assert!(read_at >= before);
    fs::write(directory.path().join("a/c/1/0"), "new").unwrap();
    assert_eq!(store.unchanged_since(token, before), Some(read_at));
    assert_eq!(store.unchanged_since(token, Instant::now()), None);
    assert_eq!(store.unchanged_since(token, before), None, "what is known by now");
}
