//! [`ReferencesBudget`]: the memory for the references of all mounts together.
//!
//! Every read needs them, so they stay as long as the mounts do: none is evicted for another. A document that does not
//! fit is refused, with the name of the setting to raise, and leaves the others as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ReferenceError;

/// The bytes that the references of all mounts may take together. Clones share it.
#[derive(Clone, Debug)]
pub struct ReferencesBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: u64,
    free: AtomicU64,
}

/// A part of the budget, released on drop.
#[derive(Debug)]
pub(super) struct ReferencesReservation {
    budget: ReferencesBudget,
    bytes: u64,
}

impl ReferencesBudget {
    /// The default budget, in bytes.
    pub const DEFAULT_BYTES: u64 = 64 << 20;

    /// A budget in bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Inner { bytes, free: AtomicU64::new(bytes) }))
    }

    /// A reservation of 0 bytes, which can grow.
    pub(super) fn empty(&self) -> ReferencesReservation {
        ReferencesReservation { budget: self.clone(), bytes: 0 }
    }
}

impl Default for ReferencesBudget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

impl ReferencesReservation {
    /// Sets the size in bytes, more or less than before.
    ///
    /// # Errors
    /// [`ReferenceError::OverBudget`]; then the reservation is unchanged. A smaller size always succeeds.
    pub(super) fn resize(&mut self, bytes: u64) -> Result<(), ReferenceError> {
        let Inner { bytes: limit, free } = &*self.budget.0;
        match bytes.checked_sub(self.bytes) {
            None => {
                free.fetch_add(self.bytes - bytes, Ordering::Relaxed);
            }
            Some(more) => {
                let taken =
                    free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(more));
                if taken.is_err() {
                    return Err(ReferenceError::OverBudget { needed: bytes, limit: *limit });
                }
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// The size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for ReferencesReservation {
    fn drop(&mut self) {
        self.budget.0.free.fetch_add(self.bytes, Ordering::Relaxed);
    }
}
