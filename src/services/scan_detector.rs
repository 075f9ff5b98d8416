//! [`ScanDetector`]: notices selections that step through an array, and says which chunks the next steps need.
//!
//! A scan is three or more selections of one shape, each the same distance along one dimension from the one before: a slider that
//! is dragged, maps of one hour after another, windows along an axis. Several people may scan one array at a time. A selection
//! whose steps leave out whole chunks is no part of a scan: its chunks are not a box. Without I/O and without a clock of its own.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::chunk::{AxisRange, ChunkAxis, Subset};
use crate::key::NodePath;

/// The most scans that are known. The one that made no step for longest is dropped.
const MAX_SCANS: usize = 64;
/// Steps of the same length after which the next ones are expected.
const MIN_STEPS: u32 = 2;
/// The same while most of what was prefetched is not used.
const MIN_STEPS_IF_WASTED: u32 = 8;
/// Boxes of chunks that are prefetched ahead of a scan.
const AHEAD: usize = 2;
/// Steps within which the next chunk must be needed.
const MAX_STEPS_AHEAD: i64 = 64;
/// The longest step, in multiples of what a selection has along its dimension.
const MAX_STEP_EXTENTS: u64 = 16;
/// Boxes that are prefetched for a scan and were not needed yet.
const MAX_PENDING: usize = 2 * AHEAD;
/// What is not needed after this time was prefetched in vain.
const MAX_AGE: Duration = Duration::from_mins(1);
/// Bounds of the score, and the value at which most of what is prefetched is wasted.
const SCORES: RangeInclusive<i32> = -16..=16;
const WASTEFUL: i32 = -8;

/// An array of a mount, by the mount's name in caches.
type ArrayName = (Arc<str>, NodePath);

/// What became of chunks that were prefetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefetchUse {
    /// Chunks that a later selection of the scan needed.
    pub(crate) used: u64,
    /// Chunks that none did.
    pub(crate) wasted: u64,
}

/// The first and the last chunk of a box along each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChunkSpan(Vec<(u64, u64)>);

impl ChunkSpan {
    /// The chunks that a selection touches; `None` if it leaves out some between the first and the last.
    fn of(subset: &Subset, axes: &[ChunkAxis]) -> Option<Self> {
        let span = |(range, axis): (&AxisRange, &ChunkAxis)| {
            let ends = [range.start, range.at(range.count.saturating_sub(1))];
            let [one, other] = ends.map(|element| axis.chunk_containing(element).coord);
            let (first, last) = (one.min(other), one.max(other));
            (axis.touched(range).chunks > last - first).then_some((first, last))
        };
        subset.axes().iter().zip(axes).map(span).collect::<Option<_>>().map(Self)
    }

    /// The chunks that this span has and another one, which differs along one dimension alone, has not; `None` if there are none.
    /// They are on one side, because a scan moves all of its elements the same way.
    fn beyond(&self, before: &Self, dim: usize) -> Option<Self> {
        let (&(first, last), &(first_before, last_before)) = (self.0.get(dim)?, before.0.get(dim)?);
        let (from, to) = if last > last_before {
            (first.max(last_before.saturating_add(1)), last)
        } else {
            (first, last.min(first_before.checked_sub(1)?))
        };
        let mut new = self.clone();
        *new.0.get_mut(dim)? = (from, to);
        (from <= to).then_some(new)
    }

    /// Whether this span has all chunks of another one.
    fn contains(&self, other: &Self) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        pairs.all(|((first, last), (other_first, other_last))| first <= other_first && other_last <= last)
    }

    fn chunks(&self) -> u64 {
        self.0.iter().fold(1, |all: u64, (first, last)| all.saturating_mul(last - first + 1))
    }

    /// All elements of the chunks.
    fn elements(&self, axes: &[ChunkAxis]) -> Subset {
        let range = |((first, last), axis): (&(u64, u64), &ChunkAxis)| {
            let (start, last) = (axis.chunk(*first).start, axis.chunk(*last));
            let end = last.start.saturating_add(last.edge).min(axis.length());
            AxisRange { start, count: end.saturating_sub(start), step: 1, keep: true }
        };
        Subset(self.0.iter().zip(axes).map(range).collect())
    }
}

/// One step of a scan: its dimension, and the distance in elements.
type Step = (usize, i64);

/// Selections that follow each other.
#[derive(Debug)]
struct Scan {
    array: ArrayName,
    last: Subset,
    step: Option<Step>,
    /// How many steps of this kind were made.
    steps: u32,
    pending: VecDeque<(ChunkSpan, Instant)>,
}

/// The scans of all clients. The last one that made a step is at the end.
#[derive(Debug, Default)]
pub(crate) struct ScanDetector {
    scans: VecDeque<Scan>,
    counts: PrefetchUse,
    /// Rises with what is used, and falls with what is wasted.
    score: i32,
}

impl ScanDetector {
    /// Takes a selection that was requested at `now`, of an array whose chunks are along these axes. Calls `prefetch` with each
    /// box of whole chunks that is worth reading before it is requested; what it returns says whether the box will be read.
    pub(crate) fn observe(
        &mut self,
        array: (&Arc<str>, &NodePath),
        (subset, axes): (&Subset, &[ChunkAxis]),
        now: Instant,
        mut prefetch: impl FnMut(Subset) -> bool,
    ) {
        self.expire(now);
        if subset.elements() == 0 {
            return;
        }
        let Some(span) = ChunkSpan::of(subset, axes) else { return };
        let Some((at, step)) = self.scan_of(array, subset) else {
            if self.scans.len() >= MAX_SCANS
                && let Some(oldest) = self.scans.pop_front()
            {
                self.waste(&oldest.pending);
            }
            let array = (Arc::clone(array.0), array.1.clone());
            let (last, pending) = (subset.clone(), VecDeque::new());
            self.scans.push_back(Scan { array, last, step: None, steps: 0, pending });
            return;
        };
        let Some(mut scan) = self.scans.remove(at) else { return };
        scan.pending.retain(|(pending, _)| {
            let is_used = span.contains(pending);
            if is_used {
                self.count(pending.chunks(), true);
            }
            !is_used
        });
        if let Some(step) = step {
            scan.steps = if scan.step == Some(step) { scan.steps.saturating_add(1) } else { 1 };
            scan.step = Some(step);
            scan.last = subset.clone();
        }
        let needed = if self.score <= WASTEFUL { MIN_STEPS_IF_WASTED } else { MIN_STEPS };
        if let (Some(_), Some(step)) = (step, scan.step.filter(|_| scan.steps >= needed)) {
            for ahead in next_spans(subset, step, axes, &span) {
                let is_pending = scan.pending.iter().any(|(pending, _)| *pending == ahead);
                if is_pending || !prefetch(ahead.elements(axes)) {
                    continue;
                }
                if scan.pending.len() >= MAX_PENDING
                    && let Some((oldest, _)) = scan.pending.pop_front()
                {
                    self.count(oldest.chunks(), false);
                }
                scan.pending.push_back((ahead, now));
            }
        }
        self.scans.push_back(scan);
    }

    /// What became of what was prefetched until `now`.
    pub(crate) fn counts(&mut self, now: Instant) -> PrefetchUse {
        self.expire(now);
        self.counts
    }

    /// The scan that a selection belongs to, and its step there; `None` for a step of no length. A scan that has been going on
    /// for some steps takes only the next one.
    fn scan_of(&self, array: (&Arc<str>, &NodePath), subset: &Subset) -> Option<(usize, Option<Step>)> {
        let of_array = self.scans.iter().enumerate().rev();
        let of_array = of_array.filter(|(_, scan)| scan.array.0 == *array.0 && scan.array.1 == *array.1);
        let mut begun = None;
        for (at, scan) in of_array {
            match step_between(&scan.last, subset) {
                Some(Follows::Same) => return Some((at, None)),
                Some(Follows::Step(step)) if scan.step == Some(step) => return Some((at, Some(step))),
                Some(Follows::Step(step)) if scan.steps < MIN_STEPS && begun.is_none() => {
                    begun = Some((at, Some(step)));
                }
                _ => {}
            }
        }
        begun
    }

    fn expire(&mut self, now: Instant) {
        let is_old = |(_, since): &mut (ChunkSpan, Instant)| now.saturating_duration_since(*since) > MAX_AGE;
        let mut expired = VecDeque::new();
        for scan in &mut self.scans {
            while let Some(pending) = scan.pending.pop_front_if(is_old) {
                expired.push_back(pending);
            }
        }
        self.waste(&expired);
    }

    fn waste(&mut self, pending: &VecDeque<(ChunkSpan, Instant)>) {
        for (span, _) in pending {
            self.count(span.chunks(), false);
        }
    }

    fn count(&mut self, chunks: u64, is_used: bool) {
        let (count, change) =
            if is_used { (&mut self.counts.used, 1) } else { (&mut self.counts.wasted, -1) };
        *count = count.saturating_add(chunks);
        self.score = (self.score + change).clamp(*SCORES.start(), *SCORES.end());
    }
}

/// How a selection follows another one.
enum Follows {
    Same,
    Step(Step),
}

/// The step between two selections that differ in one dimension alone, and there in the beginning alone; `None` if there is no
/// such step.
fn step_between(last: &Subset, next: &Subset) -> Option<Follows> {
    if last.axes().len() != next.axes().len() {
        return None;
    }
    let mut step = None;
    for (at, (one, other)) in last.axes().iter().zip(next.axes()).enumerate() {
        if (one.count, one.step) != (other.count, other.step) {
            return None;
        }
        if one.start != other.start {
            let distance = i64::try_from(i128::from(other.start) - i128::from(one.start)).ok()?;
            let extent = one.count.saturating_mul(one.step.unsigned_abs()).max(1);
            if step.is_some() || distance.unsigned_abs() > extent.saturating_mul(MAX_STEP_EXTENTS) {
                return None;
            }
            step = Some((at, distance));
        }
    }
    Some(step.map_or(Follows::Same, Follows::Step))
}

/// The boxes of chunks that the next steps need, and neither this one nor a step before them does, as far as the array goes.
fn next_spans(
    subset: &Subset,
    (dim, distance): Step,
    axes: &[ChunkAxis],
    span: &ChunkSpan,
) -> Vec<ChunkSpan> {
    let (mut spans, mut before) = (Vec::new(), span.clone());
    for steps in 1..=MAX_STEPS_AHEAD {
        let mut next = subset.clone();
        let (Some(range), Some(axis)) = (next.0.get_mut(dim), axes.get(dim)) else { break };
        let moved = distance.checked_mul(steps).and_then(|moved| range.start.checked_add_signed(moved));
        let Some(start) = moved.filter(|start| *start < axis.length()) else { break };
        range.start = start;
        let last = i128::from(start) + i128::from(range.step) * i128::from(range.count.saturating_sub(1));
        if last < 0 || last >= i128::from(axis.length()) {
            break;
        }
        let Some(next) = ChunkSpan::of(&next, axes) else { break };
        spans.extend(next.beyond(&before, dim));
        if spans.len() == AHEAD {
            break;
        }
        before = next;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<ChunkAxis> {
        vec![ChunkAxis::new(100, 10), ChunkAxis::new(64, 16), ChunkAxis::new(64, 64)]
    }

    /// The plane at `time`, its rows from `row` on.
    fn plane(time: u64, row: u64) -> Subset {
        let range = |start, count| AxisRange { start, count, step: 1, keep: true };
        Subset(vec![range(time, 1), range(row, 16), range(0, 64)])
    }

    fn name() -> (Arc<str>, NodePath) {
        ("m".into(), NodePath::parse("a").unwrap())
    }

    /// The boxes that are prefetched after a selection.
    fn observed(
        detector: &mut ScanDetector,
        subset: &Subset,
        axes: &[ChunkAxis],
        now: Instant,
    ) -> Vec<Subset> {
        let ((mount, path), mut boxes) = (name(), Vec::new());
        detector.observe((&mount, &path), (subset, axes), now, |found| {
            boxes.push(found);
            true
        });
        boxes
    }

    /// What is prefetched after each of these planes: the first elements of the boxes along the first two dimensions.
    fn ahead(detector: &mut ScanDetector, planes: &[(u64, u64)]) -> Vec<Vec<(u64, u64)>> {
        let now = Instant::now();
        let boxes = planes.iter().map(|&(time, row)| {
            let boxes = observed(detector, &plane(time, row), &axes(), now);
            boxes.iter().map(|found| (found.axes()[0].start, found.axes()[1].start)).collect()
        });
        boxes.collect()
    }

    /// What is prefetched after selections of one dimension of these ranges (start, count, step): first elements and counts.
    fn ahead_along(
        detector: &mut ScanDetector,
        axis: &ChunkAxis,
        ranges: impl IntoIterator<Item = (u64, u64, i64)>,
    ) -> Vec<Vec<(u64, u64)>> {
        let now = Instant::now();
        let boxes = ranges.into_iter().map(|(start, count, step)| {
            let subset = Subset(vec![AxisRange { start, count, step, keep: true }]);
            let boxes = observed(detector, &subset, std::slice::from_ref(axis), now);
            boxes.iter().map(|found| (found.axes()[0].start, found.axes()[0].count)).collect()
        });
        boxes.collect()
    }

    #[test]
    fn the_chunks_of_the_next_steps_are_prefetched_once_a_scan_is_seen() {
        let mut detector = ScanDetector::default();
        let found = ahead(&mut detector, &[(0, 0), (10, 0), (20, 0), (30, 0), (40, 0)]);
        assert_eq!(found, [vec![], vec![], vec![(30, 0), (40, 0)], vec![(50, 0)], vec![(60, 0)]]);
        assert_eq!(detector.counts(Instant::now()), PrefetchUse { used: 2, wasted: 0 });
    }

    #[test]
    fn steps_within_a_chunk_prefetch_the_next_one_once() {
        let mut detector = ScanDetector::default();
        let found = ahead(&mut detector, &(0..12).map(|time| (time, 0)).collect::<Vec<_>>());
        let all: Vec<(u64, u64)> = found.concat();
        // The third one once the second is reached.
        assert_eq!(all, [(10, 0), (20, 0), (30, 0)], "{found:?}");
        assert_eq!(found[2].len(), 2);
    }

    #[test]
    fn a_scan_may_go_backwards_and_ends_where_the_array_does() {
        let mut detector = ScanDetector::default();
        let found = ahead(&mut detector, &[(32, 0), (22, 0), (12, 0), (2, 0)]);
        assert_eq!(found, [vec![], vec![], vec![(0, 0)], vec![]]);
        let found = ahead(&mut detector, &[(75, 16), (85, 16), (95, 16)]);
        assert_eq!(found.concat(), []);
    }

    #[test]
    fn two_scans_of_one_array_do_not_disturb_each_other() {
        let mut detector = ScanDetector::default();
        let both = [(0, 0), (50, 16), (10, 0), (50, 32), (20, 0), (50, 48), (30, 0)];
        let found = ahead(&mut detector, &both);
        assert_eq!(found[4], [(30, 0), (40, 0)]);
        assert_eq!(found[6], [(50, 0)], "{found:?}");
    }

    #[test]
    fn selections_without_a_pattern_prefetch_nothing() {
        let mut detector = ScanDetector::default();
        let found = ahead(&mut detector, &[(0, 0), (70, 16), (20, 32), (90, 0), (45, 16), (10, 48), (3, 0)]);
        assert_eq!(found.concat(), []);
        let found = ahead(&mut detector, &[(5, 0), (5, 0), (5, 0), (5, 0)]);
        assert_eq!(found.concat(), [], "the same plane again and again");
    }

    #[test]
    fn what_no_step_needs_is_counted_as_wasted_and_makes_later_scans_prove_themselves() {
        let mut detector = ScanDetector::default();
        let mut now = Instant::now();
        for row in [0, 16, 32, 48] {
            for time in [0, 10, 20] {
                observed(&mut detector, &plane(time, row), &axes(), now);
            }
            // Of no scan that goes on.
            now += MAX_AGE * 2;
        }
        assert_eq!(detector.counts(now), PrefetchUse { used: 0, wasted: 8 });
        let times = (0..9).map(|step| step * 10);
        let found: Vec<usize> =
            times.map(|time| observed(&mut detector, &plane(time, 8), &axes(), now).len()).collect();
        assert_eq!(found, [0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn selections_whose_steps_leave_out_chunks_prefetch_nothing() {
        let mut detector = ScanDetector::default();
        let axis = ChunkAxis::new(1 << 62, 1);
        let strided = (0..6).map(|first| (first, 50, 1000));
        let two_ends = (0..6).map(|first| (first << 40, 2, 1 << 61));
        let backwards = (0..6).map(|first| (1_000_000 - first, 50, -1000));
        for found in [
            ahead_along(&mut detector, &axis, strided),
            ahead_along(&mut detector, &axis, two_ends),
            ahead_along(&mut detector, &axis, backwards),
        ] {
            assert_eq!(found.concat(), []);
        }
        // The corners of a plane.
        let corners = |time| {
            let range = |start, count, step| AxisRange { start, count, step, keep: true };
            Subset(vec![range(time, 1, 1), range(0, 2, 63), range(0, 64, 1)])
        };
        for time in 0..6 {
            assert_eq!(observed(&mut detector, &corners(time * 10), &axes(), Instant::now()), []);
        }
        assert_eq!(detector.counts(Instant::now() + MAX_AGE * 2), PrefetchUse::default());
    }

    #[test]
    fn steps_within_chunks_leave_out_none() {
        let mut detector = ScanDetector::default();
        // Every third element, of three chunks.
        let found = ahead_along(&mut detector, &ChunkAxis::new(200, 10), (0..4).map(|n| (n * 30, 10, 3)));
        assert_eq!(found, [vec![], vec![], vec![(90, 30), (120, 30)], vec![(150, 30)]]);
    }

    #[test]
    fn of_windows_that_overlap_the_chunks_that_are_new_are_prefetched() {
        let mut detector = ScanDetector::default();
        let axis = ChunkAxis::new(200, 10);
        let found = ahead_along(&mut detector, &axis, (0..4).map(|n| (n * 10, 100, 1)));
        assert_eq!(found, [vec![], vec![], vec![(120, 10), (130, 10)], vec![(140, 10)]]);
        assert_eq!(detector.counts(Instant::now()), PrefetchUse { used: 1, wasted: 0 });
        let mut detector = ScanDetector::default();
        let found = ahead_along(&mut detector, &axis, (0..4).map(|n| (100 - n * 10, 100, 1)));
        assert_eq!(found, [vec![], vec![], vec![(70, 10), (60, 10)], vec![(50, 10)]]);
        assert_eq!(detector.counts(Instant::now()), PrefetchUse { used: 1, wasted: 0 });
    }

    #[test]
    fn what_is_not_prefetched_after_all_is_neither_used_nor_wasted() {
        let mut detector = ScanDetector::default();
        let ((mount, path), now, mut rejected) = (name(), Instant::now(), 0);
        for time in 0..8 {
            detector.observe((&mount, &path), (&plane(time * 10, 0), &axes()), now, |_| {
                rejected += 1;
                false
            });
        }
        assert!(rejected > 0);
        assert_eq!(detector.counts(now + MAX_AGE * 2), PrefetchUse::default());
    }
}
