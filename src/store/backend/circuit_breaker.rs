//! [`CircuitBreaker`]: leaves a backend alone that fails.
//!
//! When so many questions have failed within a while, and no more succeeded meanwhile, all are refused at once for a
//! moment. Then one is let through: if it succeeds all are again, if not the moment begins anew. A backend that fails one
//! question in a hundred is asked as before, however many hundreds there are. What counts as a failure is for the caller to
//! say.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::state::CircuitState;
use crate::store::StoreError;

/// For how long failures count.
const WHILE: Duration = Duration::from_secs(10);
/// For how long a backend is left alone.
const MOMENT: Duration = Duration::from_secs(1);

/// The backend has failed too often.
#[derive(Debug, thiserror::Error)]
#[error("the backend is left alone, as it failed too often")]
struct CircuitOpen;

/// What is known of a backend's failures.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    /// So many failures are too many; 0 for never.
    limit: usize,
    successes: AtomicU64,
    /// Whether `facts` say that the backend is left alone.
    is_open: AtomicBool,
    times_opened: AtomicU64,
    facts: Mutex<Facts>,
}

#[derive(Debug, Default)]
struct Facts {
    /// The last failures: when, and how many questions had succeeded by then.
    failures: VecDeque<(Instant, u64)>,
    /// Until when nobody asks, and whether somebody tries after that.
    open: Option<(Instant, bool)>,
}

/// A question that was let through.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    breaker: &'a CircuitBreaker,
    is_probe: bool,
    is_over: bool,
}

impl CircuitBreaker {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            successes: AtomicU64::new(0),
            is_open: AtomicBool::new(false),
            times_opened: AtomicU64::new(0),
            facts: Mutex::default(),
        }
    }

    pub(super) fn circuit(&self) -> CircuitState {
        match self.facts().open {
            None => CircuitState::Closed,
            Some((_, false)) => CircuitState::Open,
            Some((_, true)) => CircuitState::Probing,
        }
    }

    pub(super) fn opened_total(&self) -> u64 {
        self.times_opened.load(Ordering::Relaxed)
    }

    /// Whether a question would be let through.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if not.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if !self.is_open.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.facts().open {
            Some((until, is_probed)) if is_probed || Instant::now() < until => Err(retry_after()),
            None | Some(_) => Ok(()),
        }
    }

    /// Lets a question through.
    ///
    /// # Errors
    /// As for [`CircuitBreaker::check`].
    pub(super) fn begin(&self) -> Result<Attempt<'_>, StoreError> {
        let mut is_probe = false;
        if self.is_open.load(Ordering::Relaxed)
            && let Some((until, is_probed)) = &mut self.facts().open
        {
            if *is_probed || Instant::now() < *until {
                return Err(retry_after());
            }
            (*is_probed, is_probe) = (true, true);
        }
        Ok(Attempt { breaker: self, is_probe, is_over: false })
    }

    /// Counts a failure.
    pub(super) fn failed(&self) {
        if self.limit == 0 {
            return;
        }
        let (now, successes) = (Instant::now(), self.successes.load(Ordering::Relaxed));
        let mut facts = self.facts();
        facts.failures.push_back((now, successes));
        if facts.failures.len() > self.limit {
            facts.failures.pop_front();
        }
        let Some((first, before)) = facts.failures.front().copied() else { return };
        let meanwhile = successes.saturating_sub(before);
        let is_too_much = facts.failures.len() == self.limit
            && now.saturating_duration_since(first) <= WHILE
            && meanwhile <= self.limit as u64;
        if is_too_much && facts.open.is_none() {
            self.open(&mut facts, now);
        }
    }

    fn open(&self, facts: &mut Facts, now: Instant) {
        facts.open = Some((now + MOMENT, false));
        self.is_open.store(true, Ordering::Relaxed);
        self.times_opened.fetch_add(1, Ordering::Relaxed);
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        // Plain values: a panic elsewhere cannot have left them half changed.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn retry_after() -> StoreError {
    StoreError::Busy(Arc::new(CircuitOpen))
}

impl Attempt<'_> {
    /// Says how it went.
    pub(super) fn end(mut self, has_failed: bool) {
        self.is_over = true;
        let breaker = self.breaker;
        match (self.is_probe, has_failed) {
            (false, true) => breaker.failed(),
            (false, false) => {
                breaker.successes.fetch_add(1, Ordering::Relaxed);
            }
            (true, true) => breaker.open(&mut breaker.facts(), Instant::now()),
            (true, false) => {
                *breaker.facts() = Facts::default();
                breaker.is_open.store(false, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Attempt<'_> {
    /// Whoever asked has gone: nothing is known, and another may try.
    fn drop(&mut self) {
        if self.is_probe
            && !self.is_over
            && let Some((_, is_probed)) = &mut self.breaker.facts().open
        {
            *is_probed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(breaker: &CircuitBreaker, has_failed: bool) -> bool {
        breaker.check().is_ok() && breaker.begin().map(|attempt| attempt.end(has_failed)).is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_backend_that_fails_is_left_alone_and_then_tried_by_one() {
        let breaker = CircuitBreaker::new(10);
        assert_eq!((0..50).filter(|_| ask(&breaker, true)).count(), 10);
        assert_eq!(breaker.circuit(), CircuitState::Open);
        tokio::time::advance(MOMENT).await;
        let probe = breaker.begin().unwrap();
        assert_eq!(breaker.circuit(), CircuitState::Probing);
        assert!(breaker.check().is_err() && breaker.begin().is_err(), "one is enough");
        probe.end(true);
        assert!(!ask(&breaker, false), "for another moment");
        tokio::time::advance(MOMENT).await;
        assert!(ask(&breaker, false));
        assert_eq!((breaker.circuit(), breaker.opened_total()), (CircuitState::Closed, 2));
        assert_eq!((0..50).filter(|_| ask(&breaker, true)).count(), 10, "what was is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_abandoned_is_followed_by_another() {
        let breaker = CircuitBreaker::new(1);
        assert!(ask(&breaker, true));
        tokio::time::advance(MOMENT).await;
        drop(breaker.begin().unwrap());
        assert_eq!(breaker.circuit(), CircuitState::Open);
        assert!(ask(&breaker, false));
        assert_eq!(breaker.circuit(), CircuitState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_that_are_rare_or_long_ago_change_nothing() {
        let breaker = CircuitBreaker::new(10);
        for number in 0..10_000 {
            assert!(ask(&breaker, number % 100 == 0), "one in a hundred");
        }
        let breaker = CircuitBreaker::new(10);
        for _ in 0..100 {
            assert!(ask(&breaker, true), "one in more than a second");
            tokio::time::advance(Duration::from_millis(1200)).await;
        }
        let breaker = CircuitBreaker::new(0);
        assert!((0..100).all(|_| ask(&breaker, true)), "none is too many");
    }
}
