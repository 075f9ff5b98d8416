//! SIGHUP: the configuration is reloaded while requests are served, all of it or nothing.
//!
//! First comes everything that can fail, on a thread of its own because files may be slow. Then [`App::reload`] changes what can
//! change at run time, and logs what cannot. Mounts and access rights change together: each request sees the old ones or the new
//! ones to its end. A mount whose directory cannot be found does not hold up the rest: its open store stays served.

use std::sync::Arc;

use rustls::sign::CertifiedKey;
use tokio::runtime::Handle;
use tokio::signal::unix::Signal;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::access::access;
use super::error::{AppError, in_one_line};
use super::mounts::{AlreadyServed, MountOpener, ServedMount};
use super::reopen::{REMOVED_CHECK_INTERVAL, ReopenWarnings};
use super::server::{App, mounts_of};
use crate::auth::{Access, AccessError};
use crate::config::{Config, ConfigError, TlsError, TlsOptions};
use crate::http::HttpOptionsError;
use crate::services::AppState;
use crate::store::Store;
use crate::web::Endpoint;

/// Why a configuration is rejected.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Mounts(#[from] AppError),
    #[error(transparent)]
    Http(#[from] HttpOptionsError),
    #[error("it could not be read")]
    Thread,
}

/// A valid configuration, and what was read and opened for it.
#[derive(Debug)]
struct ReloadedConfig {
    config: Config,
    certificate: Option<Arc<CertifiedKey>>,
    access: Access,
    /// What is served from now on; none if the mounts are the same.
    changed: Option<(MountOpener, Vec<ServedMount>)>,
}

impl ReloadedConfig {
    /// Reads and opens what a configuration needs, besides what is served already.
    async fn open(
        config: Config,
        mut opener: MountOpener,
        before: &Config,
        served: AlreadyServed<'_>,
    ) -> Result<Self, ReloadError> {
        // The store of such a mount is open already, unless the mount is new.
        config.check_directories(|name| {
            let is_same = |mount: &ServedMount| {
                mount.name() == name && config.mounts.get(name).is_some_and(|new| new.url == mount.url())
            };
            served.mounts.iter().any(is_same)
        })?;
        // The directory that is in use: another one needs a restart.
        config.check_disk_cache(before.cache.disk.path.as_deref())?;
        let certificate = config.server.tls.as_ref().map(TlsOptions::load).transpose()?;
        let access = access(&config)?;
        let is_same = config.mounts == before.mounts
            && config.demo == before.demo
            && !served.has_outdated()
            && before.missing_directories.is_empty();
        let changed = if is_same {
            None
        } else {
            let served = opener.open(&config, served).await?;
            Some((opener, served))
        };
        Ok(Self { config, certificate, access, changed })
    }
}

impl App {
    /// Applies the configuration with every SIGHUP, to all endpoints; never ends.
    pub(super) async fn follow<F>(mut self, mut hangups: Signal, read: F, sites: Vec<Endpoint>)
    where
        F: Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    {
        let mut warnings = ReopenWarnings::default();
        loop {
            tokio::select! {
                hangup = hangups.recv() => match hangup {
                    Some(()) => self.read_again(read.clone(), &sites).await,
                    None => std::future::pending().await,
                },
                () = sleep(REMOVED_CHECK_INTERVAL) => self.reopen_removed(&sites, &mut warnings).await,
            }
        }
    }

    /// Applies the configuration as it is now.
    async fn read_again<F>(&mut self, read: F, sites: &[Endpoint])
    where
        F: FnOnce() -> Result<Config, ConfigError> + Send + 'static,
    {
        let reread = self.reload_config(read).await;
        match reread.and_then(|reread| self.reload(reread, sites)) {
            Ok(waiting) => {
                tracing::info!("the configuration was read again");
                if !waiting.is_empty() {
                    tracing::warn!(settings = waiting.join(", "), "settings that changed need a restart");
                }
            }
            Err(error) => {
                let error = in_one_line(&error);
                tracing::error!(error, "the configuration is bad: what was in effect stays");
            }
        }
    }

    /// Changes what can be changed while requests are served. Returns the changed settings that need a restart.
    ///
    /// # Errors
    /// [`ReloadError::Http`], before anything is changed. Everything else that can fail belongs in `ReloadedConfig::open`.
    fn reload(&mut self, reread: ReloadedConfig, sites: &[Endpoint]) -> Result<Vec<String>, ReloadError> {
        let ReloadedConfig { config, certificate, access, changed } = reread;
        for (name, reason) in &config.missing_directories {
            tracing::warn!(
                mount = name,
                reason,
                "the directory of a mount is missing: its open store stays served"
            );
        }
        match changed {
            // Revoked credentials are rejected from the next request on.
            None => self.state.access.set_rules(access),
            Some((opener, served)) => {
                self.serve_mounts((opener, served), Some(access), sites)?;
                self.log_mount_changes(&config);
            }
        }
        self.config.access.clone_from(&config.access);
        self.config.demo = config.demo;
        self.config.missing_directories.clone_from(&config.missing_directories);
        let listens = |name: &str| self.listens.get(name).copied();
        self.config.mounts = config.mounts.clone();
        for (name, mount) in &mut self.config.mounts {
            mount.listen = listens(name);
        }
        if let (Some(tls), Some(certificate)) = (&self.tls, certificate) {
            tls.show(certificate);
            self.config.server.tls.clone_from(&config.server.tls);
        }
        // Compared with what is in effect: a setting that needs a restart is named at each reload, until the restart.
        Ok(self.config.differences(&config))
    }

    /// Serves these mounts from now on, with these access rules or those in effect.
    ///
    /// # Errors
    /// [`HttpOptionsError`], before anything is changed.
    pub(super) fn serve_mounts(
        &mut self,
        (opener, served): (MountOpener, Vec<ServedMount>),
        access: Option<Access>,
        sites: &[Endpoint],
    ) -> Result<(), HttpOptionsError> {
        let state = self.state.with_mounts(mounts_of(&served), access)?;
        for site in sites {
            site.replace_state(&state);
        }
        let before = std::mem::replace(&mut self.state, state);
        (self.opener, self.served) = (opener, served);
        tokio::spawn(purge_and_probe(self.opener.clone(), before, self.state.clone()));
        Ok(())
    }

    /// Logs the mounts that were added, removed or changed.
    fn log_mount_changes(&self, config: &Config) {
        let (before, now) = (&self.config.mounts, &config.mounts);
        for (name, mount) in now {
            match before.get(name) {
                None => tracing::info!(mount = name, url = mount.url, "mount was added"),
                Some(before) if before != mount => tracing::info!(mount = name, "mount was changed"),
                Some(_) => {}
            }
        }
        for name in before.keys().filter(|name| !now.contains_key(*name)) {
            tracing::info!(mount = name, "mount was removed");
        }
    }

    /// Reads the configuration and its files, and opens its mounts, again where a path leads to another directory now.
    async fn reload_config<F>(&self, read: F) -> Result<ReloadedConfig, ReloadError>
    where
        F: FnOnce() -> Result<Config, ConfigError> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let (opener, before, served) = (self.opener.clone(), self.config.clone(), self.served.clone());
        let runtime = Handle::current();
        let work = move || {
            let found = read().map_err(ReloadError::from);
            let served = AlreadyServed { mounts: &served, is_outdated: Store::is_replaced };
            let found = found
                .and_then(|config| runtime.block_on(ReloadedConfig::open(config, opener, &before, served)));
            // The receiver is gone once the server has ended.
            drop(sender.send(found));
        };
        let thread = std::thread::Builder::new().name("zarrd-reload".to_owned()).spawn(work);
        match (thread, receiver.await) {
            (Ok(_), Ok(found)) => found,
            _ => Err(ReloadError::Thread),
        }
    }
}

/// Purges the caches of stores that are no longer served, and checks whether the others answer.
async fn purge_and_probe(opener: MountOpener, before: AppState, now: AppState) {
    let state = now.clone();
    // The purge visits every entry, so it runs on the pool. If it fails, the entries are evicted in time.
    let _ = opener.cpu.run(move || state.mounts.purge_removed(&before.mounts, &state.engine.caches)).await;
    now.readiness.check().await;
}
