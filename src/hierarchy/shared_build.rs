//! [`SharedBuild`]: coalesces concurrent builds of the same value.
//!
//! A result is at least as new as the request: a caller does not get the build in flight, which may have started before a
//! write that the caller knows of. All waiting callers share the next build. If its result concerns only the caller that
//! ran it, the other callers build again. Nothing is cached once no caller waits.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// The last result for one key. Locked during a build.
type LastBuild<T> = tokio::sync::Mutex<Option<Built<T>>>;

/// A result, the start of its build, and the caller that ran it.
#[derive(Debug)]
struct Built<T> {
    started_at: Instant,
    caller: u64,
    result: T,
}

/// Builds in flight, by key.
#[derive(Debug)]
pub(crate) struct SharedBuild<K, T> {
    builds: Mutex<HashMap<K, Weak<LastBuild<T>>>>,
    /// Whether other callers may share a result: an error may concern the memory budget of one caller.
    is_shareable: fn(&T) -> bool,
}

impl<K: Eq + Hash + Clone, T: Clone> SharedBuild<K, T> {
    /// No builds. Results for which the predicate is false are not shared between callers.
    pub(crate) fn new(is_shareable: fn(&T) -> bool) -> Self {
        Self { builds: Mutex::default(), is_shareable }
    }

    /// Returns a result whose build started after this call and that this caller may share, or else runs `make`. If a
    /// caller is cancelled during its build, the next waiting caller builds.
    pub(crate) async fn get_or_build(&self, key: &K, caller: u64, make: impl Future<Output = T>) -> T {
        let requested_at = Instant::now();
        let last = self.last_build(key);
        let mut last = last.lock().await;
        if let Some(last) = &*last
            && last.started_at >= requested_at
            && (last.caller == caller || (self.is_shareable)(&last.result))
        {
            return last.result.clone();
        }
        let started_at = Instant::now();
        let result = make.await;
        *last = Some(Built { started_at, caller, result: result.clone() });
        result
    }

    fn last_build(&self, key: &K) -> Arc<LastBuild<T>> {
        // No code panics while it holds the lock.
        let mut all = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
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
    async fn waiting_callers_share_one_build_that_started_after_their_requests() {
        let (builds, count) = (SharedBuild::<u8, usize>::new(|_| true), AtomicUsize::new(0));
        let get = async |key: u8| {
            let build = async {
                let number = count.fetch_add(1, SeqCst);
                tokio::task::yield_now().await;
                number
            };
            builds.get_or_build(&key, 0, build).await
        };
        assert_eq!(join_all([get(1), get(1), get(1), get(1)]).await, [0, 1, 1, 1]);
        assert_eq!(get(1).await, 2, "nothing is cached");
        assert_eq!(join_all([get(1), get(2)]).await, [3, 4], "another key is another build");
    }

    #[tokio::test]
    async fn a_waiting_caller_builds_after_a_cancelled_build() {
        let builds = SharedBuild::<u8, u8>::new(|_| true);
        let mut left = Box::pin(builds.get_or_build(&1, 0, std::future::pending()));
        assert!(futures::poll!(left.as_mut()).is_pending());
        let mut next = Box::pin(builds.get_or_build(&1, 0, async { 2 }));
        assert!(futures::poll!(next.as_mut()).is_pending());
        drop(left);
        assert_eq!(next.await, 2);
    }

    #[tokio::test]
    async fn a_result_specific_to_one_caller_is_not_shared() {
        let builds = SharedBuild::<u8, Result<u8, u8>>::new(Result::is_ok);
        let get = |caller, results: Result<u8, u8>| {
            let build = async move {
                tokio::task::yield_now().await;
                results
            };
            builds.get_or_build(&1, caller, build)
        };
        // The first build is in flight when the others wait. The second result is for its own caller, the fourth for all.
        let results =
            [get(7, Err(1)), get(7, Err(2)), get(7, Err(3)), get(8, Ok(4)), get(9, Err(5)), get(7, Err(6))];
        assert_eq!(join_all(results).await, [Err(1), Err(2), Err(2), Ok(4), Ok(4), Ok(4)]);
    }
}
