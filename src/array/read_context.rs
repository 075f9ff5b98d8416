//! [`ReadContext`]: one request's reads: their turns at the store, and what they did, for its headers and the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Is told what reads did when they have ended.
pub trait ReadObserver: std::fmt::Debug + Send + Sync {
    /// One request's reads of a mount have ended.
    fn ended(&self, mount: &str, work: &ReadStats);
}

/// What one request's reads did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Chunks that did not have to be loaded.
    pub hits: u64,
    /// Chunks that had to be loaded.
    pub misses: u64,
    /// From the request to where its cost is known.
    pub plan: Duration,
    /// Time spent fetching.
    pub fetch: Duration,
    /// Time spent decoding.
    pub decode: Duration,
    /// Time spent writing elements as they were asked for.
    pub encode: Duration,
}

/// Who is told of the end of a trace, and whose reads these are.
type MountObserver = (Arc<dyn ReadObserver>, Arc<str>);

/// Turns, counts and times of one request's reads. Chunks that another request was loading already count as hits; times
/// are sums over what ran side by side.
#[derive(Debug)]
pub struct ReadContext {
    began: Instant,
    fetch_permits: Semaphore,
    hits: AtomicU64,
    misses: AtomicU64,
    plan_micros: AtomicU64,
    fetch_micros: AtomicU64,
    decode_micros: AtomicU64,
    encode_micros: AtomicU64,
    observer: Option<MountObserver>,
}

impl ReadContext {
    /// For a request that may have so many fetches under way at a time.
    #[must_use]
    pub fn new(fetches: usize) -> Self {
        let fetch_permits = Semaphore::new(fetches.clamp(1, Semaphore::MAX_PERMITS));
        Self {
            began: Instant::now(),
            fetch_permits,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            plan_micros: AtomicU64::new(0),
            fetch_micros: AtomicU64::new(0),
            decode_micros: AtomicU64::new(0),
            encode_micros: AtomicU64::new(0),
            observer: None,
        }
    }

    /// The same, of reads of this mount; `observer` is told when they have ended.
    pub(crate) fn with_observer(mut self, observer: Arc<dyn ReadObserver>, mount: &Arc<str>) -> Self {
        self.observer = Some((observer, Arc::clone(mount)));
        self
    }

    /// When the request began: what was seen since then is new enough for it.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Waits for a turn to fetch. Whoever has one waits for nothing but the store.
    pub(crate) async fn acquire_fetch_permit(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.fetch_permits.acquire().await.ok()
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
        self.fetch_micros.fetch_add(as_micros(start.elapsed()), Relaxed);
    }

    /// The cost was known after so long.
    pub fn planned_in(&self, time: Duration) {
        self.plan_micros.store(as_micros(time), Relaxed);
    }

    /// Adds the time since `start` to the time spent writing elements as they were asked for.
    pub fn encoded_since(&self, start: Instant) {
        self.encode_micros.fetch_add(as_micros(start.elapsed()), Relaxed);
    }

    /// Adds the time since `start` to the time spent decoding.
    pub fn decoded_since(&self, start: Instant) {
        self.decode_micros.fetch_add(as_micros(start.elapsed()), Relaxed);
    }

    /// Chunks that did not have to be loaded, and those that had to.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Relaxed), self.misses.load(Relaxed))
    }

    /// What the reads did so far.
    #[must_use]
    pub fn work(&self) -> ReadStats {
        let load = |cell: &AtomicU64| Duration::from_micros(cell.load(Relaxed));
        let (hits, misses) = self.hits_and_misses();
        ReadStats {
            hits,
            misses,
            plan: load(&self.plan_micros),
            fetch: load(&self.fetch_micros),
            decode: load(&self.decode_micros),
            encode: load(&self.encode_micros),
        }
    }
}

impl Drop for ReadContext {
    fn drop(&mut self) {
        if let Some((observer, mount)) = &self.observer {
            observer.ended(mount, &self.work());
        }
    }
}

fn as_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
