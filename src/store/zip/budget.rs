//! [`ZipBudget`]: the memory for the central directories of all zip files together.
//!
//! Every read needs them, so they stay as long as the mounts do: none is evicted for another. A directory that does not
//! fit is refused, with the name of the setting to raise, and leaves the others as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ZipError;

/// The bytes that the directories of all zip files may take together. Clones share it.
#[derive(Clone, Debug)]
pub struct ZipBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: u64,
    free: AtomicU64,
}

/// A part of the budget, released on drop.
#[derive(Debug)]
pub(super) struct DirectoryReservation {
    budget: ZipBudget,
    bytes: u64,
}

impl ZipBudget {
    /// The default budget, in bytes.
    pub const DEFAULT_BYTES: u64 = 64 << 20;

    /// A budget in bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Inner { bytes, free: AtomicU64::new(bytes) }))
    }

    /// A reservation of 0 bytes, which can grow.
    pub(super) fn empty(&self) -> DirectoryReservation {
        DirectoryReservation { budget: self.clone(), bytes: 0 }
    }
}

impl Default for ZipBudget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

impl DirectoryReservation {
    /// Reserves more bytes.
    ///
    /// # Errors
    /// [`ZipError::OverBudget`]; then the reservation is unchanged.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), ZipError> {
        let Inner { bytes: limit, free } = &*self.budget.0;
        let taken = free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(bytes));
        match taken {
            Ok(_) => {
                self.bytes += bytes;
                Ok(())
            }
            Err(_) => Err(ZipError::OverBudget { needed: self.bytes.saturating_add(bytes), limit: *limit }),
        }
    }
}

impl Drop for DirectoryReservation {
    fn drop(&mut self) {
        self.budget.0.free.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_released_and_one_that_fails_changes_nothing() {
        let budget = ZipBudget::new(10);
        let (mut one, mut two) = (budget.empty(), budget.empty());
        one.grow(4).unwrap();
        one.grow(2).unwrap();
        assert_eq!(two.grow(5), Err(ZipError::OverBudget { needed: 5, limit: 10 }));
        two.grow(4).unwrap();
        drop(one);
        assert_eq!(two.grow(7), Err(ZipError::OverBudget { needed: 11, limit: 10 }));
        two.grow(6).unwrap();
    }
}
