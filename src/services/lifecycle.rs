//! [`Lifecycle`]: whether the process is about to end, and how close it is to its memory limit.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::memory_info::MemoryInfo;
use crate::admission::memory_pressure::{MemoryPressure, PressureCell};

/// The state of the process, which the code that runs the server reports.
#[derive(Debug, Default)]
pub struct Lifecycle {
    draining: AtomicBool,
    pressure: PressureCell,
    memory: OnceLock<MemoryInfo>,
}

impl Lifecycle {
    /// Makes `/readyz` report that the server accepts no new requests.
    pub fn set_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether [`Lifecycle::set_draining`] was called.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Sets how close the process is to its memory limit.
    pub fn set_pressure(&self, pressure: MemoryPressure) {
        self.pressure.set(pressure);
    }

    /// The value of the last [`Lifecycle::set_pressure`].
    #[must_use]
    pub fn pressure(&self) -> MemoryPressure {
        self.pressure.get()
    }

    /// Sets the memory bounds that `/v1/mounts` reports.
    pub fn set_memory(&self, memory: MemoryInfo) {
        // The first call wins: the bounds do not change while the server runs.
        let _ = self.memory.set(memory);
    }

    /// The memory bounds, if they were set.
    pub(crate) fn memory(&self) -> Option<&MemoryInfo> {
        self.memory.get()
    }
}
