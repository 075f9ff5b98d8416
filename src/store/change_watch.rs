//! [`ChangeWatch`]: lets the store report changes of cached values that are requested often, so that they are not checked each time.
//!
//! To read the reports takes a third of the time of one check by name (`stat`), for any number of values. To begin takes as long as
//! tens of checks, so values are checked more often than that before, and much more often where earlier watches of them ended soon:
//! each change of anything that the store watches ends all of them. (Of a value that changes, the cached one is replaced, and its
//! watch with it.) Some changes are not reported: writes through memory maps, those of Linux AIO (`io_submit`), and file systems that
//! are mounted on the path. A check now and then finds them.

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::interface::Store;
use super::types::WatchToken;
use crate::key::StoreKey;

/// Values that are successfully checked before a watch begins; twice as many after each watch that was refused or did not last.
const CHECKED_BEFORE_WATCH: u32 = 128;
/// It is doubled at most this often.
const MOST_DOUBLED: u32 = 10;
/// At least this number of times they are all checked.
const LEAST_CHECKS: u32 = 8;
/// What is watched is still checked after this long,
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// or after this long, where one check is of at least [`MANY_VALUES`].
const LONG_CHECK_INTERVAL: Duration = Duration::from_secs(1);
const MANY_VALUES: u32 = 16;
/// A watch that saves the checks of fewer values than this between two of its own ends: it gains too little.
const LEAST_SAVED: u32 = 8;

/// After this long the next watch may begin beside one that begins: its disk may hang.
const LONGEST_TURN: Duration = Duration::from_secs(1);

/// One watch begins at a time: one change ends the watches of all values, and they would all begin again at once.
static TURN: Semaphore = Semaphore::const_new(1);

/// The right to begin a watch.
pub(crate) type WatchTurn = SemaphorePermit<'static>;

/// The watch of cached values that are checked together.
#[derive(Debug)]
pub(crate) struct ChangeWatch {
    /// How many values a check is of.
    value_count: u32,
    state: Mutex<State>,
    /// Checks that the watch has replaced since the last one.
    uses: AtomicU32,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// How many watches in a row were refused, or ended before they had replaced as many checks as had to come before them.
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Each request checks the values. The number of checks that found them current.
    Checked(u32),
    /// A watch begins.
    Beginning,
    Watched {
        token: WatchToken,
        /// When the last check began that found the values current.
        checked_at: Instant,
        /// The checks that it replaced before that.
        replaced: u32,
    },
}

impl ChangeWatch {
    /// No watch yet, of this number of values.
    pub(crate) fn new(value_count: usize) -> Self {
        let value_count = u32::try_from(value_count).unwrap_or(u32::MAX).max(1);
        let state = Mutex::new(State { phase: Phase::Checked(0), failures: 0 });
        Self { value_count, state, uses: AtomicU32::new(0) }
    }

    /// No code panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The checks that have to come before a watch.
    fn needed_checks(&self, failures: u32) -> u32 {
        (CHECKED_BEFORE_WATCH / self.value_count).max(LEAST_CHECKS) << failures.min(MOST_DOUBLED)
    }

    const fn check_interval(&self) -> Duration {
        if self.value_count < MANY_VALUES { CHECK_INTERVAL } else { LONG_CHECK_INTERVAL }
    }

    /// Whether values that were checked at one time have to be checked at another.
    fn is_due(&self, checked_at: Instant, at: Instant) -> bool {
        at.saturating_duration_since(checked_at) >= self.check_interval()
    }

    /// Ends a watch that replaced this number of checks.
    fn end(&self, state: &mut State, replaced: u32) {
        let is_worth = replaced >= self.needed_checks(state.failures);
        state.failures = if is_worth { 0 } else { state.failures.saturating_add(1) };
        state.phase = Phase::Checked(0);
    }

    /// Whether changes are reported.
    #[cfg(test)]
    pub(crate) fn is_watched(&self) -> bool {
        matches!(self.state().phase, Phase::Watched { .. })
    }

    /// When reports were last read, at `horizon` or later, if there was none. `None` means not known: check the values, and call
    /// [`ChangeWatch::record_check`].
    pub(crate) fn unchanged_since(&self, store: &dyn Store, horizon: Instant) -> Option<Instant> {
        // The store is asked without the lock, which all requests for the values take.
        let Phase::Watched { token, checked_at, .. } = self.state().phase else { return None };
        if self.is_due(checked_at, horizon) {
            return None;
        }
        let read_at = store.unchanged_since(token, horizon)?;
        self.uses.fetch_add(1, Ordering::Relaxed);
        Some(read_at)
    }

    /// Records a check that began at `began` and found the values current. Returns whether it is time for a watch, see
    /// [`ChangeWatch::try_begin`].
    pub(crate) fn record_check(&self, store: &dyn Store, began: Instant) -> bool {
        // The store is asked without the lock.
        let phase = self.state().phase;
        let is_unchanged = match phase {
            Phase::Watched { token, .. } => store.unchanged_since(token, began).is_some(),
            Phase::Checked(_) | Phase::Beginning => false,
        };
        let mut state = self.state();
        match (phase, state.phase) {
            (_, Phase::Checked(checks)) => {
                state.phase = Phase::Checked(checks.saturating_add(1));
                checks.saturating_add(1) >= self.needed_checks(state.failures)
            }
            (Phase::Watched { .. }, Phase::Watched { token, checked_at, replaced })
                if !is_unchanged || self.is_due(checked_at, began) =>
            {
                let uses = self.uses.swap(0, Ordering::Relaxed);
                let replaced = replaced.saturating_add(uses);
                if is_unchanged && uses.saturating_mul(self.value_count) >= LEAST_SAVED {
                    state.phase = Phase::Watched { token, checked_at: began, replaced };
                } else {
                    self.end(&mut state, replaced);
                }
                false
            }
            // The watch began during this check, or another check has renewed it.
            (_, Phase::Beginning | Phase::Watched { .. }) => false,
        }
    }

    /// The turn for [`ChangeWatch::begin`], which no other has.
    pub(crate) fn try_begin(&self) -> Option<WatchTurn> {
        let turn = TURN.try_acquire().ok()?;
        let mut state = self.state();
        let Phase::Checked(_) = state.phase else { return None };
        state.phase = Phase::Beginning;
        Some(turn)
    }

    /// Begins a watch of these keys. `is_current` checks the values once more, as earlier changes are not reported.
    pub(crate) async fn begin(
        &self,
        turn: WatchTurn,
        store: &dyn Store,
        keys: Vec<StoreKey>,
        is_current: impl Future<Output = bool>,
    ) {
        let _beginning = Beginning(self);
        let mut watch = pin!(store.watch(keys));
        let token = if let Ok(token) = timeout(LONGEST_TURN, watch.as_mut()).await {
            token
        } else {
            drop(turn);
            watch.await
        };
        let checked_at = Instant::now();
        let Some(token) = token else { return };
        if is_current.await {
            self.uses.store(0, Ordering::Relaxed);
            self.state().phase = Phase::Watched { token, checked_at, replaced: 0 };
        }
    }
}

/// A watch that begins. If it does not, it is ended.
struct Beginning<'a>(&'a ChangeWatch);

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        let Self(watch) = self;
        let mut state = watch.state();
        if let Phase::Beginning = state.phase {
            watch.end(&mut state, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::store::{LocalOptions, LocalStore};

    fn key() -> StoreKey {
        StoreKey::parse("a").unwrap()
    }

    fn opened(directory: &Path) -> LocalStore {
        fs::write(directory.join("a"), "one").unwrap();
        LocalStore::open(directory, &LocalOptions::default()).unwrap()
    }

    /// The turn to begin, which other tests may have.
    async fn turn(watch: &ChangeWatch) -> WatchTurn {
        loop {
            if let Some(turn) = watch.try_begin() {
                return turn;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Whether a request needs no check.
    fn is_unchanged(watch: &ChangeWatch, store: &LocalStore) -> bool {
        watch.unchanged_since(store, Instant::now()).is_some()
    }

    /// Begins a watch after the number of checks that it takes, and returns that.
    async fn begin(watch: &ChangeWatch, store: &LocalStore) -> u32 {
        let checks = (1..1_000_000).find(|_| watch.record_check(store, Instant::now())).unwrap();
        let turn = turn(watch).await;
        assert!(
            watch.try_begin().is_none() && !watch.record_check(store, Instant::now()),
            "one begins already"
        );
        watch.begin(turn, store, vec![key()], async { true }).await;
        checks
    }

    /// The time of a check that is far enough from now for another.
    fn overdue(watch: &ChangeWatch) {
        let mut state = watch.state();
        let Phase::Watched { checked_at, .. } = &mut state.phase else { panic!("not watched") };
        *checked_at -= watch.check_interval();
    }

    #[tokio::test]
    async fn a_watch_begins_after_many_checks_and_later_each_time_that_it_did_not_last() {
        let directory = tempfile::tempdir().unwrap();
        let (store, watch) = (opened(directory.path()), ChangeWatch::new(1));
        for needed in [128, 256, 512, 1024] {
            assert!(!is_unchanged(&watch, &store));
            assert_eq!(begin(&watch, &store).await, needed);
            fs::write(directory.path().join("b"), "a change of the directory").unwrap();
            fs::remove_file(directory.path().join("b")).unwrap();
            assert!(!is_unchanged(&watch, &store));
            assert!(!watch.record_check(&store, Instant::now()), "the watch has ended");
        }
        assert_eq!(begin(&watch, &store).await, 2048);
        watch.uses.store(2048, Ordering::Relaxed);
        fs::write(directory.path().join("a"), "two").unwrap();
        assert!(!is_unchanged(&watch, &store));
        assert!(!watch.record_check(&store, Instant::now()));
        assert_eq!(begin(&watch, &store).await, 128, "it was worth its beginning");
    }

    #[tokio::test]
    async fn what_is_watched_is_checked_now_and_then_and_no_longer_watched_if_few_ask_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let (store, watch) = (opened(directory.path()), ChangeWatch::new(1));
        begin(&watch, &store).await;
        for uses in [LEAST_SAVED, LEAST_SAVED, LEAST_SAVED - 1] {
            watch.uses.store(uses, Ordering::Relaxed);
            overdue(&watch);
            assert!(!is_unchanged(&watch, &store), "it is time for a check");
            assert!(!watch.record_check(&store, Instant::now()));
            assert_eq!(watch.is_watched(), uses >= LEAST_SAVED);
        }
    }

    #[tokio::test]
    async fn a_check_during_which_the_watch_began_does_not_end_it() {
        let directory = tempfile::tempdir().unwrap();
        let (store, watch) = (opened(directory.path()), ChangeWatch::new(1));
        let before = Instant::now();
        begin(&watch, &store).await;
        for began in [before, Instant::now()] {
            assert!(!watch.record_check(&store, began));
            assert!(watch.is_watched());
        }
    }

    #[tokio::test]
    async fn nothing_is_unchanged_by_a_watch_that_began_after_the_change() {
        let directory = tempfile::tempdir().unwrap();
        let (store, watch) = (opened(directory.path()), ChangeWatch::new(1));
        let turn = turn(&watch).await;
        watch.begin(turn, &store, vec![key()], async { false }).await;
        assert!(!watch.is_watched() && !is_unchanged(&watch, &store));
    }

    #[tokio::test]
    async fn a_watch_of_several_values_begins_after_fewer_checks() {
        for (values, checks) in [(0, 128), (1, 128), (5, 25), (16, 8), (4096, 8)] {
            let directory = tempfile::tempdir().unwrap();
            assert_eq!(begin(&ChangeWatch::new(values), &opened(directory.path())).await, checks, "{values}");
        }
    }
}
