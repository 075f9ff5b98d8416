//! The locks that make "check, then write" one step.
//!
//! Every write and every erasure of a key takes the key's lock, conditional or not. The locks belong to the
//! process and are named by the value's full path, so two mounts whose roots lie within each other share them.
//! The lock file of the root excludes other processes (see `staging`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use tokio::sync::{Mutex, MutexGuard};

use crate::key::StoreKey;

/// Keys share locks by hash: enough of them that two writers seldom meet, in a table that never grows.
static TABLE: [Mutex<()>; 256] = [const { Mutex::const_new(()) }; 256];

/// The lock of a key, held until it is dropped.
pub(super) type KeyLock = MutexGuard<'static, ()>;

/// Waits for the lock of a key. No thread is blocked meanwhile.
pub(super) async fn lock(root: &Path, key: &StoreKey) -> KeyLock {
    let mut hasher = DefaultHasher::new();
    root.join(key.as_str()).hash(&mut hasher);
    let [stripe, ..] = hasher.finish().to_le_bytes();
    TABLE[usize::from(stripe)].lock().await
}
