//! Writes and erasures: atomic, and durable before they are acknowledged.
//!
//! A value's bytes go to a staging file first. When they are complete and on the disk, the writer takes the key's lock,
//! checks the condition, renames the file to its name, and makes the directory durable; only then is the write
//! acknowledged. From the last byte on, the write runs to its end even if the caller is dropped. A value that is in memory
//! is written in one step on one thread if its lock is free: to go from thread to thread takes longer than the step.
//! Keys are a flat namespace, so directories come and go with them: a writer creates those it needs and begins again if one
//! is removed meanwhile.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::future::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use rustix::fs::{AtFlags, fsync, unlinkat};
use rustix::io::Errno;

use super::blocking::{Blocking, join};
use super::directories::remove_empty;
use super::disk::Step;
use super::failure::{failed, is_absence, os};
use super::locks::lock;
use super::options::Durability;
use super::paths::parent_path;
use super::read::head;
use super::root_state::LocalRootState;
use super::staging::Staged;
use super::version::info_of;
use crate::key::StoreKey;
use crate::store::path_locks::PathLock;
use crate::store::reserved_keys::{check_not_reserved, is_reserved};
use crate::store::{SetResult, StoreError, ValueInfo, ValueStream, WriteCondition};

/// The body is written in pieces of about this length.
const PIECE_BYTES: usize = 1 << 20;
/// The longest name that file systems hold.
const MAX_NAME_BYTES: usize = 255;
/// The most attempts of a rename, if other writers remove or create its directory meanwhile.
const ATTEMPTS: usize = 256;

/// Stores a value.
pub(super) async fn set(
    shared: &Arc<LocalRootState>,
    blocking: &Blocking,
    key: &StoreKey,
    body: ValueStream,
    condition: WriteCondition,
) -> Result<SetResult, StoreError> {
    check_name(key)?;
    let received = match Body::new(body)? {
        Body::InMemory(bytes) => (None, bytes),
        Body::Arriving(body) => {
            let (ours, name, wanted) = (Arc::clone(shared), key.clone(), condition.clone());
            let prepared = blocking.run(move || ours.prepare(&name, &wanted)).await?;
            let (staged, rest) = receive(prepared, blocking, body).await?;
            (Some(staged), rest)
        }
    };
    let (shared, blocking, key) = (Arc::clone(shared), blocking.clone(), key.clone());
    join(tokio::spawn(async move {
        let (ours, name, wanted) = (Arc::clone(&shared), key.clone(), condition.clone());
        let stored = blocking.run(move || {
            let (staged, rest) = received;
            let staged = staged.map_or_else(|| ours.prepare(&name, &wanted), Ok)?;
            let staged = ours.complete(staged, &rest)?;
            let path = ours.root.stored_path(&name);
            match path.try_lock() {
                Some(lock) => ours.commit(&lock, staged, &name, &wanted).map(Ok),
                None => Ok(Err((staged, path))),
            }
        });
        match stored.await? {
            Ok(stored) => Ok(stored),
            Err((staged, path)) => {
                let lock = path.lock().await;
                blocking.run(move || shared.commit(&lock, staged, &key, &condition)).await
            }
        }
    }))
    .await
}

/// The body of a value.
enum Body {
    InMemory(Bytes),
    Arriving(ValueStream),
}

impl Body {
    /// What a stream gives at once: all of it, if that is one piece.
    fn new(mut stream: ValueStream) -> Result<Self, StoreError> {
        let mut pieces = Vec::new();
        for _piece_and_end in 0..2 {
            match stream.try_next().now_or_never().transpose()? {
                Some(Some(piece)) => pieces.push(piece),
                Some(None) => return Ok(Self::InMemory(pieces.pop().unwrap_or_default())),
                None => break,
            }
        }
        Ok(Self::Arriving(stream::iter(pieces).map(Ok).chain(stream).boxed()))
    }
}

/// Writes a body to its staging file. Returns the last bytes, which the next step writes.
async fn receive(
    mut staged: Staged,
    blocking: &Blocking,
    mut body: ValueStream,
) -> Result<(Staged, Bytes), StoreError> {
    let mut held = BytesMut::new();
    while let Some(part) = body.try_next().await? {
        if held.len() + part.len() <= PIECE_BYTES {
            held.extend_from_slice(&part);
            continue;
        }
        let before = held.split().freeze();
        let write = blocking.run(move || {
            staged.write(&before)?;
            staged.write(&part)?;
            Ok(staged)
        });
        staged = write.await?;
    }
    Ok((staged, held.freeze()))
}

/// Removes a value. Returns whether there was one.
pub(super) async fn erase(
    shared: &Arc<LocalRootState>,
    blocking: &Blocking,
    key: &StoreKey,
    condition: WriteCondition,
) -> Result<bool, StoreError> {
    if is_reserved(key.as_str()) {
        return condition.check(None).map(|()| false);
    }
    let (shared, blocking, key) = (Arc::clone(shared), blocking.clone(), key.clone());
    let lock = lock(&shared, &blocking, &key).await?;
    blocking.run(move || shared.remove(&lock, &key, &condition)).await
}

impl LocalRootState {
    /// Creates the staging file of a value.
    fn prepare(&self, key: &StoreKey, condition: &WriteCondition) -> Result<Staged, StoreError> {
        let staging = self.writable()?;
        // Only to save the upload; the check at the commit decides.
        condition.check(self.before(key, condition)?.as_ref())?;
        Staged::create(staging, Arc::clone(&self.disk))
    }

    /// Writes the last bytes and makes them all durable.
    fn complete(&self, mut staged: Staged, rest: &[u8]) -> Result<Staged, StoreError> {
        staged.write(rest)?;
        staged.stamp(None)?;
        self.sync_value(&staged)?;
        Ok(staged)
    }

    /// Gives a complete staging file its name.
    fn commit(
        &self,
        _lock: &PathLock,
        mut staged: Staged,
        key: &StoreKey,
        condition: &WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.writable()?;
        let current = self.before(key, condition)?;
        condition.check(current.as_ref())?;
        if staged.stamp(current.as_ref())? {
            self.sync_value(&staged)?;
        }
        let directory = self.publish(&mut staged, key)?;
        self.sync_directory("make the directory durable", &directory)?;
        self.sync_new_directories(key)?;
        let version = info_of(&self.root.record_own_write(staged.stat()?, staged.modified())).version;
        Ok(SetResult { created: current.is_none(), version: Some(version) })
    }

    /// The value that a write replaces. A symbolic link that leads to no value is replaced itself.
    fn before(&self, key: &StoreKey, condition: &WriteCondition) -> Result<Option<ValueInfo>, StoreError> {
        match head(&self.root, key) {
            Err(StoreError::Link { .. }) if *condition == WriteCondition::Always => Ok(None),
            found => found,
        }
    }

    fn publish(&self, staged: &mut Staged, key: &StoreKey) -> Result<OwnedFd, StoreError> {
        let published = self.try_to_publish(staged, key);
        if published.is_err() {
            // The directories that were created for this value.
            self.remove_empty_directories(parent_path(key.parent().as_str()));
        }
        published
    }

    fn try_to_publish(&self, staged: &mut Staged, key: &StoreKey) -> Result<OwnedFd, StoreError> {
        let mut last = Errno::AGAIN;
        for _ in 0..ATTEMPTS {
            match self.publish_once(staged, key) {
                Ok(directory) => return Ok(directory),
                Err(errno @ (Errno::NOENT | Errno::AGAIN)) => last = errno,
                Err(Errno::NOTDIR | Errno::ISDIR) => return Err(StoreError::KeyClash),
                Err(Errno::NAMETOOLONG) => return Err(NAME_TOO_LONG),
                Err(Errno::LOOP | Errno::XDEV) => {
                    return Err(StoreError::InvalidKey("a symbolic link is in its way"));
                }
                Err(errno) => return Err(os("give the value its name", errno)),
            }
        }
        Err(os("give the value its name", last))
    }

    /// One attempt. `ENOENT` and `EAGAIN`: another may succeed.
    fn publish_once(&self, staged: &mut Staged, key: &StoreKey) -> Result<OwnedFd, Errno> {
        let directory = self.create_directories(parent_path(key.parent().as_str()))?;
        match staged.publish(&directory, key.name()) {
            Ok(()) => Ok(directory),
            // A directory of that name: in the way if it holds anything, a leftover if not.
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                Err(if remove_empty(&directory, key.name())? { Errno::AGAIN } else { Errno::ISDIR })
            }
            Err(errno) => Err(errno),
        }
    }

    fn remove(
        &self,
        lock: &PathLock,
        key: &StoreKey,
        condition: &WriteCondition,
    ) -> Result<bool, StoreError> {
        self.writable()?;
        match head(&self.root, key) {
            // A symbolic link that leads to no value is removed itself.
            Err(StoreError::Link { .. }) if *condition == WriteCondition::Always => {}
            found => {
                let current = found?;
                condition.check(current.as_ref())?;
                if current.is_none() {
                    return Ok(false);
                }
            }
        }
        let prefix = key.parent();
        let Some(directory) = self.root.open_directory(parent_path(prefix.as_str()))? else {
            return Ok(false);
        };
        self.unlink(lock, key, directory, true)
    }

    /// Removes a name from its directory, and the directory if it is then empty.
    pub(super) fn unlink(
        &self,
        _lock: &PathLock,
        key: &StoreKey,
        directory: OwnedFd,
        durable: bool,
    ) -> Result<bool, StoreError> {
        match self.disk.call(Step::Unlink, || unlinkat(&directory, key.name(), AtFlags::empty())) {
            Ok(()) => {}
            Err(errno) if is_absence(errno) => return Ok(false),
            Err(errno) => return Err(os("erase the value", errno)),
        }
        if durable {
            self.sync_directory("make the erasure durable", &directory)?;
        }
        drop(directory);
        self.remove_empty_directories(parent_path(key.parent().as_str()));
        Ok(true)
    }

    /// Makes all erasures so far durable.
    pub(super) fn sync_all(&self) -> Result<(), StoreError> {
        if self.durability == Durability::Rename {
            return Ok(());
        }
        let synced = self.disk.call(Step::SyncDirectory, || self.root.sync_file_system());
        synced.map_err(|errno| self.unsettled("make the erasures durable", errno))
    }

    /// Makes a value durable that has no name yet. If that fails, nothing was written, and the store takes no more
    /// writes.
    fn sync_value(&self, staged: &Staged) -> Result<(), StoreError> {
        if self.durability == Durability::Rename {
            return Ok(());
        }
        staged.sync().map_err(|errno| {
            if errno == Errno::IO {
                self.refuse_writes();
            }
            os("make the value durable", errno)
        })
    }

    /// Makes the names in a directory durable, which are visible to readers already.
    pub(super) fn sync_directory(&self, doing: &'static str, directory: &OwnedFd) -> Result<(), StoreError> {
        if self.durability == Durability::Rename {
            return Ok(());
        }
        let synced = self.disk.call(Step::SyncDirectory, || fsync(directory));
        synced.map_err(|errno| self.unsettled(doing, errno))
    }

    /// A failure after readers may have seen the change. The state of the disk is unknown, so the error never says that
    /// nothing was written, and no further write is acknowledged until the store is opened again: a second `fsync` may
    /// report success for data that the system has dropped.
    fn unsettled(&self, doing: &'static str, errno: Errno) -> StoreError {
        self.refuse_writes();
        failed(doing, std::io::Error::from(errno))
    }
}

const NAME_TOO_LONG: StoreError = StoreError::InvalidKey("a name between slashes is longer than 255 bytes");

fn check_name(key: &StoreKey) -> Result<(), StoreError> {
    check_not_reserved(key.as_str())?;
    if key.as_str().split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        return Err(NAME_TOO_LONG);
    }
    Ok(())
}
