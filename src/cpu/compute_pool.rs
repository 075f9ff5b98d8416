//! [`ComputePool`]: runs CPU work that asynchronous code waits for.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_task::Runnable;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tracing::Instrument;

use super::pool::{self, Pool};
use crate::error::{Classify, ErrorClass};

/// Work on at most this many bytes takes less time than a hop to another thread.
const INLINE_BYTES: u64 = 8 << 10;
/// Work on more bytes than this is worth a hop even from a thread of the pool, since other threads may be idle.
const PARALLEL_BYTES: u64 = 256 << 10;

/// Work on a document of more bytes than this may take a tenth of a second.
const LONG_DOCUMENT_BYTES: u64 = 256 << 10;

/// Threads for computation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ComputePoolOptions {
    /// Threads that decode and render. 0: one for each core. Up to four, with as many cores, each wakes up on a core of its own.
    pub threads: usize,
}

/// Why CPU work has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputePoolError {
    /// The work panicked: a bug, which affects only this piece of work.
    #[error("the work panicked")]
    Panicked,
    /// The threads of the pool could not be started.
    #[error("the threads cannot be started: {0}")]
    NoThreads(String),
}

impl Classify for ComputePoolError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Panicked | Self::NoThreads(_) => ErrorClass::Internal,
        }
    }
}

/// A pool of threads for CPU work. Clones share it.
#[derive(Clone)]
pub struct ComputePool {
    pub(super) pool: Arc<Pool>,
    threads: usize,
    /// Permits for work on long documents, so that it never occupies all threads.
    long_documents: Arc<Semaphore>,
}

impl ComputePool {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`ComputePoolError::NoThreads`] if the system refuses them.
    pub fn new(options: ComputePoolOptions) -> Result<Self, ComputePoolError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if options.threads == 0 { cores } else { options.threads };
        let pool = Pool::start(threads).map_err(|error| ComputePoolError::NoThreads(error.to_string()))?;
        let long_documents = Arc::new(Semaphore::new((threads / 2).max(1)));
        Ok(Self { pool: Arc::new(pool), threads, long_documents })
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work` on the pool: immediately if the caller runs there already ([`ComputePool::spawn_future`]), else when its
    /// turn comes.
    ///
    /// # Errors
    /// [`ComputePoolError::Panicked`] if `work` panics.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputePoolError> {
        if pool::on_pool_thread() { run_inline(work) } else { self.spawn_background(work).await }
    }

    /// Queues `work` for the pool, also from a thread of the pool, so that several pieces of work run in parallel. Work that
    /// has not begun when the future is dropped never runs.
    ///
    /// # Errors
    /// [`ComputePoolError::Panicked`] if `work` panics.
    pub async fn spawn_background<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputePoolError> {
        let (done, result) = oneshot::channel();
        self.pool.push(Box::new(move || {
            if done.is_closed() {
                return;
            }
            // If the work panics, `done` is dropped. If the caller was dropped, the result is.
            let _ = done.send(work());
        }));
        result.await.map_err(|_closed| ComputePoolError::Panicked)
    }

    /// [`ComputePool::run`] for work on this many bytes: work on a few kilobytes runs on the caller's thread, which takes less
    /// time than a hop to another thread and back.
    ///
    /// # Errors
    /// [`ComputePoolError::Panicked`] if `work` panics.
    pub async fn run_or_inline<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputePoolError> {
        if bytes <= INLINE_BYTES {
            run_inline(work)
        } else if bytes <= PARALLEL_BYTES {
            self.run(work).await
        } else {
            self.spawn_background(work).await
        }
    }

    /// [`ComputePool::run`] for work on a document of this many bytes, which takes longer than work on as many bytes of
    /// elements. Long documents wait for a permit, so that at least half of the threads remain for other work.
    ///
    /// # Errors
    /// [`ComputePoolError::Panicked`] if `work` panics.
    pub async fn run_document<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputePoolError> {
        if bytes <= INLINE_BYTES {
            return run_inline(work);
        }
        if bytes <= LONG_DOCUMENT_BYTES {
            return self.run(work).await;
        }
        self.run_long(work).await
    }

    /// [`ComputePool::run_document`] for work that may take long however short its document is.
    ///
    /// # Errors
    /// [`ComputePoolError::Panicked`] if `work` panics.
    pub async fn run_long<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputePoolError> {
        // The semaphore is never closed. The work holds the permit, because it goes on when the caller is dropped.
        let permit = Arc::clone(&self.long_documents).acquire_owned().await.ok();
        self.spawn_background(move || {
            let _permit = permit;
            work()
        })
        .await
    }

    /// Runs a future on the pool. Its work between two suspensions, with all that it passes to [`ComputePool::run`], is one
    /// piece of work: its data stays in the caches of one core, and no hop to another thread is needed. The future must not
    /// block. If the caller is dropped, the future is dropped at its next suspension. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ComputePoolError::Panicked`] if it panics.
    pub async fn spawn_future<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ComputePoolError> {
        let (pool, reactor) = (Arc::clone(&self.pool), Handle::current());
        let schedule = move |runnable: Runnable| {
            let reactor = reactor.clone();
            pool.push(Box::new(move || {
                let _here = reactor.enter();
                runnable.run();
            }));
        };
        let (runnable, task) = async_task::spawn(future.in_current_span(), schedule);
        runnable.schedule();
        // A task whose future panicked counts as cancelled.
        task.fallible().await.ok_or(ComputePoolError::Panicked)
    }
}

/// Whether [`expect_pool_for`] checks anything.
static ARE_THREADS_CHECKED: AtomicBool = AtomicBool::new(cfg!(test));

/// From now on, long work on a thread of the reactor panics. For tests.
pub fn check_threads() {
    ARE_THREADS_CHECKED.store(true, Ordering::Relaxed);
}

/// Asserts that work on a document of this many bytes may run on this thread: long work must not run on a thread of the
/// reactor. Does nothing before [`check_threads`].
pub(crate) fn expect_pool_for(bytes: usize) {
    let is_checked = bytes as u64 > LONG_DOCUMENT_BYTES && ARE_THREADS_CHECKED.load(Ordering::Relaxed);
    assert!(
        !is_checked || pool::on_pool_thread() || Handle::try_current().is_err(),
        "work on a document of {bytes} bytes on a thread of the reactor"
    );
}

fn run_inline<T>(work: impl FnOnce() -> T) -> Result<T, ComputePoolError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_panic| ComputePoolError::Panicked)
}

impl fmt::Debug for ComputePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComputePool").field("threads", &self.threads).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    #[tokio::test]
    async fn a_panic_is_an_error_for_its_own_work_only() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        for _ in 0..3 {
            assert_eq!(
                cpu.run(|| -> u8 { panic!("as the test wants") }).await,
                Err(ComputePoolError::Panicked)
            );
        }
        assert_eq!(cpu.run(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn work_runs_in_the_order_it_was_queued() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let works: Vec<_> = (0..20)
            .map(|number| {
                let sender = sender.clone();
                cpu.run(move || sender.send(number).unwrap())
            })
            .collect();
        futures::future::join_all(works).await;
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn queued_work_runs_after_the_pool_is_dropped() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let pool = pool::Pool::start(2).unwrap();
        for number in 0..10 {
            let sender = sender.clone();
            pool.push(Box::new(move || sender.send(number).unwrap()));
        }
        drop((pool, sender));
        assert_eq!(receiver.iter().count(), 10);
    }

    #[tokio::test]
    async fn small_work_runs_on_the_callers_thread_and_its_panic_is_an_error() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let thread = || std::thread::current().id();
        assert_eq!(cpu.run_or_inline(INLINE_BYTES, thread).await, Ok(thread()));
        assert_ne!(cpu.run_or_inline(INLINE_BYTES + 1, thread).await, Ok(thread()));
        assert_eq!(
            cpu.run_or_inline(0, || -> u8 { panic!("as the test wants") }).await,
            Err(ComputePoolError::Panicked)
        );
    }

    #[tokio::test]
    async fn a_long_document_on_a_reactor_thread_panics_where_threads_are_checked() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let long = usize::try_from(LONG_DOCUMENT_BYTES).unwrap() + 1;
        assert_eq!(cpu.run(move || expect_pool_for(long)).await, Ok(()));
        assert_eq!(cpu.spawn_future(async move { expect_pool_for(long) }).await, Ok(()));
        expect_pool_for(long - 1);
        assert_eq!(run_inline(|| expect_pool_for(long)), Err(ComputePoolError::Panicked));
    }

    #[tokio::test]
    async fn long_documents_leave_threads_for_other_work() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 2 }).unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let mut first = Box::pin(cpu.run_document(LONG_DOCUMENT_BYTES + 1, move || wait.recv().is_ok()));
        let mut second = Box::pin(cpu.run_document(LONG_DOCUMENT_BYTES + 1, || 2));
        assert!(futures::poll!(first.as_mut()).is_pending() && futures::poll!(second.as_mut()).is_pending());
        assert_eq!(cpu.run_document(LONG_DOCUMENT_BYTES, || 1).await, Ok(1));
        assert_eq!(cpu.spawn_background(|| 1).await, Ok(1));
        assert!(futures::poll!(second.as_mut()).is_pending());
        go.send(()).unwrap();
        assert_eq!((first.await, second.await), (Ok(true), Ok(2)));
    }

    #[tokio::test]
    async fn a_spawned_future_and_its_work_run_on_one_pool_thread_and_large_work_on_any() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 2 }).unwrap();
        let (own, driven) = (std::thread::current().id(), cpu.clone());
        let threads = cpu.spawn_future(async move {
            let here = std::thread::current().id();
            let thread = || std::thread::current().id();
            let small = driven.run_or_inline(INLINE_BYTES + 1, thread).await.unwrap();
            let whole = driven.run(thread).await.unwrap();
            // It is queued by one thread and runs on the other, or on this one while the future waits.
            let large = driven.run_or_inline(PARALLEL_BYTES + 1, thread).await.unwrap();
            ([here, small, whole], large)
        });
        let (here, large) = threads.await.unwrap();
        assert!(here.iter().all(|thread| *thread == here[0] && *thread != own));
        assert_ne!(large, own);
    }

    #[tokio::test]
    async fn a_spawned_future_that_waits_occupies_no_thread() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let (go, wait) = oneshot::channel();
        let mut driven = Box::pin(cpu.spawn_future(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            wait.await
        }));
        assert!(futures::poll!(driven.as_mut()).is_pending());
        assert_eq!(cpu.run(|| 1).await, Ok(1));
        go.send(2).unwrap();
        assert_eq!(driven.await, Ok(Ok(2)));
    }

    #[tokio::test]
    async fn a_spawned_future_that_panics_is_an_error_and_is_dropped_with_its_caller() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        assert_eq!(
            cpu.spawn_future(async { panic!("as the test wants") }).await,
            Err::<u8, _>(ComputePoolError::Panicked)
        );
        let (held, dropped) = oneshot::channel::<()>();
        let mut left = Box::pin(cpu.spawn_future(async move {
            let _held = held;
            std::future::pending::<()>().await;
        }));
        assert!(futures::poll!(left.as_mut()).is_pending());
        cpu.run(|| ()).await.unwrap();
        drop(left);
        assert!(dropped.await.is_err());
    }

    #[tokio::test]
    async fn a_caller_that_is_not_polled_does_not_hold_up_others() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let mut first = Box::pin(cpu.run(move || wait.recv().is_ok()));
        assert!(futures::poll!(first.as_mut()).is_pending());
        let mut still = Box::pin(cpu.run(|| 1));
        assert!(futures::poll!(still.as_mut()).is_pending());
        go.send(()).unwrap();
        assert_eq!(first.await, Ok(true));
        // Its turn has come, and it has not been polled since.
        let third = tokio::time::timeout(Duration::from_mins(1), cpu.run(|| 2)).await;
        assert_eq!(third, Ok(Ok(2)));
        assert_eq!(still.await, Ok(1));
    }

    #[tokio::test]
    async fn work_of_a_dropped_caller_never_runs() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let mut first = Box::pin(cpu.run(move || wait.recv().is_ok()));
        assert!(futures::poll!(first.as_mut()).is_pending());
        let ran = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&ran);
        let mut left = Box::pin(cpu.run(move || counter.fetch_add(1, Ordering::SeqCst)));
        assert!(futures::poll!(left.as_mut()).is_pending());
        drop(left);
        go.send(()).unwrap();
        assert_eq!(first.await, Ok(true));
        cpu.run(|| ()).await.unwrap();
        assert_eq!(ran.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn no_more_work_runs_at_a_time_than_threads_when_callers_are_dropped() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 1 }).unwrap();
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..8 {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            let work = cpu.run(move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(5));
                running.fetch_sub(1, Ordering::SeqCst);
            });
            let _ = tokio::time::timeout(Duration::from_millis(1), work).await;
        }
        cpu.run(|| ()).await.unwrap();
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }
}
