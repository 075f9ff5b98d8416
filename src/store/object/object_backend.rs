//! [`ObjectBackend`]: the verbs of the store interface over a client of `object_store`.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use object_store::list::PaginatedListStore;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{ObjectMeta, ObjectStore};
use reqwest::Method;
use tokio::sync::{Mutex, MutexGuard, OnceCell};
use tokio::time::Instant;

use super::bucket_presence::BucketPresence;
use super::client::Connector;
use super::failure::{failure, is_unexplained};
use super::retries::RetryBudget;
use crate::key::{StoreKey, StorePrefix};
use crate::store::reserved_keys::{RECORDS, RESERVED, has_segment, is_reserved};
use crate::store::{
    ByteRange, Capabilities, DirEntries, ListEntry, OwnArea, SetResult, SharedStore, Shortcuts, Store,
    StoreError, StoreKind, Value, ValueInfo, ValueStream, Version, WriteCondition, Writers,
};

/// How a remote store is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectOptions {
    /// Whether values may be written.
    pub writable: bool,
    /// Whether "403 Forbidden" means that a key does not exist, as it does in S3 buckets whose keys may be read
    /// but not listed. If credentials expire, such a store appears to be empty.
    pub missing_on_403: bool,
    /// The longest value, in bytes, that is held in memory because the backend takes it only in one piece.
    pub held_bytes: u64,
    /// No retry of a conditional write begins later than this after its first attempt.
    pub retry: Duration,
    /// Whether the backend is known to heed conditions; if not, it is probed before the first conditional write. Web
    /// servers are always probed.
    pub known: bool,
    /// Who writes to the backend. Where this program alone does, it checks conditions.
    pub writers: Writers,
}

/// The prefix of the key that probes conditions at a web server. That server may be one of this kind, and reserve
/// [`RESERVED`] for itself.
const PROBE: &str = ".zarr-server-probe-";

/// A store over a backend of `object_store`.
#[derive(Clone, Debug)]
pub struct ObjectBackend {
    pub(super) kind: StoreKind,
    pub(super) inner: Arc<dyn ObjectStore>,
    /// The same backend without retries, for conditional writes.
    pub(super) once: Arc<dyn ObjectStore>,
    /// Precedes every key in the backend.
    pub(super) prefix: StorePrefix,
    pub(super) options: ObjectOptions,
    /// The budget for retries; `None` for no limit.
    pub(super) retries: Option<Arc<RetryBudget>>,
    /// Whether the bucket is known to exist; `None` for a store without a bucket.
    pub(super) presence: Option<Arc<BucketPresence>>,
    pub(super) memory: Option<Arc<MemoryState>>,
    /// Whether the backend heeds the conditions of writes, once known.
    pub(super) heeds_conditions: Arc<OnceCell<bool>>,
    /// Signs URLs, if the store does.
    pub(super) signer: Option<Arc<dyn Signer>>,
    /// Lists in pages, if the backend does.
    pub(super) pages: Option<Pages>,
    /// When the store was opened.
    pub(super) opened: Instant,
    /// What requests are signed with, in words.
    credentials: Option<&'static str>,
}

/// The clients of the store, as clients that list in pages.
#[derive(Clone)]
pub(super) struct Pages {
    inner: Arc<dyn PaginatedListStore>,
    once: Arc<dyn PaginatedListStore>,
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pages")
    }
}

/// State of a store in memory that its client does not have.
#[derive(Debug)]
pub(super) struct MemoryState {
    /// Makes "check, then write" one step.
    writers: Mutex<()>,
    /// A random prefix of all versions: the client's numbers begin again with each store.
    epoch: String,
}

impl ObjectBackend {
    /// A store over `inner`, where all its keys are under `prefix`. `once` is the same backend without retries.
    #[must_use]
    pub fn new(
        kind: StoreKind,
        inner: Arc<dyn ObjectStore>,
        once: Arc<dyn ObjectStore>,
        prefix: StorePrefix,
        options: ObjectOptions,
    ) -> Self {
        let known = (options.known && kind != StoreKind::HTTP).then_some(true);
        let heeds_conditions = Arc::new(OnceCell::new_with(known));
        Self {
            kind,
            inner,
            once,
            prefix,
            options,
            retries: None,
            presence: None,
            memory: None,
            heeds_conditions,
            signer: None,
            pages: None,
            opened: Instant::now(),
            credentials: None,
        }
    }

    /// The same store, which says that its requests are signed in this way.
    #[must_use]
    pub(in crate::store) fn with_credentials(self, credentials: &'static str) -> Self {
        Self { credentials: Some(credentials), ..self }
    }

    /// The same store, with what the clients of a connector share: the retry budget, and what is known of the bucket.
    #[must_use]
    pub(in crate::store) fn sharing(self, connector: &Connector) -> Self {
        let presence = (self.kind != StoreKind::HTTP).then(|| Arc::clone(connector.presence()));
        Self { retries: Some(Arc::clone(connector.retries())), presence, ..self }
    }

    /// The client for requests that may be repeated.
    pub(super) fn client(&self) -> &Arc<dyn ObjectStore> {
        if self.may_retry() { &self.inner } else { &self.once }
    }

    /// The same client, if it lists in pages.
    pub(super) fn pages(&self) -> Option<&Arc<dyn PaginatedListStore>> {
        let pages = self.pages.as_ref()?;
        Some(if self.may_retry() { &pages.inner } else { &pages.once })
    }

    pub(super) fn may_retry(&self) -> bool {
        self.retries.as_ref().is_none_or(|retries| retries.has_balance())
    }

    /// The same store, listing directories page by page with the clients that [`Self::new`] was given.
    #[must_use]
    pub(in crate::store) fn with_pages(
        self,
        inner: Arc<dyn PaginatedListStore>,
        once: Arc<dyn PaginatedListStore>,
    ) -> Self {
        Self { pages: Some(Pages { inner, once }), ..self }
    }

    /// The same store, signing URLs with `signer`.
    #[must_use]
    pub fn with_signer(self, signer: Arc<dyn Signer>) -> Self {
        Self { signer: Some(signer), ..self }
    }

    /// An empty store in this process's memory.
    #[must_use]
    pub fn memory(writable: bool) -> Self {
        let inner: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let epoch = format!("{:x}-", RandomState::new().build_hasher().finish());
        let memory = MemoryState { writers: Mutex::new(()), epoch };
        Self {
            kind: StoreKind::MEMORY,
            once: Arc::clone(&inner),
            inner,
            prefix: StorePrefix::root(),
            options: ObjectOptions {
                writable,
                missing_on_403: false,
                held_bytes: u64::MAX,
                retry: Duration::ZERO,
                known: true,
                writers: Writers::Any,
            },
            retries: None,
            presence: None,
            memory: Some(Arc::new(memory)),
            heeds_conditions: Arc::new(OnceCell::new_with(Some(true))),
            signer: None,
            pages: None,
            opened: Instant::now(),
            credentials: None,
        }
    }

    /// The path of a key in the backend. Never encoded: the backend's key is the key's own text.
    pub(super) fn path(&self, key: &StoreKey) -> Result<Path, StoreError> {
        self.parse_path(key.as_str())
    }

    /// As [`Self::path`], for a prefix.
    pub(super) fn directory(&self, prefix: &StorePrefix) -> Result<Path, StoreError> {
        self.parse_path(prefix.as_str())
    }

    pub(super) fn parse_path(&self, text: &str) -> Result<Path, StoreError> {
        let Ok(path) = Path::parse(format!("{}{text}", self.prefix)) else {
            return Err(StoreError::InvalidKey("the backend does not take such keys"));
        };
        Ok(path)
    }

    /// The key of a path in the backend; `None` if it does not belong to this store.
    pub(super) fn key(&self, path: &Path) -> Option<StoreKey> {
        let text = path.as_ref().strip_prefix(self.prefix.as_str())?;
        let is_probe = self.kind == StoreKind::HTTP && text.starts_with(PROBE);
        StoreKey::parse(text).ok().filter(|_| !is_probe && !self.is_reserved(text))
    }

    /// Whether a key belongs to the store itself, at any depth: one mount may lie below another.
    pub(super) fn is_reserved(&self, key: &str) -> bool {
        match self.kind {
            StoreKind::HTTP => has_segment(key, RECORDS),
            _ => is_reserved(key),
        }
    }

    /// A key of the store itself.
    pub(super) fn probe_path(&self, name: &str) -> Result<Path, StoreError> {
        match self.kind {
            StoreKind::HTTP => self.parse_path(&format!("{PROBE}{name}")),
            _ => self.parse_path(&format!("{RESERVED}/{name}")),
        }
    }

    /// Size, version and time of a value, from the backend's metadata.
    pub(super) fn info(&self, meta: &ObjectMeta) -> ValueInfo {
        let modified = Some(SystemTime::from(meta.last_modified)).filter(|time| *time != UNIX_EPOCH);
        let version = if let Some(tag) = meta.e_tag.as_deref().filter(|tag| !tag.is_empty()) {
            self.version(tag)
        } else {
            let tag = format!("{:x}-{:x}", meta.last_modified.timestamp_micros(), meta.size);
            if self.is_sole_writer() { Version::strong(&tag) } else { Version::weak(&tag) }
        };
        ValueInfo { size: meta.size, version, modified }
    }

    /// A version from an entity tag as the backend writes it: with quotes or without, weak or not.
    pub(super) fn version(&self, tag: &str) -> Version {
        let (tag, strong) = tag.strip_prefix("W/").map_or((tag, true), |tag| (tag, false));
        let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag);
        match &self.memory {
            Some(memory) => Version::strong(&format!("{}{tag}", memory.epoch)),
            // Where all writes are this server's, each gives the value another tag.
            None if strong || self.is_sole_writer() => Version::strong(tag),
            None => Version::weak(tag),
        }
    }

    /// A version as the backend writes it in conditions; `None` for a weak one, which matches nothing there.
    pub(super) fn tag(&self, version: &Version) -> Option<String> {
        let tag = match &self.memory {
            Some(memory) => version.tag().strip_prefix(memory.epoch.as_str())?,
            None => version.tag(),
        };
        // A tag that the web server calls weak matches no condition there.
        let is_heeded = !(self.is_sole_writer() && self.kind == StoreKind::HTTP);
        (version.is_strong() && is_heeded).then(|| format!("\"{tag}\""))
    }

    /// Excludes other writers of a store in memory.
    pub(super) async fn writers(&self) -> Option<MutexGuard<'_, ()>> {
        match &self.memory {
            Some(memory) => Some(memory.writers.lock().await),
            None => None,
        }
    }

    /// Whether no other program writes to the backend.
    pub(super) fn is_sole_writer(&self) -> bool {
        self.options.writers == Writers::One
    }

    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        if self.options.writable { Ok(()) } else { Err(StoreError::ReadOnly) }
    }

    /// `None` if the error means absence, or else the failure.
    pub(super) fn absence_or<T>(&self, error: object_store::Error) -> Result<Option<T>, StoreError> {
        match error {
            object_store::Error::NotFound { .. } => Ok(None),
            object_store::Error::PermissionDenied { .. } if self.options.missing_on_403 => Ok(None),
            error => Err(failure(error)),
        }
    }
}

#[async_trait]
impl Store for ObjectBackend {
    fn kind(&self) -> StoreKind {
        self.kind
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        if self.is_reserved(key.as_str()) {
            return Ok(None);
        }
        Ok(self.meta(key).await?.map(|meta| self.info(&meta)))
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        if self.is_reserved(key.as_str()) {
            return Ok(None);
        }
        self.read(key, range, if_match).await
    }

    fn held_by_set(&self, condition: &WriteCondition) -> u64 {
        self.held_by_write(condition)
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.check_writable()?;
        if self.is_reserved(key.as_str()) {
            return Err(StoreError::InvalidKey("its name belongs to the store itself"));
        }
        self.write(key, body, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.check_writable()?;
        if self.is_reserved(key.as_str()) {
            return condition.check(None).map(|()| false);
        }
        self.remove(key, &condition).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.check_writable()?;
        self.remove_prefix(prefix).await
    }

    /// The same backend below a reserved name. At a web server, records are kept by the only server that writes there.
    async fn own_area(&self, area: OwnArea) -> Result<SharedStore, StoreError> {
        self.check_writable()?;
        match (self.kind, area) {
            (StoreKind::HTTP, OwnArea::Uploads) => return Err(StoreError::NotSupported("uploads in parts")),
            (StoreKind::HTTP, OwnArea::Appends) if !self.is_sole_writer() => {
                return Err(StoreError::NotSupported("appending"));
            }
            _ => {}
        }
        let prefix = StorePrefix::parse(&format!("{}{}", self.prefix, area.prefix(self.kind)));
        let prefix =
            prefix.map_err(|_too_long| StoreError::InvalidKey("the prefix of the mount is too long"))?;
        Ok(Arc::new(Self { prefix, ..self.clone() }))
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.list_directly_under(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.list_all_under(prefix, after)
    }

    async fn heeds_conditions(&self) -> Result<bool, StoreError> {
        self.check_writable()?;
        if self.memory.is_some() || self.is_sole_writer() { Ok(true) } else { self.tries_conditions().await }
    }

    /// Requests a key that most stores have; its absence is a valid response, too.
    async fn check(&self) -> Result<(), StoreError> {
        let Ok(key) = StoreKey::parse("zarr.json") else { return Ok(()) };
        match self.meta(&key).await {
            // The response to HEAD has no document, which would say why.
            Err(refused) if is_unexplained(&refused) => {
                match self.get(&key, ByteRange::Bounded(0, 1), None).await {
                    Err(explained @ StoreError::Backend(_)) => Err(explained),
                    Ok(_) | Err(_) => Err(refused),
                }
            }
            outcome => outcome.map(drop),
        }
    }
}

impl Shortcuts for ObjectBackend {
    fn credentials(&self) -> Option<&'static str> {
        self.credentials
    }

    fn capabilities(&self) -> Capabilities {
        match self.kind {
            StoreKind::MEMORY => Capabilities::MEMORY,
            _ => Capabilities { sole_writer: self.is_sole_writer(), ..Capabilities::REMOTE },
        }
    }

    /// Values in this process's memory are checked without I/O.
    fn validate_cached(&self, key: &StoreKey, version: Option<&Version>) -> bool {
        let head = || self.head(key).now_or_never()?.ok();
        self.memory.is_some() && head().is_some_and(|info| info.as_ref().map(|info| &info.version) == version)
    }

    fn signed_url<'a>(
        &'a self,
        key: &'a StoreKey,
        is_head: bool,
        good_for: Duration,
    ) -> Option<BoxFuture<'a, Result<String, StoreError>>> {
        let signer = self.signer.as_ref().filter(|_| !self.is_reserved(key.as_str()))?;
        let method = if is_head { Method::HEAD } else { Method::GET };
        let signed = async move {
            let path = self.path(key)?;
            let url = signer.signed_url(method, &path, good_for).await.map_err(failure)?;
            Ok(String::from(url))
        };
        Some(signed.boxed())
    }
}
