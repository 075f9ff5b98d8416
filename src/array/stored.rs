//! [`StoredKey`], [`StoredValue`] and [`ChunkLookup`]: where a chunk is stored, at which version, and what is known of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::ArrayError;
use super::read_context::ReadContext;
use crate::chunk::Elements;
use crate::codec::sharding_indexed::ShardIndex;
use crate::key::StoreKey;
use crate::store::{SharedStore, ValueInfo};

/// For so long after a value was looked at by all the rules, a glance at its name will do: names that were asked for a
/// moment ago are in memory where they are kept, and nobody waits for them.
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
    when: Mutex<ValidationTimes>,
}

/// When looks that found this version began.
#[derive(Clone, Copy, Debug, Default)]
struct ValidationTimes {
    /// The last one by all the rules.
    looked: Option<Instant>,
    /// The last one at all.
    seen: Option<Instant>,
}

impl StoredValue {
    /// Whether this version is what is stored, as freshly as the store asks for, and that is plain without waiting. A look
    /// is for every request that had begun before it.
    #[must_use]
    pub fn is_fresh(&self, trace: &ReadContext) -> bool {
        self.validated_since(trace.began()).is_some()
    }

    /// When a look began that found this version and is new enough for a request that began then, if that is plain without
    /// waiting.
    pub(super) fn validated_since(&self, began: Instant) -> Option<Instant> {
        let ValidationTimes { looked, seen } = *self.when();
        if let Some(seen) = seen.filter(|&seen| seen >= self.store.freshness_horizon(began)) {
            return Some(seen);
        }
        let now = Instant::now();
        let is_current = looked
            .is_some_and(|looked| now.saturating_duration_since(looked) < CHEAP_REVALIDATION_WINDOW)
            && self.store.validate_cached(&self.key, Some(&self.info.version));
        if is_current {
            self.record_times(ValidationTimes { looked, seen: Some(now) });
        }
        is_current.then_some(now)
    }

    /// Takes over what was seen of the same version of the same value.
    pub fn copy_validation(&self, other: &Self) {
        let when = *other.when();
        self.record_times(when);
    }

    /// A look by all the rules, that began then, found this version.
    pub(super) fn record_validation(&self, began: Instant) {
        self.record_times(ValidationTimes { looked: Some(began), seen: Some(began) });
    }

    fn record_times(&self, new: ValidationTimes) {
        let mut when = self.when();
        *when = ValidationTimes { looked: when.looked.max(new.looked), seen: when.seen.max(new.seen) };
    }

    /// No code panics while it holds the lock.
    fn when(&self) -> MutexGuard<'_, ValidationTimes> {
        self.when.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a chunk (or shard) is stored, if it is.
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
    /// The version that is stored now; `None` if there is none. Waits for a turn of the request.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn lookup_version(&self, trace: &ReadContext) -> Result<Option<Arc<StoredValue>>, ArrayError> {
        let _turn = trace.acquire_fetch_permit().await;
        let now = Instant::now();
        match self.store.head(&self.key).await {
            Ok(info) => Ok(info.map(|info| {
                let value = self.at(info);
                value.record_validation(now);
                value
            })),
            Err(source) => Err(ArrayError::Store { key: self.key.clone(), source }),
        }
    }

    /// The value at a version.
    #[must_use]
    pub fn at(&self, info: ValueInfo) -> Arc<StoredValue> {
        let Self { mount, store, key } = self.clone();
        Arc::new(StoredValue { mount, store, key, info, when: Mutex::default() })
    }
}

/// What is stored under a key now, and what is known of it already.
#[derive(Clone, Debug)]
pub struct ChunkLookup {
    /// The value; `None` if there is none.
    pub value: Option<Arc<StoredValue>>,
    /// What was read of it, at its version.
    pub part: ChunkData,
}

/// What is known of a value that was found.
#[derive(Clone, Debug)]
pub enum ChunkData {
    /// Its version alone.
    Nothing,
    /// All its elements.
    Elements(Elements),
    /// Of a shard, the index.
    Index(Arc<ShardIndex>),
}

impl ChunkLookup {
    /// A value of which the version is known, or that there is none.
    #[must_use]
    pub fn seen(value: Option<Arc<StoredValue>>) -> Self {
        Self { value, part: ChunkData::Nothing }
    }
}
