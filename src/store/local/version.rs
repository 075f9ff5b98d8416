//! Versions of files, and the clock that keeps them apart.
//!
//! A file's version is its inode, both its times to the nanosecond and its size. Kernels stamp files with a
//! coarse clock and reuse the inodes of removed files, so that these alone can be equal for two contents. Hence a file
//! that was written a moment ago has no settled version (see `settled`), and every write of this process gets a
//! modification time of its own from [`next_modified`], later than all it gave out before and than that of the file it
//! replaces. Writes through a memory map change the times once at most: what `stat` does not show is not noticed here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Stat, Timespec};

use crate::store::{ValueInfo, Version};
use crate::units::hexadecimal;

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
    let tag = Tag::of(stat);
    let tag = str::from_utf8(tag.as_bytes()).unwrap_or_default();
    if *is_settled { Version::strong(tag) } else { Version::unsettled(tag) }
}

/// Whether a file has this version, which must be a settled one.
pub(super) fn is_version_of(version: &Version, stat: &Stat) -> bool {
    version.is_strong() && Tag::of(stat).as_bytes() == version.tag().as_bytes()
}

/// The tag of a file's version: six hexadecimal numbers, without leading zeros. Every read of a cached value makes one to compare it,
/// so that it is neither allocated nor made by `fmt`.
struct Tag {
    text: [u8; Self::MOST_BYTES],
    length: usize,
}

impl Tag {
    /// Six numbers of 64 bits and their separators.
    const MOST_BYTES: usize = 6 * 17;

    fn of(stat: &Stat) -> Self {
        let mut tag = Self { text: [0; Self::MOST_BYTES], length: 0 };
        for (separator, number) in [
            (None, bits(stat.st_ino)),
            (Some(b'-'), bits(stat.st_mtime)),
            (Some(b'.'), bits(stat.st_mtime_nsec)),
            (Some(b'-'), bits(stat.st_ctime)),
            (Some(b'.'), bits(stat.st_ctime_nsec)),
            (Some(b'-'), bits(stat.st_size)),
        ] {
            tag.push(separator.as_slice());
            let digits = number.to_be_bytes().map(hexadecimal::digits);
            let zeros = usize::try_from(number.leading_zeros() / 4).unwrap_or(0).min(15);
            tag.push(digits.as_flattened().get(zeros..).unwrap_or_default());
        }
        tag
    }

    fn push(&mut self, text: &[u8]) {
        let end = self.length + text.len();
        if let Some(free) = self.text.get_mut(self.length..end) {
            free.copy_from_slice(text);
            self.length = end;
        }
    }

    fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }
}

/// The bits of a number: systems differ in the types of its fields.
fn bits(number: impl Into<i128>) -> u64 {
    u64::try_from(number.into() & i128::from(u64::MAX)).unwrap_or(u64::MAX)
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
    fn a_tag_has_inode_times_and_size_in_hexadecimal() {
        let mut stat = rustix::fs::stat("/").unwrap();
        for (size, modified) in [(0, 1), (15, -1), (16, i64::MAX), (i64::MAX, i64::MIN)] {
            (stat.st_size, stat.st_mtime) = (size, modified);
            let text = format!(
                "{:x}-{:x}.{:x}-{:x}.{:x}-{:x}",
                stat.st_ino,
                stat.st_mtime,
                stat.st_mtime_nsec,
                stat.st_ctime,
                stat.st_ctime_nsec,
                stat.st_size
            );
            let version = version_of(&FileState { stat, is_settled: true });
            assert_eq!(version.tag(), text);
            assert!(is_version_of(&version, &stat));
            for other in
                [text.clone() + "0", format!("0{text}"), text.to_uppercase() + "A", text[1..].to_owned()]
            {
                assert!(!is_version_of(&Version::strong(&other), &stat), "{other}");
            }
            assert!(!is_version_of(&version_of(&FileState { stat, is_settled: false }), &stat));
        }
    }

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
