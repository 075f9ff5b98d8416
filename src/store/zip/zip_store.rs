//! [`ZipStore`]: the verbs of the store interface over a zip file.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt, iter, once};

use super::ZipError;
use super::directory::Directory;
use crate::cpu::ComputePool;
use crate::key::{StoreKey, StorePrefix};
use crate::store::container::{IndexCache, TRIES};
use crate::store::{
    BackendState, ByteRange, ContainerBudget, DirEntries, ListEntry, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueInfo, Version,
};

/// A read-only store over a zip file. Clones share its cached directory.
#[derive(Clone, Debug)]
pub struct ZipStore {
    pub(super) inner: SharedStore,
    /// The zip file's key in `inner`.
    pub(super) file: StoreKey,
    pub(super) cpu: ComputePool,
    pub(super) budget: ContainerBudget,
    pub(super) cache: Arc<IndexCache<Directory, ZipError>>,
}

impl ZipStore {
    /// A store over the zip file that is the value of `file` in `inner`. Its directory is held within a budget, and
    /// read by the first request.
    #[must_use]
    pub fn new(inner: SharedStore, file: StoreKey, cpu: ComputePool, budget: ContainerBudget) -> Self {
        Self { inner, file, cpu, budget, cache: Arc::default() }
    }
}

#[async_trait]
impl Store for ZipStore {
    fn kind(&self) -> StoreKind {
        StoreKind::ZIP
    }

    fn is_replaced(&self) -> bool {
        self.inner.is_replaced()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let directory = self.current_directory().await?;
        let Some(entry) = directory.find(key) else {
            return Ok(None);
        };
        entry.storage()?;
        Ok(Some(directory.info(&entry)))
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        if let Some(directory) = self.cached_directory()
            && let Some(outcome) = self.read_if_current(&directory, key, range, if_match).await
        {
            return outcome.map(Some);
        }
        for _ in 0..TRIES {
            let directory = self.current_directory().await?;
            let Some(entry) = directory.find(key) else {
                return Ok(None);
            };
            if if_match.is_some_and(|version| !version.matches(&directory.info(&entry).version)) {
                return Err(StoreError::VersionChanged);
            }
            match self.read(&directory, &entry, range).await {
                Err(StoreError::VersionChanged) => {}
                outcome => return outcome.map(|value| Some(value.with_requested_version(if_match))),
            }
        }
        Err(StoreError::VersionChanged)
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        let (store, prefix, after) = (self.clone(), prefix.clone(), after.to_owned());
        let entries = async move {
            let directory = store.current_directory().await?;
            let mut next = directory.begin(&prefix, &after);
            let entries = std::iter::from_fn(move || directory.next_under(&prefix, &mut next));
            let entries = entries.filter(move |entry| entry.text() > after.as_str());
            Ok::<_, StoreError>(in_steps(entries))
        };
        once(entries).try_flatten().boxed()
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        let (store, prefix, after) = (self.clone(), prefix.clone(), after.cloned());
        let entries = async move {
            let directory = store.current_directory().await?;
            let first = directory.begin(&prefix, after.as_ref().map(StoreKey::as_str).unwrap_or_default());
            let entries = (first..).map_while(move |at| directory.listed(at, &prefix));
            Ok::<_, StoreError>(in_steps(entries))
        };
        once(entries).try_flatten().boxed()
    }

    /// Requests the file's version, and reads its directory unless it is cached.
    async fn check(&self) -> Result<(), StoreError> {
        self.current_directory().await.map(drop)
    }
}

impl Shortcuts for ZipStore {
    fn backend(&self) -> Option<BackendState> {
        self.inner.backend()
    }

    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        let is_current =
            |directory: &Directory| self.inner.validate_cached(&self.file, Some(&directory.file.version));
        let Some(directory) = self.cached_directory().filter(|directory| is_current(directory)) else {
            return false;
        };
        directory.find(key).map(|entry| directory.info(&entry).version).as_ref() == version
    }
}

/// Entries in memory as a stream that yields to other tasks: finding an entry takes time, and there may be many.
fn in_steps<T>(entries: impl Iterator<Item = T>) -> impl Stream<Item = Result<T, StoreError>> {
    iter(entries).then(|entry| async {
        tokio::task::consume_budget().await;
        Ok(entry)
    })
}
