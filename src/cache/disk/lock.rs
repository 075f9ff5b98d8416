//! The lock of the directory of a disk cache: one server at a time uses it.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::files;

/// The name of the file that is locked. It stays, empty.
pub(super) const NAME: &str = "lock";

/// Locks a directory, until the file is closed. The system releases the lock of a process that was killed.
///
/// # Errors
/// [`ErrorKind::WouldBlock`] if another server has it; any failure to open the file.
pub(super) fn take(directory: &Path) -> io::Result<File> {
    lock(files::open_or_create(directory, NAME)?)
}

/// Finds out whether a directory can be locked, without a file that is not there.
///
/// # Errors
/// As for [`take`].
pub(super) fn probe(directory: &Path) -> io::Result<()> {
    match files::open(directory, NAME) {
        Ok(file) => lock(file).map(drop),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn lock(file: File) -> io::Result<File> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Keeps the lock, or takes that of a directory that came in place of the locked one.
pub(super) fn renew(directory: &Path, held: &mut Option<File>) -> io::Result<()> {
    let identity = |about: &std::fs::Metadata| (about.dev(), about.ino());
    let locked = held.as_ref().and_then(|file| file.metadata().ok()).as_ref().map(identity);
    let named = std::fs::symlink_metadata(directory.join(NAME)).ok().as_ref().map(identity);
    if locked.is_none() || locked != named {
        *held = Some(take(directory)?);
    }
    Ok(())
}
