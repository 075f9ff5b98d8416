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
    ByteRange, CopyResult, DirEntries, ListEntry, OwnArea, SetResult, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueBody, ValueInfo, ValueStream, Version, WriteCondition,
};

/// Limits on the requests to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct ThrottleOptions {
    /// The most concurrent requests.
    pub(in crate::store) requests: usize,
    /// The longest wait in the queue.
    pub(in crate::store) queue: Duration,
    /// The number of failures that opens the circuit; 0 for never.
    pub(in crate::store) failures: usize,
}

/// A store behind a concurrency limit and a circuit breaker. Clones share both.
#[derive(Clone, Debug)]
pub(in crate::store) struct ThrottledStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: SharedStore,
    limit: Arc<ConcurrencyLimit>,
    breaker: Arc<CircuitBreaker>,
}

impl ThrottledStore {
    pub(in crate::store) fn new(store: SharedStore, options: ThrottleOptions) -> Self {
        let limit = Arc::new(ConcurrencyLimit::new(options.requests, options.queue));
        let breaker = Arc::new(CircuitBreaker::new(options.failures));
        Self(Arc::new(Inner { store, limit, breaker }))
    }
}

impl Inner {
    /// Sends a request once it has a permit.
    async fn call<T>(&self, request: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.breaker.check()?;
        let _permit = self.limit.acquire().await?;
        self.attempt(request).await
    }

    /// Sends a request, if the circuit breaker admits it.
    async fn attempt<T>(
        &self,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        // The circuit may have opened during the wait for a permit.
        let attempt = self.breaker.begin()?;
        let outcome = request.await;
        attempt.end(outcome.as_ref().is_err_and(is_backend_failure));
        outcome
    }

    /// A listing, whose first request waits for a permit.
    fn throttle_listing<T: Send + 'static>(
        self: Arc<Self>,
        mut entries: BoxStream<'static, Result<T, StoreError>>,
    ) -> BoxStream<'static, Result<T, StoreError>> {
        let throttle_listing = async move {
            let first = self.call(entries.try_next()).await?;
            Ok::<_, StoreError>(stream::iter(first.map(Ok)).chain(self.count_failures(entries)))
        };
        stream::once(throttle_listing).try_flatten().boxed()
    }

    /// The same stream, with its failures counted by the circuit breaker.
    fn count_failures<T>(
        self: Arc<Self>,
        parts: impl Stream<Item = Result<T, StoreError>>,
    ) -> impl Stream<Item = Result<T, StoreError>> {
        parts.inspect_err(move |error| {
            if is_backend_failure(error) {
                self.breaker.record_failure();
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
            bytes @ ValueBody::Bytes(_) => bytes,
            longer @ (ValueBody::Stream(_) | ValueBody::File(_)) => {
                ValueBody::Stream(Arc::clone(&self.0).count_failures(longer.into_stream()).boxed())
            }
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

    /// Under the same limits.
    async fn own_area(&self, area: OwnArea) -> Result<SharedStore, StoreError> {
        let store = self.0.store.own_area(area).await?;
        let (limit, breaker) = (Arc::clone(&self.0.limit), Arc::clone(&self.0.breaker));
        Ok(Arc::new(Self(Arc::new(Inner { store, limit, breaker }))))
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        Arc::clone(&self.0).throttle_listing(self.0.store.list_dir_after(prefix, after))
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        Arc::clone(&self.0).throttle_listing(self.0.store.list_prefix(prefix, after))
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
        let Inner { limit, breaker, .. } = &*self.0;
        let (in_flight, waiting, limit) = (limit.in_flight(), limit.waiting(), limit.limit());
        let (circuit, opened_total) = (breaker.circuit(), breaker.opened_total());
        Some(BackendState { circuit, opened_total, in_flight, waiting, limit })
    }
}
