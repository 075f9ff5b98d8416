//! A store that notes the order of its writes, fails one of them, and lets others write just before one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use zarrd::key::{StoreKey, StorePrefix};
use zarrd::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, OwnArea, SetResult, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueInfo, ValueStream, Version, WriteCondition,
};

use super::server::put;

/// What another client writes.
type Written = (String, Bytes);

/// Everything else is the inner store's.
#[derive(Debug)]
pub struct Journal {
    inner: SharedStore,
    writes: Mutex<Vec<String>>,
    /// How many writes are left until all fail.
    left: AtomicUsize,
    /// Whether erasures of prefixes fail.
    keeps_prefixes: AtomicBool,
    /// What others write just before the write of a key.
    before: Mutex<HashMap<String, Vec<Written>>>,
}

impl Journal {
    pub fn new(inner: SharedStore) -> Arc<Self> {
        Arc::new(Self {
            inner,
            writes: Mutex::default(),
            left: AtomicUsize::new(usize::MAX),
            keeps_prefixes: AtomicBool::new(false),
            before: Mutex::default(),
        })
    }

    /// The writes so far: `set KEY` and `erase KEY`.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }

    /// From now on, all writes after this number of them fail.
    pub fn fail_after(&self, writes: usize) {
        self.left.store(writes, SeqCst);
    }

    /// From now on, erasures of prefixes fail.
    pub fn keep_prefixes(&self) {
        self.keeps_prefixes.store(true, SeqCst);
    }

    /// Just before the next write of a key, another client writes these values.
    pub fn write_before(&self, key: &str, written: &[(&str, &[u8])]) {
        let written = written.iter().map(|(key, value)| ((*key).to_owned(), Bytes::copy_from_slice(value)));
        self.before.lock().unwrap().insert(key.to_owned(), written.collect());
    }

    async fn note(&self, verb: &str, key: &StoreKey) -> Result<(), StoreError> {
        let others = self.before.lock().unwrap().remove(key.as_str());
        for (key, value) in others.into_iter().flatten() {
            put(&self.inner, &key, value).await;
        }
        let may = self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
        if !may {
            return Err(StoreError::Backend(Arc::new(std::io::Error::other("no more writes"))));
        }
        self.writes.lock().unwrap().push(format!("{verb} {key}"));
        Ok(())
    }
}

#[async_trait]
impl Store for Journal {
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
        self.inner.get(key, range, if_match).await
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.note("set", key).await?;
        self.inner.set(key, body, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.note("erase", key).await?;
        self.inner.erase(key, condition).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        if self.keeps_prefixes.load(SeqCst) {
            return Err(StoreError::Backend(Arc::new(std::io::Error::other("a prefix that stays"))));
        }
        self.inner.erase_prefix(prefix).await
    }

    async fn own_area(&self, area: OwnArea) -> Result<SharedStore, StoreError> {
        self.inner.own_area(area).await
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

impl Shortcuts for Journal {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}
