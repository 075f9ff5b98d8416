//! [`observed`]: a store that reports each call of a verb to an observer: its outcome, bytes and duration.
//!
//! It changes nothing of the store interface, and knows neither metrics nor a protocol: those are for the observer.
//! Answers without I/O (`validate_cached`, `unchanged_since`) are no calls, and are not reported. With tracing enabled,
//! each call is a span.

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

/// A verb of the store interface.
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
    /// The entries directly under a prefix.
    ListDir,
    /// All keys under a prefix.
    ListPrefix,
    /// Whether the backend responds at all.
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

    /// The verb as a stable identifier: that of the specification.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
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

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// With the requested result.
    Done,
    /// There is no such key.
    Absent,
    /// The backend refused: a condition, a range, a right.
    Refused,
    /// The backend is overloaded, or its limits rejected the call.
    Busy,
    /// It timed out.
    TimedOut,
    /// It failed, or the response was invalid.
    Failed,
    /// The caller was dropped before the response.
    Cancelled,
}

impl CallOutcome {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Done, Self::Absent, Self::Refused, Self::Busy, Self::TimedOut, Self::Failed, Self::Cancelled];

    /// The outcome as a stable identifier.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Absent => "absent",
            Self::Refused => "refused",
            Self::Busy => "busy",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn from_error(error: &StoreError) -> Self {
        if matches!(error, StoreError::VersionChanged) {
            return Self::Refused;
        }
        match error.class() {
            ErrorClass::Overloaded => Self::Busy,
            ErrorClass::TimedOut => Self::TimedOut,
            class if class.is_caller_fault() => Self::Refused,
            _ => Self::Failed,
        }
    }

    fn from_result<T>(result: &Result<T, StoreError>) -> Self {
        result.as_ref().map_or_else(Self::from_error, |_| Self::Done)
    }

    fn from_lookup<T>(result: &Result<Option<T>, StoreError>) -> Self {
        match result {
            Ok(None) => Self::Absent,
            found => Self::from_result(found),
        }
    }
}

/// Receives a report of each call.
pub trait Observer: std::fmt::Debug + Send + Sync {
    /// A call begins.
    fn call_started(&self);

    /// A call has ended. `bytes` is the length of the range that is read, which may still be streaming.
    fn call_finished(&self, verb: Verb, outcome: CallOutcome, bytes: u64, took: Duration);
}

/// The store of a mount, with all calls reported to `observer`.
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
        self.observer.call_started();
        let (observer, began) = (Arc::clone(&self.observer), Instant::now());
        StoreCall { observer, verb, began, outcome: CallOutcome::Cancelled, bytes: 0 }
    }

    /// A listing, which is one call until it ends.
    fn observe_listing<T: 'static>(
        &self,
        verb: Verb,
        entries: BoxStream<'static, Result<T, StoreError>>,
    ) -> BoxStream<'static, Result<T, StoreError>> {
        let mut call = self.call(verb);
        // A listing that is dropped early is done, not cancelled: callers take a page of it.
        call.outcome = CallOutcome::Done;
        entries
            .inspect(move |entry| {
                // Captures the complete call, so that it ends with the listing.
                let call = &mut call;
                if let Err(error) = entry {
                    call.outcome = CallOutcome::from_error(error);
                }
            })
            .boxed()
    }

    fn span(&self, verb: Verb) -> Span {
        tracing::trace_span!(target: "zarrd::span", "backend", verb = verb.as_str(), mount = &*self.mount)
    }
}

/// A call in flight, which ends on drop.
struct StoreCall {
    observer: Arc<dyn Observer>,
    verb: Verb,
    began: Instant,
    outcome: CallOutcome,
    bytes: u64,
}

impl Drop for StoreCall {
    fn drop(&mut self) {
        self.observer.call_finished(self.verb, self.outcome, self.bytes, self.began.elapsed());
    }
}

#[async_trait]
impl Store for ObservedStore {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        let mut call = self.call(Verb::Head);
        let found = self.inner.head(key).instrument(self.span(Verb::Head)).await;
        call.outcome = CallOutcome::from_lookup(&found);
        found
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let mut call = self.call(Verb::Get);
        let found = self.inner.get(key, range, if_match).instrument(self.span(Verb::Get)).await;
        call.outcome = CallOutcome::from_lookup(&found);
        if let Ok(Some(value)) = &found {
            call.bytes = value.len();
        }
        found
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        let mut call = self.call(Verb::Set);
        let set = self.inner.set(key, body, condition).instrument(self.span(Verb::Set)).await;
        call.outcome = CallOutcome::from_result(&set);
        set
    }

    async fn copy(
        &self,
        from: &StoreKey,
        if_match: Option<&Version>,
        to: &StoreKey,
        condition: WriteCondition,
    ) -> Result<Option<CopyResult>, StoreError> {
        let mut call = self.call(Verb::Copy);
        let copied = self.inner.copy(from, if_match, to, condition).instrument(self.span(Verb::Copy)).await;
        call.outcome = CallOutcome::from_lookup(&copied);
        copied
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        let mut call = self.call(Verb::Erase);
        let erased = self.inner.erase(key, condition).instrument(self.span(Verb::Erase)).await;
        call.outcome =
            if matches!(erased, Ok(false)) { CallOutcome::Absent } else { CallOutcome::from_result(&erased) };
        erased
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        let mut call = self.call(Verb::ErasePrefix);
        let erased = self.inner.erase_prefix(prefix).instrument(self.span(Verb::ErasePrefix)).await;
        call.outcome = CallOutcome::from_result(&erased);
        erased
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.observe_listing(Verb::ListDir, self.inner.list_dir_after(prefix, after))
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.observe_listing(Verb::ListPrefix, self.inner.list_prefix(prefix, after))
    }

    async fn check(&self) -> Result<(), StoreError> {
        let mut call = self.call(Verb::Check);
        let checked = self.inner.check().instrument(self.span(Verb::Check)).await;
        call.outcome = CallOutcome::from_result(&checked);
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
    struct Recorder(Mutex<Vec<(Verb, CallOutcome, u64)>>);

    impl Observer for Recorder {
        fn call_started(&self) {}

        fn call_finished(&self, verb: Verb, outcome: CallOutcome, bytes: u64, _: Duration) {
            self.0.lock().unwrap().push((verb, outcome, bytes));
        }
    }

    #[tokio::test]
    async fn each_call_of_a_backend_is_reported_with_its_outcome() {
        let options = StoreOptions { writable: true, ..StoreOptions::default() };
        let inner =
            open("memory://", &options, &ComputePool::new(ComputePoolOptions::default()).unwrap()).unwrap();
        let reports = Arc::new(Recorder::default());
        let store = observed("m", inner, Arc::clone(&reports) as Arc<dyn Observer>);
        let key = StoreKey::parse("a/b").unwrap();
        let body = || ValueBody::Bytes("four".into()).into_stream().boxed();
        assert!(store.head(&key).await.unwrap().is_none());
        store.set(&key, body(), WriteCondition::Always).await.unwrap();
        assert!(store.set(&key, body(), WriteCondition::IfAbsent).await.is_err());
        assert!(store.get(&key, ByteRange::Bounded(1, 3), None).await.unwrap().is_some());
        assert!(store.get(&key, ByteRange::From(9), None).await.is_err());
        assert_eq!(store.list_prefix(&StorePrefix::root(), None).count().await, 1);
        // This call is dropped before it is polled, so it never begins.
        drop(store.head(&key));
        assert!(store.erase(&key, WriteCondition::Always).await.unwrap());
        assert_eq!(
            *reports.0.lock().unwrap(),
            [
                (Verb::Head, CallOutcome::Absent, 0),
                (Verb::Set, CallOutcome::Done, 0),
                (Verb::Set, CallOutcome::Refused, 0),
                (Verb::Get, CallOutcome::Done, 2),
                (Verb::Get, CallOutcome::Refused, 0),
                (Verb::ListPrefix, CallOutcome::Done, 0),
                (Verb::Erase, CallOutcome::Done, 0),
            ]
        );
    }
}
