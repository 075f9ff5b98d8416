//! [`MemoryBudget`]: the memory that one request may hold, as whoever lets requests in counts it.
//!
//! What is held for a listing beside the entries that it passes on, or for a document in the making, is taken of the room of
//! the request that asks for it: a [`Reservation`] for each thing, given back when that is dropped. Nobody waits for room.

use std::sync::Arc;

use crate::error::{Classify, ErrorClass};

/// Room in memory for what is held for one request.
pub trait MemoryBudget: std::fmt::Debug + Send + Sync {
    /// Takes so many bytes more.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if there are not as many; then it is what it was.
    fn reserve(&self, bytes: u64) -> Result<(), BudgetExceeded>;

    /// Gives so many bytes back.
    fn release(&self, bytes: u64);

    /// A number for whose room it is: where one request of a caller has none, the next has none either.
    fn client(&self) -> u64;
}

/// There is not so much room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetExceeded {
    /// There may be later.
    #[error("there is no memory left for what has to be held")]
    Now,
    /// There is none for a request that is alone.
    #[error(
        "this takes more than the {limit} bytes of memory that one request can have here (`http.inflight_size`)"
    )]
    Ever {
        /// Bytes that it can have.
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

/// What one thing takes of a room.
#[derive(Debug, Default)]
pub struct Reservation {
    /// `None` where nobody counts.
    room: Option<Arc<dyn MemoryBudget>>,
    bytes: u64,
}

impl Reservation {
    /// Nothing yet of this room. Without one, nothing is counted.
    #[must_use]
    pub fn of(room: Option<&Arc<dyn MemoryBudget>>) -> Self {
        Self { room: room.map(Arc::clone), bytes: 0 }
    }

    /// Takes so many bytes more.
    ///
    /// # Errors
    /// As [`MemoryBudget::reserve`].
    pub fn grow(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        if let Some(room) = &self.room {
            room.reserve(bytes)?;
            self.bytes = self.bytes.saturating_add(bytes);
        }
        Ok(())
    }

    /// Takes so many bytes in all, more or less than before.
    ///
    /// # Errors
    /// As [`MemoryBudget::reserve`]; less is always granted.
    pub fn resize(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        if let Some(more) = bytes.checked_sub(self.bytes) {
            return self.grow(more);
        }
        if let Some(room) = &self.room {
            room.release(self.bytes - bytes);
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(room) = &self.room {
            room.release(self.bytes);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    use super::*;

    /// A room of so many bytes, of which so many are free.
    #[derive(Debug)]
    pub(crate) struct Few(pub(crate) u64, pub(crate) AtomicU64);

    impl Few {
        pub(crate) fn new(bytes: u64) -> Arc<Self> {
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
    fn a_lot_takes_what_it_is_and_gives_it_back() {
        let room = Few::new(10);
        let shared: Arc<dyn MemoryBudget> = Arc::clone(&room) as _;
        let mut lot = Reservation::of(Some(&shared));
        let free = || room.1.load(SeqCst);
        lot.grow(4).unwrap();
        lot.resize(9).unwrap();
        assert_eq!((lot.grow(2), free()), (Err(BudgetExceeded::Now), 1), "what is refused changes nothing");
        lot.resize(3).unwrap();
        assert_eq!(free(), 7);
        let mut other = Reservation::of(Some(&shared));
        other.grow(7).unwrap();
        drop(lot);
        assert_eq!(free(), 3);
        drop(other);
        assert_eq!(free(), 10);
        Reservation::of(None).grow(u64::MAX).unwrap();
    }
}
