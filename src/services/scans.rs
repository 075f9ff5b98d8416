//! [`Scans`]: prefetches the chunks that the next steps through an array of a remote mount need.
//!
//! A bucket takes tens of milliseconds to respond. Where a client steps through an array, the chunks of its next steps are known
//! ([`ScanDetector`]), and are read while it works on those of the last one. They enter the caches that the requests use, and are
//! validated there as always. What is prefetched has a budget of its own, and gives way to requests.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::stream::TryStreamExt;

use super::engine::ArrayEngine;
use super::scan_detector::{PrefetchUse, ScanDetector};
use crate::admission::{Admission, AdmissionRequest, Priority};
use crate::array::{Array, ArrayError, Plan, ReadLimits, Reader};
use crate::chunk::Subset;

/// The most chunks of a box that is prefetched: twice as many as are read from a backend at a time. More take many requests, which
/// would take longer than a step.
const MAX_CHUNKS: u64 = 64;

/// The scans that clients make, and what is prefetched for them.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    detector: Mutex<ScanDetector>,
    counts: Arc<PrefetchCounts>,
}

/// What is prefetched now, and what was.
#[derive(Debug, Default)]
struct PrefetchCounts {
    /// Bytes of decoded chunks that are being read.
    in_flight: AtomicU64,
    bytes: AtomicU64,
    skipped: AtomicU64,
    failed: AtomicU64,
}

/// What was prefetched since the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefetchTotals {
    /// What became of the chunks.
    pub(crate) chunks: PrefetchUse,
    /// Bytes of the chunks, decoded.
    pub(crate) bytes: u64,
    /// Boxes of chunks that were not prefetched, because that would have exceeded a budget.
    pub(crate) skipped: u64,
    /// Boxes of chunks that could not be read.
    pub(crate) failed: u64,
}

impl Scans {
    /// No code panics while it holds the lock.
    fn detector(&self) -> MutexGuard<'_, ScanDetector> {
        self.detector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a request read, and prefetches what the next ones will.
    pub(crate) fn observe(
        &self,
        (engine, admission): (&ArrayEngine, &Admission),
        is_near: bool,
        plan: &Plan,
        entrant: AdmissionRequest,
    ) {
        let array = plan.array();
        // Without a cache of decoded chunks nothing is kept for the next request.
        if is_near || engine.read.prefetch_size == 0 || engine.answers_bytes == 0 {
            return;
        }
        let name = (array.mount(), array.path());
        let selected = (plan.subset(), array.decoded_axes());
        self.detector().observe(name, selected, Instant::now(), |subset| {
            let is_begun = self.prefetch((engine, admission), array, subset, entrant);
            if !is_begun {
                self.counts.skipped.fetch_add(1, Relaxed);
            }
            is_begun
        });
    }

    /// Begins to read whole chunks. Returns whether they are within the budgets.
    fn prefetch(
        &self,
        (engine, admission): (&ArrayEngine, &Admission),
        array: &Arc<Array>,
        subset: Subset,
        entrant: AdmissionRequest,
    ) -> bool {
        let limits = ReadLimits { max_response_size: u64::MAX, ..engine.read };
        let Ok(plan) = Plan::new(array, subset, &limits) else { return false };
        if plan.chunks() > MAX_CHUNKS {
            return false;
        }
        let bytes = plan.decoded_bytes();
        let added = self.counts.in_flight.fetch_add(bytes, Relaxed);
        let in_flight = InFlight { counts: Arc::clone(&self.counts), bytes };
        if added.saturating_add(bytes) > engine.read.prefetch_size {
            return false;
        }
        let held = plan.response_bytes().min(plan.segment_bytes().saturating_mul(2));
        let background = entrant.with_priority(Priority::Background);
        let Some(permit) = admission.try_acquire(background, held) else { return false };
        let reader = engine.reader.clone();
        tokio::spawn(async move {
            match read(&reader, &plan).await {
                Ok(()) => in_flight.counts.bytes.fetch_add(bytes, Relaxed),
                Err(_) => in_flight.counts.failed.fetch_add(1, Relaxed),
            };
            drop((permit, in_flight));
        });
        true
    }

    /// What was prefetched since the start.
    pub(crate) fn totals(&self) -> PrefetchTotals {
        let PrefetchCounts { bytes, skipped, failed, .. } = &*self.counts;
        PrefetchTotals {
            chunks: self.detector().counts(Instant::now()),
            bytes: bytes.load(Relaxed),
            skipped: skipped.load(Relaxed),
            failed: failed.load(Relaxed),
        }
    }
}

/// Bytes that are being prefetched, until this is dropped.
struct InFlight {
    counts: Arc<PrefetchCounts>,
    bytes: u64,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.counts.in_flight.fetch_sub(self.bytes, Relaxed);
    }
}

/// Reads what a plan has, so that it is in the caches.
async fn read(reader: &Reader, plan: &Plan) -> Result<(), ArrayError> {
    let context = reader.read_context(plan.array().mount());
    let snapshot = reader.snapshot(plan, &context).await?;
    let mut segments = reader.elements(snapshot, 0..plan.response_bytes(), &context);
    while segments.try_next().await?.is_some() {}
    Ok(())
}
