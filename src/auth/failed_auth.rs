//! [`FailedAuthLimiter`]: how often callers have failed to show who they are, by address, in this second.
//!
//! From an address that fails too often nothing is verified that costs work until the second is over, so that nobody has
//! signatures checked for nothing. What costs little is looked at all the same: whoever shares an address with somebody who
//! fails is not shut out. The table has a fixed size whatever the number of addresses, and no lock: where it is full, the
//! address that failed least makes room, so that an address alone is always counted to the end.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Failures that an address has in a second.
const MOST: u64 = 10;
/// Places of the table, in sets of [`WAYS`].
const PLACES: usize = 1 << 14;
/// Places in which an address can stand.
const WAYS: usize = 4;

/// Bits of a place: 32 of the address's hash, 24 of the second, 8 of the count.
const COUNT_BITS: u32 = 8;
const SECOND_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const SECOND_MASK: u64 = (1 << SECOND_BITS) - 1;

/// Failures by address.
pub(crate) struct FailedAuthLimiter {
    places: Box<[AtomicU64]>,
    keys: RandomState,
    began: Instant,
    /// The second of the last failure, and one; 0 before there is one.
    last: AtomicU64,
}

impl std::fmt::Debug for FailedAuthLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FailedAuthLimiter").finish_non_exhaustive()
    }
}

impl Default for FailedAuthLimiter {
    fn default() -> Self {
        Self {
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            keys: RandomState::new(),
            began: Instant::now(),
            last: AtomicU64::new(0),
        }
    }
}

impl FailedAuthLimiter {
    /// Whether an address has failed too often in this second.
    pub(crate) fn are_too_many(&self, address: IpAddr) -> bool {
        self.are_too_many_at(address, self.second())
    }

    /// Counts a failure.
    pub(crate) fn count(&self, address: IpAddr) {
        self.count_at(address, self.second());
    }

    fn second(&self) -> u64 {
        self.began.elapsed().as_secs() + 1
    }

    fn are_too_many_at(&self, address: IpAddr, second: u64) -> bool {
        if self.last.load(Ordering::Relaxed) != second {
            return false;
        }
        let (set, owner) = self.set(address, second);
        set.iter().any(|place| {
            let place = place.load(Ordering::Relaxed);
            place >> COUNT_BITS == owner && place & COUNT_MASK >= MOST
        })
    }

    fn count_at(&self, address: IpAddr, second: u64) {
        let (set, owner) = self.set(address, second);
        self.last.store(second, Ordering::Relaxed);
        let is_ours = |place: &&AtomicU64| place.load(Ordering::Relaxed) >> COUNT_BITS == owner;
        // What was counted in another second counts as nothing.
        let weight = |place: &&AtomicU64| {
            let place = place.load(Ordering::Relaxed);
            let is_now = (place >> COUNT_BITS) & SECOND_MASK == owner & SECOND_MASK;
            if is_now { place & COUNT_MASK } else { 0 }
        };
        let Some(place) = set.iter().find(is_ours).or_else(|| set.iter().min_by_key(weight)) else { return };
        let counted = place.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |place| {
            let count = if place >> COUNT_BITS == owner { place & COUNT_MASK } else { 0 };
            Some((owner << COUNT_BITS) | (count + 1).min(COUNT_MASK))
        });
        // It always counts.
        let _ = counted;
    }

    /// The places in which an address can stand, and how it is marked there in this second.
    fn set(&self, address: IpAddr, second: u64) -> (&[AtomicU64], u64) {
        let hash = self.keys.hash_one(address);
        let owner = ((hash >> 32) << SECOND_BITS) | (second & SECOND_MASK);
        let sets = PLACES / WAYS;
        let start = usize::try_from(hash & u64::from(u32::MAX)).unwrap_or_default() % sets * WAYS;
        (self.places.get(start..start + WAYS).unwrap_or_default(), owner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from(number).into()
    }

    #[test]
    fn an_address_fails_ten_times_in_a_second_and_others_are_not_told_from_it() {
        let attempts = FailedAuthLimiter::default();
        for _ in 0..MOST {
            assert!(!attempts.are_too_many_at(address(1), 5));
            attempts.count_at(address(1), 5);
        }
        assert!(attempts.are_too_many_at(address(1), 5));
        assert!(!attempts.are_too_many_at(address(2), 5));
        assert!(!attempts.are_too_many_at(address(1), 6));
        for _ in 0..1000 {
            attempts.count_at(address(1), 6);
        }
        assert!(attempts.are_too_many_at(address(1), 6));
    }

    #[test]
    fn many_addresses_take_no_more_memory_and_free_no_one_that_fails_often() {
        let attempts = FailedAuthLimiter::default();
        for _ in 0..MOST {
            attempts.count_at(address(0), 7);
        }
        for number in 1..100_000 {
            attempts.count_at(address(number), 7);
        }
        assert!(attempts.are_too_many_at(address(0), 7));
        assert_eq!(attempts.places.len(), PLACES);
    }
}
