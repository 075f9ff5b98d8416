//! [`Gate`]: a budget that callers take units from, and the wait queue in front of it.
//!
//! While units are free and the queue is empty, a caller takes units with one atomic exchange and returns them with two
//! additions, without a lock. Once a request waits, every request goes through the queue, which a lock protects:
//!
//! - a class goes before the classes behind it, which leave the last part of the budget free for it;
//! - within a class, the caller with the least in flight goes first, and among equals the request that came first;
//! - the next request waits until it fits, and the queue waits for it: no small request passes a large one;
//! - but a caller with much more in flight than is left waits until some of that ends, and is passed: however slowly a
//!   caller reads, with however many connections, it leaves units to others;
//! - long requests leave a part of the budget to short ones of every class, and short ones pass waiting long ones
//!   within that part: however many clients read long responses slowly, short requests are admitted.
//!
//! A permit in flight may grow. Growing never waits, because two holders that wait could wait for each other: the gate
//! grants it at once or refuses it. It passes the waiting requests, which hold nothing yet, but takes neither the
//! reserve of other classes nor more than the caller's share. The limit is the same as for a new request of the full
//! size: whether a size ever fits does not depend on the steps. No request enters while another waits, so growth that
//! passes the queue is bounded.
//!
//! A fixed number of buckets counts what callers have in flight, and a hash assigns callers to buckets: memory does not
//! grow with the number of callers, and two callers in one bucket count as one. The rate at which units return gives an
//! estimate of the wait, and a request whose estimated wait is too long need not wait at all. Nothing here sleeps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::admission::{ClientBucket, Priority};

/// Number of buckets that callers are counted in.
const BUCKETS: usize = 1024;
/// The largest ratio of a caller's units in flight to the units left, beyond which the caller has its share: one caller
/// alone may have three quarters of the budget, and `n` callers that take what they can leave one part in `3n + 1`.
const FAIR_SHARE_FACTOR: u64 = 3;
/// The sixteenths of the budget that long requests leave to short ones: more than any class leaves to those before it.
const LEFT_BY_LONG: u64 = 4;
/// The shortest time over which returned units are counted before they give a drain rate.
const DRAIN_RATE_WINDOW: Duration = Duration::from_millis(100);
/// The part of the budget (1 / `DRAIN_RATE_PARTS`) that has to be returned in a window shorter than the longest wait: a few
/// units that return first say nothing about those that follow.
const DRAIN_RATE_PARTS: u64 = 16;
/// How long a drain rate stays valid while the queue is empty: a queue that empties and fills again usually drains as
/// before.
const DRAIN_RATE_MAX_AGE: Duration = Duration::from_secs(1);
const CLASSES: usize = Priority::ALL.len();

/// The units that a caller asks for or holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermitRequest {
    class: Priority,
    place: usize,
    units: u64,
}

/// A budget, and the wait queue in front of it.
#[derive(Debug)]
pub(super) struct Gate {
    capacity: u64,
    /// Requests of more units are long.
    short_units: u64,
    /// A request whose estimated wait is longer does not join the queue.
    max_wait: Duration,
    free: AtomicU64,
    /// Units in flight of long requests.
    long: AtomicU64,
    /// Units in flight, by the bucket of their callers.
    in_flight: Box<[AtomicU64]>,
    /// Number of waiting requests. It changes under the queue's lock only.
    waiting: AtomicUsize,
    line: Mutex<WaitQueue>,
    /// Requests that were rejected, by class.
    rejected: [AtomicU64; CLASSES],
}

/// The waiting requests.
#[derive(Debug)]
struct WaitQueue {
    next_number: u64,
    classes: [ClassQueue; CLASSES],
    pace: DrainRate,
}

/// The waiting requests of one class.
#[derive(Debug, Default)]
struct ClassQueue {
    /// By whether the request is long, and by bucket: a short request may pass a long one of the same caller.
    by_place: BTreeMap<(bool, usize), CallerQueue>,
}

/// The waiting requests of one class and one bucket.
#[derive(Debug, Default)]
struct CallerQueue {
    /// By number: in the order of arrival.
    waiters: BTreeMap<u64, Waiter>,
    units: u64,
}

#[derive(Debug)]
struct Waiter {
    units: u64,
    let_in: oneshot::Sender<()>,
}

/// The rate at which units return while requests wait.
#[derive(Debug)]
struct DrainRate {
    /// The units that are enough to give a rate, and the time after which fewer are enough.
    sample: (u64, Duration),
    window: Option<Instant>,
    given_back: u64,
    per_second: Option<u64>,
    /// The time since which the queue has been empty.
    idle_since: Option<Instant>,
}

/// A request's place in the queue. Dropping it leaves the queue and returns any units that were taken for it.
#[derive(Debug)]
pub(super) struct PendingPermit {
    gate: Arc<Gate>,
    ask: PermitRequest,
    number: u64,
    let_in: oneshot::Receiver<()>,
    is_over: bool,
}

impl PermitRequest {
    /// A request for zero units, which may grow.
    pub(super) fn nothing(class: Priority, share: ClientBucket) -> Self {
        Self { class, place: share.bucket(BUCKETS), units: 0 }
    }

    pub(super) fn class(&self) -> Priority {
        self.class
    }

    pub(super) fn units(&self) -> u64 {
        self.units
    }
}

impl Gate {
    /// A budget of `capacity` units, where requests of more than `short_units` are long, and no estimated wait is longer than
    /// `max_wait`.
    pub(super) fn new(capacity: u64, short_units: u64, max_wait: Duration) -> Self {
        let pace = DrainRate::new(capacity / DRAIN_RATE_PARTS, max_wait);
        Self {
            capacity,
            short_units,
            max_wait,
            free: AtomicU64::new(capacity),
            long: AtomicU64::new(0),
            in_flight: std::iter::repeat_with(AtomicU64::default).take(BUCKETS).collect(),
            waiting: AtomicUsize::new(0),
            line: Mutex::new(WaitQueue { next_number: 0, classes: Default::default(), pace }),
            rejected: Default::default(),
        }
    }

    /// A caller's request, limited to the largest of its class.
    pub(super) fn request(&self, class: Priority, share: ClientBucket, units: u64) -> PermitRequest {
        PermitRequest { class, place: share.bucket(BUCKETS), units: units.min(self.max_units(class)) }
    }

    /// The largest number of units that a request of a class can have.
    pub(super) fn max_units(&self, class: Priority) -> u64 {
        let long = self.capacity - self.left_by(class, u64::MAX);
        // In a small budget, no long request may fit.
        long.max(self.short_units.min(self.capacity - self.left_by(class, 0)))
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn free(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Counts a request of this class as rejected.
    pub(super) fn count_rejected(&self, class: Priority) {
        if let Some(count) = self.rejected.get(class.place()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Requests of this class that were rejected.
    pub(super) fn rejected(&self, class: Priority) -> u64 {
        self.rejected.get(class.place()).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Takes the requested units, if they are free and no request waits.
    pub(super) fn try_take(&self, ask: PermitRequest) -> bool {
        self.waiting.load(Ordering::SeqCst) == 0 && self.take(ask)
    }

    /// Takes more units for a permit in flight, if they are free, whether or not requests wait.
    pub(super) fn try_grow(&self, ask: &mut PermitRequest, units: u64) -> bool {
        let is_taken = self.take_more(*ask, units);
        if is_taken {
            ask.units += units;
            // A caller that has more now ranks behind others, which may fit.
            if self.waiting.load(Ordering::SeqCst) > 0 {
                self.admit(&mut self.line());
            }
        }
        is_taken
    }

    /// Returns a part of the units of a permit in flight.
    pub(super) fn shrink(&self, ask: &mut PermitRequest, units: u64) {
        let units = units.min(ask.units);
        self.release_units(*ask, units);
        ask.units -= units;
    }

    /// Returns all units that were taken.
    pub(super) fn release(&self, ask: PermitRequest) {
        self.release_units(ask, ask.units);
    }

    /// Returns a number of the units that were taken.
    fn release_units(&self, ask: PermitRequest, units: u64) {
        let long = self.long_units(ask.units) - self.long_units(ask.units - units);
        if long > 0 {
            self.long.fetch_sub(long, Ordering::Relaxed);
        }
        self.in_flight(ask.place).fetch_sub(units, Ordering::Relaxed);
        self.free.fetch_add(units, Ordering::SeqCst);
        // A request that starts to wait counts itself first and checks for free units then, so that one of the two sees
        // the other.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let mut line = self.line();
            line.pace.add(units);
            self.admit(&mut line);
        }
    }

    /// Whether the queue is not empty and a request that joined it would wait too long.
    pub(super) fn would_exceed_wait(&self, ask: PermitRequest) -> bool {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.would_wait_too_long(&mut self.line(), ask)
    }

    /// Joins the queue. `None` if the estimated wait is too long.
    pub(super) fn join(self: &Arc<Self>, ask: PermitRequest) -> Option<PendingPermit> {
        let (sender, let_in) = oneshot::channel();
        let mut line = self.line();
        if self.would_wait_too_long(&mut line, ask) {
            return None;
        }
        let number = line.next_number;
        line.next_number += 1;
        line.put(ask, self.is_long(ask.units), number, Waiter { units: ask.units, let_in: sender });
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // Units may have become free since the caller's check, or the class may go before the waiting requests.
        self.admit(&mut line);
        Some(PendingPermit { gate: Arc::clone(self), ask, number, let_in, is_over: false })
    }

    fn is_long(&self, units: u64) -> bool {
        units > self.short_units
    }

    /// The units that count as long: all or none.
    fn long_units(&self, units: u64) -> u64 {
        if self.is_long(units) { units } else { 0 }
    }

    /// Units that a request of this class and size must leave free.
    fn left_by(&self, class: Priority, units: u64) -> u64 {
        let sixteenths = if self.is_long(units) { LEFT_BY_LONG } else { class.reserve() };
        self.capacity / 16 * sixteenths
    }

    /// Whether a short request may pass waiting long ones: within the part that these leave to short requests, so that
    /// an endless series of short requests does not block long ones.
    fn may_pass(&self, ask: PermitRequest) -> bool {
        let held = self.capacity.saturating_sub(self.free());
        let short = held.saturating_sub(self.long.load(Ordering::Relaxed));
        !self.is_long(ask.units) && short + ask.units <= self.capacity / 16 * LEFT_BY_LONG
    }

    fn in_flight(&self, place: usize) -> &AtomicU64 {
        &self.in_flight[place % BUCKETS]
    }

    /// The units that stay free if a caller, for a total of `ask`, takes `units` now; `None` if they do not fit.
    fn left(&self, free: u64, ask: PermitRequest, units: u64) -> Option<u64> {
        free.checked_sub(units).filter(|left| *left >= self.left_by(ask.class, ask.units))
    }

    /// Whether a caller has more in flight than its share, so that others go first.
    fn over_fair_share(&self, ask: PermitRequest) -> bool {
        self.over_fair_share_with(ask, 0)
    }

    /// The same, without counting `units` that the request itself holds already.
    fn over_fair_share_with(&self, ask: PermitRequest, units: u64) -> bool {
        let left = (self.free() + units).saturating_sub(self.left_by(ask.class, ask.units));
        let held = self.in_flight(ask.place).load(Ordering::Relaxed);
        held.saturating_sub(units) > left.saturating_mul(FAIR_SHARE_FACTOR)
    }

    fn take(&self, ask: PermitRequest) -> bool {
        self.take_more(PermitRequest { units: 0, ..ask }, ask.units)
    }

    /// Takes more units for a caller that holds `ask` already. The new total decides what it must leave free.
    fn take_more(&self, ask: PermitRequest, units: u64) -> bool {
        let all = PermitRequest { units: ask.units + units, ..ask };
        let less = |free: u64| self.left(free, all, units);
        let is_taken = !self.over_fair_share_with(all, ask.units)
            && self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok();
        if is_taken {
            self.in_flight(ask.place).fetch_add(units, Ordering::Relaxed);
            let long = self.long_units(all.units) - self.long_units(ask.units);
            if long > 0 {
                self.long.fetch_add(long, Ordering::Relaxed);
            }
        }
        is_taken
    }

    /// The next waiting request whose caller is below its share, of all or of the short ones only.
    fn next(&self, line: &WaitQueue, short_alone: bool) -> Option<(PermitRequest, u64)> {
        let in_flight = |ask: &PermitRequest| self.in_flight(ask.place).load(Ordering::Relaxed);
        let must_wait =
            |ask: &PermitRequest| (short_alone && self.is_long(ask.units)) || self.over_fair_share(*ask);
        line.first(|ask| (!must_wait(ask)).then(|| in_flight(ask)))
    }

    /// Whether a request that came now would wait too long.
    fn would_wait_too_long(&self, line: &mut WaitQueue, ask: PermitRequest) -> bool {
        line.pace.update(Instant::now());
        // The first one to wait finds out how long that takes.
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let enters = || {
            let fits = self.left(self.free(), ask, ask.units).is_some() && !self.over_fair_share(ask);
            let is_next = |short_alone| self.next(line, short_alone).is_none();
            fits && (is_next(false) || (self.may_pass(ask) && is_next(true)))
        };
        line.wait_of(ask, self.is_long(ask.units)).is_some_and(|wait| wait > self.max_wait) && !enters()
    }

    /// Admits the next request as long as it fits, then those that may pass it; repeats, as passing may change the
    /// next.
    fn admit(&self, line: &mut WaitQueue) {
        loop {
            self.admit_next(line, false);
            if !self.admit_next(line, true) {
                return;
            }
        }
    }

    /// Admits requests in order; returns whether it admitted any.
    fn admit_next(&self, line: &mut WaitQueue, short_alone: bool) -> bool {
        let mut is_anybody_in = false;
        while let Some((ask, number)) = self.next(line, short_alone) {
            if (short_alone && !self.may_pass(ask)) || !self.take(ask) {
                break;
            }
            is_anybody_in = true;
            if let Some(waiter) = self.remove(line, ask, number) {
                // A request that has left in the meantime has its units taken and returns them on drop.
                let _ = waiter.let_in.send(());
            }
        }
        is_anybody_in
    }

    fn remove(&self, line: &mut WaitQueue, ask: PermitRequest, number: u64) -> Option<Waiter> {
        let waiter = line.remove(ask, self.is_long(ask.units), number)?;
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            line.pace.rest(Instant::now());
        }
        Some(waiter)
    }

    fn line(&self) -> MutexGuard<'_, WaitQueue> {
        // No code panics while it holds the lock.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitQueue {
    fn put(&mut self, ask: PermitRequest, is_long: bool, number: u64, waiter: Waiter) {
        let waiters = &mut self.classes[ask.class.place()];
        let of_place = waiters.by_place.entry((is_long, ask.place)).or_default();
        of_place.units += waiter.units;
        of_place.waiters.insert(number, waiter);
    }

    fn remove(&mut self, ask: PermitRequest, is_long: bool, number: u64) -> Option<Waiter> {
        let waiters = &mut self.classes[ask.class.place()];
        let of_place = waiters.by_place.get_mut(&(is_long, ask.place))?;
        let waiter = of_place.waiters.remove(&number)?;
        of_place.units -= waiter.units;
        if of_place.waiters.is_empty() {
            waiters.by_place.remove(&(is_long, ask.place));
        }
        Some(waiter)
    }

    /// The next request among those for which `in_flight` returns the caller's units in flight.
    fn first(&self, in_flight: impl Fn(&PermitRequest) -> Option<u64>) -> Option<(PermitRequest, u64)> {
        Priority::ALL.into_iter().zip(&self.classes).find_map(|(class, waiters)| {
            let heads = waiters.by_place.iter().filter_map(|(&(_, place), of_place)| {
                let (&number, waiter) = of_place.waiters.first_key_value()?;
                let ask = PermitRequest { class, place, units: waiter.units };
                Some((in_flight(&ask)?, number, ask))
            });
            heads.min_by_key(|(held, number, _)| (*held, *number)).map(|(_, number, ask)| (ask, number))
        })
    }

    /// The estimated wait of a request that came now, if a drain rate is known. A short request does not wait for long
    /// ones.
    fn wait_of(&self, ask: PermitRequest, is_long: bool) -> Option<Duration> {
        let per_second = self.pace.per_second.filter(|units| *units > 0)?;
        let before = self.classes.iter().take(ask.class.place());
        let before: u64 = before.map(|waiters| waiters.ahead_of(is_long).0).sum();
        let class = &self.classes[ask.class.place()];
        let own = |is_long| class.by_place.get(&(is_long, ask.place)).map_or(0, |of_place| of_place.units);
        let own = own(false) + if is_long { own(true) } else { 0 };
        let (units, callers) = class.ahead_of(is_long);
        // Callers take turns: each goes as often as this one.
        let beside = units.min(own.saturating_mul(callers.max(1)));
        let ahead = before.saturating_add(beside).saturating_add(ask.units);
        Some(Duration::from_millis(ahead.saturating_mul(1000) / per_second))
    }
}

impl ClassQueue {
    /// The units and the number of callers that go before a long or a short request.
    fn ahead_of(&self, is_long: bool) -> (u64, u64) {
        let all = self.by_place.iter().filter(|((other, _), _)| is_long || !other);
        all.fold((0, 0), |(units, callers), (_, of_place)| (units + of_place.units, callers + 1))
    }
}

impl DrainRate {
    /// No rate yet. One is known once this number of units was returned, or after this time.
    fn new(enough_units: u64, enough_time: Duration) -> Self {
        let sample = (enough_units, enough_time);
        Self { sample, window: None, given_back: 0, per_second: None, idle_since: None }
    }

    /// The queue has become empty.
    fn rest(&mut self, now: Instant) {
        (self.window, self.given_back, self.idle_since) = (None, 0, Some(now));
    }

    /// Records that units were returned while requests wait.
    fn add(&mut self, units: u64) {
        self.given_back = self.given_back.saturating_add(units);
    }

    /// Brings the rate up to date when a request comes. Only then: units that return together after a pause count together.
    fn update(&mut self, now: Instant) {
        if self
            .idle_since
            .take()
            .is_some_and(|since| now.saturating_duration_since(since) > DRAIN_RATE_MAX_AGE)
        {
            self.per_second = None;
        }
        let window = *self.window.get_or_insert(now);
        let passed = now.saturating_duration_since(window);
        let (enough_units, enough_time) = self.sample;
        let says_enough = self.given_back >= enough_units || passed >= enough_time;
        if passed < DRAIN_RATE_WINDOW || !says_enough {
            return;
        }
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX).max(1);
        let latest = self.given_back.saturating_mul(1000) / millis;
        self.per_second = Some(self.per_second.map_or(latest, |before| before.midpoint(latest)));
        (self.window, self.given_back) = (Some(now), 0);
    }
}

impl PendingPermit {
    /// Waits to be admitted. From then on the caller has to return the units.
    pub(super) async fn wait(mut self) -> PermitRequest {
        // The gate sends on every sender before it drops it.
        let _ = (&mut self.let_in).await;
        self.is_over = true;
        self.ask
    }
}

impl Drop for PendingPermit {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut line = self.gate.line();
        if self.gate.remove(&mut line, self.ask, self.number).is_some() {
            // Requests behind this one may fit.
            self.gate.admit(&mut line);
            return;
        }
        drop(line);
        self.gate.release(self.ask);
    }
}

#[cfg(test)]
mod tests;
