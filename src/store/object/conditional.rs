//! Conditional writes and erasures on remote backends: of many concurrent ones, exactly one succeeds.
//!
//! Zarr core 3.1 has no conditions; these are those of RFC 9110, section 13, passed on to the backend. A conditional
//! write is sent without the client's retries: after a lost response, the repetition of a write that succeeded fails on
//! its condition. It carries a write id in the value's metadata, so that a later HEAD request shows whether it was carried
//! out. If that does not show it, the error is [`StoreError::OutcomeUnknown`], never a failed condition. Web servers store no
//! metadata, and Azure's bulk erasure carries no condition: there, the condition is checked before the erasure.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, PutResult, UpdateVersion,
};
use reqwest::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use tokio::time::{Instant, sleep};

use super::client::on_condition;
use super::failure::{failure, is_not_sent, status};
use super::object_backend::ObjectBackend;
use crate::key::StoreKey;
use crate::store::{
    DeadlinePassed, SetResult, StoreError, StoreKind, Version, WriteCondition, WriteDeadline,
};

/// The metadata key for the write that stored a value. Azure takes only names that are identifiers.
const WRITE_ID: &str = "zarr_server_write_id";
/// What a backend that ignores conditions does not support, and what helps.
const CONDITIONS: &str =
    "conditional writes; set `writers = \"one\"` of the mount if no other program writes there";
/// GCS compares generations instead of entity tags.
const GENERATION_MATCH: HeaderName = HeaderName::from_static("x-goog-if-generation-match");
/// The most attempts of a write that was not carried out although its condition holds.
const ATTEMPTS: u32 = 6;
/// The first pause between attempts; each is up to twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(20);

/// The effect of a failed request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AttemptOutcome {
    /// None, and a retry would have none either.
    Refused,
    /// None: the backend was busy, or could not be reached. A retry may succeed.
    Nothing,
    /// None: the condition did not hold.
    Condition,
    /// Not known: the response was lost.
    Unknown,
}

/// What a HEAD request returns.
pub(super) struct StoredObject {
    pub(super) meta: ObjectMeta,
    write_id: Option<String>,
}

impl ObjectBackend {
    /// Stores a value under a condition, once it is known that the backend heeds conditions.
    pub(super) async fn put_if(
        &self,
        path: &Path,
        payload: PutPayload,
        condition: &WriteCondition,
    ) -> Result<SetResult, StoreError> {
        if matches!(condition, WriteCondition::IfVersion(version) if !version.is_strong()) {
            return Err(StoreError::ConditionFailed);
        }
        if !self.tries_conditions().await? {
            return Err(StoreError::NotSupported(CONDITIONS));
        }
        self.settle(path, payload, condition).await
    }

    /// Whether the backend heeds conditions, tried where it is not known.
    pub(super) async fn tries_conditions(&self) -> Result<bool, StoreError> {
        self.heeds_conditions.get_or_try_init(|| self.probe()).await.copied()
    }

    /// Whether the backend heeds conditions: a second creation of one key must fail, and so must the replacement of a
    /// version that never existed. Tried once for each store, with a key of its own that is erased afterwards.
    pub(super) async fn probe(&self) -> Result<bool, StoreError> {
        let path = self.probe_path(&write_id())?;
        let put = |condition: WriteCondition| {
            let path = path.clone();
            async move {
                match self.settle(&path, PutPayload::from_static(b"probe"), &condition).await {
                    Ok(_) => Ok(true),
                    Err(StoreError::ConditionFailed) => Ok(false),
                    // Nothing was written of the value that waits for this probe.
                    Err(StoreError::OutcomeUnknown(error)) => Err(StoreError::Busy(error)),
                    Err(error) => Err(error),
                }
            }
        };
        let first = put(WriteCondition::IfAbsent).await;
        let never = Version::strong("00000000000000000000000000000000");
        let heeded = match first {
            Ok(true) => match put(WriteCondition::IfAbsent).await {
                Ok(false) => put(WriteCondition::IfVersion(never)).await.map(|written| !written),
                again => again.map(|_| false),
            },
            first => first,
        };
        if let Err(error) = self.client().delete(&path).await {
            tracing::warn!(%error, "the key of the probe for conditional writes could not be erased");
        }
        if matches!(heeded, Ok(false)) && !self.is_sole_writer() {
            let backend = self.kind.as_str();
            tracing::warn!(
                backend,
                "the backend ignores conditions, so conditional writes are refused; if no other program writes there, set \
                 `writers = \"one\"` of the mount"
            );
        }
        heeded
    }

    /// Repeats a conditional write until its outcome is known or cannot be known.
    async fn settle(
        &self,
        path: &Path,
        payload: PutPayload,
        condition: &WriteCondition,
    ) -> Result<SetResult, StoreError> {
        let (id, begun) = (write_id(), Instant::now());
        let created = *condition == WriteCondition::IfAbsent;
        let mut generation = None;
        if self.kind == StoreKind::GCS && !created {
            let found = self.head_object(path).await?;
            self.check(condition, found.as_ref())?;
            generation = found.and_then(|found| found.meta.version);
        }
        let (mut attempt, mut was_lost) = (0, false);
        loop {
            attempt += 1;
            let put = self.put_once(path, &payload, condition, generation.take(), &id);
            let Some(sent) = WriteDeadline::send(put).await else {
                return Err(StoreError::OutcomeUnknown(Arc::new(DeadlinePassed)));
            };
            let error = match sent? {
                Ok(result) => return Ok(self.outcome(created, &result)),
                Err(error) => error,
            };
            let fate = self.attempt_outcome(&error, condition);
            was_lost |= fate == AttemptOutcome::Unknown;
            let given_up = |error| if was_lost { unknown(error) } else { failure(error) };
            if fate == AttemptOutcome::Refused {
                return Err(given_up(error));
            }
            if fate == AttemptOutcome::Condition && !was_lost && self.kind == StoreKind::HTTP {
                return Err(StoreError::ConditionFailed);
            }
            let found = match self.head_object(path).await {
                Ok(found) => found,
                Err(_) if fate == AttemptOutcome::Nothing => return Err(given_up(error)),
                Err(other) => return Err(StoreError::OutcomeUnknown(Arc::new(other))),
            };
            if let Some(found) = found.as_ref().filter(|found| found.write_id.as_ref() == Some(&id)) {
                return Ok(SetResult { created, version: Some(self.info(&found.meta).version) });
            }
            if self.check(condition, found.as_ref()).is_err() {
                // The present value may have replaced the one that this write stored.
                return Err(if was_lost { unknown(error) } else { StoreError::ConditionFailed });
            }
            if attempt >= ATTEMPTS || begun.elapsed() > self.options.retry {
                return Err(if was_lost {
                    unknown(error)
                } else {
                    StoreError::Contended(Some(Arc::new(error)))
                });
            }
            generation = found.and_then(|found| found.meta.version);
            sleep(pause(attempt)).await;
        }
    }

    async fn put_once(
        &self,
        path: &Path,
        payload: &PutPayload,
        condition: &WriteCondition,
        generation: Option<String>,
        id: &str,
    ) -> Result<Result<PutResult, Error>, StoreError> {
        let (mode, header) = match (self.kind, condition) {
            (StoreKind::HTTP, _) => (PutMode::Overwrite, Some(self.header(condition)?)),
            (_, WriteCondition::Always | WriteCondition::IfAbsent) => (PutMode::Create, None),
            (kind, WriteCondition::IfVersion(version)) => {
                let e_tag = Some(self.tag(version).ok_or(StoreError::ConditionFailed)?);
                if kind == StoreKind::GCS && generation.is_none() {
                    return Err(StoreError::NotSupported("conditional writes"));
                }
                (PutMode::Update(UpdateVersion { e_tag, version: generation }), None)
            }
        };
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::Metadata(WRITE_ID.into()), id.to_owned().into());
        let options = PutOptions { attributes, ..PutOptions::from(mode) };
        Ok(on_condition(header, self.once.put_opts(path, payload.clone(), options)).await)
    }

    /// Erases a value under a condition. Returns whether there was one.
    pub(super) async fn remove_if(
        &self,
        key: &StoreKey,
        condition: &WriteCondition,
    ) -> Result<bool, StoreError> {
        let (path, begun) = (self.path(key)?, Instant::now());
        let (mut attempt, mut was_lost) = (0, false);
        loop {
            attempt += 1;
            let found = match self.head_object(&path).await {
                Err(error) if was_lost => return Err(StoreError::OutcomeUnknown(Arc::new(error))),
                found => found?,
            };
            if found.is_none() && was_lost {
                return Ok(true);
            }
            match self.check(condition, found.as_ref()) {
                Err(error) if was_lost => return Err(StoreError::OutcomeUnknown(Arc::new(error))),
                checked => checked?,
            }
            let Some(found) = found else { return Ok(false) };
            let header = match (self.kind, found.meta.version) {
                (StoreKind::S3 | StoreKind::HTTP, _) => Some(self.header(condition)?),
                (StoreKind::GCS, Some(generation)) => {
                    HeaderValue::from_str(&generation).ok().map(|value| (GENERATION_MATCH, value))
                }
                _ => None,
            };
            let error = match on_condition(header, self.once.delete(&path)).await {
                Ok(()) => return Ok(true),
                Err(Error::NotFound { .. }) => return Ok(was_lost),
                Err(error) => error,
            };
            let fate = self.attempt_outcome(&error, condition);
            was_lost |= fate == AttemptOutcome::Unknown;
            if fate == AttemptOutcome::Refused || attempt >= ATTEMPTS || begun.elapsed() > self.options.retry
            {
                return Err(match fate {
                    _ if was_lost => unknown(error),
                    AttemptOutcome::Refused => failure(error),
                    _ => StoreError::Contended(Some(Arc::new(error))),
                });
            }
            sleep(pause(attempt)).await;
        }
    }

    /// The condition as a header.
    fn header(&self, condition: &WriteCondition) -> Result<(HeaderName, HeaderValue), StoreError> {
        match condition {
            WriteCondition::Always | WriteCondition::IfAbsent => {
                Ok((IF_NONE_MATCH, HeaderValue::from_static("*")))
            }
            WriteCondition::IfVersion(version) => {
                let value = self.tag(version).and_then(|tag| HeaderValue::from_str(&tag).ok());
                Ok((IF_MATCH, value.ok_or(StoreError::ConditionFailed)?))
            }
        }
    }

    /// The present value.
    pub(super) async fn head_object(&self, path: &Path) -> Result<Option<StoredObject>, StoreError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.client().get_opts(path, options).await {
            Ok(result) => {
                let id = result.attributes.get(&Attribute::Metadata(WRITE_ID.into()));
                let write_id = id.map(|id| id.to_string());
                Ok(Some(StoredObject { meta: result.meta, write_id }))
            }
            Err(error) => self.absence_or(error),
        }
    }

    pub(super) fn check(
        &self,
        condition: &WriteCondition,
        found: Option<&StoredObject>,
    ) -> Result<(), StoreError> {
        condition.check(found.map(|found| self.info(&found.meta)).as_ref())
    }

    fn attempt_outcome(&self, error: &Error, condition: &WriteCondition) -> AttemptOutcome {
        match status(error) {
            _ if matches!(error, Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                AttemptOutcome::Refused
            }
            Some(304 | 412) => AttemptOutcome::Condition,
            Some(404) if matches!(condition, WriteCondition::IfVersion(_)) => AttemptOutcome::Condition,
            // S3: another write of this key is in flight, retry. Azure: there is such a value.
            Some(409) if self.kind != StoreKind::HTTP => AttemptOutcome::Nothing,
            Some(429) => AttemptOutcome::Nothing,
            Some(501 | 505 | 507 | 511) => AttemptOutcome::Refused,
            Some(408 | 500..=599) => AttemptOutcome::Unknown,
            Some(_) => AttemptOutcome::Refused,
            None if is_not_sent(error) => AttemptOutcome::Nothing,
            None => AttemptOutcome::Unknown,
        }
    }
}

fn unknown(error: Error) -> StoreError {
    StoreError::OutcomeUnknown(Arc::new(error))
}

/// A unique id for a write: two keyed hashes of a counter.
fn write_id() -> String {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let [one, two] = KEYS.each_ref().map(|key| key.hash_one(count));
    format!("{one:016x}{two:016x}")
}

/// Half to all of a time that doubles with each attempt, at random, so that concurrent writers diverge.
fn pause(attempt: u32) -> Duration {
    let longest = PAUSE * 2_u32.pow(attempt.min(ATTEMPTS));
    let longest_us = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(longest_us / 2 + RandomState::new().hash_one(attempt) % (longest_us / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_writes_have_the_same_id() {
        let ids: std::collections::HashSet<String> = (0..10_000).map(|_| write_id()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }

    #[test]
    fn pauses_between_attempts_grow_up_to_a_bound() {
        for attempt in 1..20 {
            let longest = PAUSE * 2_u32.pow(attempt.min(ATTEMPTS));
            assert!((longest / 2..=longest).contains(&pause(attempt)), "{attempt}");
        }
    }
}
