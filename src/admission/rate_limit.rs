//! [`RateLimiter`]: limits on the requests and the bytes of a caller per second.
//!
//! Each caller has a time up to which everything it received is paid for; that time may lie ahead of the clock by the
//! burst (the generic cell rate algorithm of ITU-T I.371). Bytes are counted when their response starts, so a caller
//! may owe some and has to wait before its next request. The table holds only callers that owe something. A full table
//! drops entries, which lets those callers ask for more than their rate: memory is bounded in every case.
//!
//! The crate `governor` has the same algorithm, but only admits or refuses what is known beforehand: it cannot charge bytes
//! afterwards, and it does not bound its table.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use tokio::time::Instant;

use super::client_bucket::ClientBucket;
use crate::http::options::RateOptions;
use crate::http::problem::Problem;

/// Number of parts of the table, each under a lock of its own.
const PARTS: usize = 64;
/// Largest number of callers in a part.
const MOST_OF_PART: usize = 4096;
const SECOND: u64 = 1_000_000_000;

/// The rates, and what each caller has used of them.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    options: RateOptions,
    began: Instant,
    parts: Vec<Mutex<HashMap<ClientBucket, TheoreticalArrival>>>,
}

/// The times up to which a caller's requests and bytes are paid for, in nanoseconds since the start.
#[derive(Clone, Copy, Debug, Default)]
struct TheoreticalArrival {
    requests: u64,
    bytes: u64,
}

impl RateLimiter {
    /// A limiter with the rates of the options; `None` if they set none.
    pub(crate) fn new(options: RateOptions) -> Option<Self> {
        let parts = || std::iter::repeat_with(Mutex::default).take(PARTS).collect();
        options.is_on().then(|| Self { options, began: Instant::now(), parts: parts() })
    }

    /// Counts a request, or reports when the caller may ask again.
    ///
    /// # Errors
    /// 429 with `Retry-After`.
    pub(crate) fn check(&self, share: ClientBucket) -> Result<(), Problem> {
        self.check_at(share, self.now()).map_err(|wait| {
            let seconds = wait.as_nanos().div_ceil(u128::from(SECOND)).max(1);
            let retry_after = HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX));
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited")
                .detail("the caller has exceeded its rate limit; `Retry-After` says when to ask again")
                .header(header::RETRY_AFTER, retry_after)
        })
    }

    /// Counts bytes that are sent to a caller.
    pub(crate) fn record_bytes(&self, share: ClientBucket, bytes: u64) {
        let now = self.now();
        if let Some(cost) = cost(bytes, self.options.transfer_rate) {
            let mut part = self.part(share);
            evict_idle(&mut part, now);
            let paid = part.entry(share).or_default();
            paid.bytes = paid.bytes.max(now).saturating_add(cost);
        }
    }

    fn check_at(&self, share: ClientBucket, now: u64) -> Result<(), Duration> {
        let RateOptions {
            request_rate: requests_per_second,
            request_burst: burst_requests,
            transfer_rate: bytes_per_second,
            transfer_burst: burst_bytes,
        } = self.options;
        let mut part = self.part(share);
        let paid = part.get(&share).copied().unwrap_or_default();
        let wait = |paid: u64, burst: Option<u64>| {
            burst.map_or(0, |burst| paid.max(now).saturating_sub(now).saturating_sub(burst))
        };
        // The request itself counts towards the burst.
        let before = cost(u64::from(burst_requests.max(1)) - 1, u64::from(requests_per_second));
        let wait = wait(paid.requests, before).max(wait(paid.bytes, cost(burst_bytes, bytes_per_second)));
        if wait > 0 {
            return Err(Duration::from_nanos(wait));
        }
        if let Some(cost) = cost(1, u64::from(requests_per_second)) {
            evict_idle(&mut part, now);
            let paid = part.entry(share).or_default();
            paid.requests = paid.requests.max(now).saturating_add(cost);
        }
        Ok(())
    }

    /// Nanoseconds since the start.
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn part(&self, share: ClientBucket) -> MutexGuard<'_, HashMap<ClientBucket, TheoreticalArrival>> {
        // The parts hold numbers only: no panic can leave them half changed.
        self.parts[share.bucket(PARTS)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nanoseconds that `many` take at a rate per second; `None` without a limit.
fn cost(many: u64, per_second: u64) -> Option<u64> {
    (per_second > 0).then(|| {
        let nanos = u128::from(many) * u128::from(SECOND) / u128::from(per_second);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    })
}

/// Frees space for one more caller: drops those who owe nothing, and clears the part where that frees too little.
fn evict_idle(part: &mut HashMap<ClientBucket, TheoreticalArrival>, now: u64) {
    if part.len() < MOST_OF_PART {
        return;
    }
    part.retain(|_, paid| paid.requests > now || paid.bytes > now);
    if part.len() > MOST_OF_PART / 4 * 3 {
        part.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(options: RateOptions) -> RateLimiter {
        RateLimiter::new(options).unwrap()
    }

    const MILLI: u64 = SECOND / 1000;

    #[test]
    fn a_caller_gets_its_burst_at_once_and_its_rate_afterwards() {
        let rates = rates(RateOptions { request_rate: 10, request_burst: 5, ..Default::default() });
        let (one, other) = (ClientBucket::numbered(1), ClientBucket::numbered(2));
        for _ in 0..5 {
            assert_eq!(rates.check_at(one, 0), Ok(()));
        }
        assert_eq!(rates.check_at(one, 0), Err(Duration::from_millis(100)));
        assert_eq!(rates.check_at(one, 60 * MILLI), Err(Duration::from_millis(40)), "nothing is counted");
        assert_eq!(rates.check_at(other, 0), Ok(()), "others are not hindered");
        let passed = (1..=1000).filter(|tenth| rates.check_at(one, tenth * 10 * MILLI).is_ok()).count();
        assert_eq!(passed, 100, "in ten seconds");
        assert_eq!(
            (0..9).filter(|_| rates.check_at(one, 60 * SECOND).is_ok()).count(),
            5,
            "no more is saved up"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn sent_bytes_delay_the_next_request() {
        let rates = rates(RateOptions { transfer_rate: 1000, transfer_burst: 500, ..Default::default() });
        let one = ClientBucket::numbered(1);
        for _ in 0..3 {
            assert!(rates.check(one).is_ok());
        }
        rates.record_bytes(one, 500);
        assert!(rates.check(one).is_ok());
        rates.record_bytes(one, 2500);
        assert_eq!(rates.check_at(one, rates.now()), Err(Duration::from_millis(2500)));
        let problem = rates.check(one).unwrap_err();
        assert_eq!(problem.status(), StatusCode::TOO_MANY_REQUESTS);
        tokio::time::advance(Duration::from_millis(2500)).await;
        assert!(rates.check(one).is_ok());
    }

    #[test]
    fn many_callers_take_bounded_memory() {
        let rates = rates(RateOptions { request_rate: 1, request_burst: 1, ..Default::default() });
        let mut refused = 0;
        for number in 0..400_000_u64 {
            let caller = ClientBucket::numbered(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            assert_eq!(rates.check_at(caller, 0), Ok(()), "each is new");
            refused += u64::from(rates.check_at(caller, 0).is_err());
        }
        assert_eq!(refused, 400_000);
        let sizes = || rates.parts.iter().map(|part| part.lock().unwrap().len()).collect::<Vec<_>>();
        assert!(sizes().iter().all(|many| (1..=MOST_OF_PART).contains(many)), "{:?}", sizes());
    }

    #[test]
    fn no_limiter_exists_without_configured_rates() {
        assert!(RateLimiter::new(RateOptions::default()).is_none());
    }
}
