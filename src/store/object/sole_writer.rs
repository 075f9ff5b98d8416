//! Writes of a server that is the only one to write to its backend: it checks conditions itself.
//!
//! For backends that ignore conditions, or have none: web servers with `PUT`, and some stores that speak S3. Each write of a key takes
//! the key's lock, conditional or not, so that "check, then write" is one step among the writes of this process. The locks belong to
//! the process and are named by the path in the backend, so that mounts which lie within each other share them.
//!
//! A web server may name versions by the second of a change. A write after which the name is the same is repeated a second later,
//! before it is acknowledged: what was read before it has another version then. If the name is the same again, it is a digest of the
//! content, and so the content is the same.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;

use super::conditional::StoredObject;
use super::failure::write_failure;
use super::object_backend::ObjectBackend;
use crate::store::{SetResult, StoreError, StoreKind, Version, WriteCondition};

/// Keys share locks by hash: enough of them that two writers seldom meet, in a table that never grows.
static TABLE: [Mutex<()>; 256] = [const { Mutex::const_new(()) }; 256];

/// Longer than the interval at which a web server gives a changed value another version.
const NEXT_VERSION: Duration = Duration::from_millis(1100);

/// Waits for the lock of a path.
pub(super) async fn lock(path: &Path) -> MutexGuard<'static, ()> {
    let mut hasher = DefaultHasher::new();
    path.as_ref().hash(&mut hasher);
    let [stripe, ..] = hasher.finish().to_le_bytes();
    TABLE[usize::from(stripe)].lock().await
}

impl ObjectBackend {
    /// The lock of a path, where this server is the only one that writes.
    pub(super) async fn sole_lock(&self, path: &Path) -> Option<MutexGuard<'static, ()>> {
        if self.is_sole_writer() { Some(lock(path).await) } else { None }
    }

    /// Stores a value under a condition that is checked here, or under none.
    pub(super) async fn put_alone(
        &self,
        path: &Path,
        payload: PutPayload,
        condition: &WriteCondition,
    ) -> Result<SetResult, StoreError> {
        let _alone = lock(path).await;
        let is_server = self.kind == StoreKind::HTTP;
        let needs_before = is_server || *condition != WriteCondition::Always;
        let before = if needs_before { self.head_object(path).await? } else { None };
        self.check(condition, before.as_ref())?;
        let created = *condition == WriteCondition::IfAbsent;
        let version = self.put_anyway(path, &payload).await?;
        if !is_server {
            return Ok(SetResult { created, version });
        }
        let version = self.version_of(path).await?;
        let before = before.map(|found| self.info(&found.meta).version);
        if before.is_none() || before != version {
            return Ok(SetResult { created, version });
        }
        sleep(NEXT_VERSION).await;
        self.put_anyway(path, &payload).await?;
        Ok(SetResult { created, version: self.version_of(path).await? })
    }

    /// Erases a value under a condition that is checked here. Returns whether there was one.
    pub(super) async fn remove_alone(
        &self,
        path: &Path,
        condition: &WriteCondition,
    ) -> Result<bool, StoreError> {
        let _alone = lock(path).await;
        let found = self.head_object(path).await?;
        self.check(condition, found.as_ref())?;
        if found.is_none() {
            return Ok(false);
        }
        match self.client().delete(path).await {
            Ok(()) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(write_failure(error)),
        }
    }

    /// Stores a value, whatever there is. Returns its version if the response has it.
    async fn put_anyway(&self, path: &Path, payload: &PutPayload) -> Result<Option<Version>, StoreError> {
        let options = PutOptions::from(PutMode::Overwrite);
        let stored = self.client().put_opts(path, payload.clone(), options).await.map_err(write_failure)?;
        Ok(stored.e_tag.as_deref().map(|tag| self.version(tag)))
    }

    /// The version of a value that was just stored.
    async fn version_of(&self, path: &Path) -> Result<Option<Version>, StoreError> {
        let found: Option<StoredObject> =
            self.head_object(path).await.map_err(|error| StoreError::OutcomeUnknown(Arc::new(error)))?;
        Ok(found.map(|found| self.info(&found.meta).version))
    }
}
