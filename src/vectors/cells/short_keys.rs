//! Dense arrays whose chunks stand under shorter keys than Zarr gives them.
//!
//! The documents name a chunk `c/i/j/k`; such an array has two dimensions more, so that its key is `c/i/j/k/0/0` by the
//! rules. A store that shows values under their long keys lets the array room read the others as well.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};

use super::super::VectorError;
use super::super::context::Context;
use crate::array::{Array, ArrayError};
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, SharedStore, Shortcuts, Store, StoreError, StoreKind,
    Value, ValueInfo, Version,
};

/// The same array, whose chunks are looked for under keys of `dims` coordinates.
pub(super) fn bind(
    context: &Context,
    path: &NodePath,
    array: &Array,
    dims: usize,
) -> Result<Array, ArrayError> {
    let metadata = Arc::new(array.metadata().clone());
    let surplus = metadata.shape.len().saturating_sub(dims);
    let store = ShortKeys { inner: Arc::clone(context.store()), surplus };
    // Another name, so that what is remembered of one is not taken for the other.
    let mount = format!("{}/short keys", context.mount).into();
    Array::bind(mount, Arc::new(store), path.clone(), metadata, &context.codec)
}

/// The short key of a chunk of a dense array at `path`.
pub(super) fn short_key(path: &NodePath, cell: &[u64]) -> Result<StoreKey, VectorError> {
    let numbers: Vec<String> = cell.iter().map(u64::to_string).collect();
    Ok(path.prefix().key(&format!("c/{}", numbers.join("/")))?)
}

/// Shows each value under its key with this many more segments. Reads alone.
#[derive(Debug)]
struct ShortKeys {
    inner: SharedStore,
    surplus: usize,
}

impl ShortKeys {
    fn short(&self, key: &StoreKey) -> Option<StoreKey> {
        let mut text = key.as_str();
        for _ in 0..self.surplus {
            text = text.rsplit_once('/')?.0;
        }
        StoreKey::parse(text).ok()
    }
}

#[async_trait]
impl Store for ShortKeys {
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

impl Shortcuts for ShortKeys {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}
