//! [`SingleFlight`]: loads that are under way, shared by everyone who wants their result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::generation::Generation;

type Channel<V> = Arc<watch::Sender<Option<V>>>;

/// Loads under way, by key.
#[derive(Debug)]
pub(crate) struct SingleFlight<K: Eq + Hash, V>(Arc<Mutex<HashMap<K, Channel<V>>>>);

/// What came of asking for a key.
pub(crate) enum Join<K: Eq + Hash, V> {
    /// It is at hand.
    Hit(V),
    /// Somebody is loading it.
    Follower(Follower<V>),
    /// The caller is to load it.
    Leader(Leader<K, V>, Follower<V>),
}

/// Waits for a load. Dropping it is leaving.
pub(crate) struct Follower<V>(watch::Receiver<Option<V>>);

/// The duty to load something. Dropped without [`Leader::complete`], it sends those who wait to try again.
pub(crate) struct Leader<K: Eq + Hash, V> {
    key: K,
    epoch: Generation,
    channel: Channel<V>,
    flights: Arc<Mutex<HashMap<K, Channel<V>>>>,
}

impl<K: Eq + Hash + Clone, V: Clone> SingleFlight<K, V> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(HashMap::new())))
    }

    /// Joins the loads of these keys or claims them: all in one step, so that of two callers who want the same keys one
    /// claims all of them, and can fetch neighbours together. `look` is asked again before claiming, since a load may
    /// have landed since the caller last looked: whoever lands remembers first and leaves the list afterwards.
    /// What is claimed is loaded in `epoch`.
    pub(crate) fn join(
        &self,
        keys: &[&K],
        epoch: Generation,
        look: impl Fn(&K) -> Option<V>,
    ) -> Vec<Join<K, V>> {
        let mut flights = lock(&self.0);
        keys.iter().map(|key| self.join_in(&mut flights, key, epoch, &look)).collect()
    }

    /// As [`SingleFlight::join`] for one key.
    pub(crate) fn join_one(&self, key: &K, epoch: Generation, look: impl Fn(&K) -> Option<V>) -> Join<K, V> {
        self.join_in(&mut lock(&self.0), key, epoch, look)
    }

    fn join_in(
        &self,
        flights: &mut HashMap<K, Channel<V>>,
        key: &K,
        epoch: Generation,
        look: impl Fn(&K) -> Option<V>,
    ) -> Join<K, V> {
        match flights.entry(key.clone()) {
            Entry::Occupied(entry) => Join::Follower(Follower(entry.get().subscribe())),
            Entry::Vacant(entry) => {
                if let Some(value) = look(key) {
                    return Join::Hit(value);
                }
                let (sender, receiver) = watch::channel(None);
                let channel = Arc::new(sender);
                entry.insert(Arc::clone(&channel));
                let ticket = Leader { key: key.clone(), epoch, channel, flights: Arc::clone(&self.0) };
                Join::Leader(ticket, Follower(receiver))
            }
        }
    }

    /// Whoever comes from here on loads these anew. Those who wait are given what they wait for.
    pub(crate) fn detach(&self, is_meant: impl Fn(&K) -> bool) {
        lock(&self.0).retain(|key, _| !is_meant(key));
    }
}

impl<V: Clone> Follower<V> {
    /// The result; `None` if the load was abandoned.
    pub(crate) async fn wait(mut self) -> Option<V> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

impl<K: Eq + Hash, V> Leader<K, V> {
    pub(crate) fn key(&self) -> &K {
        &self.key
    }

    /// When it was claimed.
    pub(crate) fn epoch(&self) -> Generation {
        self.epoch
    }

    /// Gives the result to all who wait.
    pub(crate) fn complete(self, value: V) {
        self.channel.send_replace(Some(value));
    }

    /// Until nobody waits any longer.
    pub(crate) async fn cancelled(&self) {
        self.channel.closed().await;
    }
}

impl<K: Eq + Hash, V> Drop for Leader<K, V> {
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

    fn board(flights: &SingleFlight<u8, u8>, look: Option<u8>) -> Join<u8, u8> {
        flights.join(&[&1], Generation::default(), |_| look).remove(0)
    }

    #[tokio::test]
    async fn whoever_comes_after_something_was_forgotten_loads_it_anew() {
        let flights = SingleFlight::<u8, u8>::new();
        let Join::Leader(old, before) = board(&flights, None) else { panic!() };
        flights.detach(|key| *key == 1);
        let Join::Leader(new, after) = board(&flights, None) else { panic!() };
        old.complete(1);
        let Join::Follower(joined) = board(&flights, None) else { panic!() };
        new.complete(2);
        assert_eq!(
            (before.wait().await, after.wait().await, joined.wait().await),
            (Some(1), Some(2), Some(2))
        );
    }

    #[tokio::test]
    async fn all_who_wait_get_the_result_of_one_load() {
        let flights = SingleFlight::<u8, u8>::new();
        let Join::Leader(ticket, first) = board(&flights, None) else { panic!() };
        let Join::Follower(second) = board(&flights, None) else { panic!() };
        ticket.complete(7);
        assert_eq!((first.wait().await, second.wait().await), (Some(7), Some(7)));
        assert!(matches!(board(&flights, Some(7)), Join::Hit(7)));
    }

    #[tokio::test]
    async fn an_abandoned_load_frees_those_who_wait_to_try_again() {
        let flights = SingleFlight::<u8, u8>::new();
        let Join::Leader(ticket, first) = board(&flights, None) else { panic!() };
        drop(ticket);
        assert_eq!(first.wait().await, None);
        assert!(matches!(board(&flights, None), Join::Leader(..)));
    }

    #[tokio::test]
    async fn a_load_that_nobody_waits_for_is_deserted() {
        let flights = SingleFlight::<u8, u8>::new();
        let Join::Leader(ticket, first) = board(&flights, None) else { panic!() };
        let Join::Follower(second) = board(&flights, None) else { panic!() };
        drop(first);
        assert!(futures::FutureExt::now_or_never(ticket.cancelled()).is_none());
        drop(second);
        ticket.cancelled().await;
    }

    #[tokio::test]
    async fn keys_that_are_wanted_together_are_claimed_together() {
        let flights = SingleFlight::<u8, u8>::new();
        let first = flights.join(&[&1, &2], Generation::default(), |_| None);
        assert!(first.iter().all(|boarding| matches!(boarding, Join::Leader(..))));
        let second = flights.join(&[&2, &3, &1], Generation::default(), |_| None);
        assert!(matches!(second[..], [Join::Follower(_), Join::Leader(..), Join::Follower(_)]));
    }
}
