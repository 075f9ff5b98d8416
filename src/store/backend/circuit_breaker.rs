//! [`CircuitBreaker`]: rejects requests to a failing backend.
//!
//! The circuit opens when a number of requests failed within [`FAILURE_WINDOW`] and no more than that number succeeded
//! meanwhile; then all requests are rejected for [`COOLDOWN`]. After that one request probes the backend: its success
//! closes the circuit, its failure begins another cooldown. A backend that fails one request in a hundred never opens
//! the circuit, however many requests there are. The caller decides what counts as a failure.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::state::CircuitState;
use crate::store::StoreError;
use crate::store::error::CircuitOpen;

/// How long failures count.
const FAILURE_WINDOW: Duration = Duration::from_secs(10);
/// How long the circuit stays open.
const COOLDOWN: Duration = Duration::from_secs(1);

/// The circuit breaker of one backend.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    /// The number of failures that opens the circuit; 0 for never.
    limit: usize,
    successes: AtomicU64,
    /// Whether `state` has an open circuit; read without the lock.
    is_open: AtomicBool,
    opened_total: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last failures: their times, and how many requests had succeeded by then.
    failures: VecDeque<(Instant, u64)>,
    /// The end of the cooldown, and whether a probe is in flight.
    open: Option<(Instant, bool)>,
}

/// A request that was admitted.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    breaker: &'a CircuitBreaker,
    is_probe: bool,
    is_finished: bool,
}

impl CircuitBreaker {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            successes: AtomicU64::new(0),
            is_open: AtomicBool::new(false),
            opened_total: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    pub(super) fn circuit(&self) -> CircuitState {
        match self.state().open {
            None => CircuitState::Closed,
            Some((_, false)) => CircuitState::Open,
            Some((_, true)) => CircuitState::Probing,
        }
    }

    pub(super) fn opened_total(&self) -> u64 {
        self.opened_total.load(Ordering::Relaxed)
    }

    /// Whether a request would be admitted.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if not.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if !self.is_open.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.state().open {
            Some((until, is_probed)) if is_probed || Instant::now() < until => Err(busy()),
            None | Some(_) => Ok(()),
        }
    }

    /// Admits a request.
    ///
    /// # Errors
    /// As for [`CircuitBreaker::check`].
    pub(super) fn begin(&self) -> Result<Attempt<'_>, StoreError> {
        let mut is_probe = false;
        if self.is_open.load(Ordering::Relaxed)
            && let Some((until, is_probed)) = &mut self.state().open
        {
            if *is_probed || Instant::now() < *until {
                return Err(busy());
            }
            (*is_probed, is_probe) = (true, true);
        }
        Ok(Attempt { breaker: self, is_probe, is_finished: false })
    }

    /// Counts a failure.
    pub(super) fn record_failure(&self) {
        if self.limit == 0 {
            return;
        }
        let (now, successes) = (Instant::now(), self.successes.load(Ordering::Relaxed));
        let mut state = self.state();
        state.failures.push_back((now, successes));
        if state.failures.len() > self.limit {
            state.failures.pop_front();
        }
        let Some((first, before)) = state.failures.front().copied() else { return };
        let meanwhile = successes.saturating_sub(before);
        let is_too_much = state.failures.len() == self.limit
            && now.saturating_duration_since(first) <= FAILURE_WINDOW
            && meanwhile <= self.limit as u64;
        if is_too_much && state.open.is_none() {
            self.open(&mut state, now);
        }
    }

    fn open(&self, state: &mut State, now: Instant) {
        state.open = Some((now + COOLDOWN, false));
        self.is_open.store(true, Ordering::Relaxed);
        self.opened_total.fetch_add(1, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it changes the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn busy() -> StoreError {
    StoreError::Busy(Arc::new(CircuitOpen))
}

impl Attempt<'_> {
    /// Records the outcome.
    pub(super) fn end(mut self, has_failed: bool) {
        self.is_finished = true;
        let breaker = self.breaker;
        match (self.is_probe, has_failed) {
            (false, true) => breaker.record_failure(),
            (false, false) => {
                breaker.successes.fetch_add(1, Ordering::Relaxed);
            }
            (true, true) => breaker.open(&mut breaker.state(), Instant::now()),
            (true, false) => {
                *breaker.state() = State::default();
                breaker.is_open.store(false, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Attempt<'_> {
    /// A probe that is dropped without an outcome lets another request probe.
    fn drop(&mut self) {
        if self.is_probe
            && !self.is_finished
            && let Some((_, is_probed)) = &mut self.breaker.state().open
        {
            *is_probed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(breaker: &CircuitBreaker, has_failed: bool) -> bool {
        breaker.check().is_ok() && breaker.begin().map(|attempt| attempt.end(has_failed)).is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_circuit_opens_after_repeated_failures_and_then_admits_one_probe() {
        let breaker = CircuitBreaker::new(10);
        assert_eq!((0..50).filter(|_| attempt(&breaker, true)).count(), 10);
        assert_eq!(breaker.circuit(), CircuitState::Open);
        tokio::time::advance(COOLDOWN).await;
        let probe = breaker.begin().unwrap();
        assert_eq!(breaker.circuit(), CircuitState::Probing);
        assert!(breaker.check().is_err() && breaker.begin().is_err(), "one is enough");
        probe.end(true);
        assert!(!attempt(&breaker, false), "for another cooldown");
        tokio::time::advance(COOLDOWN).await;
        assert!(attempt(&breaker, false));
        assert_eq!((breaker.circuit(), breaker.opened_total()), (CircuitState::Closed, 2));
        assert_eq!((0..50).filter(|_| attempt(&breaker, true)).count(), 10, "a success resets the failures");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_probe_is_followed_by_another() {
        let breaker = CircuitBreaker::new(1);
        assert!(attempt(&breaker, true));
        tokio::time::advance(COOLDOWN).await;
        drop(breaker.begin().unwrap());
        assert_eq!(breaker.circuit(), CircuitState::Open);
        assert!(attempt(&breaker, false));
        assert_eq!(breaker.circuit(), CircuitState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn rare_or_old_failures_do_not_open_the_circuit() {
        let breaker = CircuitBreaker::new(10);
        for number in 0..10_000 {
            assert!(attempt(&breaker, number % 100 == 0), "one in a hundred");
        }
        let breaker = CircuitBreaker::new(10);
        for _ in 0..100 {
            assert!(attempt(&breaker, true), "one in more than a second");
            tokio::time::advance(Duration::from_millis(1200)).await;
        }
        let breaker = CircuitBreaker::new(0);
        assert!((0..100).all(|_| attempt(&breaker, true)), "none is too many");
    }
}
