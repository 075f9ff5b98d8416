//! A backend that fails again and again under `stale`: no wrong value, and none older than promised.
//!
//! Longer by hand: `ZARRD_STALE_FAULTS=1000000 cargo test --test it stale_faults -- --nocapture`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use zarrd::cache::{StaleCache, ValueCache};
use zarrd::services::Mount;
use zarrd::store::{Freshness, SharedStore};

use crate::support::counting::Counting;
use crate::support::hierarchy::memory;
use crate::support::server::{Server, put};
use crate::support::stamped::{Dice, by_hand, number_of, value};

const KEYS: usize = 8;
/// For how much longer a value may be served while the backend fails.
const STALE: Duration = Duration::from_millis(20);

/// When each value of a key was replaced by the next one.
#[derive(Debug, Default)]
struct History(Vec<Instant>);

impl History {
    fn current(&self) -> u64 {
        self.0.len() as u64
    }

    /// The last time at which a value was stored; `None` for the one that is stored now.
    fn replaced(&self, number: u64) -> Option<Instant> {
        self.0.get(usize::try_from(number).unwrap()).copied()
    }
}

fn key(at: usize) -> String {
    format!("values/{at}")
}

#[tokio::test]
async fn however_often_the_backend_fails_no_value_is_wrong_or_older_than_promised() {
    let wanted = usize::try_from(by_hand("ZARRD_STALE_FAULTS", 500)).unwrap();
    for policy in ["always", "ttl:5ms"] {
        let freshness: Freshness = format!("{policy}, stale:{}ms", STALE.as_millis()).parse().unwrap();
        let promised = STALE + if policy == "always" { Duration::ZERO } else { Duration::from_millis(5) };
        let store = memory();
        let mut histories: Vec<History> = (0..KEYS).map(|_| History::default()).collect();
        for at in 0..KEYS {
            put(&store, &key(at), value(&key(at), 0, 900)).await;
        }
        let counting = Counting::remote(Arc::clone(&store));
        let stale = StaleCache::new(1 << 20).of_mount("m", freshness).unwrap();
        let staleness = Some(Arc::clone(stale.staleness()));
        let values = ValueCache::new(16 << 20);
        let cached =
            values.wrap_stale("m", Arc::clone(&counting) as SharedStore, freshness.policy, Some(stale));
        let server = Server::build(Mount { staleness, ..Mount::read_only("m", cached) }).finish();
        let mut dice = Dice::of(7);
        let (mut served, mut old, mut failed) = (0_u64, 0_u64, 0_u64);
        while counting.failures() < wanted {
            match dice.below(40) {
                0 => counting.fail(true),
                1 => counting.fail(false),
                2..10 => {
                    let at = usize::try_from(dice.below(KEYS as u64)).unwrap();
                    let number = histories[at].current() + 1;
                    put(&store, &key(at), value(&key(at), number, 900)).await;
                    histories[at].0.push(Instant::now());
                }
                10 => tokio::time::sleep(Duration::from_millis(dice.below(3))).await,
                _ => {}
            }
            let at = usize::try_from(dice.below(KEYS as u64)).unwrap();
            let begun = Instant::now();
            let answer = server.get(&format!("/store/m/{}", key(at))).await;
            if answer.status != StatusCode::OK {
                assert!(answer.status.is_server_error(), "{}", answer.status);
                failed += 1;
                continue;
            }
            served += 1;
            let number = number_of(&key(at), &answer.body);
            if let Some(replaced) = histories[at].replaced(number) {
                old += 1;
                let age = begun.saturating_duration_since(replaced);
                assert!(age <= promised, "{policy}: value {number} is {age:?} too old");
            }
        }
        println!(
            "{policy}: {wanted} faults, {served} values, {old} of them replaced before, {failed} failures"
        );
        assert!(served > 0 && old > 0 && failed > 0, "{served} {old} {failed}");
    }
}
