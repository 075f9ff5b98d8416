//! [`Mount`]: a store that is served under a name.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures::TryStreamExt;
use tokio::time::timeout;

use crate::cache::Staleness;
use crate::error::{Classify, ErrorClass};
use crate::http::cache_control::CacheControl;
use crate::http::host;
use crate::http::options::HttpOptionsError;
use crate::http::trouble::trouble_of;
use crate::key::StorePrefix;
use crate::metadata::Separator;
use crate::metrics::BackendCounts;
use crate::store::{SharedStore, is_denied, is_unanswered};

/// The methods offered for keys and prefixes of every mount.
const STORE_READ_METHODS: &str = "GET, HEAD, OPTIONS, PROPFIND";

/// Why the backend of a mount does not respond.
#[derive(Clone, Debug)]
pub struct MountFailure {
    /// The class of the error.
    pub class: ErrorClass,
    /// A short description.
    pub cause: String,
    /// Whether the backend refuses, which is a response.
    pub is_refusal: bool,
    /// Whether it denies access, which may be to what was asked for alone.
    pub is_denied: bool,
}

/// Checks that a backend responds within `max_wait`.
///
/// # Errors
/// Why not.
pub async fn answers_within(store: &SharedStore, max_wait: Duration) -> Result<(), MountFailure> {
    match timeout(max_wait, store.check()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(MountFailure {
            class: error.class(),
            cause: trouble_of(&error),
            is_refusal: !is_unanswered(&error),
            is_denied: is_denied(&error),
        }),
        Err(_) => Err(MountFailure {
            class: ErrorClass::TimedOut,
            cause: format!("no answer within {} ms", max_wait.as_millis()),
            is_refusal: false,
            is_denied: false,
        }),
    }
}

/// A store that is served under a name.
#[derive(Clone, Debug)]
pub struct Mount {
    /// The name in URLs: 1 to 64 of `A-Z a-z 0-9 - _ . ~`.
    pub name: String,
    /// The key of its values in caches: its name, or another key if a different store had this name before.
    pub cache_name: Arc<str>,
    /// The store.
    pub store: SharedStore,
    /// Whether PUT, PATCH and DELETE are offered.
    pub writable: bool,
    /// Whether DELETE of a prefix is offered too.
    pub allow_prefix_delete: bool,
    /// `Cache-Control` of its responses.
    pub cache_control: CacheControl,
    /// The separator in chunk keys of v2 arrays whose documents do not say; `None` to detect it.
    pub dimension_separator: Option<Separator>,
    /// Whether the server derives consolidated metadata for groups without it.
    pub consolidated: bool,
    /// The host names (as in `Host`, without a port) at which this is the store at the root path.
    pub hosts: Vec<String>,
    /// The counts of calls to its backend, filled by an observer of the store.
    pub backend: Arc<BackendCounts>,
    /// How old its responses are, if they may be older than their requests while the backend fails.
    pub staleness: Option<Arc<Staleness>>,
    /// How many reads got what another one of the same time read from its backend.
    pub shared_reads: Arc<AtomicU64>,
    /// The validity of URLs that redirect readers of stored values to the backend; `None` to serve values here.
    pub redirect: Option<Duration>,
}

impl Mount {
    /// A read-only mount whose values are revalidated at each use.
    #[must_use]
    pub fn read_only(name: impl Into<String>, store: SharedStore) -> Self {
        let name = name.into();
        Self {
            cache_name: name.as_str().into(),
            name,
            store,
            writable: false,
            allow_prefix_delete: false,
            cache_control: CacheControl::default(),
            dimension_separator: None,
            consolidated: false,
            hosts: Vec::new(),
            backend: Arc::default(),
            staleness: None,
            shared_reads: Arc::default(),
            redirect: None,
        }
    }

    /// The methods offered for a key.
    pub(crate) fn key_methods(&self) -> &'static str {
        if self.writable {
            "GET, HEAD, PUT, PATCH, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE"
        } else {
            STORE_READ_METHODS
        }
    }

    /// The methods offered for a prefix.
    pub(crate) fn prefix_methods(&self) -> &'static str {
        match (self.writable, self.allow_prefix_delete) {
            (true, true) => "GET, HEAD, DELETE, OPTIONS, PROPFIND, MKCOL, COPY, MOVE",
            (true, false) => "GET, HEAD, OPTIONS, PROPFIND, MKCOL, COPY",
            (false, _) => STORE_READ_METHODS,
        }
    }

    /// The methods offered for a node.
    pub(crate) fn node_methods(&self) -> &'static str {
        match (self.writable, self.may_erase_prefixes()) {
            (true, true) => "GET, HEAD, PUT, PATCH, DELETE, OPTIONS",
            (true, false) => "GET, HEAD, PUT, PATCH, OPTIONS",
            (false, _) => "GET, HEAD, OPTIONS",
        }
    }

    /// The methods offered for elements of an array; POST also reads.
    pub(crate) fn element_methods(&self) -> &'static str {
        if self.writable { "GET, HEAD, PUT, POST, OPTIONS" } else { "GET, HEAD, POST, OPTIONS" }
    }

    /// The methods offered for elements of a chunk.
    pub(crate) fn chunk_methods(&self) -> &'static str {
        if self.writable { "GET, HEAD, PUT, OPTIONS" } else { "GET, HEAD, OPTIONS" }
    }

    /// Whether DELETE of a prefix is offered.
    pub(crate) fn may_erase_prefixes(&self) -> bool {
        self.writable && self.allow_prefix_delete
    }

    /// Checks that its backend responds within `max_wait`.
    ///
    /// # Errors
    /// Why not.
    pub async fn answers_within(&self, max_wait: Duration) -> Result<(), MountFailure> {
        answers_within(&self.store, max_wait).await
    }

    /// Whether nothing is stored there; `None` if that is not known within `max_wait`.
    pub async fn is_empty_within(&self, max_wait: Duration) -> Option<bool> {
        let mut entries = self.store.list_dir_after(&StorePrefix::root(), "");
        let first = timeout(max_wait, entries.try_next()).await.ok()?.ok()?;
        Some(first.is_none())
    }

    /// Whether the conditions of writes to its backend are checked, if that is known within `max_wait`.
    ///
    /// # Errors
    /// A short description of the failure.
    pub async fn checks_conditions_within(&self, max_wait: Duration) -> Result<bool, String> {
        match timeout(max_wait, self.store.heeds_conditions()).await {
            Ok(heeded) => heeded.map_err(|error| trouble_of(&error)),
            Err(_) => Err(format!("no answer within {} ms", max_wait.as_millis())),
        }
    }

    /// Checks that it can be served.
    ///
    /// # Errors
    /// [`HttpOptionsError`] for an invalid name, host or `Cache-Control`.
    pub(super) fn check(&self) -> Result<(), HttpOptionsError> {
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
