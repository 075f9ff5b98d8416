//! What opening is alike for S3, GCS and Azure: the URL, the clients, and whether requests are signed.

use std::sync::Arc;

use object_store::list::PaginatedListStore;
use object_store::signer::Signer;
use object_store::{ObjectStore, RetryConfig};

use super::endpoint::endpoint_error;
use super::error::OpenError;
use super::url::{bucket_and_prefix, parse_prefix};
use crate::store::backend::ThrottledStore;
use crate::store::object::Connector;
use crate::store::{
    BucketOptions, CredentialSource, ObjectBackend, ObjectOptions, SharedStore, StoreKind, StoreOptions,
};

/// A client that can sign URLs and list in pages as well.
pub(super) trait Bucket: ObjectStore + Signer + PaginatedListStore {}

impl<T: ObjectStore + Signer + PaginatedListStore> Bucket for T {}

/// What every client is built from.
pub(super) struct ClientConfig<'a> {
    /// The name of the bucket or container.
    pub(super) bucket: &'a str,
    pub(super) options: &'a BucketOptions,
    /// Whether requests go out unsigned.
    pub(super) is_anonymous: bool,
    pub(super) connector: Connector,
    pub(super) retry: RetryConfig,
}

/// What requests are signed with where options have it.
pub(super) const SIGNED_BY_OPTIONS: &str = "with the credentials of its options";
/// What requests are signed with where there is nothing.
const UNSIGNED: &str = "without credentials";

/// Opens a bucket. `signed` says in words what requests are signed with, if there is something; `build` builds its client.
pub(super) fn open_bucket(
    kind: StoreKind,
    url: &str,
    options: &StoreOptions,
    signed: Option<&'static str>,
    build: impl Fn(ClientConfig<'_>) -> Result<Arc<dyn Bucket>, OpenError>,
) -> Result<SharedStore, OpenError> {
    let (bucket, prefix) = bucket_and_prefix(url);
    if bucket.is_empty() {
        return Err(OpenError::InvalidUrl("the name of the bucket or container is missing"));
    }
    // The clients append a path to it.
    let endpoint = options.bucket.endpoint.as_deref().map(|url| url.trim_end_matches('/').to_owned());
    let own = &BucketOptions { endpoint, ..options.bucket.clone() };
    if let Some(reason) = options.bucket.endpoint.as_deref().and_then(endpoint_error) {
        return Err(OpenError::Endpoint { origin: "the option `endpoint`", reason });
    }
    let is_unencrypted = own
        .endpoint
        .as_deref()
        .and_then(|endpoint| endpoint.split_once(':'))
        .is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("http"));
    if is_unencrypted && !own.allow_http {
        return Err(OpenError::Options("an unencrypted http endpoint needs `allow_http = true`"));
    }
    if own.credentials == Some(CredentialSource::Anonymous) && signed.is_some() {
        return Err(OpenError::Options("`credentials = \"anonymous\"` and keys exclude each other"));
    }
    let prefix = parse_prefix(prefix)?;
    let timeouts = options.remote.timeouts();
    let connector = Connector::new(!is_unencrypted, &timeouts).map_err(OpenError::Client)?;
    let is_anonymous = signed.is_none();
    let client = |connector: Connector, retry| {
        build(ClientConfig { bucket, options: own, is_anonymous, connector, retry })
    };
    let inner = client(connector.clone(), timeouts.retries())?;
    let once = client(connector.once(), timeouts.no_retries())?;
    if options.signs_urls && is_anonymous {
        return Err(OpenError::Options("`redirect = true` needs credentials to sign URLs with"));
    }
    let backend = ObjectBackend::new(kind, inner.clone(), once.clone(), prefix, object_options(options))
        .with_pages(inner.clone(), once)
        .with_credentials(signed.unwrap_or(UNSIGNED));
    let backend = if options.signs_urls { backend.with_signer(inner) } else { backend };
    Ok(throttled(backend, &connector, options))
}

/// How a remote store is used.
pub(super) fn object_options(options: &StoreOptions) -> ObjectOptions {
    ObjectOptions {
        writable: options.writable,
        missing_on_403: options.remote.missing_on_403,
        held_bytes: options.remote.max_buffered_upload_size,
        retry: options.remote.timeouts().retry,
        // The providers' own servers heed conditions; of others nothing is known.
        known: options.bucket.endpoint.is_none(),
        writers: options.writers,
    }
}

/// A remote backend behind its circuit breaker and concurrency limit.
pub(super) fn throttled(
    backend: ObjectBackend,
    connector: &Connector,
    options: &StoreOptions,
) -> SharedStore {
    Arc::new(ThrottledStore::new(Arc::new(backend.sharing(connector)), options.remote.throttle()))
}
