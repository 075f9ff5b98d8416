//! [`SingleFlight`]: the loads in flight, each shared by all callers that need its result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::generation::Generation;

type Channel<V> = Arc<watch::Sender<Option<V>>>;

/// The loads in flight, by key.
#[derive(Debug)]
pub(crate) struct SingleFlight<K: Eq + Hash, V>(Arc<Mutex<HashMap<K, Channel<V>>>>);

/// The result of joining the load of a key.
pub(crate) enum Join<K: Eq + Hash, V> {
    /// The value is cached by now; there is nothing to load.
    Hit(V),
    /// Another caller is loading it.
    Follower(Follower<V>),
    /// The caller has to load it, and waits for its own load like a follower.
    Leader(Leader<K, V>, Follower<V>),
}

/// Waits for a load. A load is cancelled when all of its followers are dropped.
pub(crate) struct Follower<V>(watch::Receiver<Option<V>>);

/// The obligation to load a key. If it is dropped without [`Leader::complete`], its followers get no result and try again.
pub(crate) struct Leader<K: Eq + Hash, V> {
    key: K,
    generation: Generation,
    channel: Channel<V>,
    in_flight: Arc<Mutex<HashMap<K, Channel<V>>>>,
}

impl<K: Eq + Hash + Clone, V: Clone> SingleFlight<K, V> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(HashMap::new())))
    }

    /// Joins the loads of these keys, or becomes their leader. All keys are joined in one step, so that of two callers with
    /// the same keys one leads all of them and can fetch neighbours together.
    ///
    /// `get_cached` is called before becoming a leader, because a load may have completed since the caller last checked: a
    /// load is cached first and removed from those in flight afterwards. New loads belong to `generation`.
    pub(crate) fn join(
        &self,
        keys: &[&K],
        generation: Generation,
        get_cached: impl Fn(&K) -> Option<V>,
    ) -> Vec<Join<K, V>> {
        let mut in_flight = lock(&self.0);
        keys.iter().map(|key| self.join_in(&mut in_flight, key, generation, &get_cached)).collect()
    }

    /// [`SingleFlight::join`] for one key.
    pub(crate) fn join_one(
        &self,
        key: &K,
        generation: Generation,
        get_cached: impl Fn(&K) -> Option<V>,
    ) -> Join<K, V> {
        self.join_in(&mut lock(&self.0), key, generation, get_cached)
    }

    fn join_in(
        &self,
        in_flight: &mut HashMap<K, Channel<V>>,
        key: &K,
        generation: Generation,
        get_cached: impl Fn(&K) -> Option<V>,
    ) -> Join<K, V> {
        match in_flight.entry(key.clone()) {
            Entry::Occupied(entry) => Join::Follower(Follower(entry.get().subscribe())),
            Entry::Vacant(entry) => {
                if let Some(value) = get_cached(key) {
                    return Join::Hit(value);
                }
                let (sender, receiver) = watch::channel(None);
                let channel = Arc::new(sender);
                entry.insert(Arc::clone(&channel));
                let leader = Leader { key: key.clone(), generation, channel, in_flight: Arc::clone(&self.0) };
                Join::Leader(leader, Follower(receiver))
            }
        }
    }

    /// Lets later callers load the matching keys again in place of joining a load in flight. Followers that wait already get
    /// the result they wait for.
    pub(crate) fn detach(&self, matches: impl Fn(&K) -> bool) {
        lock(&self.0).retain(|key, _| !matches(key));
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

    /// The generation that the load began in.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Gives the result to all followers. A caller that comes after the first follower has it starts a load of its own, or
    /// finds the value cached: it never gets the failure of a load that ended before its request.
    pub(crate) fn complete(self, value: V) {
        let channel = Arc::clone(&self.channel);
        drop(self);
        channel.send_replace(Some(value));
    }

    /// Whether anyone waits for the load.
    pub(crate) fn is_awaited(&self) -> bool {
        self.channel.receiver_count() > 0
    }

    /// Waits until no follower is left.
    pub(crate) async fn cancelled(&self) {
        self.channel.closed().await;
    }
}

impl<K: Eq + Hash, V> Drop for Leader<K, V> {
    fn drop(&mut self) {
        let mut in_flight = lock(&self.in_flight);
        // After `detach`, another leader may be loading the same key.
        if in_flight.get(&self.key).is_some_and(|channel| Arc::ptr_eq(channel, &self.channel)) {
            in_flight.remove(&self.key);
        }
    }
}

/// No code panics while it holds the lock; even then the map would be consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use futures::task::ArcWake;

    use super::*;

    fn join(in_flight: &SingleFlight<u8, u8>, get_cached: Option<u8>) -> Join<u8, u8> {
        in_flight.join(&[&1], Generation::default(), |_| get_cached).remove(0)
    }

    #[tokio::test]
    async fn callers_after_a_detach_start_a_new_load() {
        let in_flight = SingleFlight::<u8, u8>::new();
        let Join::Leader(old, before) = join(&in_flight, None) else { panic!() };
        in_flight.detach(|key| *key == 1);
        let Join::Leader(new, after) = join(&in_flight, None) else { panic!() };
        old.complete(1);
        let Join::Follower(joined) = join(&in_flight, None) else { panic!() };
        new.complete(2);
        assert_eq!(
            (before.wait().await, after.wait().await, joined.wait().await),
            (Some(1), Some(2), Some(2))
        );
    }

    #[tokio::test]
    async fn all_followers_get_the_result_of_one_load() {
        let in_flight = SingleFlight::<u8, u8>::new();
        let Join::Leader(leader, first) = join(&in_flight, None) else { panic!() };
        let Join::Follower(second) = join(&in_flight, None) else { panic!() };
        leader.complete(7);
        assert_eq!((first.wait().await, second.wait().await), (Some(7), Some(7)));
        assert!(matches!(join(&in_flight, Some(7)), Join::Hit(7)));
    }

    /// Joins again as soon as it is woken.
    struct JoinsAgain(SingleFlight<u8, u8>, Mutex<Option<Join<u8, u8>>>);

    impl ArcWake for JoinsAgain {
        fn wake_by_ref(this: &Arc<Self>) {
            *this.1.lock().unwrap() = Some(join(&this.0, None));
        }
    }

    #[test]
    fn callers_after_a_load_ended_never_get_its_result() {
        let in_flight = SingleFlight::<u8, u8>::new();
        let Join::Leader(leader, follower) = join(&in_flight, None) else { panic!() };
        let again = Arc::new(JoinsAgain(SingleFlight(Arc::clone(&in_flight.0)), Mutex::default()));
        let (waker, mut waiting) = (futures::task::waker(Arc::clone(&again)), Box::pin(follower.wait()));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        leader.complete(7);
        let joined = again.1.lock().unwrap().take();
        assert!(matches!(joined, Some(Join::Leader(..))), "it joined a load that had ended");
    }

    #[tokio::test]
    async fn followers_of_an_abandoned_load_can_try_again() {
        let in_flight = SingleFlight::<u8, u8>::new();
        let Join::Leader(leader, first) = join(&in_flight, None) else { panic!() };
        drop(leader);
        assert_eq!(first.wait().await, None);
        assert!(matches!(join(&in_flight, None), Join::Leader(..)));
    }

    #[tokio::test]
    async fn a_load_without_followers_is_cancelled() {
        let in_flight = SingleFlight::<u8, u8>::new();
        let Join::Leader(leader, first) = join(&in_flight, None) else { panic!() };
        let Join::Follower(second) = join(&in_flight, None) else { panic!() };
        drop(first);
        assert!(futures::FutureExt::now_or_never(leader.cancelled()).is_none());
        drop(second);
        leader.cancelled().await;
    }

    #[tokio::test]
    async fn keys_of_one_call_are_led_together() {
        let in_flight = SingleFlight::<u8, u8>::new();
        let first = in_flight.join(&[&1, &2], Generation::default(), |_| None);
        assert!(first.iter().all(|join| matches!(join, Join::Leader(..))));
        let second = in_flight.join(&[&2, &3, &1], Generation::default(), |_| None);
        assert!(matches!(second[..], [Join::Follower(_), Join::Leader(..), Join::Follower(_)]));
    }
}
