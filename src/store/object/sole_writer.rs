//! Writes of a server that is the only one to write to its backend: it checks conditions itself.
//!
//! For backends that ignore conditions, or have none: web servers with `PUT`, and some stores that speak S3. Each write of a key takes
//! the key's lock, conditional or not, so that "check, then write" is one step among the writes of this process. The locks belong to
//! the process and are named by the path in the backend, so that mounts which lie within each other share them. Where the backend
//! heeds conditions nevertheless, they are sent too: a write of a process that has ended may arrive later than one of this process.
//!
//! A web server may name versions by the second of a change and the length. So a value is stored there no earlier than a second
//! after it was stored before, erased meanwhile or not, and a version has one content. Only a version that is a digest of the content
//! makes no later write wait.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::time::{Instant, sleep_until};

use super::conditional::StoredObject;
use super::failure::{is_transport, write_failure};
use super::object_backend::ObjectBackend;
use super::write::finish;
use crate::key::{StoreKey, StorePrefix};
use crate::store::path_locks::{PathLock, PathLocks};
use crate::store::{SetResult, StoreError, StoreKind, Version, WriteCondition};

static LOCKS: PathLocks = PathLocks::new();

/// The writes of the last second, in parts by the hash of their paths, so that few keys share one.
static RECENT: [Mutex<RecentWrites>; 256] = [const { Mutex::new(RecentWrites::new()) }; 256];

/// Longer than the interval at which a web server gives a changed value another version.
const NEXT_VERSION: Duration = Duration::from_millis(1100);

/// The longest value, in bytes, whose version is compared with its digest: a longer one takes too long for this thread.
const MAX_DIGESTED: usize = 256 << 10;

/// The most values of a prefix that are erased at once.
const MAX_ERASURES: usize = 16;

/// The recent writes of the paths with this hash, and of some others.
fn recent(path: u64) -> MutexGuard<'static, RecentWrites> {
    let [part, ..] = path.to_le_bytes();
    // No code panics while it holds the lock.
    RECENT[usize::from(part)].lock().unwrap_or_else(PoisonError::into_inner)
}

/// The writes of the last second whose versions may name another content within that second.
#[derive(Debug)]
struct RecentWrites {
    /// Hashes of paths with the times of their writes, the earliest first.
    writes: VecDeque<(u64, Instant)>,
    /// The time of the latest write that was dropped from these; any other path may have been written then.
    dropped: Option<Instant>,
}

impl RecentWrites {
    const MAX: usize = 256;

    const fn new() -> Self {
        Self { writes: VecDeque::new(), dropped: None }
    }

    fn note(&mut self, path: u64, now: Instant) {
        while self.writes.front().is_some_and(|(_, written)| *written + NEXT_VERSION <= now) {
            self.writes.pop_front();
        }
        if self.writes.len() == Self::MAX {
            self.dropped = self.writes.pop_front().map(|(_, written)| written);
        }
        self.writes.push_back((path, now));
    }

    /// When a path may have been written last.
    fn last(&self, path: u64) -> Option<Instant> {
        let known = self.writes.iter().rev().find(|(known, _)| *known == path);
        known.map(|(_, written)| *written).or(self.dropped)
    }
}

impl ObjectBackend {
    /// The lock of a path, where this server is the only one that writes.
    pub(super) async fn sole_lock(&self, path: &Path) -> Option<PathLock> {
        if self.is_sole_writer() { Some(LOCKS.lock(path).await) } else { None }
    }

    /// Stores a value under a condition that is checked here, or under none.
    pub(super) async fn put_alone(
        &self,
        path: &Path,
        payload: PutPayload,
        condition: &WriteCondition,
    ) -> Result<SetResult, StoreError> {
        let alone = LOCKS.lock(path).await;
        if *condition != WriteCondition::Always {
            self.check(condition, self.head_object(path).await?.as_ref())?;
        }
        let created = *condition == WriteCondition::IfAbsent;
        if self.kind == StoreKind::HTTP {
            let version = self.put_at_web_server(path, &payload, alone).await?;
            return Ok(SetResult { created, version });
        }
        if *condition != WriteCondition::Always && self.takes_conditions().await {
            match self.put_if(path, payload.clone(), condition).await {
                // The condition holds, but the backend says otherwise.
                Err(StoreError::Contended(_)) => {}
                outcome => return outcome,
            }
        }
        Ok(SetResult { created, version: self.put_anyway(path, &payload).await? })
    }

    /// Stores a value at a web server, once its version can be no earlier one. Returns the version.
    async fn put_at_web_server(
        &self,
        path: &Path,
        payload: &PutPayload,
        alone: PathLock,
    ) -> Result<Option<Version>, StoreError> {
        // An erasure needs no such pause: a value that is stored after it has its own. A process that has ended may have
        // written until this one began.
        let last = recent(alone.path_hash())
            .last(alone.path_hash())
            .map_or(self.opened, |last| last.max(self.opened));
        sleep_until(last + NEXT_VERSION).await;
        let version = match self.put_anyway(path, payload).await {
            Ok(_version) => self.version_of(path).await,
            Err(error) => Err(error),
        };
        // A write that failed may have been done.
        let is_digest = matches!(&version, Ok(Some(version)) if is_digest(version, payload));
        if !is_digest {
            recent(alone.path_hash()).note(alone.path_hash(), Instant::now());
        }
        version
    }

    /// Erases a value under a condition that is checked here. Returns whether there was one.
    pub(super) async fn remove_alone(
        &self,
        key: &StoreKey,
        condition: &WriteCondition,
    ) -> Result<bool, StoreError> {
        let path = self.path(key)?;
        let _alone = LOCKS.lock(&path).await;
        let found = self.head_object(&path).await?;
        self.check(condition, found.as_ref())?;
        if found.is_none() {
            return Ok(false);
        }
        if *condition != WriteCondition::Always && self.takes_conditions().await {
            match self.remove_if(key, condition).await {
                // The condition holds, but the backend says otherwise, or takes none for an erasure.
                Err(StoreError::Contended(_) | StoreError::Backend(_) | StoreError::NotSupported(_)) => {}
                outcome => return outcome,
            }
        }
        self.remove_anyway(&path).await
    }

    /// Erases all values under a prefix, each under its lock. Returns how many there were.
    pub(super) async fn remove_prefix_alone(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        let ours = self.clone();
        let erase = self.list_all_under(prefix, None).map(move |entry| {
            let ours = ours.clone();
            async move {
                let path = ours.path(&entry?.key)?;
                // In its own task: where another one fails, the lock is held until this one is done.
                finish(async move {
                    let _alone = LOCKS.lock(&path).await;
                    ours.remove_anyway(&path).await
                })
                .await
            }
        });
        let erased = erase.buffer_unordered(MAX_ERASURES);
        erased.try_fold(0, |sum: u64, existed| ready(Ok(sum + u64::from(existed)))).await
    }

    /// Whether the backend heeds conditions although this server checks them.
    async fn takes_conditions(&self) -> bool {
        let probe = || async {
            match self.probe().await {
                Err(StoreError::Backend(_) | StoreError::NotSupported(_)) => Ok(false),
                heeded => heeded,
            }
        };
        self.kind != StoreKind::HTTP && matches!(self.heeds_conditions.get_or_try_init(probe).await, Ok(true))
    }

    /// Stores a value, whatever there is. Returns its version if the response has it.
    async fn put_anyway(&self, path: &Path, payload: &PutPayload) -> Result<Option<Version>, StoreError> {
        let options = PutOptions::from(PutMode::Overwrite);
        let stored = self.client().put_opts(path, payload.clone(), options).await.map_err(write_failure)?;
        Ok(stored.e_tag.as_deref().map(|tag| self.version(tag)))
    }

    /// Erases a value, whatever it is. Returns whether the backend had one.
    pub(super) async fn remove_anyway(&self, path: &Path) -> Result<bool, StoreError> {
        let erased = match self.client().delete(path).await {
            // The client does not retry after a broken connection, and an erasure may be repeated.
            Err(error) if is_transport(&error) => self.client().delete(path).await,
            erased => erased,
        };
        match erased {
            Ok(()) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(write_failure(error)),
        }
    }

    /// The version of a value that was just stored.
    async fn version_of(&self, path: &Path) -> Result<Option<Version>, StoreError> {
        let found: Option<StoredObject> =
            self.head_object(path).await.map_err(|error| StoreError::OutcomeUnknown(Arc::new(error)))?;
        Ok(found.map(|found| self.info(&found.meta).version))
    }
}

/// Whether a version is the MD5 digest of its content, in hexadecimal digits.
fn is_digest(version: &Version, content: &PutPayload) -> bool {
    if content.content_length() > MAX_DIGESTED {
        return false;
    }
    let mut digest = md5::Md5::default();
    for part in content {
        md5::Digest::update(&mut digest, part);
    }
    let digest: [u8; 16] = md5::Digest::finalize(digest).into();
    version.tag().len() == 32 && u128::from_str_radix(version.tag(), 16) == Ok(u128::from_be_bytes(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_was_written_no_earlier_than_it_was() {
        let begin = Instant::now();
        let at = |number: u64| begin + Duration::from_micros(number);
        let mut recent = RecentWrites::new();
        assert_eq!(recent.last(0), None);
        for path in 0..1000 {
            recent.note(path, at(path));
        }
        assert_eq!(recent.writes.len(), RecentWrites::MAX, "the table is bounded");
        for path in 0..1000 {
            assert!(recent.last(path) >= Some(at(path)), "{path}");
        }
        recent.note(1000, begin + NEXT_VERSION * 2);
        assert_eq!(recent.writes.len(), 1, "what no write has to wait for is dropped");
    }

    #[test]
    fn only_the_digest_of_the_content_is_one() {
        let content = PutPayload::from_static(b"abc");
        let digest = "900150983cd24fb0d6963f7d28e17f72";
        assert!(is_digest(&Version::strong(digest), &content));
        assert!(is_digest(&Version::strong(&digest.to_uppercase()), &content));
        assert!(!is_digest(&Version::strong("65f0c1a0-3"), &content));
        assert!(!is_digest(&Version::strong(digest), &PutPayload::from_static(b"abd")));
    }
}
