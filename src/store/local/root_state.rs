//! [`LocalRootState`]: what all threads of one local store share.

use std::sync::Arc;

use super::disk::Disk;
use super::failure::os;
use super::options::Durability;
use super::root::Root;
use super::staging::StagingDir;
use super::watch::Watcher;
use crate::store::StoreError;

/// What the threads of a store share.
#[derive(Debug)]
pub(super) struct LocalRootState {
    pub(super) root: Root,
    /// `None` if the store is read-only.
    pub(super) reserved: Option<Arc<StagingDir>>,
    pub(super) durability: Durability,
    pub(super) disk: Arc<Disk>,
    pub(super) watcher: Watcher,
}

impl LocalRootState {
    /// The staging area, if writes are possible.
    pub(super) fn writable(&self) -> Result<Arc<StagingDir>, StoreError> {
        let reserved = self.reserved.as_ref().ok_or(StoreError::ReadOnly)?;
        if reserved.is_broken() {
            return Err(os("write: an earlier write did not reach the disk", rustix::io::Errno::IO));
        }
        Ok(Arc::clone(reserved))
    }

    /// Takes no more writes from now on: the disk failed to take what was written.
    pub(super) fn give_up(&self) {
        if let Some(reserved) = &self.reserved {
            reserved.give_up();
        }
    }
}
