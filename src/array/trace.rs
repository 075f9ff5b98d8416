//! [`Trace`]: one request's reads: their turns at the store, and what they did, for its headers and the log.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Turns, counts and times of one request's reads. Chunks that another request was loading already count as hits; times
/// are sums over what ran side by side.
#[derive(Debug)]
pub struct Trace {
    began: Instant,
    turns: Semaphore,
    hits: AtomicU64,
    misses: AtomicU64,
    fetch_micros: AtomicU64,
    decode_micros: AtomicU64,
}

impl Trace {
    /// For a request that may have so many fetches under way at a time.
    #[must_use]
    pub fn new(fetches: usize) -> Self {
        let turns = Semaphore::new(fetches.clamp(1, Semaphore::MAX_PERMITS));
        Self {
            began: Instant::now(),
            turns,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            fetch_micros: AtomicU64::new(0),
            decode_micros: AtomicU64::new(0),
        }
    }

    /// When the request began: what was seen since then is new enough for it.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Waits for a turn to fetch. Whoever has one waits for nothing but the store.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.turns.acquire().await.ok()
    }

    /// Counts chunks that did not have to be loaded.
    pub fn add_hits(&self, chunks: u64) {
        self.hits.fetch_add(chunks, Relaxed);
    }

    /// Counts chunks that had to be loaded.
    pub fn add_misses(&self, chunks: u64) {
        self.misses.fetch_add(chunks, Relaxed);
    }

    /// Adds the time since `start` to the time spent fetching.
    pub fn fetched_since(&self, start: Instant) {
        self.fetch_micros.fetch_add(micros(start.elapsed()), Relaxed);
    }

    /// Adds the time since `start` to the time spent decoding.
    pub fn decoded_since(&self, start: Instant) {
        self.decode_micros.fetch_add(micros(start.elapsed()), Relaxed);
    }

    /// Chunks that did not have to be loaded, and those that had to.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Relaxed), self.misses.load(Relaxed))
    }

    /// Time spent fetching, and time spent decoding.
    #[must_use]
    pub fn fetch_and_decode(&self) -> (Duration, Duration) {
        let load = |cell: &AtomicU64| Duration::from_micros(cell.load(Relaxed));
        (load(&self.fetch_micros), load(&self.decode_micros))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
