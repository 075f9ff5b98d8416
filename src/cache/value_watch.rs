//! [`ValueWatch`]: lets the store report changes of a cached value that is requested often, so that it is not checked each time.
//!
//! To read the reports takes a third of the time of a check by name (`stat`). To begin takes as long as tens of checks, so a value
//! must have been checked more often than that, and much more often where earlier watches ended soon: each change of anything that
//! the store watches ends all of them. What is not reported, such as writes through memory maps, is found by a check every second.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::key::StoreKey;
use crate::store::{Store, WatchToken};

/// Successful checks before a watch begins; twice as many after each watch that was refused or did not last.
const CHECKS_BEFORE_WATCH: u32 = 128;
/// It is doubled at most this often.
const MOST_DOUBLED: u32 = 10;
/// What is watched is still checked after this long.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The watch of a cached value.
#[derive(Debug, Default)]
pub(super) struct ValueWatch(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// How many watches in a row were refused, or ended before they had replaced as many checks as had to come before them.
    failures: u32,
}

#[derive(Debug)]
enum Phase {
    /// Each request checks the value. The number of checks that found it current.
    Checked(u32),
    /// A watch begins.
    Beginning,
    Watched {
        token: WatchToken,
        /// When the last check began that found the value current.
        checked_at: Instant,
        /// Requests that needed no check.
        uses: u32,
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
    fn end(&mut self, uses: u32) {
        self.failures = if uses >= self.needed_checks() { 0 } else { self.failures.saturating_add(1) };
        self.phase = Phase::Checked(0);
    }
}

impl ValueWatch {
    /// No code panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether changes are reported.
    #[cfg(test)]
    pub(super) fn is_watched(&self) -> bool {
        matches!(self.state().phase, Phase::Watched { .. })
    }

    /// Whether the store has reported no change of the value; `false` means not known.
    pub(super) fn is_unchanged(&self, store: &dyn Store) -> bool {
        let mut state = self.state();
        let Phase::Watched { token, checked_at, uses } = &mut state.phase else { return false };
        let now = Instant::now();
        if now - *checked_at >= CHECK_INTERVAL {
            return false;
        }
        if store.unchanged_since(*token, now).is_some() {
            *uses = uses.saturating_add(1);
            return true;
        }
        let uses = *uses;
        state.end(uses);
        false
    }

    /// Records a check that began at `began` and found the value current. Returns whether a watch is to begin: the caller then
    /// calls [`ValueWatch::begin`].
    pub(super) fn is_due_after_check(&self, store: &dyn Store, began: Instant) -> bool {
        let mut state = self.state();
        let needed = state.needed_checks();
        match &mut state.phase {
            Phase::Checked(checks) if checks.saturating_add(1) < needed => *checks += 1,
            Phase::Checked(_) => {
                state.phase = Phase::Beginning;
                return true;
            }
            Phase::Beginning => {}
            Phase::Watched { token, checked_at, uses } => {
                if store.unchanged_since(*token, began).is_some() {
                    *checked_at = began;
                } else {
                    let uses = *uses;
                    state.end(uses);
                }
            }
        }
        false
    }

    /// Begins a watch. `is_current` checks the value once more, as earlier changes are not reported.
    pub(super) async fn begin(&self, store: &dyn Store, key: &StoreKey, is_current: impl FnOnce() -> bool) {
        let token = store.watch(vec![key.clone()]).await;
        let checked_at = Instant::now();
        let token = token.filter(|_| is_current());
        let mut state = self.state();
        match token {
            Some(token) => state.phase = Phase::Watched { token, checked_at, uses: 0 },
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

    /// The number of checks until a watch is due.
    fn checks_until_due(watch: &ValueWatch, store: &LocalStore) -> u32 {
        (1..1_000_000).find(|_| watch.is_due_after_check(store, Instant::now())).unwrap()
    }

    #[tokio::test]
    async fn a_watch_begins_after_many_checks_and_later_each_time_that_it_did_not_last() {
        let directory = tempfile::tempdir().unwrap();
        let (store, watch) = (opened(directory.path()), ValueWatch::default());
        for needed in [128, 256, 512, 1024] {
            assert!(!watch.is_unchanged(&store));
            assert_eq!(checks_until_due(&watch, &store), needed);
            assert!(!watch.is_due_after_check(&store, Instant::now()), "one begins already");
            watch.begin(&store, &key(), || true).await;
            assert!(watch.is_unchanged(&store));
            fs::write(directory.path().join("b"), "a change of the directory").unwrap();
            fs::remove_file(directory.path().join("b")).unwrap();
            assert!(!watch.is_unchanged(&store));
        }
        assert_eq!(checks_until_due(&watch, &store), 2048);
        watch.begin(&store, &key(), || true).await;
        assert!((0..2048).all(|_| watch.is_unchanged(&store)));
        fs::write(directory.path().join("a"), "two").unwrap();
        assert!(!watch.is_unchanged(&store));
        assert_eq!(checks_until_due(&watch, &store), 128, "it was worth its beginning");
    }

    #[tokio::test]
    async fn nothing_is_unchanged_by_a_watch_that_began_after_the_change() {
        let directory = tempfile::tempdir().unwrap();
        let (store, watch) = (opened(directory.path()), ValueWatch::default());
        checks_until_due(&watch, &store);
        watch.begin(&store, &key(), || false).await;
        assert!(!watch.is_watched() && !watch.is_unchanged(&store));
    }
}
