//! [`WeightedCache`]: one kind of thing that is remembered, weighed in bytes, and loaded once for all who want it.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use moka::sync::Cache;
use tracing::Instrument;

use super::generation::{Generation, GenerationCounter};
use super::single_flight::{Join, Leader, SingleFlight};
use crate::array::ArrayError;

/// What is remembered of one kind, and how often that was of use since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// How often something was remembered.
    pub hits: u64,
    /// How often it had to be loaded or made.
    pub misses: u64,
    /// How much fell out for want of room.
    pub evictions: u64,
    /// How many things there are.
    pub entries: u64,
    /// Their bytes, and those of the books about them.
    pub bytes: u64,
}

impl CacheUsage {
    /// Two shelves as one.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            hits: self.hits.saturating_add(other.hits),
            misses: self.misses.saturating_add(other.misses),
            evictions: self.evictions.saturating_add(other.evictions),
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// The same, of which only what it holds and what fell out counts: it is asked beside another shelf.
    pub(crate) fn held(self) -> Self {
        Self { hits: 0, misses: 0, ..self }
    }
}

/// What a load comes to.
pub(crate) type LoadResult<T> = Result<T, ArrayError>;

/// A load that was abandoned by those who began it is begun again this often by those who still want it.
pub(crate) const LOAD_ATTEMPTS: usize = 4;
/// What an entry weighs beside its key and value: the cache's own books, roughly, in bytes.
const ENTRY_BYTES: u64 = 300;
/// One entry may be this part of a shelf at most; a larger one would empty it for its own sake.
const LARGEST_SHARE: u64 = 10;

/// Things by their keys. The least used fall out.
pub(crate) struct WeightedCache<K: Eq + Hash, T> {
    cache: Cache<K, T>,
    flights: SingleFlight<K, LoadResult<T>>,
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
    /// A shelf for so many bytes, as `weigh` counts them for a key and its value.
    pub(crate) fn new(capacity_bytes: u64, weigh: fn(&K, &T) -> u64) -> Self {
        Self::with_largest(capacity_bytes, LARGEST_SHARE, weigh)
    }

    /// The same, of which one entry may be another part at most.
    pub(crate) fn with_largest(capacity_bytes: u64, share: u64, weigh: fn(&K, &T) -> u64) -> Self {
        // moka's weights have 32 bits; nothing of 4 GiB is ever remembered.
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
            .build();
        Self {
            cache,
            flights: SingleFlight::new(),
            largest: capacity_bytes / share,
            weigh,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions,
            generation: GenerationCounter::default(),
        }
    }

    /// Now, for what is loaded from here on.
    pub(crate) fn generation(&self) -> Generation {
        self.generation.current()
    }

    /// What it holds, and how often that was of use.
    pub(crate) fn usage(&self) -> CacheUsage {
        // What was counted in passing is summed up first.
        self.cache.run_pending_tasks();
        CacheUsage {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            entries: self.cache.entry_count(),
            bytes: self.cache.weighted_size(),
        }
    }

    /// Counts things that had to be loaded, where no load is the shelf's own.
    pub(crate) fn missed(&self, things: usize) {
        self.misses.fetch_add(things as u64, Ordering::Relaxed);
    }

    /// Forgets what `is_meant`, and how many there were. Loads under way are not remembered either, and nobody joins those
    /// that are meant: what comes back after this was loaded after it.
    pub(crate) fn purge(&self, is_meant: impl Fn(&K) -> bool) -> u64 {
        self.generation.advance();
        self.flights.detach(&is_meant);
        let mut forgotten = 0;
        for (key, _) in &self.cache {
            if is_meant(&key) {
                self.cache.invalidate(key.as_ref());
                forgotten += 1;
            }
        }
        forgotten
    }

    /// For each key: what is remembered, or who is to load it.
    pub(crate) fn join_loads(&self, keys: &[K]) -> Vec<Join<K, LoadResult<T>>> {
        let remembered: Vec<Option<T>> = keys.iter().map(|key| self.cached(key)).collect();
        let missing: Vec<&K> =
            keys.iter().zip(&remembered).filter(|(_, value)| value.is_none()).map(|(key, _)| key).collect();
        if missing.is_empty() {
            return remembered.into_iter().flatten().map(|value| Join::Hit(Ok(value))).collect();
        }
        let epoch = self.generation();
        let boarded = self.flights.join(&missing, epoch, |key| self.cached(key).map(Ok));
        self.missed(boarded.iter().filter(|boarding| matches!(boarding, Join::Leader(..))).count());
        let mut boarded = boarded.into_iter();
        remembered
            .into_iter()
            .filter_map(|value| match value {
                Some(value) => Some(Join::Hit(Ok(value))),
                None => boarded.next(),
            })
            .collect()
    }

    /// Who is to load a key anew, unless what is remembered of it is new to the caller.
    pub(crate) fn join_refresh(&self, key: &K, is_new: impl Fn(&T) -> bool) -> Join<K, LoadResult<T>> {
        let boarding =
            self.flights.join_one(key, self.generation(), |key| self.cache.get(key).filter(&is_new).map(Ok));
        if matches!(boarding, Join::Leader(..)) {
            self.missed(1);
        }
        boarding
    }

    /// What is remembered.
    pub(crate) fn cached<Q>(&self, key: &Q) -> Option<T>
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

    /// Whether it is remembered; asking does not count as using it.
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.cache.contains_key(key)
    }

    /// Whether something of so many bytes is not too large.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        bytes <= self.largest
    }

    /// Remembers something that was loaded since then, if it is not too large.
    pub(crate) fn insert(&self, key: &K, value: &T, since: Generation) {
        if (self.weigh)(key, value) > self.largest || self.generation() != since {
            return;
        }
        self.cache.insert(key.clone(), value.clone());
        // A purge that began meanwhile may have passed by already.
        if self.generation() != since {
            self.cache.invalidate(key);
        }
    }

    /// Forgets every other thing, however much it is used: the memory is needed for something else.
    pub(crate) fn evict_half(&self) {
        for (key, _) in self.cache.iter().step_by(2) {
            self.cache.invalidate(&*key);
        }
        self.cache.run_pending_tasks();
    }

    /// Remembers what was loaded, if it is no failure, and hands it to all who wait.
    pub(crate) fn complete(&self, ticket: Leader<K, LoadResult<T>>, outcome: LoadResult<T>) {
        if let Ok(value) = &outcome {
            self.insert(ticket.key(), value, ticket.epoch());
        }
        ticket.complete(outcome);
    }

    /// Loads what was claimed, in a task that no single caller can end by leaving, and that ends when all have left.
    pub(crate) fn load(
        self: &Arc<Self>,
        ticket: Leader<K, LoadResult<T>>,
        load: BoxFuture<'static, LoadResult<T>>,
    ) {
        let shelf = Arc::clone(self);
        let load = async move {
            tokio::select! {
                outcome = load => shelf.complete(ticket, outcome),
                () = ticket.cancelled() => {}
            }
        };
        tokio::spawn(load.in_current_span());
    }

    /// What is remembered, or what `load` comes to. `None` if others abandoned it again and again.
    pub(crate) async fn get(
        self: &Arc<Self>,
        key: &K,
        load: BoxFuture<'static, LoadResult<T>>,
    ) -> Option<LoadResult<T>> {
        let mut load = Some(load);
        for _ in 0..LOAD_ATTEMPTS {
            let waiter = match self.join_loads(std::slice::from_ref(key)).pop()? {
                Join::Hit(outcome) => return Some(outcome),
                Join::Follower(waiter) => waiter,
                Join::Leader(ticket, waiter) => {
                    self.load(ticket, load.take()?);
                    waiter
                }
            };
            if let Some(outcome) = waiter.wait().await {
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
    fn what_was_loaded_before_a_purge_is_not_remembered_after_it() {
        let shelf = WeightedCache::<u8, u8>::new(1 << 20, |_, _| 1);
        let before = shelf.generation();
        assert_eq!(shelf.purge(|_| true), 0);
        shelf.insert(&1, &1, before);
        assert_eq!(shelf.cached(&1), None);
        for key in [1, 2] {
            shelf.insert(&key, &key, shelf.generation());
        }
        assert_eq!(shelf.purge(|key| *key == 1), 1);
        assert_eq!((shelf.cached(&1), shelf.cached(&2)), (None, Some(2)));
        let CacheUsage { hits, misses, evictions, entries, .. } = shelf.usage();
        assert_eq!((hits, misses, evictions, entries), (1, 0, 0, 1));
    }

    #[test]
    fn what_falls_out_for_want_of_room_is_counted_and_what_is_forgotten_is_not() {
        let shelf = WeightedCache::<u64, u64>::new(20_000, |_, _| 1000);
        for key in 0..100 {
            shelf.insert(&key, &key, shelf.generation());
        }
        let usage = shelf.usage();
        assert!(usage.bytes <= 20_000 && usage.entries <= 15 && usage.evictions > 0, "{usage:?}");
        shelf.purge(|_| true);
        let after = shelf.usage();
        assert_eq!((after.entries, after.bytes, after.evictions), (0, 0, usage.evictions));
    }
}
