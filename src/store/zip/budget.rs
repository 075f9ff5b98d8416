//! [`ZipBudget`]: what the central directories of all zip files may take of memory together.
//!
//! They are needed for every read and so stay as long as the mounts do: nothing is evicted for another. What does not fit is
//! refused with the setting to raise, and leaves the others as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ZipError;

/// How many bytes the directories of all zip files may take. Clones share it.
#[derive(Clone, Debug)]
pub struct ZipBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: u64,
    free: AtomicU64,
}

/// A part of the budget; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    budget: ZipBudget,
    bytes: u64,
}

impl ZipBudget {
    /// What there is by default.
    pub const DEFAULT_BYTES: u64 = 64 << 20;

    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Inner { bytes, free: AtomicU64::new(bytes) }))
    }

    /// Nothing yet; it can grow.
    pub(super) fn nothing(&self) -> Reserved {
        Reserved { budget: self.clone(), bytes: 0 }
    }
}

impl Default for ZipBudget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

impl Reserved {
    /// Takes so many bytes more.
    ///
    /// # Errors
    /// [`ZipError::OverBudget`]; then it is what it was.
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

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.0.free.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_given_back_and_what_does_not_fit_changes_nothing() {
        let budget = ZipBudget::new(10);
        let (mut one, mut two) = (budget.nothing(), budget.nothing());
        one.grow(4).unwrap();
        one.grow(2).unwrap();
        assert_eq!(two.grow(5), Err(ZipError::OverBudget { needed: 5, limit: 10 }));
        two.grow(4).unwrap();
        drop(one);
        assert_eq!(two.grow(7), Err(ZipError::OverBudget { needed: 11, limit: 10 }));
        two.grow(6).unwrap();
    }
}
