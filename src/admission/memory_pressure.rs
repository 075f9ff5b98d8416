//! [`MemoryPressure`]: how close the process is to the memory it may take, and what is given up for that.
//!
//! Who measures it says so from outside (`app`); here it is a number that every request looks at.

use std::sync::atomic::{AtomicU8, Ordering};

/// How close the process is to the memory it may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryPressure {
    /// Not close.
    #[default]
    None,
    /// So close that less is remembered, and connections are closed after the answers that are under way on them.
    High,
    /// So close that every request is turned away but those that ask for health.
    Critical,
}

/// A pressure that all requests see.
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
    fn what_is_set_is_what_is_seen() {
        let gauge = PressureCell::default();
        assert_eq!(gauge.get(), MemoryPressure::None);
        for pressure in [MemoryPressure::Critical, MemoryPressure::High, MemoryPressure::None] {
            gauge.set(pressure);
            assert_eq!(gauge.get(), pressure);
        }
    }
}
