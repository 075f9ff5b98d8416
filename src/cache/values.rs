//! [`CachedStore`]: a store that remembers small values, and small parts of values, of the store below it, where that can
//! tell at once whether they are still the same.
//!
//! To look whether a file was replaced takes a fraction of what opening, reading and closing it takes. Each read looks
//! ([`Shortcuts::validate_cached`]); a store that cannot tell without waiting is asked for the value itself, as if nothing were
//! remembered, and nothing of it is. Where answers may be older than their requests ([`CachePolicy`]), a look is for as long as
//! that says, and values from far away are remembered too. Writes and listings pass through; what is absent is asked for
//! each time.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use super::caches::{CacheKind, Evictable, is_key_below};
use super::weighted_cache::{CacheUsage, WeightedCache};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, CachePolicy, CopyResult, DirEntries, ListEntry, SetResult, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueBody, ValueInfo, ValueStream, Version, WatchToken, WriteCondition,
};

/// Values and parts up to this length are remembered: to copy a longer one takes about as long as to read it.
const LARGEST_BYTES: u64 = 256 << 10;

/// The name of a mount, a key of it, and the part that is asked for.
type Asked = (Arc<str>, StoreKey, ByteRange);

/// A value, or a part of one, that is remembered.
#[derive(Debug)]
struct CachedValue {
    info: ValueInfo,
    range: Range<u64>,
    bytes: Bytes,
    /// When the last look began that found this version.
    seen: Mutex<Instant>,
}

/// What is remembered of the small values of all mounts. Clones share it.
#[derive(Clone, Debug)]
pub struct ValueCache {
    values: Arc<WeightedCache<Asked, Arc<CachedValue>>>,
    /// Of each mount.
    trusted: Arc<Mutex<Vec<Looks>>>,
}

/// The name of a mount, and since when looks at its values are trusted.
type Looks = (Arc<str>, ValidSince);

/// Since when looks are trusted: something was written since those before, or turned out to be, or was to be forgotten.
type ValidSince = Arc<Mutex<Instant>>;

impl ValueCache {
    /// Remembers so many bytes of values.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let weigh = |asked: &Asked, kept: &Arc<CachedValue>| {
            [asked.1.as_str().len(), kept.info.version.tag().len(), kept.bytes.len()]
                .map(|part| part as u64)
                .iter()
                .sum()
        };
        Self { values: Arc::new(WeightedCache::new(capacity_bytes, weigh)), trusted: Arc::default() }
    }

    /// The store of a mount, with its small values remembered. What is known of it may be as old as `freshness` says.
    #[must_use]
    pub fn over(&self, mount: &str, store: SharedStore, freshness: CachePolicy) -> SharedStore {
        // What is in memory needs no copy there.
        if store.capabilities().in_memory {
            return store;
        }
        let (mount, trusted): (Arc<str>, _) = (mount.into(), Arc::new(Mutex::new(Instant::now())));
        lock(&self.trusted).push((Arc::clone(&mount), Arc::clone(&trusted)));
        let values = Arc::clone(&self.values);
        Arc::new(CachedStore { mount, inner: store, values, freshness, trusted })
    }
}

impl Evictable for ValueCache {
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        vec![(CacheKind::Value, self.values.usage())]
    }

    fn purge(&self, mount: &str, prefix: &StorePrefix) -> u64 {
        // What was seen of other keys of the mount is looked at once more, which is cheap.
        for (_, trusted) in lock(&self.trusted).iter().filter(|(of, _)| **of == *mount) {
            *lock(trusted) = Instant::now();
        }
        self.values.purge(|(of, key, _)| **of == *mount && is_key_below(key, prefix))
    }

    fn evict_half(&self) {
        self.values.evict_half();
    }
}

/// A store whose small values are remembered.
#[derive(Debug)]
struct CachedStore {
    mount: Arc<str>,
    inner: SharedStore,
    values: Arc<WeightedCache<Asked, Arc<CachedValue>>>,
    freshness: CachePolicy,
    trusted: ValidSince,
}

impl CachedStore {
    fn asked(&self, key: &StoreKey, range: ByteRange) -> Asked {
        (Arc::clone(&self.mount), key.clone(), range)
    }

    /// The value of a key or a part of it, if it is remembered and still the same.
    fn recall(&self, key: &StoreKey, range: ByteRange) -> Option<Arc<CachedValue>> {
        let kept = self.values.cached(&self.asked(key, range))?;
        let now = Instant::now();
        if *lock(&kept.seen) >= self.freshness_horizon(now) {
            return Some(kept);
        }
        if !self.inner.validate_cached(key, Some(&kept.info.version)) {
            return None;
        }
        *lock(&kept.seen) = now;
        Some(kept)
    }

    /// Whether a value that was read is worth remembering, and can be told later to be the same.
    fn is_worth(&self, key: &StoreKey, value: &Value) -> bool {
        let is_at_hand = matches!(value.body, ValueBody::Bytes(_));
        let is_told = match self.freshness {
            CachePolicy::Always => is_at_hand && self.inner.validate_cached(key, Some(&value.info.version)),
            CachePolicy::Ttl(_) | CachePolicy::Immutable => true,
            CachePolicy::Uncached => false,
        };
        value.len() <= LARGEST_BYTES && is_told
    }

    /// Nothing that was seen before now is trusted any longer.
    fn distrust(&self) {
        *lock(&self.trusted) = Instant::now();
    }
}

/// No code panics while it holds such a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CachedValue {
    fn value(&self) -> Value {
        let (info, range) = (self.info.clone(), self.range.clone());
        Value { info, range, body: ValueBody::Bytes(self.bytes.clone()) }
    }
}

#[async_trait]
impl Store for CachedStore {
    fn kind(&self) -> StoreKind {
        self.inner.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        match self.recall(key, ByteRange::Whole) {
            Some(kept) => Ok(Some(kept.info.clone())),
            None => self.inner.head(key).await,
        }
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        if let Some(kept) = self.recall(key, range) {
            if if_match.is_none_or(|version| *version == kept.info.version) {
                return Ok(Some(kept.value()));
            }
            // As old as it may be; what is asked for may be newer.
            if self.freshness == CachePolicy::Always {
                return Err(StoreError::VersionChanged);
            }
        }
        let (seen, since) = (Instant::now(), self.values.generation());
        match self.inner.get(key, range, if_match).await {
            Ok(Some(value)) if self.is_worth(key, &value) => {
                self.values.missed(1);
                let (info, part) = (value.info.clone(), value.range.clone());
                let bytes = match value.body {
                    ValueBody::Bytes(bytes) => bytes,
                    // Boxed, for it would make the future of every read longer.
                    ValueBody::Stream(_) => Box::pin(value.bytes(LARGEST_BYTES)).await?,
                };
                let kept = CachedValue { info, range: part, bytes, seen: Mutex::new(seen) };
                let value = kept.value();
                self.values.insert(&self.asked(key, range), &Arc::new(kept), since);
                Ok(Some(value))
            }
            Ok(found) => Ok(found),
            Err(error) => {
                if matches!(error, StoreError::VersionChanged) {
                    self.distrust();
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
        let outcome = self.inner.set(key, body, condition).await;
        self.distrust();
        outcome
    }

    async fn copy(
        &self,
        from: &StoreKey,
        if_match: Option<&Version>,
        to: &StoreKey,
        condition: WriteCondition,
    ) -> Result<Option<CopyResult>, StoreError> {
        let copied = self.inner.copy(from, if_match, to, condition).await;
        self.distrust();
        copied
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        let erased = self.inner.erase(key, condition).await;
        self.distrust();
        erased
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        let erased = self.inner.erase_prefix(prefix).await;
        self.distrust();
        erased
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

    async fn watch(&self, keys: Vec<StoreKey>) -> Option<WatchToken> {
        // Where older looks will do, what changed between them and the watch would never be told.
        if self.freshness == CachePolicy::Always { self.inner.watch(keys).await } else { None }
    }

    fn freshness_horizon(&self, began: Instant) -> Instant {
        let oldest = match self.freshness {
            CachePolicy::Always | CachePolicy::Uncached => return began,
            // Whoever asks here may rely on a look of ours, and takes it for his own: each of us has half the time.
            CachePolicy::Ttl(age) => Instant::now().checked_sub(age / 2),
            CachePolicy::Immutable => None,
        };
        let trusted = *lock(&self.trusted);
        oldest.map_or(trusted, |oldest| oldest.max(trusted)).min(began)
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
        let store = ValueCache::new(16 << 20).over("m", Arc::new(store), CachePolicy::Always);
        (directory, store)
    }

    fn key(text: &str) -> StoreKey {
        StoreKey::parse(text).unwrap()
    }

    async fn bytes(store: &SharedStore, name: &str) -> Option<Bytes> {
        let value = store.get(&key(name), ByteRange::Whole, None).await.unwrap()?;
        Some(value.bytes(u64::MAX).await.unwrap())
    }

    /// Whether two reads of the same bytes are answered from the same memory.
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
    async fn small_values_and_small_parts_are_read_once_and_long_ones_each_time() {
        let (directory, store) = opened();
        fs::write(directory.path().join("small"), vec![1; 256 << 10]).unwrap();
        fs::write(directory.path().join("long"), vec![1; (256 << 10) + 1]).unwrap();
        // A file system that cannot be looked at without waiting has nothing remembered.
        let version = store.head(&key("small")).await.unwrap().unwrap().version;
        let is_plain = store.validate_cached(&key("small"), Some(&version));
        assert_eq!(is_kept(&store, "small", ByteRange::Whole).await, is_plain);
        assert_eq!(is_kept(&store, "long", ByteRange::Suffix(100)).await, is_plain);
        assert!(!is_kept(&store, "long", ByteRange::Whole).await);
    }

    #[tokio::test]
    async fn what_is_remembered_is_never_older_than_the_read() {
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

    #[tokio::test]
    async fn where_times_are_not_believed_every_read_reads() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a"), "one").unwrap();
        let options = LocalOptions { trusts_file_times: false, ..LocalOptions::default() };
        let store = Arc::new(LocalStore::open(directory.path(), &options).unwrap());
        let store = ValueCache::new(16 << 20).over("m", store, CachePolicy::Uncached);
        assert!(!is_kept(&store, "a", ByteRange::Whole).await);
        let head = async || store.head(&key("a")).await.unwrap().unwrap().version;
        let (one, two) = (head().await, head().await);
        assert!(one != two && !one.is_strong(), "{one:?} {two:?}");
        assert!(store.watch(vec![key("a")]).await.is_none());
    }

    #[tokio::test]
    async fn ranges_and_conditions_mean_the_same_whether_remembered_or_not() {
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
                let told = async |store: &dyn Store| match store.get(&key("a"), range, if_match).await {
                    Ok(value) => {
                        let value = value.unwrap();
                        let (info, range) = (value.info.clone(), value.range.clone());
                        Ok((info, range, value.bytes(100).await.unwrap()))
                    }
                    Err(error) => Err(error.to_string()),
                };
                let expected = told(&inner).await;
                for _ in 0..3 {
                    assert_eq!(told(&*store).await, expected, "{range:?} {if_match:?}");
                }
            }
        }
        assert_eq!(store.head(&key("a")).await.unwrap(), inner.head(&key("a")).await.unwrap());
    }
}
