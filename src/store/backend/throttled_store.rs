//! [`ThrottledStore`]: a store that limits the requests to its remote backend.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, Stream, StreamExt, TryStreamExt};

use super::circuit_breaker::CircuitBreaker;
use super::concurrency_limit::ConcurrencyLimit;
use super::state::BackendState;
use crate::key::{StoreKey, StorePrefix};
use crate::store::object::is_backend_failure;
use crate::store::{
    ByteRange, CopyResult, DirEntries, ListEntry, SetResult, SharedStore, Shortcuts, Store, StoreError,
    StoreKind, Value, ValueBody, ValueInfo, ValueStream, Version, WriteCondition,
};

/// How much a backend may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct ThrottleOptions {
    /// Questions under way at a time.
    pub(in crate::store) requests: usize,
    /// How long one waits for its turn.
    pub(in crate::store) queue: Duration,
    /// How many must fail for the backend to be left alone; 0 for never.
    pub(in crate::store) failures: usize,
}

/// A store that asks with restraint. Clones share it.
#[derive(Clone, Debug)]
pub(in crate::store) struct ThrottledStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: SharedStore,
    turns: ConcurrencyLimit,
    breaker: CircuitBreaker,
}

impl ThrottledStore {
    pub(in crate::store) fn new(store: SharedStore, restraint: ThrottleOptions) -> Self {
        let turns = ConcurrencyLimit::new(restraint.requests, restraint.queue);
        Self(Arc::new(Inner { store, turns, breaker: CircuitBreaker::new(restraint.failures) }))
    }
}

impl Inner {
    /// Asks when it is its turn.
    async fn call<T>(&self, question: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.breaker.check()?;
        let _turn = self.turns.take().await?;
        self.attempt(question).await
    }

    /// Asks, if the backend is to be asked at all.
    async fn attempt<T>(
        &self,
        question: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        // It may be so no longer, after the wait for a turn.
        let attempt = self.breaker.begin()?;
        let outcome = question.await;
        attempt.end(outcome.as_ref().is_err_and(is_backend_failure));
        outcome
    }

    /// A listing, which begins when it is its turn.
    fn listed<T: Send + 'static>(
        self: Arc<Self>,
        mut entries: BoxStream<'static, Result<T, StoreError>>,
    ) -> BoxStream<'static, Result<T, StoreError>> {
        let listed = async move {
            let first = self.call(entries.try_next()).await?;
            Ok::<_, StoreError>(stream::iter(first.map(Ok)).chain(self.watched(entries)))
        };
        stream::once(listed).try_flatten().boxed()
    }

    /// The same, with failures counted.
    fn watched<T>(
        self: Arc<Self>,
        parts: impl Stream<Item = Result<T, StoreError>>,
    ) -> impl Stream<Item = Result<T, StoreError>> {
        parts.inspect_err(move |error| {
            if is_backend_failure(error) {
                self.breaker.failed();
            }
        })
    }
}

#[async_trait]
impl Store for ThrottledStore {
    fn kind(&self) -> StoreKind {
        self.0.store.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.0.call(self.0.store.head(key)).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let Some(value) = self.0.call(self.0.store.get(key, range, if_match)).await? else { return Ok(None) };
        let body = match value.body {
            ValueBody::Stream(parts) => ValueBody::Stream(Arc::clone(&self.0).watched(parts).boxed()),
            at_hand @ ValueBody::Bytes(_) => at_hand,
        };
        Ok(Some(Value { body, ..value }))
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.0.attempt(self.0.store.set(key, body, condition)).await
    }

    async fn copy(
        &self,
        from: &StoreKey,
        if_match: Option<&Version>,
        to: &StoreKey,
        condition: WriteCondition,
    ) -> Result<Option<CopyResult>, StoreError> {
        self.0.attempt(self.0.store.copy(from, if_match, to, condition)).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.0.call(self.0.store.erase(key, condition)).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.0.call(self.0.store.erase_prefix(prefix)).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        Arc::clone(&self.0).listed(self.0.store.list_dir_after(prefix, after))
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        Arc::clone(&self.0).listed(self.0.store.list_prefix(prefix, after))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.0.call(self.0.store.check()).await
    }
}

impl Shortcuts for ThrottledStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.0.store)
    }

    fn backend(&self) -> Option<BackendState> {
        let Inner { turns, breaker, .. } = &*self.0;
        let (under_way, waiting, limit) = (turns.in_flight(), turns.waiting(), turns.limit());
        let (circuit, times_opened) = (breaker.circuit(), breaker.opened_total());
        Some(BackendState { circuit, times_opened, under_way, waiting, limit })
    }
}
