//! [`Together`]: one making for all who ask for the same thing at the same time.
//!
//! What is made is as new as a request: who asks while something is being made is not given that, which may have begun before
//! a write that the caller knows of. All who wait share the next one. Nothing is remembered once nobody waits.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// What was made last of one thing, and when that began. Held while it is made.
type Last<T> = tokio::sync::Mutex<Option<(Instant, T)>>;

/// Makings under way, by what is made.
#[derive(Debug)]
pub(super) struct Together<K, T>(Mutex<HashMap<K, Weak<Last<T>>>>);

impl<K: Eq + Hash + Clone, T: Clone> Together<K, T> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// What `make` makes, or another's that began after this was called. Whoever leaves while making leaves it to the next.
    pub(super) async fn get(&self, key: &K, make: impl Future<Output = T>) -> T {
        let asked = Instant::now();
        let last = self.last(key);
        let mut last = last.lock().await;
        if let Some((began, made)) = &*last
            && *began >= asked
        {
            return made.clone();
        }
        let began = Instant::now();
        let made = make.await;
        *last = Some((began, made.clone()));
        made
    }

    fn last(&self, key: &K) -> Arc<Last<T>> {
        // No code panics while it holds the lock.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let (together, makings) = (Together::<u8, usize>::new(), AtomicUsize::new(0));
        let get = async |key: u8| {
            let making = async {
                let number = makings.fetch_add(1, SeqCst);
                tokio::task::yield_now().await;
                number
            };
            together.get(&key, making).await
        };
        assert_eq!(join_all([get(1), get(1), get(1), get(1)]).await, [0, 1, 1, 1]);
        assert_eq!(get(1).await, 2, "nothing is remembered");
        assert_eq!(join_all([get(1), get(2)]).await, [3, 4], "another thing is another making");
    }

    #[tokio::test]
    async fn what_one_leaves_another_makes() {
        let together = Together::<u8, u8>::new();
        let mut left = Box::pin(together.get(&1, std::future::pending()));
        assert!(futures::poll!(left.as_mut()).is_pending());
        let mut next = Box::pin(together.get(&1, async { 2 }));
        assert!(futures::poll!(next.as_mut()).is_pending());
        drop(left);
        assert_eq!(next.await, 2);
    }
}
