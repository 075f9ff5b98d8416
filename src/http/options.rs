//! [`HttpOptions`]: the limits and CORS rules of the HTTP layer, with their defaults.
//!
//! Sizes are in bytes; the name of a time has its unit. [`HttpOptions::check`] rejects invalid options before the server
//! binds a socket, so that nothing built from options can fail later.

use axum::http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::base_path::BasePath;
use super::host::is_host;
use super::network::Network;

/// Limits and rules of the HTTP surface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpOptions {
    /// Maximum length of a URL (path and query) in bytes; a longer one is a 414.
    pub url_bytes: usize,
    /// Maximum number of request headers; more are a 431.
    pub headers: usize,
    /// Maximum size of the request headers in bytes, each counted as one line with name and value; more is a 431.
    pub header_bytes: usize,
    /// Prefix of every path of this server, such as `/zarr`; empty by default. A path outside it is a 404. It does not apply
    /// to a mount at the root path of its own host or listener.
    pub base_path: String,
    /// Host names under which clients reach this server, besides those of mounts. A browser may write without a credential
    /// only under these names, loopback names and addresses. The admin listener accepts requests only under the same.
    pub hosts: Vec<String>,
    /// Proxies whose forwarding headers are trusted. They are configured with the listener.
    #[serde(skip)]
    pub trusted_proxies: Vec<Network>,
    /// Maximum size in bytes of a value that PUT stores or that results from PATCH; a larger one is a 413.
    pub put_body_bytes: u64,
    /// Milliseconds without a byte of the request body after which the request is a 408.
    pub body_stall_ms: u64,
    /// Minimum rate of a request body in bytes per second, enforced after the stall time; a slower one is a 408.
    pub body_bytes_per_second: u64,
    /// Maximum number of keys and prefixes on a page of a JSON listing.
    pub list_page_keys: usize,
    /// Memory budget in bytes for responses in flight, as estimated at admission.
    pub inflight_bytes: u64,
    /// Maximum number of responses in flight: each counts as at least this fraction of `inflight_bytes`.
    pub inflight_requests: u64,
    /// Maximum size in bytes of a response that is assembled whole, because its length depends on its elements (JSON, CSV,
    /// Arrow, text of variable length). It also limits the requests and responses of `/v1/partial`.
    pub whole_bytes: u64,
    /// Bytes that a streamed value counts against `inflight_bytes`, whatever its length.
    pub stream_bytes: u64,
    /// Milliseconds that a request waits for `inflight_bytes` before it is a 503. It is a 503 immediately if the expected
    /// wait is more than half of this.
    pub queue_ms: u64,
    /// Milliseconds from the receipt of a request to its response headers before it is a 504. The time of an upload is not
    /// counted.
    pub deadline_ms: u64,
    /// Timeout of the readiness check of a backend, in milliseconds.
    pub check_ms: u64,
    /// Rate limits of each caller.
    pub rates: RateOptions,
    /// Whether the public listeners serve `/metrics` too, to every client.
    pub public_metrics: bool,
    /// Rules for pages of other origins.
    pub cors: CorsOptions,
}

/// Rate limits of each caller. 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateOptions {
    /// Requests per second.
    pub requests_per_second: u32,
    /// Requests in a burst.
    pub burst_requests: u32,
    /// Bytes of responses per second.
    pub bytes_per_second: u64,
    /// Bytes of responses in a burst.
    pub burst_bytes: u64,
}

impl RateOptions {
    /// Whether there is any limit.
    pub(crate) fn is_on(&self) -> bool {
        self.requests_per_second > 0 || self.bytes_per_second > 0
    }

    fn check(&self) -> Result<(), HttpOptionsError> {
        if self.requests_per_second > 0 && self.burst_requests == 0 {
            return Err(HttpOptionsError::Zero("rates.burst_requests"));
        }
        if self.bytes_per_second > 0 && self.burst_bytes == 0 {
            return Err(HttpOptionsError::Zero("rates.burst_bytes"));
        }
        Ok(())
    }
}

/// Cross-origin rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CorsOptions {
    /// Allowed origins: `*` alone, or origins such as `https://viewer.example:8443`. An empty list switches CORS off.
    pub origins: Vec<String>,
    /// Whether these origins may also write (PUT, PATCH, DELETE, MKCOL, COPY, MOVE, and POST that writes).
    pub writes: bool,
    /// Whether browsers may send credentials. Excludes `*`.
    pub credentials: bool,
    /// Seconds for which a browser may cache a preflight response.
    pub max_age_seconds: u32,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            url_bytes: 8 << 10,
            headers: 100,
            header_bytes: 32 << 10,
            base_path: String::new(),
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            put_body_bytes: 256 << 20,
            body_stall_ms: 30_000,
            body_bytes_per_second: 16 << 10,
            list_page_keys: 1000,
            inflight_bytes: 512 << 20,
            inflight_requests: 4096,
            whole_bytes: 64 << 20,
            stream_bytes: 1 << 20,
            queue_ms: 500,
            deadline_ms: 60_000,
            check_ms: 2_000,
            rates: RateOptions::default(),
            public_metrics: false,
            cors: CorsOptions::default(),
        }
    }
}

impl Default for CorsOptions {
    fn default() -> Self {
        Self { origins: vec!["*".to_owned()], writes: false, credentials: false, max_age_seconds: 86_400 }
    }
}

/// Why options or mounts are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpOptionsError {
    /// A limit is 0 and would reject every request.
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
    /// The base path is invalid.
    #[error(
        "`base_path` must be empty or a path such as `/zarr`, without a trailing slash and without escapes"
    )]
    BasePath,
    /// The page size of a listing exceeds its maximum.
    #[error("`list_page_keys` is at most 1000, not {0}")]
    PageTooLong(usize),
    /// `*` is listed together with other origins.
    #[error("`*` must be the only entry of `cors.origins`")]
    AnyAmongOthers,
    /// Credentials are combined with `*`, which browsers reject.
    #[error("`cors.credentials` needs the origins by name, not `*`")]
    AnyWithCredentials,
    /// An origin is not `scheme://host[:port]`.
    #[error("`{0}` is not an origin such as `https://viewer.example`")]
    Origin(String),
    /// A mount name is not a valid URL segment.
    #[error("`{0}` is not a mount name: 1 to 64 of `A-Z a-z 0-9 - _ . ~`, not `.` or `..`")]
    MountName(String),
    /// Two mounts have the same name.
    #[error("there are two mounts of the name `{0}`")]
    DuplicateMount(String),
    /// A host name is invalid.
    #[error("`{0}` is not the name of a host such as `data.example`, without scheme, port or path")]
    Host(String),
    /// Two mounts have the same host.
    #[error("there are two mounts at the root of the host `{0}`")]
    DuplicateHost(String),
    /// A `Cache-Control` is not a valid header value.
    #[error("the `cache_control` of mount `{0}` is not a header value")]
    CacheControl(String),
}

impl HttpOptions {
    /// Checks the constraints that the types do not express.
    ///
    /// # Errors
    /// [`HttpOptionsError`] names the option.
    pub fn check(&self) -> Result<(), HttpOptionsError> {
        for (name, is_zero) in [
            ("url_bytes", self.url_bytes == 0),
            ("headers", self.headers == 0),
            ("header_bytes", self.header_bytes == 0),
            ("body_stall_ms", self.body_stall_ms == 0),
            ("list_page_keys", self.list_page_keys == 0),
            ("inflight_bytes", self.inflight_bytes == 0),
            ("inflight_requests", self.inflight_requests == 0),
            ("deadline_ms", self.deadline_ms == 0),
            ("check_ms", self.check_ms == 0),
        ] {
            if is_zero {
                return Err(HttpOptionsError::Zero(name));
            }
        }
        if BasePath::parse(&self.base_path).is_none() {
            return Err(HttpOptionsError::BasePath);
        }
        if let Some(host) = self.hosts.iter().find(|host| !is_host(host)) {
            return Err(HttpOptionsError::Host(host.clone()));
        }
        if self.list_page_keys > 1000 {
            return Err(HttpOptionsError::PageTooLong(self.list_page_keys));
        }
        self.rates.check()?;
        self.cors.check()
    }
}

impl CorsOptions {
    /// Whether every origin may read.
    pub(crate) fn is_any(&self) -> bool {
        self.origins.iter().any(|origin| origin == "*")
    }

    fn check(&self) -> Result<(), HttpOptionsError> {
        if self.is_any() {
            return match (self.origins.len(), self.credentials) {
                (1, false) => Ok(()),
                (1, true) => Err(HttpOptionsError::AnyWithCredentials),
                _ => Err(HttpOptionsError::AnyAmongOthers),
            };
        }
        match self.origins.iter().find(|origin| !is_origin(origin)) {
            Some(origin) => Err(HttpOptionsError::Origin(origin.clone())),
            None => Ok(()),
        }
    }
}

/// Whether a text is `http(s)://host[:port]` as browsers write it in `Origin`.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b':' | b'[' | b']');
    host.is_some_and(|host| !host.is_empty() && host.bytes().all(allowed))
        && HeaderValue::from_str(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(origins: &[&str], credentials: bool) -> Result<(), HttpOptionsError> {
        let origins = origins.iter().map(|&origin| origin.to_owned()).collect();
        HttpOptions { cors: CorsOptions { origins, credentials, ..Default::default() }, ..Default::default() }
            .check()
    }

    #[test]
    fn the_defaults_are_valid_and_an_error_names_the_invalid_option() {
        assert_eq!(HttpOptions::default().check(), Ok(()));
        assert_eq!(cors(&["*"], true), Err(HttpOptionsError::AnyWithCredentials));
        assert_eq!(cors(&["*", "https://a.example"], false), Err(HttpOptionsError::AnyAmongOthers));
        for origin in ["null", "https://", "a.example", "https://a.example/", "ftp://a", "https://a\r\nb"] {
            assert_eq!(cors(&[origin], false), Err(HttpOptionsError::Origin(origin.to_owned())));
        }
        assert_eq!(cors(&["https://a.example:8443", "http://[::1]:80"], true), Ok(()));
        assert_eq!(cors(&[], false), Ok(()));
        let zero = HttpOptions { deadline_ms: 0, ..Default::default() };
        assert_eq!(zero.check(), Err(HttpOptionsError::Zero("deadline_ms")));
        let relative = HttpOptions { base_path: "zarr/".to_owned(), ..Default::default() };
        assert_eq!(relative.check(), Err(HttpOptionsError::BasePath));
        let url = HttpOptions { hosts: vec!["http://a".to_owned()], ..Default::default() };
        assert_eq!(url.check(), Err(HttpOptionsError::Host("http://a".to_owned())));
        let long = HttpOptions { list_page_keys: 1001, ..Default::default() };
        assert_eq!(long.check(), Err(HttpOptionsError::PageTooLong(1001)));
        let rates = |rates| HttpOptions { rates, ..Default::default() }.check();
        let (requests, bytes) = (RateOptions::default(), RateOptions::default());
        let none = RateOptions { requests_per_second: 1, ..requests };
        assert_eq!(rates(none), Err(HttpOptionsError::Zero("rates.burst_requests")));
        let none = RateOptions { bytes_per_second: 1, ..bytes };
        assert_eq!(rates(none), Err(HttpOptionsError::Zero("rates.burst_bytes")));
    }

    #[test]
    fn unknown_options_are_rejected_and_missing_ones_have_defaults() {
        let options: HttpOptions = serde_json::from_str(r#"{"cors":{"writes":true}}"#).unwrap();
        assert!(options.cors.writes && options.cors.is_any() && options.url_bytes == 8192);
        assert!(serde_json::from_str::<HttpOptions>(r#"{"url_byte":1}"#).is_err());
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<HttpOptions>(&text).unwrap(), options);
    }
}
