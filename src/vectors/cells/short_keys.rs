//! Dense arrays whose chunks have shorter keys than their chunk key encoding gives.
//!
//! The format's documents name a chunk `c/i/j/k`. The array has two more dimensions, so its encoded key is
//! `c/i/j/k/0/0`. A store adapter maps each long key to its short one, so that the `array` module can read such chunks.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};

use crate::array::{Array, ArrayError};
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, SharedStore, Shortcuts, Store, StoreError, StoreKind,
    Value, ValueInfo, Version,
};
use crate::vectors::VectorError;
use crate::vectors::context::VectorContext;

/// Binds the same array to a store that maps its keys to keys of `dims` coordinates.
pub(super) fn bind(
    context: &VectorContext,
    path: &NodePath,
    array: &Array,
    dims: usize,
) -> Result<Array, ArrayError> {
    let metadata = Arc::new(array.metadata().clone());
    let surplus = metadata.shape.len().saturating_sub(dims);
    let store = ShortKeyStore { inner: Arc::clone(context.store()), surplus };
    // A mount name of its own keeps the cache entries of both apart.
    let mount = format!("{}/short keys", context.mount).into();
    Array::bind(mount, Arc::new(store), path.clone(), metadata, &context.codec_limits)
}

/// The short key of a chunk of the dense array at `path`.
pub(super) fn short_key(path: &NodePath, cell: &[u64]) -> Result<StoreKey, VectorError> {
    let numbers: Vec<String> = cell.iter().map(u64::to_string).collect();
    Ok(path.prefix().key(&format!("c/{}", numbers.join("/")))?)
}

/// A read-only store that drops the last `surplus` segments of each key.
#[derive(Debug)]
struct ShortKeyStore {
    inner: SharedStore,
    surplus: usize,
}

impl ShortKeyStore {
    fn short(&self, key: &StoreKey) -> Option<StoreKey> {
        let mut text = key.as_str();
        for _ in 0..self.surplus {
            text = text.rsplit_once('/')?.0;
        }
        StoreKey::parse(text).ok()
    }
}

#[async_trait]
impl Store for ShortKeyStore {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        match self.short(key) {
            Some(short) => self.inner.head(&short).await,
            None => Ok(None),
        }
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        match self.short(key) {
            Some(short) => self.inner.get(&short, range, if_match).await,
            None => Ok(None),
        }
    }

    fn list_dir_after(&self, _: &StorePrefix, _: &str) -> DirEntries {
        stream::once(std::future::ready(Err(StoreError::NotListable))).boxed()
    }

    fn list_prefix(
        &self,
        _: &StorePrefix,
        _: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        stream::once(std::future::ready(Err(StoreError::NotListable))).boxed()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

impl Shortcuts for ShortKeyStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}
