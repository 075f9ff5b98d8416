//! [`Arrival`]: what was known when an append arrived, to refuse one that comes too late.
//!
//! A server that was paused goes on with requests whose clients gave up meanwhile and sent them again to another one. Their keys are
//! recognized as long as they are kept. An append whose key may have been used and dropped since is refused.

use std::time::Duration;

use tokio::time::Instant;

use crate::write::lease::ArrayLease;

/// The most that passes before the record is read for an append whose server does not have the lease.
const MAX_AGE: Duration = Duration::from_secs(3);

/// When an append arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    at: Instant,
    /// How many keys had been used, if the server had the lease.
    keys_used: Option<u64>,
}

impl Arrival {
    /// An append that arrives now, where this many keys were used, if that is known.
    pub(super) fn now(keys_used: Option<u64>) -> Self {
        Self { at: Instant::now(), keys_used }
    }

    /// Whether the record of this lease has the key of the append, if that was used since. `first_read` is when the record was first
    /// read for the append, and how many keys had been used by then.
    pub(super) fn is_covered_by(&self, lease: &ArrayLease, first_read: (Instant, u64)) -> bool {
        match (self.keys_used, first_read) {
            (Some(keys_used), _) => lease.has_keys_since(keys_used),
            (None, (read_at, keys_used)) => {
                read_at.saturating_duration_since(self.at) <= MAX_AGE && lease.has_keys_since(keys_used)
            }
        }
    }
}
