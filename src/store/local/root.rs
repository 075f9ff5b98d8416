//! [`Root`]: the directory a store stands on, and the only way to open what is below it.
//!
//! A key never leads out of the root. On Linux the kernel sees to that (`openat2`), in one call and without a
//! moment between looking and opening; elsewhere, and where `openat2` is filtered away, the path is walked one
//! segment at a time and no symbolic link is followed. Only regular files are values: pipes, sockets and devices
//! are opened without waiting for them and then treated as absent.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dev, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::failure::{is_absence, os};
use super::{Symlinks, now};
use crate::store::StoreError;
use crate::store::own_names::is_reserved;

const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open root directory and the policy under which names are resolved below it.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    path: PathBuf,
    symlinks: Symlinks,
    /// The number of the device that the root is on.
    device: Dev,
    /// Whether `openat2` is there to do the resolving.
    pub(super) by_kernel: bool,
    /// Whether what the kernel has in memory is tried without a blocking thread.
    pub(super) now: bool,
}

/// What can be said of a key's file without waiting.
pub(super) enum OpenNow {
    /// Nothing: [`Root::open_file`] has to be asked, where waiting does no harm.
    Unknown,
    /// There is none.
    Absent,
    /// It is open.
    Found(File, Stat),
}

/// What can be said of a key's file by its name alone.
pub(super) enum LookNow {
    /// Nothing.
    Unknown,
    /// There is none.
    Absent,
    /// There is this file.
    Found(Stat),
}

impl Root {
    /// Opens an existing directory.
    pub(super) fn open(path: &Path, symlinks: Symlinks) -> Result<Self, StoreError> {
        let path =
            path.canonicalize().map_err(|error| super::failure::io("find the root directory", &error))?;
        let fd = openat(CWD, &path, DIRECTORY, Mode::empty())
            .map_err(|errno| os("open the root directory", errno))?;
        let by_kernel = kernel::is_there(&fd);
        if symlinks == Symlinks::Within && !by_kernel {
            return Err(StoreError::NotSupported("links within the root, without the system call `openat2`"));
        }
        let now = by_kernel && now::is_for(&fd);
        let device = fstat(&fd).map_err(|errno| os("look at the root directory", errno))?.st_dev;
        Ok(Self { fd, path, symlinks, device, by_kernel, now })
    }

    /// The root's own descriptor.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// The canonical path; names the root in locks, not in any error.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the device that the root is on.
    pub(super) fn device(&self) -> Dev {
        self.device
    }

    /// Whether links are resolved at all.
    pub(super) fn follows_links(&self) -> bool {
        self.symlinks != Symlinks::Deny
    }

    /// Opens the regular file of a key. `None` if there is none.
    pub(super) fn open_file(&self, key: &str) -> Result<Option<(File, Stat)>, StoreError> {
        if is_reserved(key) {
            return Ok(None);
        }
        let fd = match self.resolve(key, FILE) {
            Ok(fd) => fd,
            Err(errno) if is_absence(errno) => return self.absent(),
            Err(errno) => return Err(os("open the value's file", errno)),
        };
        let stat = fstat(&fd).map_err(|errno| os("look at the value's file", errno))?;
        Ok(is_file(&stat).then(|| (File::from(fd), stat)))
    }

    /// As [`Root::open_file`], from what the kernel has in memory alone. Whatever is not plain to see there is
    /// [`OpenNow::Unknown`], every failure with it.
    pub(super) fn open_file_now(&self, key: &str) -> OpenNow {
        if !self.now {
            return OpenNow::Unknown;
        }
        if is_reserved(key) {
            return OpenNow::Absent;
        }
        match now::open(&self.fd, key, FILE, self.symlinks) {
            Ok(fd) => match fstat(&fd) {
                Ok(stat) if is_file(&stat) => OpenNow::Found(File::from(fd), stat),
                Ok(_) | Err(_) => OpenNow::Unknown,
            },
            Err(Errno::NOENT) if self.check().is_ok() => OpenNow::Absent,
            Err(_) => OpenNow::Unknown,
        }
    }

    /// Looks at a key's file by its name alone, without opening it: for names that were opened a moment ago and so are in
    /// the kernel's memory.
    ///
    /// What a file is, by device, inode, times and size, says that it is the very file that was opened before and was
    /// not written to since: its bytes are those that the root's policy gave out. It does not say that every directory
    /// on the way is still none but a directory. Where links are no keys, one that has taken the place of a directory
    /// and leads to the very same file is taken for that directory, until the name is opened again; wherever else a link
    /// leads, another file is found, and nothing is given out. What stands on another device than the root is unknown.
    pub(super) fn look_now(&self, key: &str) -> LookNow {
        if !self.now || is_reserved(key) {
            return LookNow::Unknown;
        }
        let flags = if self.follows_links() { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        match statat(&self.fd, key, flags) {
            Ok(stat) if stat.st_dev == self.device && is_file(&stat) => LookNow::Found(stat),
            Err(Errno::NOENT) if self.check().is_ok() => LookNow::Absent,
            Ok(_) | Err(_) => LookNow::Unknown,
        }
    }

    /// Opens the directory of a prefix, or of the root for an empty text. `None` if there is none.
    pub(super) fn open_directory(&self, prefix: &str) -> Result<Option<OwnedFd>, StoreError> {
        let path = prefix.strip_suffix('/').unwrap_or(prefix);
        if is_reserved(path) {
            return Ok(None);
        }
        match self.try_directory(path) {
            Ok(fd) => Ok(Some(fd)),
            Err(errno) if is_absence(errno) => self.absent(),
            Err(errno) => Err(os("open a directory", errno)),
        }
    }

    /// As [`Root::open_directory`], with the error number for those who create what is missing.
    pub(super) fn try_directory(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.resolve(if path.is_empty() { "." } else { path }, DIRECTORY)
    }

    /// Absence, unless the root itself was removed: then nothing can be said of any key.
    fn absent<T>(&self) -> Result<Option<T>, StoreError> {
        self.check().map(|()| None)
    }

    /// Whether the root is still there.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let stat = fstat(&self.fd).map_err(|errno| os("look at the root directory", errno))?;
        if stat.st_nlink == 0 {
            Err(os("use the root directory, which was removed", Errno::NOENT))
        } else {
            Ok(())
        }
    }

    /// Makes everything durable that was done on the root's file system so far.
    pub(super) fn sync_file_system(&self) -> Result<(), Errno> {
        #[cfg(target_os = "linux")]
        return retry(|| rustix::fs::syncfs(&self.fd));
        #[cfg(not(target_os = "linux"))]
        {
            rustix::fs::sync();
            Ok(())
        }
    }

    fn resolve(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        if self.symlinks == Symlinks::Follow {
            return retry(|| openat(&self.fd, path, flags, Mode::empty()));
        }
        if self.by_kernel {
            return retry(|| kernel::open_beneath(&self.fd, path, flags, self.symlinks));
        }
        self.walk(path, flags)
    }

    /// Opens each segment in turn, none of them through a link.
    fn walk(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut directory: Option<OwnedFd> = None;
        let mut segments = path.split('/').peekable();
        while let Some(segment) = segments.next() {
            let from = directory.as_ref().map_or(self.fd.as_fd(), AsFd::as_fd);
            let last = segments.peek().is_none();
            let flags = if last { flags } else { DIRECTORY } | OFlags::NOFOLLOW;
            let opened = retry(|| openat(from, segment, flags, Mode::empty()))?;
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

#[cfg(target_os = "linux")]
pub(super) mod kernel {
    //! Resolution by the kernel.

    use std::os::fd::OwnedFd;

    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;

    use super::{DIRECTORY, Symlinks};

    pub(super) fn is_there(root: &OwnedFd) -> bool {
        open_beneath(root, ".", DIRECTORY, Symlinks::Deny).is_ok()
    }

    pub(super) fn open_beneath(
        root: &OwnedFd,
        path: &str,
        flags: OFlags,
        symlinks: Symlinks,
    ) -> Result<OwnedFd, Errno> {
        openat2(root, path, flags, Mode::empty(), policy(symlinks))
    }

    /// How names are resolved where links are not followed wherever they lead.
    pub(in crate::store::local) fn policy(symlinks: Symlinks) -> ResolveFlags {
        match symlinks {
            Symlinks::Deny => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS,
            Symlinks::Within => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Symlinks::Follow => ResolveFlags::empty(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    //! There is no such call here; `Root::walk` does the work.

    use std::os::fd::OwnedFd;

    use rustix::fs::OFlags;
    use rustix::io::Errno;

    use super::Symlinks;

    pub(super) fn is_there(_root: &OwnedFd) -> bool {
        false
    }

    pub(super) fn open_beneath(
        _root: &OwnedFd,
        _path: &str,
        _flags: OFlags,
        _symlinks: Symlinks,
    ) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }
}
