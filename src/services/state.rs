//! [`AppState`]: the state that all handlers share: the mounts, the options, admission and readiness.
//!
//! Clones are cheap: they share one `Arc`. The state is built once and checked while it is built.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::engine::ArrayEngine;
use super::memory_info::MemoryInfo;
use super::mount::Mount;
use super::response_cache::CachedResponse;
use super::shared_text::SharedTexts;
use super::views::{Viewed, rechunker};
use crate::admission::memory_pressure::{MemoryPressure, PressureCell};
use crate::admission::{Admission, Load, RateLimiter};
use crate::array::{NodeOpener, ReadLimits, Reader};
use crate::auth::origin::OriginRules;
use crate::auth::{Access, Authorizer, FailedAuthLimiter, MountLookup};
use crate::cache::{Caches, ResponseCache};
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::error::ErrorClass;
use crate::hierarchy::Hierarchy;
use crate::http::host;
use crate::http::options::{HttpOptions, HttpOptionsError};
use crate::key::StorePrefix;
use crate::metadata::MetadataLimits;
use crate::metrics::{Counts, ProcessMetrics};
use crate::store::BackendState;
use crate::views::ViewKind;
use crate::views::rechunk::{RechunkBudget, Rechunker};

/// The time for which a readiness result stays valid.
const READINESS_AGE: Duration = Duration::from_secs(1);

/// The state that all handlers share.
#[derive(Clone, Debug)]
pub struct AppState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    mounts: BTreeMap<String, (Arc<Mount>, NodeOpener)>,
    /// The views of each mount, by its name.
    views: BTreeMap<String, Vec<Viewed>>,
    /// The rechunker of each mount, by its name.
    rechunkers: BTreeMap<String, Rechunker>,
    /// The mounts by host name, in canonical form.
    by_host: BTreeMap<String, Arc<Mount>>,
    answers: ResponseCache<CachedResponse>,
    /// The ranges of sampled arrays, by a digest of what they were read from.
    ranges: ResponseCache<(f64, f64)>,
    shared_texts: SharedTexts,
    access: ArcSwap<Access>,
    /// The last readiness results and their time; locked while new ones are fetched.
    readiness: Mutex<Option<(Instant, Arc<Readiness>)>>,
    shared: Arc<SharedServices>,
}

/// The services that stay when the mounts change.
#[derive(Debug)]
struct SharedServices {
    arrays: ArrayEngine,
    counts: Counts,
    options: HttpOptions,
    admission: Admission,
    rates: Option<RateLimiter>,
    pressure: PressureCell,
    attempts: FailedAuthLimiter,
    draining: AtomicBool,
    room: RechunkBudget,
    memory: OnceLock<MemoryInfo>,
}

/// Size in bytes of the cache of ranges.
const RANGES_BYTES: u64 = 1 << 20;

/// The readiness of each mount's backend, by mount name.
pub(crate) type Readiness = BTreeMap<String, MountState>;

/// The readiness of a mount's backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MountState {
    /// The backend responds.
    Ready,
    /// The backend fails with this class of error.
    Unavailable(ErrorClass),
}

impl MountState {
    /// Whether the backend responds.
    pub(crate) fn is_ready(self) -> bool {
        self == Self::Ready
    }

    /// The state as a word.
    pub(crate) fn as_str(self) -> &'static str {
        if self.is_ready() { "ready" } else { "unavailable" }
    }

    /// The class of the failure, as a word.
    pub(crate) fn why(self) -> Option<&'static str> {
        match self {
            Self::Ready => None,
            Self::Unavailable(class) => Some(class.as_str()),
        }
    }
}

impl AppState {
    /// The state of a server with these mounts.
    ///
    /// # Errors
    /// [`HttpOptionsError`] if options or mounts cannot be served.
    pub fn new(
        mounts: impl IntoIterator<Item = Mount>,
        arrays: ArrayEngine,
        options: HttpOptions,
    ) -> Result<Self, HttpOptionsError> {
        options.check()?;
        let counts = Counts::new();
        let arrays = ArrayEngine { reader: arrays.reader.with_observer(counts.reads()), ..arrays };
        let shared = SharedServices {
            room: RechunkBudget::new(arrays.cpu.threads()),
            arrays,
            counts,
            admission: Admission::new(&options),
            rates: RateLimiter::new(options.rate_limit),
            options,
            pressure: PressureCell::default(),
            attempts: FailedAuthLimiter::default(),
            draining: AtomicBool::new(false),
            memory: OnceLock::new(),
        };
        Self::over(Arc::new(shared), mounts, Access::open())
    }

    /// The state of the same server with other mounts and other access rules. Requests in flight end with the mounts
    /// that they began with. Fetched keys of issuers are kept.
    ///
    /// # Errors
    /// [`HttpOptionsError`] if the mounts cannot be served; nothing has changed then.
    pub fn with_mounts(
        &self,
        mounts: impl IntoIterator<Item = Mount>,
        mut access: Access,
    ) -> Result<Self, HttpOptionsError> {
        access.take_over_keys(&self.access());
        Self::over(Arc::clone(&self.0.shared), mounts, access)
    }

    fn over(
        shared: Arc<SharedServices>,
        mounts: impl IntoIterator<Item = Mount>,
        access: Access,
    ) -> Result<Self, HttpOptionsError> {
        let (mut by_name, mut by_host) = (BTreeMap::new(), BTreeMap::new());
        let (mut views, mut rechunkers) = (BTreeMap::new(), BTreeMap::new());
        let arrays = &shared.arrays;
        for mount in mounts {
            mount.check()?;
            let hierarchy = Hierarchy::new(Arc::clone(&mount.store), arrays.metadata, arrays.cpu.clone())
                .with_separator(mount.dimension_separator);
            let cached_as = Arc::clone(&mount.remembered_as);
            let opener = NodeOpener::new(cached_as, hierarchy, arrays.codec, Arc::clone(&arrays.memo));
            views.insert(mount.name.clone(), Viewed::all(&mount, &opener, arrays));
            rechunkers.insert(mount.name.clone(), rechunker(&mount, &opener, arrays, &shared.room));
            let mount = Arc::new(mount);
            for host in &mount.hosts {
                if by_host.insert(host::canonical(host), Arc::clone(&mount)).is_some() {
                    return Err(HttpOptionsError::DuplicateHost(host.clone()));
                }
            }
            if let Some((twin, _)) = by_name.insert(mount.name.clone(), (mount, opener)) {
                return Err(HttpOptionsError::DuplicateMount(twin.name.clone()));
            }
        }
        shared.counts.know_mounts(by_name.keys().map(String::as_str));
        Ok(Self(Arc::new(Inner {
            mounts: by_name,
            views,
            rechunkers,
            by_host,
            // Responses of other mounts must not be found under the same URLs.
            answers: ResponseCache::new(arrays.answers_bytes),
            ranges: ResponseCache::new(RANGES_BYTES),
            shared_texts: SharedTexts::default(),
            access: ArcSwap::from_pointee(access),
            readiness: Mutex::new(None),
            shared,
        })))
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &HttpOptions {
        &self.0.shared.options
    }

    /// Replaces the access rules from the next request on. Before the first call, every caller may do what mounts
    /// offer. Fetched keys of issuers are kept.
    pub fn set_access(&self, mut access: Access) {
        access.take_over_keys(&self.access());
        self.0.access.store(Arc::new(access));
    }

    /// The current access rules, for a short borrow.
    pub(crate) fn access(&self) -> impl std::ops::Deref<Target = Arc<Access>> {
        self.0.access.load()
    }

    /// The counts of failed authentications.
    pub(crate) fn attempts(&self) -> &FailedAuthLimiter {
        &self.0.shared.attempts
    }

    /// Makes `/readyz` report that the server accepts no new requests.
    pub fn set_draining(&self) {
        self.0.shared.draining.store(true, Ordering::Relaxed);
    }

    /// Whether [`AppState::set_draining`] was called.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0.shared.draining.load(Ordering::Relaxed)
    }

    /// Sets how close the process is to its memory limit.
    pub fn set_pressure(&self, pressure: MemoryPressure) {
        self.0.shared.pressure.set(pressure);
    }

    /// The value of the last [`AppState::set_pressure`].
    #[must_use]
    pub fn pressure(&self) -> MemoryPressure {
        self.0.shared.pressure.get()
    }

    /// The load of admission: responses in flight, waiting and rejected requests.
    #[must_use]
    pub fn load(&self) -> Load {
        self.0.shared.admission.load()
    }

    /// The state of each backend, by the mount's name; mounts without a remote backend are left out.
    pub fn backend_states(&self) -> impl Iterator<Item = (&str, BackendState)> {
        self.mounts().filter_map(|mount| Some((mount.name.as_str(), mount.store.backend()?)))
    }

    /// Evicts about half of all cache entries.
    pub fn evict_half(&self) {
        self.0.answers.evict_half();
        self.caches().evict_half();
    }

    /// Purges the caches of stores that `other` has and this state has not.
    pub fn purge_removed_mounts(&self, other: &Self) {
        let is_served = |name: &Arc<str>| self.mounts().any(|mount| mount.remembered_as == *name);
        for mount in other.mounts().filter(|mount| !is_served(&mount.remembered_as)) {
            let _ = self.caches().purge(&mount.remembered_as, &StorePrefix::root());
        }
    }

    /// The mount of exactly this name.
    pub(crate) fn mount(&self, name: &str) -> Option<&Arc<Mount>> {
        self.mount_and_opener(name).map(|(mount, _)| mount)
    }

    /// Whether any mount is served at the root path of a host.
    pub(crate) fn has_hosts(&self) -> bool {
        !self.0.by_host.is_empty()
    }

    /// The mount at the root path of a host, by the host's canonical name.
    pub(crate) fn mount_of_host(&self, host: &str) -> Option<&Arc<Mount>> {
        self.0.by_host.get(host)
    }

    /// All mounts, sorted by name.
    pub(crate) fn mounts(&self) -> impl Iterator<Item = &Arc<Mount>> {
        self.0.mounts.values().map(|(mount, _)| mount)
    }

    /// The mount of exactly this name, with the opener of its nodes.
    pub(crate) fn mount_and_opener(&self, name: &str) -> Option<&(Arc<Mount>, NodeOpener)> {
        self.0.mounts.get(name)
    }

    /// Calls `check` with the rules that decide which hosts and origins are the server's own.
    pub(crate) fn with_origin_rules<T>(&self, check: impl FnOnce(&OriginRules<'_>) -> T) -> T {
        let serves_host = |host: &str| self.mount_of_host(host).is_some();
        check(&OriginRules { options: self.options(), serves_host: &serves_host })
    }

    /// The authorizer of requests.
    pub(crate) fn authorizer(&self) -> Authorizer<'_> {
        Authorizer { access: &self.0.access, failures: self.attempts(), mounts: self }
    }

    /// The view of this kind of the mount of exactly this name.
    pub(crate) fn viewed(&self, kind: ViewKind, name: &str) -> Option<&Viewed> {
        Viewed::of(self.0.views.get(name)?, kind)
    }

    /// The rechunker of the mount of exactly this name.
    pub(crate) fn rechunker(&self, name: &str) -> Option<&Rechunker> {
        self.0.rechunkers.get(name)
    }

    /// The hierarchy of a mount, or of a view of it.
    pub(crate) fn hierarchy(&self, view: Option<ViewKind>, name: &str) -> Option<&Hierarchy> {
        match view {
            None => self.mount_and_opener(name).map(|(_, opener)| opener.hierarchy()),
            Some(kind) => self.viewed(kind, name).map(|viewed| &viewed.hierarchy),
        }
    }

    /// The cache of small responses.
    pub(crate) fn answers(&self) -> &ResponseCache<CachedResponse> {
        &self.0.answers
    }

    /// The ranges of sampled arrays, by a digest of what they were read from.
    pub(crate) fn ranges(&self) -> &ResponseCache<(f64, f64)> {
        &self.0.ranges
    }

    /// The long texts that responses in flight share.
    pub(crate) fn shared_texts(&self) -> &SharedTexts {
        &self.0.shared_texts
    }

    /// The reader of elements.
    pub(crate) fn reader(&self) -> &Reader {
        &self.0.shared.arrays.reader
    }

    /// The pool that renders elements.
    pub(crate) fn cpu(&self) -> &ComputePool {
        &self.0.shared.arrays.cpu
    }

    /// Limits on metadata documents.
    #[cfg_attr(not(feature = "vectors"), expect(dead_code, reason = "only `/v1/vectors` uses it"))]
    pub(crate) fn metadata_limits(&self) -> MetadataLimits {
        self.0.shared.arrays.metadata
    }

    /// Limits on the output of codecs.
    #[cfg_attr(not(feature = "vectors"), expect(dead_code, reason = "only `/v1/vectors` uses it"))]
    pub(crate) fn codec_limits(&self) -> CodecLimits {
        self.0.shared.arrays.codec
    }

    /// Limits on the cost of one request.
    pub(crate) fn read_limits(&self) -> &ReadLimits {
        &self.0.shared.arrays.read
    }

    /// All caches, except that of responses.
    pub(crate) fn caches(&self) -> &Caches {
        &self.0.shared.arrays.caches
    }

    /// The metrics.
    pub(crate) fn counts(&self) -> &Counts {
        &self.0.shared.counts
    }

    /// Sets the source of process metrics, which the exposition then includes.
    pub fn set_process_metrics(&self, surroundings: ProcessMetrics) {
        self.0.shared.counts.set_process_metrics(surroundings);
    }

    /// Sets the memory bounds that `/v1/mounts` reports.
    pub fn set_memory(&self, memory: MemoryInfo) {
        // The first call wins: the bounds do not change while the server runs.
        let _ = self.0.shared.memory.set(memory);
    }

    /// The memory bounds, if they were set.
    pub(crate) fn memory(&self) -> Option<&MemoryInfo> {
        self.0.shared.memory.get()
    }

    /// Checks all backends, and logs those that fail.
    pub async fn probe(&self) {
        self.readiness().await;
    }

    /// The admission of responses.
    pub(crate) fn admission(&self) -> &Admission {
        &self.0.shared.admission
    }

    /// The rate limits of callers, if there are any.
    pub(crate) fn rates(&self) -> Option<&RateLimiter> {
        self.0.shared.rates.as_ref()
    }

    /// The deadline of a handler.
    pub(crate) fn deadline(&self) -> Duration {
        self.0.shared.options.response_timeout
    }

    /// The readiness of each mount's backend; backends are checked at most once a second, whatever the number of
    /// requests.
    pub(crate) async fn readiness(&self) -> Arc<Readiness> {
        let mut last = self.0.readiness.lock().await;
        if let Some((when, readiness)) = &*last
            && when.elapsed() < READINESS_AGE
        {
            return Arc::clone(readiness);
        }
        let before = last.as_ref().map(|(_, readiness)| Arc::clone(readiness)).unwrap_or_default();
        let max_wait = self.0.shared.options.readiness_timeout;
        // As many at a time as the configuration has mounts.
        let checks = self.mounts().map(|mount| {
            let before = before.get(&mount.name).copied();
            async move {
                let (state, cause) = match mount.answers_within(max_wait).await {
                    Ok(()) => (MountState::Ready, String::new()),
                    Err((class, cause)) => (MountState::Unavailable(class), cause),
                };
                // Only changes are logged, so that frequent requests do not fill the log.
                if before.is_none_or(MountState::is_ready) && !state.is_ready() {
                    tracing::warn!(mount = mount.name, cause, "mount is not ready");
                } else if before.is_some_and(|before| !before.is_ready()) && state.is_ready() {
                    tracing::info!(mount = mount.name, "mount is ready again");
                }
                (mount.name.clone(), state)
            }
        });
        let readiness = Arc::new(join_all(checks).await.into_iter().collect());
        *last = Some((Instant::now(), Arc::clone(&readiness)));
        readiness
    }
}

impl MountLookup for AppState {
    fn opener(&self, mount: &str) -> Option<&NodeOpener> {
        self.mount_and_opener(mount).map(|(_, opener)| opener)
    }

    fn is_consolidated(&self, mount: &str) -> bool {
        self.mount(mount).is_some_and(|mount| mount.consolidated)
    }

    fn erases_prefixes(&self, mount: &str) -> bool {
        self.mount(mount).is_some_and(|mount| mount.may_erase_prefixes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::test_store::TestStore;

    fn named(name: &str) -> Mount {
        Mount::read_only(name, TestStore::new())
    }

    #[test]
    fn mounts_need_unique_names_that_are_valid_in_urls() {
        let state = |mounts: Vec<Mount>| {
            AppState::new(mounts, ArrayEngine::uncached(), HttpOptions::default()).map(|_| ())
        };
        for name in ["", ".", "..", "a/b", "a b", "é", "a%20", &"x".repeat(65)] {
            assert_eq!(state(vec![named(name)]), Err(HttpOptionsError::MountName(name.to_owned())));
        }
        assert_eq!(
            state(vec![named("a"), named("a")]),
            Err(HttpOptionsError::DuplicateMount("a".to_owned()))
        );
        assert_eq!(state(vec![named("a"), named("A"), named("x.y_z~-1")]), Ok(()));
        let mut odd = named("a");
        odd.cache_control.chunks = "a\nb".to_owned();
        assert_eq!(state(vec![odd]), Err(HttpOptionsError::CacheControl("a".to_owned())));
    }

    #[test]
    fn a_host_belongs_to_one_mount() {
        let state = |hosts: [&str; 2]| {
            let mounts = hosts.iter().zip(["a", "b"]);
            let mounts = mounts.map(|(host, name)| Mount { hosts: vec![(*host).to_owned()], ..named(name) });
            AppState::new(mounts, ArrayEngine::uncached(), HttpOptions::default()).map(|_| ())
        };
        assert_eq!(state(["a.example", "b.example"]), Ok(()));
        for twin in ["a.example", "A.Example", "a.example."] {
            assert_eq!(state(["a.example", twin]), Err(HttpOptionsError::DuplicateHost(twin.to_owned())));
        }
        for odd in ["", "a.example:80", "http://a.example", "a b", "*", "a/b", "user@a"] {
            assert_eq!(state(["a.example", odd]), Err(HttpOptionsError::Host(odd.to_owned())));
        }
    }
}
