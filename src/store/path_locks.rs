//! [`PathLocks`]: the locks that make "check, then write" one step, one for each path.
//!
//! Every write and every erasure of a path takes the path's lock, conditional or not. The locks belong to the process and are named
//! by the whole path in the backend, so that mounts which lie within each other share them. There is a lock only while someone holds
//! it or waits for it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// The locks of the paths of one kind of backend.
#[derive(Debug)]
pub(super) struct PathLocks(LazyLock<Mutex<LocksInUse>>);

/// The locks in use, by the hash of their path. Two paths with one hash share a lock, which costs only time.
type LocksInUse = HashMap<u64, Arc<tokio::sync::Mutex<()>>>;

/// The lock of a path, held until it is dropped.
#[derive(Debug)]
pub(super) struct PathLock {
    locks: &'static PathLocks,
    hash: u64,
    held: Option<OwnedMutexGuard<()>>,
}

impl PathLocks {
    pub(super) const fn new() -> Self {
        Self(LazyLock::new(Mutex::default))
    }

    /// Waits for the lock of a path. No thread is blocked meanwhile.
    pub(super) async fn lock(&'static self, path: &(impl Hash + ?Sized)) -> PathLock {
        // Made before the wait: a caller that leaves while it waits takes its place with it.
        let (mut lock, shared) = self.of(path);
        lock.held = Some(shared.lock_owned().await);
        lock
    }

    /// Takes the lock of a path if it is free and no one waits for it.
    pub(super) fn try_lock(&'static self, path: &(impl Hash + ?Sized)) -> Option<PathLock> {
        let (mut lock, shared) = self.of(path);
        lock.held = Some(shared.try_lock_owned().ok()?);
        Some(lock)
    }

    /// The lock of a path, not held yet, and what is to be locked.
    fn of(&'static self, path: &(impl Hash + ?Sized)) -> (PathLock, Arc<tokio::sync::Mutex<()>>) {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let hash = hasher.finish();
        let shared = Arc::clone(self.in_use().entry(hash).or_default());
        (PathLock { locks: self, hash, held: None }, shared)
    }

    fn in_use(&self) -> MutexGuard<'_, LocksInUse> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PathLock {
    /// The hash of its path.
    pub(super) fn path_hash(&self) -> u64 {
        self.hash
    }
}

impl Drop for PathLock {
    fn drop(&mut self) {
        drop(self.held.take());
        let mut in_use = self.locks.in_use();
        // Who waits for the lock has a reference to it.
        if in_use.get(&self.hash).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            in_use.remove(&self.hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::FutureExt;
    use tokio::task::unconstrained;

    use super::*;

    #[tokio::test]
    async fn a_lock_keeps_out_only_who_wants_the_same_path() {
        static LOCKS: PathLocks = PathLocks::new();
        let first = LOCKS.lock("0").await;
        for other in 1..10_000 {
            let name = other.to_string();
            assert!(unconstrained(LOCKS.lock(&name)).now_or_never().is_some(), "{other}");
        }
        assert!(LOCKS.lock("0").now_or_never().is_none() && LOCKS.try_lock("0").is_none());
        drop(first);
        assert!(LOCKS.lock("0").now_or_never().is_some());
        assert!(LOCKS.try_lock("0").is_some());
    }

    #[tokio::test]
    async fn a_lock_that_is_held_and_wanted_by_no_one_takes_no_memory() {
        static LOCKS: PathLocks = PathLocks::new();
        let first = LOCKS.lock("0").await;
        let mut second = Box::pin(LOCKS.lock("0"));
        let mut third = Box::pin(LOCKS.lock("0"));
        assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
        drop(second);
        drop(first);
        let third = third.await;
        assert!(LOCKS.lock("0").now_or_never().is_none() && LOCKS.try_lock("0").is_none());
        assert_eq!(LOCKS.in_use().len(), 1);
        drop(third);
        assert_eq!(LOCKS.in_use().len(), 0);
    }
}
