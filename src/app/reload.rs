//! SIGHUP: the configuration is read again while requests are served, all of it or nothing.
//!
//! First everything is done that can fail, on a thread of its own because files may be slow. Then what can change at run
//! time is changed, in [`App::reload`], and what cannot is named in the log.

use std::sync::Arc;

use rustls::sign::CertifiedKey;
use tokio::signal::unix::Signal;
use tokio::sync::oneshot;

use super::App;
use super::access::access;
use crate::config::{Config, ConfigError, TlsError, TlsOptions};
use crate::http::{Access, AccessError};

/// Why a configuration is not taken over.
#[derive(Debug, thiserror::Error)]
enum ReloadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("it could not be read")]
    Thread,
}

/// A configuration that was found good, and what was read for it.
#[derive(Debug)]
pub(super) struct Reread {
    config: Config,
    certificate: Option<Arc<CertifiedKey>>,
    access: Access,
}

impl Reread {
    fn of(config: Config) -> Result<Self, ReloadError> {
        let certificate = config.server.tls.as_ref().map(TlsOptions::load).transpose()?;
        let access = access(&config)?;
        Ok(Self { config, certificate, access })
    }
}

impl App {
    /// Takes over a configuration with every SIGHUP; never ends.
    pub(super) async fn follow<F>(mut self, mut hangups: Signal, read: F)
    where
        F: Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    {
        while hangups.recv().await.is_some() {
            match reread(read.clone()).await {
                Ok(reread) => {
                    let waiting = self.reload(reread);
                    tracing::info!("the configuration was read again");
                    if !waiting.is_empty() {
                        tracing::warn!(settings = waiting.join(", "), "settings that changed need a restart");
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "the configuration is bad: what was in effect stays");
                }
            }
        }
        std::future::pending::<()>().await;
    }

    /// Changes what can be changed while requests are served. Returns the settings that changed and need a restart.
    ///
    /// Nothing here can fail: whatever else is to change at run time is read in `Reread::of`, and put into effect here.
    fn reload(&mut self, Reread { config, certificate, access }: Reread) -> Vec<String> {
        // Credentials that have been taken back are refused from the next request on.
        self.state.set_access(access);
        self.config.access.clone_from(&config.access);
        for (name, mount) in &mut self.config.mounts {
            if let Some(reread) = config.mounts.get(name) {
                mount.anonymous.clone_from(&reread.anonymous);
            }
        }
        if let (Some(tls), Some(certificate)) = (&self.tls, certificate) {
            tls.show(certificate);
            self.config.server.tls.clone_from(&config.server.tls);
        }
        // Compared with what is in effect: what needs a restart is named each time, until it is restarted.
        self.config.differences(&config)
    }
}

/// Reads the configuration and what it names.
async fn reread<F>(read: F) -> Result<Reread, ReloadError>
where
    F: FnOnce() -> Result<Config, ConfigError> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        let found = read().map_err(ReloadError::from).and_then(Reread::of);
        // Nobody waits any more when the server has ended.
        drop(sender.send(found));
    };
    let thread = std::thread::Builder::new().name("zarrd-reload".to_owned()).spawn(work);
    match (thread, receiver.await) {
        (Ok(_), Ok(found)) => found,
        _ => Err(ReloadError::Thread),
    }
}
