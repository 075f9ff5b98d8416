//! [`LocalStore`]: the verbs of the store interface over a directory.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

use super::blocking::Blocking;
use super::list::Below;
use super::options::{Durability, LocalOptions, Symlinks};
use super::read::Started;
use super::root::Root;
use super::root_state::LocalRootState;
use super::staging::{StagingDir, make_own_area};
use super::watch::Watcher;
use super::{erase, list, overlap, read, write};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, DirEntries, DirEntry, Extent, ListEntry, OwnArea, ResolvedExtent, SetResult,
    SharedStore, Shortcuts, Store, StoreError, StoreKind, Value, ValueInfo, ValueStream, Version, WatchToken,
    WriteCondition,
};

/// A store over a directory.
#[derive(Debug)]
pub struct LocalStore {
    pub(super) shared: Arc<LocalRootState>,
    pub(super) blocking: Blocking,
    /// The store of the parts of uploads, once one was asked for.
    uploads: OnceCell<SharedStore>,
    /// The store of the records of appends, once one was asked for.
    appends: OnceCell<SharedStore>,
}

impl LocalStore {
    /// Whether there is a directory at a path; `None` if there is nothing. `true` if that cannot be found out: opening
    /// it then reports why.
    #[must_use]
    pub fn is_directory(path: &Path) -> Option<bool> {
        match std::fs::metadata(path) {
            Ok(metadata) => Some(metadata.is_dir()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(_) => Some(true),
        }
    }

    /// Opens an existing directory as a store. For writing, this takes the lock of the root and removes the staging
    /// files of writers that died. Blocks for a few file operations; if the last server was killed, until the complete
    /// file system is on the disk.
    ///
    /// # Errors
    /// The directory's own failure; [`StoreError::RootInUse`] if another server writes there.
    pub fn open(root: &Path, options: &LocalOptions) -> Result<Self, StoreError> {
        let root = Root::open(root, options)?;
        let staging =
            if options.writable { Some(StagingDir::open(&root, options.durability)?) } else { None };
        let shared = LocalRootState {
            root,
            staging,
            durability: options.durability,
            disk: Arc::default(),
            watcher: Watcher::default(),
        };
        let blocking = Blocking::new(options.max_concurrency);
        Ok(Self { shared: Arc::new(shared), blocking, uploads: OnceCell::new(), appends: OnceCell::new() })
    }

    /// Opens an area of the store's own, a root in a directory of this root's own. No upload is worth a sync: a part becomes
    /// durable with the value that it is completed into.
    fn open_own_area(shared: &LocalRootState, area: OwnArea) -> Result<Self, StoreError> {
        shared.writable()?;
        let durability = match area {
            OwnArea::Uploads => Durability::Rename,
            OwnArea::Appends => shared.durability,
        };
        let options = LocalOptions {
            symlinks: Symlinks::Deny,
            durability,
            writable: true,
            trusts_file_times: true,
            ..LocalOptions::default()
        };
        Self::open(&make_own_area(&shared.root, area)?, &options)
    }

    async fn head_once(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        if let Ok(found) = read::try_head(&self.shared.root, key) {
            return Ok(found);
        }
        let (shared, key) = (Arc::clone(&self.shared), key.clone());
        self.blocking.run(move || read::head(&shared.root, &key)).await
    }

    async fn start_read(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Started>, StoreError> {
        if let Ok(started) = read::try_start(&self.shared.root, key, range, if_match) {
            return started;
        }
        let (shared, key, if_match) = (Arc::clone(&self.shared), key.clone(), if_match.cloned());
        self.blocking.run(move || read::start(&shared.root, &key, range, if_match.as_ref())).await
    }

    /// How long to wait before a second `stat` of a value whose version is unsettled and soon will be settled.
    fn settles_in(&self, found: Option<&ValueInfo>) -> Option<Duration> {
        let unsettled = found.filter(|info| !info.version.is_settled())?;
        self.shared.root.settling.settles_in(unsettled.modified)
    }
}

#[cfg(test)]
impl LocalStore {
    /// How many file operations were handed to threads.
    pub(crate) fn hops(&self) -> u64 {
        self.blocking.hops.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Whether reads are tried without a thread; the file system says.
    pub(crate) fn reads_nonblocking(&self) -> bool {
        self.shared.root.nonblocking
    }
}

#[async_trait]
impl Store for LocalStore {
    fn kind(&self) -> StoreKind {
        StoreKind::LOCAL
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let found = self.head_once(key).await?;
        let Some(wait) = self.settles_in(found.as_ref()) else { return Ok(found) };
        tokio::time::sleep(wait).await;
        self.head_once(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let mut started = self.start_read(key, range, if_match).await?;
        // With `if_match` the caller has a version already, so there is nothing to wait for.
        if if_match.is_none()
            && let Some(wait) = self.settles_in(started.as_ref().map(Started::info))
        {
            tokio::time::sleep(wait).await;
            started = self.start_read(key, range, None).await?;
        }
        Ok(started.map(|started| match started {
            Started::Complete(value) => value,
            Started::Opened(opened) => opened.into_value(self.blocking.clone()),
        }))
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.shared.writable()?;
        write::set(&self.shared, &self.blocking, key, body, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.shared.writable()?;
        write::erase(&self.shared, &self.blocking, key, condition).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.shared.writable()?;
        erase::erase_prefix(&self.shared, &self.blocking, prefix).await
    }

    /// A store in a directory of the store's own. That for uploads is empty when the server starts.
    async fn own_area(&self, area: OwnArea) -> Result<SharedStore, StoreError> {
        let store = match area {
            OwnArea::Uploads => &self.uploads,
            OwnArea::Appends => &self.appends,
        };
        let opened = store.get_or_try_init(|| async {
            let shared = Arc::clone(&self.shared);
            let opened = self.blocking.run(move || Self::open_own_area(&shared, area));
            opened.await.map(|store| Arc::new(store) as SharedStore)
        });
        opened.await.map(Arc::clone)
    }

    async fn place_name(&self, prefix: &StorePrefix) -> Result<Vec<u8>, StoreError> {
        let (shared, prefix) = (Arc::clone(&self.shared), prefix.clone());
        self.blocking.run(move || Ok(shared.root.place_name(&prefix))).await
    }

    async fn overlap(&self, read: &Extent, written: &Extent) -> Result<bool, StoreError> {
        let (shared, read, written) = (Arc::clone(&self.shared), read.clone(), written.clone());
        self.blocking.walk(move || overlap::overlap(&shared.root, &read, &written)).await
    }

    async fn resolve(&self, extent: &Extent) -> Result<Option<ResolvedExtent>, StoreError> {
        let (shared, extent) = (Arc::clone(&self.shared), extent.clone());
        self.blocking.run(move || overlap::resolve(&shared.root, &extent).map(Some)).await
    }

    async fn overlaps_resolved(&self, read: &Extent, written: &ResolvedExtent) -> Result<bool, StoreError> {
        let (shared, read, written) = (Arc::clone(&self.shared), read.clone(), written.clone());
        self.blocking.walk(move || overlap::overlap_resolved(&shared.root, &read, &written)).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        list::list(Arc::clone(&self.shared), self.blocking.clone(), Below::Directly, prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        let after = after.map(StoreKey::as_str).unwrap_or_default();
        list::list(Arc::clone(&self.shared), self.blocking.clone(), Below::All, prefix, after)
            .try_filter_map(|entry| {
                let DirEntry::Key(entry) = entry else { return ready(Ok(None)) };
                ready(Ok(Some(entry)))
            })
            .boxed()
    }

    fn is_replaced(&self) -> bool {
        self.shared.root.is_replaced()
    }

    fn is_removed(&self) -> bool {
        self.shared.root.is_removed() && self.shared.root.is_replaced()
    }

    async fn check(&self) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        self.blocking
            .run(move || {
                shared.root.check()?;
                if shared.staging.is_some() {
                    shared.writable()?;
                }
                Ok(())
            })
            .await
    }
}

#[async_trait]
impl Shortcuts for LocalStore {
    fn capabilities(&self) -> Capabilities {
        if self.shared.root.nonblocking { Capabilities::LOCAL_NONBLOCKING } else { Capabilities::LOCAL }
    }

    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        read::validate_cached(&self.shared.root, key, version)
    }

    async fn watch(&self, keys: Vec<StoreKey>) -> Option<WatchToken> {
        let shared = Arc::clone(&self.shared);
        let watched = self.blocking.run(move || Ok(shared.watcher.watch(&shared.root, &keys)));
        watched.await.ok()?
    }

    fn unchanged_since(&self, since: WatchToken, horizon: Instant) -> Option<Instant> {
        self.shared.watcher.unchanged_since(since, horizon)
    }

    fn sample_prefixes<'a>(
        &'a self,
        prefix: &'a StorePrefix,
        entries: usize,
    ) -> Option<BoxFuture<'a, Result<Vec<StorePrefix>, StoreError>>> {
        let (shared, prefix) = (Arc::clone(&self.shared), prefix.clone());
        Some(self.blocking.run(move || list::sample_prefixes(&shared.root, &prefix, entries)).boxed())
    }
}
