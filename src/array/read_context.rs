//! [`ReadContext`]: the reads of one request: its fetch permits, and its counts and times for response headers and the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Is notified when the reads of a request have ended.
pub trait ReadObserver: std::fmt::Debug + Send + Sync {
    /// The reads of one request from a mount have ended.
    fn reads_ended(&self, mount: &str, work: &ReadStats);
}

/// The counts and times of one request's reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// Chunks that did not have to be loaded.
    pub hits: u64,
    /// Chunks that had to be loaded.
    pub misses: u64,
    /// Time from the beginning of the request until its plan was known.
    pub plan: Duration,
    /// Time spent fetching.
    pub fetch: Duration,
    /// Time spent decoding.
    pub decode: Duration,
    /// Time spent encoding elements in the requested format.
    pub encode: Duration,
}

/// An observer, and the mount that is read.
type MountObserver = (Arc<dyn ReadObserver>, Arc<str>);

/// The fetch permits, counts and times of one request's reads. Chunks that another request was loading already count as hits.
/// Times are sums over concurrent reads.
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
    /// The context of a request that may have this many fetches in flight.
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

    /// The same for reads from this mount, with an observer that is notified when they have ended.
    pub(crate) fn with_observer(mut self, observer: Arc<dyn ReadObserver>, mount: &Arc<str>) -> Self {
        self.observer = Some((observer, Arc::clone(mount)));
        self
    }

    /// When the request began: checks that began since then are fresh enough for it.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Waits for a permit to fetch. Its holder must wait for nothing but the store and work on the compute pool that takes no permit.
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

    /// Adds the time since `start` to the time spent fetching, which includes waiting for a thread that fetches.
    pub fn add_fetch_time(&self, start: Instant) {
        self.fetch_micros.fetch_add(as_micros(start.elapsed()), Relaxed);
    }

    /// Records the time after which the plan was known.
    pub fn set_plan_time(&self, time: Duration) {
        self.plan_micros.store(as_micros(time), Relaxed);
    }

    /// Adds the time since `start` to the time spent encoding elements.
    pub fn add_encode_time(&self, start: Instant) {
        self.encode_micros.fetch_add(as_micros(start.elapsed()), Relaxed);
    }

    /// Adds the time since `start` to the time spent decoding.
    pub fn add_decode_time(&self, start: Instant) {
        self.decode_micros.fetch_add(as_micros(start.elapsed()), Relaxed);
    }

    /// The number of chunks that did not have to be loaded, and of those that had to.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Relaxed), self.misses.load(Relaxed))
    }

    /// The counts and times so far.
    #[must_use]
    pub fn stats(&self) -> ReadStats {
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
            observer.reads_ended(mount, &self.stats());
        }
    }
}

fn as_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
