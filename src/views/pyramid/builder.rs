//! [`PyramidBuilder`]: computes chunks of levels in the background, one at a time.
//!
//! A chunk that is requested while it is built is built once. The last chunks that were built stay in memory until they are
//! requested, even where the cache does not hold them. A failure is returned once, to the next request.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::future::BoxFuture;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use crate::array::ArrayError;
use crate::cache::{EncodedChunk, EncodedKey};

/// The most chunks that wait or are being built.
const MAX_QUEUED: usize = 1024;
/// The most failures that are kept until a request.
const MAX_FAILURES: usize = 256;
/// The most bytes of chunks that are kept until a request, beside the last one.
const MAX_KEPT_BYTES: usize = 16 << 20;
/// Above this number of checks, those that have ended are removed.
const MAX_ENDED_CHECKS: usize = 256;

/// Builds chunks in the background. Clones share the queue.
#[derive(Clone, Debug)]
pub struct PyramidBuilder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// One build at a time: requests that are answered at once go first.
    slot: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    queued: HashSet<EncodedKey>,
    failures: HashMap<EncodedKey, ArrayError>,
    kept: VecDeque<(EncodedKey, EncodedChunk)>,
    kept_bytes: usize,
    /// The lock of each check in progress.
    checks: HashMap<EncodedKey, Weak<AsyncMutex<()>>>,
}

/// What became of a request to build a chunk.
#[derive(Debug)]
pub(super) enum BuildRequest {
    /// It is being built.
    Queued,
    /// Too many others are.
    Full,
    /// It could not be built.
    Failed(ArrayError),
}

impl Default for PyramidBuilder {
    fn default() -> Self {
        Self(Arc::new(Inner { state: Mutex::default(), slot: Semaphore::new(1) }))
    }
}

impl PyramidBuilder {
    /// No code panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a chunk built by `build`, unless that is in progress.
    pub(super) fn request(
        &self,
        key: &EncodedKey,
        build: BoxFuture<'static, Result<EncodedChunk, ArrayError>>,
    ) -> BuildRequest {
        let mut state = self.state();
        if let Some(error) = state.failures.remove(key) {
            return BuildRequest::Failed(error);
        }
        if state.queued.contains(key) {
            return BuildRequest::Queued;
        }
        if state.queued.len() >= MAX_QUEUED {
            return BuildRequest::Full;
        }
        state.queued.insert(key.clone());
        drop(state);
        let (builder, key) = (self.clone(), key.clone());
        tokio::spawn(async move {
            // Removes the entry even if the build panics.
            let queued = Queued { builder: &builder, key: &key };
            let _slot = builder.0.slot.acquire().await;
            let built = build.await;
            if let Err(error) = &built {
                tracing::debug!(path = %key.path, %error, "a chunk of a level cannot be built");
            }
            builder.state().finish(&key, built);
            drop(queued);
        });
        BuildRequest::Queued
    }

    /// A chunk that was built and is still kept.
    pub(super) fn kept(&self, key: &EncodedKey) -> Option<EncodedChunk> {
        let state = self.state();
        state.kept.iter().rev().find(|(known, _)| known == key).map(|(_, chunk)| chunk.clone())
    }

    /// The lock that a check of a chunk holds.
    pub(super) fn check_of(&self, key: &EncodedKey) -> Arc<AsyncMutex<()>> {
        let mut state = self.state();
        if let Some(check) = state.checks.get(key).and_then(Weak::upgrade) {
            return check;
        }
        if state.checks.len() >= MAX_ENDED_CHECKS {
            state.checks.retain(|_, check| check.strong_count() > 0);
        }
        let check = Arc::new(AsyncMutex::new(()));
        state.checks.insert(key.clone(), Arc::downgrade(&check));
        check
    }
}

impl State {
    /// Keeps the result of a build.
    fn finish(&mut self, key: &EncodedKey, built: Result<EncodedChunk, ArrayError>) {
        let bytes = |chunk: &EncodedChunk| chunk.as_ref().map_or(0, |(_, bytes)| bytes.len());
        match built {
            Err(error) => {
                if self.failures.len() >= MAX_FAILURES {
                    self.failures.clear();
                }
                self.failures.insert(key.clone(), error);
            }
            Ok(chunk) => {
                self.kept_bytes += bytes(&chunk);
                self.kept.push_back((key.clone(), chunk));
                while (self.kept_bytes > MAX_KEPT_BYTES || self.kept.len() > MAX_QUEUED)
                    && self.kept.len() > 1
                {
                    let Some((_, oldest)) = self.kept.pop_front() else { break };
                    self.kept_bytes -= bytes(&oldest);
                }
            }
        }
    }
}

/// A chunk in the queue.
struct Queued<'a> {
    builder: &'a PyramidBuilder,
    key: &'a EncodedKey,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.builder.state().queued.remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;

    use super::*;
    use crate::key::NodePath;
    use crate::store::Version;

    fn key(number: u64) -> EncodedKey {
        let path = NodePath::parse("a/1").unwrap();
        EncodedKey { mount: "m".into(), path, recipe: "auto".into(), coords: vec![number] }
    }

    fn chunk(bytes: usize) -> (Version, Bytes) {
        (Version::strong("v"), Bytes::from(vec![0; bytes]))
    }

    async fn settled(builder: &PyramidBuilder) {
        while !builder.state().queued.is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_chunk_is_built_once_and_kept_until_it_is_requested() {
        let (builder, builds) = (PyramidBuilder::default(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..10 {
            let builds = Arc::clone(&builds);
            let build = Box::pin(async move {
                builds.fetch_add(1, Ordering::SeqCst);
                Ok(Some(chunk(3)))
            });
            assert!(matches!(builder.request(&key(0), build), BuildRequest::Queued));
        }
        assert!(builder.kept(&key(0)).is_none());
        settled(&builder).await;
        assert_eq!(builds.load(Ordering::SeqCst), 1);
        assert_eq!(builder.kept(&key(0)), Some(Some(chunk(3))));
        assert_eq!(builder.kept(&key(1)), None);
    }

    #[tokio::test]
    async fn a_failure_is_returned_once() {
        let builder = PyramidBuilder::default();
        let fails = || Box::pin(std::future::ready(Err(ArrayError::Geometry)));
        assert!(matches!(builder.request(&key(0), fails()), BuildRequest::Queued));
        settled(&builder).await;
        assert!(matches!(builder.request(&key(0), fails()), BuildRequest::Failed(ArrayError::Geometry)));
        assert!(matches!(builder.request(&key(0), fails()), BuildRequest::Queued));
    }

    #[tokio::test]
    async fn the_queue_and_what_is_kept_are_bounded() {
        let builder = PyramidBuilder::default();
        let build = |bytes: usize| Box::pin(std::future::ready(Ok(Some(chunk(bytes)))));
        for number in 0..MAX_QUEUED as u64 {
            assert!(matches!(builder.request(&key(number), build(1 << 20)), BuildRequest::Queued));
        }
        assert!(matches!(builder.request(&key(u64::MAX), build(1)), BuildRequest::Full));
        settled(&builder).await;
        assert!(builder.state().kept_bytes <= MAX_KEPT_BYTES);
        assert!(matches!(builder.request(&key(u64::MAX), build(64 << 20)), BuildRequest::Queued));
        settled(&builder).await;
        assert_eq!(builder.state().kept.len(), 1);
    }
}
