//! What the system says of this process: memory, open files, processor time (proc(5)).
//!
//! Here because nobody else looks at the machine. Only Linux says it so; elsewhere nothing is known.

use std::fs;

use super::machine::resident_bytes;
use crate::metrics::ProcessUse;

/// Ticks of processor time in a second: the same for all programs on Linux.
const TICKS_A_SECOND: f64 = 100.0;

/// What the process takes now; `None` where that cannot be told.
#[must_use]
pub fn in_use() -> Option<ProcessUse> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may have anything in it: user time and system time are the 12th and 13th.
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
    fn the_system_says_what_this_process_takes() {
        let now = super::in_use().unwrap();
        assert!(now.resident_bytes > 1 << 20 && now.open_files >= 3 && now.cpu_seconds >= 0.0, "{now:?}");
    }
}
