//! [`check`]: whether `serve` would start, by the same steps up to the point where it listens.

use futures::future::join_all;

use super::error::AppError;
use super::server::App;
use crate::cache::{DiskCache, DiskCacheError};
use crate::config::Config;
use crate::store::{OpenError, StoreError};

/// How long a backend may take to answer.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// A configuration that can be served.
#[derive(Debug)]
pub struct Checked {
    app: App,
    /// Mounts whose directories another server has open for writing, most likely the one that is to be restarted.
    pub in_use: Vec<String>,
    /// Whether another server uses the directory of the disk cache now.
    pub disk_in_use: bool,
}

/// Opens what `serve` would open, with two differences: a directory that another server has open for writing is opened for reading,
/// and the disk cache is checked and not opened.
///
/// # Errors
/// Those of [`App::build`].
pub async fn check(mut config: Config) -> Result<Checked, AppError> {
    let mut in_use = Vec::new();
    let disk_in_use = match DiskCache::check(&config.cache.disk) {
        Ok(()) => false,
        Err(DiskCacheError::InUse(_)) => true,
        Err(error) => return Err(error.into()),
    };
    // To open it would evict what no longer fits.
    config.cache.disk.path = None;
    loop {
        match App::build(config.clone()).await {
            Ok(app) => return Ok(Checked { app, in_use, disk_in_use }),
            Err(AppError::Mount {
                name,
                source: OpenError::Directory { source: StoreError::RootInUse(_), .. },
            }) if config.mounts.get(&name).is_some_and(|mount| mount.writable) => {
                if let Some(mount) = config.mounts.get_mut(&name) {
                    mount.writable = false;
                }
                in_use.push(name);
            }
            Err(error) => return Err(error),
        }
    }
}

impl Checked {
    /// Contacts all backends concurrently. For each mount, by name: nothing, or the failure.
    pub async fn connect(&self) -> Vec<(String, Result<(), String>)> {
        // As many at a time as the configuration has mounts.
        join_all(self.app.served.iter().map(|served| async move {
            let answers = served.mount.answers_within(CONNECT_TIMEOUT).await;
            (served.mount.name.clone(), answers.map_err(|(_, trouble)| trouble))
        }))
        .await
    }
}
