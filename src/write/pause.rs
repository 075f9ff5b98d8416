//! How often a conditional write is tried, and how long it waits between attempts.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The most attempts, if others change the value each time.
pub(super) const ATTEMPTS: u32 = 10;

/// Sleeps before each attempt after the first (0) for a random time, longer with each, so that colliding writers diverge.
pub(super) async fn pause(attempt: u32) {
    if attempt > 0 {
        let most_ms = 10_u64 << attempt.min(6);
        tokio::time::sleep(Duration::from_millis(RandomState::new().hash_one(attempt) % most_ms)).await;
    }
}
