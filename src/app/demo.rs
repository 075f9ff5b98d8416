//! (stand-in until there is a demo hierarchy: a store without a single key)

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};

use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, DirListing, ListEntry, SetOutcome, SharedStore, Store, StoreError, StoreKind, Value,
    ValueInfo, ValueStream, Version, WriteCondition,
};

/// The store of the demo hierarchy.
#[must_use]
pub fn store() -> SharedStore {
    Arc::new(Empty)
}

/// Commands that show the demo, to be pasted into a shell.
#[must_use]
pub fn curl_lines(address: SocketAddr) -> Vec<String> {
    vec![
        format!("curl http://{address}/healthz"),
        format!("curl http://{address}/readyz"),
        format!("curl http://{address}/openapi.json"),
    ]
}

#[derive(Debug)]
struct Empty;

#[async_trait]
impl Store for Empty {
    fn kind(&self) -> StoreKind {
        StoreKind::Memory
    }

    async fn head(&self, _: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        Ok(None)
    }

    async fn get(
        &self,
        _: &StoreKey,
        _: ByteRange,
        _: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        Ok(None)
    }

    async fn set(&self, _: &StoreKey, _: ValueStream, _: WriteCondition) -> Result<SetOutcome, StoreError> {
        Err(StoreError::ReadOnly)
    }

    async fn erase(&self, _: &StoreKey, _: WriteCondition) -> Result<bool, StoreError> {
        Err(StoreError::ReadOnly)
    }

    async fn erase_prefix(&self, _: &StorePrefix) -> Result<u64, StoreError> {
        Err(StoreError::ReadOnly)
    }

    async fn list_dir(&self, _: &StorePrefix) -> Result<DirListing, StoreError> {
        Ok(DirListing::default())
    }

    fn list_prefix(
        &self,
        _: &StorePrefix,
        _: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        stream::empty().boxed()
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
