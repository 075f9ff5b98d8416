//! The store interface: [`Store`] has the verbs of the specification, [`Shortcuts`] what makes a backend fast.
//!
//! Zarr core 3.1, "Abstract store interface". A backend is right once it implements [`Store`] and writes
//! `impl Shortcuts for Backend {}`: each shortcut has a default that costs time or memory, never correctness. A wrapper
//! names the store it wraps in [`Shortcuts::inner`] and inherits all of that store's shortcuts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, TryStreamExt};

use super::backend::BackendState;
use super::{
    ByteRange, Capabilities, CopyResult, DirEntries, DirEntry, DirListing, Extent, ListEntry, MemoryBudget,
    ObjectId, OwnArea, PinnedVersion, RepositoryVersions, ResolvedExtent, SetResult, StoreError, StoreKind,
    Value, ValueInfo, ValueStream, Version, WatchToken, WriteCondition,
};
use crate::key::{StoreKey, StorePrefix};

/// A store, shared.
pub type SharedStore = Arc<dyn Store>;

/// What a backend must do to be right: the verbs of the specification.
///
/// The verbs that write have defaults that refuse: a store without them is read-only.
#[async_trait]
pub trait Store: Shortcuts + std::fmt::Debug + Send + Sync + 'static {
    /// The kind of the backend.
    fn kind(&self) -> StoreKind;

    /// Size and version of a value; `None` if the backend says the key does not exist.
    ///
    /// # Errors
    /// Any failure of the backend.
    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError>;

    /// `get`, and one range of `get_partial_values`: the value or a part of it, all of one version.
    ///
    /// [`ByteRange::resolve`] resolves the range against the value's size. The body holds exactly the bytes that
    /// [`Value::range`] says, or ends in an error.
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

    /// `set`: stores a value completely, or not at all.
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

    /// The most bytes of a body, of any length, that [`Store::set`] holds in memory at one time under a condition.
    /// Small pieces that are passed on at once do not count. By default as [`Shortcuts::inner`], else 0.
    fn held_by_set(&self, condition: &WriteCondition) -> u64 {
        self.inner().map_or(0, |inner| inner.held_by_set(condition))
    }

    /// `get` and `set` in one: stores the value of one key under another, completely or not at all. `None` if `from`
    /// does not exist. The condition is about the value of `to` before the copy; it is checked as by [`Store::set`].
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

    /// `erase_prefix`: removes every value whose key begins with the prefix. Returns how many there were. A link is
    /// removed itself; the values it leads to stay.
    ///
    /// # Errors
    /// As for [`Store::set`]; values erased before the failure stay erased.
    async fn erase_prefix(&self, _prefix: &StorePrefix) -> Result<u64, StoreError> {
        Err(StoreError::ReadOnly)
    }

    /// A store beside this one, in the same backend, for what no caller sees. Its keys are none of this store's. By default as
    /// [`Shortcuts::inner`], else an error.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`]; [`StoreError::NotSupported`]; any failure of the backend.
    async fn own_area(&self, area: OwnArea) -> Result<SharedStore, StoreError> {
        match self.inner() {
            Some(inner) => inner.own_area(area).await,
            None => Err(StoreError::ReadOnly),
        }
    }

    /// Bytes that name the place where the values below a prefix are stored: the same ones for all prefixes that lead there. By default
    /// as [`Shortcuts::inner`], else the prefix without its last slash.
    ///
    /// # Errors
    /// Any failure of the backend.
    async fn place_name(&self, prefix: &StorePrefix) -> Result<Vec<u8>, StoreError> {
        match self.inner() {
            Some(inner) => inner.place_name(prefix).await,
            None => Ok(prefix.as_str().trim_end_matches('/').into()),
        }
    }

    /// Whether a write or an erasure of `written` can change what is read of `read`, or the other way round. By default
    /// as [`Shortcuts::inner`], else by the text of the keys: a store that knows one value by several keys overrides
    /// this.
    ///
    /// # Errors
    /// Any failure of the backend.
    async fn overlap(&self, read: &Extent, written: &Extent) -> Result<bool, StoreError> {
        match self.inner() {
            Some(inner) => inner.overlap(read, written).await,
            None => Ok(read.overlaps(written)),
        }
    }

    /// Where an extent lies on the disks of this machine, for [`Store::overlaps_resolved`] of another store. By default as
    /// [`Shortcuts::inner`], else `None`: the backend is not a directory.
    ///
    /// # Errors
    /// Any failure of the backend.
    async fn resolve(&self, extent: &Extent) -> Result<Option<ResolvedExtent>, StoreError> {
        match self.inner() {
            Some(inner) => inner.resolve(extent).await,
            None => Ok(None),
        }
    }

    /// As [`Store::overlap`], where `written` is an extent of another store. By default as [`Shortcuts::inner`], else `false`.
    ///
    /// # Errors
    /// Any failure of the backend.
    async fn overlaps_resolved(&self, read: &Extent, written: &ResolvedExtent) -> Result<bool, StoreError> {
        match self.inner() {
            Some(inner) => inner.overlaps_resolved(read, written).await,
            None => Ok(false),
        }
    }

    /// `list_dir`: the keys and prefixes directly under a prefix, each sorted by name. Unknown prefixes are empty.
    /// Holds the complete listing in memory: for a directory that may be long, use [`Store::list_dir_after`].
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

    /// `list_dir` as a stream: the keys and prefixes directly under a prefix as one sequence, those whose text comes
    /// after `after`, which need not be a key. A page costs little more than its entries: the rest of the directory is
    /// not read, and the memory held does not grow with it, unless the backend has no other way to list.
    ///
    /// Ends in an error as [`Store::list_dir`] does.
    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries;

    /// `list_prefix` (and `list`, with the root): every key under a prefix, in the order of the keys' bytes,
    /// after `after` if that is given.
    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>>;

    /// The same store for one request: memory held for listings beside their entries, and for generated documents, is
    /// reserved from `budget`. `None`, the default, for a store that holds no such memory.
    fn with_budget(&self, _budget: &Arc<dyn MemoryBudget>) -> Option<SharedStore> {
        None
    }

    /// Whether the URL of this store now leads to another one, as a path may after a rename: opening it again would
    /// give another store. Blocks for a few file operations. By default as [`Shortcuts::inner`], else `false`.
    fn is_replaced(&self) -> bool {
        self.inner().is_some_and(Store::is_replaced)
    }

    /// Whether what was opened was removed, and the URL of this store now leads to another one: only opening it again gives
    /// values. Blocks for a few file operations. By default as [`Shortcuts::inner`], else `false`.
    fn is_removed(&self) -> bool {
        self.inner().is_some_and(Store::is_removed)
    }

    /// Whether the conditions of writes are checked, by the backend or by this server; for a check of the configuration. A backend
    /// of which it is not known is tried, with a key of the store itself that is erased afterwards. By default as
    /// [`Shortcuts::inner`], else `true`.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`]; the failure of the backend.
    async fn heeds_conditions(&self) -> Result<bool, StoreError> {
        match self.inner() {
            Some(inner) => inner.heeds_conditions().await,
            None => Ok(true),
        }
    }

    /// Whether the backend responds at all; for readiness.
    ///
    /// # Errors
    /// The failure of the backend.
    async fn check(&self) -> Result<(), StoreError>;
}

/// What makes a store fast: cheaper ways to answers that the verbs of [`Store`] give too, and facts about the backend.
///
/// Each method has a default that is correct for every store: it delegates to [`Shortcuts::inner`], and without one
/// reports that there is no shortcut.
#[async_trait]
pub trait Shortcuts {
    /// The store that this one wraps, if both have the same values under the same keys. It answers every method that
    /// the wrapper does not override.
    fn inner(&self) -> Option<&dyn Store> {
        None
    }

    /// What the backend is good at. By default nothing: a backend that takes a network request for each verb.
    fn capabilities(&self) -> Capabilities {
        self.inner().map_or(Capabilities::REMOTE, Shortcuts::capabilities)
    }

    /// What requests to the backend are signed with, in words that can follow its URL; `None` for a backend that signs none.
    fn credentials(&self) -> Option<&'static str> {
        self.inner()?.credentials()
    }

    /// Circuit breaker and concurrency limit of the backend; `None` for a backend without them.
    fn backend(&self) -> Option<BackendState> {
        self.inner()?.backend()
    }

    /// As [`Store::head`], but the size in the result has no meaning: the version of a generated value is known long
    /// before its size. `None` if that is no faster than [`Store::head`].
    fn version<'a>(
        &'a self,
        key: &'a StoreKey,
    ) -> Option<BoxFuture<'a, Result<Option<ValueInfo>, StoreError>>> {
        self.inner()?.version(key)
    }

    /// Whether it is known without I/O that a key still has this version, or (`None`) still has no value, so that
    /// [`Store::head`] would say so. For keys that were read a moment ago. `false` means not known.
    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        self.inner().is_some_and(|inner| inner.validate_cached(key, version))
    }

    /// Begins to watch for changes that could give any of these keys another value; check with
    /// [`Shortcuts::unchanged_since`]. Earlier changes are not reported, so check the keys once more after this. `None`
    /// if the store cannot watch them.
    async fn watch(&self, keys: Vec<StoreKey>) -> Option<WatchToken> {
        self.inner()?.watch(keys).await
    }

    /// When reports of changes were last read, at `horizon` or later, if none came since [`Shortcuts::watch`]; known without I/O. One
    /// reading serves all that ask for the same time.
    fn unchanged_since(&self, since: WatchToken, horizon: Instant) -> Option<Instant> {
        self.inner()?.unchanged_since(since, horizon)
    }

    /// The earliest time at which a value may have been validated for a request that began at `began` to rely on it:
    /// the request's own beginning, unless a [`CachePolicy`](super::CachePolicy) allows older validations.
    fn freshness_horizon(&self, began: Instant) -> Instant {
        self.inner().map_or(began, |inner| inner.freshness_horizon(began))
    }

    /// Some of the prefixes directly under a prefix, in no order, with or without keys below them: those among the
    /// first `entries` that the backend returns. `None` if that is no faster than [`Store::list_dir_after`].
    fn sample_prefixes<'a>(
        &'a self,
        prefix: &'a StorePrefix,
        entries: usize,
    ) -> Option<BoxFuture<'a, Result<Vec<StorePrefix>, StoreError>>> {
        self.inner()?.sample_prefixes(prefix, entries)
    }

    /// Evicts the files that the store holds in memory because they never change, and those that it refuses.
    fn purge_held(&self) {
        if let Some(inner) = self.inner() {
            inner.purge_held();
        }
    }

    /// The version of the hierarchy whose keys are those without a version; `None` for a store without versions.
    fn served_version(&self) -> Option<PinnedVersion> {
        self.inner()?.served_version()
    }

    /// The snapshot that a version is now, `None` if there is no such version. `None` for a store without versions.
    fn resolve_version<'a>(
        &'a self,
        version: &'a PinnedVersion,
    ) -> Option<BoxFuture<'a, Result<Option<ObjectId>, StoreError>>> {
        self.inner()?.resolve_version(version)
    }

    /// Whether all that a tag or a snapshot has is a part of the repository, and so never changes: no reference may lead to
    /// another place.
    fn is_closed(&self) -> bool {
        self.inner().is_some_and(Shortcuts::is_closed)
    }

    /// All versions of the hierarchy; `None` for a store without versions.
    fn versions(&self) -> Option<BoxFuture<'_, Result<RepositoryVersions, StoreError>>> {
        self.inner()?.versions()
    }

    /// A URL that lets its holder read a value from the backend itself for `valid_for`, with GET, or with HEAD if
    /// `is_head`. `None` if the store does not sign URLs.
    fn signed_url<'a>(
        &'a self,
        key: &'a StoreKey,
        is_head: bool,
        valid_for: Duration,
    ) -> Option<BoxFuture<'a, Result<String, StoreError>>> {
        self.inner()?.signed_url(key, is_head, valid_for)
    }
}
