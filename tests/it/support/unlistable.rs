//! A store that cannot list, like most web servers, and that counts requests for chunks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use zarrd::key::{StoreKey, StorePrefix};
use zarrd::store::{
    ByteRange, DirEntries, ListEntry, SetResult, SharedStore, Shortcuts, Store, StoreError, StoreKind, Value,
    ValueInfo, ValueStream, Version, WriteCondition,
};

/// Everything but its listings is the inner store's.
#[derive(Debug)]
pub struct Unlistable {
    inner: SharedStore,
    chunk_requests: AtomicUsize,
}

impl Unlistable {
    pub fn new(inner: SharedStore) -> Arc<Self> {
        Arc::new(Self { inner, chunk_requests: AtomicUsize::new(0) })
    }

    /// How often the version of a key with a numeric name was requested.
    pub fn chunk_requests(&self) -> usize {
        self.chunk_requests.load(SeqCst)
    }
}

#[async_trait]
impl Store for Unlistable {
    fn kind(&self) -> StoreKind {
        StoreKind::HTTP
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        if key.name().starts_with(|c: char| c.is_ascii_digit()) {
            self.chunk_requests.fetch_add(1, SeqCst);
        }
        self.inner.head(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        self.inner.get(key, range, if_match).await
    }

    async fn set(&self, _: &StoreKey, _: ValueStream, _: WriteCondition) -> Result<SetResult, StoreError> {
        Err(StoreError::ReadOnly)
    }

    async fn erase(&self, _: &StoreKey, _: WriteCondition) -> Result<bool, StoreError> {
        Err(StoreError::ReadOnly)
    }

    async fn erase_prefix(&self, _: &StorePrefix) -> Result<u64, StoreError> {
        Err(StoreError::ReadOnly)
    }

    fn list_dir_after(&self, _: &StorePrefix, _: &str) -> DirEntries {
        stream::once(std::future::ready(Err(StoreError::NotListable))).boxed()
    }

    fn list_prefix(
        &self,
        _: &StorePrefix,
        _: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        futures::stream::iter([Err(StoreError::NotListable)]).boxed()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

impl Shortcuts for Unlistable {}
