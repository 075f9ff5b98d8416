//! [`Flights`]: loads that are under way, shared by everyone who wants their result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::shelf::Epoch;

type Channel<V> = Arc<watch::Sender<Option<V>>>;

/// Loads under way, by key.
#[derive(Debug)]
pub(super) struct Flights<K: Eq + Hash, V>(Arc<Mutex<HashMap<K, Channel<V>>>>);

/// What came of asking for a key.
pub(super) enum Boarding<K: Eq + Hash, V> {
    /// It is at hand.
    Hit(V),
    /// Somebody is loading it.
    Joined(Waiter<V>),
    /// The caller is to load it.
    Claimed(Ticket<K, V>, Waiter<V>),
}

/// Waits for a load. Dropping it is leaving.
pub(super) struct Waiter<V>(watch::Receiver<Option<V>>);

/// The duty to load something. Dropped without [`Ticket::land`], it sends those who wait to try again.
pub(super) struct Ticket<K: Eq + Hash, V> {
    key: K,
    epoch: Epoch,
    channel: Channel<V>,
    flights: Arc<Mutex<HashMap<K, Channel<V>>>>,
}

impl<K: Eq + Hash + Clone, V: Clone> Flights<K, V> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(HashMap::new())))
    }

    /// Joins the loads of these keys or claims them: all in one step, so that of two callers who want the same keys one
    /// claims all of them, and can fetch neighbours together. `look` is asked again before claiming, since a load may
    /// have landed since the caller last looked: whoever lands remembers first and leaves the list afterwards.
    /// What is claimed is loaded in `epoch`.
    pub(super) fn board(
        &self,
        keys: &[&K],
        epoch: Epoch,
        look: impl Fn(&K) -> Option<V>,
    ) -> Vec<Boarding<K, V>> {
        let mut flights = lock(&self.0);
        keys.iter().map(|key| self.board_in(&mut flights, key, epoch, &look)).collect()
    }

    /// As [`Flights::board`] for one key.
    pub(super) fn board_one(&self, key: &K, epoch: Epoch, look: impl Fn(&K) -> Option<V>) -> Boarding<K, V> {
        self.board_in(&mut lock(&self.0), key, epoch, look)
    }

    fn board_in(
        &self,
        flights: &mut HashMap<K, Channel<V>>,
        key: &K,
        epoch: Epoch,
        look: impl Fn(&K) -> Option<V>,
    ) -> Boarding<K, V> {
        match flights.entry(key.clone()) {
            Entry::Occupied(entry) => Boarding::Joined(Waiter(entry.get().subscribe())),
            Entry::Vacant(entry) => {
                if let Some(value) = look(key) {
                    return Boarding::Hit(value);
                }
                let (sender, receiver) = watch::channel(None);
                let channel = Arc::new(sender);
                entry.insert(Arc::clone(&channel));
                let ticket = Ticket { key: key.clone(), epoch, channel, flights: Arc::clone(&self.0) };
                Boarding::Claimed(ticket, Waiter(receiver))
            }
        }
    }

    /// Whoever comes from here on loads these anew. Those who wait are given what they wait for.
    pub(super) fn forget(&self, is_meant: impl Fn(&K) -> bool) {
        lock(&self.0).retain(|key, _| !is_meant(key));
    }
}

impl<V: Clone> Waiter<V> {
    /// The result; `None` if the load was abandoned.
    pub(super) async fn wait(mut self) -> Option<V> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

impl<K: Eq + Hash, V> Ticket<K, V> {
    pub(super) fn key(&self) -> &K {
        &self.key
    }

    /// When it was claimed.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Gives the result to all who wait.
    pub(super) fn land(self, value: V) {
        self.channel.send_replace(Some(value));
    }

    /// Until nobody waits any longer.
    pub(super) async fn deserted(&self) {
        self.channel.closed().await;
    }
}

impl<K: Eq + Hash, V> Drop for Ticket<K, V> {
    fn drop(&mut self) {
        let mut flights = lock(&self.flights);
        // By now another may be loading it.
        if flights.get(&self.key).is_some_and(|channel| Arc::ptr_eq(channel, &self.channel)) {
            flights.remove(&self.key);
        }
    }
}

/// No code panics while it holds the lock; were it to, the map would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(flights: &Flights<u8, u8>, look: Option<u8>) -> Boarding<u8, u8> {
        flights.board(&[&1], Epoch::default(), |_| look).remove(0)
    }

    #[tokio::test]
    async fn whoever_comes_after_something_was_forgotten_loads_it_anew() {
        let flights = Flights::<u8, u8>::new();
        let Boarding::Claimed(old, before) = board(&flights, None) else { panic!() };
        flights.forget(|key| *key == 1);
        let Boarding::Claimed(new, after) = board(&flights, None) else { panic!() };
        old.land(1);
        let Boarding::Joined(joined) = board(&flights, None) else { panic!() };
        new.land(2);
        assert_eq!(
            (before.wait().await, after.wait().await, joined.wait().await),
            (Some(1), Some(2), Some(2))
        );
    }

    #[tokio::test]
    async fn all_who_wait_get_the_result_of_one_load() {
        let flights = Flights::<u8, u8>::new();
        let Boarding::Claimed(ticket, first) = board(&flights, None) else { panic!() };
        let Boarding::Joined(second) = board(&flights, None) else { panic!() };
        ticket.land(7);
        assert_eq!((first.wait().await, second.wait().await), (Some(7), Some(7)));
        assert!(matches!(board(&flights, Some(7)), Boarding::Hit(7)));
    }

    #[tokio::test]
    async fn an_abandoned_load_frees_those_who_wait_to_try_again() {
        let flights = Flights::<u8, u8>::new();
        let Boarding::Claimed(ticket, first) = board(&flights, None) else { panic!() };
        drop(ticket);
        assert_eq!(first.wait().await, None);
        assert!(matches!(board(&flights, None), Boarding::Claimed(..)));
    }

    #[tokio::test]
    async fn a_load_that_nobody_waits_for_is_deserted() {
        let flights = Flights::<u8, u8>::new();
        let Boarding::Claimed(ticket, first) = board(&flights, None) else { panic!() };
        let Boarding::Joined(second) = board(&flights, None) else { panic!() };
        drop(first);
        assert!(futures::FutureExt::now_or_never(ticket.deserted()).is_none());
        drop(second);
        ticket.deserted().await;
    }

    #[tokio::test]
    async fn keys_that_are_wanted_together_are_claimed_together() {
        let flights = Flights::<u8, u8>::new();
        let first = flights.board(&[&1, &2], Epoch::default(), |_| None);
        assert!(first.iter().all(|boarding| matches!(boarding, Boarding::Claimed(..))));
        let second = flights.board(&[&2, &3, &1], Epoch::default(), |_| None);
        assert!(matches!(second[..], [Boarding::Joined(_), Boarding::Claimed(..), Boarding::Joined(_)]));
    }
}
