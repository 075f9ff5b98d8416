//! [`Histogram`]: counts of durations by bucket; an update is two additions, without a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The upper bounds of the buckets, in microseconds; longer durations are in one more bucket.
const BOUNDS: [u64; 16] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000, 30_000_000,
];

/// Counts of durations, by bucket.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    classes: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// The state of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Counted {
    /// The upper bound of each bucket in seconds, and the number of durations in it.
    pub(crate) classes: Vec<(f64, u64)>,
    /// The sum of all durations, in seconds.
    pub(crate) seconds: f64,
    /// The number of durations.
    pub(crate) times: u64,
}

impl Histogram {
    /// Counts a duration.
    pub(crate) fn add(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let class = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        if let Some(class) = self.classes.get(class) {
            class.fetch_add(1, Relaxed);
        }
        self.micros.fetch_add(micros, Relaxed);
    }

    /// The counts so far; `None` if there are none.
    pub(crate) fn counted(&self) -> Option<Counted> {
        let bounds = BOUNDS.iter().map(|micros| seconds(*micros)).chain([f64::INFINITY]);
        let classes: Vec<(f64, u64)> =
            bounds.zip(&self.classes).map(|(bound, class)| (bound, class.load(Relaxed))).collect();
        let times = classes.iter().map(|(_, times)| times).sum();
        (times > 0).then(|| Counted { classes, seconds: seconds(self.micros.load(Relaxed)), times })
    }
}

/// Converts microseconds to seconds.
pub(crate) fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_contains_it() {
        let histogram = Histogram::default();
        assert_eq!(histogram.counted(), None);
        for micros in [0, 50, 51, 1_000_000, 30_000_001, 40_000_000] {
            histogram.add(Duration::from_micros(micros));
        }
        let counted = histogram.counted().unwrap();
        let filled: Vec<(f64, u64)> = counted.classes.into_iter().filter(|(_, times)| *times > 0).collect();
        assert_eq!(filled, [(0.000_05, 2), (0.000_1, 1), (1.0, 1), (f64::INFINITY, 2)]);
        assert_eq!((counted.times, counted.seconds), (6, 71.000_102));
    }
}
