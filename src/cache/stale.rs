//! [`StaleCache`]: the last lookups of values, which are used while a backend fails or is slow.
//!
//! This is `stale-if-error` and `stale-while-revalidate` of RFC 5861, for the lookups that all other caches revalidate their
//! entries by: with the last known version of a value, its decoded chunks, its node and its bytes in memory or on the disk are
//! found as usual. While a backend fails, it is asked once a second, and no request waits for that.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tracing::Instrument;

use super::caches::{CacheKind, Evictable, PurgeOutcome, is_key_below};
use super::disk::{DiskCache, Lookup, LookupSource};
use super::weighted_cache::{CacheUsage, WeightedCache};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{CachePolicy, Freshness, StoreError, ValueInfo, is_unanswered};

/// A backend that takes longer than this is slow: the last lookup is used, and the request goes on.
const SLOW: Duration = Duration::from_secs(1);
/// Time between the requests to a backend that fails.
const RETRY: Duration = Duration::from_secs(1);

/// A key of a mount.
type Name = (Arc<str>, StoreKey);

/// What was found under a key.
#[derive(Debug)]
pub(crate) struct LastLookup {
    /// The value; `None` if there was none.
    pub(super) info: Option<ValueInfo>,
    /// When the lookup began.
    asked: Instant,
}

/// The last lookups of all mounts whose freshness has `stale`; evicts the least used. Clones share them.
#[derive(Clone, Debug)]
pub struct StaleCache(Arc<WeightedCache<Name, Arc<LastLookup>>>);

impl StaleCache {
    /// A cache with this capacity.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let weigh = |name: &Name, lookup: &Arc<LastLookup>| {
            let tag = lookup.info.as_ref().map_or(0, |info| info.version.tag().len());
            (name.1.as_str().len() + tag + size_of::<LastLookup>()) as u64
        };
        Self(Arc::new(WeightedCache::new(capacity_bytes, weigh)))
    }

    /// The last lookups of a mount; `None` if its freshness has no `stale`.
    #[must_use]
    pub fn of_mount(&self, mount: &str, freshness: Freshness) -> Option<StaleLookups> {
        let staleness = Arc::new(Staleness::new(freshness)?);
        Some(StaleLookups { mount: mount.into(), lookups: self.clone(), staleness })
    }

    /// Keeps the lookups over a restart, in the directory of the disk cache.
    pub fn keep_in(&self, disk: &DiskCache) {
        disk.keep_lookups(Arc::new(self.clone()));
    }
}

impl LookupSource for StaleCache {
    fn lookups(&self) -> Vec<Lookup> {
        let all = self.0.entries().into_iter();
        all.map(|((mount, key), lookup)| (mount, key, lookup.info.clone(), lookup.asked)).collect()
    }
}

impl Evictable for StaleCache {
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        vec![(CacheKind::Lookup, self.0.usage())]
    }

    fn purge(&self, mount: &str, prefix: &StorePrefix) -> PurgeOutcome {
        let matches = |(owner, key): &Name| **owner == *mount && is_key_below(key, prefix);
        PurgeOutcome::of_memory(self.0.purge(matches))
    }

    fn evict_half(&self) {
        self.0.evict_half();
    }
}

/// The last lookups of one mount.
#[derive(Clone, Debug)]
pub struct StaleLookups {
    mount: Arc<str>,
    lookups: StaleCache,
    staleness: Arc<Staleness>,
}

/// What a backend responds, or what is used in its place.
#[derive(Debug)]
pub(crate) enum BackendAnswer<T, L> {
    /// The response of the backend.
    Received(Result<T, StoreError>),
    /// The last response: the backend fails or is slow.
    Stale(L),
}

impl StaleLookups {
    /// Takes the lookups of an earlier run, if there are any.
    pub fn restore(&self, disk: &DiskCache) {
        let since = self.lookups.0.generation();
        for (key, info, asked) in disk.take_lookups(&self.mount) {
            self.staleness.record_result(asked);
            self.lookups.0.insert(
                &(Arc::clone(&self.mount), key),
                &Arc::new(LastLookup { info, asked }),
                since,
            );
        }
    }

    /// How old the responses of the mount are.
    #[must_use]
    pub fn staleness(&self) -> &Arc<Staleness> {
        &self.staleness
    }

    /// Sends a request for a key to the backend, unless the last lookup of the key is used ([`Staleness::ask`]).
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        key: &StoreKey,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
        info_of: fn(&T) -> Option<ValueInfo>,
    ) -> BackendAnswer<T, Arc<LastLookup>> {
        let name = (Arc::clone(&self.mount), key.clone());
        let last = self.lookups.0.get(&name).map(|last| (last.asked, last));
        let recorded = {
            let (lookups, asked, since) = (self.lookups.clone(), Instant::now(), self.lookups.0.generation());
            async move {
                let outcome = request.await;
                if let Ok(found) = &outcome {
                    let lookup = LastLookup { info: info_of(found), asked };
                    lookups.0.insert(&name, &Arc::new(lookup), since);
                }
                outcome
            }
        };
        self.staleness.ask(&self.mount, last, recorded).await
    }
}

/// Whether a request is sent to a backend.
enum Attempt {
    /// It is sent, and the caller waits.
    Foreground,
    /// It is sent to see whether the backend responds again.
    Background,
    /// It is not sent: the backend failed a moment ago.
    None,
}

/// Whether the backend of a mount responds, and how old the lookups are that are used in its place.
#[derive(Debug)]
pub struct Staleness {
    /// The oldest lookup that may be used.
    max_age: Duration,
    /// For how long other caches rely on a lookup without another one.
    reuse: Duration,
    state: Mutex<StalenessState>,
    uses: AtomicU64,
}

#[derive(Debug, Default)]
struct StalenessState {
    /// When the backend is asked next; `None` while it responds.
    next_attempt: Option<Instant>,
    /// When the last request was sent that the backend had a result for, in this run or the one before.
    last_result: Option<Instant>,
    last_use: Option<Instant>,
    /// The oldest lookup that was used since the last time that none was used for a while, and no request was in flight that one had
    /// been used for.
    oldest: Option<Instant>,
    /// How many requests in flight began when.
    in_flight: BTreeMap<Instant, usize>,
}

/// A request in flight, for which lookups may be used in place of the backend.
#[derive(Debug)]
pub struct StaleRequest {
    staleness: Arc<Staleness>,
    began: Instant,
}

impl StaleRequest {
    /// How old what the request got may be; never too young. `None` if the backend was asked for everything.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        self.staleness.age_since(self.began)
    }
}

impl Drop for StaleRequest {
    fn drop(&mut self) {
        let mut state = self.staleness.state();
        if let Some(count) = state.in_flight.get_mut(&self.began) {
            *count -= 1;
            if *count == 0 {
                state.in_flight.remove(&self.began);
            }
        }
    }
}

impl Staleness {
    fn new(freshness: Freshness) -> Option<Self> {
        let reuse = match freshness.policy {
            // The caches above and below a lookup get half of the time each.
            CachePolicy::Ttl(age) => age / 2,
            CachePolicy::Always => Duration::ZERO,
            CachePolicy::Immutable | CachePolicy::Uncached => return None,
        };
        // The time of the policy is added by the caches above and below.
        let max_age = freshness.stale?;
        Some(Self { max_age, reuse, state: Mutex::default(), uses: AtomicU64::new(0) })
    }

    /// Sends a request to the backend, unless the backend fails or is slow and its last response, with the time at which its
    /// request was sent, is young enough. The request runs in its own task, which goes on where the caller does not wait for
    /// it.
    pub(crate) async fn ask<T: Send + 'static, L>(
        self: &Arc<Self>,
        mount: &Arc<str>,
        last: Option<(Instant, L)>,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> BackendAnswer<T, L> {
        let recorded = {
            let (this, mount) = (Arc::clone(self), Arc::clone(mount));
            async move {
                let asked = Instant::now();
                let outcome = request.await;
                match &outcome {
                    Err(error) if is_unanswered(error) => this.record_failure(&mount),
                    Err(_) => this.record_answer(),
                    Ok(_) => {
                        this.record_answer();
                        this.record_result(asked);
                    }
                }
                outcome
            }
        };
        let Some((asked, last)) = last.filter(|(asked, _)| asked.elapsed() <= self.max_age) else {
            return BackendAnswer::Received(recorded.await);
        };
        let outcome = match self.attempt() {
            Attempt::Foreground => {
                let task = tokio::spawn(recorded.in_current_span());
                match timeout(SLOW, task).await {
                    Ok(Ok(outcome)) => Some(outcome),
                    // It was aborted with the runtime.
                    Ok(Err(_)) => None,
                    Err(_) => {
                        self.record_failure(mount);
                        None
                    }
                }
            }
            Attempt::Background => {
                drop(tokio::spawn(recorded.in_current_span()));
                None
            }
            Attempt::None => None,
        };
        match outcome {
            Some(outcome) if !outcome.as_ref().is_err_and(is_unanswered) => BackendAnswer::Received(outcome),
            _ => {
                self.record_use(asked);
                BackendAnswer::Stale(last)
            }
        }
    }

    /// How old a lookup may be that is used in place of the backend.
    #[must_use]
    pub fn max_age(&self) -> Duration {
        self.max_age
    }

    /// Whether there are results of the backend, sent for recently enough, for requests that it does not answer.
    #[must_use]
    pub fn has_results(&self) -> bool {
        self.state().last_result.is_some_and(|asked| asked.elapsed() < self.max_age)
    }

    /// Notes that the backend had a result for a request that was sent at `asked`.
    pub(crate) fn record_result(&self, asked: Instant) {
        let mut state = self.state();
        state.last_result = state.last_result.max(Some(asked));
    }

    /// Begins a request to the mount.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> StaleRequest {
        let began = Instant::now();
        *self.state().in_flight.entry(began).or_default() += 1;
        StaleRequest { staleness: Arc::clone(self), began }
    }

    /// As [`StaleRequest::age`], for a request that began at `began`.
    fn age_since(&self, began: Instant) -> Option<Duration> {
        let state = self.state();
        // A cache above may hold what a cache below holds of it.
        let is_used = state.last_use? + 2 * self.reuse >= began;
        is_used.then(|| state.oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed()))
    }

    /// How many lookups were used in place of the backend.
    #[must_use]
    pub fn uses(&self) -> u64 {
        self.uses.load(Ordering::Relaxed)
    }

    fn attempt(&self) -> Attempt {
        let (mut state, now) = (self.state(), Instant::now());
        match state.next_attempt {
            None => Attempt::Foreground,
            Some(next) if next <= now => {
                state.next_attempt = Some(now + RETRY);
                Attempt::Background
            }
            Some(_) => Attempt::None,
        }
    }

    fn record_answer(&self) {
        self.state().next_attempt = None;
    }

    fn record_failure(&self, mount: &str) {
        let before = self.state().next_attempt.replace(Instant::now() + RETRY);
        if before.is_none() {
            // Without what the name in caches has behind the mount's own since a reload.
            let mount = mount.split('#').next();
            tracing::warn!(
                mount,
                "the backend fails or is slow: what was read before is served as far as it is known"
            );
        }
    }

    /// Notes that a response is used whose request was sent at `asked`.
    fn record_use(&self, asked: Instant) {
        self.uses.fetch_add(1, Ordering::Relaxed);
        let (mut state, now) = (self.state(), Instant::now());
        let is_continued = state.last_use.is_some_and(|used| {
            // A request that began before the last use may have got that, and what a cache above held of it.
            let may_have_it = |began: &Instant| *began <= used + 2 * self.reuse;
            used + self.reuse + SLOW >= now || state.in_flight.keys().next().is_some_and(may_have_it)
        });
        let oldest = state.oldest.filter(|_| is_continued);
        state.oldest = Some(oldest.map_or(asked, |oldest| oldest.min(asked)));
        state.last_use = Some(now);
    }

    /// No code panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, StalenessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The caches above and below a lookup add half of the time of the policy each.
    #[test]
    fn a_lookup_is_used_for_the_time_of_stale_and_responses_have_an_age_as_long_as_caches_rely_on_it() {
        let staleness = Staleness::new("ttl:10s, stale:5s".parse().unwrap()).unwrap();
        assert_eq!(staleness.max_age(), Duration::from_secs(5));
        let began = Instant::now();
        assert_eq!(staleness.age_since(began), None, "none was used");
        staleness.record_use(began);
        let after = |seconds| staleness.age_since(Instant::now() + Duration::from_secs(seconds)).is_some();
        assert!(after(0) && after(4) && after(9), "two caches of 5 s each may hold it");
        assert!(!after(11));
        let always = Staleness::new("always, stale:1h".parse().unwrap()).unwrap();
        assert_eq!(always.max_age(), Duration::from_hours(1));
    }

    #[test]
    fn a_request_is_as_old_as_the_oldest_lookup_that_was_used_while_it_ran() {
        let staleness = Arc::new(Staleness::new("always, stale:1h".parse().unwrap()).unwrap());
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        let began = ago(4);
        staleness.record_use(ago(12));
        // That was 3 s ago, and a request that began before it is still in flight.
        staleness.state().last_use = Some(ago(3));
        staleness.state().in_flight.insert(began, 1);
        let long = StaleRequest { staleness: Arc::clone(&staleness), began };
        staleness.record_use(ago(2));
        assert!(long.age().unwrap() >= Duration::from_secs(12));
        drop(long);
        staleness.state().last_use = Some(ago(3));
        staleness.record_use(ago(2));
        assert!(staleness.age_since(ago(1)).unwrap() < Duration::from_secs(12), "no request may have got it");
        drop(staleness.begin());
        assert!(staleness.state().in_flight.is_empty());
    }

    #[tokio::test]
    async fn a_lookup_older_than_the_promise_is_not_used() {
        let staleness = Arc::new(Staleness::new("ttl:10s, stale:5s".parse().unwrap()).unwrap());
        for (seconds, is_used) in [(0, true), (4, true), (6, false), (9, false)] {
            let asked = Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
            let failing =
                async { Err::<(), _>(StoreError::TimedOut(Arc::new(std::io::Error::other("down")))) };
            let answer = staleness.ask(&"m".into(), Some((asked, ())), failing).await;
            assert_eq!(matches!(answer, BackendAnswer::Stale(())), is_used, "{seconds} s");
        }
    }
}
