//! [`observed`]: a store whose answers somebody is told of: which verb, how it ended, how many bytes, how long it took.
//!
//! Abstract store interface of Zarr, core 3.1; nothing of it is changed here. Who counts, and how, is for rooms above:
//! this one names neither metrics nor a protocol. What is known without asking the backend (`still_has`, `is_quiet`) is
//! no question, and is not told. Where traces are kept, each question is a span of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::stream::{BoxStream, StreamExt};
use tracing::{Instrument, Span};

use super::{
    ByteRange, CopyResult, DirEntries, ListEntry, SetResult, SharedStore, Shortcuts, Store, StoreError,
    StoreKind, Value, ValueInfo, ValueStream, Version, WriteCondition,
};
use crate::error::{Classify, ErrorClass};
use crate::key::{StoreKey, StorePrefix};

/// What a backend is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Size and version of a value.
    Head,
    /// A value or a part of it.
    Get,
    /// To store a value.
    Set,
    /// To store a value under another key too.
    Copy,
    /// To remove a value.
    Erase,
    /// To remove all values below a prefix.
    ErasePrefix,
    /// What is directly under a prefix.
    ListDir,
    /// All keys under a prefix.
    ListPrefix,
    /// Whether it answers at all.
    Check,
}

impl Verb {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Head,
        Self::Get,
        Self::Set,
        Self::Copy,
        Self::Erase,
        Self::ErasePrefix,
        Self::ListDir,
        Self::ListPrefix,
        Self::Check,
    ];

    /// The verb as a stable word: that of the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Get => "get",
            Self::Set => "set",
            Self::Copy => "copy",
            Self::Erase => "erase",
            Self::ErasePrefix => "erase_prefix",
            Self::ListDir => "list_dir",
            Self::ListPrefix => "list_prefix",
            Self::Check => "check",
        }
    }
}

/// How a question to a backend ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With what was asked for.
    Done,
    /// There is no such key.
    Absent,
    /// The answer is no: a condition, a range, a right.
    Refused,
    /// It has too much to do.
    Busy,
    /// It took too long.
    TimedOut,
    /// It failed, or answered nonsense.
    Failed,
    /// Whoever asked did not wait for the answer.
    Left,
}

impl Outcome {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Done, Self::Absent, Self::Refused, Self::Busy, Self::TimedOut, Self::Failed, Self::Left];

    /// The outcome as a stable word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Absent => "absent",
            Self::Refused => "refused",
            Self::Busy => "busy",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
            Self::Left => "left",
        }
    }

    fn of_error(error: &StoreError) -> Self {
        if matches!(error, StoreError::VersionChanged) {
            return Self::Refused;
        }
        match error.class() {
            ErrorClass::Overloaded => Self::Busy,
            ErrorClass::TimedOut => Self::TimedOut,
            class if class.is_callers() => Self::Refused,
            _ => Self::Failed,
        }
    }

    fn of<T>(result: &Result<T, StoreError>) -> Self {
        result.as_ref().map_or_else(Self::of_error, |_| Self::Done)
    }

    fn of_found<T>(result: &Result<Option<T>, StoreError>) -> Self {
        match result {
            Ok(None) => Self::Absent,
            found => Self::of(found),
        }
    }
}

/// Is told what a backend does.
pub trait Observer: std::fmt::Debug + Send + Sync {
    /// A question begins.
    fn asked(&self);

    /// It has ended. `bytes` are those of the value that is read: as promised, for it may be streamed.
    fn answered(&self, verb: Verb, outcome: Outcome, bytes: u64, took: Duration);
}

/// The store of a mount, whose answers `observer` is told of.
#[must_use]
pub fn observed(mount: &str, store: SharedStore, observer: Arc<dyn Observer>) -> SharedStore {
    Arc::new(ObservedStore { mount: mount.into(), inner: store, observer })
}

#[derive(Debug)]
struct ObservedStore {
    mount: Arc<str>,
    inner: SharedStore,
    observer: Arc<dyn Observer>,
}

impl ObservedStore {
    fn call(&self, verb: Verb) -> StoreCall {
        self.observer.asked();
        let (observer, began) = (Arc::clone(&self.observer), Instant::now());
        StoreCall { observer, verb, began, outcome: Outcome::Left, bytes: 0 }
    }

    /// A listing, whose question ends with it.
    fn listed<T: 'static>(
        &self,
        verb: Verb,
        entries: BoxStream<'static, Result<T, StoreError>>,
    ) -> BoxStream<'static, Result<T, StoreError>> {
        let mut question = self.call(verb);
        // Whoever has seen enough of a listing lets go of it.
        question.outcome = Outcome::Done;
        entries
            .inspect(move |entry| {
                // All of it, so that it ends with the listing.
                let question = &mut question;
                if let Err(error) = entry {
                    question.outcome = Outcome::of_error(error);
                }
            })
            .boxed()
    }

    fn span(&self, verb: Verb) -> Span {
        tracing::trace_span!(target: "zarrd::span", "backend", verb = verb.name(), mount = &*self.mount)
    }
}

/// A question that is under way; dropped, it has ended.
struct StoreCall {
    observer: Arc<dyn Observer>,
    verb: Verb,
    began: Instant,
    outcome: Outcome,
    bytes: u64,
}

impl Drop for StoreCall {
    fn drop(&mut self) {
        self.observer.answered(self.verb, self.outcome, self.bytes, self.began.elapsed());
    }
}

#[async_trait]
impl Store for ObservedStore {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let mut question = self.call(Verb::Head);
        let found = self.inner.head(key).instrument(self.span(Verb::Head)).await;
        question.outcome = Outcome::of_found(&found);
        found
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let mut question = self.call(Verb::Get);
        let found = self.inner.get(key, range, if_match).instrument(self.span(Verb::Get)).await;
        question.outcome = Outcome::of_found(&found);
        if let Ok(Some(value)) = &found {
            question.bytes = value.len();
        }
        found
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        let mut question = self.call(Verb::Set);
        let set = self.inner.set(key, body, condition).instrument(self.span(Verb::Set)).await;
        question.outcome = Outcome::of(&set);
        set
    }

    async fn copy(
        &self,
        from: &StoreKey,
        if_match: Option<&Version>,
        to: &StoreKey,
        condition: WriteCondition,
    ) -> Result<Option<CopyResult>, StoreError> {
        let mut question = self.call(Verb::Copy);
        let copied = self.inner.copy(from, if_match, to, condition).instrument(self.span(Verb::Copy)).await;
        question.outcome = Outcome::of_found(&copied);
        copied
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        let mut question = self.call(Verb::Erase);
        let erased = self.inner.erase(key, condition).instrument(self.span(Verb::Erase)).await;
        question.outcome = if matches!(erased, Ok(false)) { Outcome::Absent } else { Outcome::of(&erased) };
        erased
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        let mut question = self.call(Verb::ErasePrefix);
        let erased = self.inner.erase_prefix(prefix).instrument(self.span(Verb::ErasePrefix)).await;
        question.outcome = Outcome::of(&erased);
        erased
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.listed(Verb::ListDir, self.inner.list_dir_after(prefix, after))
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.listed(Verb::ListPrefix, self.inner.list_prefix(prefix, after))
    }

    async fn check(&self) -> Result<(), StoreError> {
        let mut question = self.call(Verb::Check);
        let checked = self.inner.check().instrument(self.span(Verb::Check)).await;
        question.outcome = Outcome::of(&checked);
        checked
    }
}

impl Shortcuts for ObservedStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::cpu::{ComputePool, ComputePoolOptions};
    use crate::store::{StoreOptions, ValueBody, open};

    #[derive(Debug, Default)]
    struct Told(Mutex<Vec<(Verb, Outcome, u64)>>);

    impl Observer for Told {
        fn asked(&self) {}

        fn answered(&self, verb: Verb, outcome: Outcome, bytes: u64, _: Duration) {
            self.0.lock().unwrap().push((verb, outcome, bytes));
        }
    }

    #[tokio::test]
    async fn each_question_to_a_backend_is_told_with_its_outcome() {
        let options = StoreOptions { writable: true, ..StoreOptions::default() };
        let inner =
            open("memory://", &options, &ComputePool::new(ComputePoolOptions::default()).unwrap()).unwrap();
        let told = Arc::new(Told::default());
        let store = observed("m", inner, Arc::clone(&told) as Arc<dyn Observer>);
        let key = StoreKey::parse("a/b").unwrap();
        let body = || ValueBody::Bytes("four".into()).into_stream().boxed();
        assert!(store.head(&key).await.unwrap().is_none());
        store.set(&key, body(), WriteCondition::Always).await.unwrap();
        assert!(store.set(&key, body(), WriteCondition::IfAbsent).await.is_err());
        assert!(store.get(&key, ByteRange::Bounded(1, 3), None).await.unwrap().is_some());
        assert!(store.get(&key, ByteRange::From(9), None).await.is_err());
        assert_eq!(store.list_prefix(&StorePrefix::root(), None).count().await, 1);
        // Nobody waits for this one: it is not even begun.
        drop(store.head(&key));
        assert!(store.erase(&key, WriteCondition::Always).await.unwrap());
        assert_eq!(
            *told.0.lock().unwrap(),
            [
                (Verb::Head, Outcome::Absent, 0),
                (Verb::Set, Outcome::Done, 0),
                (Verb::Set, Outcome::Refused, 0),
                (Verb::Get, Outcome::Done, 2),
                (Verb::Get, Outcome::Refused, 0),
                (Verb::ListPrefix, Outcome::Done, 0),
                (Verb::Erase, Outcome::Done, 0),
            ]
        );
    }
}
