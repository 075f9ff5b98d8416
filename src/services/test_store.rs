//! A store in memory for tests of this layer: records the calls to it, and fails on request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, DirEntries, DirEntry, ListEntry, SetResult, Shortcuts, Store, StoreError,
    StoreKind, Value, ValueBody, ValueInfo, ValueStream, Version, WriteCondition,
};

#[derive(Debug, Default)]
pub(crate) struct TestStore {
    values: Mutex<BTreeMap<String, (Bytes, ValueInfo)>>,
    versions: AtomicU64,
    /// The error that every verb returns, if any.
    pub(crate) fault: Mutex<Option<StoreError>>,
    /// The number of bytes after which a body fails, and the error.
    pub(crate) cut: Mutex<Option<(usize, StoreError)>>,
    /// The number of entries after which listings fail.
    pub(crate) list_cut: Mutex<Option<usize>>,
    /// The number of listing entries that were taken.
    pub(crate) taken: Arc<AtomicU64>,
    /// The verbs that were called, in order.
    pub(crate) asked: Mutex<Vec<&'static str>>,
    /// Whether `head` panics.
    pub(crate) panics: Mutex<bool>,
    /// The number of uploads that ended in an error.
    pub(crate) aborted: Mutex<usize>,
    /// The number of times that the value still changes right after `head` has read it.
    pub(crate) flips: Mutex<usize>,
    /// The value that replaces another right before it is erased.
    pub(crate) raced: Mutex<Option<Bytes>>,
    /// Whether every verb waits without end.
    pub(crate) hangs: Mutex<bool>,
    /// The number of bytes of a body that it claims to hold.
    pub(crate) holds: AtomicU64,
}

impl TestStore {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    pub(crate) fn with(values: &[(&str, &'static [u8])]) -> Arc<Self> {
        let store = Self::new();
        for (key, bytes) in values {
            store.insert(key, Bytes::from_static(bytes));
        }
        store
    }

    pub(crate) fn insert(&self, key: &str, bytes: Bytes) -> Version {
        let number = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        let version = Version::strong(&format!("v{number}"));
        let modified = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + number));
        let size = u64::try_from(bytes.len()).unwrap();
        let info = ValueInfo { size, version: version.clone(), modified };
        self.values.lock().unwrap().insert(key.to_owned(), (bytes, info));
        version
    }

    pub(crate) fn value(&self, key: &str) -> Option<Bytes> {
        self.values.lock().unwrap().get(key).map(|(bytes, _)| bytes.clone())
    }

    pub(crate) fn take_asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    async fn ask(&self, verb: &'static str) -> Result<(), StoreError> {
        self.asked.lock().unwrap().push(verb);
        let hangs = *self.hangs.lock().unwrap();
        if hangs {
            std::future::pending::<()>().await;
        }
        match &*self.fault.lock().unwrap() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn check(&self, key: &StoreKey, condition: &WriteCondition) -> Result<bool, StoreError> {
        let current = self.values.lock().unwrap().get(key.as_str()).map(|(_, info)| info.version.clone());
        let holds = match condition {
            WriteCondition::Always => true,
            WriteCondition::IfAbsent => current.is_none(),
            WriteCondition::IfVersion(version) => current.as_ref() == Some(version),
        };
        if holds { Ok(current.is_some()) } else { Err(StoreError::ConditionFailed) }
    }

    /// A listing, up to its failure.
    fn listed<T: Send + 'static>(&self, entries: Vec<T>) -> BoxStream<'static, Result<T, StoreError>> {
        let mut entries: Vec<_> = entries.into_iter().map(Ok).collect();
        if let Some(cut) = *self.list_cut.lock().unwrap() {
            entries.truncate(cut);
            entries.push(Err(StoreError::WrongLength));
        }
        if let Some(error) = &*self.fault.lock().unwrap() {
            entries = vec![Err(error.clone())];
        }
        let taken = Arc::clone(&self.taken);
        let count = move |_: &Result<T, StoreError>| {
            taken.fetch_add(1, Ordering::Relaxed);
        };
        futures::stream::iter(entries).inspect(count).boxed()
    }

    fn entries(&self, prefix: &str) -> Vec<ListEntry> {
        let values = self.values.lock().unwrap();
        let below = values.iter().filter(|(key, _)| key.starts_with(prefix));
        below
            .map(|(key, (_, info))| ListEntry { key: StoreKey::parse(key).unwrap(), info: info.clone() })
            .collect()
    }
}

#[async_trait]
impl Store for TestStore {
    fn kind(&self) -> StoreKind {
        StoreKind::MEMORY
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        assert!(!*self.panics.lock().unwrap(), "as requested");
        self.ask("head").await?;
        let seen = self.values.lock().unwrap().get(key.as_str()).cloned();
        let mut flips = self.flips.lock().unwrap();
        if let (Some((bytes, _)), true) = (&seen, *flips > 0) {
            *flips -= 1;
            self.insert(key.as_str(), bytes.clone());
        }
        Ok(seen.map(|(_, info)| info))
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        self.ask("get").await?;
        let Some((bytes, info)) = self.values.lock().unwrap().get(key.as_str()).cloned() else {
            return Ok(None);
        };
        let range = range.resolve(info.size).ok_or(StoreError::RangeNotSatisfiable { size: info.size })?;
        if if_match.is_some_and(|version| *version != info.version) {
            return Err(StoreError::VersionChanged);
        }
        let part = bytes.slice(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap());
        let mut parts: Vec<_> = part.chunks(3).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        if let Some((after, error)) = self.cut.lock().unwrap().clone() {
            parts = vec![Ok(part.slice(..after)), Err(error)];
            parts.retain(|part| part.as_ref().map_or(true, |bytes| !bytes.is_empty()));
        }
        let body = ValueBody::Stream(futures::stream::iter(parts).boxed());
        Ok(Some(Value::new(info, range, body)))
    }

    fn held_by_set(&self, _: &WriteCondition) -> u64 {
        self.holds.load(Ordering::Relaxed)
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.ask("set").await?;
        let parts: Vec<Bytes> =
            body.try_collect().await.inspect_err(|_| *self.aborted.lock().unwrap() += 1)?;
        let existed = self.check(key, &condition)?;
        let version = self.insert(key.as_str(), parts.concat().into());
        Ok(SetResult { created: !existed, version: Some(version) })
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.ask("erase").await?;
        if let Some(newer) = self.raced.lock().unwrap().take() {
            self.insert(key.as_str(), newer);
        }
        self.check(key, &condition)?;
        Ok(self.values.lock().unwrap().remove(key.as_str()).is_some())
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.ask("erase_prefix").await?;
        let mut values = self.values.lock().unwrap();
        let before = values.len();
        values.retain(|key, _| !key.starts_with(prefix.as_str()));
        Ok(u64::try_from(before - values.len()).unwrap())
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.asked.lock().unwrap().push("list_dir");
        let mut entries = Vec::new();
        for entry in self.entries(prefix.as_str()) {
            let rest = entry.key.as_str().strip_prefix(prefix.as_str()).unwrap();
            entries.push(match rest.split_once('/') {
                None => DirEntry::Key(entry),
                Some((name, _)) => DirEntry::Prefix(prefix.join(name).unwrap()),
            });
        }
        entries.dedup();
        entries.retain(|entry| entry.text() > after);
        self.listed(entries)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.asked.lock().unwrap().push("list_prefix");
        let mut entries = self.entries(prefix.as_str());
        entries.retain(|entry| after.is_none_or(|after| entry.key > *after));
        self.listed(entries)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.ask("check").await
    }
}

impl Shortcuts for TestStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::MEMORY
    }
}
