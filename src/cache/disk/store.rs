//! [`DiskStore`]: a store whose bytes are cached on the disk, under the versions that they have.
//!
//! A read of a value that is on the disk first asks the backend for the value's version, unless the caller did: one request without
//! a body. Where values never change it asks nothing. Whatever fails on the disk is read from the backend. Only strong versions are
//! cached; writes, listings and absence pass through.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};

use super::collector::Collector;
use super::counts::DiskCounts;
use super::engine::ValueName;
use super::record::MAX_DATA;
use super::tier::Tier;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, Capabilities, CopyResult, DirEntries, ListEntry, SetResult, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueBody, ValueInfo, ValueStream, Version, WriteCondition,
};

/// Bytes that are read from the disk at a time. Twice as many are in memory where a client is slow, and a streamed response is
/// charged for no more than 1 MiB.
const WINDOW: u64 = 2 * MAX_DATA as u64;

/// A store in front of which the disk cache is.
#[derive(Debug)]
pub(super) struct DiskStore {
    tier: Arc<Tier>,
    scope: Arc<str>,
    inner: SharedStore,
    counts: Arc<DiskCounts>,
    /// Whether stored values never change.
    is_immutable: bool,
}

/// What a read finds before it asks the backend for bytes.
enum Found {
    /// The backend says that there is no such value.
    Absent,
    Stored(Value),
    /// The bytes are to be read from the backend.
    Missing,
}

impl DiskStore {
    pub(super) fn new(
        tier: Arc<Tier>,
        scope: Arc<str>,
        inner: SharedStore,
        counts: Arc<DiskCounts>,
        is_immutable: bool,
    ) -> Self {
        Self { tier, scope, inner, counts, is_immutable }
    }

    fn name(&self, key: &StoreKey) -> ValueName {
        ValueName { scope: Arc::clone(&self.scope), key: key.clone() }
    }

    /// A range of a value, if it is on the disk at the version that is requested or stored.
    async fn find(
        &self,
        name: &ValueName,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Found, StoreError> {
        let engine = &self.tier.engine;
        let stored = if if_match.is_some() || self.is_immutable {
            None
        } else if engine.covers(name, None, range).is_none() {
            return Ok(Found::Missing);
        } else {
            match self.inner.head(&name.key).await {
                Ok(Some(info)) => Some(info),
                Ok(None) => return Ok(Found::Absent),
                // Some backends answer GET alone. One that is overloaded is not asked twice.
                Err(StoreError::Backend(_) | StoreError::NotSupported(_)) => return Ok(Found::Missing),
                Err(error) => return Err(error),
            }
        };
        // None where values never change: then the version that is on the disk is the one that is stored.
        let version = if_match.or(stored.as_ref().map(|info| &info.version));
        let covered = engine.covers(name, version, range);
        let is_strong = version.is_none_or(Version::is_strong);
        let Some((size, range)) = covered.filter(|_| is_strong) else { return Ok(Found::Missing) };
        let first = range.start..range.end.min(range.start.saturating_add(WINDOW));
        let Some((found, bytes)) = self.tier.read(name, version, first.clone()).await else {
            return Ok(Found::Missing);
        };
        let info = stored.unwrap_or(found);
        if info.size != size {
            return Ok(Found::Missing);
        }
        let body = if first.end == range.end {
            ValueBody::Bytes(bytes)
        } else {
            let rest = Rest {
                tier: Arc::clone(&self.tier),
                inner: Arc::clone(&self.inner),
                name: name.clone(),
                version: info.version.clone(),
                left: first.end..range.end,
            };
            let first = futures::stream::once(std::future::ready(Ok(bytes)));
            ValueBody::Stream(first.chain(rest.stream()).boxed())
        };
        Ok(Found::Stored(Value::cached(info, range, body)))
    }
}

/// The rest of a long range: from the disk and, from where that fails, from the backend.
struct Rest {
    tier: Arc<Tier>,
    inner: SharedStore,
    name: ValueName,
    version: Version,
    left: Range<u64>,
}

impl Rest {
    fn stream(self) -> ValueStream {
        let windows = try_unfold(self, |mut rest| async move {
            if rest.left.is_empty() {
                return Ok::<_, StoreError>(None);
            }
            let window = rest.left.start..rest.left.end.min(rest.left.start.saturating_add(WINDOW));
            let end = window.end;
            let cached = rest.tier.read(&rest.name, Some(&rest.version), window).await;
            let part = if let Some((_, bytes)) = cached {
                rest.left.start = end;
                futures::stream::once(std::future::ready(Ok(bytes))).boxed()
            } else {
                let stream = rest.read_backend().await?;
                rest.left.start = rest.left.end;
                stream
            };
            Ok(Some((part, rest)))
        });
        windows.try_flatten().boxed()
    }

    async fn read_backend(&self) -> Result<ValueStream, StoreError> {
        let range = ByteRange::Bounded(self.left.start, self.left.end);
        let value = self.inner.get(&self.name.key, range, Some(&self.version)).await?;
        let value = value.ok_or(StoreError::VersionChanged)?;
        if value.info.version != self.version {
            return Err(StoreError::VersionChanged);
        }
        if value.range != self.left {
            return Err(StoreError::WrongLength);
        }
        Ok(value.into_exact_stream())
    }
}

#[async_trait]
impl Store for DiskStore {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        if self.is_immutable {
            let name = self.name(key);
            if self.tier.engine.covers(&name, None, ByteRange::Bounded(0, 1)).is_some()
                && let Some(info) = self.tier.info(&name, 0).await
            {
                return Ok(Some(info));
            }
        }
        self.inner.head(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let (name, since) = (self.name(key), self.tier.engine.generation.current());
        // Boxed, because it would make the future of every read larger.
        match Box::pin(self.find(&name, range, if_match)).await? {
            Found::Absent => return Ok(None),
            Found::Stored(value) => {
                self.counts.hits.fetch_add(1, Ordering::Relaxed);
                self.counts.hit_bytes.fetch_add(value.len(), Ordering::Relaxed);
                return Ok(Some(value));
            }
            Found::Missing => {}
        }
        let Some(value) = self.inner.get(key, range, if_match).await? else { return Ok(None) };
        if !value.info.version.is_strong() || value.is_empty() {
            return Ok(Some(value));
        }
        self.counts.misses.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Collector::tap(&self.tier.engine, &self.tier.queue, name, since, value)))
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.inner.set(key, body, condition).await
    }

    async fn copy(
        &self,
        from: &StoreKey,
        if_match: Option<&Version>,
        to: &StoreKey,
        condition: WriteCondition,
    ) -> Result<Option<CopyResult>, StoreError> {
        self.inner.copy(from, if_match, to, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.inner.erase(key, condition).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.inner.erase_prefix(prefix).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.inner.list_dir_after(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.inner.list_prefix(prefix, after)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

impl Shortcuts for DiskStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.inner)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { serves_pinned: true, ..self.inner.capabilities() }
    }
}
