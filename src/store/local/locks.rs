//! The lock of a key, which makes "check, then write" one step.
//!
//! It is named by the value's full path, so two mounts whose roots lie within each other share it. The lock file of the root
//! excludes other processes (see `staging`).

use std::path::Path;

use crate::key::StoreKey;
use crate::store::path_locks::{PathLock, PathLocks};

static LOCKS: PathLocks = PathLocks::new();

/// Waits for the lock of a key. No thread is blocked meanwhile.
pub(super) async fn lock(root: &Path, key: &StoreKey) -> PathLock {
    LOCKS.lock(&root.join(key.as_str())).await
}
