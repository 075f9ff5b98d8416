//! [`Settling`]: whether the next write to a file is sure to change its times.
//!
//! Kernels stamp files with a clock that ticks every few milliseconds, and file systems round its times, some to
//! seconds. A file that is written twice within one such step has the same times after both writes. So a version is
//! settled only if the clock had advanced by more than a step before the `stat`: every later write then gives a later
//! time. Files that this process wrote are settled at once, by the unique times that it gave them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Dev, Stat};

use super::version::{FileState, timespec};

/// Twice the longest tick of the clock that kernels stamp files with.
const FINE_STEP: Duration = Duration::from_millis(20);
/// FAT counts in steps of two seconds, other file systems in rounded ones. Times of other machines get this much
/// tolerance for clocks that differ.
const COARSE_STEP: Duration = Duration::from_millis(2020);
/// The most files that the process records as its own last writes.
const OWN_FILES: usize = 1024;

/// Decides which files of a store are settled.
#[derive(Debug)]
pub(super) struct Settling {
    /// Whether unchanged times mean an unchanged file. If not, no file is ever settled.
    trusts_file_times: bool,
    /// The device whose files get their times from the clock of this machine.
    local_clock: Option<Dev>,
    /// Files that this process wrote, the last one at the end.
    own: Mutex<VecDeque<Stat>>,
}

impl Settling {
    pub(super) fn new(trusts_file_times: bool, local_clock: Option<Dev>) -> Self {
        Self { trusts_file_times, local_clock, own: Mutex::default() }
    }

    /// The state of a file from a `stat` that was taken after `began`.
    pub(super) fn file_state(&self, stat: Stat, began: SystemTime) -> FileState {
        let is_settled = self.trusts_file_times && (self.is_past(&stat, began) || self.is_own(&stat));
        FileState { stat, is_settled }
    }

    /// How long a file that was written at this time takes to settle; `None` if that is long, or never.
    pub(super) fn settles_in(&self, modified: Option<SystemTime>) -> Option<Duration> {
        let modified = modified.filter(|_| self.trusts_file_times && self.local_clock.is_some())?;
        let is_fine = modified.duration_since(UNIX_EPOCH).is_ok_and(|since| since.subsec_nanos() != 0);
        let age = SystemTime::now().duration_since(modified).ok()?;
        (is_fine && age < FINE_STEP).then_some(FINE_STEP)
    }

    /// Records a file that this process wrote and gave this time, unless the file system rounded the time.
    pub(super) fn record_own_write(&self, stat: Stat, modified: SystemTime) {
        let given = timespec(modified);
        if (stat.st_mtime, nanos(stat.st_mtime_nsec)) != (given.tv_sec, nanos(given.tv_nsec))
            || given.tv_nsec == 0
        {
            return;
        }
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() == OWN_FILES {
            own.pop_front();
        }
        own.push_back(stat);
    }

    /// Whether every write from `now` on gets times later than the file's, by at least their step.
    fn is_past(&self, stat: &Stat, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        [(stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec)].iter().all(
            |&(seconds, nanoseconds)| {
                let nanoseconds = nanos(nanoseconds);
                let is_fine = self.local_clock == Some(stat.st_dev) && nanoseconds != 0;
                let step = if is_fine { FINE_STEP } else { COARSE_STEP };
                // Before 1970 is long ago.
                let Ok(seconds) = u64::try_from(seconds) else { return true };
                let written = Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanoseconds));
                written.saturating_add(step) <= now
            },
        )
    }

    /// Whether this process wrote the file last: no other write got the same time.
    fn is_own(&self, stat: &Stat) -> bool {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.iter().rev().any(|own| is_same(own, stat))
    }
}

/// Nanoseconds as a `u64`: systems differ in the sign of their type.
fn nanos(nanoseconds: impl TryInto<u64>) -> u64 {
    nanoseconds.try_into().unwrap_or(0)
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    let identity = |stat: &Stat| {
        (stat.st_ino, (stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec), stat.st_size)
    };
    identity(one) == identity(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Dev {
        rustix::fs::stat("/").unwrap().st_dev
    }

    /// A file with these times, in milliseconds, and this length.
    fn file_of(modified: u64, changed: u64, length: u64) -> Stat {
        let mut stat = rustix::fs::stat("/").unwrap();
        stat.st_mtime = number(modified / 1000);
        stat.st_mtime_nsec = number(modified % 1000 * 1_000_000);
        stat.st_ctime = number(changed / 1000);
        stat.st_ctime_nsec = number(changed % 1000 * 1_000_000);
        stat.st_size = number(length);
        stat
    }

    fn file(modified: u64, changed: u64) -> Stat {
        file_of(modified, changed, 1)
    }

    /// A number of the type that the system has for it.
    fn number<T: TryFrom<u64>>(number: u64) -> T {
        T::try_from(number).ok().unwrap()
    }

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    #[test]
    fn a_file_settles_once_the_clock_passes_a_step_of_its_times() {
        let (own, other) = (Settling::new(true, Some(device())), Settling::new(true, None));
        // Modified, changed, time of the stat (each in milliseconds): settled on a file system of this machine, and on
        // another.
        for (modified, changed, now, local, remote) in [
            (5_001, 5_001, 5_001, false, false),
            (5_001, 5_001, 5_020, false, false),
            (5_001, 5_001, 5_021, true, false),
            (5_001, 5_001, 7_020, true, false),
            (5_001, 5_001, 7_021, true, true),
            // Whole seconds: the rounding is unknown.
            (5_000, 5_000, 5_500, false, false),
            (5_000, 5_000, 7_019, false, false),
            (5_000, 5_000, 7_020, true, true),
            // Given a time of long ago, and just now.
            (1_000, 5_001, 5_005, false, false),
            (1_000, 5_001, 5_021, true, false),
            // Of the future, by another clock.
            (9_001, 5_001, 8_000, false, false),
            (5_001, 9_001, 8_000, false, false),
        ] {
            let is_settled =
                |settling: &Settling| settling.file_state(file(modified, changed), at(now)).is_settled;
            assert_eq!((is_settled(&own), is_settled(&other)), (local, remote), "{modified} {changed} {now}");
        }
        let mut ancient = file(5_001, 5_001);
        ancient.st_mtime = -1_000;
        assert!(own.file_state(ancient, at(5_021)).is_settled);
    }

    #[test]
    fn with_untrusted_times_no_file_is_settled() {
        let settling = Settling::new(false, Some(device()));
        settling.record_own_write(file(5_001, 5_001), at(5_001));
        assert!(!settling.file_state(file(5_001, 5_001), at(500_000)).is_settled);
        assert_eq!(settling.settles_in(Some(SystemTime::now())), None);
    }

    #[test]
    fn a_file_of_this_process_is_settled_until_another_process_writes_it() {
        let settling = Settling::new(true, Some(device()));
        settling.record_own_write(file(5_001, 5_002), at(5_001));
        assert!(settling.file_state(file(5_001, 5_002), at(5_003)).is_settled);
        for other in [file(5_003, 5_002), file(5_001, 5_003), file_of(5_001, 5_002, 2)] {
            assert!(!settling.file_state(other, at(5_004)).is_settled);
        }
        // Rounded by the file system: other writes may get the same.
        settling.record_own_write(file(6_000, 6_000), at(6_001));
        settling.record_own_write(file(7_000, 7_000), at(7_000));
        assert!(!settling.file_state(file(6_000, 6_000), at(6_001)).is_settled);
        assert!(!settling.file_state(file(7_000, 7_000), at(7_001)).is_settled);
        for later in 0..OWN_FILES as u64 {
            settling.record_own_write(file(10_001 + later * 10, 10_001), at(10_001 + later * 10));
        }
        assert!(!settling.file_state(file(5_001, 5_002), at(5_003)).is_settled, "one of too many");
    }

    #[test]
    fn files_that_do_not_settle_soon_are_not_waited_for() {
        let now = SystemTime::now();
        let millis = now.duration_since(UNIX_EPOCH).unwrap().as_millis();
        let (own, other) = (Settling::new(true, Some(device())), Settling::new(true, None));
        let rounded = at(u64::try_from(millis / 1000 * 1000).unwrap());
        assert_eq!(own.settles_in(Some(rounded)), None, "rounded to seconds");
        for away in [Duration::from_mins(1), Duration::from_hours(1)] {
            assert_eq!(own.settles_in(Some(now - away)), None);
            assert_eq!(own.settles_in(Some(now + away)), None);
        }
        assert_eq!(own.settles_in(None), None);
        // A file of this moment settles soon, where its clock is known. A pause between the two clocks is as if it were older.
        let mut moments = std::iter::repeat_with(SystemTime::now).take(1000);
        assert!(moments.any(|now| own.settles_in(Some(now)) == Some(FINE_STEP)));
        let mut moments = std::iter::repeat_with(SystemTime::now).take(1000);
        assert!(moments.all(|now| other.settles_in(Some(now)).is_none()));
    }
}
