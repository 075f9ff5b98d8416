//! What is given up, step by step, as the process comes close to the memory it may take.
//!
//! At nine tenths half of what is remembered is forgotten, and connections are closed after the answers under way on them;
//! at 97 of a hundred requests are turned away, but for those that ask for health. The budgets are meant to keep it from
//! coming to that: this is for what they do not count. Memory is looked at now and then, never for a request; where
//! nothing is known of a limit, there is no ladder.

use std::time::Duration;

use crate::admission::MemoryPressure;

/// How often memory is looked at.
const TICK: Duration = Duration::from_millis(250);
/// How many looks are between two times of forgetting: freed memory takes a while to be given back.
const EVICTION_PAUSE: u32 = 4;
/// Where the steps are, in hundredths of the limit.
const HIGH: u64 = 90;
const FULL: u64 = 97;
/// A step is left this far below where it was entered.
const SLACK: u64 = 2;

/// The step that so much memory is, coming from another.
fn pressure_level(resident: u64, limit: u64, before: MemoryPressure) -> MemoryPressure {
    let is_above = |hundredths: u64, step: MemoryPressure| {
        let slack = if before >= step { SLACK } else { 0 };
        u128::from(resident) * 100 >= u128::from(limit) * u128::from(hundredths - slack)
    };
    if is_above(FULL, MemoryPressure::Critical) {
        MemoryPressure::Critical
    } else if is_above(HIGH, MemoryPressure::High) {
        MemoryPressure::High
    } else {
        MemoryPressure::None
    }
}

/// Looks at memory for ever: has half of what is remembered forgotten where it is short, and says which step it is.
pub(crate) async fn watch(
    limit: u64,
    resident: impl Fn() -> Option<u64>,
    forget: impl Fn(),
    tell: impl Fn(MemoryPressure),
) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut pressure, mut rest) = (MemoryPressure::None, 0);
    loop {
        ticks.tick().await;
        let Some(resident) = resident() else { continue };
        let now = pressure_level(resident, limit, pressure);
        if now != pressure {
            tracing::warn!(resident, limit, before = ?pressure, ?now, "memory pressure has changed");
            pressure = now;
            tell(pressure);
        }
        rest = u32::saturating_sub(rest, 1);
        if pressure >= MemoryPressure::High && rest == 0 {
            forget();
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
    fn steps_are_entered_at_their_place_and_left_a_little_below() {
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
    async fn as_long_as_memory_is_short_half_is_forgotten_now_and_then() {
        let (resident, forgotten, told) = (AtomicU64::new(100), AtomicUsize::new(0), Mutex::new(Vec::new()));
        let watching = watch(
            1000,
            || Some(resident.load(Ordering::Relaxed)),
            || {
                forgotten.fetch_add(1, Ordering::Relaxed);
            },
            |pressure| told.lock().unwrap().push(pressure),
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
            *told.lock().unwrap(),
            [MemoryPressure::High, MemoryPressure::Critical, MemoryPressure::None]
        );
        assert!((4..=6).contains(&forgotten.load(Ordering::Relaxed)), "once a second: {forgotten:?}");
    }
}
