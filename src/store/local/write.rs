//! Writing and erasing: whole or not at all, durable before it is acknowledged.
//!
//! A value's bytes go to a staging file first. When they are complete and on the disk, the key's lock is taken,
//! the condition is checked, the file gets its name by a rename, and the directory is made durable; only then is
//! the write acknowledged. From the last byte on, the write runs to its end even if nobody waits for it any more.
//! Keys are a flat namespace, so directories come and go with them: a writer makes those it needs and begins
//! again if one is removed under its hands.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::TryStreamExt;
use rustix::fs::{AtFlags, fsync, unlinkat};
use rustix::io::Errno;

use super::blocking::{Blocking, join};
use super::directories::remove_empty;
use super::disk::Step;
use super::failure::{failed, is_absence, os};
use super::locks::{KeyLock, lock};
use super::options::Durability;
use super::paths::parent_path;
use super::read::head;
use super::root_state::LocalRootState;
use super::staging::Staged;
use super::version::info_of;
use crate::key::StoreKey;
use crate::store::reserved_keys::{check_not_reserved, is_reserved};
use crate::store::{SetResult, StoreError, ValueInfo, ValueStream, WriteCondition};

/// The body is written in pieces of about this length.
const PIECE_BYTES: usize = 1 << 20;
/// The longest name that file systems hold.
const MAX_NAME_BYTES: usize = 255;
/// How often a write begins again because another one removed or made a directory meanwhile.
const TRIES: usize = 256;

/// Stores a value.
pub(super) async fn set(
    area: &Arc<LocalRootState>,
    blocking: &Blocking,
    key: &StoreKey,
    body: ValueStream,
    condition: WriteCondition,
) -> Result<SetResult, StoreError> {
    check_name(key)?;
    let (ours, name, wanted) = (Arc::clone(area), key.clone(), condition.clone());
    let prepared = blocking.run(move || {
        let reserved = ours.writable()?;
        // Only to spare the sender the way; what counts is the check at the commit.
        wanted.check(ours.before(&name, &wanted)?.as_ref())?;
        Staged::create(reserved, Arc::clone(&ours.disk))
    });
    let (staged, rest) = receive(prepared.await?, blocking, body).await?;
    let (area, blocking, key) = (Arc::clone(area), blocking.clone(), key.clone());
    join(tokio::spawn(async move {
        let ours = Arc::clone(&area);
        let complete = blocking.run(move || ours.complete(staged, &rest));
        let staged = complete.await?;
        let lock = lock(area.root.path(), &key).await;
        blocking.run(move || area.commit(&lock, staged, &key, &condition)).await
    }))
    .await
}

/// Writes a body to its staging file; the last bytes are handed back, to be written with the next step.
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
    area: &Arc<LocalRootState>,
    blocking: &Blocking,
    key: &StoreKey,
    condition: WriteCondition,
) -> Result<bool, StoreError> {
    if is_reserved(key.as_str()) {
        return condition.check(None).map(|()| false);
    }
    let (area, blocking, key) = (Arc::clone(area), blocking.clone(), key.clone());
    let lock = lock(area.root.path(), &key).await;
    blocking.run(move || area.remove(&lock, &key, &condition)).await
}

impl LocalRootState {
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
        _lock: &KeyLock,
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
        let version = info_of(&self.root.note_own(staged.stat()?, staged.modified())).version;
        Ok(SetResult { created: current.is_none(), version: Some(version) })
    }

    /// The value that a write replaces. A symbolic link in its place that leads to none is replaced itself.
    fn before(&self, key: &StoreKey, condition: &WriteCondition) -> Result<Option<ValueInfo>, StoreError> {
        match head(&self.root, key) {
            Err(StoreError::Link { .. }) if *condition == WriteCondition::Always => Ok(None),
            found => found,
        }
    }

    fn publish(&self, staged: &mut Staged, key: &StoreKey) -> Result<OwnedFd, StoreError> {
        let published = self.try_to_publish(staged, key);
        if published.is_err() {
            // Those that were made for this value.
            self.remove_empty_directories(parent_path(key.parent().as_str()));
        }
        published
    }

    fn try_to_publish(&self, staged: &mut Staged, key: &StoreKey) -> Result<OwnedFd, StoreError> {
        let mut last = Errno::AGAIN;
        for _ in 0..TRIES {
            match self.publish_once(staged, key) {
                Ok(directory) => return Ok(directory),
                Err(errno @ (Errno::NOENT | Errno::AGAIN)) => last = errno,
                Err(Errno::NOTDIR | Errno::ISDIR) => return Err(StoreError::KeyClash),
                Err(Errno::NAMETOOLONG) => return Err(NAME_TOO_LONG),
                Err(Errno::LOOP | Errno::XDEV) => {
                    return Err(StoreError::InvalidKey("a symbolic link stands in its way"));
                }
                Err(errno) => return Err(os("give the value its name", errno)),
            }
        }
        Err(os("give the value its name", last))
    }

    /// One try. `ENOENT` and `EAGAIN`: it may be worth another.
    fn publish_once(&self, staged: &mut Staged, key: &StoreKey) -> Result<OwnedFd, Errno> {
        let directory = self.make_directories(parent_path(key.parent().as_str()))?;
        match staged.publish(&directory, key.name()) {
            Ok(()) => Ok(directory),
            // A directory of that name: in the way if it holds anything, a leftover if not.
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                Err(if remove_empty(&directory, key.name())? { Errno::AGAIN } else { Errno::ISDIR })
            }
            Err(errno) => Err(errno),
        }
    }

    fn remove(&self, lock: &KeyLock, key: &StoreKey, condition: &WriteCondition) -> Result<bool, StoreError> {
        self.writable()?;
        match head(&self.root, key) {
            // A symbolic link that leads to no value: it is removed itself, and not followed.
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

    /// Removes a name from its directory, and the directory if nothing else is in it.
    pub(super) fn unlink(
        &self,
        _lock: &KeyLock,
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

    /// Makes a value durable that has no name yet. If that fails, nothing was written; but a disk that fails is not
    /// trusted with more.
    fn sync_value(&self, staged: &Staged) -> Result<(), StoreError> {
        if self.durability == Durability::Rename {
            return Ok(());
        }
        staged.sync().map_err(|errno| {
            if errno == Errno::IO {
                self.give_up();
            }
            os("make the value durable", errno)
        })
    }

    /// Makes the names in a directory durable, which readers see already.
    pub(super) fn sync_directory(&self, doing: &'static str, directory: &OwnedFd) -> Result<(), StoreError> {
        if self.durability == Durability::Rename {
            return Ok(());
        }
        let synced = self.disk.call(Step::SyncDirectory, || fsync(directory));
        synced.map_err(|errno| self.unsettled(doing, errno))
    }

    /// A failure after readers may have seen the change. Nobody knows what is on the disk, so whatever the system
    /// calls it, it is not said that nothing was written, and no further write is acknowledged until the store is
    /// opened again: asked a second time, the system might call durable what it has given up.
    fn unsettled(&self, doing: &'static str, errno: Errno) -> StoreError {
        self.give_up();
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
