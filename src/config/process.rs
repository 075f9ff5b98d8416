//! [`in_use`]: memory, open files and processor time of this process, from proc(5).
//!
//! Part of `config` because only this module reads from the machine. On systems other than Linux nothing is known.

use std::fs;

use super::machine::resident_bytes;
use crate::metrics::ProcessUse;

/// Ticks of processor time per second: the same for all programs on Linux.
const TICKS_A_SECOND: f64 = 100.0;

/// What the process uses now; `None` if that is unknown.
#[must_use]
pub fn in_use() -> Option<ProcessUse> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may contain anything, user time and system time are the 12th and 13th field.
    let (_, numbers) = stat.rsplit_once(')')?;
    let ticks: f64 =
        numbers.split_whitespace().skip(11).take(2).filter_map(|text| text.parse::<f64>().ok()).sum();
    Some(ProcessUse {
        resident_bytes: resident_bytes()?,
        open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
        cpu_seconds: ticks / TICKS_A_SECOND,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_files_and_time_that_this_process_uses_are_found() {
        let now = super::in_use().unwrap();
        assert!(now.resident_bytes > 1 << 20 && now.open_files >= 3 && now.cpu_seconds >= 0.0, "{now:?}");
    }
}
