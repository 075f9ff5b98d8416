//! [`StoredKey`], [`StoredValue`] and [`ChunkLookup`]: where a chunk is stored, at which version, and what was read of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::ArrayError;
use super::read_context::ReadContext;
use crate::chunk::Elements;
use crate::codec::ShardIndex;
use crate::key::StoreKey;
use crate::store::{SharedStore, ValueInfo};

/// For this long after a full lookup of a value, a check of its name in memory (`Shortcuts::validate_cached`) is enough to
/// revalidate it: the file system still has the names that were requested a moment ago in memory, so the check does not
/// wait for a disk.
///
pub const CHEAP_REVALIDATION_WINDOW: Duration = Duration::from_secs(10);

/// A stored chunk (or shard) at one version.
#[derive(Debug)]
pub struct StoredValue {
    /// The mount's name, which keeps equal keys of different mounts apart.
    pub mount: Arc<str>,
    /// Where it is stored.
    pub store: SharedStore,
    /// Its key.
    pub key: StoreKey,
    /// Its size and version.
    pub info: ValueInfo,
    times: Mutex<ValidationTimes>,
}

/// When the checks began that found this version.
#[derive(Clone, Copy, Debug, Default)]
struct ValidationTimes {
    /// The last full lookup: a read or a `head`.
    full: Option<Instant>,
    /// The last check of any kind.
    any: Option<Instant>,
}

impl StoredValue {
    /// Whether this version is known without I/O to be what is stored, as fresh as the store requires. A check is good for
    /// every request that had begun before it.
    #[must_use]
    pub fn is_fresh(&self, context: &ReadContext) -> bool {
        self.validated_since(context.began()).is_some()
    }

    /// When a check began that found this version and is fresh enough for a request that began at `began`; `None` if that is
    /// not known without I/O.
    pub(super) fn validated_since(&self, began: Instant) -> Option<Instant> {
        let ValidationTimes { full, any } = *self.times();
        if let Some(any) = any.filter(|&any| any >= self.store.freshness_horizon(began)) {
            return Some(any);
        }
        let now = Instant::now();
        let is_current = full
            .is_some_and(|full| now.saturating_duration_since(full) < CHEAP_REVALIDATION_WINDOW)
            && self.store.validate_cached(&self.key, Some(&self.info.version));
        if is_current {
            self.record_times(ValidationTimes { full, any: Some(now) });
        }
        is_current.then_some(now)
    }

    /// Takes over the checks of another description of the same version of the same value.
    pub fn copy_validation(&self, other: &Self) {
        let times = *other.times();
        self.record_times(times);
    }

    /// Records that a full lookup, which began at `began`, found this version.
    pub(super) fn record_validation(&self, began: Instant) {
        self.record_times(ValidationTimes { full: Some(began), any: Some(began) });
    }

    fn record_times(&self, new: ValidationTimes) {
        let mut times = self.times();
        *times = ValidationTimes { full: times.full.max(new.full), any: times.any.max(new.any) };
    }

    /// No code panics while it holds the lock.
    fn times(&self) -> MutexGuard<'_, ValidationTimes> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store and the key that a chunk (or shard) is stored under, if it exists.
#[derive(Clone, Debug)]
pub struct StoredKey {
    /// The mount's name, which keeps equal keys of different mounts apart.
    pub mount: Arc<str>,
    /// The store.
    pub store: SharedStore,
    /// The key.
    pub key: StoreKey,
}

impl StoredKey {
    /// Returns the version that is stored now; `None` if there is none. Waits for a fetch permit of the request.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn lookup_version(
        &self,
        context: &ReadContext,
    ) -> Result<Option<Arc<StoredValue>>, ArrayError> {
        let _permit = context.acquire_fetch_permit().await;
        let now = Instant::now();
        match self.store.head(&self.key).await {
            Ok(info) => Ok(info.map(|info| {
                let value = self.at_version(info);
                value.record_validation(now);
                value
            })),
            Err(source) => Err(ArrayError::Store { key: self.key.clone(), source }),
        }
    }

    /// The value under this key at a version.
    #[must_use]
    pub fn at_version(&self, info: ValueInfo) -> Arc<StoredValue> {
        let Self { mount, store, key } = self.clone();
        Arc::new(StoredValue { mount, store, key, info, times: Mutex::default() })
    }
}

/// What is stored under a key now, and what was read of it.
#[derive(Clone, Debug)]
pub struct ChunkLookup {
    /// The value; `None` if there is none.
    pub value: Option<Arc<StoredValue>>,
    /// What was read of the value, at its version.
    pub data: ChunkData,
}

/// What was read of a stored value.
#[derive(Clone, Debug)]
pub enum ChunkData {
    /// Nothing: only its version is known.
    NotRead,
    /// All its elements.
    Elements(Elements),
    /// The index of a shard.
    Index(Arc<ShardIndex>),
}

impl ChunkLookup {
    /// The result of a lookup that read nothing; `None` if there is no value.
    #[must_use]
    pub fn version_only(value: Option<Arc<StoredValue>>) -> Self {
        Self { value, data: ChunkData::NotRead }
    }
}
