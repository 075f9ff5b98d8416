//! [`ViewStore`] as a read-only store (Zarr core 3.1, "Abstract store interface").
//!
//! The index and the data of a shard are read at one version. A change between them restarts the read, up to
//! [`MAX_ATTEMPTS`] times. Writes are rejected.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures::stream::BoxStream;

use super::list;
use super::view::{MAX_ATTEMPTS, ViewEntry, ViewStore, part_info, resolve_range};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, MemoryBudget, SharedStore, Shortcuts, Store, StoreError,
    StoreKind, Value, ValueBody, ValueInfo, Version,
};

#[async_trait]
impl Store for ViewStore {
    fn kind(&self) -> StoreKind {
        self.base_store().kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        Ok(match self.lookup(key).await? {
            ViewEntry::Absent => None,
            ViewEntry::Bytes(_, info) | ViewEntry::Unchanged(info) => Some(info),
            ViewEntry::Stored(key) => self.base_store().head(&key).await?,
            ViewEntry::Part(value, part) => Some(part_info(&value.info, &part)),
        })
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let (value, part) = match self.lookup(key).await? {
                ViewEntry::Absent => return Ok(None),
                ViewEntry::Unchanged(info) => {
                    if if_match.is_some_and(|version| *version != info.version) {
                        return Err(StoreError::VersionChanged);
                    }
                    let found = self.base_store().get(key, range, info.version.pin()).await;
                    match found {
                        Ok(Some(value)) if value.info.version == info.version => return Ok(Some(value)),
                        // It may be shown differently now, or be absent.
                        Ok(_) | Err(StoreError::VersionChanged) => {}
                        Err(error) => return Err(error),
                    }
                    if if_match.is_some() {
                        return Err(StoreError::VersionChanged);
                    }
                    continue;
                }
                ViewEntry::Stored(key) => return self.base_store().get(&key, range, if_match).await,
                ViewEntry::Bytes(bytes, info) => {
                    let range = resolve_range(&info, range, if_match)?;
                    let offset = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                    let body = ValueBody::Bytes(bytes.slice(offset(range.start)..offset(range.end)));
                    return Ok(Some(Value { info, range, body }));
                }
                ViewEntry::Part(value, part) => (value, part),
            };
            match Self::read_part(&value, &part, range, if_match).await {
                // It changed between index and data; the value may still exist, or not.
                Err(StoreError::VersionChanged) if if_match.is_none() => {}
                read => return read.map(Some),
            }
        }
        Err(StoreError::VersionChanged)
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        list::list_dir(self.clone(), prefix.clone(), after.to_owned())
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        list::list_prefix(self.clone(), prefix.clone(), after.cloned())
    }

    fn with_budget(&self, budget: &Arc<dyn MemoryBudget>) -> Option<SharedStore> {
        Some(Arc::new(self.with_request_budget(budget)))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.base_store().check().await
    }
}

impl Shortcuts for ViewStore {
    fn capabilities(&self) -> Capabilities {
        self.base_store().capabilities()
    }

    fn freshness_horizon(&self, began: Instant) -> Instant {
        self.base_store().freshness_horizon(began)
    }
}
