//! [`SharedBuild`]: one making for all who ask for the same thing at the same time.
//!
//! What is made is as new as a request: who asks while something is being made is not given that, which may have begun before
//! a write that the caller knows of. All who wait share the next one, unless it is about the caller who made it alone: then
//! others who wait make it anew. Nothing is remembered once nobody waits.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// What was made last of one thing. Held while it is made.
type Last<T> = tokio::sync::Mutex<Option<Built<T>>>;

/// What was made, when that began, and for whom.
#[derive(Debug)]
struct Built<T> {
    began: Instant,
    caller: u64,
    result: T,
}

/// Makings under way, by what is made.
#[derive(Debug)]
pub(crate) struct SharedBuild<K, T> {
    makings: Mutex<HashMap<K, Weak<Last<T>>>>,
    /// Whether what was made is for others too: a failure may come of what one caller may hold.
    is_for_others: fn(&T) -> bool,
}

impl<K: Eq + Hash + Clone, T: Clone> SharedBuild<K, T> {
    /// No making yet; those for which `is_for_others` is false are not shared.
    pub(crate) fn new(is_for_others: fn(&T) -> bool) -> Self {
        Self { makings: Mutex::default(), is_for_others }
    }

    /// What `make` makes for a caller, or what was made for the same one, or is for others, and began after this was called.
    /// Whoever leaves while making leaves it to the next.
    pub(crate) async fn get(&self, key: &K, caller: u64, make: impl Future<Output = T>) -> T {
        let asked = Instant::now();
        let last = self.last(key);
        let mut last = last.lock().await;
        if let Some(last) = &*last
            && last.began >= asked
            && (last.caller == caller || (self.is_for_others)(&last.result))
        {
            return last.result.clone();
        }
        let began = Instant::now();
        let made = make.await;
        *last = Some(Built { began, caller, result: made.clone() });
        made
    }

    fn last(&self, key: &K) -> Arc<Last<T>> {
        // No code panics while it holds the lock.
        let mut all = self.makings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = all.get(key).and_then(Weak::upgrade) {
            return last;
        }
        all.retain(|_, last| last.strong_count() > 0);
        let last = Arc::default();
        all.insert(key.clone(), Arc::downgrade(&last));
        last
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_share_one_making_that_began_after_they_asked() {
        let (together, makings) = (SharedBuild::<u8, usize>::new(|_| true), AtomicUsize::new(0));
        let get = async |key: u8| {
            let making = async {
                let number = makings.fetch_add(1, SeqCst);
                tokio::task::yield_now().await;
                number
            };
            together.get(&key, 0, making).await
        };
        assert_eq!(join_all([get(1), get(1), get(1), get(1)]).await, [0, 1, 1, 1]);
        assert_eq!(get(1).await, 2, "nothing is remembered");
        assert_eq!(join_all([get(1), get(2)]).await, [3, 4], "another thing is another making");
    }

    #[tokio::test]
    async fn what_one_leaves_another_makes() {
        let together = SharedBuild::<u8, u8>::new(|_| true);
        let mut left = Box::pin(together.get(&1, 0, std::future::pending()));
        assert!(futures::poll!(left.as_mut()).is_pending());
        let mut next = Box::pin(together.get(&1, 0, async { 2 }));
        assert!(futures::poll!(next.as_mut()).is_pending());
        drop(left);
        assert_eq!(next.await, 2);
    }

    #[tokio::test]
    async fn what_is_about_one_caller_alone_is_not_given_to_those_who_wait() {
        let together = SharedBuild::<u8, Result<u8, u8>>::new(Result::is_ok);
        let get = |caller, made: Result<u8, u8>| {
            let making = async move {
                tokio::task::yield_now().await;
                made
            };
            together.get(&1, caller, making)
        };
        // The first is under way when the others ask: the second makes for its own caller alone, the fourth for all.
        let made =
            [get(7, Err(1)), get(7, Err(2)), get(7, Err(3)), get(8, Ok(4)), get(9, Err(5)), get(7, Err(6))];
        assert_eq!(join_all(made).await, [Err(1), Err(2), Err(2), Ok(4), Ok(4), Ok(4)]);
    }
}
