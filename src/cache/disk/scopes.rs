//! [`MountScopes`]: the names that the values of mounts have on the disk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::counts::DiskCounts;

/// The scopes of all mounts.
#[derive(Debug, Default)]
pub(super) struct MountScopes(Mutex<Vec<MountScope>>);

impl MountScopes {
    /// No code panics while it holds the lock.
    pub(super) fn all(&self) -> MutexGuard<'_, Vec<MountScope>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The scope of the stored values of a mount.
    pub(super) fn stored(&self, cache_name: &str) -> Option<Arc<str>> {
        self.all()
            .iter()
            .find(|known| *known.cache_name == *cache_name)
            .map(|known| Arc::clone(&known.stored))
    }
}

/// What the values of a mount are under.
#[derive(Debug)]
pub(super) struct MountScope {
    /// The name that they are cached under in memory.
    pub(super) cache_name: Box<str>,
    /// The name that they have on the disk.
    pub(super) stored: Arc<str>,
    /// The name that chunks have there that are derived of them.
    pub(super) derived: Arc<str>,
    pub(super) derived_counts: Arc<DiskCounts>,
}
