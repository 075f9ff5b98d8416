//! Writing and erasing: whole or not at all, durable before it is acknowledged.
//!
//! A value's bytes go to a staging file first. When they are complete and on the disk, the key's lock is taken,
//! the condition is checked, the file gets its name by a rename, and the directory is made durable; only then is
//! the write acknowledged. From the last byte on, the write runs to its end even if nobody waits for it any more.
//! Keys are a flat namespace, so directories come and go with them: a writer makes those it needs and begins
//! again if one is removed under its hands.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::stream::TryStreamExt;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fsync, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::blocking::{Blocking, join};
use super::failure::{is_absence, os};
use super::locks::{KeyLock, lock};
use super::read::head;
use super::reserved::Staged;
use super::root::{is_reserved, retry};
use super::version::info_of;
use super::{Area, Durability};
use crate::key::{MAX_KEY_SEGMENTS, StoreKey};
use crate::store::{SetOutcome, StoreError, ValueStream, WriteCondition};

/// The body is written in pieces of about this length.
const PIECE_BYTES: usize = 1 << 20;
/// The longest name that file systems hold.
const MAX_NAME_BYTES: usize = 255;
/// How often a write begins again because another one removed or made a directory meanwhile.
const TRIES: usize = 256;

/// Stores a value.
pub(super) async fn set(
    area: &Arc<Area>,
    blocking: &Blocking,
    key: &StoreKey,
    body: ValueStream,
    condition: WriteCondition,
) -> Result<SetOutcome, StoreError> {
    check_name(key)?;
    let (ours, name, wanted) = (Arc::clone(area), key.clone(), condition.clone());
    let prepared = blocking.run(move || {
        let reserved = ours.writable()?;
        // Only to spare the sender the way; what counts is the check at the commit.
        wanted.check(head(&ours.root, &name)?.as_ref())?;
        Staged::create(reserved)
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
    area: &Arc<Area>,
    blocking: &Blocking,
    key: &StoreKey,
    condition: WriteCondition,
    durable: bool,
) -> Result<bool, StoreError> {
    if is_reserved(key.as_str()) {
        return condition.check(None).map(|()| false);
    }
    let (area, blocking, key) = (Arc::clone(area), blocking.clone(), key.clone());
    let lock = lock(area.root.path(), &key).await;
    blocking.run(move || area.remove(&lock, &key, &condition, durable)).await
}

impl Area {
    /// Writes the last bytes and makes them all durable.
    fn complete(&self, mut staged: Staged, rest: &[u8]) -> Result<Staged, StoreError> {
        staged.write(rest)?;
        staged.stamp(None)?;
        self.synced("make the value durable", || staged.sync())?;
        Ok(staged)
    }

    /// Gives a complete staging file its name.
    fn commit(
        &self,
        _lock: &KeyLock,
        mut staged: Staged,
        key: &StoreKey,
        condition: &WriteCondition,
    ) -> Result<SetOutcome, StoreError> {
        self.writable()?;
        let current = head(&self.root, key)?;
        condition.check(current.as_ref())?;
        if staged.stamp(current.as_ref())? {
            self.synced("make the value durable", || staged.sync())?;
        }
        let directory = self.publish(&mut staged, key)?;
        self.synced("make the directory durable", || retry(|| fsync(&directory)))?;
        self.sync_new_directories(key)?;
        let version = info_of(&staged.stat()?).version;
        Ok(SetOutcome { created: current.is_none(), version: Some(version) })
    }

    fn publish(&self, staged: &mut Staged, key: &StoreKey) -> Result<OwnedFd, StoreError> {
        let mut last = Errno::AGAIN;
        for _ in 0..TRIES {
            match self.try_publish(staged, key) {
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
    fn try_publish(&self, staged: &mut Staged, key: &StoreKey) -> Result<OwnedFd, Errno> {
        let directory = self.make_directories(parent_path(key.parent().as_str()))?;
        match staged.publish(&directory, key.name()) {
            Ok(()) => Ok(directory),
            // A directory of that name: in the way if it holds anything, a leftover if not.
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                Err(if remove_empty(&directory, key.name(), 0)? { Errno::AGAIN } else { Errno::ISDIR })
            }
            Err(errno) => Err(errno),
        }
    }

    /// Opens a directory below the root, and makes it and those above it if they are missing.
    fn make_directories(&self, path: &str) -> Result<OwnedFd, Errno> {
        match self.root.try_directory(path) {
            Err(Errno::NOENT) if !path.is_empty() => {}
            result => return result,
        }
        for directory in ancestors(path) {
            let (above, name) = directory.rsplit_once('/').unwrap_or(("", directory));
            // Noted first: whoever writes below it from now on has to see to it that it lasts.
            self.new_directories().insert(directory.to_owned());
            match mkdirat(self.root.try_directory(above)?, name, Mode::from_raw_mode(0o777)) {
                // Noted again: another writer may have struck it off for an earlier directory of that name.
                Ok(()) => drop(self.new_directories().insert(directory.to_owned())),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        self.root.try_directory(path)
    }

    /// Makes the directories above a key durable that were made since the store was opened.
    fn sync_new_directories(&self, key: &StoreKey) -> Result<(), StoreError> {
        let prefix = key.parent();
        for directory in ancestors(parent_path(prefix.as_str())) {
            if !self.new_directories().contains(directory) {
                continue;
            }
            let above = directory.rsplit_once('/').map_or("", |(above, _)| above);
            self.synced("make the directories durable", || match self.root.try_directory(above) {
                Ok(directory) => retry(|| fsync(&directory)),
                // Erased again meanwhile, and the value with it.
                Err(errno) if is_absence(errno) => Ok(()),
                Err(errno) => Err(errno),
            })?;
            self.new_directories().remove(directory);
        }
        Ok(())
    }

    fn remove(
        &self,
        _lock: &KeyLock,
        key: &StoreKey,
        condition: &WriteCondition,
        durable: bool,
    ) -> Result<bool, StoreError> {
        self.writable()?;
        let current = head(&self.root, key)?;
        condition.check(current.as_ref())?;
        if current.is_none() {
            return Ok(false);
        }
        let prefix = key.parent();
        let path = parent_path(prefix.as_str());
        let Some(directory) = self.root.open_directory(path)? else {
            return Ok(false);
        };
        match unlinkat(&directory, key.name(), AtFlags::empty()) {
            Ok(()) => {}
            Err(errno) if is_absence(errno) => return Ok(false),
            Err(errno) => return Err(os("erase the value", errno)),
        }
        if durable {
            self.synced("make the erasure durable", || retry(|| fsync(&directory)))?;
        }
        drop(directory);
        self.remove_empty_directories(path);
        Ok(true)
    }

    /// Removes the directories above an erased key that hold nothing any more. One that stays does no harm.
    fn remove_empty_directories(&self, mut path: &str) {
        while !path.is_empty() {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            let Ok(directory) = self.root.try_directory(above) else {
                return;
            };
            if unlinkat(&directory, name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
            path = above;
        }
    }

    /// Makes all erasures so far durable.
    pub(super) fn sync_all(&self) -> Result<(), StoreError> {
        #[cfg(target_os = "linux")]
        let sync = || rustix::fs::syncfs(self.root.fd());
        #[cfg(not(target_os = "linux"))]
        let sync = || {
            rustix::fs::sync();
            Ok(())
        };
        self.synced("make the erasures durable", sync)
    }

    /// Runs a call that makes something durable. After one has failed nobody knows what is on the disk, so no
    /// further write is acknowledged until the store is opened again.
    fn synced(
        &self,
        doing: &'static str,
        sync: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), StoreError> {
        if self.durability == Durability::Rename {
            return Ok(());
        }
        sync().map_err(|errno| {
            if errno == Errno::IO {
                self.broken.store(true, Ordering::SeqCst);
            }
            os(doing, errno)
        })
    }

    fn new_directories(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeSet<String>> {
        self.new_directories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const NAME_TOO_LONG: StoreError = StoreError::InvalidKey("a name between slashes is longer than 255 bytes");

fn check_name(key: &StoreKey) -> Result<(), StoreError> {
    if is_reserved(key.as_str()) {
        return Err(StoreError::InvalidKey("`.zarr-server` belongs to the store itself"));
    }
    if key.as_str().split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        return Err(NAME_TOO_LONG);
    }
    Ok(())
}

/// A prefix as the path of a directory.
fn parent_path(prefix: &str) -> &str {
    prefix.strip_suffix('/').unwrap_or(prefix)
}

/// `a`, `a/b`, `a/b/c` of `a/b/c`; nothing of the root.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.filter_map(|end| path.get(..end)).filter(|directory| !directory.is_empty())
}

/// Removes a directory that holds nothing but empty directories. Returns whether it is gone.
fn remove_empty(parent: &OwnedFd, name: &str, depth: usize) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(parent, name, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(true),
        Err(errno) => return Err(errno),
    };
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let Ok(inner) = entry.file_name().to_str() else {
            return Ok(false);
        };
        if matches!(inner, "." | "..") {
            continue;
        }
        let maybe_directory = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if !maybe_directory || depth >= MAX_KEY_SEGMENTS || !remove_empty(&directory, inner, depth + 1)? {
            return Ok(false);
        }
    }
    match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno),
    }
}
