//! [`DerivedStore`]: what a view adds to the read-only store that it is (Zarr core 3.1, "Abstract store interface").
//!
//! Everything but lookups and listings is that of the store under the view. Writes are rejected.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::hierarchy::Consolidated;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, MemoryBudget, SharedStore, Shortcuts, Store, StoreError,
    StoreKind, Value, ValueBody, ValueInfo, Version,
};

/// The listed keys of a view.
pub(super) type Entries = BoxStream<'static, Result<ListEntry, StoreError>>;

/// A view of a store.
pub(super) trait DerivedStore: Clone + Debug + Send + Sync + 'static {
    /// The store under the view.
    fn store_below(&self) -> &SharedStore;

    /// The same view, which charges the memory that it holds to a budget.
    fn charged_to(&self, budget: &Arc<dyn MemoryBudget>) -> Self;

    /// The size and version of a value.
    fn read_info(&self, key: &StoreKey)
    -> impl Future<Output = Result<Option<ValueInfo>, StoreError>> + Send;

    /// A range of a value; of the given version, if one is given.
    fn read(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> impl Future<Output = Result<Option<Value>, StoreError>> + Send;

    /// The keys and prefixes directly under a prefix, after a text.
    fn list_children(self, prefix: StorePrefix, after: String) -> DirEntries;

    /// Every key under a prefix, after another.
    fn list_keys(self, prefix: StorePrefix, after: Option<StoreKey>) -> Entries;

    /// The version of a value, where it takes less than [`DerivedStore::read_info`].
    fn read_version<'a>(
        &'a self,
        _key: &'a StoreKey,
    ) -> Option<BoxFuture<'a, Result<Option<ValueInfo>, StoreError>>> {
        None
    }
}

#[async_trait]
impl<S: DerivedStore> Store for S {
    fn kind(&self) -> StoreKind {
        self.store_below().kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.read_info(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        self.read(key, range, if_match).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.clone().list_children(prefix.clone(), after.to_owned())
    }

    fn list_prefix(&self, prefix: &StorePrefix, after: Option<&StoreKey>) -> Entries {
        self.clone().list_keys(prefix.clone(), after.cloned())
    }

    fn with_budget(&self, budget: &Arc<dyn MemoryBudget>) -> Option<SharedStore> {
        Some(Arc::new(self.charged_to(budget)))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.store_below().check().await
    }
}

impl<S: DerivedStore> Shortcuts for S {
    fn capabilities(&self) -> Capabilities {
        self.store_below().capabilities()
    }

    fn freshness_horizon(&self, began: Instant) -> Instant {
        self.store_below().freshness_horizon(began)
    }

    fn version<'a>(
        &'a self,
        key: &'a StoreKey,
    ) -> Option<BoxFuture<'a, Result<Option<ValueInfo>, StoreError>>> {
        self.read_version(key)
    }
}

/// The resolved range, if the value still has the requested version.
pub(super) fn resolve_range(
    info: &ValueInfo,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Range<u64>, StoreError> {
    if if_match.is_some_and(|version| *version != info.version) {
        return Err(StoreError::VersionChanged);
    }
    range.resolve(info.size).ok_or(StoreError::RangeNotSatisfiable { size: info.size })
}

/// A range of a generated value.
pub(super) fn slice_document(
    bytes: &Bytes,
    info: ValueInfo,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Value, StoreError> {
    let range = resolve_range(&info, range, if_match)?;
    let offset = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let body = ValueBody::Bytes(bytes.slice(offset(range.start)..offset(range.end)));
    Ok(Value::new(info, range, body))
}

/// Size and version of a generated value.
pub(super) fn document_info(text: &Bytes, version: Version) -> ValueInfo {
    ValueInfo { size: text.len() as u64, version, modified: None }
}

/// A range of generated consolidated metadata. If the budget of a request already counts its text, the body is a stream, so
/// that it is not charged twice.
pub(super) fn slice_consolidated(
    Consolidated { text, version }: Consolidated,
    is_charged: bool,
    range: ByteRange,
    if_match: Option<&Version>,
) -> Result<Value, StoreError> {
    let info = document_info(&text, version);
    let Value { info, range, body, .. } = slice_document(&text, info, range, if_match)?;
    let body = if is_charged { ValueBody::Stream(body.into_stream()) } else { body };
    Ok(Value::new(info, range, body))
}
