//! [`Root`]: the directory of a store, and the only way to open what is below it.
//!
//! A key never leads out of the root. On Linux the kernel ensures that (`openat2`), in one call and without a gap
//! between check and open; on other systems, and where `openat2` is filtered out, the path is walked one segment at a
//! time and no symbolic link is followed. Names are opened as if there were no links. A link on the path is followed if
//! the policy allows it, and is an error otherwise: a value behind it is not absent. Only regular files are values:
//! pipes, sockets and devices are opened without waiting for them and then treated as absent.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Dev, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::failure::{io, is_absence, missing, os};
use super::kernel::DIRECTORY;
use super::options::{LocalOptions, Symlinks};
use super::settled::Settling;
use super::version::FileState;
use super::{kernel, nonblocking};
use crate::store::reserved_keys::is_reserved;
use crate::store::{LinkFault, StoreError};

const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
/// Opens a name without access to its bytes.
#[cfg(target_os = "linux")]
const NAME: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const NAME: OFlags = FILE;

/// Opens a directory above one that is open already.
pub(super) const ABOVE: OFlags = NAME.union(OFlags::DIRECTORY);

/// An open root directory and the policy under which names are resolved below it.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    /// The path as the caller gave it.
    named: PathBuf,
    path: PathBuf,
    symlinks: Symlinks,
    /// The number of the device that the root is on.
    device: Dev,
    /// Whether `openat2` resolves paths.
    pub(super) by_kernel: bool,
    /// Whether reads are tried without a blocking thread (`nonblocking`).
    pub(super) nonblocking: bool,
    /// Which versions are settled.
    pub(super) settling: Settling,
}

/// The result of opening a key's file without blocking.
pub(super) enum TryOpen {
    /// Not known: call [`Root::open_file`] on a blocking thread.
    WouldBlock,
    /// There is no file.
    Absent,
    /// The file is open.
    Open(File, FileState),
}

/// Why nothing was opened.
pub(super) enum ResolveError {
    /// The error of the system, without a link on the path.
    Errno(Errno),
    /// A link on the path.
    Link(LinkFault),
}

impl Root {
    /// Opens an existing directory.
    pub(super) fn open(named: &Path, options: &LocalOptions) -> Result<Self, StoreError> {
        let path = named.canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => missing(),
            _ => io("find the root directory", &error),
        })?;
        let fd = openat(CWD, &path, DIRECTORY, Mode::empty())
            .map_err(|errno| os("open the root directory", errno))?;
        let by_kernel = kernel::is_supported(&fd);
        let device = fstat(&fd).map_err(|errno| os("stat the root directory", errno))?.st_dev;
        let settling =
            Settling::new(options.trusts_file_times, nonblocking::has_local_clock(&fd).then_some(device));
        let (symlinks, nonblocking) = (options.symlinks, by_kernel && nonblocking::is_supported(&fd));
        Ok(Self { fd, named: named.to_owned(), path, symlinks, device, by_kernel, nonblocking, settling })
    }

    /// The root's own descriptor.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// The canonical path; names the root in locks, not in any error.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path that was given now leads to another directory. A path that leads nowhere does not replace the
    /// open one.
    pub(super) fn is_replaced(&self) -> bool {
        let Ok(found) = openat(CWD, &self.named, ABOVE, Mode::empty()).and_then(fstat) else { return false };
        fstat(&self.fd).is_ok_and(|open| (open.st_dev, open.st_ino) != (found.st_dev, found.st_ino))
    }

    /// Whether the open directory was removed.
    pub(super) fn is_removed(&self) -> bool {
        fstat(&self.fd).is_ok_and(|open| open.st_nlink == 0)
    }

    /// Which links are followed.
    pub(super) fn symlinks(&self) -> Symlinks {
        self.symlinks
    }

    /// The number of the device that the root is on.
    pub(super) fn device(&self) -> Dev {
        self.device
    }

    /// The state of a file from a `stat` that was taken after `began`.
    pub(super) fn file_state(&self, stat: Stat, began: SystemTime) -> FileState {
        self.settling.file_state(stat, began)
    }

    /// Records a file that this process wrote and gave this time, and returns its state.
    pub(super) fn record_own_write(&self, stat: Stat, modified: SystemTime) -> FileState {
        let began = SystemTime::now();
        self.settling.record_own_write(stat, modified);
        self.settling.file_state(stat, began)
    }

    /// Opens the regular file of a key. `None` if there is none.
    pub(super) fn open_file(&self, key: &str) -> Result<Option<(File, FileState)>, StoreError> {
        if is_reserved(key) {
            return Ok(None);
        }
        let began = SystemTime::now();
        let Some(fd) = self.open_if_present(key, FILE, "open the value's file")? else { return Ok(None) };
        let stat = fstat(&fd).map_err(|errno| os("stat the value's file", errno))?;
        Ok(is_file(&stat).then(|| (File::from(fd), self.file_state(stat, began))))
    }

    /// [`Root::open_file`] without blocking, from the kernel's memory alone. Every failure is [`TryOpen::WouldBlock`].
    pub(super) fn try_open_file(&self, key: &str) -> TryOpen {
        if !self.nonblocking {
            return TryOpen::WouldBlock;
        }
        if is_reserved(key) {
            return TryOpen::Absent;
        }
        let began = SystemTime::now();
        match nonblocking::open(&self.fd, key, FILE) {
            Ok(fd) => match fstat(&fd) {
                Ok(stat) if is_file(&stat) => TryOpen::Open(File::from(fd), self.file_state(stat, began)),
                Ok(_) | Err(_) => TryOpen::WouldBlock,
            },
            Err(Errno::NOENT) if self.check().is_ok() => TryOpen::Absent,
            Err(_) => TryOpen::WouldBlock,
        }
    }

    /// The `stat` of a key's file by its name alone, without opening it: for names that were opened a moment ago and so
    /// are in the kernel's memory. `None` if it is not known, or the file is on another device than the root.
    ///
    /// Equal device, inode, times and size mean that this is the file that was opened before and that it was not
    /// written to since: its bytes are those that the root's policy allowed. They do not mean that every directory on
    /// the path is still a directory: a link that replaced one and leads to the same file is not noticed until the name
    /// is opened again. A link that leads anywhere else finds another file, and nothing is revealed.
    pub(super) fn try_stat(&self, key: &str) -> Option<Stat> {
        if !self.nonblocking || is_reserved(key) {
            return None;
        }
        let stat = statat(&self.fd, key, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (stat.st_dev == self.device && is_file(&stat)).then_some(stat)
    }

    /// Whether it is known without blocking that a key has no file, and its path no link.
    pub(super) fn try_is_absent(&self, key: &str) -> bool {
        let is_absent = || matches!(nonblocking::open(&self.fd, key, NAME), Err(Errno::NOENT));
        self.nonblocking && !is_reserved(key) && is_absent() && self.check().is_ok()
    }

    /// Opens the directory of a prefix, or of the root for an empty text. `None` if there is none.
    pub(super) fn open_directory(&self, prefix: &str) -> Result<Option<OwnedFd>, StoreError> {
        let path = prefix.strip_suffix('/').unwrap_or(prefix);
        if is_reserved(path) {
            return Ok(None);
        }
        if path.is_empty() {
            // A directory that was removed can still be opened by its descriptor, and is empty.
            self.check()?;
        }
        self.open_if_present(if path.is_empty() { "." } else { path }, DIRECTORY, "open a directory")
    }

    /// As [`Root::open_directory`], with the error number, for callers that create missing directories. A link that is
    /// not followed is `ELOOP`.
    pub(super) fn directory_fd(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.resolve(if path.is_empty() { "." } else { path }, DIRECTORY).map_err(|unopened| match unopened {
            ResolveError::Errno(errno) => errno,
            ResolveError::Link(_) => Errno::LOOP,
        })
    }

    /// Opens a directory, or any other file without access to its bytes, through no link.
    pub(super) fn open_without_links(&self, path: &str, is_directory: bool) -> Result<OwnedFd, Errno> {
        self.resolve_without_links(
            if path.is_empty() { "." } else { path },
            if is_directory { DIRECTORY } else { NAME },
        )
    }

    /// Opens the target of a name; `None` if there is none.
    fn open_if_present(
        &self,
        path: &str,
        flags: OFlags,
        doing: &'static str,
    ) -> Result<Option<OwnedFd>, StoreError> {
        match self.resolve(path, flags) {
            Ok(fd) => Ok(Some(fd)),
            Err(ResolveError::Errno(errno)) if is_absence(errno) => self.absent(),
            Err(ResolveError::Errno(errno)) => Err(os(doing, errno)),
            Err(ResolveError::Link(fault)) => Err(StoreError::Link { key: path.into(), fault }),
        }
    }

    /// Absence, unless the root itself was removed: then no key is known to be absent.
    fn absent<T>(&self) -> Result<Option<T>, StoreError> {
        self.check().map(|()| None)
    }

    /// Whether the root is still there.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let stat = fstat(&self.fd).map_err(|errno| os("stat the root directory", errno))?;
        if stat.st_nlink == 0 { Err(missing()) } else { Ok(()) }
    }

    /// Makes all changes to the root's file system durable.
    pub(super) fn sync_file_system(&self) -> Result<(), Errno> {
        #[cfg(target_os = "linux")]
        return retry(|| rustix::fs::syncfs(&self.fd));
        #[cfg(not(target_os = "linux"))]
        {
            rustix::fs::sync();
            Ok(())
        }
    }

    fn resolve(&self, path: &str, flags: OFlags) -> Result<OwnedFd, ResolveError> {
        match self.resolve_without_links(path, flags) {
            Err(Errno::LOOP) => self.resolve_links(path, flags),
            opened => opened.map_err(ResolveError::Errno),
        }
    }

    /// Opens the target of a path through no link; `ELOOP` if there is one on the path.
    fn resolve_without_links(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        if self.by_kernel {
            return retry(|| kernel::open_beneath(&self.fd, path, flags, false));
        }
        self.walk(path, flags)
    }

    /// Opens the target of a path that has links.
    fn resolve_links(&self, path: &str, flags: OFlags) -> Result<OwnedFd, ResolveError> {
        if self.symlinks == Symlinks::Deny || (self.symlinks == Symlinks::Within && !self.by_kernel) {
            return Err(ResolveError::Link(LinkFault::Refused));
        }
        self.follow(path, flags).map_err(|errno| match errno {
            Errno::LOOP => ResolveError::Link(LinkFault::Loops),
            Errno::XDEV => ResolveError::Link(LinkFault::LeadsOut),
            Errno::NOENT | Errno::NOTDIR if !self.is_absent_behind_links(path) => {
                ResolveError::Link(LinkFault::Dangles)
            }
            errno => ResolveError::Errno(errno),
        })
    }

    fn follow(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        if self.symlinks == Symlinks::Follow {
            return retry(|| openat(&self.fd, path, flags, Mode::empty()));
        }
        retry(|| kernel::open_beneath(&self.fd, path, flags, true)).and_then(kernel::not_reserved)
    }

    /// For a path with links that could not be opened: whether its links lead to the place where the rest of it would
    /// be, or to a file where a directory was requested. Otherwise one of the links is dangling.
    fn is_absent_behind_links(&self, path: &str) -> bool {
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        match self.resolve(above, DIRECTORY) {
            Ok(directory) => !is_link(&directory, name) || self.follow(path, NAME).is_ok(),
            Err(ResolveError::Errno(errno)) => is_absence(errno),
            Err(ResolveError::Link(_)) => false,
        }
    }

    /// Opens each segment in turn, none of them through a link.
    fn walk(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut directory: Option<OwnedFd> = None;
        let mut segments = path.split('/').peekable();
        while let Some(segment) = segments.next() {
            let from = directory.as_ref().map_or(self.fd.as_fd(), AsFd::as_fd);
            let last = segments.peek().is_none();
            let flags = if last { flags } else { DIRECTORY } | OFlags::NOFOLLOW;
            let opened = retry(|| openat(from, segment, flags, Mode::empty())).map_err(|errno| {
                // The system checks first whether a directory was requested.
                if errno == Errno::NOTDIR && is_link(from, segment) { Errno::LOOP } else { errno }
            })?;
            if last {
                return Ok(opened);
            }
            directory = Some(opened);
        }
        Err(Errno::NOENT)
    }
}

/// Whether this is a regular file.
pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether a name in a directory is a symbolic link.
pub(super) fn is_link(directory: impl AsFd, name: impl Arg) -> bool {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Asks again when a signal came in between, or (`openat2`) a rename somewhere else did.
pub(super) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut tries = 0;
    loop {
        match call() {
            Err(Errno::INTR | Errno::AGAIN) if tries < 64 => tries += 1,
            result => return result,
        }
    }
}
