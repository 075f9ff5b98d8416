//! [`ValueCache`]: a cache of small values and small parts of values, and of long ones that are requested often, in front of the
//! store of each mount.
//!
//! Checking whether a file was replaced takes a fraction of the time of opening, reading and closing it. So each read
//! revalidates its entry ([`Shortcuts::validate_cached`]). Where a store cannot validate without waiting, the value is read
//! again and not cached. Where responses may be older than their requests ([`CachePolicy`]), an entry stays valid for as
//! long as the policy says, and values of remote stores are cached too. Listings pass through. Writes do too, and go on if their
//! caller does not wait for them. Absence is never cached.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use tracing::Instrument;

use super::caches::{CacheKind, Evictable, PurgeOutcome, is_key_below};
use super::long_values::LongValues;
use super::stale::{BackendAnswer, StaleLookups};
use super::weighted_cache::{CacheUsage, WeightedCache};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, CachePolicy, Capabilities, ChangeWatch, CopyResult, DirEntries, ListEntry, SetResult,
    SharedStore, Shortcuts, Store, StoreError, StoreKind, Value, ValueBody, ValueInfo, ValueStream, Version,
    WatchToken, WriteCondition, WriteDeadline,
};

/// Values and parts up to this length, in bytes, are cached of a near store at their first request: copying a longer one takes about as
/// long as reading it ([`LongValues`]).
const LARGEST_OF_NEAR_STORE: u64 = 256 << 10;
/// Of a remote store: what a streamed response is charged for (`http.streamed_response_size`), since the whole is in memory once.
const LARGEST_OF_REMOTE_STORE: u64 = 1 << 20;

/// The part of the capacity, 1/n, that long values take at most,
const LONG_SHARE: u64 = 4;
/// and the part of that, 1/n, for values that were evicted and are still being sent.
const EVICTED_SHARE: u64 = 4;
/// A long value takes at most this part, 1/n, of the memory for cached ones.
const LONGEST_SHARE: u64 = 2;
/// The most bytes that the key and the version of a value take.
const LONG_OVERHEAD_BYTES: u64 = 4 << 10;

/// The name of a mount, a key of it, and the requested part.
type PartKey = (Arc<str>, StoreKey, ByteRange);

/// A cached value, or a cached part of one.
#[derive(Debug)]
struct CachedValue {
    info: ValueInfo,
    range: Range<u64>,
    bytes: Bytes,
    /// When the last check began that found this version.
    validated: Mutex<Instant>,
    watch: ChangeWatch,
    /// Whether [`LongValues`] accounts for its memory.
    is_accounted: bool,
}

/// The values of all mounts.
#[derive(Debug)]
struct CachedValues {
    small: WeightedCache<PartKey, Arc<CachedValue>>,
    long: WeightedCache<PartKey, Arc<CachedValue>>,
    long_values: LongValues,
}

impl CachedValues {
    /// Values that take this memory at most.
    fn new(capacity_bytes: u64) -> Self {
        let weigh = |key: &PartKey, cached: &Arc<CachedValue>| {
            [key.1.as_str().len(), cached.info.version.tag().len(), cached.bytes.len()]
                .map(|part| part as u64)
                .iter()
                .sum()
        };
        let long = capacity_bytes / LONG_SHARE;
        Self {
            small: WeightedCache::new(capacity_bytes - long, weigh),
            long: WeightedCache::with_largest(long - long / EVICTED_SHARE, LONGEST_SHARE, weigh),
            long_values: LongValues::new(long),
        }
    }

    fn get(&self, part: &PartKey) -> Option<Arc<CachedValue>> {
        self.small.get(part).or_else(|| self.long.get(part))
    }

    fn evict_half(&self) {
        self.small.evict_half();
        self.long.evict_half();
    }
}

/// A cache of values of all mounts, which evicts the least used. Clones share the entries.
#[derive(Clone, Debug)]
pub struct ValueCache {
    values: Arc<CachedValues>,
    /// For each mount.
    valid_since: Arc<Mutex<Vec<MountValidity>>>,
}

/// The name of a mount, and the time since when checks of its values are valid.
type MountValidity = (Arc<str>, ValidSince);

/// The time since when checks are valid: at that time, something was written, was found to have changed, or was purged.
type ValidSince = Arc<Mutex<Instant>>;

impl ValueCache {
    /// A cache with this capacity.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        Self { values: Arc::new(CachedValues::new(capacity_bytes)), valid_since: Arc::default() }
    }

    /// The store of a mount with its small values cached. What it returns may be as old as `policy` allows.
    #[must_use]
    pub fn wrap(&self, mount: &str, store: SharedStore, policy: CachePolicy) -> SharedStore {
        self.wrap_stale(mount, store, policy, None)
    }

    /// As [`ValueCache::wrap`]; while the backend fails or is slow, the last lookups are used.
    #[must_use]
    pub fn wrap_stale(
        &self,
        mount: &str,
        store: SharedStore,
        policy: CachePolicy,
        stale: Option<StaleLookups>,
    ) -> SharedStore {
        // Values that are in memory already need no cache.
        if store.capabilities().in_memory {
            return store;
        }
        let near = store.capabilities().near;
        let largest = if near { LARGEST_OF_NEAR_STORE } else { LARGEST_OF_REMOTE_STORE };
        let (mount, valid_since): (Arc<str>, _) = (mount.into(), Arc::new(Mutex::new(Instant::now())));
        lock(&self.valid_since).push((Arc::clone(&mount), Arc::clone(&valid_since)));
        let values = Arc::clone(&self.values);
        Arc::new(CachedStore { mount, inner: store, values, largest, policy, valid_since, stale })
    }
}

impl Evictable for ValueCache {
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        vec![(CacheKind::Value, self.values.small.usage().and(self.values.long.usage()))]
    }

    fn purge(&self, mount: &str, prefix: &StorePrefix) -> PurgeOutcome {
        // This invalidates the checks of the mount's other keys too; checking those again is cheap.
        for (_, valid_since) in lock(&self.valid_since).iter().filter(|(owner, _)| **owner == *mount) {
            *lock(valid_since) = Instant::now();
        }
        let matches = |(owner, key, _): &PartKey| **owner == *mount && is_key_below(key, prefix);
        PurgeOutcome::of_memory(self.values.small.purge(matches) + self.values.long.purge(matches))
    }

    fn evict_half(&self) {
        self.values.evict_half();
    }
}

/// A store whose values are cached.
#[derive(Debug)]
struct CachedStore {
    mount: Arc<str>,
    inner: SharedStore,
    values: Arc<CachedValues>,
    /// The length of the longest value that is cached at its first request.
    largest: u64,
    policy: CachePolicy,
    valid_since: ValidSince,
    stale: Option<StaleLookups>,
}

impl CachedStore {
    fn part_key(&self, key: &StoreKey, range: ByteRange) -> PartKey {
        (Arc::clone(&self.mount), key.clone(), range)
    }

    /// The value of a key or a part of it, if it is cached and still current.
    fn get_fresh(&self, key: &StoreKey, range: ByteRange) -> Option<Arc<CachedValue>> {
        let part = self.part_key(key, range);
        let cached = self.values.get(&part)?;
        let is_fresh = match self.policy {
            CachePolicy::Always => self.is_current(key, &cached),
            _ => self.was_current(key, &cached),
        };
        if !is_fresh && cached.is_accounted {
            // Its memory is for others.
            self.values.long.remove(&part);
        }
        is_fresh.then_some(cached)
    }

    /// Whether a value was current as lately as the policy requires.
    fn was_current(&self, key: &StoreKey, cached: &CachedValue) -> bool {
        let now = Instant::now();
        if *lock(&cached.validated) >= self.freshness_horizon(now) {
            return true;
        }
        let is_current = self.inner.validate_cached(key, Some(&cached.info.version));
        if is_current {
            *lock(&cached.validated) = now;
        }
        is_current
    }

    /// Whether a value is current now, by reports of the store or a check.
    fn is_current(&self, key: &StoreKey, cached: &Arc<CachedValue>) -> bool {
        let began = Instant::now();
        if cached.watch.unchanged_since(&*self.inner, began).is_some() {
            return true;
        }
        let is_current = self.inner.validate_cached(key, Some(&cached.info.version));
        if is_current && cached.watch.record_check(&*self.inner, began) {
            self.try_watch(key, cached);
        }
        is_current
    }

    /// Lets the store report changes of a value, unless it begins to do so for another at this moment.
    fn try_watch(&self, key: &StoreKey, cached: &Arc<CachedValue>) {
        let Some(turn) = cached.watch.try_begin() else { return };
        let (inner, key, cached) = (Arc::clone(&self.inner), key.clone(), Arc::clone(cached));
        tokio::spawn(async move {
            let is_current = async { inner.validate_cached(&key, Some(&cached.info.version)) };
            cached.watch.begin(turn, &*inner, vec![key.clone()], is_current).await;
        });
    }

    /// Whether a value that was read is small enough to cache, and can be revalidated later.
    fn is_cacheable(&self, key: &StoreKey, value: &Value) -> bool {
        // Without waiting, only what is in memory can be read and revalidated.
        let may_be_read = matches!(value.body, ValueBody::Bytes(_)) || self.policy != CachePolicy::Always;
        value.len() <= self.largest
            && (may_be_read || self.stale.is_some())
            && self.can_revalidate(key, &value.info.version)
    }

    /// Whether it can be found out later if a value still has this version.
    fn can_revalidate(&self, key: &StoreKey, version: &Version) -> bool {
        match self.policy {
            // What no lookup validates is of use while the backend fails.
            CachePolicy::Always => self.stale.is_some() || self.inner.validate_cached(key, Some(version)),
            CachePolicy::Ttl(_) | CachePolicy::Immutable => true,
            CachePolicy::Uncached => false,
        }
    }

    /// Whether a value that was read may be copied to the memory of long values.
    fn may_be_copied(&self, key: &StoreKey, value: &Value) -> bool {
        LongValues::copies(value.len())
            && self.values.long.fits(value.len() + LONG_OVERHEAD_BYTES)
            && self.inner.capabilities().near
            && self.can_revalidate(key, &value.info.version)
    }

    /// Begins to copy a long value that is requested often.
    fn copy_if_hot(&self, key: &StoreKey, range: ByteRange, value: &Value) {
        if !self.may_be_copied(key, value) {
            return;
        }
        self.values.long.add_misses(1);
        let (part, length) = (self.part_key(key, range), value.len());
        if !self.values.long_values.is_hot(&part) {
            return;
        }
        let (inner, values) = (Arc::clone(&self.inner), Arc::clone(&self.values));
        let (info, found) = (value.info.clone(), value.range.clone());
        let copy = async move {
            let (validated, since) = (Mutex::new(Instant::now()), values.long.generation());
            match values.long_values.copy(&*inner, &part.1, range, &info.version, length).await {
                Ok(Some(bytes)) => {
                    let watch = ChangeWatch::new(1);
                    let copied =
                        CachedValue { info, range: found, bytes, validated, watch, is_accounted: true };
                    values.long.insert(&part, &Arc::new(copied), since);
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(key = %part.1, %error, "a long value was not cached"),
            }
        };
        tokio::spawn(copy.in_current_span());
    }

    /// The value as the backend has it, or as the last lookup found it.
    async fn lookup(&self, key: &StoreKey, stale: &StaleLookups) -> Result<Option<ValueInfo>, StoreError> {
        let (inner, name) = (Arc::clone(&self.inner), key.clone());
        let request = async move { inner.head(&name).await };
        match stale.ask(key, request, Clone::clone).await {
            BackendAnswer::Received(answer) => answer,
            BackendAnswer::Stale(last) => Ok(last.info.clone()),
        }
    }

    /// Reads a value from the backend, or at the version of the last lookup from a cache.
    async fn read(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
        stale: &StaleLookups,
    ) -> Result<Option<Value>, StoreError> {
        let at_version = async |version: &Version| match self.values.get(&self.part_key(key, range)) {
            Some(cached) if cached.info.version == *version => Ok(Some(cached.value())),
            // From the disk, if it is there.
            _ => self.inner.get(key, range, Some(version)).await,
        };
        if let Some(version) = if_match {
            return at_version(version).await;
        }
        let (inner, name) = (Arc::clone(&self.inner), key.clone());
        let request = async move { inner.get(&name, range, None).await };
        let info_of = |value: &Option<Value>| value.as_ref().map(|value| value.info.clone());
        match stale.ask(key, request, info_of).await {
            BackendAnswer::Received(answer) => answer,
            BackendAnswer::Stale(last) => match &last.info {
                Some(info) => at_version(&info.version).await,
                None => Ok(None),
            },
        }
    }

    /// Invalidates all checks that began before now.
    fn invalidate(&self) {
        drop(Invalidation(Arc::clone(&self.valid_since)));
    }

    /// Runs a write in its own task, with the deadline of this one, and waits for it. When it has ended, all checks that began before are
    /// invalid: also if the caller is dropped meanwhile, because the backend may do what it was asked to.
    async fn finish<T: Send + 'static>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let invalidation = Invalidation(Arc::clone(&self.valid_since));
        let write = async move {
            let _invalidation = invalidation;
            write.await
        };
        match tokio::spawn(WriteDeadline::inherit(write).in_current_span()).await {
            Ok(outcome) => outcome,
            Err(stopped) => Err(StoreError::Backend(Arc::new(stopped))),
        }
    }
}

/// Invalidates all checks that began before it is dropped.
#[derive(Debug)]
struct Invalidation(ValidSince);

impl Drop for Invalidation {
    fn drop(&mut self) {
        *lock(&self.0) = Instant::now();
    }
}

/// No code panics while it holds such a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CachedValue {
    fn value(&self) -> Value {
        let (info, range) = (self.info.clone(), self.range.clone());
        let value = Value::cached(info, range, ValueBody::Bytes(self.bytes.clone()));
        Value { is_accounted: self.is_accounted, ..value }
    }
}

#[async_trait]
impl Store for CachedStore {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        match (self.get_fresh(key, ByteRange::Whole), &self.stale) {
            (Some(cached), _) => Ok(Some(cached.info.clone())),
            // Boxed, because it would make the future of every lookup larger.
            (None, Some(stale)) => Box::pin(self.lookup(key, stale)).await,
            (None, None) => self.inner.head(key).await,
        }
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        if let Some(cached) = self.get_fresh(key, range) {
            if if_match.is_none_or(|version| *version == cached.info.version) {
                return Ok(Some(cached.value()));
            }
            // The entry may be older than the requested version.
            if self.policy == CachePolicy::Always {
                return Err(StoreError::VersionChanged);
            }
        }
        let (validated, since) = (Instant::now(), self.values.small.generation());
        let found = match &self.stale {
            Some(stale) => Box::pin(self.read(key, range, if_match, stale)).await,
            None => self.inner.get(key, range, if_match).await,
        };
        match found {
            Ok(Some(value)) if self.is_cacheable(key, &value) => {
                self.values.small.add_misses(1);
                let (info, part) = (value.info.clone(), value.range.clone());
                let bytes = match value.body {
                    ValueBody::Bytes(bytes) => bytes,
                    // Boxed, because it would make the future of every read larger.
                    ValueBody::Stream(_) | ValueBody::File(_) => Box::pin(value.bytes(self.largest)).await?,
                };
                let (validated, watch) = (Mutex::new(validated), ChangeWatch::new(1));
                let cached = CachedValue { info, range: part, bytes, validated, watch, is_accounted: false };
                let value = Value { is_cached: false, ..cached.value() };
                self.values.small.insert(&self.part_key(key, range), &Arc::new(cached), since);
                Ok(Some(value))
            }
            Ok(found) => {
                if let Some(value) = &found {
                    self.copy_if_hot(key, range, value);
                }
                Ok(found)
            }
            Err(error) => {
                if matches!(error, StoreError::VersionChanged) {
                    self.invalidate();
                }
                Err(error)
            }
        }
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        self.finish(async move { inner.set(&key, body, condition).await }).await
    }

    async fn copy(
        &self,
        from: &StoreKey,
        if_match: Option<&Version>,
        to: &StoreKey,
        condition: WriteCondition,
    ) -> Result<Option<CopyResult>, StoreError> {
        let (inner, from, if_match, to) =
            (Arc::clone(&self.inner), from.clone(), if_match.cloned(), to.clone());
        self.finish(async move { inner.copy(&from, if_match.as_ref(), &to, condition).await }).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        self.finish(async move { inner.erase(&key, condition).await }).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        let (inner, prefix) = (Arc::clone(&self.inner), prefix.clone());
        self.finish(async move { inner.erase_prefix(&prefix).await }).await
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

#[async_trait]
impl Shortcuts for CachedStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.inner)
    }

    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        Capabilities { serves_pinned: inner.serves_pinned || self.stale.is_some(), ..inner }
    }

    async fn watch(&self, keys: Vec<StoreKey>) -> Option<WatchToken> {
        // Where older checks are valid, a change between such a check and the watch would never be reported.
        if self.policy == CachePolicy::Always { self.inner.watch(keys).await } else { None }
    }

    fn freshness_horizon(&self, began: Instant) -> Instant {
        let oldest = match self.policy {
            CachePolicy::Always | CachePolicy::Uncached => return began,
            // The caller may rely on a check of this cache and count it as its own, so each of the two gets half the time.
            CachePolicy::Ttl(age) => Instant::now().checked_sub(age / 2),
            CachePolicy::Immutable => None,
        };
        let valid_since = *lock(&self.valid_since);
        oldest.map_or(valid_since, |oldest| oldest.max(valid_since)).min(began)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::store::{LocalOptions, LocalStore};

    fn opened() -> (TempDir, SharedStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalStore::open(directory.path(), &LocalOptions::default()).unwrap();
        let store = ValueCache::new(16 << 20).wrap("m", Arc::new(store), CachePolicy::Always);
        (directory, store)
    }

    fn key(text: &str) -> StoreKey {
        StoreKey::parse(text).unwrap()
    }

    async fn bytes(store: &SharedStore, name: &str) -> Option<Bytes> {
        let value = store.get(&key(name), ByteRange::Whole, None).await.unwrap()?;
        Some(value.bytes(u64::MAX).await.unwrap())
    }

    /// Whether two reads of the same bytes return the same memory.
    async fn is_kept(store: &SharedStore, name: &str, range: ByteRange) -> bool {
        let read = async || {
            let value = store.get(&key(name), range, None).await.unwrap().unwrap();
            value.bytes(u64::MAX).await.unwrap()
        };
        let (first, second) = (read().await, read().await);
        assert_eq!(first, second);
        first.as_ptr() == second.as_ptr()
    }

    #[tokio::test]
    async fn small_values_and_parts_are_cached_and_long_values_are_not() {
        let (directory, store) = opened();
        fs::write(directory.path().join("small"), vec![1; 256 << 10]).unwrap();
        fs::write(directory.path().join("long"), vec![1; (256 << 10) + 1]).unwrap();
        // Values of a file system that cannot validate without waiting are not cached.
        let version = store.head(&key("small")).await.unwrap().unwrap().version;
        let is_cached = store.validate_cached(&key("small"), Some(&version));
        assert_eq!(is_kept(&store, "small", ByteRange::Whole).await, is_cached);
        assert_eq!(is_kept(&store, "long", ByteRange::Suffix(100)).await, is_cached);
        assert!(!is_kept(&store, "long", ByteRange::Whole).await);
    }

    #[tokio::test]
    async fn a_read_never_returns_an_entry_older_than_itself() {
        let (directory, store) = opened();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("d")).unwrap();
        fs::write(path("d/a"), "one").unwrap();
        assert_eq!(bytes(&store, "d/a").await.unwrap(), "one");

        fs::write(path("d/a"), "two").unwrap();
        assert_eq!(bytes(&store, "d/a").await.unwrap(), "two", "written in place");

        fs::write(path("b"), "six").unwrap();
        fs::rename(path("b"), path("d/a")).unwrap();
        assert_eq!(bytes(&store, "d/a").await.unwrap(), "six", "replaced");

        fs::rename(path("d"), path("e")).unwrap();
        assert_eq!(bytes(&store, "d/a").await, None, "its directory is gone");
        assert_eq!(store.head(&key("d/a")).await.unwrap(), None);

        fs::create_dir(path("d")).unwrap();
        fs::write(path("d/a"), "ten").unwrap();
        assert_eq!(bytes(&store, "d/a").await.unwrap(), "ten", "another directory");

        std::os::unix::fs::symlink(path("e/a"), path("link")).unwrap();
        fs::rename(path("link"), path("d/a")).unwrap();
        let refused = store.get(&key("d/a"), ByteRange::Whole, None).await;
        assert!(refused.is_err(), "a link that leads out is refused: {refused:?}");
    }

    /// Reads the value until its changes are reported, as far as they can be here.
    async fn until_watched(cache: &ValueCache, store: &SharedStore, name: &str) {
        let part = (Arc::from("m"), key(name), ByteRange::Whole);
        loop {
            bytes(store, name).await.unwrap();
            if cache.values.get(&part).is_some_and(|cached| cached.watch.is_watched()) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn no_old_value_is_returned_of_a_key_that_is_watched() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("d")).unwrap();
        fs::write(path("d/a"), "one").unwrap();
        let store = LocalStore::open(directory.path(), &LocalOptions::default()).unwrap();
        let cache = ValueCache::new(16 << 20);
        let store = cache.wrap("m", Arc::new(store), CachePolicy::Always);

        until_watched(&cache, &store, "d/a").await;
        fs::write(path("d/a"), "two").unwrap();
        assert_eq!(bytes(&store, "d/a").await.unwrap(), "two", "written in place");

        until_watched(&cache, &store, "d/a").await;
        fs::write(path("new"), "three").unwrap();
        fs::rename(path("new"), path("d/a")).unwrap();
        assert_eq!(bytes(&store, "d/a").await.unwrap(), "three", "replaced by another file");

        until_watched(&cache, &store, "d/a").await;
        fs::hard_link(path("d/a"), path("link")).unwrap();
        until_watched(&cache, &store, "d/a").await;
        fs::write(path("link"), "four").unwrap();
        assert_eq!(bytes(&store, "d/a").await.unwrap(), "four", "written by another name");

        until_watched(&cache, &store, "d/a").await;
        fs::create_dir(path("e")).unwrap();
        fs::write(path("e/a"), "five").unwrap();
        fs::rename(path("d"), path("old")).unwrap();
        fs::rename(path("e"), path("d")).unwrap();
        assert_eq!(bytes(&store, "d/a").await.unwrap(), "five", "in another directory");

        until_watched(&cache, &store, "d/a").await;
        fs::remove_file(path("d/a")).unwrap();
        assert_eq!(bytes(&store, "d/a").await, None, "removed");
        assert_eq!(store.head(&key("d/a")).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_write_goes_on_with_the_deadline_of_its_caller() {
        let directory = tempfile::tempdir().unwrap();
        let options = LocalOptions { writable: true, ..LocalOptions::default() };
        let store = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
        let store = ValueCache::new(16 << 20).wrap("m", store, CachePolicy::Always);
        let has_deadline = async || {
            let (found, seen) = tokio::sync::oneshot::channel();
            let body = futures::stream::once(async {
                found.send(WriteDeadline::current().is_some()).unwrap();
                Ok(Bytes::from_static(b"value"))
            });
            store.set(&key("a"), Box::pin(body), WriteCondition::Always).await.unwrap();
            seen.await.unwrap()
        };
        assert!(!has_deadline().await);
        let deadline = WriteDeadline::new(tokio::time::Instant::now() + std::time::Duration::from_mins(1));
        assert!(deadline.scope(has_deadline()).await);
    }

    #[tokio::test]
    async fn values_are_read_every_time_where_file_times_are_not_trusted() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a"), "one").unwrap();
        let options = LocalOptions { trusts_file_times: false, ..LocalOptions::default() };
        let store = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
        let store = ValueCache::new(16 << 20).wrap("m", store, CachePolicy::Uncached);
        assert!(!is_kept(&store, "a", ByteRange::Whole).await);
        let head = async || store.head(&key("a")).await.unwrap().unwrap().version;
        let (one, two) = (head().await, head().await);
        assert!(one != two && !one.is_strong(), "{one:?} {two:?}");
        assert!(store.watch(vec![key("a")]).await.is_none());
    }

    #[tokio::test]
    async fn ranges_and_conditions_mean_the_same_with_and_without_the_cache() {
        let (directory, store) = opened();
        fs::write(directory.path().join("a"), "0123456789").unwrap();
        let inner = LocalStore::open(directory.path(), &LocalOptions::default()).unwrap();
        let version = inner.head(&key("a")).await.unwrap().unwrap().version;
        for if_match in [None, Some(&version), Some(&Version::strong("other"))] {
            for range in [
                ByteRange::Whole,
                ByteRange::Bounded(2, 5),
                ByteRange::Bounded(8, 100),
                ByteRange::From(7),
                ByteRange::Suffix(3),
                ByteRange::From(10),
            ] {
                let get = async |store: &dyn Store| match store.get(&key("a"), range, if_match).await {
                    Ok(value) => {
                        let value = value.unwrap();
                        let (info, range) = (value.info.clone(), value.range.clone());
                        Ok((info, range, value.bytes(100).await.unwrap()))
                    }
                    Err(error) => Err(error.to_string()),
                };
                let expected = get(&inner).await;
                for _ in 0..3 {
                    assert_eq!(get(&*store).await, expected, "{range:?} {if_match:?}");
                }
            }
        }
        assert_eq!(store.head(&key("a")).await.unwrap(), inner.head(&key("a")).await.unwrap());
    }
}
