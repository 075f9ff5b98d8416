//! [`ArrayLease`]: the right to change the end of an array, or of several arrays of a group, which one task has at a time.
//!
//! Times decide only who waits. That a server whose lease has ended changes nothing follows from versions: who takes an array over
//! changes the record first, and then the array's document, so that the former owner can store neither any more.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::error::LeaseError;
use super::record::{DecidedStep, GroupStep, LEASE, LeaseOwner, LeasePlace, LeaseRecord, RecordedAppend};
use crate::key::NodePath;
use crate::store::{Store, Version, WriteDeadline};
use crate::units::Clock;
use crate::write::pause::{ATTEMPTS, pause};

/// A lease with less than this left is renewed before anything is stored under it: so early that a slow backend breaks no write off.
const LEAST_LEFT: Duration = Duration::from_millis(3500);
/// Nothing is sent under a lease with less than this left: it takes a while to arrive.
const SEND_MARGIN: Duration = Duration::from_secs(1);
/// How long a request waits for the owner to finish.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(2);
/// The interval at which it checks whether the owner has.
const POLL: Duration = Duration::from_millis(50);

/// What there was before the lease was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordBefore {
    /// No record.
    Absent,
    /// A record.
    Present,
    /// A record with the mark that an earlier creation has left.
    Marked,
}

/// The right to change the end of an array.
#[derive(Debug)]
pub(in crate::write) struct ArrayLease {
    pub(super) place: LeasePlace,
    pub(super) record: LeaseRecord,
    pub(super) version: Version,
    clock: Clock,
    pub(super) ends: Instant,
    /// Until when something is sent under it.
    pub(super) deadline: WriteDeadline,
    /// Until when a write of an earlier owner may arrive.
    late_writes_until: Option<Instant>,
    /// When it was taken.
    taken: Instant,
    /// When the record was first read to take the lease, and how many keys had been used.
    first_read: (Instant, u64),
    pub(super) before: RecordBefore,
    /// Whether work under it was broken off, of which something may still arrive.
    pub(in crate::write) has_broken_off: bool,
    /// Whether the owner before, or this one, may have a change of the document in flight. Then the document is marked before
    /// anything else is done.
    pub(in crate::write) is_unsettled: bool,
}

impl ArrayLease {
    /// Takes the lease of the array at a path for a server. The clock is that of all servers.
    ///
    /// Where no write of another process can arrive, the lease of one that has ended is taken at once. At other backends it is waited
    /// for, also by the only server that writes there: what the process before has sent may still arrive.
    ///
    /// # Errors
    /// [`LeaseError::Owned`] if another server keeps it; [`LeaseError::Making`] if a node is being made at the path; a failure of
    /// the backend.
    pub(in crate::write) async fn take(
        store: &dyn Store,
        path: &NodePath,
        owner: &LeaseOwner,
        clock: Clock,
    ) -> Result<Self, LeaseError> {
        Self::take_as(store, path, owner, clock, (MAX_WAIT, |_record: &mut _| {})).await
    }

    /// Takes the lease if no other owner has it; `None` if one has.
    ///
    /// # Errors
    /// A failure of the backend.
    pub(in crate::write) async fn take_if_free(
        store: &dyn Store,
        path: &NodePath,
        owner: &LeaseOwner,
        clock: Clock,
    ) -> Result<Option<Self>, LeaseError> {
        match Self::take_as(store, path, owner, clock, (Duration::ZERO, |_record: &mut _| {})).await {
            Err(LeaseError::Owned | LeaseError::Making) => Ok(None),
            taken => taken.map(Some),
        }
    }

    /// Takes the lease, with a change of its record, after waiting for its owner for at most `max_wait`.
    pub(super) async fn take_as(
        store: &dyn Store,
        path: &NodePath,
        owner: &LeaseOwner,
        clock: Clock,
        (max_wait, change): (Duration, impl Fn(&mut LeaseRecord)),
    ) -> Result<Self, LeaseError> {
        let place = LeasePlace::of(store, path).await?;
        let is_alone = is_alone(store);
        let started = Instant::now();
        let mut first_read = None;
        let mut attempt = 0;
        loop {
            let (mut record, version) = match place.read().await? {
                Some((record, version)) => (record, Some(version)),
                None => (LeaseRecord::default(), None),
            };
            let first_read = *first_read.get_or_insert_with(|| (Instant::now(), record.keys_used));
            if record.is_held_from(owner, is_alone, clock(), LEASE) {
                if started.elapsed() >= max_wait {
                    return Err(if record.is_making { LeaseError::Making } else { LeaseError::Owned });
                }
                sleep(POLL).await;
                continue;
            }
            let is_unsettled = record.until > 0;
            if is_unsettled && !store.capabilities().no_late_writes {
                record.taken_over = clock();
            }
            let before = match (&version, record.is_making) {
                (None, _) => RecordBefore::Absent,
                (Some(_), false) => RecordBefore::Present,
                (Some(_), true) => RecordBefore::Marked,
            };
            record.epoch = record.epoch.saturating_add(1);
            record.owner.clone_from(owner);
            change(&mut record);
            let ends = extend(&mut record, clock);
            if let Some(version) = place.replace(&record, version.as_ref()).await? {
                return Ok(Self {
                    place,
                    version,
                    clock,
                    ends,
                    deadline: WriteDeadline::new(ends - SEND_MARGIN),
                    late_writes_until: self::late_writes_until(&record, clock),
                    taken: Instant::now(),
                    first_read,
                    before,
                    record,
                    has_broken_off: false,
                    is_unsettled,
                });
            }
            attempt += 1;
            if attempt == ATTEMPTS {
                return Err(LeaseError::Owned);
            }
            pause(attempt).await;
        }
    }

    /// Takes the lease as [`ArrayLease::take`] does, if anything was ever appended at the path.
    ///
    /// # Errors
    /// As [`ArrayLease::take`].
    pub(in crate::write) async fn take_if_used(
        store: &dyn Store,
        path: &NodePath,
        owner: &LeaseOwner,
        clock: Clock,
    ) -> Result<Option<Self>, LeaseError> {
        match LeasePlace::of(store, path).await?.read().await? {
            Some(_) => Self::take(store, path, owner, clock).await.map(Some),
            None => Ok(None),
        }
    }

    /// Notes what is about to be appended, and renews the lease.
    ///
    /// # Errors
    /// [`LeaseError::Lost`]; a failure of the backend.
    pub(in crate::write) async fn note(&mut self, pending: Vec<RecordedAppend>) -> Result<(), LeaseError> {
        self.record.pending = pending;
        self.store().await
    }

    /// When it was taken.
    pub(in crate::write) fn taken(&self) -> Instant {
        self.taken
    }

    /// Waits until no write of an earlier owner can arrive any more. Elements that are stored before that could be lost to one: where
    /// versions are digests, as in S3, a value may return to the version at which that write is made.
    ///
    /// # Errors
    /// As [`ArrayLease::hold`].
    pub(in crate::write) async fn wait_for_late_writes(&mut self) -> Result<(), LeaseError> {
        if let Some(until) = self.late_writes_until {
            self.hold(sleep_until(until)).await?;
        }
        self.late_writes_until = None;
        Ok(())
    }

    /// How often the array was taken over.
    pub(in crate::write) fn epoch(&self) -> u64 {
        self.record.epoch
    }

    /// How often the path was taken over, if another owner had its lease before this one.
    pub(in crate::write) fn epoch_if_used(&self) -> Option<u64> {
        (self.before != RecordBefore::Absent).then_some(self.record.epoch)
    }

    /// The append with a key of this name that was done.
    pub(in crate::write) fn done_as(&self, name: &str) -> Option<&RecordedAppend> {
        self.record.done_as(name)
    }

    /// How many keys were used.
    pub(in crate::write) fn keys_used(&self) -> u64 {
        self.record.keys_used
    }

    /// When the record had first been read to take the lease, and how many keys had been used.
    pub(in crate::write) fn first_read(&self) -> (Instant, u64) {
        self.first_read
    }

    /// How many keys were used by appends at a path, as far as is stored.
    ///
    /// # Errors
    /// A failure of the backend.
    pub(in crate::write) async fn keys_used_at(
        store: &dyn Store,
        path: &NodePath,
    ) -> Result<u64, LeaseError> {
        let record = LeasePlace::of(store, path).await?.read().await?;
        Ok(record.map_or(0, |(record, _)| record.keys_used))
    }

    /// Whether the keys are kept that were used since there were this many, and as many before as are promised.
    pub(in crate::write) fn has_keys_since(&self, keys_used: u64) -> bool {
        self.record.has_keys_since(keys_used)
    }

    /// What the owner before was appending as a part of a step of a group.
    pub(in crate::write) fn part_of_step(&self) -> Option<(&GroupStep, &RecordedAppend)> {
        self.record.pending.iter().find_map(|append| Some((append.step.as_ref()?, append)))
    }

    /// The last step that was decided under a lease of this group.
    pub(in crate::write) fn decided(&self) -> Option<&DecidedStep> {
        self.record.decided.as_ref()
    }

    /// Decides a step: from now on, its arrays get their shapes. Its append is kept as done.
    ///
    /// # Errors
    /// [`LeaseError::Lost`], a failure of the backend: it may be decided all the same.
    pub(in crate::write) async fn decide(
        &mut self,
        step: DecidedStep,
        append: RecordedAppend,
    ) -> Result<(), LeaseError> {
        let undecided = self.record.clone();
        self.record.decided = Some(step);
        self.record.finish([append]);
        let stored = self.store().await;
        if stored.is_err() {
            // If it is stored nevertheless, this record cannot replace it. If not, it must not be decided by the release.
            self.record = undecided;
        }
        stored
    }

    /// Notes that all arrays of the last step have their shapes. It is stored with what is stored next.
    pub(in crate::write) fn clear_decided(&mut self) {
        self.record.decided = None;
    }

    /// Whether a step of a group is decided, which has the name of its owner. If it is not, it never will be.
    ///
    /// # Errors
    /// A failure of the backend.
    pub(in crate::write) async fn settle_step(
        store: &dyn Store,
        group: &NodePath,
        id: &str,
    ) -> Result<bool, LeaseError> {
        let place = LeasePlace::of(store, group).await?;
        for attempt in 0..ATTEMPTS {
            pause(attempt).await;
            let Some((mut record, version)) = place.read().await? else { return Ok(false) };
            if record.decided.as_ref().is_some_and(|decided| decided.id == id) {
                return Ok(true);
            }
            if record.owner.name() != id {
                // Who would decide it has lost the lease of the group already.
                return Ok(false);
            }
            record.epoch = record.epoch.saturating_add(1);
            record.owner = LeaseOwner::default();
            record.until = 0;
            if place.replace(&record, Some(&version)).await?.is_some() {
                return Ok(false);
            }
        }
        Err(LeaseError::Owned)
    }

    /// Settles what was being appended when the owner before broke off, by the shape in a document that is marked by now.
    pub(in crate::write) fn settle(&mut self, shape: &[u64]) {
        self.record.settle(shape);
        self.is_unsettled = false;
    }

    /// Notes that the array has this shape now: appends that are not in it are not done, whatever shape it has later.
    pub(in crate::write) fn invalidate_outside(&mut self, shape: &[u64]) {
        self.record.invalidate_outside(shape);
    }

    /// Keeps what is pending as done.
    pub(in crate::write) fn finish(&mut self) {
        let pending = std::mem::take(&mut self.record.pending);
        self.record.finish(pending);
        self.is_unsettled = false;
    }

    /// Gives the lease back. If that fails, or something may still arrive, it ends by itself. Who takes it next does not wait, and settles
    /// first what is unsettled.
    pub(in crate::write) async fn release(mut self) {
        self.deadline.set(Instant::now());
        if self.has_broken_off {
            return;
        }
        self.record.until = u64::from(self.is_unsettled);
        if !self.is_unsettled {
            self.record.pending.clear();
        }
        drop(self.place.replace(&self.record, Some(&self.version)).await);
    }

    /// Whether it is held for long enough to store something.
    pub(super) fn has_time(&self) -> bool {
        self.ends.saturating_duration_since(Instant::now()) >= LEAST_LEFT
    }

    /// Checks that the lease is still held, by what is stored now.
    ///
    /// # Errors
    /// [`LeaseError::Lost`]; a failure of the backend.
    pub(in crate::write) async fn check(&mut self) -> Result<(), LeaseError> {
        if !self.has_time() {
            return self.store().await;
        }
        if self.place.is_unchanged(&self.version).await? {
            return Ok(());
        }
        self.version = self.own_version().await?.ok_or(LeaseError::Lost)?;
        Ok(())
    }

    /// Renews the lease if it ends soon.
    ///
    /// # Errors
    /// [`LeaseError::Lost`]; a failure of the backend.
    pub(in crate::write) async fn renew(&mut self) -> Result<(), LeaseError> {
        if self.has_time() { Ok(()) } else { self.store().await }
    }

    async fn store(&mut self) -> Result<(), LeaseError> {
        let ends = extend(&mut self.record, self.clock);
        let mut stored = self.place.replace(&self.record, Some(&self.version)).await?;
        if stored.is_none() {
            let version = self.own_version().await?.ok_or(LeaseError::Lost)?;
            stored = self.place.replace(&self.record, Some(&version)).await?;
        }
        self.version = stored.ok_or(LeaseError::Lost)?;
        self.ends = ends;
        self.deadline.set(ends - SEND_MARGIN);
        Ok(())
    }

    /// The version of the record that is stored, if that is of this lease: one that was stored although its response was lost.
    async fn own_version(&self) -> Result<Option<Version>, LeaseError> {
        let stored = self.place.read().await?;
        let is_own =
            |record: &LeaseRecord| record.owner == self.record.owner && record.epoch == self.record.epoch;
        Ok(stored.filter(|(record, _)| is_own(record)).map(|(_, version)| version))
    }
}

/// Whether the leases of other processes are those of processes that have ended, with all that they were doing.
pub(super) fn is_alone(store: &dyn Store) -> bool {
    let capabilities = store.capabilities();
    capabilities.sole_writer && capabilities.no_late_writes
}

/// Lets a lease begin now. Returns its end.
fn extend(record: &mut LeaseRecord, clock: Clock) -> Instant {
    let ends = Instant::now() + LEASE;
    // The clock has whole seconds, of which this one has begun.
    record.until = clock().saturating_add(LEASE.as_secs() + 1);
    ends
}

/// Until when a write may arrive that was sent before the array was taken over the last time: as long as a lease lasts.
fn late_writes_until(record: &LeaseRecord, clock: Clock) -> Option<Instant> {
    let most = LEASE.as_secs() + 1;
    let passed = clock().saturating_sub(record.taken_over);
    (record.taken_over > 0 && passed < most).then(|| Instant::now() + Duration::from_secs(most - passed))
}
