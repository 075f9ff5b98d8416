//! The HTTP client under the remote backends: its timeouts, its retries, and what it never does.
//!
//! A response may take as long as its reader does, as long as it does not stall: there is no timeout over a whole
//! body. Redirects are not followed, because they lead where nobody configured a mount.

use std::sync::{Arc, Once};
use std::time::Duration;

use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use url::Url;

use super::super::Shared;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a response may stall.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How often, and for how long in all, a request is made again that changes nothing, or changes it to the same.
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// For requests that may be made twice.
pub(in crate::store) fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(2),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT }
}

/// For conditional writes: made again after a lost answer, one that succeeded looks like one that failed.
pub(in crate::store) fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..retries() }
}

/// Makes the clients of one store, all alike.
#[derive(Clone, Debug)]
pub(in crate::store) struct Connector {
    client: reqwest::Client,
}

impl Connector {
    /// Builds the client. Without `tls` it can also be built where the system has no certificates.
    ///
    /// # Errors
    /// With `tls`: there are no certificates to check a server's against.
    pub(in crate::store) fn new(tls: bool) -> Result<Self, Shared> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // An error says that there is one already, which will do.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let builder = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(READ_TIMEOUT)
                .redirect(reqwest::redirect::Policy::none())
                .referer(false)
                .user_agent(concat!("zarrd/", env!("CARGO_PKG_VERSION")))
        };
        let client = match builder().https_only(false).build() {
            Err(_) if !tls => builder().tls_certs_only([]).build(),
            built => built,
        };
        client.map(|client| Self { client }).map_err(|error| Arc::new(error) as Shared)
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let asked = request.uri().to_string();
        let response = self.client.call(request).await?;
        if leads_to_the_directory(&asked, &response) {
            let (mut parts, _) = response.into_parts();
            parts.status = reqwest::StatusCode::NOT_FOUND;
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(bytes::Bytes::new())));
        }
        Ok(response)
    }
}

/// Web servers answer the name of a directory with a redirect to the same name and a slash: there is a prefix of
/// that name, and no value.
fn leads_to_the_directory(asked: &str, response: &HttpResponse) -> bool {
    let location = response.headers().get("location").and_then(|location| location.to_str().ok());
    let (true, Some(location), Ok(asked)) = (response.status().is_redirection(), location, Url::parse(asked))
    else {
        return false;
    };
    let directory = format!("{}/", asked.path());
    asked.join(location).is_ok_and(|to| to.host() == asked.host() && to.path() == directory)
}
