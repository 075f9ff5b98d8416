//! [`access`]: from the configuration to access rights, at the start and at each reload.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::auth::{Access, AccessError, Environment, FetchKeys};
use crate::config::{Config, key_sets, unix_seconds};
use crate::store::{StoreError, Web};

/// The access rights of a configuration.
///
/// # Errors
/// [`AccessError`] if keys of issuers cannot be read or used.
pub fn access(config: &Config) -> Result<Access, AccessError> {
    let environment = Environment { clock: unix_seconds, web: Arc::new(HttpKeyFetcher(Web)) };
    Access::new(&config.access, &config.anonymous(), &key_sets(&config.access)?, environment)
}

/// Fetches the keys of issuers, with the HTTP client of the backends.
#[derive(Debug)]
struct HttpKeyFetcher(Web);

impl FetchKeys for HttpKeyFetcher {
    fn fetch(&self, url: String, most_bytes: usize) -> BoxFuture<'static, Result<Bytes, StoreError>> {
        let web = self.0;
        async move { web.fetch(&url, most_bytes).await }.boxed()
    }
}
