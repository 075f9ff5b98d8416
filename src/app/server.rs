//! [`App`]: everything that a configuration gives, from stores to listeners.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::access::access;
use super::banner::{self, MountLine, PublicAddress, RootLine};
use super::browser;
use super::connection_timeouts::ConnectionLimits;
use super::error::AppError;
use super::mounts::{AlreadyServed, MountOpener, ServedMount};
use super::serve::{self, BoundListener};
use super::shutdown::{self, Phase, Shutdown, Signals};
use super::tls::Tls;
use super::{descriptors, freed_memory, memory_pressure};
use crate::array::{DirectSource, Reader};
use crate::cache::{BoundedNodeCache, CachedSource, Caches, DiskCache, EncodedCache, StaleCache, ValueCache};
use crate::config::{self, Config, ConfigError, MemoryBound, TlsError, TlsOptions};
use crate::cpu::ComputePool;
use crate::metrics::ProcessMetrics;
use crate::services::{AppState, ArrayEngine, MemoryInfo, Mount};
use crate::store::{ContainerBudget, OpenBudgets};
use crate::web::Endpoint;
use crate::write::{AppendWriter, ArrayWriter};

/// A server, ready to run.
#[derive(Debug)]
pub struct App {
    pub(super) config: Config,
    pub(super) state: AppState,
    pub(super) opener: MountOpener,
    pub(super) served: Vec<ServedMount>,
    /// The addresses of mounts that have listeners, by the names of the mounts.
    pub(super) listens: BTreeMap<String, SocketAddr>,
    pub(super) tls: Option<Tls>,
    /// Whether a browser is opened once the server listens.
    opens_page: bool,
}

impl App {
    /// Opens every mount. Without any, the demo is served. No backend is contacted yet: one that is down appears in the log once
    /// the server runs, and in `/readyz`.
    ///
    /// # Errors
    /// [`AppError`], except those of listeners.
    pub async fn build(config: Config) -> Result<Self, AppError> {
        // TLS towards backends. It fails if a provider is installed already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cpu = ComputePool::new(config.cpu)?;
        let lookup_bytes = config.cache.lookup_bytes();
        let values = ValueCache::new(config.cache.value_size.saturating_sub(lookup_bytes));
        let stale = StaleCache::new(lookup_bytes);
        let budgets = OpenBudgets {
            zip: ContainerBudget::new(config.cache.zip_directory_size),
            references: ContainerBudget::new(config.cache.references_size),
        };
        let disk = DiskCache::open(&config.cache.disk)?;
        if let Some(disk) = &disk {
            stale.keep_in(disk);
        }
        let mut opener =
            MountOpener::new(cpu.clone(), (values.clone(), stale.clone()), disk.clone(), budgets);
        let served = opener.open(&config, AlreadyServed::NONE).await?;
        let mut http = config.http.clone();
        http.image = config.image;
        http.trusted_proxies.clone_from(&config.server.trusted_proxies);
        http.ui = config.server.ui;
        let state = AppState::new(mounts_of(&served), arrays(&config, cpu, (values, stale), disk), http)?;
        state.access.set_rules(access(&config)?);
        state.lifecycle.set_memory(memory_info(&config));
        let certificate = config.server.tls.as_ref().map(TlsOptions::load).transpose()?;
        let tls = certificate.map(Tls::new).transpose().map_err(TlsError::from)?;
        let listens = config.mounts.iter().filter_map(|(name, mount)| Some((name.clone(), mount.listen?)));
        let listens = listens.collect();
        Ok(Self { config, state, opener, served, listens, tls, opens_page: false })
    }

    /// The endpoint of the server's own address.
    #[must_use]
    pub fn site(&self) -> Endpoint {
        Endpoint::whole(self.state.clone())
    }

    /// Opens the page of the data in a browser once the server listens.
    #[must_use]
    pub fn with_page_opened(self, opens_page: bool) -> Self {
        Self { opens_page, ..self }
    }

    /// Adds metrics of the process to `/metrics`.
    #[must_use]
    pub fn with_process_metrics(self, metrics: ProcessMetrics) -> Self {
        self.state.counts.set_process_metrics(metrics);
        self
    }

    /// The endpoint of the admin listener.
    #[must_use]
    pub fn admin_site(&self) -> Endpoint {
        Endpoint::admin(&self.state)
    }

    /// Binds every address, prints the banner to standard output, and serves until a signal ends it. On SIGHUP, `read` gives the
    /// new configuration, and what can change at run time is changed.
    ///
    /// # Errors
    /// [`AppError::Bind`], [`AppError::Signals`].
    pub async fn run<F>(self, read: F) -> Result<(), AppError>
    where
        F: Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    {
        // Before the address is known to anyone: an early signal must be handled, too.
        let signals = Signals::catch().map_err(AppError::Signals)?;
        let hangups = shutdown::hangups().map_err(AppError::Signals)?;
        let (address, listener) = bind(self.config.server.listen).await.map_err(with_port)?;
        let listening = |listener, routes| BoundListener { listener, routes, tls: self.tls.clone() };
        let scheme = self.scheme();
        let whole = self.site();
        let (mut sites, mut roots) = (vec![listening(listener, whole.clone())], Vec::new());
        for (name, mount) in &self.config.mounts {
            roots.extend(mount.hosts.iter().map(|host| banner::root_of_host(scheme, name, host, address)));
            let site = Endpoint::for_mount(&self.state, name);
            if let (Some(listen), Some(site)) = (mount.listen, site) {
                let (address, listener) = bind(listen).await?;
                sites.push(listening(listener, site));
                roots.push(banner::root_of_listener(scheme, name, address));
            }
        }
        let mut admin = None;
        if let Some(listen) = self.config.server.admin_listen {
            let (address, listener) = bind(listen).await?;
            sites.push(BoundListener { tls: None, ..listening(listener, self.admin_site()) });
            admin = Some(address);
        }
        self.announce(address, &roots, admin);

        let mut server = self.config.server.clone();
        server.max_connections = descriptors::raise_limit(server.max_connections);
        let limits = ConnectionLimits::new(server, self.config.http.max_headers);
        let shutdown = Shutdown::default();
        let changing = sites.iter().map(|listening| listening.routes.clone()).collect();
        let serving = serve::serve_all(sites, limits, shutdown.clone());
        let memory = self.config.memory.limit;
        let disk = self.opener.disk.clone();
        tokio::select! {
            () = serving => {}
            () = signals.advance(&shutdown) => {}
            () = drain_readiness(&whole, &shutdown) => {}
            () = watch_memory(&whole, memory) => {}
            () = expire_uploads(&whole) => {}
            () = self.follow(hangups, read, changing) => {}
        }
        if let Some(disk) = disk {
            disk.close();
        }
        tracing::info!("stopped");
        Ok(())
    }

    /// The scheme of the URLs at which the server is.
    fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    fn announce(&self, address: SocketAddr, roots: &[RootLine], admin: Option<SocketAddr>) {
        let front = PublicAddress { scheme: self.scheme(), address, base_path: &self.config.http.base_path };
        let lines: Vec<MountLine> = self
            .served
            .iter()
            .map(|served| MountLine::new(&served.mount, served.url(), &self.config))
            .collect();
        let text = banner::text(front, &lines, roots, admin, &self.config);
        // Standard output may be closed; that is no reason not to serve.
        let _ = std::io::stdout().write_all(text.as_bytes());
        if self.opens_page
            && let Some(page) = banner::page(front, &self.config)
            && !browser::open(&page)
        {
            tracing::warn!("no program was found that opens {page} in a browser");
        }
        tracing::info!(%address, mounts = lines.len(), "listening");
        tracing::debug!("memory: at most {}", MemoryBound::from_config(&self.config));
        if let Some(warning) = self.config.server.warning() {
            tracing::warn!("{warning}");
        }
        // A backend that is down is logged once, and delays no other.
        let state = self.state.clone();
        tokio::spawn(async move { state.readiness.check().await });
    }
}

/// A listener, and its actual address.
async fn bind(address: SocketAddr) -> Result<(SocketAddr, TcpListener), AppError> {
    let listener = TcpListener::bind(address).await.map_err(|source| AppError::Bind { address, source })?;
    Ok((listener.local_addr().unwrap_or(address), listener))
}

/// The error of the server's own address, with the flag that chooses another port if this one is in use.
fn with_port(error: AppError) -> AppError {
    match error {
        AppError::Bind { address, source } if source.kind() == ErrorKind::AddrInUse => {
            let source =
                std::io::Error::new(source.kind(), format!("{source}; choose another with `--port`"));
            AppError::Bind { address, source }
        }
        error => error,
    }
}

/// Sets `/readyz` to draining when the shutdown begins; never ends itself.
async fn drain_readiness(site: &Endpoint, shutdown: &Shutdown) {
    shutdown.reached(Phase::Draining).await;
    tracing::info!("stopping: no new connections");
    site.state().lifecycle.set_draining();
    std::future::pending::<()>().await;
}

/// Evicts caches and rejects requests when memory is short; never ends.
async fn watch_memory(site: &Endpoint, limit: Option<u64>) {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    let evict = || {
        let state = site.state();
        state.responses.evict_half();
        state.engine.caches.evict_half();
    };
    let set = |pressure| site.state().lifecycle.set_pressure(pressure);
    memory_pressure::watch(limit, config::resident_bytes, freed_memory::return_all, evict, set).await;
}

/// The interval at which uploads that have expired are aborted.
const UPLOADS_TICK: Duration = Duration::from_mins(10);

/// Aborts uploads in parts that have expired; never ends.
async fn expire_uploads(site: &Endpoint) {
    loop {
        tokio::time::sleep(UPLOADS_TICK).await;
        let state = site.state();
        for mount in state.mounts.iter() {
            if let Err(error) = state.uploads.expire(&state.options.uploads, mount).await {
                tracing::debug!(%error, mount = mount.name, "the unfinished uploads could not be listed");
            }
        }
    }
}

/// The mounts of what is served.
pub(super) fn mounts_of(served: &[ServedMount]) -> Vec<Mount> {
    served.iter().map(|served| served.mount.clone()).collect()
}

/// The memory that a configuration uses.
fn memory_info(config: &Config) -> MemoryInfo {
    MemoryInfo {
        total_bytes: config.memory.total_and_share().map(|(total, _)| total),
        most_bytes: MemoryBound::from_config(config).bytes(),
        connection_bytes: MemoryBound::CONNECTION_BYTES,
        budgets: config.budgets().into_iter().chain(config.disk_budget()).collect(),
    }
}

/// The engine that decodes arrays, with its caches.
fn arrays(
    config: &Config,
    cpu: ComputePool,
    (values, stale): (ValueCache, StaleCache),
    disk: Option<DiskCache>,
) -> ArrayEngine {
    let source = Arc::new(DirectSource::new(cpu.clone(), config.fetch));
    let source = CachedSource::new(source, &config.cache);
    let nodes = BoundedNodeCache::new(config.cache.node_size);
    let encoded = EncodedCache::new(config.cache.encoded_size).with_disk(disk.clone());
    // The disk first: what is read from it in the meantime is purged by those after it.
    let caches = disk.into_iter().fold(Caches::default(), Caches::and);
    // Values and lookups last: what is derived from them is purged by then.
    let caches = caches.and(source.clone()).and(nodes.clone()).and(encoded.clone()).and(values).and(stale);
    let writer = ArrayWriter::new(cpu.clone(), config.write, config::unix_seconds);
    ArrayEngine {
        reader: Reader::new(Arc::new(source), cpu.clone()),
        appends: AppendWriter::new(writer.clone(), cpu.clone()),
        writer,
        cpu,
        memo: Arc::new(nodes),
        answers_bytes: config.cache.response_bytes(),
        encoded,
        caches,
        read: config.read,
        pyramid: config.pyramid,
        metadata: config.limits.metadata(),
        codec: config.limits.codec(),
    }
}
