//! The mapping of the operating system's errors to [`StoreError`].
//!
//! Only the errors that say "there is no such file" mean absence. All others are failures: a Zarr client reads absence
//! as fill values.

use std::sync::Arc;

use rustix::io::Errno;

use crate::store::StoreError;
use crate::store::error::DirectoryMissing;

/// The cause of a failure, with the operation that failed. It has no path: the caller knows the key.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing}")]
pub(super) struct Failure {
    doing: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl Failure {
    pub(super) fn new(doing: &'static str, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { doing, source: Box::new(source) }
    }
}

/// A failure without an error number.
pub(super) fn failed(
    doing: &'static str,
    source: impl std::error::Error + Send + Sync + 'static,
) -> StoreError {
    StoreError::Backend(Arc::new(Failure::new(doing, source)))
}

/// The failure of a root directory that is not there.
pub(super) fn missing() -> StoreError {
    StoreError::Backend(Arc::new(DirectoryMissing))
}

/// The failure that an error number means.
pub(super) fn os(doing: &'static str, errno: Errno) -> StoreError {
    let cause = Arc::new(Failure::new(doing, std::io::Error::from(errno)));
    match errno {
        // The last one: longer than the file system or the process's limit lets a file be.
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => StoreError::StorageFull(cause),
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => StoreError::Busy(cause),
        Errno::TIMEDOUT => StoreError::TimedOut(cause),
        _ => StoreError::Backend(cause),
    }
}

/// As [`os`], for what the standard library reports.
pub(super) fn io(doing: &'static str, error: &std::io::Error) -> StoreError {
    match Errno::from_io_error(error) {
        Some(errno) => os(doing, errno),
        None => failed(doing, std::io::Error::new(error.kind(), error.to_string())),
    }
}

/// Whether opening a file failed because there is no value under that name: nothing there, a key above it, a
/// name that the file system cannot hold, or something that is no file.
pub(super) fn is_absence(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::NXIO | Errno::NODEV | Errno::ISDIR
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_for_a_missing_file_are_absence() {
        for errno in [Errno::NOENT, Errno::NOTDIR, Errno::NAMETOOLONG] {
            assert!(is_absence(errno), "{errno:?}");
        }
        for errno in [
            Errno::ACCESS,
            Errno::PERM,
            Errno::IO,
            Errno::MFILE,
            Errno::NOMEM,
            Errno::STALE,
            Errno::AGAIN,
            Errno::LOOP,
            Errno::XDEV,
        ] {
            assert!(!is_absence(errno), "{errno:?}");
        }
    }

    #[test]
    fn a_full_disk_and_a_busy_machine_are_distinct_from_failure() {
        assert!(matches!(os("write", Errno::NOSPC), StoreError::StorageFull(_)));
        assert!(matches!(io("write", &std::io::Error::from(Errno::DQUOT)), StoreError::StorageFull(_)));
        assert!(matches!(os("write", Errno::FBIG), StoreError::StorageFull(_)));
        assert!(matches!(os("open", Errno::MFILE), StoreError::Busy(_)));
        assert!(matches!(os("open", Errno::ACCESS), StoreError::Backend(_)));
        let short = std::io::Error::from(std::io::ErrorKind::WriteZero);
        assert!(matches!(io("write", &short), StoreError::Backend(_)));
    }
}
