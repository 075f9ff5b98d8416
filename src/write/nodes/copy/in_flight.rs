//! [`CopiesInFlight`]: the values that are being copied, and the memory that the store needs for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::store::{BudgetExceeded, MemoryBudget, Reservation};

/// The values that are being copied.
#[derive(Debug)]
pub(super) struct CopiesInFlight {
    budget: Arc<dyn MemoryBudget>,
    count: AtomicUsize,
    one_ended: Notify,
}

/// A value that is being copied.
pub(super) struct CopyInFlight<'a> {
    copies: &'a CopiesInFlight,
    memory: Reservation,
}

impl CopiesInFlight {
    /// None yet.
    pub(super) fn new(budget: &Arc<dyn MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), count: AtomicUsize::new(0), one_ended: Notify::new() }
    }

    /// Begins to copy a value for which the store needs this memory. If it is not there, waits until another copy ends: one that has
    /// begun never waits for memory, so there is no deadlock.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if it is not there for one alone.
    pub(super) async fn begin(&self, bytes: u64) -> Result<CopyInFlight<'_>, BudgetExceeded> {
        loop {
            let one_ended = self.one_ended.notified();
            let mut memory = Reservation::new(Some(&self.budget));
            match memory.grow(bytes) {
                Ok(()) => {
                    self.count.fetch_add(1, Ordering::SeqCst);
                    return Ok(CopyInFlight { copies: self, memory });
                }
                Err(error) if self.count.load(Ordering::SeqCst) == 0 => return Err(error),
                Err(_) => one_ended.await,
            }
        }
    }
}

impl Drop for CopyInFlight<'_> {
    fn drop(&mut self) {
        self.memory = Reservation::default();
        self.copies.count.fetch_sub(1, Ordering::SeqCst);
        self.copies.one_ended.notify_waiters();
    }
}
