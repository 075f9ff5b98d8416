//! [`RetryBudget`]: how many requests may be made again.
//!
//! Requests that are answered pay for those that fail: a part of a further try each. Where nearly all are, every failure is
//! tried again; where nearly none is none are, and a backend in trouble is not asked several times for each question.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a further try costs; an answer pays so many hundredths of it as are allowed.
const TRY: u64 = 100;
/// The most that is saved up, and what there is at first: so many further tries.
const MOST: u64 = 20 * TRY;

/// What there is to pay further tries with. One for all clients of a backend.
#[derive(Debug)]
pub(super) struct RetryBudget {
    left: AtomicU64,
    percent: u64,
}

impl RetryBudget {
    /// So many of a hundred requests may be made again. With a hundred, all that fail may.
    pub(super) fn new(percent: u8) -> Self {
        Self { left: AtomicU64::new(MOST), percent: percent.into() }
    }

    /// Whether a request may be made again if it fails.
    pub(super) fn has_any(&self) -> bool {
        self.percent >= TRY || self.left.load(Ordering::Relaxed) >= TRY
    }

    /// A request was answered.
    pub(super) fn deposit(&self) {
        let more = |left: u64| (left < MOST).then(|| MOST.min(left + self.percent));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// A request failed that is made again.
    pub(super) fn withdraw(&self) {
        let less = |left: u64| Some(left.saturating_sub(TRY));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_ten_may_be_made_again() {
        let budget = RetryBudget::new(10);
        let mut tries = 0;
        for _ in 0..1000 {
            // A backend that fails each first try.
            if budget.has_any() {
                budget.withdraw();
                tries += 1;
            }
            budget.deposit();
        }
        assert!((100..=130).contains(&tries), "{tries}");
        (0..1000).for_each(|_| budget.withdraw());
        assert!(!budget.has_any());
        (0..10).for_each(|_| budget.deposit());
        assert!(budget.has_any());
    }

    #[test]
    fn where_all_may_be_made_again_nothing_is_counted() {
        let budget = RetryBudget::new(100);
        (0..1000).for_each(|_| budget.withdraw());
        assert!(budget.has_any());
    }
}
