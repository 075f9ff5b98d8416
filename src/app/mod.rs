//! The house, put together: configuration → stores → routes, and the loop that serves them.
//!
//! The reliability of the frame is decided here: timeouts, bounds on connections, the graceful end. What a request
//! means is `http`'s business.

mod access;
mod banner;
mod check;
mod connection;
mod connection_timeouts;
pub mod demo;
mod descriptors;
mod error;
mod heads;
mod health;
mod memory_pressure;
mod mounts;
mod reload;
mod serve;
mod service;
mod shutdown;
mod socket;
mod tls;
mod unsent_permits;

pub use access::access;
pub use check::{Checked, check};
pub use connection_timeouts::{ConnectionLimits, ProtocolLimits};
pub use error::AppError;
pub use health::is_alive;
pub use serve::{BoundListener, serve, serve_all};
pub use service::RequestHandler;
pub use shutdown::{Phase, Shutdown, Signals};
pub use tls::Tls;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::array::{DirectSource, Reader};
use crate::cache::{BoundedNodeCache, CachedSource, Caches, EncodedCache, ValueCache};
use crate::config::{self, Config, ConfigError, MemoryBound, TlsError, TlsOptions};
use crate::cpu::ComputePool;
use crate::http::{AppState, ArrayEngine, Endpoint, MemoryInfo, Mount, ProcessMetrics};
use crate::store::ZipBudget;
use banner::{MountLine, PublicAddress, RootLine};
use mounts::{MountOpener, ServedMount};

/// The name of the mount that serves the demo.
const DEMO: &str = "demo";

/// A server, ready to run.
#[derive(Debug)]
pub struct App {
    config: Config,
    state: AppState,
    opener: MountOpener,
    served: Vec<ServedMount>,
    /// The addresses of mounts that are listened on, by the mounts' names.
    listens: BTreeMap<String, SocketAddr>,
    tls: Option<Tls>,
}

impl App {
    /// Opens every mount. Where there is none, the demo is served. No backend is asked for anything yet: one that
    /// is down shows in the log once the server runs, and in `/readyz`.
    ///
    /// # Errors
    /// [`AppError`], but for those of binding.
    pub async fn build(config: Config) -> Result<Self, AppError> {
        // TLS towards backends; refused if somebody has chosen a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cpu = ComputePool::new(config.cpu)?;
        let values = ValueCache::new(config.cache.value_size);
        let directories = ZipBudget::new(config.cache.zip_directory_size);
        let mut opener = MountOpener::new(cpu.clone(), values.clone(), directories);
        let served = opener.open(&config, &[]).await?;
        let mut http = config.http.clone();
        http.trusted_proxies.clone_from(&config.server.trusted_proxies);
        let state = AppState::new(mounts_of(&served), arrays(&config, cpu, values), http)?;
        state.set_access(access(&config)?);
        state.set_memory(memory_info(&config));
        let certificate = config.server.tls.as_ref().map(TlsOptions::load).transpose()?;
        let tls = certificate.map(Tls::new).transpose().map_err(TlsError::from)?;
        let listens = config.mounts.iter().filter_map(|(name, mount)| Some((name.clone(), mount.listen?)));
        let listens = listens.collect();
        Ok(Self { config, state, opener, served, listens, tls })
    }

    /// What the server's own address serves.
    #[must_use]
    pub fn site(&self) -> Endpoint {
        Endpoint::whole(self.state.clone())
    }

    /// The same, where metrics say what is known of the process outside, too.
    #[must_use]
    pub fn with_process_metrics(self, surroundings: ProcessMetrics) -> Self {
        self.state.set_process_metrics(surroundings);
        self
    }

    /// What the admin listener serves.
    #[must_use]
    pub fn admin_site(&self) -> Endpoint {
        Endpoint::admin(&self.state)
    }

    /// Binds every address, says so on standard output, and serves until a signal ends it. With SIGHUP, the configuration
    /// is read again, and what can change at run time changes.
    ///
    /// # Errors
    /// [`AppError::Bind`], [`AppError::Signals`].
    pub async fn run<F>(self, read: F) -> Result<(), AppError>
    where
        F: Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    {
        // Before anyone can know the address: a signal that comes early must find someone.
        let signals = Signals::catch().map_err(AppError::Signals)?;
        let hangups = shutdown::hangups().map_err(AppError::Signals)?;
        let (address, listener) = bind(self.config.server.listen).await?;
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

        let mut limits = ConnectionLimits::of(&self.config.server, self.config.http.max_headers);
        limits.max_connections = descriptors::raise_limit(limits.max_connections);
        let shutdown = Shutdown::default();
        let changing = sites.iter().map(|listening| listening.routes.clone()).collect();
        let serving = serve::serve_all(sites, limits, shutdown.clone());
        let memory = self.config.memory.limit;
        tokio::select! {
            () = serving => {}
            () = signals.advance(&shutdown) => {}
            () = drain_readiness(&whole, &shutdown) => {}
            () = watch_memory(&whole, memory) => {}
            () = self.follow(hangups, read, changing) => {}
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
            .map(|served| MountLine::of(&served.mount, served.url(), &self.config))
            .collect();
        let text = banner::text(front, &lines, roots, admin, &self.config);
        // Nobody may be reading; that is no reason not to serve.
        let _ = std::io::stdout().write_all(text.as_bytes());
        tracing::info!(%address, mounts = lines.len(), "listening");
        tracing::debug!("memory: at most {}", MemoryBound::from_config(&self.config));
        if let Some(warning) = self.config.server.warning() {
            tracing::warn!("{warning}");
        }
        // Whoever is down is told of once, and the others wait for none.
        let state = self.state.clone();
        tokio::spawn(async move { state.probe().await });
    }
}

/// A listener, and the address it really has.
async fn bind(address: SocketAddr) -> Result<(SocketAddr, TcpListener), AppError> {
    let listener = TcpListener::bind(address).await.map_err(|source| AppError::Bind { address, source })?;
    Ok((listener.local_addr().unwrap_or(address), listener))
}

/// Tells `/readyz` when the end begins; never ends itself.
async fn drain_readiness(site: &Endpoint, shutdown: &Shutdown) {
    shutdown.reached(Phase::Draining).await;
    tracing::info!("stopping: no new connections");
    site.state().set_draining();
    std::future::pending::<()>().await;
}

/// Gives up what it can where memory is short; never ends.
async fn watch_memory(site: &Endpoint, limit: Option<u64>) {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    let (forget, tell) = (|| site.state().evict_half(), |pressure| site.state().set_pressure(pressure));
    memory_pressure::watch(limit, config::resident_bytes, forget, tell).await;
}

/// The mounts by themselves.
fn mounts_of(served: &[ServedMount]) -> Vec<Mount> {
    served.iter().map(|served| served.mount.clone()).collect()
}

/// How much memory a configuration takes.
fn memory_info(config: &Config) -> MemoryInfo {
    MemoryInfo {
        total_bytes: config.memory.total_and_share().map(|(total, _)| total),
        most_bytes: MemoryBound::from_config(config).bytes(),
        connection_bytes: MemoryBound::CONNECTION_BYTES,
        budgets: config.budgets().into(),
    }
}

/// What decodes, with its caches.
fn arrays(config: &Config, cpu: ComputePool, values: ValueCache) -> ArrayEngine {
    let source = Arc::new(DirectSource::new(cpu.clone(), config.fetch));
    let source = CachedSource::new(source, config.cache);
    let nodes = BoundedNodeCache::new(config.cache.node_size);
    let encoded = EncodedCache::new(config.cache.encoded_size);
    // Values last: what is made of them is forgotten by then.
    let caches = Caches::default().and(source.clone()).and(nodes.clone()).and(encoded.clone()).and(values);
    ArrayEngine {
        reader: Reader::new(Arc::new(source), cpu.clone()),
        cpu,
        memo: Arc::new(nodes),
        answers_bytes: config.cache.answers_bytes(),
        encoded,
        caches,
        read: config.read,
        metadata: config.limits.metadata(),
        codec: config.limits.codec(),
    }
}
