//! [`Root`]: the directory a store stands on, and the only way to open what is below it.
//!
//! A key never leads out of the root. On Linux the kernel sees to that (`openat2`), in one call and without a
//! moment between looking and opening; elsewhere, and where `openat2` is filtered away, the path is walked one
//! segment at a time and no symbolic link is followed. Names are opened as if there were no links; where one stands
//! in the way, it is followed if it may be, and else it is an error: what is behind it is not absent. Only regular
//! files are values: pipes, sockets and devices are opened without waiting for them and then treated as absent.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Dev, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use rustix::path::Arg;

use super::failure::{is_absence, os};
use super::kernel::DIRECTORY;
use super::options::{LocalOptions, Symlinks};
use super::settled::Settling;
use super::version::Looked;
use super::{kernel, nonblocking};
use crate::store::reserved_keys::is_reserved;
use crate::store::{LinkFault, StoreError};

const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
/// For what is looked at and not read.
#[cfg(target_os = "linux")]
const NAME: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const NAME: OFlags = FILE;

/// For directories that lie above one that is open already.
pub(super) const ABOVE: OFlags = NAME.union(OFlags::DIRECTORY);

/// An open root directory and the policy under which names are resolved below it.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    /// As it was given.
    named: PathBuf,
    path: PathBuf,
    symlinks: Symlinks,
    /// The number of the device that the root is on.
    device: Dev,
    /// Whether `openat2` is there to do the resolving.
    pub(super) by_kernel: bool,
    /// Whether what the kernel has in memory is tried without a blocking thread.
    pub(super) now: bool,
    /// Which versions are believed.
    pub(super) settling: Settling,
}

/// What can be said of a key's file without waiting.
pub(super) enum OpenNow {
    /// Nothing: [`Root::open_file`] has to be asked, where waiting does no harm.
    Unknown,
    /// There is none.
    Absent,
    /// It is open.
    Found(File, Looked),
}

/// Why nothing was opened.
pub(super) enum Unopened {
    /// What the system says, where no link stands in the way.
    Plainly(Errno),
    /// A link.
    Link(LinkFault),
}

impl Root {
    /// Opens an existing directory.
    pub(super) fn open(named: &Path, options: &LocalOptions) -> Result<Self, StoreError> {
        let path =
            named.canonicalize().map_err(|error| super::failure::io("find the root directory", &error))?;
        let fd = openat(CWD, &path, DIRECTORY, Mode::empty())
            .map_err(|errno| os("open the root directory", errno))?;
        let by_kernel = kernel::is_supported(&fd);
        let device = fstat(&fd).map_err(|errno| os("look at the root directory", errno))?.st_dev;
        let settling =
            Settling::new(options.believes_times, nonblocking::has_own_clock(&fd).then_some(device));
        let (symlinks, now) = (options.symlinks, by_kernel && nonblocking::is_for(&fd));
        Ok(Self { fd, named: named.to_owned(), path, symlinks, device, by_kernel, now, settling })
    }

    /// The root's own descriptor.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// The canonical path; names the root in locks, not in any error.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path that was given leads to another directory by now. Where it leads to none, the one that is open is
    /// all that there is.
    pub(super) fn is_replaced(&self) -> bool {
        let Ok(found) = openat(CWD, &self.named, ABOVE, Mode::empty()).and_then(fstat) else { return false };
        fstat(&self.fd).is_ok_and(|open| (open.st_dev, open.st_ino) != (found.st_dev, found.st_ino))
    }

    /// The number of the device that the root is on.
    pub(super) fn device(&self) -> Dev {
        self.device
    }

    /// What a look is that began at `began`, before the file was looked at.
    pub(super) fn looked(&self, stat: Stat, began: SystemTime) -> Looked {
        self.settling.looked(stat, began)
    }

    /// What is known of a file that this process wrote and gave this time.
    pub(super) fn note_own(&self, stat: Stat, modified: SystemTime) -> Looked {
        let began = SystemTime::now();
        self.settling.note_own(stat, modified);
        self.settling.looked(stat, began)
    }

    /// Opens the regular file of a key. `None` if there is none.
    pub(super) fn open_file(&self, key: &str) -> Result<Option<(File, Looked)>, StoreError> {
        if is_reserved(key) {
            return Ok(None);
        }
        let began = SystemTime::now();
        let Some(fd) = self.resolved(key, FILE, "open the value's file")? else { return Ok(None) };
        let stat = fstat(&fd).map_err(|errno| os("look at the value's file", errno))?;
        Ok(is_file(&stat).then(|| (File::from(fd), self.looked(stat, began))))
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
        let began = SystemTime::now();
        match nonblocking::open(&self.fd, key, FILE) {
            Ok(fd) => match fstat(&fd) {
                Ok(stat) if is_file(&stat) => OpenNow::Found(File::from(fd), self.looked(stat, began)),
                Ok(_) | Err(_) => OpenNow::Unknown,
            },
            Err(Errno::NOENT) if self.check().is_ok() => OpenNow::Absent,
            Err(_) => OpenNow::Unknown,
        }
    }

    /// Looks at a key's file by its name alone, without opening it: for names that were opened a moment ago and so are in
    /// the kernel's memory. `None` if nothing can be said of it so.
    ///
    /// What a file is, by device, inode, times and size, says that it is the very file that was opened before and was
    /// not written to since: its bytes are those that the root's policy gave out. It does not say that every directory
    /// on the way is still none but a directory: a link that has taken the place of one and leads to the very same file
    /// is taken for it, until the name is opened again; wherever else a link leads, another file is found, and nothing
    /// is given out. What stands on another device than the root is unknown.
    pub(super) fn look_now(&self, key: &str) -> Option<Stat> {
        if !self.now || is_reserved(key) {
            return None;
        }
        let stat = statat(&self.fd, key, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (stat.st_dev == self.device && is_file(&stat)).then_some(stat)
    }

    /// Whether it is plain that there is no file of a key, and no link on the way.
    pub(super) fn is_absent_now(&self, key: &str) -> bool {
        let is_absent = || matches!(nonblocking::open(&self.fd, key, NAME), Err(Errno::NOENT));
        self.now && !is_reserved(key) && is_absent() && self.check().is_ok()
    }

    /// Opens the directory of a prefix, or of the root for an empty text. `None` if there is none.
    pub(super) fn open_directory(&self, prefix: &str) -> Result<Option<OwnedFd>, StoreError> {
        let path = prefix.strip_suffix('/').unwrap_or(prefix);
        if is_reserved(path) {
            return Ok(None);
        }
        self.resolved(if path.is_empty() { "." } else { path }, DIRECTORY, "open a directory")
    }

    /// As [`Root::open_directory`], with the error number for those who create what is missing. A link that is not
    /// followed is `ELOOP`.
    pub(super) fn try_directory(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.resolve(if path.is_empty() { "." } else { path }, DIRECTORY).map_err(|unopened| match unopened {
            Unopened::Plainly(errno) => errno,
            Unopened::Link(_) => Errno::LOOP,
        })
    }

    /// Opens a directory or (without its bytes) whatever else has this name, by no link.
    pub(super) fn open_plainly(&self, path: &str, is_directory: bool) -> Result<OwnedFd, Errno> {
        self.plainly(if path.is_empty() { "." } else { path }, if is_directory { DIRECTORY } else { NAME })
    }

    /// What a name leads to, or that it leads to nothing.
    fn resolved(
        &self,
        path: &str,
        flags: OFlags,
        doing: &'static str,
    ) -> Result<Option<OwnedFd>, StoreError> {
        match self.resolve(path, flags) {
            Ok(fd) => Ok(Some(fd)),
            Err(Unopened::Plainly(errno)) if is_absence(errno) => self.absent(),
            Err(Unopened::Plainly(errno)) => Err(os(doing, errno)),
            Err(Unopened::Link(fault)) => Err(StoreError::Link { key: path.into(), fault }),
        }
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

    fn resolve(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Unopened> {
        match self.plainly(path, flags) {
            Err(Errno::LOOP) => self.by_links(path, flags),
            opened => opened.map_err(Unopened::Plainly),
        }
    }

    /// Opens what a path leads to by no link; `ELOOP` where one stands in the way.
    fn plainly(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        if self.by_kernel {
            return retry(|| kernel::open_beneath(&self.fd, path, flags, false));
        }
        self.walk(path, flags)
    }

    /// Opens what a path leads to that has links in it.
    fn by_links(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Unopened> {
        if self.symlinks == Symlinks::Deny || (self.symlinks == Symlinks::Within && !self.by_kernel) {
            return Err(Unopened::Link(LinkFault::Refused));
        }
        self.follow(path, flags).map_err(|errno| match errno {
            Errno::LOOP => Unopened::Link(LinkFault::Loops),
            Errno::XDEV => Unopened::Link(LinkFault::LeadsOut),
            Errno::NOENT | Errno::NOTDIR if !self.is_absent_behind_links(path) => {
                Unopened::Link(LinkFault::Dangles)
            }
            errno => Unopened::Plainly(errno),
        })
    }

    fn follow(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        if self.symlinks == Symlinks::Follow {
            return retry(|| openat(&self.fd, path, flags, Mode::empty()));
        }
        retry(|| kernel::open_beneath(&self.fd, path, flags, true)).and_then(kernel::not_reserved)
    }

    /// Of a path that has links in it and could not be opened: whether they lead to where the rest of it would be, or to a
    /// file where a directory was asked for. If not, one of them leads to nothing itself.
    fn is_absent_behind_links(&self, path: &str) -> bool {
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        match self.resolve(above, DIRECTORY) {
            Ok(directory) => !is_link(&directory, name) || self.follow(path, NAME).is_ok(),
            Err(Unopened::Plainly(errno)) => is_absence(errno),
            Err(Unopened::Link(_)) => false,
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
                // Whether a directory was asked for is looked at first.
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
