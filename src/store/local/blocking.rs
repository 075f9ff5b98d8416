//! [`Blocking`]: the only way from async code to the blocking calls of the file system.
//!
//! Every file operation of this store that may block runs here, on tokio's blocking threads, and never more of them at
//! once than the store's own limit: a slow disk delays the store on it, not the whole process. Walks through
//! directories have a limit of their own, since a long directory takes longer than many values: no read waits behind
//! them. Operations that cannot block are in `nonblocking`.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::failure::{Failure, failed};
use crate::store::StoreError;

/// The most concurrent file operations of one store.
pub const MAX_CONCURRENCY: usize = 64;

/// The limit in front of the blocking threads. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Blocking {
    gate: Arc<Semaphore>,
    /// The limit for walks through directories.
    pub(super) walks: Arc<Semaphore>,
    /// How many operations ran.
    #[cfg(test)]
    pub(super) hops: Arc<std::sync::atomic::AtomicU64>,
}

impl Blocking {
    /// A limit of `concurrency` operations at once (1 to [`MAX_CONCURRENCY`]).
    pub(super) fn new(concurrency: usize) -> Self {
        Self {
            gate: Arc::new(Semaphore::new(concurrency.clamp(1, MAX_CONCURRENCY))),
            walks: Arc::new(Semaphore::new(walks())),
            #[cfg(test)]
            hops: Arc::default(),
        }
    }

    /// Runs `work` on a blocking thread. Once begun, it runs to its end, even if the caller is dropped.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run_within(&self.gate, work).await
    }

    /// As [`Blocking::run`], for work that walks through directories of any length.
    pub(super) async fn walk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run_within(&self.walks, work).await
    }

    async fn run_within<T: Send + 'static>(
        &self,
        gate: &Arc<Semaphore>,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        #[cfg(test)]
        self.hops.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let gate = Arc::clone(gate);
        let permit = gate.acquire_owned().await.map_err(|closed| failed("wait for a thread", closed))?;
        let work = move || {
            let _held_until_the_work_is_done = permit;
            work()
        };
        spawn(work).await.map_err(|stopped| failed("finish on a thread", stopped))?
    }
}

/// The most concurrent walks of a store: they use a core more than a disk.
fn walks() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, MAX_CONCURRENCY))
}

/// Runs clean-up in the background; on the caller's thread if there is no runtime any more.
pub(super) fn detach(work: impl FnOnce() + Send + 'static) {
    if tokio::runtime::Handle::try_current().is_ok() {
        drop(spawn(work));
    } else {
        work();
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the door that the lint points to")]
fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// Waits for a task that was detached from its caller.
pub(super) async fn join<T>(task: tokio::task::JoinHandle<Result<T, StoreError>>) -> Result<T, StoreError> {
    match task.await {
        Ok(result) => result,
        Err(stopped) => Err(StoreError::Backend(Arc::new(Failure::new("finish a write", stopped)))),
    }
}
