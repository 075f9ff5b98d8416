//! [`RechunkStore`] as a read-only store.
//!
//! Documents and chunk keys of both format versions can be read. Listings contain those of v3 only, except for arrays
//! whose data type has no name in v3.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::key_walk;
use super::view::{RechunkEntry, RechunkStore};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{ByteRange, DirEntries, MemoryBudget, SharedStore, StoreError, Value, ValueInfo, Version};
use crate::views::derived_store::{DerivedStore, Entries, document_info, slice_consolidated, slice_document};

impl RechunkStore {
    /// The size and version of a value. A chunk that is not cached has none before it is encoded.
    async fn info(&self, key: &StoreKey, encodes: bool) -> Result<Option<ValueInfo>, StoreError> {
        match self.lookup(key).await? {
            RechunkEntry::Absent => Ok(None),
            RechunkEntry::Document(_, info) => Ok(Some(info)),
            RechunkEntry::Consolidated(generated) => {
                Ok(Some(document_info(&generated.text, generated.version)))
            }
            RechunkEntry::Stored => self.base_store().head(key).await,
            RechunkEntry::Chunk(chunk) => chunk.info(self.shared(), encodes).await,
        }
    }
}

impl DerivedStore for RechunkStore {
    fn store_below(&self) -> &SharedStore {
        self.base_store()
    }

    fn charged_to(&self, budget: &Arc<dyn MemoryBudget>) -> Self {
        self.with_request_budget(budget)
    }

    async fn read_info(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.info(key, true).await
    }

    async fn read(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        match self.lookup(key).await? {
            RechunkEntry::Absent => Ok(None),
            RechunkEntry::Document(text, info) => slice_document(&text, info, range, if_match).map(Some),
            RechunkEntry::Consolidated(generated) => {
                slice_consolidated(generated, self.has_budget(), range, if_match).map(Some)
            }
            RechunkEntry::Stored => self.base_store().get(key, range, if_match).await,
            RechunkEntry::Chunk(chunk) => chunk.read(self.shared(), range, if_match).await,
        }
    }

    fn list_children(self, prefix: StorePrefix, after: String) -> DirEntries {
        key_walk::list_dir(self, prefix, after)
    }

    fn list_keys(self, prefix: StorePrefix, after: Option<StoreKey>) -> Entries {
        key_walk::list_prefix(self, prefix, after)
    }

    fn read_version<'a>(
        &'a self,
        key: &'a StoreKey,
    ) -> Option<BoxFuture<'a, Result<Option<ValueInfo>, StoreError>>> {
        Some(Box::pin(self.info(key, false)))
    }
}
