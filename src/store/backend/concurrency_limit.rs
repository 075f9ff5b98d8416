//! [`ConcurrencyLimit`]: the most concurrent requests to a backend, and the queue for them.
//!
//! A request waits in the queue for a limited time. If no request in flight completes for [`STALL_AFTER`], the backend
//! has stalled, and the queue is empty until one completes: waiters hold memory that requests to other backends need.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::store::StoreError;

/// A backend that completes none of the requests in flight for this time has stalled.
const STALL_AFTER: Duration = Duration::from_secs(2);

/// The limit is reached, and the wait for it is over.
#[derive(Debug, thiserror::Error)]
#[error("too many requests to the backend are in flight")]
struct ConcurrencyLimitReached;

/// The limit of one backend.
#[derive(Debug)]
pub(super) struct ConcurrencyLimit {
    semaphore: Semaphore,
    limit: usize,
    max_wait: Duration,
    waiting: AtomicUsize,
    /// How many requests have completed.
    completed: AtomicU64,
    is_stalled: AtomicBool,
}

/// The right to one request, which passes to the next waiter on drop.
#[derive(Debug)]
pub(super) struct ConcurrencyPermit<'a> {
    limiter: &'a ConcurrencyLimit,
    _permit: SemaphorePermit<'a>,
}

/// Counts a waiter while it lives.
struct Waiting<'a>(&'a AtomicUsize);

impl ConcurrencyLimit {
    /// A limit of this many concurrent requests, with a queue in which a request waits for `max_wait` at most.
    pub(super) fn new(limit: usize, max_wait: Duration) -> Self {
        let limit = limit.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            semaphore: Semaphore::new(limit),
            limit,
            max_wait,
            waiting: AtomicUsize::new(0),
            completed: AtomicU64::new(0),
            is_stalled: AtomicBool::new(false),
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn in_flight(&self) -> usize {
        self.limit.saturating_sub(self.semaphore.available_permits())
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if that takes too long, or the backend has stalled.
    pub(super) async fn acquire(&self) -> Result<ConcurrencyPermit<'_>, StoreError> {
        if let Ok(permit) = self.semaphore.try_acquire() {
            return Ok(ConcurrencyPermit { limiter: self, _permit: permit });
        }
        let _counted = Waiting::new(&self.waiting);
        let end = Instant::now() + self.max_wait;
        let mut acquire = pin!(self.semaphore.acquire());
        while !self.is_stalled.load(Ordering::Relaxed) {
            let (completed, left) = (self.completed.load(Ordering::Relaxed), end - Instant::now());
            match timeout(left.min(STALL_AFTER), acquire.as_mut()).await {
                Ok(Ok(permit)) => return Ok(ConcurrencyPermit { limiter: self, _permit: permit }),
                Err(_) if left > STALL_AFTER && self.completed.load(Ordering::Relaxed) != completed => {}
                Err(_) if left >= STALL_AFTER => self.is_stalled.store(true, Ordering::Relaxed),
                Ok(Err(_)) | Err(_) => break,
            }
        }
        Err(StoreError::Busy(Arc::new(ConcurrencyLimitReached)))
    }
}

impl Drop for ConcurrencyPermit<'_> {
    fn drop(&mut self) {
        self.limiter.completed.fetch_add(1, Ordering::Relaxed);
        self.limiter.is_stalled.store(false, Ordering::Relaxed);
    }
}

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_limit_holds_and_every_request_gets_a_permit() {
        let limiter = ConcurrencyLimit::new(4, 60 * SECOND);
        let most = AtomicUsize::new(0);
        let request = || async {
            let permit = limiter.acquire().await.unwrap();
            most.fetch_max(limiter.in_flight(), Ordering::Relaxed);
            tokio::time::sleep(SECOND).await;
            drop(permit);
        };
        let began = Instant::now();
        join_all((0..40).map(|_| request())).await;
        assert_eq!(began.elapsed(), 10 * SECOND);
        assert_eq!(most.into_inner(), 4);
        assert_eq!((limiter.in_flight(), limiter.waiting()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_waits_longer_than_the_maximum() {
        let limiter = ConcurrencyLimit::new(1, 5 * SECOND);
        let busy = async {
            for _ in 0..10 {
                let permit = limiter.acquire().await;
                tokio::time::sleep(SECOND).await;
                drop(permit);
            }
        };
        let began = Instant::now();
        let others = join_all((0..20).map(|_| async {
            let permit = limiter.acquire().await;
            let waited = began.elapsed();
            tokio::time::sleep(SECOND).await;
            (permit.is_ok(), waited)
        }));
        let ((), others) = tokio::join!(busy, others);
        let served = others.iter().filter(|(is_served, _)| *is_served).count();
        assert!((3..=5).contains(&served), "{others:?}");
        assert!(others.iter().all(|(_, waited)| *waited <= 5 * SECOND), "{others:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_rejected_at_once_while_the_backend_is_stalled() {
        let limiter = ConcurrencyLimit::new(2, 60 * SECOND);
        let held = [limiter.acquire().await.unwrap(), limiter.acquire().await.unwrap()];
        let began = Instant::now();
        assert!(limiter.acquire().await.is_err());
        assert_eq!(began.elapsed(), STALL_AFTER, "that nothing ends is noticed");
        assert!(join_all((0..100).map(|_| limiter.acquire())).await.iter().all(Result::is_err));
        assert_eq!(began.elapsed(), STALL_AFTER, "and from then on, no request waits");
        drop(held);
        assert!(limiter.acquire().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_wait_leaves_its_place_to_others() {
        let limiter = ConcurrencyLimit::new(1, 60 * SECOND);
        let held = limiter.acquire().await.unwrap();
        assert!(timeout(SECOND, limiter.acquire()).await.is_err());
        assert_eq!((limiter.in_flight(), limiter.waiting()), (1, 0));
        drop(held);
        assert!(timeout(SECOND, limiter.acquire()).await.is_ok());
    }
}
