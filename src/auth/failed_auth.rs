//! [`FailedAuthLimiter`]: a count of failed authentications per address and second.
//!
//! Credentials from an address that fails too often are not verified until the second is over, where verification takes
//! work, so that no client can make the server check signatures for nothing. Cheap checks go on: a client that shares
//! the address with a failing one is not locked out. The table has a fixed size, whatever the number of addresses, and
//! no lock; a full set replaces the address with the fewest failures, so that the count of a single address is always
//! complete.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Largest number of failures of an address in a second.
const MOST: u64 = 10;
/// Number of entries of the table, in sets of [`WAYS`].
const PLACES: usize = 1 << 14;
/// Number of entries that an address can occupy.
const WAYS: usize = 4;

/// Bits of an entry: 32 of the address's hash, 24 of the second, 8 of the count.
const COUNT_BITS: u32 = 8;
const SECOND_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const SECOND_MASK: u64 = (1 << SECOND_BITS) - 1;

/// The failures, by address.
pub(crate) struct FailedAuthLimiter {
    places: Box<[AtomicU64]>,
    keys: RandomState,
    began: Instant,
    /// The second of the last failure, plus one; 0 before the first.
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
        // Entries of other seconds count as zero.
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
        // The closure never returns `None`, so the update succeeds.
        let _ = counted;
    }

    /// The entries that an address can occupy, and its mark there in this second.
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
    fn an_address_may_fail_ten_times_a_second_without_effect_on_others() {
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
    fn many_addresses_take_bounded_memory_and_do_not_evict_frequent_failures() {
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
