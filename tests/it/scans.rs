//! Requests that step through an array of a remote store: the chunks of their next steps are read ahead, once each and within a
//! budget.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use zarrd::services::Mount;
use zarrd::store::SharedStore;

use crate::support::counting::Counting;
use crate::support::hierarchy::{Array, memory};
use crate::support::model::{Dim, Model};
use crate::support::server::Server;

const DAYS: usize = 24;
const ALL: Dim = Dim::Slice { start: None, stop: None, step: None };

/// An array of one chunk for each day and half of the rows, in a store that counts.
struct Scene {
    server: Server,
    counting: Arc<Counting>,
    model: Model,
}

impl Scene {
    async fn new(prefetch_size: u64) -> Self {
        let store = memory();
        let array = Array::of(&[DAYS, 8, 4]).chunks(&[1, 4, 4]);
        let model = array.random(5, &[]).store(&store, "a").await;
        let counting = Counting::remote(store);
        let mut server = Server::build(Mount::read_only("m", Arc::clone(&counting) as SharedStore));
        server.read.prefetch_size = prefetch_size;
        server.http.public_metrics = true;
        Self { server: server.finish(), counting, model }
    }

    /// Reads the map of a day, which must be right.
    async fn day(&self, day: usize) {
        let elements = self.server.elements("m/a", &format!("{day},:,:")).await;
        let index = Dim::Index(i64::try_from(day).unwrap());
        assert_eq!(*elements, *self.model.select(&[index, ALL, ALL]).elements, "{day}");
    }

    /// How often each chunk was read.
    fn reads(&self) -> BTreeMap<String, usize> {
        let mut reads = BTreeMap::new();
        for key in self.counting.keys() {
            *reads.entry(key).or_default() += 1;
        }
        reads
    }

    /// Waits until this many chunks were read.
    async fn settled(&self, chunks: usize) {
        for _ in 0..2000 {
            if self.counting.ranges().len() >= chunks && self.counting.in_flight() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{:?}", self.reads());
    }

    async fn metric(&self, name: &str) -> u64 {
        let answer = self.server.get("/metrics").await;
        assert_eq!(answer.status, StatusCode::OK);
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("zarrd_{name} ")));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
    }
}

#[tokio::test]
async fn the_chunks_of_the_next_steps_are_read_before_they_are_requested() {
    let scene = Scene::new(1 << 20).await;
    for day in 0..3 {
        scene.day(day).await;
    }
    // Two chunks for each of these days, and for two days ahead.
    scene.settled(10).await;
    for day in 3..DAYS {
        let before = scene.counting.ranges().len();
        scene.day(day).await;
        let ahead = (day + 2).min(DAYS - 1);
        assert!(before >= 2 * (day + 1), "the chunks of day {day} were read before");
        scene.settled(2 * (ahead + 1)).await;
    }
    let reads = scene.reads();
    assert_eq!(reads.len(), 2 * DAYS);
    assert!(reads.values().all(|&count| count == 1), "{reads:?}");
    assert_eq!(scene.metric("prefetched_chunks_total{outcome=\"used\"}").await, 2 * (DAYS as u64 - 3));
    assert_eq!(scene.metric("prefetched_chunks_total{outcome=\"wasted\"}").await, 0);
    assert_eq!(scene.metric("prefetched_bytes_total").await, 2 * (DAYS as u64 - 3) * 32);
}

#[tokio::test]
async fn nothing_is_read_ahead_without_a_pattern_or_beyond_the_budget() {
    let scene = Scene::new(1 << 20).await;
    let days = [0, 11, 3, 20, 7, 2, 15];
    for day in days {
        scene.day(day).await;
    }
    assert_eq!(scene.reads().len(), 2 * days.len());

    // Less than two chunks of 32 bytes.
    for budget in [0, 63] {
        let scene = Scene::new(budget).await;
        for day in 0..8 {
            scene.day(day).await;
        }
        assert_eq!(scene.reads().len(), 2 * 8, "{budget}");
        let skipped = scene.metric("prefetches_not_made_total{reason=\"budget\"}").await;
        assert_eq!(skipped > 0, budget > 0);
    }
}

#[tokio::test]
async fn a_failure_ahead_of_a_request_is_none_of_the_request() {
    let scene = Scene::new(1 << 20).await;
    scene.day(0).await;
    scene.day(1).await;
    scene.day(2).await;
    scene.settled(10).await;
    scene.counting.fail(true);
    // Its chunks are in memory, and their versions are asked for.
    let answer = scene.server.get("/v1/data/m/a?slice=3,:,:").await;
    assert_ne!(answer.status, StatusCode::OK);
    scene.counting.fail(false);
    for day in 3..DAYS {
        scene.day(day).await;
    }
}
