//! Versions of files, and the clock that keeps them apart.
//!
//! A file's version is its inode, both its times to the nanosecond and its size. Kernels stamp files with a
//! coarse clock and reuse the inodes of removed files, so that these alone can be equal for two contents. Hence a file
//! that was written a moment ago has no settled version (see `settled`), and every write of this process gets a
//! modification time of its own from [`next_modified`], later than all it gave out before and than that of the file it
//! replaces. Writes through a memory map change the times once at most: what `stat` does not show is not noticed here.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Stat, Timespec};

use crate::store::{ValueInfo, Version};

/// The state of a file at one `stat`.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileState {
    pub(super) stat: Stat,
    /// Whether the next write is sure to give it other times.
    pub(super) is_settled: bool,
}

/// Size, version and modification time of a file.
pub(super) fn info_of(file_state: &FileState) -> ValueInfo {
    let stat = &file_state.stat;
    ValueInfo { size: size_of(stat), version: version_of(file_state), modified: modified_of(stat) }
}

/// The length in bytes.
pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn version_of(FileState { stat, is_settled }: &FileState) -> Version {
    // Capacity for six numbers of 64 bits and their separators.
    let mut tag = String::with_capacity(6 * 17);
    // Writing to a `String` cannot fail.
    let _ = spell(stat, &mut tag);
    if *is_settled { Version::strong(&tag) } else { Version::unsettled(&tag) }
}

/// Whether a file has this version, which must be a settled one. Compares without allocating.
pub(super) fn is_version_of(version: &Version, stat: &Stat) -> bool {
    let mut rest = Rest(version.tag());
    version.is_strong() && spell(stat, &mut rest).is_ok() && rest.0.is_empty()
}

fn spell(stat: &Stat, tag: &mut impl Write) -> fmt::Result {
    write!(
        tag,
        "{:x}-{:x}.{:x}-{:x}.{:x}-{:x}",
        stat.st_ino, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec, stat.st_size,
    )
}

/// The rest of a text, after the prefix that was written so far.
struct Rest<'a>(&'a str);

impl Write for Rest<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
        Ok(())
    }
}

fn modified_of(stat: &Stat) -> Option<SystemTime> {
    let seconds = u64::try_from(stat.st_mtime).ok()?;
    UNIX_EPOCH.checked_add(Duration::new(seconds, u32::try_from(stat.st_mtime_nsec).ok()?))
}

/// Whether an open file was written to between two `stat`s. Its change time does not count: it moves when another file
/// replaces this one, whose bytes stay the same.
pub(super) fn was_written_between(before: &Stat, after: &Stat) -> bool {
    (before.st_mtime, before.st_mtime_nsec, before.st_size)
        != (after.st_mtime, after.st_mtime_nsec, after.st_size)
}

/// A modification time for a write: now, but at least a microsecond after the last one that was given out and after
/// that of the replaced value.
pub(super) fn next_modified(replaced: Option<&ValueInfo>) -> SystemTime {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let micros = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    };
    let floor = replaced.and_then(|info| info.modified).map_or(0, |time| micros(time).saturating_add(1));
    let now = micros(SystemTime::now());
    // A file may have a time in the far future: its replacement must be later still, but other files must not.
    let next = if floor > now.saturating_add(1_000_000) {
        floor
    } else {
        let after = |last: u64| now.max(floor).max(last.saturating_add(1));
        let update = LAST.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(after(last)));
        let (Ok(last) | Err(last)) = update;
        after(last)
    };
    UNIX_EPOCH.checked_add(Duration::from_micros(next)).unwrap_or(UNIX_EPOCH)
}

/// A time as the system calls take it.
pub(super) fn timespec(time: SystemTime) -> Timespec {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timespec {
        tv_sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: since.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_writes_get_the_same_time() {
        let times: Vec<_> = (0..10_000).map(|_| next_modified(None)).collect();
        assert!(times.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_write_is_later_than_the_value_it_replaces_even_one_from_the_future() {
        let future = SystemTime::now() + Duration::from_secs(1_000_000);
        let info = ValueInfo { size: 1, version: Version::strong("x"), modified: Some(future) };
        assert!(next_modified(Some(&info)) > future);
        assert!(next_modified(None) < future, "and does not drag others along");
    }
}
