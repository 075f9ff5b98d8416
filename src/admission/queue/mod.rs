//! [`Gate`]: a budget that callers take from, and the line in front of it.
//!
//! While there is room and nobody waits, taking is one exchange of a number and giving back is two additions: no lock is
//! held. Once somebody waits, all go through the line, which is kept under a lock:
//!
//! - a class goes before the classes behind it, and these leave the last part of the budget free for it;
//! - within a class, who has least under way goes first, and among equals who came first;
//! - whoever is next and does not fit is waited for: nobody who asks for little passes one who asks for much;
//! - but who has much more under way than is left waits for some of that to end, and is passed: however slowly a caller
//!   reads, with however many connections, it leaves some to others;
//! - what is long leaves a part of the budget to all that is short, of whatever class, and is passed by it there while it
//!   waits: however many read long answers slowly, short ones find room.
//!
//! What is in flight may grow. Growing never waits, as whoever waits while holding may wait for another who does the same: it
//! is granted at once or refused. It passes those who wait, who hold nothing yet, but takes neither what is reserved for other
//! classes nor more than the caller's share. It may have as much as if it came anew and asked for all of it at once: whether
//! that ever fits does not depend on the steps. Nobody comes in while somebody waits, so only so much can pass.
//!
//! How much each caller has under way is counted in so many places, which callers are spread over by chance: memory does
//! not grow with the number of callers, and two that meet in one place count as one. How long someone would wait is told
//! by how fast others give back: who would wait too long need not wait at all. Nothing here sleeps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::admission::{ClientBucket, Priority};

/// Places that callers are counted in.
const BUCKETS: usize = 1024;
/// How many times as much as is left a caller may have under way before it has its share: one alone may have three quarters
/// of all, and `n` that take what they can leave one part in `3n + 1`.
const FAIR_SHARE_FACTOR: u64 = 3;
/// The sixteenths of the budget that what is long leaves to what is short: more than any class leaves to those before it.
const LEFT_BY_LONG: u64 = 4;
/// For how long what is given back is counted before it is called a pace.
const DRAIN_RATE_WINDOW: Duration = Duration::from_millis(100);
/// For how long a pace is believed in while nobody waits: a line that empties and fills again goes on as it did.
const DRAIN_RATE_MAX_AGE: Duration = Duration::from_secs(1);
const CLASSES: usize = Priority::ALL.len();

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermitRequest {
    class: Priority,
    place: usize,
    units: u64,
}

/// A budget, and the line in front of it.
#[derive(Debug)]
pub(super) struct Gate {
    capacity: u64,
    /// What has more units is long.
    short_units: u64,
    free: AtomicU64,
    /// Units in flight of what is long.
    long: AtomicU64,
    /// Units under way, by the place of their callers.
    under_way: Box<[AtomicU64]>,
    /// How many stand in the line. It is changed under the line's lock.
    waiting: AtomicUsize,
    line: Mutex<WaitQueue>,
    /// Requests that were rejected, by class.
    rejected: [AtomicU64; CLASSES],
}

/// Who waits.
#[derive(Debug, Default)]
struct WaitQueue {
    next_number: u64,
    classes: [ClassQueue; CLASSES],
    pace: DrainRate,
}

/// Who waits of one class.
#[derive(Debug, Default)]
struct ClassQueue {
    /// By whether it is long, as what is short may pass what is long of the same caller.
    by_place: BTreeMap<(bool, usize), CallerQueue>,
}

/// Who waits of one class and one place.
#[derive(Debug, Default)]
struct CallerQueue {
    /// By number: in the order in which they came.
    waiters: BTreeMap<u64, Waiter>,
    units: u64,
}

#[derive(Debug)]
struct Waiter {
    units: u64,
    let_in: oneshot::Sender<()>,
}

/// How fast units are given back while somebody waits.
#[derive(Debug, Default)]
struct DrainRate {
    window: Option<Instant>,
    given_back: u64,
    per_second: Option<u64>,
    /// Since when nobody waits.
    idle_since: Option<Instant>,
}

/// Somebody's place in the line. Dropped, it is left, and what was taken for it is given back.
#[derive(Debug)]
pub(super) struct PendingPermit {
    gate: Arc<Gate>,
    ask: PermitRequest,
    number: u64,
    let_in: oneshot::Receiver<()>,
    is_over: bool,
}

impl PermitRequest {
    /// Nothing yet for a caller: it may grow.
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
    /// A budget of so many units, where what has more than `short_units` is long.
    pub(super) fn new(capacity: u64, short_units: u64) -> Self {
        Self {
            capacity,
            short_units,
            free: AtomicU64::new(capacity),
            long: AtomicU64::new(0),
            under_way: std::iter::repeat_with(AtomicU64::default).take(BUCKETS).collect(),
            waiting: AtomicUsize::new(0),
            line: Mutex::default(),
            rejected: Default::default(),
        }
    }

    /// What a caller asks for: at most what its class can have.
    pub(super) fn request(&self, class: Priority, share: ClientBucket, units: u64) -> PermitRequest {
        PermitRequest { class, place: share.bucket(BUCKETS), units: units.min(self.max_units(class)) }
    }

    /// All that one of a class can have.
    pub(super) fn max_units(&self, class: Priority) -> u64 {
        let long = self.capacity - self.left_by(class, u64::MAX);
        // Where the budget is small, nothing that is long may fit.
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

    /// Takes what is asked for, if there is room and nobody waits.
    pub(super) fn try_take(&self, ask: PermitRequest) -> bool {
        self.waiting.load(Ordering::SeqCst) == 0 && self.take(ask)
    }

    /// Takes more for what is in flight, if there is room, whoever waits.
    pub(super) fn try_grow(&self, ask: &mut PermitRequest, units: u64) -> bool {
        let is_taken = self.take_more(*ask, units);
        if is_taken {
            ask.units += units;
            // A caller that has more is behind others now, who may fit.
            if self.waiting.load(Ordering::SeqCst) > 0 {
                self.admit(&mut self.line());
            }
        }
        is_taken
    }

    /// Gives back a part of what is in flight.
    pub(super) fn shrink(&self, ask: &mut PermitRequest, units: u64) {
        let units = units.min(ask.units);
        self.release_units(*ask, units);
        ask.units -= units;
    }

    /// Gives back what was taken.
    pub(super) fn release(&self, ask: PermitRequest) {
        self.release_units(ask, ask.units);
    }

    /// Gives back so many units of what was taken.
    fn release_units(&self, ask: PermitRequest, units: u64) {
        let long = self.long_units(ask.units) - self.long_units(ask.units - units);
        if long > 0 {
            self.long.fetch_sub(long, Ordering::Relaxed);
        }
        self.in_flight(ask.place).fetch_sub(units, Ordering::Relaxed);
        self.free.fetch_add(units, Ordering::SeqCst);
        // Whoever comes to wait counts itself first and looks for room then: one of the two sees the other.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let mut line = self.line();
            line.pace.note(units, Instant::now());
            self.admit(&mut line);
        }
    }

    /// Whether there is a line, and whoever stands in it would take longer than `patience` to go through.
    pub(super) fn would_exceed_wait(&self, ask: PermitRequest, patience: Duration) -> bool {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.would_wait_too_long(&mut self.line(), ask, patience)
    }

    /// Joins the line. `None` if whoever stands before would take longer than `patience` to go through.
    pub(super) fn join(self: &Arc<Self>, ask: PermitRequest, patience: Duration) -> Option<PendingPermit> {
        let (sender, let_in) = oneshot::channel();
        let mut line = self.line();
        if self.would_wait_too_long(&mut line, ask, patience) {
            return None;
        }
        let number = line.next_number;
        line.next_number += 1;
        line.put(ask, self.is_long(ask.units), number, Waiter { units: ask.units, let_in: sender });
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // What is free may have become so since the caller looked, or the class may go before those who wait.
        self.admit(&mut line);
        Some(PendingPermit { gate: Arc::clone(self), ask, number, let_in, is_over: false })
    }

    fn is_long(&self, units: u64) -> bool {
        units > self.short_units
    }

    /// What counts of so many units as long: all or nothing.
    fn long_units(&self, units: u64) -> u64 {
        if self.is_long(units) { units } else { 0 }
    }

    /// Units that must be left free by whoever has so many.
    fn left_by(&self, class: Priority, units: u64) -> u64 {
        let sixteenths = if self.is_long(units) { LEFT_BY_LONG } else { class.reserve() };
        self.capacity / 16 * sixteenths
    }

    /// Whether what is short may pass what is long and waits: in the part that this leaves to it. So what is long is not kept
    /// waiting by more and more that is short.
    fn may_pass(&self, ask: PermitRequest) -> bool {
        let held = self.capacity.saturating_sub(self.free());
        let short = held.saturating_sub(self.long.load(Ordering::Relaxed));
        !self.is_long(ask.units) && short + ask.units <= self.capacity / 16 * LEFT_BY_LONG
    }

    fn in_flight(&self, place: usize) -> &AtomicU64 {
        &self.under_way[place % BUCKETS]
    }

    /// What is left of so much if whoever is to have `ask` in all takes `units` of it now, if there is room for it.
    fn left(&self, free: u64, ask: PermitRequest, units: u64) -> Option<u64> {
        free.checked_sub(units).filter(|left| *left >= self.left_by(ask.class, ask.units))
    }

    /// Whether a caller has so much under way that others go first, whatever they have.
    fn over_fair_share(&self, ask: PermitRequest) -> bool {
        self.over_fair_share_with(ask, 0)
    }

    /// The same, beside so many units that are a part of what is asked for.
    fn over_fair_share_with(&self, ask: PermitRequest, units: u64) -> bool {
        let left = (self.free() + units).saturating_sub(self.left_by(ask.class, ask.units));
        let under_way = self.in_flight(ask.place).load(Ordering::Relaxed);
        under_way.saturating_sub(units) > left.saturating_mul(FAIR_SHARE_FACTOR)
    }

    fn take(&self, ask: PermitRequest) -> bool {
        self.take_more(PermitRequest { units: 0, ..ask }, ask.units)
    }

    /// Takes so many units for whoever has `ask` already. What it has then says what it must leave.
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

    /// Who is next of those who wait and have not had their share, of all or of those who want little.
    fn next(&self, line: &WaitQueue, short_alone: bool) -> Option<(PermitRequest, u64)> {
        let under_way = |ask: &PermitRequest| self.in_flight(ask.place).load(Ordering::Relaxed);
        let must_wait =
            |ask: &PermitRequest| (short_alone && self.is_long(ask.units)) || self.over_fair_share(*ask);
        line.first(|ask| (!must_wait(ask)).then(|| under_way(ask)))
    }

    /// Whether whoever came now would wait for longer than `patience`.
    fn would_wait_too_long(&self, line: &mut WaitQueue, ask: PermitRequest, patience: Duration) -> bool {
        line.pace.note(0, Instant::now());
        let enters = || {
            let has_room = self.left(self.free(), ask, ask.units).is_some() && !self.over_fair_share(ask);
            let is_next = |short_alone| self.next(line, short_alone).is_none();
            has_room && (is_next(false) || (self.may_pass(ask) && is_next(true)))
        };
        line.wait_of(ask, self.is_long(ask.units)).is_some_and(|wait| wait > patience) && !enters()
    }

    /// Lets in whoever is next, as long as there is room; and then those who may pass whoever is next, which may make another
    /// the next.
    fn admit(&self, line: &mut WaitQueue) {
        loop {
            self.admit_next(line, false);
            if !self.admit_next(line, true) {
                return;
            }
        }
    }

    /// Whether anybody was let in.
    fn admit_next(&self, line: &mut WaitQueue, short_alone: bool) -> bool {
        let mut is_anybody_in = false;
        while let Some((ask, number)) = self.next(line, short_alone) {
            if (short_alone && !self.may_pass(ask)) || !self.take(ask) {
                break;
            }
            is_anybody_in = true;
            if let Some(waiter) = self.remove(line, ask, number) {
                // Who has gone meanwhile finds itself let in, and gives back.
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

    /// Who is next of those of whom it is told how much they have under way.
    fn first(&self, under_way: impl Fn(&PermitRequest) -> Option<u64>) -> Option<(PermitRequest, u64)> {
        Priority::ALL.into_iter().zip(&self.classes).find_map(|(class, waiters)| {
            let heads = waiters.by_place.iter().filter_map(|(&(_, place), of_place)| {
                let (&number, waiter) = of_place.waiters.first_key_value()?;
                let ask = PermitRequest { class, place, units: waiter.units };
                Some((under_way(&ask)?, number, ask))
            });
            heads
                .min_by_key(|(under_way, number, _)| (*under_way, *number))
                .map(|(_, number, ask)| (ask, number))
        })
    }

    /// How long someone would wait who came now, if that can be told. What is short does not wait for what is long.
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
    /// How much those wait for together who go before what is long or short, and how many callers they are.
    fn ahead_of(&self, is_long: bool) -> (u64, u64) {
        let all = self.by_place.iter().filter(|((other, _), _)| is_long || !other);
        all.fold((0, 0), |(units, callers), (_, of_place)| (units + of_place.units, callers + 1))
    }
}

impl DrainRate {
    /// Nobody waits any longer.
    fn rest(&mut self, now: Instant) {
        (self.window, self.given_back, self.idle_since) = (None, 0, Some(now));
    }

    /// So many units were given back, or somebody came.
    fn note(&mut self, units: u64, now: Instant) {
        if self
            .idle_since
            .take()
            .is_some_and(|since| now.saturating_duration_since(since) > DRAIN_RATE_MAX_AGE)
        {
            self.per_second = None;
        }
        let window = *self.window.get_or_insert(now);
        self.given_back = self.given_back.saturating_add(units);
        let passed = now.saturating_duration_since(window);
        if passed < DRAIN_RATE_WINDOW {
            return;
        }
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX).max(1);
        let latest = self.given_back.saturating_mul(1000) / millis;
        self.per_second = Some(self.per_second.map_or(latest, |before| before.midpoint(latest)));
        (self.window, self.given_back) = (Some(now), 0);
    }
}

impl PendingPermit {
    /// Waits to be let in. What was taken is the caller's to give back from then on.
    pub(super) async fn wait(mut self) -> PermitRequest {
        // The gate drops no sender it has not sent by.
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
            // Those behind may fit where this one did not.
            self.gate.admit(&mut line);
            return;
        }
        drop(line);
        self.gate.release(self.ask);
    }
}

#[cfg(test)]
mod tests;
