//! [`LeaseRecord`]: who appends to an array, what is being appended, and what is done.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::LeaseError;
use crate::key::{NodePath, StoreKey};
use crate::store::{
    ByteRange, OwnArea, SharedStore, Store, StoreError, StoreKind, ValueBody, Version, WriteCondition,
};

/// How long a lease lasts if it is not renewed.
pub(super) const LEASE: Duration = Duration::from_secs(5);

/// The appends with a key that are kept, so that one that is sent again is answered and not done again: the last 256 before it arrives,
/// and as many that may be done until it is its turn.
const KEPT: usize = 512;

/// The longest record that is stored or read, in bytes.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// Who appends to an array, what is being appended, and what was appended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeaseRecord {
    /// How often the array was taken over. A document of the array has a mark of it.
    pub(super) epoch: u64,
    /// Who has the lease.
    pub(super) owner: LeaseOwner,
    /// Until when it does, in seconds since 1970; 0 if it has finished, and leaves nothing behind; 1 if it leaves something unsettled.
    pub(super) until: u64,
    /// When it was last taken from an owner that had not finished, in seconds since 1970; 0 if it never was.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub(super) taken_over: u64,
    /// Appends whose elements may be stored, but that may not be in the shape yet.
    pub(super) pending: Vec<RecordedAppend>,
    /// Appends that are in the shape, the latest last.
    pub(super) done: VecDeque<RecordedAppend>,
    /// How many appends with a key were done.
    #[serde(default)]
    pub(super) keys_used: u64,
    /// How many of these were appended to an earlier array at the path: no one asks for them any more.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub(super) keys_before: u64,
    /// Of a group: the last step that was decided. Its arrays may not have their shapes yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) decided: Option<DecidedStep>,
    /// Whether a node is being made at the path, or was not made in the end and may have left values there.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(super) is_making: bool,
}

/// A step of a group, in which several arrays get their shapes or none does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::write) struct GroupStep {
    /// The path of the group, whose record says whether the step is decided.
    pub(in crate::write) group: String,
    /// A name of the step that no other one has.
    pub(in crate::write) id: String,
}

/// A step that is decided: all of its arrays get their shapes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::write) struct DecidedStep {
    /// The name of the step.
    pub(in crate::write) id: String,
    /// The paths of its arrays.
    pub(in crate::write) arrays: Vec<String>,
}

/// An append in a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::write) struct RecordedAppend {
    /// The key of the client (`Idempotency-Key`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::write) key: Option<AppendKey>,
    /// The dimension.
    pub(in crate::write) axis: usize,
    /// The first index.
    pub(in crate::write) start: u64,
    /// The index behind the last.
    pub(in crate::write) stop: u64,
    /// The shape of the array with it.
    pub(in crate::write) shape: Vec<u64>,
    /// The step of a group that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::write) step: Option<GroupStep>,
}

/// Who has a lease: a process, and a task of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::write) struct LeaseOwner(String);

impl LeaseOwner {
    /// A task of a process.
    pub(in crate::write) fn new(process: &str, task: u64) -> Self {
        Self(format!("{process}-{task}"))
    }

    /// A name that no other owner has.
    pub(in crate::write) fn name(&self) -> &str {
        &self.0
    }

    /// Whether both are tasks of one process.
    fn is_beside(&self, other: &Self) -> bool {
        let process = |owner: &Self| owner.0.rsplit_once('-').map(|(process, _)| process.to_owned());
        process(self) == process(other)
    }
}

/// What a client calls an append, so that it is done once however often it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendKey {
    /// Its name.
    pub name: String,
    /// A digest of what is appended, in hexadecimal digits.
    pub digest: String,
}

impl RecordedAppend {
    /// Whether an array of this shape has it.
    pub(in crate::write) fn is_in_shape(&self, shape: &[u64]) -> bool {
        shape.get(self.axis).is_some_and(|length| self.stop <= *length)
    }
}

impl LeaseRecord {
    /// Whether another owner than this one may be at work at this time. Where nothing arrives late (`is_alone`), the leases of other
    /// processes are those of processes that have ended, with all that they were doing.
    pub(super) fn is_held_from(&self, owner: &LeaseOwner, is_alone: bool, now: u64, lease: Duration) -> bool {
        self.owner != *owner && (!is_alone || self.owner.is_beside(owner)) && self.is_held(now, lease)
    }

    fn is_held(&self, now: u64, lease: Duration) -> bool {
        let lease = lease.as_secs();
        // A time that no owner could have set yet is that of a clock which was wrong.
        now < self.until && self.until <= now.saturating_add(lease.saturating_mul(2))
    }

    /// Invalidates the appends that are not in the shape of the array that is there: they stay in their places, so that the number of keys
    /// that are kept is right, and are in no shape from now on. The mark of a creation ends, as another client has made the array.
    pub(super) fn invalidate_outside(&mut self, shape: &[u64]) {
        self.is_making = false;
        for append in self.done.iter_mut().filter(|append| !append.is_in_shape(shape)) {
            append.stop = u64::MAX;
        }
    }

    /// Settles what was being appended when the owner broke off, by the shape that is stored now.
    pub(super) fn settle(&mut self, shape: &[u64]) {
        self.invalidate_outside(shape);
        let pending = std::mem::take(&mut self.pending);
        self.finish(pending.into_iter().filter(|append| append.is_in_shape(shape)));
    }

    /// Keeps appends that are in the shape, and has none pending.
    pub(super) fn finish(&mut self, appends: impl IntoIterator<Item = RecordedAppend>) {
        self.pending.clear();
        let done = appends.into_iter().filter(|append| append.key.is_some());
        for append in done {
            self.done.push_back(RecordedAppend { step: None, ..append });
            self.keys_used = self.keys_used.saturating_add(1);
        }
        while self.done.len() > KEPT {
            self.done.pop_front();
        }
    }

    /// The text that is stored: with as many of the latest appends that are done as fit.
    ///
    /// # Errors
    /// [`LeaseError::TooLong`] if it would not be read again even without them.
    fn to_text(&self) -> Result<Vec<u8>, LeaseError> {
        let text = |record: &Self| serde_json::to_vec(record).map_err(|_never| LeaseError::TooLong);
        let whole = text(self)?;
        if whole.len() <= MAX_RECORD_BYTES {
            return Ok(whole);
        }
        let mut shorter = self.clone();
        while !shorter.done.is_empty() {
            // A half at a time, so that a long record is not written as often as it has appends.
            shorter.done.drain(..shorter.done.len().div_ceil(2));
            let text = text(&shorter)?;
            if text.len() <= MAX_RECORD_BYTES {
                return Ok(text);
            }
        }
        Err(LeaseError::TooLong)
    }

    /// Has nothing pending and no append done, as there is another array at the path, or none.
    pub(super) fn clear_appends(&mut self) {
        self.pending.clear();
        self.done.clear();
        self.keys_before = self.keys_used;
    }

    /// Whether the keys are kept that were used since there were this many, and as many before as are promised.
    pub(super) fn has_keys_since(&self, keys_used: u64) -> bool {
        let kept = self.done.len() as u64;
        let of_array = self.keys_used.saturating_sub(self.keys_before);
        of_array <= kept || self.keys_used.saturating_sub(keys_used) <= kept / 2
    }

    /// The append with a key of this name.
    pub(super) fn done_as(&self, name: &str) -> Option<&RecordedAppend> {
        self.done.iter().rev().find(|append| append.key.as_ref().is_some_and(|key| key.name == name))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The place of the record of one array.
#[derive(Clone, Debug)]
pub(super) struct LeasePlace {
    store: SharedStore,
    key: StoreKey,
    /// The kind of the backend.
    kind: StoreKind,
}

impl LeasePlace {
    /// The record of the array at a path. Its key is a digest, because a path may be too long for a key below another name. It is
    /// that of the place where the array is stored, so that all names of an array have one lease.
    ///
    /// # Errors
    /// [`LeaseError::NoConditions`] if the backend has no place for it; a failure of the backend.
    pub(super) async fn of(store: &dyn Store, path: &NodePath) -> Result<Self, LeaseError> {
        let place = store.place_name(path.prefix()).await.map_err(LeaseError::Record)?;
        let name = format!("{:x}", Sha256::digest(place));
        let area = store.own_area(OwnArea::Appends).await.map_err(|error| match error {
            StoreError::NotSupported(_) => LeaseError::NoConditions,
            error => LeaseError::Record(error),
        })?;
        let key = StoreKey::parse(&name)
            .map_err(|_never| LeaseError::Record(StoreError::InvalidKey("a digest is no key")))?;
        Ok(Self { store: area, key, kind: store.kind() })
    }

    /// The record; `None` if nothing was ever appended.
    ///
    /// # Errors
    /// [`LeaseError::BrokenRecord`] if what is stored is no record; a failure of the backend.
    pub(super) async fn read(&self) -> Result<Option<(LeaseRecord, Version)>, LeaseError> {
        let value = self.store.get(&self.key, ByteRange::Whole, None).await.map_err(LeaseError::Record)?;
        let Some(value) = value else { return Ok(None) };
        let version = value.info.version.clone();
        if value.len() > MAX_RECORD_BYTES as u64 {
            return Err(self.broken());
        }
        let text = value.bytes(MAX_RECORD_BYTES as u64).await.map_err(LeaseError::Record)?;
        let record = serde_json::from_slice(&text).map_err(|_error| self.broken())?;
        Ok(Some((record, version)))
    }

    fn broken(&self) -> LeaseError {
        LeaseError::BrokenRecord { key: format!("{}{}", OwnArea::Appends.prefix(self.kind), self.key) }
    }

    /// Stores a record in place of that with this version, or where there is none. `None` if another one is stored by now.
    ///
    /// # Errors
    /// [`LeaseError::NoConditions`]; a failure of the backend.
    pub(super) async fn replace(
        &self,
        record: &LeaseRecord,
        expected: Option<&Version>,
    ) -> Result<Option<Version>, LeaseError> {
        let condition = match expected {
            None => WriteCondition::IfAbsent,
            Some(version) => {
                WriteCondition::IfVersion(version.pin().ok_or(LeaseError::NoConditions)?.clone())
            }
        };
        let text = record.to_text()?;
        match self.store.set(&self.key, ValueBody::Bytes(Bytes::from(text)).into_stream(), condition).await {
            Ok(stored) => match stored.version {
                Some(version) => Ok(Some(version)),
                None => Err(LeaseError::NoConditions),
            },
            Err(StoreError::ConditionFailed | StoreError::VersionChanged) => Ok(None),
            Err(StoreError::NotSupported(_)) => Err(LeaseError::NoConditions),
            Err(source) => Err(LeaseError::Record(source)),
        }
    }

    /// Erases the record if it has this version.
    ///
    /// # Errors
    /// [`LeaseError::NoConditions`]; a failure of the backend.
    pub(super) async fn erase(&self, expected: &Version) -> Result<(), LeaseError> {
        let version = expected.pin().ok_or(LeaseError::NoConditions)?.clone();
        let erased = self.store.erase(&self.key, WriteCondition::IfVersion(version)).await;
        erased.map(|_existed| ()).map_err(LeaseError::Record)
    }

    /// Whether the record still has this version.
    ///
    /// # Errors
    /// A failure of the backend.
    pub(super) async fn is_unchanged(&self, version: &Version) -> Result<bool, LeaseError> {
        let found = self.store.head(&self.key).await.map_err(LeaseError::Record)?;
        Ok(found.is_some_and(|found| version.matches(&found.version)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(name: &str, stop: u64) -> RecordedAppend {
        let key = AppendKey { name: name.to_owned(), digest: String::new() };
        RecordedAppend { key: Some(key), axis: 0, start: stop - 1, stop, shape: vec![stop], step: None }
    }

    #[test]
    fn what_is_in_the_shape_is_done_and_the_rest_is_dropped() {
        let mut record =
            LeaseRecord { pending: vec![append("a", 4), append("b", 5)], ..LeaseRecord::default() };
        record.settle(&[4]);
        assert!(record.pending.is_empty() && record.done_as("a").is_some() && record.done_as("b").is_none());
    }

    #[test]
    fn an_append_that_has_left_the_shape_is_in_none_again() {
        let mut record = LeaseRecord::default();
        record.finish([append("a", 4), append("b", 5)]);
        record.invalidate_outside(&[4]);
        assert!(record.done_as("a").unwrap().is_in_shape(&[9]));
        assert!(!record.done_as("b").unwrap().is_in_shape(&[9]));
        record.finish([append("b", 5)]);
        assert!(record.done_as("b").unwrap().is_in_shape(&[5]));
    }

    #[test]
    fn a_bounded_number_of_keys_is_kept() {
        let mut record = LeaseRecord::default();
        for number in 1..=KEPT as u64 + 1 {
            record.finish([append(&number.to_string(), number)]);
        }
        assert_eq!(record.done.len(), KEPT);
        assert!(record.done_as("1").is_none() && record.done_as("2").is_some());
        // One that arrived then may be one of the 256 before.
        assert!(record.has_keys_since(257) && !record.has_keys_since(256));
    }

    #[test]
    fn keys_of_an_earlier_array_are_not_missed() {
        let mut record = LeaseRecord::default();
        record.finish((1..=300).map(|number| append(&number.to_string(), number)));
        record.clear_appends();
        record.finish((1..=200).map(|number| append(&format!("new-{number}"), number)));
        assert!(record.done_as("1").is_none() && record.has_keys_since(300) && record.has_keys_since(0));
        record.finish((1..=400).map(|number| append(&format!("newer-{number}"), number)));
        assert!(!record.has_keys_since(500), "of the first 200, 88 are not kept");
    }

    #[test]
    fn a_record_is_as_long_as_it_can_be_read_and_has_its_latest_appends_and_its_step() {
        let mut record = LeaseRecord::default();
        for number in 1..=KEPT as u64 {
            let long = RecordedAppend { shape: vec![u64::MAX; 512], ..append(&number.to_string(), number) };
            record.finish([long]);
        }
        record.decided = Some(DecidedStep { id: "step".to_owned(), arrays: vec!["a".repeat(1000)] });
        let text = record.to_text().unwrap();
        assert!(text.len() <= MAX_RECORD_BYTES && text.len() > MAX_RECORD_BYTES / 4, "{}", text.len());
        let read: LeaseRecord = serde_json::from_slice(&text).unwrap();
        assert_eq!(read.decided, record.decided);
        assert!(read.done_as(&KEPT.to_string()).is_some() && read.done_as("1").is_none());
        record.decided = Some(DecidedStep { id: "step".to_owned(), arrays: vec!["a".repeat(1000); 1100] });
        assert!(matches!(record.to_text(), Err(LeaseError::TooLong)));
    }

    #[test]
    fn a_lease_of_a_clock_that_was_wrong_is_not_held() {
        let (lease, now) = (Duration::from_secs(5), 1_000_000);
        let held = |until| LeaseRecord { until, ..LeaseRecord::default() }.is_held(now, lease);
        assert!(held(now + 1) && held(now + 10));
        assert!(!held(0) && !held(now) && !held(now + 11));
    }
}
