//! Files of a disk cache beside its segments. Only regular files are opened: no symbolic link is followed, and nothing waits for a
//! FIFO.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Permissions: those of segments.
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Opens a file of a directory to read it.
///
/// # Errors
/// Those of the file system; an error for anything but a regular file.
pub(super) fn open(directory: &Path, name: &str) -> io::Result<File> {
    open_as(directory, name, OFlags::RDONLY)
}

/// Opens a file of a directory to read and write it; creates it if it is missing.
///
/// # Errors
/// As for [`open`].
pub(super) fn open_or_create(directory: &Path, name: &str) -> io::Result<File> {
    open_as(directory, name, OFlags::RDWR | OFlags::CREATE)
}

/// A new file of a directory, in place of whatever has its name.
///
/// # Errors
/// As for [`open`].
pub(super) fn replace(directory: &Path, name: &str) -> io::Result<File> {
    match fs::remove_file(directory.join(name)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    open_as(directory, name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
}

fn open_as(directory: &Path, name: &str, flags: OFlags) -> io::Result<File> {
    let irregular = || io::Error::other(format!("`{name}` in it is a symbolic link, or no regular file"));
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory.join(name), flags, OWNER_ONLY);
    let opened = opened.map_err(|errno| if errno == Errno::LOOP { irregular() } else { errno.into() });
    let file = File::from(opened?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}
