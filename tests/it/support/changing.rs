//! A store in which a value is replaced just before it is read at a version, or another is written, as often as a test wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use zarrd::key::{StoreKey, StorePrefix};
use zarrd::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, SetResult, SharedStore, Shortcuts, Store, StoreError,
    StoreKind, Value, ValueInfo, ValueStream, Version, WriteCondition,
};

use super::server::put;

/// Everything else is the inner store's.
#[derive(Debug)]
pub struct Changing {
    inner: SharedStore,
    key: StoreKey,
    value: Bytes,
    /// The key whose write comes just after; `None` for a read of the value itself at a version.
    written: Option<StoreKey>,
    left: AtomicUsize,
}

impl Changing {
    /// So often, this key gets this value.
    pub fn new(inner: SharedStore, key: &str, value: Bytes, times: usize) -> Arc<Self> {
        let (key, left) = (StoreKey::parse(key).unwrap(), AtomicUsize::new(times));
        Arc::new(Self { inner, key, value, written: None, left })
    }

    /// Just before the next write of the key `written`, this key gets this value.
    pub fn before_write(inner: SharedStore, written: &str, key: &str, value: Bytes) -> Arc<Self> {
        let (key, written) = (StoreKey::parse(key).unwrap(), StoreKey::parse(written).ok());
        Arc::new(Self { inner, key, value, written, left: AtomicUsize::new(1) })
    }

    async fn change(&self) {
        if self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            put(&self.inner, self.key.as_str(), self.value.clone()).await;
        }
    }
}

#[async_trait]
impl Store for Changing {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.inner.head(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        if *key == self.key && if_match.is_some() && self.written.is_none() {
            self.change().await;
        }
        self.inner.get(key, range, if_match).await
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        if self.written.as_ref() == Some(key) {
            self.change().await;
        }
        self.inner.set(key, body, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.inner.erase(key, condition).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.inner.erase_prefix(prefix).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.inner.list_dir_after(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.inner.list_prefix(prefix, after)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

impl Shortcuts for Changing {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}
