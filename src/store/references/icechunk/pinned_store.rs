//! [`PinnedStore`]: a store with versions, where the keys of one version lead to those of one snapshot.
//!
//! What a request reads by several calls, through caches by key, is of one snapshot so: the keys of the store
//! below have the snapshot in them.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};

use super::id::ObjectId;
use super::version::{MARK, PinnedVersion};
use crate::key::{KeyError, StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, DirEntries, DirEntry, ListEntry, MemoryBudget, RepositoryVersions, SharedStore,
    Shortcuts, Store, StoreError, StoreKind, Value, ValueInfo, Version,
};

/// A store in which the keys of a version lead to those of a snapshot.
#[derive(Clone, Debug)]
pub struct PinnedStore {
    inner: SharedStore,
    /// What the keys of the version begin with: nothing, or `@branch.NAME/`.
    from: Arc<str>,
    /// What they begin with below: `@SNAPSHOT/`.
    to: Arc<str>,
}

impl PinnedStore {
    /// The store `inner`, whose version `version` is at a snapshot; `None` stands for keys without a version.
    #[must_use]
    pub fn new(inner: SharedStore, version: Option<&PinnedVersion>, snapshot: ObjectId) -> Self {
        let from = version.map_or_else(String::new, |version| format!("{MARK}{version}/"));
        Self { inner, from: from.into(), to: format!("{MARK}{snapshot}/").into() }
    }

    /// The text that a key or prefix has below.
    fn below(&self, text: &str) -> Option<String> {
        let rest = text.strip_prefix(&*self.from)?;
        let is_other = self.from.is_empty() && rest.starts_with(MARK);
        (!is_other).then(|| format!("{}{rest}", self.to))
    }

    /// The text that a key or prefix of the snapshot has here.
    fn above(&self, text: &str) -> String {
        text.strip_prefix(&*self.to).map_or_else(|| text.to_owned(), |rest| format!("{}{rest}", self.from))
    }

    fn key(&self, key: &StoreKey) -> Result<StoreKey, StoreError> {
        match self.below(key.as_str()) {
            None => Ok(key.clone()),
            Some(text) => StoreKey::parse(&text).map_err(too_long),
        }
    }

    fn prefix(&self, prefix: &StorePrefix) -> Result<StorePrefix, StoreError> {
        match self.below(prefix.as_str()) {
            None => Ok(prefix.clone()),
            Some(text) => StorePrefix::parse(&text).map_err(too_long),
        }
    }

    /// An entry of a listing; `None` for one whose key has the mark of a version, and so names something else here.
    fn listed(&self, entry: ListEntry) -> Result<Option<ListEntry>, StoreError> {
        let text = self.above(entry.key.as_str());
        if self.is_hidden(&text) {
            return Ok(None);
        }
        let key = StoreKey::parse(&text).map_err(too_long)?;
        Ok(Some(ListEntry { key, ..entry }))
    }

    fn is_hidden(&self, text: &str) -> bool {
        self.from.is_empty() && text.starts_with(MARK)
    }

    fn directly_listed(&self, entry: DirEntry) -> Result<Option<DirEntry>, StoreError> {
        let prefix = match entry {
            DirEntry::Key(entry) => return Ok(self.listed(entry)?.map(DirEntry::Key)),
            DirEntry::Prefix(prefix) => self.above(prefix.as_str()),
        };
        if self.is_hidden(&prefix) {
            return Ok(None);
        }
        StorePrefix::parse(&prefix).map(|prefix| Some(DirEntry::Prefix(prefix))).map_err(too_long)
    }
}

/// A key with the id of a snapshot before it is longer than keys may be.
fn too_long(_fault: KeyError) -> StoreError {
    StoreError::InvalidKey("it is too long for a hierarchy with versions")
}

#[async_trait]
impl Store for PinnedStore {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    fn is_replaced(&self) -> bool {
        self.inner.is_replaced()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.inner.head(&self.key(key)?).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        self.inner.get(&self.key(key)?, range, if_match).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        if self.below(prefix.as_str()).is_none() {
            return self.inner.list_dir_after(prefix, after);
        }
        let below = match self.prefix(prefix) {
            Ok(below) => below,
            Err(error) => return futures::stream::once(std::future::ready(Err(error))).boxed(),
        };
        let after = if after.is_empty() { None } else { self.below(after) };
        let store = self.clone();
        let entries = self.inner.list_dir_after(&below, &after.unwrap_or_default());
        let entries = entries.try_filter_map(move |entry| std::future::ready(store.directly_listed(entry)));
        entries.boxed()
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        // Of another version, and listed as such.
        if self.below(prefix.as_str()).is_none() {
            return self.inner.list_prefix(prefix, after);
        }
        let places = self
            .prefix(prefix)
            .and_then(|below| Ok((below, after.map(|after| self.key(after)).transpose()?)));
        let (below, after) = match places {
            Ok(places) => places,
            Err(error) => return futures::stream::once(std::future::ready(Err(error))).boxed(),
        };
        let store = self.clone();
        let entries = self.inner.list_prefix(&below, after.as_ref());
        entries.try_filter_map(move |entry| std::future::ready(store.listed(entry))).boxed()
    }

    fn with_budget(&self, budget: &Arc<dyn MemoryBudget>) -> Option<SharedStore> {
        let inner = self.inner.with_budget(budget)?;
        Some(Arc::new(Self { inner, ..self.clone() }))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

impl Shortcuts for PinnedStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn backend(&self) -> Option<crate::store::BackendState> {
        self.inner.backend()
    }

    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        self.key(key).is_ok_and(|key| self.inner.validate_cached(&key, version))
    }

    fn freshness_horizon(&self, began: std::time::Instant) -> std::time::Instant {
        self.inner.freshness_horizon(began)
    }

    fn served_version(&self) -> Option<PinnedVersion> {
        self.inner.served_version()
    }

    fn resolve_version<'a>(
        &'a self,
        version: &'a PinnedVersion,
    ) -> Option<BoxFuture<'a, Result<Option<ObjectId>, StoreError>>> {
        self.inner.resolve_version(version)
    }

    fn versions(&self) -> Option<BoxFuture<'_, Result<RepositoryVersions, StoreError>>> {
        self.inner.versions()
    }

    fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }
}
