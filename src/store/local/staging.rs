//! The store's own directory below the root: the lock file and the staging area.
//!
//! `<root>/.zarr-server/` is no key and no prefix: callers never list, read or write it. It is below the root because a
//! rename is atomic only within one file system.
//!
//! Stores of one root share it within the process: after a reload of the configuration, the previous store still serves
//! the requests that began with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, Dev, Dir, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, flock, fstat,
    fsync, ftruncate, futimens, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::{Errno, pwrite};

use super::blocking::detach;
use super::disk::{Disk, Step};
use super::failure::{Failure, io, os};
use super::new_directories::NewDirectories;
use super::options::Durability;
use super::root::{Root, retry};
use super::version::{next_modified, timespec};
use crate::store::OwnArea;
use crate::store::reserved_keys::RESERVED;
use crate::store::{StoreError, ValueInfo};

/// The content of the lock file while no server has the root open. Missing if the last server died, failed to make its
/// writes durable, or was configured not to.
const CLOSED: &[u8] = b"closed\n";

/// A root by its device and inode.
type RootId = (Dev, u64);

/// The roots that this process has open for writing. An entry without a directory is being closed or opened.
static OPEN: Mutex<BTreeMap<RootId, Weak<StagingDir>>> = Mutex::new(BTreeMap::new());
/// Notified when a root was opened or closed.
static DONE: Condvar = Condvar::new();

/// No code panics while it holds the lock.
fn open_roots() -> MutexGuard<'static, BTreeMap<RootId, Weak<StagingDir>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The staging area of a root, and the lock that keeps other servers from writing there.
#[derive(Debug)]
pub(super) struct StagingDir {
    root: RootId,
    staging: OwnedFd,
    lock: OwnedFd,
    /// Whether some store of this root does not make its writes durable.
    is_loose: AtomicBool,
    /// Set when the disk failed to make a write durable.
    broken: AtomicBool,
    /// Directories that must be made durable with the next value below them, whichever writer created them.
    pub(super) new_directories: NewDirectories,
}

impl StagingDir {
    /// Opens the staging area of a root: shares that of another store of this process, or else creates the directory if
    /// it is missing, takes the lock, and removes the staging files of dead processes.
    pub(super) fn open(root: &Root, durability: Durability) -> Result<Arc<Self>, StoreError> {
        let stat = fstat(root.fd()).map_err(|errno| os("stat the root directory", errno))?;
        let id = (stat.st_dev, stat.st_ino);
        let mut open = open_roots();
        let shared = loop {
            match open.get(&id).map(Weak::upgrade) {
                None => break None,
                Some(Some(shared)) => break Some(shared),
                Some(None) => open = DONE.wait(open).unwrap_or_else(PoisonError::into_inner),
            }
        };
        let Some(shared) = shared else {
            open.insert(id, Weak::new());
            drop(open);
            // This may take long, and other roots may be closed meanwhile.
            let taken = Self::take(id, root, durability).map(Arc::new);
            match &taken {
                Ok(staging) => open_roots().insert(id, Arc::downgrade(staging)),
                Err(_) => open_roots().remove(&id),
            };
            DONE.notify_all();
            return taken;
        };
        // Dropping the last reference takes the same lock.
        drop(open);
        if shared.is_broken() {
            return Err(in_use());
        }
        shared.share(root, durability)?;
        Ok(shared)
    }

    fn take(id: RootId, root: &Root, durability: Durability) -> Result<Self, StoreError> {
        let (own, is_new) = make_directory(root.fd(), RESERVED)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = openat(&own, "lock", flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| os("open the lock file of the root", errno))?;
        match retry(|| flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(broken_by)) {
            Ok(()) => {}
            Err(Errno::BUSY) => return Err(in_use()),
            Err(errno) => return Err(os("lock the root directory", errno)),
        }
        let (staging, _) = make_directory(&own, "staging")?;
        remove_leftovers(&staging)?;
        erase_uploads(root)?;
        let was_closed = is_new || fstat(&lock).is_ok_and(|stat| stat.st_size > 0);
        if !was_closed && durability == Durability::Fsync {
            // Later writes build on values that a killed server made visible, but perhaps not durable.
            sync_all_files(root)?;
        }
        ftruncate(&lock, 0).map_err(|errno| os("open the lock file of the root", errno))?;
        let is_loose = AtomicBool::new(durability != Durability::Fsync);
        let new_directories = NewDirectories::default();
        Ok(Self { root: id, staging, lock, is_loose, broken: AtomicBool::new(false), new_directories })
    }

    /// Adds a store with its durability.
    fn share(&self, root: &Root, durability: Durability) -> Result<(), StoreError> {
        if durability != Durability::Fsync {
            self.is_loose.store(true, Ordering::SeqCst);
        } else if self.is_loose.load(Ordering::SeqCst) {
            // Later writes build on earlier ones that were not made durable.
            sync_all_files(root)?;
        }
        Ok(())
    }

    /// Whether the disk failed to make a write durable.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    /// Records that it failed: no write is accepted from now on.
    pub(super) fn refuse_writes(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }
}

impl Drop for StagingDir {
    fn drop(&mut self) {
        // Values that were visible but may not be durable: the next server must sync.
        if !self.is_loose.load(Ordering::SeqCst) && !self.is_broken() {
            // If this fails, the next start takes a little longer.
            let _ = pwrite(&self.lock, CLOSED, 0);
        }
        let mut open = open_roots();
        // Now, and not later with the file: a waiting store may take the lock next.
        let _ = flock(&self.lock, FlockOperation::Unlock);
        open.remove(&self.root);
        DONE.notify_all();
    }
}

fn in_use() -> StoreError {
    let cause = Failure::new("lock the root directory", std::io::Error::from(Errno::WOULDBLOCK));
    StoreError::RootInUse(Arc::new(cause))
}

fn sync_all_files(root: &Root) -> Result<(), StoreError> {
    root.sync_file_system().map_err(|errno| os("make durable what another left", errno))
}

/// `EWOULDBLOCK` here means "held by another", not "retry".
fn broken_by(errno: Errno) -> Errno {
    if errno == Errno::WOULDBLOCK { Errno::BUSY } else { errno }
}

/// Creates one of the store's own directories, unless it exists. Other users have no access to it, so staging files are
/// out of their reach until they are values. Returns also whether it was created now.
fn make_directory(parent: &OwnedFd, name: &str) -> Result<(OwnedFd, bool), StoreError> {
    let is_new = match mkdirat(parent, name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(os("make the store's own directory", errno)),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(parent, name, flags, Mode::empty());
    Ok((directory.map_err(|errno| os("open the store's own directory", errno))?, is_new))
}

/// Removes all staging files: the holder of the lock is the only writer, so they belong to processes that died. The age
/// of a file or the number in its name would prove nothing: clocks are set, and in a container every server is process
/// 1.
///
/// If the lock does not exclude another machine (network file systems that lock only locally), a write in flight there
/// loses its staging file and ends in an error: no value is torn, and nothing false is acknowledged.
fn remove_leftovers(staging: &OwnedFd) -> Result<(), StoreError> {
    let directory = Dir::read_from(staging).map_err(|errno| os("read the staging directory", errno))?;
    for entry in directory {
        let entry = entry.map_err(|errno| os("read the staging directory", errno))?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        // One that cannot be removed (a directory that an operator created there) does no harm, and is tried again at
        // the next start.
        let _ = unlinkat(staging, entry.file_name(), AtFlags::empty());
    }
    Ok(())
}

/// The directory of an area of the store's own. It is a root of its own.
fn own_area_of(root: &Root, area: OwnArea) -> PathBuf {
    root.path().join(RESERVED).join(area.name())
}

/// Makes that directory.
pub(super) fn make_own_area(root: &Root, area: OwnArea) -> Result<PathBuf, StoreError> {
    let path = own_area_of(root, area);
    match std::fs::create_dir(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(io("make a directory of the store's own", &error))
        }
        _ => Ok(path),
    }
}

/// Erases the parts of uploads that another process left. They were never made durable: after a power failure, they may
/// not hold what was acknowledged.
fn erase_uploads(root: &Root) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(own_area_of(root, OwnArea::Uploads)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("erase the parts of uploads", &error)),
        _ => Ok(()),
    }
}

/// A staging file, which is removed on drop unless it was published.
#[derive(Debug)]
pub(super) struct Staged {
    staging: Arc<StagingDir>,
    disk: Arc<Disk>,
    name: String,
    file: Arc<File>,
    modified: SystemTime,
    published: bool,
}

impl Staged {
    /// A new, empty staging file.
    pub(super) fn create(staging: Arc<StagingDir>, disk: Arc<Disk>) -> Result<Self, StoreError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:x}-{since:x}-{count:x}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // The mode the value will have; `.zarr-server` itself is closed to others.
        let mode = Mode::from_raw_mode(0o666);
        let file = disk
            .call(Step::Create, || openat(&staging.staging, name.as_str(), flags, mode))
            .map_err(|errno| os("make a staging file", errno))?;
        Ok(Self {
            staging,
            disk,
            name,
            file: Arc::new(File::from(file)),
            modified: UNIX_EPOCH,
            published: false,
        })
    }

    /// Appends to the file.
    pub(super) fn write(&mut self, part: &[u8]) -> Result<(), StoreError> {
        let mut rest = part;
        while !rest.is_empty() {
            let written = self.disk.call(Step::Write, || rustix::io::write(&*self.file, rest));
            let written = written.and_then(|bytes| if bytes == 0 { Err(Errno::NOSPC) } else { Ok(bytes) });
            let written = written.map_err(|errno| os("write the staging file", errno))?;
            rest = rest.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Gives the file a modification time later than that of every other write and of the value it replaces. Returns
    /// whether that was necessary: the time it has may be late enough.
    pub(super) fn stamp(&mut self, replaced: Option<&ValueInfo>) -> Result<bool, StoreError> {
        let floor = replaced.and_then(|info| info.modified).unwrap_or(UNIX_EPOCH);
        if self.modified > floor {
            return Ok(false);
        }
        let modified = next_modified(replaced);
        let unchanged = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let times = Timestamps { last_access: unchanged, last_modification: timespec(modified) };
        self.disk
            .call(Step::Stamp, || futimens(&*self.file, &times))
            .map_err(|errno| os("set the time of the staging file", errno))?;
        self.modified = modified;
        Ok(true)
    }

    /// The last modification time it was given.
    pub(super) fn modified(&self) -> SystemTime {
        self.modified
    }

    /// Makes the bytes durable.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        self.disk.call(Step::SyncFile, || fsync(&*self.file))
    }

    /// The file's `stat`.
    pub(super) fn stat(&self) -> Result<Stat, StoreError> {
        fstat(&*self.file).map_err(|errno| os("stat the value written", errno))
    }

    /// Renames the file to `name` in `directory`.
    pub(super) fn publish(&mut self, directory: &OwnedFd, name: &str) -> Result<(), Errno> {
        let staging = &self.staging.staging;
        self.disk.call(Step::Rename, || renameat(staging, self.name.as_str(), directory, name))?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.published {
            return;
        }
        let (staging, name, file) =
            (Arc::clone(&self.staging), std::mem::take(&mut self.name), Arc::clone(&self.file));
        // Freeing a long file takes the file system a while.
        detach(move || {
            drop(file);
            let _ = unlinkat(&staging.staging, name.as_str(), AtFlags::empty());
        });
    }
}
