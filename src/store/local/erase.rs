//! Erasing a prefix: the values below it one by one, and symbolic links themselves.
//!
//! A link is removed, and its target stays: the keys below the prefix are gone either way, and other prefixes may share
//! the target. Only links above the prefix are followed, as for the names of keys.

use std::sync::Arc;

use futures::stream::TryStreamExt;
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use super::blocking::Blocking;
use super::failure::os;
use super::list::{Below, list};
use super::locks::lock;
use super::paths::parent_path;
use super::root::is_link;
use super::root_state::LocalRootState;
use crate::key::{StoreKey, StorePrefix};
use crate::store::path_locks::PathLock;
use crate::store::reserved_keys::is_reserved;
use crate::store::{DirEntry, StoreError};

/// Removes everything below a prefix. Returns the number of values and links.
pub(super) async fn erase_prefix(
    shared: &Arc<LocalRootState>,
    blocking: &Blocking,
    prefix: &StorePrefix,
) -> Result<u64, StoreError> {
    let (ours, at) = (Arc::clone(shared), prefix.clone());
    let mut erased = 0;
    if let Some(link) = blocking.walk(move || ours.link_to_directory(&at)).await? {
        erased += u64::from(erase_name(shared, blocking, link).await?);
    } else {
        let mut entries = list(Arc::clone(shared), blocking.clone(), Below::AllWithoutLinks, prefix, "");
        while let Some(entry) = entries.try_next().await? {
            if let DirEntry::Key(entry) = entry {
                erased += u64::from(erase_name(shared, blocking, entry.key).await?);
            }
        }
    }
    if erased > 0 {
        let shared = Arc::clone(shared);
        blocking.walk(move || shared.sync_all()).await?;
    }
    Ok(erased)
}

async fn erase_name(
    shared: &Arc<LocalRootState>,
    blocking: &Blocking,
    key: StoreKey,
) -> Result<bool, StoreError> {
    let shared = Arc::clone(shared);
    let lock = lock(&shared, blocking, &key).await?;
    // Not queued behind walks: other writers may wait for the lock.
    blocking.run(move || shared.remove_name(&lock, &key)).await
}

impl LocalRootState {
    /// The key of a prefix's own name, if that is a link to a directory.
    fn link_to_directory(&self, prefix: &StorePrefix) -> Result<Option<StoreKey>, StoreError> {
        let Some(key) = prefix.as_key() else { return Ok(None) };
        if self.root.open_directory(prefix.as_str())?.is_none() {
            return Ok(None);
        }
        let above = self.root.open_directory(key.parent().as_str())?;
        let is_link = above.is_some_and(|above| is_link(above, key.name()));
        Ok(is_link.then_some(key))
    }

    /// Removes the file or the link of a name; the removal is not durable yet. Returns whether there was one.
    fn remove_name(&self, lock: &PathLock, key: &StoreKey) -> Result<bool, StoreError> {
        self.writable()?;
        if is_reserved(key.as_str()) {
            return Ok(false);
        }
        let prefix = key.parent();
        let Some(directory) = self.root.open_directory(parent_path(prefix.as_str()))? else {
            return Ok(false);
        };
        match statat(&directory, key.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile | FileType::Symlink => self.unlink(lock, key, directory, false),
                _ => Ok(false),
            },
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(os("stat a value's name", errno)),
        }
    }
}
