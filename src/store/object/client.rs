//! The HTTP client under the remote backends: its timeouts, its retries, and what it never does.
//!
//! A response may take as long as its reader does, unless it stalls: there is no timeout for a complete body
//! (`read_timeout`). Redirects are not followed, because they lead where no mount is configured. This client also adds
//! what the crate lacks: conditions on requests that the crate sends without ([`on_condition`]), and checks of
//! responses before it reads them (`response_check`).

use std::error::Error;
use std::sync::{Arc, Once};
use std::time::Duration;

use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderName, HeaderValue, RANGE};
use tokio::time::timeout;
use url::Url;

use super::super::Shared;
use super::bucket_presence::BucketPresence;
use super::deadline_body::send_before;
use super::public_addresses::{PrivateAddress, PublicAddresses};
use super::read_timeout::{stalled, with_stall_timeout};
use super::response_check;
use super::retries::RetryBudget;
use super::{tls, trace_context};
use crate::store::WriteDeadline;

/// Timeouts and retries of requests to a backend.
#[derive(Clone, Debug)]
pub(in crate::store) struct TimeoutOptions {
    /// Timeout for connecting.
    pub(in crate::store) connect: Duration,
    /// How long a response may stall.
    pub(in crate::store) read: Duration,
    /// The most attempts of an idempotent request.
    pub(in crate::store) tries: usize,
    /// No retry begins later than this after the first attempt.
    pub(in crate::store) retry: Duration,
    /// The most retries for each hundred answered requests.
    pub(in crate::store) retry_percent: u8,
}

impl TimeoutOptions {
    /// For requests that may be repeated.
    pub(in crate::store) fn retries(&self) -> RetryConfig {
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        };
        RetryConfig { backoff, max_retries: self.tries.saturating_sub(1), retry_timeout: self.retry }
    }

    /// For conditional writes: repeated after a lost response, one that succeeded cannot be distinguished from one that failed.
    pub(in crate::store) fn no_retries(&self) -> RetryConfig {
        RetryConfig { max_retries: 0, ..self.retries() }
    }
}

tokio::task_local! {
    /// The condition of the current request.
    static CONDITION: (HeaderName, HeaderValue);
}

/// Sends the PUT and DELETE requests of `call` with a condition, which the crate has no parameter for. The header is
/// not signed: S3 and GCS require only their own headers to be signed.
pub(super) async fn on_condition<T>(
    condition: Option<(HeaderName, HeaderValue)>,
    call: impl Future<Output = T>,
) -> T {
    match condition {
        Some(condition) => CONDITION.scope(condition, call).await,
        None => call.await,
    }
}

/// Builds the clients of one store, all alike.
#[derive(Clone, Debug)]
pub(in crate::store) struct Connector {
    client: reqwest::Client,
    /// How long a response may stall.
    stall: Duration,
    retries: Arc<RetryBudget>,
    presence: Arc<BucketPresence>,
    /// Whether failed requests are retried.
    tries_again: bool,
}

impl Connector {
    /// Builds the client. Without `tls` it can also be built where the system has no certificates.
    ///
    /// # Errors
    /// With `tls`: there are no certificates to check a server's against.
    pub(in crate::store) fn new(tls: bool, timeouts: &TimeoutOptions) -> Result<Self, Shared> {
        Self::build(tls, timeouts, |builder| builder)
    }

    /// As [`Connector::new`], for requests to a host whose name must not lead to addresses of this network.
    ///
    /// # Errors
    /// As for [`Connector::new`].
    pub(in crate::store) fn to_public(
        host: &str,
        tls: bool,
        timeouts: &TimeoutOptions,
    ) -> Result<Self, Shared> {
        let resolver = Arc::new(PublicAddresses::of(host));
        Self::build(tls, timeouts, |builder| builder.dns_resolver(resolver))
    }

    fn build(
        tls: bool,
        timeouts: &TimeoutOptions,
        with_resolver: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<Self, Shared> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // An error means that a provider is installed already, which is enough.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let builder = reqwest::Client::builder()
            .connect_timeout(timeouts.connect)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("zarrd/", env!("CARGO_PKG_VERSION")));
        let builder = with_resolver(builder);
        let builder = match tls::configuration() {
            Ok(configuration) => builder.tls_backend_preconfigured(configuration),
            Err(error) if tls => return Err(Arc::new(error)),
            Err(_) => builder.tls_certs_only([]),
        };
        let (stall, retries) = (timeouts.read, Arc::new(RetryBudget::new(timeouts.retry_percent)));
        builder
            .build()
            .map(|client| Self { client, stall, retries, presence: Arc::default(), tries_again: true })
            .map_err(|error| Arc::new(error) as Shared)
    }

    /// The same for clients without retries.
    pub(in crate::store) fn once(&self) -> Self {
        Self { tries_again: false, ..self.clone() }
    }

    /// The retry budget of these clients.
    pub(super) fn retries(&self) -> &Arc<RetryBudget> {
        &self.retries
    }

    /// Whether the bucket that these clients ask is known to exist.
    pub(super) fn presence(&self) -> &Arc<BucketPresence> {
        &self.presence
    }

    /// Counts a response, or its absence, in the retry budget.
    fn count(&self, status: Option<reqwest::StatusCode>) {
        let has_failed =
            status.is_none_or(|status| status.is_server_error() || matches!(status.as_u16(), 408 | 429));
        match (has_failed, self.tries_again) {
            (false, _) => self.retries.deposit(),
            (true, true) => self.retries.withdraw(),
            (true, false) => {}
        }
    }

    /// The client itself.
    pub(in crate::store) fn client(&self) -> &reqwest::Client {
        &self.client
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let has_range = request.headers().contains_key(RANGE);
        let headers = request.headers_mut();
        // The stored bytes, without a coding that a proxy adds.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if matches!(method, Method::PUT | Method::DELETE)
            && let Ok((name, value)) = CONDITION.try_with(Clone::clone)
        {
            headers.insert(name, value);
        }
        // Of a store without credentials, the crate signs writes to GCS with an empty token, which GCS refuses.
        if headers.get(AUTHORIZATION).is_some_and(|value| value.as_bytes().trim_ascii() == b"Bearer") {
            headers.remove(AUTHORIZATION);
        }
        trace_context::insert_header(headers);
        let send = async {
            match WriteDeadline::current() {
                Some(deadline) if method == Method::PUT => send_before(deadline, &self.client, request).await,
                _ => self.client.call(request).await,
            }
        };
        let response = timeout(self.stall, send).await.unwrap_or_else(|_elapsed| Err(stalled()));
        self.count(response.as_ref().ok().map(HttpResponse::status));
        let response = response.map_err(|error| not_public(broken_off(error)))?;
        let response = with_stall_timeout(response, self.stall);
        if leads_to_the_directory(&uri, &response) {
            let (mut parts, _) = response.into_parts();
            parts.status = reqwest::StatusCode::NOT_FOUND;
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes::Bytes::new())));
        }
        let response = response_check::checked(&method, uri.query(), has_range, response).await?;
        if shows_bucket(&method, response.status().as_u16()) {
            self.presence.record_seen();
        }
        Ok(response)
    }
}

/// Whether only a bucket that exists gives this response, after its check. A redirect, a refusal and a failure can come from
/// what is in front of the bucket, and a 404 to HEAD has no document.
fn shows_bucket(method: &Method, status: u16) -> bool {
    matches!(status, 200..=299 | 304 | 412 | 416) || (status == 404 && method == Method::GET)
}

/// The error of a request whose connection had bytes that are no response, as after a body that is longer than promised.
/// The crate has no kind for it; a broken connection is what it is, so that an idempotent request is retried on another.
fn broken_off(error: HttpError) -> HttpError {
    let causes = std::iter::successors(Some(&error as &(dyn Error + 'static)), |cause| (*cause).source());
    let is_no_response = causes
        .filter_map(|cause| cause.downcast_ref::<hyper::Error>())
        .any(|error| error.is_parse() || error.is_canceled());
    if error.kind() == HttpErrorKind::Unknown && is_no_response {
        return HttpError::new(HttpErrorKind::Interrupted, error);
    }
    error
}

/// The error of a request to a name that leads to no public address: another try would not help.
fn not_public(error: HttpError) -> HttpError {
    let causes = std::iter::successors(Some(&error as &(dyn Error + 'static)), |cause| (*cause).source());
    match causes.into_iter().find_map(|cause| cause.downcast_ref::<PrivateAddress>()).copied() {
        Some(refused) => HttpError::new(HttpErrorKind::Unknown, refused),
        None => error,
    }
}

/// Whether a response redirects to the same name and a slash. Web servers do that for a directory: there is a prefix of
/// that name, and no value.
fn leads_to_the_directory(requested: &impl std::fmt::Display, response: &HttpResponse) -> bool {
    if !response.status().is_redirection() {
        return false;
    }
    let location = response.headers().get("location").and_then(|location| location.to_str().ok());
    let (Some(location), Ok(requested)) = (location, Url::parse(&requested.to_string())) else {
        return false;
    };
    let directory = format!("{}/", requested.path());
    requested.join(location).is_ok_and(|to| to.host() == requested.host() && to.path() == directory)
}
