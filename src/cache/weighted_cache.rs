//! [`WeightedCache`]: a cache with a capacity in bytes, whose entries are loaded by single flight.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;
use futures::future::BoxFuture;
use moka::sync::Cache;
use tracing::Instrument;

use super::generation::{Generation, GenerationCounter};
use super::single_flight::{Join, Leader, SingleFlight};
use crate::array::ArrayError;

/// How much a cache holds, and how often that was used since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// How often an entry was found.
    pub hits: u64,
    /// How often an entry had to be loaded or computed.
    pub misses: u64,
    /// How many entries were evicted because the cache was full.
    pub evictions: u64,
    /// How many entries there are.
    pub entries: u64,
    /// Their bytes, with the overhead of the cache.
    pub bytes: u64,
}

impl CacheUsage {
    /// The usage of two caches as one.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            hits: self.hits.saturating_add(other.hits),
            misses: self.misses.saturating_add(other.misses),
            evictions: self.evictions.saturating_add(other.evictions),
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// The same usage without hits and misses, for a cache that is read together with another one.
    pub(crate) fn held(self) -> Self {
        Self { hits: 0, misses: 0, ..self }
    }
}

/// The result of a load.
pub(crate) type LoadResult<T> = Result<T, ArrayError>;

/// How often a caller tries to join or lead a load, if other callers abandon theirs.
pub(crate) const LOAD_ATTEMPTS: usize = 4;
/// The overhead of an entry beside its key and value, about, in bytes.
const ENTRY_BYTES: u64 = 300;
/// The capacity divided by this is the most that one entry may take; a larger one would evict too many others.
const LARGEST_SHARE: u64 = 10;

/// A cache of entries by key, which evicts the least used.
pub(crate) struct WeightedCache<K: Eq + Hash, T> {
    cache: Cache<K, T, RandomState>,
    in_flight: SingleFlight<K, LoadResult<T>>,
    largest: u64,
    weigh: fn(&K, &T) -> u64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: Arc<AtomicU64>,
    /// Advanced by each purge.
    generation: GenerationCounter,
}

impl<K, T> WeightedCache<K, T>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// A cache with this capacity, where `weigh` gives the bytes of a key and its value.
    pub(crate) fn new(capacity_bytes: u64, weigh: fn(&K, &T) -> u64) -> Self {
        Self::with_largest(capacity_bytes, LARGEST_SHARE, weigh)
    }

    /// The same, where one entry may take at most the capacity divided by `share`.
    pub(crate) fn with_largest(capacity_bytes: u64, share: u64, weigh: fn(&K, &T) -> u64) -> Self {
        // moka's weights have 32 bits; nothing of 4 GiB is ever cached.
        let weigher =
            move |key: &K, value: &T| u32::try_from(weigh(key, value) + ENTRY_BYTES).unwrap_or(u32::MAX);
        let evictions = Arc::new(AtomicU64::new(0));
        let evicted = Arc::clone(&evictions);
        let cache = Cache::builder()
            .max_capacity(capacity_bytes)
            .weigher(weigher)
            .eviction_listener(move |_, _, cause| {
                if cause.was_evicted() {
                    evicted.fetch_add(1, Ordering::Relaxed);
                }
            })
            // Keyed as the standard library's, and faster for short keys: every read of a value hashes one.
            .build_with_hasher(RandomState::new());
        Self {
            cache,
            in_flight: SingleFlight::new(),
            largest: capacity_bytes / share,
            weigh,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions,
            generation: GenerationCounter::default(),
        }
    }

    /// The generation of loads that begin now.
    pub(crate) fn generation(&self) -> Generation {
        self.generation.current()
    }

    /// How much it holds, and how often that was used.
    pub(crate) fn usage(&self) -> CacheUsage {
        // moka defers its counting; this makes the counts exact.
        self.cache.run_pending_tasks();
        CacheUsage {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            entries: self.cache.entry_count(),
            bytes: self.cache.weighted_size(),
        }
    }

    /// Counts misses of loads that do not go through this cache.
    pub(crate) fn add_misses(&self, things: usize) {
        self.misses.fetch_add(things as u64, Ordering::Relaxed);
    }

    /// Removes the entries whose key matches, and returns how many they were. The results of loads in flight are not cached,
    /// and no later caller joins those that match: entries that appear after this were loaded after it.
    pub(crate) fn purge(&self, matches: impl Fn(&K) -> bool) -> u64 {
        self.generation.advance();
        self.in_flight.detach(&matches);
        let mut purged = 0;
        for (key, _) in &self.cache {
            if matches(&key) {
                self.cache.invalidate(key.as_ref());
                purged += 1;
            }
        }
        // Until then, moka keeps what was removed in memory.
        self.cache.run_pending_tasks();
        purged
    }

    /// For each key the cached value, or the load to wait for or to lead.
    pub(crate) fn join_loads(&self, keys: &[K]) -> Vec<Join<K, LoadResult<T>>> {
        let cached: Vec<Option<T>> = keys.iter().map(|key| self.get(key)).collect();
        let missing: Vec<&K> =
            keys.iter().zip(&cached).filter(|(_, value)| value.is_none()).map(|(key, _)| key).collect();
        if missing.is_empty() {
            return cached.into_iter().flatten().map(|value| Join::Hit(Ok(value))).collect();
        }
        let generation = self.generation();
        let joins = self.in_flight.join(&missing, generation, |key| self.get(key).map(Ok));
        self.add_misses(joins.iter().filter(|join| matches!(join, Join::Leader(..))).count());
        let mut joins = joins.into_iter();
        cached
            .into_iter()
            .filter_map(|value| match value {
                Some(value) => Some(Join::Hit(Ok(value))),
                None => joins.next(),
            })
            .collect()
    }

    /// Joins or leads a reload of a key, unless the cached value is new to the caller.
    pub(crate) fn join_refresh(&self, key: &K, is_new: impl Fn(&T) -> bool) -> Join<K, LoadResult<T>> {
        let join = self
            .in_flight
            .join_one(key, self.generation(), |key| self.cache.get(key).filter(&is_new).map(Ok));
        if matches!(join, Join::Leader(..)) {
            self.add_misses(1);
        }
        join
    }

    /// The cached value.
    pub(crate) fn get<Q>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let value = self.cache.get(key);
        if value.is_some() {
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
        value
    }

    /// Whether the key is cached. This does not count as a use.
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.cache.contains_key(key)
    }

    /// All entries. They do not count as used.
    pub(crate) fn entries(&self) -> Vec<(K, T)> {
        self.cache.iter().map(|(key, value)| ((*key).clone(), value)).collect()
    }

    /// Whether an entry of this many bytes is small enough for the cache.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        bytes <= self.largest
    }

    /// Caches a value that was loaded since the beginning of a generation, if it is small enough and no purge came since.
    pub(crate) fn insert(&self, key: &K, value: &T, since: Generation) {
        if (self.weigh)(key, value) > self.largest || self.generation() != since {
            return;
        }
        self.cache.insert(key.clone(), value.clone());
        // A purge that began in the meantime may have passed this key already.
        if self.generation() != since {
            self.cache.invalidate(key);
        }
    }

    /// Removes an entry that is of no use any more, and frees its memory.
    pub(crate) fn remove(&self, key: &K) {
        self.cache.invalidate(key);
        self.cache.run_pending_tasks();
    }

    /// Removes every other entry, however often it is used, because the memory is needed for something else.
    pub(crate) fn evict_half(&self) {
        for (key, _) in self.cache.iter().step_by(2) {
            self.cache.invalidate(&*key);
        }
        self.cache.run_pending_tasks();
    }

    /// Caches the value of a load that succeeded, and gives the result to all followers.
    pub(crate) fn complete(&self, leader: Leader<K, LoadResult<T>>, outcome: LoadResult<T>) {
        if let Ok(value) = &outcome {
            self.insert(leader.key(), value, leader.generation());
        }
        leader.complete(outcome);
    }

    /// Runs a load in a task of its own, which is cancelled only when all of its followers are dropped.
    pub(crate) fn spawn_load(
        self: &Arc<Self>,
        leader: Leader<K, LoadResult<T>>,
        load: BoxFuture<'static, LoadResult<T>>,
    ) {
        let cache = Arc::clone(self);
        let load = async move {
            tokio::select! {
                outcome = load => cache.complete(leader, outcome),
                () = leader.cancelled() => {}
            }
        };
        tokio::spawn(load.in_current_span());
    }

    /// The cached value, or the result of `load`, which concurrent callers share. `None` if other callers abandoned their
    /// loads each time.
    pub(crate) async fn get_or_load(
        self: &Arc<Self>,
        key: &K,
        load: BoxFuture<'static, LoadResult<T>>,
    ) -> Option<LoadResult<T>> {
        let mut load = Some(load);
        for _ in 0..LOAD_ATTEMPTS {
            let follower = match self.join_loads(std::slice::from_ref(key)).pop()? {
                Join::Hit(outcome) => return Some(outcome),
                Join::Follower(follower) => follower,
                Join::Leader(leader, follower) => {
                    self.spawn_load(leader, load.take()?);
                    follower
                }
            };
            if let Some(outcome) = follower.wait().await {
                return Some(outcome);
            }
        }
        None
    }
}

impl<K: Eq + Hash, T> fmt::Debug for WeightedCache<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeightedCache").field("largest", &self.largest).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_during_a_load_discards_its_result() {
        let cache = WeightedCache::<u8, u8>::new(1 << 20, |_, _| 1);
        let before = cache.generation();
        assert_eq!(cache.purge(|_| true), 0);
        cache.insert(&1, &1, before);
        assert_eq!(cache.get(&1), None);
        for key in [1, 2] {
            cache.insert(&key, &key, cache.generation());
        }
        assert_eq!(cache.purge(|key| *key == 1), 1);
        assert_eq!((cache.get(&1), cache.get(&2)), (None, Some(2)));
        let CacheUsage { hits, misses, evictions, entries, .. } = cache.usage();
        assert_eq!((hits, misses, evictions, entries), (1, 0, 0, 1));
    }

    #[test]
    fn evictions_are_counted_and_purged_entries_are_not() {
        let cache = WeightedCache::<u64, u64>::new(20_000, |_, _| 1000);
        for key in 0..100 {
            cache.insert(&key, &key, cache.generation());
        }
        let usage = cache.usage();
        assert!(usage.bytes <= 20_000 && usage.entries <= 15 && usage.evictions > 0, "{usage:?}");
        cache.purge(|_| true);
        let after = cache.usage();
        assert_eq!((after.entries, after.bytes, after.evictions), (0, 0, usage.evictions));
    }
}
