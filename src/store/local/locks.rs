//! The lock of a key, which makes "check, then write" one step.
//!
//! It is named by where the value is stored: the full path, without links above the value. So two names of one file through a link
//! to a directory share the lock, and so do two mounts whose roots lie within each other. The lock file of the root excludes other
//! processes (see `staging`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::blocking::Blocking;
use super::options::Symlinks;
use super::root::Root;
use super::root_state::LocalRootState;
use crate::key::StoreKey;
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
}

impl Root {
    /// Where the value of a key is stored, or will be. Reads links, so it may block.
    pub(super) fn stored_path(&self, key: &StoreKey) -> StoredPath {
        let named = self.path().join(key.as_str());
        let prefix = key.parent();
        let above = prefix.as_str().trim_end_matches('/');
        let has_links = !above.is_empty()
            && self.symlinks() != Symlinks::Deny
            && matches!(self.open_without_links(above, true), Err(Errno::LOOP));
        StoredPath(if has_links { without_links_above(&named) } else { named })
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
