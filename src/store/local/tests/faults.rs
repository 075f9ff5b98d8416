//! The order in which a write reaches the disk, and its outcome when a step fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::io::Errno;
use tempfile::TempDir;

use super::*;
use crate::store::local::disk::{Script, Step};
use crate::store::tests::{body, key, keys, put, read};
use crate::store::{Store, StoreError, WriteCondition};

const NO_SPACE: [Errno; 3] = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG];
const FAILURES: [Errno; 4] = [Errno::IO, Errno::ROFS, Errno::ACCESS, Errno::STALE];

fn open(directory: &TempDir, durability: Durability) -> LocalStore {
    let options = LocalOptions { writable: true, durability, ..LocalOptions::default() };
    LocalStore::open(directory.path(), &options).unwrap()
}

/// Opens the directory of a store that was dropped: what it was doing on other threads ends a moment later.
async fn open_again(directory: &TempDir) -> LocalStore {
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    for _ in 0..500 {
        match LocalStore::open(directory.path(), &options) {
            Err(StoreError::RootInUse(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
            opened => return opened.unwrap(),
        }
    }
    panic!("the directory is still in use");
}

impl LocalStore {
    fn script(&self, script: impl FnMut(Step) -> Result<(), Errno> + Send + 'static) {
        let script: Script = Box::new(script);
        *self.shared.disk.script.lock().unwrap() = Some(script);
    }

    /// From now on every step of this kind fails. Says how often one did.
    fn fail(&self, failing: Step, errno: Errno) -> Arc<Mutex<usize>> {
        let count = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&count);
        self.script(move |step| {
            if step != failing {
                return Ok(());
            }
            *counter.lock().unwrap() += 1;
            Err(errno)
        });
        count
    }

    fn heal(&self) {
        *self.shared.disk.script.lock().unwrap() = None;
    }
}

#[tokio::test]
async fn bytes_are_durable_before_they_have_a_name_and_the_name_before_it_is_acknowledged() {
    use Step::*;
    for durability in [Durability::Fsync, Durability::Rename] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory, durability);
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&recorded);
        store.script(move |step| {
            note.lock().unwrap().push(step);
            Ok(())
        });
        let steps = || std::mem::take(&mut *recorded.lock().unwrap());
        let expected = |steps: &[Step]| -> Vec<Step> {
            let is_sync = |step: &Step| matches!(step, SyncFile | SyncDirectory);
            let expected = |step: &&Step| durability == Durability::Fsync || !is_sync(step);
            steps.iter().filter(expected).copied().collect()
        };
        put(&store, "a/b/c", "1").await;
        let new_parents = [MakeDirectory, MakeDirectory, Rename, SyncDirectory, SyncDirectory, SyncDirectory];
        let first = [&[Create, Write, Stamp, SyncFile][..], &new_parents].concat();
        assert_eq!(steps(), expected(&first), "the directory, and the two that hold the new ones");
        put(&store, "a/b/c", "2").await;
        assert_eq!(steps(), expected(&[Create, Write, Stamp, SyncFile, Rename, SyncDirectory]));
        put(&store, "a/x", "3").await;
        assert_eq!(steps(), expected(&[Create, Write, Stamp, SyncFile, Rename, SyncDirectory]));
        assert!(store.erase(&key("a/b/c"), WriteCondition::Always).await.unwrap());
        assert_eq!(steps(), expected(&[Unlink, SyncDirectory, RemoveDirectory, RemoveDirectory]));
        put(&store, "a/b", "4").await;
        steps();
        put(&store, "y", "").await;
        assert_eq!(steps(), expected(&[Create, Stamp, SyncFile, Rename, SyncDirectory]));
        assert_eq!(store.erase_prefix(&crate::store::tests::prefix("a/")).await.unwrap(), 2);
        let erased = steps();
        assert_eq!(erased.iter().filter(|step| **step == Unlink).count(), 2);
        assert_eq!(erased.last() == Some(&SyncDirectory), durability == Durability::Fsync, "{erased:?}");
    }
}

/// Whether readers see the change before the step is made.
fn is_seen(step: Step) -> bool {
    step == Step::SyncDirectory
}

#[tokio::test]
async fn a_failed_step_leaves_the_old_value_and_nothing_else() {
    let steps = [
        Step::Create,
        Step::Write,
        Step::Stamp,
        Step::SyncFile,
        Step::MakeDirectory,
        Step::Rename,
        Step::SyncDirectory,
    ];
    for step in steps {
        for errno in NO_SPACE.into_iter().chain(FAILURES) {
            let what = format!("{step:?} {errno:?}");
            let directory = tempfile::tempdir().unwrap();
            let store = open(&directory, Durability::Fsync);
            put(&store, "a/b", "old").await;
            let failed = store.fail(step, errno);
            for text in ["a/b", "n/e/w"] {
                if (text, step) == ("a/b", Step::MakeDirectory) {
                    continue;
                }
                let result = store.set(&key(text), body(vec![1; 3 << 20]), WriteCondition::Always).await;
                match result.unwrap_err() {
                    StoreError::StorageFull(_) => {
                        assert!(NO_SPACE.contains(&errno) && !is_seen(step), "{what}");
                    }
                    StoreError::Backend(_) => assert!(!NO_SPACE.contains(&errno) || is_seen(step), "{what}"),
                    other => panic!("{what}: {other:?}"),
                }
            }
            assert!(*failed.lock().unwrap() > 0, "{what} was not met with");
            writes::nothing_is_staged(directory.path()).await;
            if is_seen(step) {
                assert_eq!(read(&store, "a/b").await.unwrap().len(), 3 << 20, "{what}");
            } else {
                assert_eq!(read(&store, "a/b").await.unwrap(), "old", "{what}");
                assert_eq!(keys(&store, "").await, ["a/b"], "{what}");
                assert!(!directory.path().join("n").exists(), "{what}");
            }

            store.heal();
            let again = store.set(&key("n/e/w"), body("new"), WriteCondition::Always).await;
            let broken = is_seen(step) || (step, errno) == (Step::SyncFile, Errno::IO);
            assert_eq!(again.is_err(), broken, "{what}: {again:?}");
            assert_eq!(store.check().await.is_err(), broken, "{what}");
            if broken {
                assert!(matches!(again, Err(StoreError::Backend(_))), "{what}");
                drop(store);
                put(&open_again(&directory).await, "n/e/w", "new").await;
            }
        }
    }
}

#[tokio::test]
async fn an_erasure_that_fails_is_not_acknowledged() {
    for (step, broken) in [(Step::Unlink, false), (Step::SyncDirectory, true)] {
        for errno in NO_SPACE.into_iter().chain(FAILURES) {
            let directory = tempfile::tempdir().unwrap();
            let store = open(&directory, Durability::Fsync);
            put(&store, "a/b", "old").await;
            let failed = store.fail(step, errno);
            let erased = store.erase(&key("a/b"), WriteCondition::Always).await;
            match erased.unwrap_err() {
                StoreError::StorageFull(_) => assert!(NO_SPACE.contains(&errno) && !is_seen(step)),
                StoreError::Backend(_) => assert!(!NO_SPACE.contains(&errno) || is_seen(step)),
                other => panic!("{step:?} {errno:?}: {other:?}"),
            }
            assert_eq!(*failed.lock().unwrap(), 1);
            assert_eq!(read(&store, "a/b").await.is_some(), !is_seen(step));
            store.heal();
            let again = store.erase(&key("a/b"), WriteCondition::Always).await;
            assert_eq!(again.is_err(), broken, "{step:?} {errno:?}: {again:?}");
        }
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_removed_does_not_stop_an_erasure() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory, Durability::Fsync);
    put(&store, "a/b", "old").await;
    let failed = store.fail(Step::RemoveDirectory, Errno::IO);
    assert!(store.erase(&key("a/b"), WriteCondition::Always).await.unwrap());
    assert_eq!(*failed.lock().unwrap(), 1);
    assert!(directory.path().join("a").exists() && keys(&store, "").await.is_empty());
    store.heal();
    put(&store, "a", "in its place").await;
}
