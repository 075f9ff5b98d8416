//! [`LocalStore`]: the verbs of the store interface over a directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};

use super::blocking::Blocking;
use super::list::Below;
use super::options::LocalOptions;
use super::read::Started;
use super::root::Root;
use super::root_state::LocalRootState;
use super::staging::StagingDir;
use super::watch::Watcher;
use super::{erase, list, overlap, read, write};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, DirEntries, DirEntry, Extent, ListEntry, SetResult, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueInfo, ValueStream, Version, WatchToken, WriteCondition,
};

/// A store over a directory.
#[derive(Debug)]
pub struct LocalStore {
    pub(super) area: Arc<LocalRootState>,
    pub(super) blocking: Blocking,
}

impl LocalStore {
    /// Whether there is a directory at a path; `None` if there is nothing at all. What cannot be looked at is
    /// taken for one, and opening it says why it cannot be.
    #[must_use]
    pub fn is_directory(path: &Path) -> Option<bool> {
        match std::fs::metadata(path) {
            Ok(metadata) => Some(metadata.is_dir()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(_) => Some(true),
        }
    }

    /// Opens an existing directory as a store. If it is to be written to, this takes the lock of the root and
    /// removes what writers who died left behind. Blocks for the time of a few file operations; if the last
    /// server was killed, until all of the file system is on the disk.
    ///
    /// # Errors
    /// The directory's own failure; [`StoreError::RootInUse`] if another server writes there.
    pub fn open(root: &Path, options: &LocalOptions) -> Result<Self, StoreError> {
        let root = Root::open(root, options)?;
        let reserved =
            if options.writable { Some(StagingDir::open(&root, options.durability)?) } else { None };
        let area = LocalRootState {
            root,
            reserved,
            durability: options.durability,
            disk: Arc::default(),
            watcher: Watcher::default(),
        };
        Ok(Self { area: Arc::new(area), blocking: Blocking::new(options.concurrency) })
    }

    async fn look(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        if let Ok(found) = read::head_now(&self.area.root, key) {
            return Ok(found);
        }
        let (area, key) = (Arc::clone(&self.area), key.clone());
        self.blocking.run(move || read::head(&area.root, &key)).await
    }

    async fn start(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Started>, StoreError> {
        if let Ok(started) = read::start_now(&self.area.root, key, range, if_match) {
            return started;
        }
        let (area, key, if_match) = (Arc::clone(&self.area), key.clone(), if_match.cloned());
        self.blocking.run(move || read::start(&area.root, &key, range, if_match.as_ref())).await
    }

    /// How long to wait before looking again, where what was just found has no version to believe in yet and soon will.
    fn settles_in(&self, found: Option<&ValueInfo>) -> Option<Duration> {
        let unsettled = found.filter(|info| !info.version.is_settled())?;
        self.area.root.settling.settles_in(unsettled.modified)
    }
}

#[cfg(test)]
impl LocalStore {
    /// How many file operations were handed to threads.
    pub(crate) fn hops(&self) -> u64 {
        self.blocking.hops.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Whether reads are tried without a thread; the file system says.
    pub(crate) fn reads_now(&self) -> bool {
        self.area.root.now
    }
}

#[async_trait]
impl Store for LocalStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Local
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let found = self.look(key).await?;
        let Some(wait) = self.settles_in(found.as_ref()) else { return Ok(found) };
        tokio::time::sleep(wait).await;
        self.look(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let mut started = self.start(key, range, if_match).await?;
        // What is read at a version that somebody has already is read at once.
        if if_match.is_none()
            && let Some(wait) = self.settles_in(started.as_ref().map(Started::info))
        {
            tokio::time::sleep(wait).await;
            started = self.start(key, range, None).await?;
        }
        Ok(started.map(|started| match started {
            Started::Complete(value) => value,
            Started::Streamed(opened) => opened.into_value(self.blocking.clone()),
        }))
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.area.writable()?;
        write::set(&self.area, &self.blocking, key, body, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.area.writable()?;
        write::erase(&self.area, &self.blocking, key, condition).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.area.writable()?;
        erase::erase_prefix(&self.area, &self.blocking, prefix).await
    }

    async fn overlap(&self, read: &Extent, written: &Extent) -> Result<bool, StoreError> {
        let (area, read, written) = (Arc::clone(&self.area), read.clone(), written.clone());
        self.blocking.walk(move || overlap::overlap(&area.root, &read, &written)).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        list::list(Arc::clone(&self.area), self.blocking.clone(), Below::Directly, prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        let after = after.map(StoreKey::as_str).unwrap_or_default();
        list::list(Arc::clone(&self.area), self.blocking.clone(), Below::All, prefix, after)
            .try_filter_map(|entry| {
                let DirEntry::Key(entry) = entry else { return ready(Ok(None)) };
                ready(Ok(Some(entry)))
            })
            .boxed()
    }

    fn is_replaced(&self) -> bool {
        self.area.root.is_replaced()
    }

    async fn check(&self) -> Result<(), StoreError> {
        let area = Arc::clone(&self.area);
        self.blocking
            .run(move || {
                area.root.check()?;
                if area.reserved.is_some() {
                    area.writable()?;
                }
                Ok(())
            })
            .await
    }
}

#[async_trait]
impl Shortcuts for LocalStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::LOCAL
    }

    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        read::still_has(&self.area.root, key, version)
    }

    async fn watch(&self, keys: Vec<StoreKey>) -> Option<WatchToken> {
        let area = Arc::clone(&self.area);
        let watched = self.blocking.run(move || Ok(area.watcher.watch(&area.root, &keys)));
        watched.await.ok()?
    }

    fn unchanged_since(&self, since: WatchToken) -> bool {
        self.area.watcher.is_quiet(since)
    }

    fn sample_prefixes<'a>(
        &'a self,
        prefix: &'a StorePrefix,
        entries: usize,
    ) -> Option<BoxFuture<'a, Result<Vec<StorePrefix>, StoreError>>> {
        let (area, prefix) = (Arc::clone(&self.area), prefix.clone());
        Some(self.blocking.run(move || list::glance(&area.root, &prefix, entries)).boxed())
    }
}
