//! [`ViewStore`] as a read-only store.
//!
//! The index and the data of a shard are read at one version. A change between them restarts the read, up to
//! [`MAX_ATTEMPTS`] times.

use std::sync::Arc;

use super::derived_store::{DerivedStore, Entries, slice_document};
use super::list;
use super::view::{MAX_ATTEMPTS, ViewEntry, ViewStore, part_info};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{ByteRange, DirEntries, MemoryBudget, SharedStore, StoreError, Value, ValueInfo, Version};

impl DerivedStore for ViewStore {
    fn store_below(&self) -> &SharedStore {
        self.base_store()
    }

    fn charged_to(&self, budget: &Arc<dyn MemoryBudget>) -> Self {
        self.with_request_budget(budget)
    }

    async fn read_info(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        Ok(match self.lookup(key).await? {
            ViewEntry::Absent => None,
            ViewEntry::Bytes(_, info) | ViewEntry::Unchanged(info) => Some(info),
            ViewEntry::Stored(key) => self.base_store().head(&key).await?,
            ViewEntry::Part(value, part) => Some(part_info(&value.info, &part)),
        })
    }

    async fn read(
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
                    return slice_document(&bytes, info, range, if_match).map(Some);
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

    fn list_children(self, prefix: StorePrefix, after: String) -> DirEntries {
        list::list_dir(self, prefix, after)
    }

    fn list_keys(self, prefix: StorePrefix, after: Option<StoreKey>) -> Entries {
        list::list_prefix(self, prefix, after)
    }
}
