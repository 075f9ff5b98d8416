//! [`LocalRootState`]: what all threads of one local store share.

use std::sync::Arc;

use super::disk::Disk;
use super::failure::os;
use super::options::Durability;
use super::root::Root;
use super::staging::StagingDir;
use super::watch::Watcher;
use crate::store::StoreError;

/// The state that all threads of a store share.
#[derive(Debug)]
pub(super) struct LocalRootState {
    pub(super) root: Root,
    /// `None` if the store is read-only.
    pub(super) staging: Option<Arc<StagingDir>>,
    pub(super) durability: Durability,
    pub(super) disk: Arc<Disk>,
    pub(super) watcher: Watcher,
}

impl LocalRootState {
    /// The staging area, if writes are possible.
    pub(super) fn writable(&self) -> Result<Arc<StagingDir>, StoreError> {
        let staging = self.staging.as_ref().ok_or(StoreError::ReadOnly)?;
        if staging.is_broken() {
            return Err(os("write: an earlier write did not reach the disk", rustix::io::Errno::IO));
        }
        Ok(Arc::clone(staging))
    }

    /// Accepts no more writes from now on: the disk failed to make a write durable.
    pub(super) fn refuse_writes(&self) {
        if let Some(staging) = &self.staging {
            staging.refuse_writes();
        }
    }
}
