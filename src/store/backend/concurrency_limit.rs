//! [`ConcurrencyLimit`]: so many questions to a backend at a time, and the line in front of them.
//!
//! The line is bounded by time. Where none of those under way has ended for a while, the backend hangs, and nobody waits
//! any longer until one does: those who wait hold memory that requests to other backends need.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::store::StoreError;

/// A backend that ends no question for so long, of as many as it may be asked, hangs.
const STALL_AFTER: Duration = Duration::from_secs(2);

/// Too many others ask.
#[derive(Debug, thiserror::Error)]
#[error("too many questions to the backend are under way")]
struct ConcurrencyLimitReached;

/// The gate in front of a backend.
#[derive(Debug)]
pub(super) struct ConcurrencyLimit {
    room: Semaphore,
    limit: usize,
    patience: Duration,
    waiting: AtomicUsize,
    /// How many have ended.
    ended: AtomicU64,
    hangs: AtomicBool,
}

/// A turn; dropped, it is another's.
#[derive(Debug)]
pub(super) struct ConcurrencyPermit<'a> {
    turns: &'a ConcurrencyLimit,
    _permit: SemaphorePermit<'a>,
}

/// Counts who waits.
struct Waiting<'a>(&'a AtomicUsize);

impl ConcurrencyLimit {
    /// Turns for so many at a time, for whom others wait so long at most.
    pub(super) fn new(limit: usize, patience: Duration) -> Self {
        let limit = limit.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            room: Semaphore::new(limit),
            limit,
            patience,
            waiting: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
            hangs: AtomicBool::new(false),
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn in_flight(&self) -> usize {
        self.limit.saturating_sub(self.room.available_permits())
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if it takes too long.
    pub(super) async fn take(&self) -> Result<ConcurrencyPermit<'_>, StoreError> {
        if let Ok(permit) = self.room.try_acquire() {
            return Ok(ConcurrencyPermit { turns: self, _permit: permit });
        }
        let _counted = Waiting::of(&self.waiting);
        let end = Instant::now() + self.patience;
        let mut acquire = pin!(self.room.acquire());
        while !self.hangs.load(Ordering::Relaxed) {
            let (ended, left) = (self.ended.load(Ordering::Relaxed), end - Instant::now());
            match timeout(left.min(STALL_AFTER), acquire.as_mut()).await {
                Ok(Ok(permit)) => return Ok(ConcurrencyPermit { turns: self, _permit: permit }),
                Err(_) if left > STALL_AFTER && self.ended.load(Ordering::Relaxed) != ended => {}
                Err(_) if left >= STALL_AFTER => self.hangs.store(true, Ordering::Relaxed),
                Ok(Err(_)) | Err(_) => break,
            }
        }
        Err(StoreError::Busy(Arc::new(ConcurrencyLimitReached)))
    }
}

impl Drop for ConcurrencyPermit<'_> {
    fn drop(&mut self) {
        self.turns.ended.fetch_add(1, Ordering::Relaxed);
        self.turns.hangs.store(false, Ordering::Relaxed);
    }
}

impl<'a> Waiting<'a> {
    fn of(count: &'a AtomicUsize) -> Self {
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
    async fn so_many_have_their_turn_at_a_time_and_all_have_one() {
        let turns = ConcurrencyLimit::new(4, 60 * SECOND);
        let most = AtomicUsize::new(0);
        let question = || async {
            let turn = turns.take().await.unwrap();
            most.fetch_max(turns.in_flight(), Ordering::Relaxed);
            tokio::time::sleep(SECOND).await;
            drop(turn);
        };
        let began = Instant::now();
        join_all((0..40).map(|_| question())).await;
        assert_eq!(began.elapsed(), 10 * SECOND);
        assert_eq!(most.into_inner(), 4);
        assert_eq!((turns.in_flight(), turns.waiting()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_is_said() {
        let turns = ConcurrencyLimit::new(1, 5 * SECOND);
        let busy = async {
            for _ in 0..10 {
                let turn = turns.take().await;
                tokio::time::sleep(SECOND).await;
                drop(turn);
            }
        };
        let began = Instant::now();
        let others = join_all((0..20).map(|_| async {
            let turn = turns.take().await;
            let waited = began.elapsed();
            tokio::time::sleep(SECOND).await;
            (turn.is_ok(), waited)
        }));
        let ((), others) = tokio::join!(busy, others);
        let served = others.iter().filter(|(is_served, _)| *is_served).count();
        assert!((3..=5).contains(&served), "{others:?}");
        assert!(others.iter().all(|(_, waited)| *waited <= 5 * SECOND), "{others:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_backend_that_hangs_is_not_waited_for_until_it_answers() {
        let turns = ConcurrencyLimit::new(2, 60 * SECOND);
        let held = [turns.take().await.unwrap(), turns.take().await.unwrap()];
        let began = Instant::now();
        assert!(turns.take().await.is_err());
        assert_eq!(began.elapsed(), STALL_AFTER, "that nothing ends is noticed");
        assert!(join_all((0..100).map(|_| turns.take())).await.iter().all(Result::is_err));
        assert_eq!(began.elapsed(), STALL_AFTER, "and from then on, nobody waits");
        drop(held);
        assert!(turns.take().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_the_line_leaves_it_to_others() {
        let turns = ConcurrencyLimit::new(1, 60 * SECOND);
        let held = turns.take().await.unwrap();
        assert!(timeout(SECOND, turns.take()).await.is_err());
        assert_eq!((turns.in_flight(), turns.waiting()), (1, 0));
        drop(held);
        assert!(timeout(SECOND, turns.take()).await.is_ok());
    }
}
