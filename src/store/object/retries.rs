//! [`RetryBudget`]: how many requests may be retried.
//!
//! Each answered request deposits a fraction of a retry. While nearly all are answered, every failure is retried; when
//! nearly none is, no failure is, so that a failing backend does not get several requests for each one of a caller.

use std::sync::atomic::{AtomicU64, Ordering};

/// The cost of a retry; an answered request deposits the configured percentage of it.
const RETRY_COST: u64 = 100;
/// The largest balance, which is also the first.
const MAX_BALANCE: u64 = 20 * RETRY_COST;

/// The balance for retries. One for all clients of a backend.
#[derive(Debug)]
pub(super) struct RetryBudget {
    left: AtomicU64,
    percent: u64,
}

impl RetryBudget {
    /// Allows this many retries for each hundred answered requests. With 100, retries have no limit.
    pub(super) fn new(percent: u8) -> Self {
        Self { left: AtomicU64::new(MAX_BALANCE), percent: percent.into() }
    }

    /// Whether a request may be retried if it fails.
    pub(super) fn has_balance(&self) -> bool {
        self.percent >= RETRY_COST || self.left.load(Ordering::Relaxed) >= RETRY_COST
    }

    /// Counts an answered request.
    pub(super) fn deposit(&self) {
        let more = |left: u64| (left < MAX_BALANCE).then(|| MAX_BALANCE.min(left + self.percent));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// Counts a failure that is retried.
    pub(super) fn withdraw(&self) {
        let less = |left: u64| Some(left.saturating_sub(RETRY_COST));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_in_ten_may_be_retried() {
        let budget = RetryBudget::new(10);
        let mut tries = 0;
        for _ in 0..1000 {
            // A backend that fails each first try.
            if budget.has_balance() {
                budget.withdraw();
                tries += 1;
            }
            budget.deposit();
        }
        assert!((100..=130).contains(&tries), "{tries}");
        (0..1000).for_each(|_| budget.withdraw());
        assert!(!budget.has_balance());
        (0..10).for_each(|_| budget.deposit());
        assert!(budget.has_balance());
    }

    #[test]
    fn with_unlimited_retries_nothing_is_counted() {
        let budget = RetryBudget::new(100);
        (0..1000).for_each(|_| budget.withdraw());
        assert!(budget.has_balance());
    }
}
