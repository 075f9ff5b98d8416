//! [`Threads`]: reads of the disk cache, which block, on threads that may, with a limit.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::options::MAX_CONCURRENCY;

/// The limit in front of the threads. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Threads(Arc<Semaphore>);

impl Threads {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_CONCURRENCY)))
    }

    /// Runs `work` on a thread that may block. `None` if it found nothing, or could not run.
    #[expect(clippy::disallowed_methods, reason = "bounded by the semaphore, as in `store::local`")]
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let work = move || {
            let _held_until_the_work_is_done = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.ok()?
    }
}
