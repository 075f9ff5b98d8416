//! [`Shelf`]: one kind of thing that is remembered, weighed in bytes, and loaded once for all who want it.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use futures::future::BoxFuture;
use moka::sync::Cache;

use super::flights::{Boarding, Flights, Ticket};
use crate::array::ArrayError;

/// What a load comes to.
pub(super) type Outcome<T> = Result<T, ArrayError>;

/// A load that was abandoned by those who began it is begun again this often by those who still want it.
pub(super) const TRIES: usize = 4;
/// What an entry weighs beside its key and value: the cache's own books, roughly, in bytes.
const ENTRY_BYTES: u64 = 300;
/// One entry may be this part of a shelf at most; a larger one would empty it for its own sake.
const LARGEST_SHARE: u64 = 10;

/// Things by their keys. The least used fall out.
pub(super) struct Shelf<K: Eq + Hash, T> {
    cache: Cache<K, T>,
    flights: Flights<K, Outcome<T>>,
    largest: u64,
    weigh: fn(&K, &T) -> u64,
}

impl<K, T> Shelf<K, T>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// A shelf for so many bytes, as `weigh` counts them for a key and its value.
    pub(super) fn new(capacity_bytes: u64, weigh: fn(&K, &T) -> u64) -> Self {
        // moka's weights have 32 bits; nothing of 4 GiB is ever remembered.
        let weigher =
            move |key: &K, value: &T| u32::try_from(weigh(key, value) + ENTRY_BYTES).unwrap_or(u32::MAX);
        let cache = Cache::builder().max_capacity(capacity_bytes).weigher(weigher).build();
        Self { cache, flights: Flights::new(), largest: capacity_bytes / LARGEST_SHARE, weigh }
    }

    /// For each key: what is remembered, or who is to load it.
    pub(super) fn board(&self, keys: &[K]) -> Vec<Boarding<K, Outcome<T>>> {
        let remembered: Vec<Option<T>> = keys.iter().map(|key| self.cache.get(key)).collect();
        let missing: Vec<&K> =
            keys.iter().zip(&remembered).filter(|(_, value)| value.is_none()).map(|(key, _)| key).collect();
        if missing.is_empty() {
            return remembered.into_iter().flatten().map(|value| Boarding::Hit(Ok(value))).collect();
        }
        let mut boarded = self.flights.board(&missing, |key| self.cache.get(key).map(Ok)).into_iter();
        remembered
            .into_iter()
            .filter_map(|value| match value {
                Some(value) => Some(Boarding::Hit(Ok(value))),
                None => boarded.next(),
            })
            .collect()
    }

    /// What is remembered.
    pub(super) fn recall<Q>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.cache.get(key)
    }

    /// Whether it is remembered; asking does not count as using it.
    pub(super) fn holds(&self, key: &K) -> bool {
        self.cache.contains_key(key)
    }

    /// Whether something of so many bytes is not too large.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        bytes <= self.largest
    }

    /// Remembers something, if it is not too large.
    pub(super) fn remember(&self, key: &K, value: &T) {
        if (self.weigh)(key, value) <= self.largest {
            self.cache.insert(key.clone(), value.clone());
        }
    }

    /// Forgets every other thing, however much it is used: the memory is needed for something else.
    pub(super) fn forget_half(&self) {
        for (key, _) in self.cache.iter().step_by(2) {
            self.cache.invalidate(&*key);
        }
        self.cache.run_pending_tasks();
    }

    /// Remembers what was loaded, if it is no failure, and hands it to all who wait.
    pub(super) fn land(&self, ticket: Ticket<K, Outcome<T>>, outcome: Outcome<T>) {
        if let Ok(value) = &outcome {
            self.remember(ticket.key(), value);
        }
        ticket.land(outcome);
    }

    /// What is remembered, or what `load` comes to; it runs in a task that no single caller can end by leaving, and that
    /// ends when all have left. `None` if others abandoned it again and again.
    pub(super) async fn get(
        self: &Arc<Self>,
        key: &K,
        load: BoxFuture<'static, Outcome<T>>,
    ) -> Option<Outcome<T>> {
        let mut load = Some(load);
        for _ in 0..TRIES {
            let waiter = match self.board(std::slice::from_ref(key)).pop()? {
                Boarding::Hit(outcome) => return Some(outcome),
                Boarding::Joined(waiter) => waiter,
                Boarding::Claimed(ticket, waiter) => {
                    let (shelf, load) = (Arc::clone(self), load.take()?);
                    tokio::spawn(async move {
                        tokio::select! {
                            outcome = load => shelf.land(ticket, outcome),
                            () = ticket.deserted() => {}
                        }
                    });
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

impl<K: Eq + Hash, T> fmt::Debug for Shelf<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").field("largest", &self.largest).finish_non_exhaustive()
    }
}
