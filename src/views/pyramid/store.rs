//! [`PyramidStore`] as a read-only store.
//!
//! Documents and chunk keys of both format versions can be read. Listings contain those of v3 only, except for arrays
//! whose data type has no name in v3.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::built_chunk::BuiltChunk;
use super::view::{PyramidEntry, PyramidStore};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{ByteRange, DirEntries, MemoryBudget, SharedStore, StoreError, Value, ValueInfo, Version};
use crate::views::derived_store::{DerivedStore, Entries, document_info, slice_consolidated, slice_document};
use crate::views::error::to_store_error;
use crate::views::rechunk::{list_dir, list_prefix};

impl PyramidStore {
    /// The size and version of a value. A chunk that is not cached has none before it is encoded.
    async fn info(&self, key: &StoreKey, encodes: bool) -> Result<Option<ValueInfo>, StoreError> {
        let shared = &self.pyramids().rechunker;
        match self.lookup(key).await? {
            PyramidEntry::Absent => Ok(None),
            PyramidEntry::Document(_, info) => Ok(Some(info)),
            PyramidEntry::Consolidated(generated) => {
                Ok(Some(document_info(&generated.text, generated.version)))
            }
            PyramidEntry::Stored(key) => self.base_store().head(&key).await,
            PyramidEntry::Derived(chunk) => chunk.info(shared, encodes).await,
            PyramidEntry::Built(chunk) if !encodes => chunk.lookup().await.map_err(to_store_error),
            PyramidEntry::Built(chunk) => Ok(BuiltChunk::info(&chunk.get().await.map_err(to_store_error)?)),
        }
    }
}

impl DerivedStore for PyramidStore {
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
        let shared = &self.pyramids().rechunker;
        match self.lookup(key).await? {
            PyramidEntry::Absent => Ok(None),
            PyramidEntry::Document(text, info) => slice_document(&text, info, range, if_match).map(Some),
            PyramidEntry::Consolidated(generated) => {
                slice_consolidated(generated, self.has_budget(), range, if_match).map(Some)
            }
            PyramidEntry::Stored(key) => self.base_store().get(&key, range, if_match).await,
            PyramidEntry::Derived(chunk) => chunk.read(shared, range, if_match).await,
            PyramidEntry::Built(chunk) => {
                let built = chunk.get().await.map_err(to_store_error)?;
                let info = BuiltChunk::info(&built);
                let Some(((_, bytes), info)) = built.zip(info) else { return Ok(None) };
                let value = slice_document(&bytes, info, range, if_match)?;
                // It was built before this request.
                Ok(Some(Value { is_cached: true, ..value }))
            }
        }
    }

    fn list_children(self, prefix: StorePrefix, after: String) -> DirEntries {
        list_dir(self, prefix, after)
    }

    fn list_keys(self, prefix: StorePrefix, after: Option<StoreKey>) -> Entries {
        list_prefix(self, prefix, after)
    }

    fn read_version<'a>(
        &'a self,
        key: &'a StoreKey,
    ) -> Option<BoxFuture<'a, Result<Option<ValueInfo>, StoreError>>> {
        Some(Box::pin(self.info(key, false)))
    }
}
