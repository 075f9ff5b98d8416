//! [`RechunkStore`] as a read-only store (Zarr core 3.1, "Abstract store interface").
//!
//! Documents and chunk keys of both format versions can be read. Listings contain those of v3 only, except for arrays
//! whose data type has no name in v3. Writes are rejected.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use super::list;
use super::view::{RechunkEntry, RechunkStore, document_info, slice_document};
use crate::hierarchy::Consolidated;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, MemoryBudget, SharedStore, Shortcuts, Store, StoreError,
    StoreKind, Value, ValueBody, ValueInfo, Version,
};
use crate::views::error::to_store_error;

#[async_trait]
impl Store for RechunkStore {
    fn kind(&self) -> StoreKind {
        self.base_store().kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        match self.lookup(key).await? {
            RechunkEntry::Absent => Ok(None),
            RechunkEntry::Document(_, info) => Ok(Some(info)),
            RechunkEntry::Consolidated(generated) => {
                Ok(Some(document_info(&generated.text, generated.version)))
            }
            RechunkEntry::Stored => self.base_store().head(key).await,
            RechunkEntry::Chunk(chunk) => {
                let generated = chunk.get_or_encode(self.shared()).await.map_err(to_store_error)?;
                Ok(generated.map(|(_, info)| info))
            }
        }
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        match self.lookup(key).await? {
            RechunkEntry::Absent => Ok(None),
            RechunkEntry::Document(text, info) => slice_document(&text, info, range, if_match).map(Some),
            RechunkEntry::Consolidated(Consolidated { text, version }) => {
                let info = document_info(&text, version);
                let Value { info, range, body } = slice_document(&text, info, range, if_match)?;
                // A stream, because the budget of the request already counts the text.
                let body = if self.has_budget() { ValueBody::Stream(body.into_stream()) } else { body };
                Ok(Some(Value { info, range, body }))
            }
            RechunkEntry::Stored => self.base_store().get(key, range, if_match).await,
            RechunkEntry::Chunk(chunk) => {
                // A chunk of another version need not be encoded.
                if let Some(version) = if_match
                    && let Some(info) = chunk.lookup(self.shared()).await.map_err(to_store_error)?
                    && info.version != *version
                {
                    return Err(StoreError::VersionChanged);
                }
                match chunk.get_or_encode(self.shared()).await.map_err(to_store_error)? {
                    None => Ok(None),
                    Some((bytes, info)) => slice_document(&bytes, info, range, if_match).map(Some),
                }
            }
        }
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

impl Shortcuts for RechunkStore {
    fn capabilities(&self) -> Capabilities {
        self.base_store().capabilities()
    }

    fn freshness_horizon(&self, began: Instant) -> Instant {
        self.base_store().freshness_horizon(began)
    }

    fn version<'a>(
        &'a self,
        key: &'a StoreKey,
    ) -> Option<BoxFuture<'a, Result<Option<ValueInfo>, StoreError>>> {
        Some(Box::pin(async move {
            match self.lookup(key).await? {
                RechunkEntry::Absent => Ok(None),
                RechunkEntry::Document(_, info) => Ok(Some(info)),
                RechunkEntry::Consolidated(generated) => {
                    Ok(Some(document_info(&generated.text, generated.version)))
                }
                RechunkEntry::Stored => self.base_store().head(key).await,
                RechunkEntry::Chunk(chunk) => chunk.lookup(self.shared()).await.map_err(to_store_error),
            }
        }))
    }
}
