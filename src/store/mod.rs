//! The abstract store interface of Zarr over a pluggable backend.
//!
//! Zarr core 3.1, "Abstract store interface": [`Store`] has its verbs under their own names. `local` is our own
//! store over a directory; `object` adapts `object_store`'s S3, GCS, Azure, HTTP and memory backends; `zip` reads the
//! entries of a zip file that lies in one of these. `backend` keeps what is elsewhere from being asked too much. Wrappers
//! (limits, counting, faults in tests) are structs around an inner [`Store`] with the same verbs; what they do not answer
//! themselves, it does ([`Store::inner`]). The verbs over many keys and over parts of values are made of the others
//! (`partial`).
//!
//! Two rules every implementation keeps. **Absence is `Ok(None)`, and only where the backend says that the key
//! does not exist**: any other failure is an error, because a Zarr client reads absence as fill values. **A
//! [`Version`] names one content of one key**: bytes read at a version are never mixed with another's.

mod backend;
mod cache_policy;
mod error;
mod extent;
mod local;
mod memory_budget;
mod object;
mod observed;
mod open;
mod options;
mod partial;
mod reserved_keys;
mod secret;
mod types;
mod web;
mod zip;

#[cfg(test)]
mod tests;

pub use backend::{BackendState, CircuitState};
pub use cache_policy::{CachePolicy, CachePolicyError};
pub use error::{LinkFault, Shared, StoreError};
pub use extent::Extent;
pub use local::{Durability, LocalOptions, LocalStore, MAX_CONCURRENCY, Symlinks};
pub use memory_budget::{BudgetExceeded, MemoryBudget, Reservation};
pub use object::{ObjectBackend, ObjectOptions, set_trace_context_provider, trouble};
pub use observed::{Observer, Outcome, Verb, observed};
pub use open::{OpenError, is_zip, kind_of, open, open_within};
pub use options::{StoreOptions, backends_of};
pub use partial::{
    PartFailure, PartialWrite, ValuePart, erase_values, get_partial_values, set_partial_values,
};
pub use secret::Secret;
pub use types::{
    ByteRange, CopyResult, DirEntries, DirEntry, DirListing, ListEntry, SetResult, StoreKind, Value,
    ValueBody, ValueInfo, ValueStream, Version, WatchToken, WriteCondition,
};
pub use web::Web;
pub use zip::{ZipBudget, ZipError, ZipStore};

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, TryStreamExt};

use crate::key::{StoreKey, StorePrefix};

/// A store, shared.
pub type SharedStore = Arc<dyn Store>;

/// The abstract store interface. A store that has no verbs of its own for writing is read-only.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// What kind of backend this is.
    fn kind(&self) -> StoreKind;

    /// The store that this one is around, where it shows the same values under the same keys: what only some stores know,
    /// it is asked then, unless this one knows better.
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    /// How much the backend is asked, where it is one elsewhere.
    fn backend(&self) -> Option<BackendState> {
        self.inner()?.backend()
    }

    /// Size and version of a value; `None` if the backend says the key does not exist.
    ///
    /// # Errors
    /// Any failure of the backend.
    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError>;

    /// As [`Store::head`], but for the size, which is not looked at: of values that are made when they are asked for, the
    /// version is known long before. `None` where that is nothing to [`Store::head`]: always, unless a store knows better.
    fn version<'a>(
        &'a self,
        key: &'a StoreKey,
    ) -> Option<BoxFuture<'a, Result<Option<ValueInfo>, StoreError>>> {
        self.inner()?.version(key)
    }

    /// Whether it is plain, without any waiting, that a key still has this version, or (`None`) still no value, so that
    /// [`Store::head`] would say so. For keys that were asked for a moment ago. `false` where that takes a closer look:
    /// always, unless a store knows better.
    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        self.inner().is_some_and(|inner| inner.validate_cached(key, version))
    }

    /// Has the store tell from now on whether anything changes that could give these keys other values: by
    /// [`Store::unchanged_since`]. What changed before is not told, so look once more. `None` where a store cannot.
    async fn watch(&self, keys: Vec<StoreKey>) -> Option<WatchToken> {
        self.inner()?.watch(keys).await
    }

    /// Whether nothing was told since [`Store::watch`]; plain without any waiting.
    fn unchanged_since(&self, since: WatchToken) -> bool {
        self.inner().is_some_and(|inner| inner.unchanged_since(since))
    }

    /// Since when a look at a value must have begun for a request that began then to rely on it: since the request, unless
    /// a store says otherwise ([`CachePolicy`]).
    fn freshness_horizon(&self, began: Instant) -> Instant {
        self.inner().map_or(began, |inner| inner.freshness_horizon(began))
    }

    /// `get`, and one range of `get_partial_values`: the value or a part of it, all of one version.
    ///
    /// The range is resolved against the value's size by [`ByteRange::resolve`]; [`Value::range`] says what
    /// the body holds, which is neither more nor less than that, or ends in an error.
    ///
    /// # Errors
    /// [`StoreError::VersionChanged`] if `if_match` is given and the value is of another version;
    /// [`StoreError::RangeNotSatisfiable`]; any failure of the backend.
    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError>;

    /// `set`: stores a value whole, or not at all.
    ///
    /// When this returns `Ok`, the value is visible to every reader and as durable as the backend makes it.
    ///
    /// # Errors
    /// [`StoreError::ConditionFailed`] if the condition does not hold (nothing is written);
    /// [`StoreError::ReadOnly`]; an error of the body stream; any failure of the backend.
    async fn set(
        &self,
        _key: &StoreKey,
        _body: ValueStream,
        _condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        Err(StoreError::ReadOnly)
    }

    /// The most bytes of a body that [`Store::set`] holds at one time under a condition, however long the body is. What it
    /// passes on in small pieces does not count.
    fn held_by_set(&self, condition: &WriteCondition) -> u64 {
        self.inner().map_or(0, |inner| inner.held_by_set(condition))
    }

    /// `get` and `set` in one: stores the value of one key under another, whole or not at all; `None` if there is
    /// none. The condition is about the value that is there before, and is checked and kept as [`Store::set`] does.
    ///
    /// # Errors
    /// As for [`Store::get`] and [`Store::set`].
    async fn copy(
        &self,
        from: &StoreKey,
        if_match: Option<&Version>,
        to: &StoreKey,
        condition: WriteCondition,
    ) -> Result<Option<CopyResult>, StoreError> {
        let Some(value) = self.get(from, ByteRange::Whole, if_match).await? else { return Ok(None) };
        let version = value.info.version.clone();
        let outcome = self.set(to, value.into_exact_stream(), condition).await?;
        Ok(Some(CopyResult { version, outcome }))
    }

    /// `erase`: removes a value. Returns whether there was one.
    ///
    /// # Errors
    /// As for [`Store::set`].
    async fn erase(&self, _key: &StoreKey, _condition: WriteCondition) -> Result<bool, StoreError> {
        Err(StoreError::ReadOnly)
    }

    /// `erase_prefix`: removes every value whose key begins with the prefix. Returns how many there were. Where links lead to
    /// other values, those stay, and the links are what is removed.
    ///
    /// # Errors
    /// As for [`Store::set`]; values erased before the failure stay erased.
    async fn erase_prefix(&self, _prefix: &StorePrefix) -> Result<u64, StoreError> {
        Err(StoreError::ReadOnly)
    }

    /// Whether to write or erase one extent is to change what is read of another, or the other way round. By the text of
    /// their keys, unless a store knows one value by several.
    ///
    /// # Errors
    /// Any failure of the backend.
    async fn overlap(&self, read: &Extent, written: &Extent) -> Result<bool, StoreError> {
        match self.inner() {
            Some(inner) => inner.overlap(read, written).await,
            None => Ok(read.overlaps(written)),
        }
    }

    /// `list_dir`: the keys and prefixes directly under a prefix, each sorted by name. Unknown prefixes are
    /// empty. Holds all of it: for a directory that may be long, take [`Store::list_dir_after`].
    ///
    /// # Errors
    /// [`StoreError::NotListable`]; any failure of the backend. A listing that cannot be finished is an error,
    /// never fewer keys.
    async fn list_dir(&self, prefix: &StorePrefix) -> Result<DirListing, StoreError> {
        let mut listing = DirListing::default();
        let mut entries = self.list_dir_after(prefix, "");
        while let Some(entry) = entries.try_next().await? {
            match entry {
                DirEntry::Key(entry) => listing.keys.push(entry),
                DirEntry::Prefix(prefix) => listing.prefixes.push(prefix),
            }
        }
        Ok(listing)
    }

    /// `list_dir` as it is read: the keys and prefixes directly under a prefix as one sequence, those whose text comes
    /// after `after`, which need be no key. A page of it costs little more than the page: what is not taken is not looked
    /// at, and what is held does not grow with the directory, unless the backend has no other way to list.
    ///
    /// Ends in an error as [`Store::list_dir`] does.
    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries;

    /// Some of the prefixes directly under a prefix, in no order: those among so many entries that are first at hand, with or
    /// without keys below them. `None` where that is nothing to [`Store::list_dir_after`]: always, unless a store knows
    /// better.
    fn glance<'a>(
        &'a self,
        prefix: &'a StorePrefix,
        entries: usize,
    ) -> Option<BoxFuture<'a, Result<Vec<StorePrefix>, StoreError>>> {
        self.inner()?.glance(prefix, entries)
    }

    /// `list_prefix` (and `list`, with the root): every key under a prefix, in the order of the keys' bytes,
    /// after `after` if that is given.
    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>>;

    /// The same store for one request, of whose `room` it takes what it holds for a listing beside the entries that it passes
    /// on, and for documents that it makes. `None` where that is nothing: always, unless a store knows better.
    fn with_budget(&self, _room: &Arc<dyn MemoryBudget>) -> Option<SharedStore> {
        None
    }

    /// A URL by which whoever has it can read a value from the backend itself for a while, with GET, or with HEAD if
    /// `is_head`. `None` where a store does not sign URLs: always, unless it is told to.
    fn signed_url<'a>(
        &'a self,
        key: &'a StoreKey,
        is_head: bool,
        good_for: Duration,
    ) -> Option<BoxFuture<'a, Result<String, StoreError>>> {
        self.inner()?.signed_url(key, is_head, good_for)
    }

    /// Whether the URL that this was opened by leads to something else by now, so that who opens it anew gets another
    /// store: a path may, after a rename. Blocks for a look at the disk. `false` always, unless a store knows better.
    fn is_replaced(&self) -> bool {
        self.inner().is_some_and(Store::is_replaced)
    }

    /// Whether the backend answers at all; for readiness.
    ///
    /// # Errors
    /// The failure that stands in the way.
    async fn check(&self) -> Result<(), StoreError>;
}
