//! A store over a directory of this machine.
//!
//! Zarr core 3.1, "Abstract store interface", with a file for each value. It keeps what the interface promises
//! also when programs beside it write into the directory, when power fails and when a name in a key was chosen
//! by an enemy: `root` never leads out, `read` never mixes two contents, `write` acknowledges what is durable,
//! `list` never shows what cannot be fetched. It is for Unix.

mod blocking;
mod directories;
mod disk;
mod erase;
mod failure;
mod list;
mod locks;
mod names;
mod nonblocking;
mod overlap;
mod read;
mod root;
mod settled;
mod staging;
mod version;
mod watch;
mod write;

#[cfg(test)]
mod tests;

pub use blocking::MAX_CONCURRENCY;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use self::blocking::Blocking;
use self::disk::Disk;
use self::failure::os;
use self::list::Below;
use self::read::Started;
use self::root::Root;
use self::watch::Watcher;
use super::{
    ByteRange, DirEntries, DirEntry, Extent, ListEntry, SetResult, Store, StoreError, StoreKind, Value,
    ValueInfo, ValueStream, Version, WatchToken, WriteCondition,
};
use crate::key::{StoreKey, StorePrefix};
use staging::StagingDir;

/// What becomes of symbolic links below the root.
///
/// Where links are followed, two keys may lead to one file. To conditional writes they are two keys all the same: each
/// is compared and replaced in one step, but not with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Symlinks {
    /// Links are not followed, wherever they lead: what is behind one is an error, and not absent.
    Deny,
    /// Links are followed as long as they do not leave the root (absolute links do, wherever they lead). Needs the
    /// system call `openat2` of Linux: without it, no link is followed.
    #[default]
    Within,
    /// Links are followed wherever they lead, out of the root as well.
    Follow,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When the value and its name are on the disk.
    #[default]
    Fsync,
    /// When it is visible. A power failure may undo the last writes.
    Rename,
}

/// How a local store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalOptions {
    /// What becomes of symbolic links.
    pub symlinks: Symlinks,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// Whether values may be written. Only one server may open a root for writing.
    pub writable: bool,
    /// How many file operations that may wait can be under way at once: 1 to [`MAX_CONCURRENCY`].
    pub concurrency: usize,
    /// Whether a file that has the times it had is taken for unchanged. Writes through a memory map may not show in them:
    /// without this, nothing is known of a file but what a read gives.
    pub believes_times: bool,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            symlinks: Symlinks::default(),
            durability: Durability::Fsync,
            writable: false,
            concurrency: 32,
            believes_times: true,
        }
    }
}

/// A store over a directory.
#[derive(Debug)]
pub struct LocalStore {
    area: Arc<LocalRootState>,
    blocking: Blocking,
}

/// What the threads of a store share.
#[derive(Debug)]
struct LocalRootState {
    root: Root,
    /// `None` if the store is read-only.
    reserved: Option<Arc<StagingDir>>,
    durability: Durability,
    disk: Arc<Disk>,
    watcher: Watcher,
}

impl LocalRootState {
    /// The staging area, if writes are possible.
    fn writable(&self) -> Result<Arc<StagingDir>, StoreError> {
        let reserved = self.reserved.as_ref().ok_or(StoreError::ReadOnly)?;
        if reserved.is_broken() {
            return Err(os("write: an earlier write did not reach the disk", rustix::io::Errno::IO));
        }
        Ok(Arc::clone(reserved))
    }

    /// Takes no more writes from now on: the disk failed to take what was written.
    fn give_up(&self) {
        if let Some(reserved) = &self.reserved {
            reserved.give_up();
        }
    }
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

    fn glance<'a>(
        &'a self,
        prefix: &'a StorePrefix,
        entries: usize,
    ) -> Option<BoxFuture<'a, Result<Vec<StorePrefix>, StoreError>>> {
        let (area, prefix) = (Arc::clone(&self.area), prefix.clone());
        Some(self.blocking.run(move || list::glance(&area.root, &prefix, entries)).boxed())
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
