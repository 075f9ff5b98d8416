//! The house, put together: configuration → stores → routes, and the loop that serves them.
//!
//! The reliability of the frame is decided here: timeouts, bounds on connections, the graceful end. What a request
//! means is `http`'s business.

mod access;
mod banner;
mod connection;
pub mod demo;
mod descriptors;
mod error;
mod health;
mod memory;
mod patience;
mod serve;
mod service;
mod shutdown;
mod socket;

pub use access::access;
pub use error::AppError;
pub use health::is_alive;
pub use patience::Limits;
pub use serve::serve;
pub use service::Routes;
pub use shutdown::{Phase, Shutdown, Signals};

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::array::{DirectSource, Reader};
use crate::cache::{CachedSource, EncodedCache, NodeCache, ValueCache};
use crate::config::Config;
use crate::cpu::Cpu;
use crate::http::{AppState, Arrays, Mount, Site};
use crate::store::{self, SharedStore, StoreOptions};
use banner::{Demo, MountLine, RootLine};
use memory::MemoryBound;

/// The name of the mount that serves the demo.
const DEMO: &str = "demo";

/// A server, ready to run.
#[derive(Debug)]
pub struct App {
    config: Config,
    state: AppState,
    mounts: Vec<MountLine>,
    demo: Option<Demo>,
}

impl App {
    /// Opens every mount. Where there is none, the demo is served. No backend is asked for anything yet: one that
    /// is down shows in `/readyz`.
    ///
    /// # Errors
    /// [`AppError`], but for those of binding.
    pub async fn build(config: Config) -> Result<Self, AppError> {
        // TLS towards backends; refused if somebody has chosen a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let demo = match (config.demo, config.mounts.is_empty()) {
            (true, _) => Some(Demo::Asked),
            (false, true) => Some(Demo::ForWantOfMounts),
            (false, false) => None,
        };
        let cpu = Cpu::new(config.cpu)?;
        let mut mounts = Vec::with_capacity(config.mounts.len() + 1);
        let mut lines = Vec::with_capacity(config.mounts.len() + 1);
        if demo.is_some() {
            let options = StoreOptions { writable: true, ..StoreOptions::default() };
            let store = open(DEMO, "memory://", &options, &cpu)?;
            demo::fill(&store).await?;
            let mount = Mount::read_only(DEMO, store);
            lines.push(MountLine::of(&mount, "built in"));
            mounts.push(mount);
        }
        let values = ValueCache::new(config.cache.value_bytes);
        for (name, options) in &config.mounts {
            let mut store = options.options.clone();
            store.writable = options.writable;
            store.signs_urls = options.redirect;
            let mount = Mount {
                name: name.clone(),
                store: values.over(name, open(name, &options.url, &store, &cpu)?, options.freshness),
                writable: options.writable,
                allow_prefix_delete: options.allow_prefix_delete,
                cache_control: options.cache_control.clone(),
                dimension_separator: options.dimension_separator,
                consolidated: options.consolidated,
                hosts: options.hosts.clone(),
                redirect: options.redirect.then(|| Duration::from_secs(options.redirect_seconds.into())),
            };
            lines.push(MountLine::of(&mount, &options.url));
            mounts.push(mount);
        }
        let state = AppState::new(mounts, arrays(&config, cpu), config.http.clone())?;
        state.set_access(access(&config)?);
        Ok(Self { config, state, mounts: lines, demo })
    }

    /// What the server's own address serves.
    #[must_use]
    pub fn site(&self) -> Site {
        Site::whole(self.state.clone())
    }

    /// Binds every address, says so on standard output, and serves until a signal ends it.
    ///
    /// # Errors
    /// [`AppError::Bind`], [`AppError::Signals`].
    pub async fn run(self) -> Result<(), AppError> {
        // Before anyone can know the address: a signal that comes early must find someone.
        let signals = Signals::catch().map_err(AppError::Signals)?;
        let (address, listener) = bind(self.config.server.listen).await?;
        let (mut sites, mut roots) = (vec![(listener, self.site())], Vec::new());
        for (name, mount) in &self.config.mounts {
            roots.extend(mount.hosts.iter().map(|host| banner::root_of_host(name, host, address)));
            let site = Site::of_mount(&self.state, name);
            if let (Some(listen), Some(site)) = (mount.listen, site) {
                let (address, listener) = bind(listen).await?;
                sites.push((listener, site));
                roots.push(banner::root_of_listener(name, address));
            }
        }
        self.announce(address, &roots);

        let mut limits = Limits::from(&self.config.server);
        limits.max_connections = descriptors::raise_limit(limits.max_connections);
        let shutdown = Shutdown::default();
        let serving = serve::serve_all(sites, limits, shutdown.clone());
        tokio::select! {
            () = serving => {}
            () = signals.advance(&shutdown) => {}
            () = drain_readiness(&self.state, &shutdown) => {}
        }
        tracing::info!("stopped");
        Ok(())
    }

    fn announce(&self, address: SocketAddr, roots: &[RootLine]) {
        let text = banner::text(address, &self.mounts, roots, MemoryBound::of(&self.config), self.demo);
        // Nobody may be reading; that is no reason not to serve.
        let _ = std::io::stdout().write_all(text.as_bytes());
        tracing::info!(%address, mounts = self.mounts.len(), "listening");
    }
}

/// A listener, and the address it really has.
async fn bind(address: SocketAddr) -> Result<(SocketAddr, TcpListener), AppError> {
    let listener = TcpListener::bind(address).await.map_err(|source| AppError::Bind { address, source })?;
    Ok((listener.local_addr().unwrap_or(address), listener))
}

/// Tells `/readyz` when the end begins; never ends itself.
async fn drain_readiness(state: &AppState, shutdown: &Shutdown) {
    shutdown.reached(Phase::Draining).await;
    tracing::info!("stopping: no new connections");
    state.set_draining();
    std::future::pending::<()>().await;
}

/// Opens a mount's store.
fn open(name: &str, url: &str, options: &StoreOptions, cpu: &Cpu) -> Result<SharedStore, AppError> {
    store::open(url, options, cpu).map_err(|source| AppError::Mount { name: name.to_owned(), source })
}

/// What decodes, with its caches.
fn arrays(config: &Config, cpu: Cpu) -> Arrays {
    let source = Arc::new(DirectSource::new(cpu.clone(), config.fetch));
    Arrays {
        reader: Reader::new(Arc::new(CachedSource::new(source, config.cache)), cpu.clone()),
        cpu,
        memo: Arc::new(NodeCache::new(config.cache.node_bytes)),
        answers_bytes: config.cache.answers_bytes(),
        encoded: EncodedCache::new(config.cache.encoded_bytes),
        read: config.read,
        metadata: config.limits.metadata(),
        codec: config.limits.codec(),
    }
}
