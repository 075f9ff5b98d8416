//! [`MemoryPressure`]: how close the process is to its memory limit, and what the server gives up for that.
//!
//! `app` measures the pressure; each request only reads the level.

use std::sync::atomic::{AtomicU8, Ordering};

/// How close the process is to its memory limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryPressure {
    /// No pressure.
    #[default]
    None,
    /// The limit is near: caches shrink, and each connection is closed after the responses in flight on it.
    High,
    /// The limit is almost reached: the server rejects every request except those for health.
    Critical,
}

/// The pressure level that all requests share.
#[derive(Debug, Default)]
pub(crate) struct PressureCell(AtomicU8);

impl PressureCell {
    pub(crate) fn set(&self, pressure: MemoryPressure) {
        self.0.store(pressure as u8, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> MemoryPressure {
        match self.0.load(Ordering::Relaxed) {
            0 => MemoryPressure::None,
            1 => MemoryPressure::High,
            _ => MemoryPressure::Critical,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_was_set_is_read_back() {
        let gauge = PressureCell::default();
        assert_eq!(gauge.get(), MemoryPressure::None);
        for pressure in [MemoryPressure::Critical, MemoryPressure::High, MemoryPressure::None] {
            gauge.set(pressure);
            assert_eq!(gauge.get(), pressure);
        }
    }
}
