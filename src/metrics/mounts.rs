//! [`BackendCounts`]: the calls to a mount's backend and their outcomes; [`Reads`]: the chunks read of each mount.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::histogram::Histogram;
use crate::array::{ReadObserver, ReadStats};
use crate::store::{CallOutcome, Observer, Verb};

/// Counts of one mount's backend.
#[derive(Debug, Default)]
pub struct BackendCounts {
    in_flight: AtomicU64,
    bytes: AtomicU64,
    verbs: [VerbCounts; Verb::ALL.len()],
}

/// Counts of one verb.
#[derive(Debug, Default)]
struct VerbCounts {
    outcomes: [AtomicU64; CallOutcome::ALL.len()],
    seconds: Histogram,
}

impl Observer for BackendCounts {
    fn call_started(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    fn call_finished(&self, verb: Verb, outcome: CallOutcome, bytes: u64, took: Duration) {
        self.in_flight.fetch_sub(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        let Some(counts) = self.verbs.get(verb as usize) else { return };
        if let Some(cell) = counts.outcomes.get(outcome as usize) {
            cell.fetch_add(1, Relaxed);
        }
        counts.seconds.add(took);
    }
}

impl BackendCounts {
    /// Calls in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// Bytes of values that were read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The number of calls by verb and outcome, without zeros.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (Verb, CallOutcome, u64)> {
        Verb::ALL.into_iter().zip(&self.verbs).flat_map(|(verb, counts)| {
            let counted = CallOutcome::ALL.into_iter().zip(&counts.outcomes);
            let counted = counted.map(move |(outcome, count)| (verb, outcome, count.load(Relaxed)));
            counted.filter(|(_, _, count)| *count > 0)
        })
    }

    /// The durations of calls, by verb.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = (Verb, &Histogram)> {
        Verb::ALL.into_iter().zip(&self.verbs).map(|(verb, counts)| (verb, &counts.seconds))
    }
}

/// Counts of reads by mount, and durations of their stages.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) plan: Histogram,
    pub(crate) fetch: Histogram,
    pub(crate) decode: Histogram,
    pub(crate) encode: Histogram,
    mounts: ArcSwap<BTreeMap<Box<str>, Arc<MountReads>>>,
}

/// The chunks of one mount.
#[derive(Debug, Default)]
struct MountReads {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Reads {
    /// Adds mounts to count for.
    pub(crate) fn know<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let mut mounts = BTreeMap::clone(&self.mounts.load());
        for name in names {
            mounts.entry(name.into()).or_default();
        }
        self.mounts.store(Arc::new(mounts));
    }

    /// For each mount: its name, chunks from the cache, loaded chunks.
    pub(crate) fn chunks(&self) -> Vec<(Box<str>, u64, u64)> {
        let mounts = self.mounts.load();
        let count = |count: &AtomicU64| count.load(Relaxed);
        mounts.iter().map(|(name, reads)| (name.clone(), count(&reads.hits), count(&reads.misses))).collect()
    }
}

/// The name of a mount, from the name that its values are cached under.
fn name_of(cached_as: &str) -> &str {
    cached_as.split('#').next().unwrap_or(cached_as)
}

impl ReadObserver for Reads {
    fn reads_ended(&self, mount: &str, work: &ReadStats) {
        // A stage that did not run took no time; its zeros would hide the durations of stages that ran.
        for (histogram, time) in [
            (&self.plan, work.plan),
            (&self.fetch, work.fetch),
            (&self.decode, work.decode),
            (&self.encode, work.encode),
        ] {
            if !time.is_zero() {
                histogram.add(time);
            }
        }
        if let Some(MountReads { hits, misses }) =
            self.mounts.load().get(name_of(mount)).map(|reads| &**reads)
        {
            hits.fetch_add(work.hits, Relaxed);
            misses.fetch_add(work.misses, Relaxed);
        }
    }
}
