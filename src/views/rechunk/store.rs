//! [`RechunkStore`] as a read-only store (Zarr core 3.1, "Abstract store interface").
//!
//! Documents of both format versions and chunks by the keys of both are there at once; the listing has those of v3 alone,
//! but for arrays whose type has no word there. Consolidated metadata is made where the stored hierarchy has some.
//! Writes are refused.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use super::list;
use super::view::{RechunkEntry, RechunkStore, info_of, part};
use crate::hierarchy::Consolidated;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, DirEntries, ListEntry, MemoryBudget, SharedStore, Store, StoreError, StoreKind, Value,
    ValueBody, ValueInfo, Version,
};
use crate::views::error::failed;

#[async_trait]
impl Store for RechunkStore {
    fn kind(&self) -> StoreKind {
        self.below().kind()
    }

    fn freshness_horizon(&self, began: Instant) -> Instant {
        self.below().freshness_horizon(began)
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        match self.shows(key).await? {
            RechunkEntry::Nothing => Ok(None),
            RechunkEntry::Made(_, info) => Ok(Some(info)),
            RechunkEntry::Consolidated(made) => Ok(Some(info_of(&made.text, made.version))),
            RechunkEntry::Stored => self.below().head(key).await,
            RechunkEntry::Chunk(chunk) => {
                let made = chunk.make(self.shared()).await.map_err(failed)?;
                Ok(made.map(|(_, info)| info))
            }
        }
    }

    fn version<'a>(
        &'a self,
        key: &'a StoreKey,
    ) -> Option<BoxFuture<'a, Result<Option<ValueInfo>, StoreError>>> {
        Some(Box::pin(async move {
            match self.shows(key).await? {
                RechunkEntry::Nothing => Ok(None),
                RechunkEntry::Made(_, info) => Ok(Some(info)),
                RechunkEntry::Consolidated(made) => Ok(Some(info_of(&made.text, made.version))),
                RechunkEntry::Stored => self.below().head(key).await,
                RechunkEntry::Chunk(chunk) => chunk.look(self.shared()).await.map_err(failed),
            }
        }))
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        match self.shows(key).await? {
            RechunkEntry::Nothing => Ok(None),
            RechunkEntry::Made(text, info) => part(&text, info, range, if_match).map(Some),
            RechunkEntry::Consolidated(Consolidated { text, version }) => {
                let info = info_of(&text, version);
                let Value { info, range, body } = part(&text, info, range, if_match)?;
                // A stream, as it is counted already what is held of it.
                let body = if self.has_room() { ValueBody::Stream(body.into_stream()) } else { body };
                Ok(Some(Value { info, range, body }))
            }
            RechunkEntry::Stored => self.below().get(key, range, if_match).await,
            RechunkEntry::Chunk(chunk) => {
                // What is of another version need not be made.
                if let Some(version) = if_match
                    && let Some(info) = chunk.look(self.shared()).await.map_err(failed)?
                    && info.version != *version
                {
                    return Err(StoreError::VersionChanged);
                }
                match chunk.make(self.shared()).await.map_err(failed)? {
                    None => Ok(None),
                    Some((bytes, info)) => part(&bytes, info, range, if_match).map(Some),
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

    fn with_budget(&self, room: &Arc<dyn MemoryBudget>) -> Option<SharedStore> {
        Some(Arc::new(self.with_room(room)))
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.below().check().await
    }
}
