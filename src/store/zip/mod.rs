//! A store whose values are the entries of a zip file (PKWARE APPNOTE 6.3.10), which lies in another store.
//!
//! What is asked of it becomes byte ranges of that file, all of one version of it: ranges of a stored entry go
//! through as they are, a deflated one is decoded as it is sent, from its beginning to its end, in little memory. The
//! central directory is read once for each version of the file, and held within a budget. It does not write, nor read encrypted files, files in several parts, or other compressions. The
//! CRC-32 of a stored entry is not compared, since mostly parts of it are read; that of a deflated one is.

mod budget;
mod directory;
mod error;
mod inflating;
mod load;
mod read;
mod record;

#[cfg(test)]
mod tests;

pub use budget::ZipBudget;
pub use error::ZipError;

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt, iter, once};

use self::directory::Directory;
use self::load::Remembered;
use super::{
    BackendState, ByteRange, DirEntries, ListEntry, SharedStore, Store, StoreError, StoreKind, Value,
    ValueInfo, Version,
};
use crate::cpu::ComputePool;
use crate::key::{StoreKey, StorePrefix};

/// How often a read begins again because the file changed meanwhile.
const TRIES: usize = 3;

/// A read-only store over a zip file. Clones share what is remembered of it.
#[derive(Clone, Debug)]
pub struct ZipStore {
    inner: SharedStore,
    /// The zip file's key in `inner`.
    file: StoreKey,
    cpu: ComputePool,
    budget: ZipBudget,
    remembered: Arc<Remembered>,
}

impl ZipStore {
    /// A store over the zip file that is the value of `file` in `inner`, whose directory is held within a budget. Nothing is
    /// read yet.
    #[must_use]
    pub fn new(inner: SharedStore, file: StoreKey, cpu: ComputePool, budget: ZipBudget) -> Self {
        Self { inner, file, cpu, budget, remembered: Arc::default() }
    }
}

#[async_trait]
impl Store for ZipStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Zip
    }

    fn backend(&self) -> Option<BackendState> {
        self.inner.backend()
    }

    fn is_replaced(&self) -> bool {
        self.inner.is_replaced()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let directory = self.current().await?;
        let Some(entry) = directory.find(key) else {
            return Ok(None);
        };
        entry.kept()?;
        Ok(Some(directory.info(&entry)))
    }

    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        let is_current =
            |directory: &Directory| self.inner.validate_cached(&self.file, Some(&directory.file.version));
        let Some(directory) = self.remembered().filter(|directory| is_current(directory)) else {
            return false;
        };
        directory.find(key).map(|entry| directory.info(&entry).version).as_ref() == version
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        if let Some(directory) = self.remembered()
            && let Some(outcome) = self.read_if_current(&directory, key, range, if_match).await
        {
            return outcome.map(Some);
        }
        for _ in 0..TRIES {
            let directory = self.current().await?;
            let Some(entry) = directory.find(key) else {
                return Ok(None);
            };
            if if_match.is_some_and(|version| !version.holds_for(&directory.info(&entry).version)) {
                return Err(StoreError::VersionChanged);
            }
            match self.read(&directory, &entry, range).await {
                Err(StoreError::VersionChanged) => {}
                outcome => return outcome.map(|value| Some(value.at(if_match))),
            }
        }
        Err(StoreError::VersionChanged)
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        let (store, prefix, after) = (self.clone(), prefix.clone(), after.to_owned());
        let entries = async move {
            let directory = store.current().await?;
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
            let directory = store.current().await?;
            let first = directory.begin(&prefix, after.as_ref().map(StoreKey::as_str).unwrap_or_default());
            let entries = (first..).map_while(move |at| directory.listed(at, &prefix));
            Ok::<_, StoreError>(in_steps(entries))
        };
        once(entries).try_flatten().boxed()
    }

    /// Looks for the file, and reads its directory if that has not been done.
    async fn check(&self) -> Result<(), StoreError> {
        self.current().await.map(drop)
    }
}

/// Entries that are at hand. Others have their turn between them: to find one takes time, and there may be many.
fn in_steps<T>(entries: impl Iterator<Item = T>) -> impl Stream<Item = Result<T, StoreError>> {
    iter(entries).then(|entry| async {
        tokio::task::consume_budget().await;
        Ok(entry)
    })
}
