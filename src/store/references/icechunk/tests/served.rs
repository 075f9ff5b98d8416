//! A backend with the files of a repository, which counts requests and can fail.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, once};

use super::files::{ref_file, snapshot};
use crate::key::{StoreKey, StorePrefix};
use crate::store::references::allowed::AllowList;
use crate::store::references::icechunk::icechunk_store::IcechunkStore;
use crate::store::references::icechunk::source::Source;
use crate::store::references::icechunk::version::PinnedVersion;
use crate::store::tests::{cpu, key, put};
use crate::store::{
    ByteRange, ContainerBudget, DirEntries, ListEntry, ObjectBackend, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueInfo, Version, WriteCondition,
};

/// What a backend does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Answers,
    Fails,
    Hangs,
    /// It answers, and cannot list.
    Unlistable,
}

/// The backend.
#[derive(Debug)]
pub(super) struct Served {
    files: SharedStore,
    requests: Mutex<Vec<String>>,
    mood: Mutex<Mood>,
}

impl Served {
    pub(super) fn new() -> Arc<Self> {
        let files: SharedStore = Arc::new(ObjectBackend::memory(true));
        Arc::new(Self { files, requests: Mutex::default(), mood: Mutex::new(Mood::Answers) })
    }

    pub(super) async fn put(&self, text: &str, bytes: impl Into<Bytes>) {
        put(&*self.files, text, bytes).await;
    }

    pub(super) async fn erase(&self, text: &str) {
        assert!(self.files.erase(&key(text), WriteCondition::Always).await.unwrap());
    }

    /// A branch or tag of version 1.
    pub(super) async fn put_ref(&self, name: &str, number: u32) {
        self.put(&format!("refs/{name}/ref.json"), ref_file(number)).await;
    }

    /// The files of snapshots, each with the one before it as its parent.
    pub(super) async fn put_line(&self, numbers: std::ops::Range<u32>) {
        for number in numbers.clone() {
            let parent = (number > numbers.start).then(|| number - 1);
            self.put(
                &format!("snapshots/{}", super::files::id(number)),
                snapshot(number, parent, Vec::new()),
            )
            .await;
        }
    }

    pub(super) fn set_mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// The requests since the last call.
    pub(super) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    pub(super) fn source(self: &Arc<Self>) -> Source {
        Source::new(Arc::clone(self) as SharedStore, cpu(), ContainerBudget::default()).unwrap()
    }

    /// The same, with this many bytes of memory.
    pub(super) fn source_within(self: &Arc<Self>, bytes: u64) -> Source {
        Source::new(Arc::clone(self) as SharedStore, cpu(), ContainerBudget::new(bytes)).unwrap()
    }

    /// A store over the repository, at its branch `main`.
    pub(super) fn store(self: &Arc<Self>) -> IcechunkStore {
        let nowhere = AllowList::open(String::new(), &[], |_| unreachable!("there are no prefixes")).unwrap();
        let inner = Arc::clone(self) as SharedStore;
        IcechunkStore::new(inner, nowhere, PinnedVersion::main(), cpu(), ContainerBudget::default()).unwrap()
    }

    async fn answered(&self, request: String) -> Result<(), StoreError> {
        self.requests.lock().unwrap().push(request);
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Answers | Mood::Unlistable => Ok(()),
            Mood::Fails => Err(StoreError::TimedOut(Arc::new(std::io::Error::other("out of order")))),
            Mood::Hangs => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Store for Served {
    fn kind(&self) -> StoreKind {
        self.files.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.answered(format!("HEAD {key}")).await?;
        self.files.head(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        self.answered(format!("GET {key}")).await?;
        self.files.get(key, range, if_match).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.requests.lock().unwrap().push(format!("LIST {prefix}"));
        if *self.mood.lock().unwrap() == Mood::Unlistable {
            return once(std::future::ready(Err(StoreError::NotListable))).boxed();
        }
        self.files.list_dir_after(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.files.list_prefix(prefix, after)
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Shortcuts for Served {}
