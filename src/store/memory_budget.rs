//! [`MemoryBudget`]: the memory that one request may hold, as admission counts it.
//!
//! Memory held for a listing beside its entries, or for a document while it is generated, is reserved from the budget
//! of its request: one [`Reservation`] each, released on drop. A reservation never waits: it succeeds at once or fails.

use std::sync::Arc;

use crate::error::{Classify, ErrorClass};

/// The memory budget of one request.
pub trait MemoryBudget: std::fmt::Debug + Send + Sync {
    /// Reserves more bytes.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if there are not enough; then nothing changes.
    fn reserve(&self, bytes: u64) -> Result<(), BudgetExceeded>;

    /// Releases bytes.
    fn release(&self, bytes: u64);

    /// A number for the client whose budget it is: if one request of a client exceeds it, the next does too.
    fn client(&self) -> u64;
}

/// There is not enough memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetExceeded {
    /// There may be enough later.
    #[error("there is no memory left for what has to be held")]
    Now,
    /// It is more than a single request can ever have.
    #[error(
        "this takes more than the {limit} bytes of memory that one request can have here (`http.inflight_size`)"
    )]
    Ever {
        /// The most bytes of a request.
        limit: u64,
    },
}

impl Classify for BudgetExceeded {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Now => ErrorClass::Overloaded,
            Self::Ever { .. } => ErrorClass::TooLarge,
        }
    }
}

/// A part of a budget, released on drop.
#[derive(Debug, Default)]
pub struct Reservation {
    /// `None` for memory that is not counted.
    budget: Option<Arc<dyn MemoryBudget>>,
    bytes: u64,
}

impl Reservation {
    /// A reservation of 0 bytes in a budget. Without a budget, nothing is counted.
    #[must_use]
    pub fn new(budget: Option<&Arc<dyn MemoryBudget>>) -> Self {
        Self { budget: budget.map(Arc::clone), bytes: 0 }
    }

    /// Reserves more bytes.
    ///
    /// # Errors
    /// As [`MemoryBudget::reserve`].
    pub fn grow(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        if let Some(budget) = &self.budget {
            budget.reserve(bytes)?;
            self.bytes = self.bytes.saturating_add(bytes);
        }
        Ok(())
    }

    /// Sets the size in bytes, more or less than before.
    ///
    /// # Errors
    /// As [`MemoryBudget::reserve`]; a smaller size always succeeds.
    pub fn resize(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        if let Some(more) = bytes.checked_sub(self.bytes) {
            return self.grow(more);
        }
        if let Some(budget) = &self.budget {
            budget.release(self.bytes - bytes);
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.release(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;

    /// A budget with a limit, and its free bytes.
    #[derive(Debug)]
    struct Few(u64, AtomicU64);

    impl Few {
        fn new(bytes: u64) -> Arc<Self> {
            Arc::new(Self(bytes, AtomicU64::new(bytes)))
        }
    }

    impl MemoryBudget for Few {
        fn reserve(&self, bytes: u64) -> Result<(), BudgetExceeded> {
            let taken = self.1.fetch_update(SeqCst, SeqCst, |free| free.checked_sub(bytes));
            let refused =
                if bytes > self.0 { BudgetExceeded::Ever { limit: self.0 } } else { BudgetExceeded::Now };
            taken.map(drop).map_err(|_none| refused)
        }

        fn release(&self, bytes: u64) {
            self.1.fetch_add(bytes, SeqCst);
        }

        fn client(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_reservation_takes_its_size_and_releases_it_on_drop() {
        let budget = Few::new(10);
        let shared: Arc<dyn MemoryBudget> = Arc::clone(&budget) as _;
        let mut reservation = Reservation::new(Some(&shared));
        let free = || budget.1.load(SeqCst);
        reservation.grow(4).unwrap();
        reservation.resize(9).unwrap();
        assert_eq!(
            (reservation.grow(2), free()),
            (Err(BudgetExceeded::Now), 1),
            "what is refused changes nothing"
        );
        reservation.resize(3).unwrap();
        assert_eq!(free(), 7);
        let mut other = Reservation::new(Some(&shared));
        other.grow(7).unwrap();
        drop(reservation);
        assert_eq!(free(), 3);
        drop(other);
        assert_eq!(free(), 10);
        Reservation::new(None).grow(u64::MAX).unwrap();
    }
}
