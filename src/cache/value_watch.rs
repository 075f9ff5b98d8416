//! [`ValueWatch`]: lets the store report changes of a cached value that is requested often, so that it is not checked each time.
//!
//! To read the reports takes a third of the time of a check by name (`stat`). To begin takes as long as tens of checks, so a value
//! is checked more often than that before, and much more often where earlier watches of it ended soon: each change of anything that
//! the store watches ends all of them. Some changes are not reported: writes through memory maps, those of Linux AIO (`io_submit`),
//! and file systems that are mounted on the path. A check every [`CHECK_INTERVAL`] finds them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::key::StoreKey;
use crate::store::{Store, WatchToken};

/// Successful checks before a watch begins; twice as many after each watch of this entry that was refused or did not last.
const CHECKS_BEFORE_WATCH: u32 = 128;
/// It is doubled at most this often.
const MOST_DOUBLED: u32 = 10;
/// What is watched is still checked after this long.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// A watch that replaces fewer checks than this between two of its own ends: it gains too little.
const LEAST_USES: u32 = 8;

/// The watch of a cached value.
#[derive(Debug, Default)]
pub(super) struct ValueWatch {
    state: Mutex<State>,
    /// Requests that needed no check since the last one.
    uses: AtomicU32,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// How many watches in a row were refused, or ended before they had replaced as many checks as had to come before them.
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Each request checks the value. The number of checks that found it current.
    Checked(u32),
    /// A watch begins.
    Beginning,
    Watched {
        token: WatchToken,
        /// When the last check began that found the value current.
        checked_at: Instant,
        /// The checks that it replaced before that.
        replaced: u32,
    },
}

impl Default for Phase {
    fn default() -> Self {
        Self::Checked(0)
    }
}

impl State {
    /// The checks that have to come before a watch.
    fn needed_checks(&self) -> u32 {
        CHECKS_BEFORE_WATCH << self.failures.min(MOST_DOUBLED)
    }

    /// Ends a watch that replaced this number of checks.
    fn end(&mut self, replaced: u32) {
        self.failures = if replaced >= self.needed_checks() { 0 } else { self.failures.saturating_add(1) };
        self.phase = Phase::Checked(0);
    }
}

impl ValueWatch {
    /// No code panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether changes are reported.
    #[cfg(test)]
    pub(super) fn is_watched(&self) -> bool {
        matches!(self.state().phase, Phase::Watched { .. })
    }

    /// Whether the store has reported no change of the value. `false` means not known: check it, and call
    /// [`ValueWatch::record_check`].
    pub(super) fn is_unchanged(&self, store: &dyn Store) -> bool {
        // The store is asked without the lock, which all requests for the value take.
        let Phase::Watched { token, checked_at, .. } = self.state().phase else { return false };
        let now = Instant::now();
        let is_unchanged = now - checked_at < CHECK_INTERVAL && store.unchanged_since(token, now).is_some();
        if is_unchanged {
            self.uses.fetch_add(1, Ordering::Relaxed);
        }
        is_unchanged
    }

    /// Records a check that began at `began` and found the value current. Returns whether it is time for a watch, see
    /// [`ValueWatch::try_begin`].
    pub(super) fn record_check(&self, store: &dyn Store, began: Instant) -> bool {
        let mut state = self.state();
        match state.phase {
            Phase::Checked(checks) => {
                state.phase = Phase::Checked(checks.saturating_add(1));
                checks.saturating_add(1) >= state.needed_checks()
            }
            Phase::Beginning => false,
            Phase::Watched { token, replaced, .. } => {
                let uses = self.uses.swap(0, Ordering::Relaxed);
                let replaced = replaced.saturating_add(uses);
                if uses >= LEAST_USES && store.unchanged_since(token, began).is_some() {
                    state.phase = Phase::Watched { token, checked_at: began, replaced };
                } else {
                    state.end(replaced);
                }
                false
            }
        }
    }

    /// Whether the caller is to call [`ValueWatch::begin`] now: no other does so.
    pub(super) fn try_begin(&self) -> bool {
        let mut state = self.state();
        let is_checked = matches!(state.phase, Phase::Checked(_));
        if is_checked {
            state.phase = Phase::Beginning;
        }
        is_checked
    }

    /// Begins a watch. `is_current` checks the value once more, as earlier changes are not reported.
    pub(super) async fn begin(&self, store: &dyn Store, key: &StoreKey, is_current: impl FnOnce() -> bool) {
        let token = store.watch(vec![key.clone()]).await;
        let checked_at = Instant::now();
        let token = token.filter(|_| is_current());
        self.uses.store(0, Ordering::Relaxed);
        let mut state = self.state();
        match token {
            Some(token) => state.phase = Phase::Watched { token, checked_at, replaced: 0 },
            None => state.end(0),
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

    /// Begins a watch after the number of checks that it takes, and returns that.
    async fn begin(watch: &ValueWatch, store: &LocalStore) -> u32 {
        let checks = (1..1_000_000).find(|_| watch.record_check(store, Instant::now())).unwrap();
        assert!(watch.try_begin());
        assert!(!watch.try_begin() && !watch.record_check(store, Instant::now()), "one begins already");
        watch.begin(store, &key(), || true).await;
        checks
    }

    /// The time of a check that is far enough from now for another.
    fn overdue(watch: &ValueWatch) {
        let mut state = watch.state();
        let Phase::Watched { checked_at, .. } = &mut state.phase else { panic!("not watched") };
        *checked_at -= CHECK_INTERVAL;
    }

    #[tokio::test]
    async fn a_watch_begins_after_many_checks_and_later_each_time_that_it_did_not_last() {
        let directory = tempfile::tempdir().unwrap();
        let (store, watch) = (opened(directory.path()), ValueWatch::default());
        for needed in [128, 256, 512, 1024] {
            assert!(!watch.is_unchanged(&store));
            assert_eq!(begin(&watch, &store).await, needed);
            fs::write(directory.path().join("b"), "a change of the directory").unwrap();
            fs::remove_file(directory.path().join("b")).unwrap();
            assert!(!watch.is_unchanged(&store));
            assert!(!watch.record_check(&store, Instant::now()), "the watch has ended");
        }
        assert_eq!(begin(&watch, &store).await, 2048);
        watch.uses.store(2048, Ordering::Relaxed);
        fs::write(directory.path().join("a"), "two").unwrap();
        assert!(!watch.is_unchanged(&store));
        assert!(!watch.record_check(&store, Instant::now()));
        assert_eq!(begin(&watch, &store).await, 128, "it was worth its beginning");
    }

    #[tokio::test]
    async fn what_is_watched_is_checked_now_and_then_and_no_longer_watched_if_few_ask_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let (store, watch) = (opened(directory.path()), ValueWatch::default());
        begin(&watch, &store).await;
        for uses in [LEAST_USES, LEAST_USES, LEAST_USES - 1] {
            watch.uses.store(uses, Ordering::Relaxed);
            overdue(&watch);
            assert!(!watch.is_unchanged(&store), "it is time for a check");
            assert!(!watch.record_check(&store, Instant::now()));
            assert_eq!(watch.is_watched(), uses >= LEAST_USES);
        }
    }

    #[tokio::test]
    async fn nothing_is_unchanged_by_a_watch_that_began_after_the_change() {
        let directory = tempfile::tempdir().unwrap();
        let (store, watch) = (opened(directory.path()), ValueWatch::default());
        assert!(watch.try_begin());
        watch.begin(&store, &key(), || false).await;
        assert!(!watch.is_watched() && !watch.is_unchanged(&store));
    }
}
