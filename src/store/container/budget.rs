//! [`ContainerBudget`]: the memory for the indexes of all containers of one kind.
//!
//! Every read needs its index, so none is evicted for another. An index that does not fit is refused, with the name of
//! the setting to raise, and leaves the others as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that the indexes of all containers of one kind may take together. Clones share it.
#[derive(Clone, Debug)]
pub struct ContainerBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: u64,
    free: AtomicU64,
}

/// A part of the budget, released on drop.
#[derive(Debug)]
pub(in crate::store) struct ContainerReservation {
    budget: ContainerBudget,
    bytes: u64,
}

/// There are fewer bytes free than are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct OverBudget {
    /// The bytes of the whole reservation.
    pub(in crate::store) needed: u64,
    /// The bytes of the whole budget.
    pub(in crate::store) limit: u64,
}

impl ContainerBudget {
    /// The default budget, in bytes.
    pub const DEFAULT_BYTES: u64 = 64 << 20;

    /// A budget in bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Inner { bytes, free: AtomicU64::new(bytes) }))
    }

    /// A reservation of 0 bytes, which can grow.
    pub(in crate::store) fn empty(&self) -> ContainerReservation {
        ContainerReservation { budget: self.clone(), bytes: 0 }
    }
}

impl Default for ContainerBudget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

impl ContainerReservation {
    /// Sets the size in bytes, more or less than before.
    ///
    /// # Errors
    /// [`OverBudget`]; then the reservation is unchanged. A smaller size always succeeds.
    pub(in crate::store) fn resize(&mut self, bytes: u64) -> Result<(), OverBudget> {
        let Inner { bytes: limit, free } = &*self.budget.0;
        match bytes.checked_sub(self.bytes) {
            None => {
                free.fetch_add(self.bytes - bytes, Ordering::Relaxed);
            }
            Some(more) => {
                free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(more))
                    .map_err(|_free| OverBudget { needed: bytes, limit: *limit })?;
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Reserves more bytes.
    ///
    /// # Errors
    /// As [`ContainerReservation::resize`].
    pub(in crate::store) fn grow(&mut self, bytes: u64) -> Result<(), OverBudget> {
        self.resize(self.bytes.saturating_add(bytes))
    }

    /// Sets the size to this many bytes, or to all that are free if those are fewer. Returns the size.
    pub(in crate::store) fn resize_to_free(&mut self, bytes: u64) -> u64 {
        while self.resize(bytes).is_err() {
            let free = self.budget.0.free.load(Ordering::Relaxed);
            if self.resize(self.bytes.saturating_add(free)).is_ok() {
                break;
            }
        }
        self.bytes
    }

    /// The size in bytes.
    pub(in crate::store) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for ContainerReservation {
    fn drop(&mut self) {
        self.budget.0.free.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_released_and_one_that_fails_changes_nothing() {
        let budget = ContainerBudget::new(10);
        let (mut one, mut two) = (budget.empty(), budget.empty());
        one.grow(4).unwrap();
        one.grow(2).unwrap();
        assert_eq!(two.grow(5), Err(OverBudget { needed: 5, limit: 10 }));
        two.grow(4).unwrap();
        drop(one);
        assert_eq!(two.grow(7), Err(OverBudget { needed: 11, limit: 10 }));
        two.resize(1).unwrap();
        two.grow(9).unwrap();
        assert_eq!(two.bytes(), 10);
        two.resize(7).unwrap();
        let mut three = budget.empty();
        assert_eq!((three.resize_to_free(2), three.resize_to_free(9), three.resize_to_free(1)), (2, 3, 1));
    }
}
