//! [`AppState`]: what every handler may reach: the mounts, the options, admission and readiness.
//!
//! Cheap to clone; everything stands behind one `Arc`. It is built once and checked as it is built.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::access::{Access, FailedAuthLimiter};
use super::admission::{Admission, Load, RateLimiter};
use super::cache_control::CacheControl;
use super::host;
use super::kept::CachedResponse;
use super::memory::MemoryInfo;
use super::metrics::{BackendCounts, Counts, ProcessMetrics};
use super::options::{HttpOptions, HttpOptionsError};
use super::pressure::{MemoryPressure, PressureCell};
use super::router;
use super::shared_text::SharedTexts;
use super::trouble::trouble_of;
use super::views::{Viewed, rechunker};
use crate::array::{NodeCache, NodeOpener, ReadLimits, Reader};
use crate::cache::{Caches, EncodedCache, ResponseCache};
use crate::codec::CodecLimits;
use crate::cpu::ComputePool;
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::Hierarchy;
use crate::key::StorePrefix;
use crate::metadata::{MetadataLimits, Separator};
use crate::store::{BackendState, SharedStore};
use crate::views::ViewKind;
use crate::views::rechunk::{RechunkBudget, Rechunker};

/// For how long an answer of a backend about its readiness is believed.
const READINESS_AGE: Duration = Duration::from_secs(1);

/// The methods offered for keys and prefixes of every mount.
const STORE_READ_METHODS: &str = "GET, HEAD, OPTIONS, PROPFIND";

/// A store under a name.
#[derive(Clone, Debug)]
pub struct Mount {
    /// The name in URLs: 1 to 64 of `A-Z a-z 0-9 - _ . ~`.
    pub name: String,
    /// What its values are remembered under: its name, or another where a store of the name was served before that differs.
    pub remembered_as: Arc<str>,
    /// The store.
    pub store: SharedStore,
    /// Whether PUT, PATCH and DELETE are offered.
    pub writable: bool,
    /// Whether DELETE of a prefix is offered too.
    pub allow_prefix_delete: bool,
    /// `Cache-Control` of its answers.
    pub cache_control: CacheControl,
    /// What stands in the chunks' keys of v2 arrays whose documents do not say; `None` to look for it.
    pub dimension_separator: Option<Separator>,
    /// Whether groups that have no consolidated metadata are answered with some.
    pub consolidated: bool,
    /// The names of hosts (as in `Host`, without a port) at which this is the store at the root path.
    pub hosts: Vec<String>,
    /// What its backend was asked, as whoever made the store has it counted.
    pub backend: Arc<BackendCounts>,
    /// For how long a URL is good that sends whoever reads a stored value to the backend; `None` to answer here.
    pub redirect: Option<Duration>,
}

impl Mount {
    /// A mount that can only be read, whose values are revalidated at each use.
    #[must_use]
    pub fn read_only(name: impl Into<String>, store: SharedStore) -> Self {
        let name = name.into();
        Self {
            remembered_as: name.as_str().into(),
            name,
            store,
            writable: false,
            allow_prefix_delete: false,
            cache_control: CacheControl::default(),
            dimension_separator: None,
            consolidated: false,
            hosts: Vec::new(),
            backend: Arc::default(),
            redirect: None,
        }
    }

    /// The methods offered for a key.
    pub(super) fn key_methods(&self) -> &'static str {
        if self.writable {
            "GET, HEAD, PUT, PATCH, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE"
        } else {
            STORE_READ_METHODS
        }
    }

    /// The methods offered for a prefix.
    pub(super) fn prefix_methods(&self) -> &'static str {
        match (self.writable, self.allow_prefix_delete) {
            (true, true) => "GET, HEAD, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE",
            (true, false) => "GET, HEAD, OPTIONS, PROPFIND, MKCOL, COPY",
            (false, _) => STORE_READ_METHODS,
        }
    }

    /// Whether DELETE of a prefix is offered.
    pub(super) fn may_erase_prefixes(&self) -> bool {
        self.writable && self.allow_prefix_delete
    }

    /// Whether its backend answers in time.
    ///
    /// # Errors
    /// The kind of failure, and what it is in short words.
    pub async fn answers_within(&self, patience: Duration) -> Result<(), (ErrorClass, String)> {
        match timeout(patience, self.store.check()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err((error.class(), trouble_of(&error))),
            Err(_) => Err((ErrorClass::TimedOut, format!("no answer within {} ms", patience.as_millis()))),
        }
    }

    fn check(&self) -> Result<(), HttpOptionsError> {
        let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let dots = self.name == "." || self.name == "..";
        if dots || !(1..=64).contains(&self.name.len()) || !self.name.bytes().all(unreserved) {
            return Err(HttpOptionsError::MountName(self.name.clone()));
        }
        if let Some(host) = self.hosts.iter().find(|host| !host::is_host(host)) {
            return Err(HttpOptionsError::Host(host.clone()));
        }
        if self.cache_control.is_valid() {
            Ok(())
        } else {
            Err(HttpOptionsError::CacheControl(self.name.clone()))
        }
    }
}

/// What decodes arrays, for all mounts.
#[derive(Clone, Debug)]
pub struct ArrayEngine {
    /// Reads elements.
    pub reader: Reader,
    /// Where elements are rendered.
    pub cpu: ComputePool,
    /// Remembers opened nodes.
    pub memo: Arc<dyn NodeCache>,
    /// Bytes of small answers that are kept as they went out.
    pub answers_bytes: u64,
    /// Remembers chunks that were encoded anew.
    pub encoded: EncodedCache,
    /// All that is remembered by these, and by the stores.
    pub caches: Caches,
    /// What one request may cost.
    pub read: ReadLimits,
    /// What documents may be.
    pub metadata: MetadataLimits,
    /// What codecs may be asked to make.
    pub codec: CodecLimits,
}

#[cfg(test)]
impl ArrayEngine {
    /// Without caches, and with the default limits.
    pub(super) fn uncached() -> Self {
        let cpu = ComputePool::new(crate::cpu::ComputePoolOptions::default()).unwrap();
        let source =
            Arc::new(crate::array::DirectSource::new(cpu.clone(), crate::array::FetchOptions::default()));
        Self {
            reader: Reader::new(source, cpu.clone()),
            cpu,
            memo: Arc::new(crate::cache::BoundedNodeCache::new(0)),
            answers_bytes: 0,
            encoded: EncodedCache::new(0),
            caches: Caches::default(),
            read: ReadLimits::default(),
            metadata: MetadataLimits::default(),
            codec: CodecLimits::default(),
        }
    }
}

/// What every handler may reach.
#[derive(Clone, Debug)]
pub struct AppState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    mounts: BTreeMap<String, (Arc<Mount>, NodeOpener)>,
    /// The views of each mount, by its name.
    views: BTreeMap<String, Vec<Viewed>>,
    /// What rechunks each mount, by its name.
    rechunkers: BTreeMap<String, Rechunker>,
    /// By host name, in its canonical form.
    by_host: BTreeMap<String, Arc<Mount>>,
    answers: ResponseCache<CachedResponse>,
    shared_texts: SharedTexts,
    access: ArcSwap<Access>,
    /// The last answers of the backends, and when they were given; held while new ones are fetched.
    readiness: Mutex<Option<(Instant, Arc<Readiness>)>>,
    shared: Arc<SharedServices>,
}

/// What stays when the mounts change.
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

/// By mount name: whether its backend answers.
pub(super) type Readiness = BTreeMap<String, MountState>;

/// Whether a mount's backend answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MountState {
    /// It does.
    Ready,
    /// It does not, for this kind of reason.
    Unavailable(ErrorClass),
}

impl MountState {
    /// Whether it does.
    pub(super) fn is_ready(self) -> bool {
        self == Self::Ready
    }

    /// The state as a word.
    pub(super) fn as_str(self) -> &'static str {
        if self.is_ready() { "ready" } else { "unavailable" }
    }

    /// Why it does not, in a word.
    pub(super) fn why(self) -> Option<&'static str> {
        match self {
            Self::Ready => None,
            Self::Unavailable(class) => Some(class.name()),
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
        let counts = Counts::new(router::templates());
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

    /// The state of the same server with other mounts, and who may do what with them. What is under way goes on with those it
    /// began with. Keys of issuers that were fetched stay known.
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
            let remembered_as = Arc::clone(&mount.remembered_as);
            let opener = NodeOpener::new(remembered_as, hierarchy, arrays.codec, Arc::clone(&arrays.memo));
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
            // Those of other mounts are not to be found under the same URLs.
            answers: ResponseCache::new(arrays.answers_bytes),
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

    /// From the next request on, this says who may do what. Until the first time, everybody may do what mounts offer. Keys of
    /// issuers that were fetched stay known.
    pub fn set_access(&self, mut access: Access) {
        access.take_over_keys(&self.access());
        self.0.access.store(Arc::new(access));
    }

    /// Who may do what, to look at for a moment.
    pub(super) fn access(&self) -> impl std::ops::Deref<Target = Arc<Access>> {
        self.0.access.load()
    }

    /// Who may do what now.
    pub(super) fn access_now(&self) -> Arc<Access> {
        self.0.access.load_full()
    }

    /// How often callers failed to show who they are.
    pub(super) fn attempts(&self) -> &FailedAuthLimiter {
        &self.0.shared.attempts
    }

    /// From now on `/readyz` says that no new requests are wanted.
    pub fn set_draining(&self) {
        self.0.shared.draining.store(true, Ordering::Relaxed);
    }

    /// Whether [`AppState::set_draining`] was called.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0.shared.draining.load(Ordering::Relaxed)
    }

    /// Says how close the process is to the memory it may take.
    pub fn set_pressure(&self, pressure: MemoryPressure) {
        self.0.shared.pressure.set(pressure);
    }

    /// What was last said by [`AppState::set_pressure`].
    #[must_use]
    pub fn pressure(&self) -> MemoryPressure {
        self.0.shared.pressure.get()
    }

    /// Answers under way, and requests that wait or were turned away.
    #[must_use]
    pub fn load(&self) -> Load {
        self.0.shared.admission.load()
    }

    /// Whether a mount's backend is asked, and how much, by the mount's name; mounts without a backend elsewhere are left
    /// out.
    pub fn backend_states(&self) -> impl Iterator<Item = (&str, BackendState)> {
        self.mounts().filter_map(|mount| Some((mount.name.as_str(), mount.store.backend()?)))
    }

    /// Forgets about half of all that is remembered.
    pub fn evict_half(&self) {
        self.0.answers.forget_half();
        self.caches().forget_half();
    }

    /// Forgets what is remembered of stores that another state has, and this one has not.
    pub fn purge_removed_mounts(&self, other: &Self) {
        let is_served = |name: &Arc<str>| self.mounts().any(|mount| mount.remembered_as == *name);
        for mount in other.mounts().filter(|mount| !is_served(&mount.remembered_as)) {
            let _ = self.caches().forget(&mount.remembered_as, &StorePrefix::root());
        }
    }

    /// The mount of exactly this name.
    pub(super) fn mount(&self, name: &str) -> Option<&Arc<Mount>> {
        self.mount_and_opener(name).map(|(mount, _)| mount)
    }

    /// Whether any mount is the store at the root path of a host of its own.
    pub(super) fn has_hosts(&self) -> bool {
        !self.0.by_host.is_empty()
    }

    /// The mount that is the store at the root path of a host, by the host's canonical name.
    pub(super) fn mount_of_host(&self, host: &str) -> Option<&Arc<Mount>> {
        self.0.by_host.get(host)
    }

    /// All mounts, sorted by name.
    pub(super) fn mounts(&self) -> impl Iterator<Item = &Arc<Mount>> {
        self.0.mounts.values().map(|(mount, _)| mount)
    }

    /// The mount of exactly this name, and what opens its nodes.
    pub(super) fn mount_and_opener(&self, name: &str) -> Option<&(Arc<Mount>, NodeOpener)> {
        self.0.mounts.get(name)
    }

    /// The view of this kind of the mount of exactly this name.
    pub(super) fn viewed(&self, kind: ViewKind, name: &str) -> Option<&Viewed> {
        Viewed::of(self.0.views.get(name)?, kind)
    }

    /// What rechunks the mount of exactly this name.
    pub(super) fn rechunker(&self, name: &str) -> Option<&Rechunker> {
        self.0.rechunkers.get(name)
    }

    /// The nodes of a mount, or of a view of it.
    pub(super) fn hierarchy(&self, view: Option<ViewKind>, name: &str) -> Option<&Hierarchy> {
        match view {
            None => self.mount_and_opener(name).map(|(_, opener)| opener.hierarchy()),
            Some(kind) => self.viewed(kind, name).map(|viewed| &viewed.hierarchy),
        }
    }

    /// Small answers as they went out.
    pub(super) fn answers(&self) -> &ResponseCache<CachedResponse> {
        &self.0.answers
    }

    /// Long texts that are answers in flight.
    pub(super) fn shared_texts(&self) -> &SharedTexts {
        &self.0.shared_texts
    }

    /// What reads elements.
    pub(super) fn reader(&self) -> &Reader {
        &self.0.shared.arrays.reader
    }

    /// Where elements are rendered.
    pub(super) fn cpu(&self) -> &ComputePool {
        &self.0.shared.arrays.cpu
    }

    /// What documents may be.
    pub(super) fn metadata_limits(&self) -> MetadataLimits {
        self.0.shared.arrays.metadata
    }

    /// What codecs may be asked to make.
    pub(super) fn codec_limits(&self) -> CodecLimits {
        self.0.shared.arrays.codec
    }

    /// What one request may cost.
    pub(super) fn read_limits(&self) -> &ReadLimits {
        &self.0.shared.arrays.read
    }

    /// All that is remembered, but for answers.
    pub(super) fn caches(&self) -> &Caches {
        &self.0.shared.arrays.caches
    }

    /// What is counted.
    pub(super) fn counts(&self) -> &Counts {
        &self.0.shared.counts
    }

    /// From now on metrics say what is known of the process outside of this room, too.
    pub fn set_process_metrics(&self, surroundings: ProcessMetrics) {
        self.0.shared.counts.set_process_metrics(surroundings);
    }

    /// From now on `/v1/mounts` says how much memory is taken.
    pub fn set_memory(&self, memory: MemoryInfo) {
        // The first stays: it does not change while the server runs.
        let _ = self.0.shared.memory.set(memory);
    }

    /// How much memory is taken, if that was said.
    pub(super) fn memory(&self) -> Option<&MemoryInfo> {
        self.0.shared.memory.get()
    }

    /// Asks all backends whether they answer, and has the log name those that do not.
    pub async fn probe(&self) {
        self.readiness().await;
    }

    /// The gate for answers.
    pub(super) fn admission(&self) -> &Admission {
        &self.0.shared.admission
    }

    /// How much each caller may ask for, if there is a limit.
    pub(super) fn rates(&self) -> Option<&RateLimiter> {
        self.0.shared.rates.as_ref()
    }

    /// The deadline of a handler.
    pub(super) fn deadline(&self) -> Duration {
        self.0.shared.options.response_timeout
    }

    /// Whether each mount's backend answers; asked at most once a second, however many want to know.
    pub(super) async fn readiness(&self) -> Arc<Readiness> {
        let mut last = self.0.readiness.lock().await;
        if let Some((when, readiness)) = &*last
            && when.elapsed() < READINESS_AGE
        {
            return Arc::clone(readiness);
        }
        let before = last.as_ref().map(|(_, readiness)| Arc::clone(readiness)).unwrap_or_default();
        let patience = self.0.shared.options.readiness_timeout;
        // As many at a time as the configuration has mounts.
        let checks = self.mounts().map(|mount| {
            let before = before.get(&mount.name).copied();
            async move {
                let (state, cause) = match mount.answers_within(patience).await {
                    Ok(()) => (MountState::Ready, String::new()),
                    Err((class, cause)) => (MountState::Unavailable(class), cause),
                };
                // Whoever asks often fills no log.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_store::TestStore;

    fn named(name: &str) -> Mount {
        Mount::read_only(name, TestStore::new())
    }

    #[test]
    fn mounts_must_have_names_that_can_stand_in_a_url_each_once() {
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
