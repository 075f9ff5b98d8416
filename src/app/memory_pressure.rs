//! Memory pressure: measures that are taken in steps when the process approaches its memory limit.
//!
//! From 85 % of the limit on, freed memory is returned to the system: the allocator does so with a delay, and only while its threads
//! allocate. At 90 % of the limit half of all caches is evicted, and connections are closed after their responses in flight; at 97 %
//! requests are rejected, except those for health. The purpose of budgets is to prevent both: this is for memory that they do not
//! count. Memory is sampled periodically, never for a request. Without a known limit, nothing is done.

use std::time::Duration;

use crate::admission::MemoryPressure;

/// The interval of samples.
const TICK: Duration = Duration::from_millis(250);
/// Samples between two evictions, because the allocator returns freed memory with a delay.
const EVICTION_PAUSE: u32 = 4;
/// The thresholds, in percent of the limit. From the first on, freed memory is returned.
const RETURN: u64 = 85;
const HIGH: u64 = 90;
const CRITICAL: u64 = 97;
/// A level ends this far below its threshold.
const SLACK: u64 = 2;

/// The level for an amount of resident memory, given the level before.
fn pressure_level(resident: u64, limit: u64, before: MemoryPressure) -> MemoryPressure {
    let is_above = |hundredths: u64, step: MemoryPressure| {
        let slack = if before >= step { SLACK } else { 0 };
        u128::from(resident) * 100 >= u128::from(limit) * u128::from(hundredths - slack)
    };
    if is_above(CRITICAL, MemoryPressure::Critical) {
        MemoryPressure::Critical
    } else if is_above(HIGH, MemoryPressure::High) {
        MemoryPressure::High
    } else {
        MemoryPressure::None
    }
}

/// Samples memory and never ends: returns freed memory, reports each change of the level, and evicts while memory is short.
pub(crate) async fn watch(
    limit: u64,
    resident: impl Fn() -> Option<u64>,
    return_freed: impl AsyncFn(),
    evict: impl Fn(),
    report: impl Fn(MemoryPressure),
) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut pressure, mut rest) = (MemoryPressure::None, 0);
    loop {
        ticks.tick().await;
        let is_much = |resident: u64| u128::from(resident) * 100 >= u128::from(limit) * u128::from(RETURN);
        let Some(mut resident_bytes) = resident() else { continue };
        if is_much(resident_bytes) {
            return_freed().await;
            resident_bytes = resident().unwrap_or(resident_bytes);
        }
        let now = pressure_level(resident_bytes, limit, pressure);
        if now != pressure {
            tracing::warn!(resident = resident_bytes, limit, before = ?pressure, ?now, "memory pressure has changed");
            pressure = now;
            report(pressure);
        }
        rest = u32::saturating_sub(rest, 1);
        if pressure >= MemoryPressure::High && rest == 0 {
            evict();
            rest = EVICTION_PAUSE;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use super::*;
    use MemoryPressure::{Critical, High, None};

    #[test]
    fn pressure_levels_begin_at_their_threshold_and_end_a_little_below_it() {
        let steps = |readings: &[u64]| {
            readings
                .iter()
                .scan(MemoryPressure::None, |before, &resident| {
                    *before = pressure_level(resident, 1000, *before);
                    Some(*before)
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(steps(&[0, 899, 900, 881, 880, 879, 899]), [None, None, High, High, High, None, None]);
        assert_eq!(steps(&[970, 951, 949, 969, 970, 100]), [Critical, Critical, High, High, Critical, None]);
        assert_eq!(pressure_level(u64::MAX, u64::MAX, None), Critical);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_pressure_is_reported_and_evicts_once_a_second() {
        let (resident, evictions, returned, reported) =
            (AtomicU64::new(100), AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
        let watching = watch(
            1000,
            || Some(resident.load(Ordering::Relaxed)),
            async || {
                returned.fetch_add(1, Ordering::Relaxed);
            },
            || {
                evictions.fetch_add(1, Ordering::Relaxed);
            },
            |pressure| reported.lock().unwrap().push(pressure),
        );
        let course = async {
            for (reading, seconds) in [(100, 10), (910, 3), (980, 2), (500, 10)] {
                resident.store(reading, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(seconds)).await;
            }
        };
        tokio::select! {
            () = watching => {}
            () = course => {}
        }
        assert_eq!(
            *reported.lock().unwrap(),
            [MemoryPressure::High, MemoryPressure::Critical, MemoryPressure::None]
        );
        assert!((4..=6).contains(&evictions.load(Ordering::Relaxed)), "once a second: {evictions:?}");
        assert!((18..=22).contains(&returned.load(Ordering::Relaxed)), "each time: {returned:?}");
    }
}
