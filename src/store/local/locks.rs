//! The lock of a key, which makes "check, then write" one step.
//!
//! It is named by where the value is stored: the full path, without links above the value. So two names of one file through a link
//! to a directory share the lock, and so do two mounts whose roots lie within each other. The lock file of the root excludes other
//! processes (see `staging`).

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::blocking::Blocking;
use super::options::Symlinks;
use super::root::Root;
use super::root_state::LocalRootState;
use crate::key::{StoreKey, StorePrefix};
use crate::store::StoreError;
use crate::store::path_locks::{PathLock, PathLocks};

static LOCKS: PathLocks = PathLocks::new();

/// Waits for the lock of a key.
pub(super) async fn lock(
    shared: &Arc<LocalRootState>,
    blocking: &Blocking,
    key: &StoreKey,
) -> Result<PathLock, StoreError> {
    let (shared, key) = (Arc::clone(shared), key.clone());
    let path = blocking.run(move || Ok(shared.root.stored_path(&key))).await?;
    Ok(path.lock().await)
}

/// The full path at which a value is stored, without links above it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredPath(PathBuf);

impl StoredPath {
    /// Waits for the lock of the path. No thread is blocked meanwhile.
    pub(super) async fn lock(&self) -> PathLock {
        LOCKS.lock(&self.0).await
    }

    /// Takes the lock of the path if it is free.
    pub(super) fn try_lock(&self) -> Option<PathLock> {
        LOCKS.try_lock(&self.0)
    }
}

impl Root {
    /// Where the value of a key is stored, or will be. Reads links, so it may block.
    pub(super) fn stored_path(&self, key: &StoreKey) -> StoredPath {
        let named = self.path().join(key.as_str());
        StoredPath(if self.has_links(&key.parent()) { without_links_above(&named) } else { named })
    }

    /// Bytes that name the directory of a prefix, or the place of one: its path below the root without links in it, or its full path if a
    /// link leads out of the root. Reads links, so it may block.
    pub(super) fn place_name(&self, prefix: &StorePrefix) -> Vec<u8> {
        let named = Path::new(prefix.as_str().trim_end_matches('/'));
        if !self.has_links(prefix) {
            return named.as_os_str().as_bytes().to_vec();
        }
        // The last name is none of a directory: all links are above it.
        let place = without_links_above(&self.path().join(named).join("zarr.json"));
        let place = place.parent().unwrap_or(&place);
        let root = self.path().canonicalize();
        let below = root.as_ref().ok().and_then(|root| place.strip_prefix(root).ok());
        below.unwrap_or(place).as_os_str().as_bytes().to_vec()
    }

    /// Whether one of the directories of a prefix is a link that may be followed.
    fn has_links(&self, prefix: &StorePrefix) -> bool {
        let path = prefix.as_str().trim_end_matches('/');
        !path.is_empty()
            && self.symlinks() != Symlinks::Deny
            && matches!(self.open_without_links(path, true), Err(Errno::LOOP))
    }
}

/// A path with the targets of all links in it, but for its last name. Directories that are missing have no links below them.
fn without_links_above(path: &Path) -> PathBuf {
    let real = path.ancestors().skip(1).find_map(|above| {
        let below = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(below))
    });
    real.unwrap_or_else(|| path.to_owned())
}
