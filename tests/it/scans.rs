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
        Self::of(Array::of(&[DAYS, 8, 4]).chunks(&[1, 4, 4]), prefetch_size).await
    }

    async fn of(array: Array, prefetch_size: u64) -> Self {
        let store = memory();
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

    /// Reads these selections of the first dimension, start, stop and step, which must be right.
    async fn slices(&self, slices: impl IntoIterator<Item = (usize, usize, usize)>) {
        for (start, stop, step) in slices {
            let elements = self.server.elements("m/a", &format!("{start}:{stop}:{step}")).await;
            let [from, to, by] = [start, stop, step].map(|place| Some(i64::try_from(place).unwrap()));
            let mut dims = vec![ALL; self.model.shape.len()];
            dims[0] = Dim::Slice { start: from, stop: to, step: by };
            assert_eq!(*elements, *self.model.select(&dims).elements, "{start}:{stop}:{step}");
        }
    }

    /// Chunks that were prefetched and used, those that were wasted, and boxes that were not prefetched.
    async fn outcomes(&self) -> [u64; 3] {
        [
            self.metric("prefetched_chunks_total{outcome=\"used\"}").await,
            self.metric("prefetched_chunks_total{outcome=\"wasted\"}").await,
            self.metric("prefetches_not_made_total{reason=\"budget\"}").await,
        ]
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
        let [used, wasted, skipped] = scene.outcomes().await;
        assert_eq!((used, wasted, skipped > 0), (0, 0, budget > 0), "what was not read is not used");
    }
}

#[tokio::test]
async fn of_selections_whose_steps_leave_out_chunks_nothing_is_read_ahead() {
    let scene = Scene::of(Array::of(&[1000]).chunks(&[1]), 1 << 20).await;
    let needed = |slices: &[(usize, usize, usize)]| {
        let chunks = slices.iter().flat_map(|&(start, stop, step)| (start..stop).step_by(step));
        chunks.collect::<std::collections::BTreeSet<_>>().len()
    };
    let slices: Vec<_> = (0..6).map(|first| (first, 501 + first, 100)).collect();
    scene.slices(slices.iter().copied()).await;
    let two_ends: Vec<_> = (0..6).map(|first| (40 + first, 941 + first, 900)).collect();
    scene.slices(two_ends.iter().copied()).await;
    scene.settled(needed(&slices) + needed(&two_ends)).await;
    assert_eq!(scene.counting.keys().len(), needed(&slices) + needed(&two_ends), "{:?}", scene.reads());
    assert_eq!(scene.outcomes().await, [0, 0, 0]);
}

#[tokio::test]
async fn more_chunks_than_a_step_has_time_for_are_not_read_ahead() {
    const STEPS: usize = 5;
    for (chunks, is_ahead) in [(64, true), (65, false)] {
        let scene = Scene::of(Array::of(&[20, chunks]).chunks(&[1, 1]), 1 << 20).await;
        let mut rows = 0;
        for row in 0..STEPS {
            scene.slices([(row, row + 1, 1)]).await;
            // Two rows ahead, from the third on.
            rows = row + 1 + if is_ahead && row >= 2 { 2 } else { 0 };
            scene.settled(rows * chunks).await;
        }
        assert_eq!(scene.reads().len(), rows * chunks);
        let [used, wasted, skipped] = scene.outcomes().await;
        assert_eq!((used, wasted), (if is_ahead { 2 * chunks as u64 } else { 0 }, 0));
        assert_eq!(skipped > 0, !is_ahead);
    }
}

#[tokio::test]
async fn of_windows_that_overlap_only_the_new_chunks_are_read_ahead() {
    let scene = Scene::of(Array::of(&[60]).chunks(&[1]), 1 << 20).await;
    for first in 0..10 {
        scene.slices([(first, first + 40, 1)]).await;
        // Two steps ahead, from the third on.
        scene.settled(first + 40 + if first < 2 { 0 } else { 2 }).await;
    }
    assert_eq!(scene.counting.keys().len(), 51);
    let [used, wasted, skipped] = scene.outcomes().await;
    assert_eq!([used, wasted, skipped], [7, 0, 0], "one new chunk for each step after the third");
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
