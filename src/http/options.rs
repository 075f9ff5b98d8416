//! [`HttpOptions`]: the limits of this room and its CORS rules, with their defaults.
//!
//! Sizes are bytes, times are named with their unit. [`HttpOptions::check`] refuses what could not work before
//! anything is bound, so that nothing built from options can fail later.

use axum::http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::base::BasePath;
use super::host::is_host;
use super::network::Network;

/// Limits and rules of the HTTP surface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpOptions {
    /// Longest URL (path and query) in bytes; a longer one is 414.
    pub max_url_size: usize,
    /// Most headers of a request; more are 431.
    pub max_headers: usize,
    /// Most bytes of a request's headers, names and values, each as one line; more are 431.
    pub max_headers_size: usize,
    /// What stands before every path of this server, such as `/zarr`; nothing by default. What is not below it is 404.
    /// Where a mount is at the root path of a host or a listener of its own, nothing stands there.
    pub base_path: String,
    /// Names of hosts under which this server is reached, beside those of mounts. Where whoever writes has shown no
    /// credential, browsers may write under these, loopback names and addresses alone; the listener of whoever runs the
    /// server is asked under these alone.
    pub hosts: Vec<String>,
    /// Proxies whose word is taken for who asks. They are configured with the listener.
    #[serde(skip)]
    pub trusted_proxies: Vec<Network>,
    /// Largest value that PUT stores, or that PATCH makes, in bytes; a larger one is 413.
    pub max_value_size: u64,
    /// Milliseconds without a byte of a request's body after which it is 408.
    pub body_stall_timeout: u64,
    /// Least bytes a second of a request's body, counted after the stall time; a slower one is 408.
    pub min_body_rate: u64,
    /// Most keys and prefixes on a page of a JSON listing.
    pub max_list_keys: usize,
    /// Bytes of answers under way at one time, as estimated when they are admitted.
    pub inflight_size: u64,
    /// Answers under way at one time: each counts at least its part of `inflight_bytes`.
    pub max_inflight_requests: u64,
    /// Answers whose length depends on their elements (JSON, CSV, Arrow, text of variable length) are put together
    /// whole: the most bytes of one. So are the answers and the bodies of `/v1/partial`.
    pub max_buffered_response_size: u64,
    /// What a streamed value counts against `inflight_bytes`, whatever its length.
    pub streamed_response_size: u64,
    /// Milliseconds a request waits for `inflight_bytes` before it is 503; at once if it is likely to wait for more than
    /// half as long.
    pub admission_timeout: u64,
    /// Milliseconds from a request to the head of its answer before it is 504. An upload's own time is not counted.
    pub response_timeout: u64,
    /// Milliseconds a backend has to say that it is ready.
    pub readiness_timeout: u64,
    /// How much each caller may ask for.
    pub rate_limit: RateOptions,
    /// Whether `/metrics` is at the server's own address too, for everybody.
    pub public_metrics: bool,
    /// Which pages of other origins may read.
    pub cors: CorsOptions,
}

/// How much each caller may ask for in a second. 0 is without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateOptions {
    /// Requests a second.
    pub request_rate: u32,
    /// Requests that may come at once.
    pub request_burst: u32,
    /// Bytes of answers a second.
    pub transfer_rate: u64,
    /// Bytes of answers that may be sent at once.
    pub transfer_burst: u64,
}

impl RateOptions {
    /// Whether there is any limit.
    pub(super) fn is_on(&self) -> bool {
        self.request_rate > 0 || self.transfer_rate > 0
    }

    fn check(&self) -> Result<(), HttpOptionsError> {
        if self.request_rate > 0 && self.request_burst == 0 {
            return Err(HttpOptionsError::Zero("rates.burst_requests"));
        }
        if self.transfer_rate > 0 && self.transfer_burst == 0 {
            return Err(HttpOptionsError::Zero("rates.burst_bytes"));
        }
        Ok(())
    }
}

/// Cross-origin rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CorsOptions {
    /// `*` alone, or origins such as `https://viewer.example:8443`; none switches CORS off.
    pub allowed_origins: Vec<String>,
    /// Whether PUT, PATCH, DELETE, MKCOL, COPY, MOVE and writing by POST are allowed from there too.
    pub allow_writes: bool,
    /// Whether browsers may send credentials. Not together with `*`.
    pub allow_credentials: bool,
    /// Seconds for which a browser may remember a preflight answer.
    pub max_age: u32,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_url_size: 8 << 10,
            max_headers: 100,
            max_headers_size: 32 << 10,
            base_path: String::new(),
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            max_value_size: 256 << 20,
            body_stall_timeout: 30_000,
            min_body_rate: 16 << 10,
            max_list_keys: 1000,
            inflight_size: 512 << 20,
            max_inflight_requests: 4096,
            max_buffered_response_size: 64 << 20,
            streamed_response_size: 1 << 20,
            admission_timeout: 500,
            response_timeout: 60_000,
            readiness_timeout: 2_000,
            rate_limit: RateOptions::default(),
            public_metrics: false,
            cors: CorsOptions::default(),
        }
    }
}

impl Default for CorsOptions {
    fn default() -> Self {
        Self {
            allowed_origins: vec!["*".to_owned()],
            allow_writes: false,
            allow_credentials: false,
            max_age: 86_400,
        }
    }
}

/// Why options or mounts cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpOptionsError {
    /// A limit of nothing would refuse everything.
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
    /// Not a path that can stand before others.
    #[error(
        "`base_path` is empty, or a path such as `/zarr`, without a slash at its end and without escapes"
    )]
    BasePath,
    /// A listing page cannot be longer.
    #[error("`list_page_keys` is at most 1000, not {0}")]
    PageTooLong(usize),
    /// `*` beside other origins.
    #[error("`*` must be the only entry of `cors.origins`")]
    AnyAmongOthers,
    /// Browsers refuse the pair.
    #[error("`cors.credentials` needs the origins by name, not `*`")]
    AnyWithCredentials,
    /// Not `scheme://host[:port]`.
    #[error("`{0}` is not an origin such as `https://viewer.example`")]
    Origin(String),
    /// Mount names stand in URLs.
    #[error("`{0}` is not a mount name: 1 to 64 of `A-Z a-z 0-9 - _ . ~`, not `.` or `..`")]
    MountName(String),
    /// Two mounts of one name.
    #[error("there are two mounts of the name `{0}`")]
    DuplicateMount(String),
    /// Not the name of a host.
    #[error("`{0}` is not the name of a host such as `data.example`, without scheme, port or path")]
    Host(String),
    /// Two mounts of one host.
    #[error("there are two mounts at the root of the host `{0}`")]
    DuplicateHost(String),
    /// `Cache-Control` that no header can carry.
    #[error("the `cache_control` of mount `{0}` is not a header value")]
    CacheControl(String),
}

impl HttpOptions {
    /// Checks what types cannot.
    ///
    /// # Errors
    /// [`HttpOptionsError`] names the option.
    pub fn check(&self) -> Result<(), HttpOptionsError> {
        for (name, is_zero) in [
            ("url_bytes", self.max_url_size == 0),
            ("headers", self.max_headers == 0),
            ("header_bytes", self.max_headers_size == 0),
            ("body_stall_ms", self.body_stall_timeout == 0),
            ("list_page_keys", self.max_list_keys == 0),
            ("inflight_bytes", self.inflight_size == 0),
            ("inflight_requests", self.max_inflight_requests == 0),
            ("deadline_ms", self.response_timeout == 0),
            ("check_ms", self.readiness_timeout == 0),
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
        if self.max_list_keys > 1000 {
            return Err(HttpOptionsError::PageTooLong(self.max_list_keys));
        }
        self.rate_limit.check()?;
        self.cors.check()
    }
}

impl CorsOptions {
    /// Whether every origin may read.
    pub(super) fn is_any(&self) -> bool {
        self.allowed_origins.iter().any(|origin| origin == "*")
    }

    fn check(&self) -> Result<(), HttpOptionsError> {
        if self.is_any() {
            return match (self.allowed_origins.len(), self.allow_credentials) {
                (1, false) => Ok(()),
                (1, true) => Err(HttpOptionsError::AnyWithCredentials),
                _ => Err(HttpOptionsError::AnyAmongOthers),
            };
        }
        match self.allowed_origins.iter().find(|origin| !is_origin(origin)) {
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
        HttpOptions {
            cors: CorsOptions {
                allowed_origins: origins,
                allow_credentials: credentials,
                ..Default::default()
            },
            ..Default::default()
        }
        .check()
    }

    #[test]
    fn the_defaults_are_valid_and_impossible_rules_are_refused_by_name() {
        assert_eq!(HttpOptions::default().check(), Ok(()));
        assert_eq!(cors(&["*"], true), Err(HttpOptionsError::AnyWithCredentials));
        assert_eq!(cors(&["*", "https://a.example"], false), Err(HttpOptionsError::AnyAmongOthers));
        for origin in ["null", "https://", "a.example", "https://a.example/", "ftp://a", "https://a\r\nb"] {
            assert_eq!(cors(&[origin], false), Err(HttpOptionsError::Origin(origin.to_owned())));
        }
        assert_eq!(cors(&["https://a.example:8443", "http://[::1]:80"], true), Ok(()));
        assert_eq!(cors(&[], false), Ok(()));
        let zero = HttpOptions { response_timeout: 0, ..Default::default() };
        assert_eq!(zero.check(), Err(HttpOptionsError::Zero("deadline_ms")));
        let elsewhere = HttpOptions { base_path: "zarr/".to_owned(), ..Default::default() };
        assert_eq!(elsewhere.check(), Err(HttpOptionsError::BasePath));
        let url = HttpOptions { hosts: vec!["http://a".to_owned()], ..Default::default() };
        assert_eq!(url.check(), Err(HttpOptionsError::Host("http://a".to_owned())));
        let long = HttpOptions { max_list_keys: 1001, ..Default::default() };
        assert_eq!(long.check(), Err(HttpOptionsError::PageTooLong(1001)));
        let rates = |rates| HttpOptions { rate_limit: rates, ..Default::default() }.check();
        let (requests, bytes) = (RateOptions::default(), RateOptions::default());
        let none = RateOptions { request_rate: 1, ..requests };
        assert_eq!(rates(none), Err(HttpOptionsError::Zero("rates.burst_requests")));
        let none = RateOptions { transfer_rate: 1, ..bytes };
        assert_eq!(rates(none), Err(HttpOptionsError::Zero("rates.burst_bytes")));
    }

    #[test]
    fn unknown_options_are_refused_and_missing_ones_have_defaults() {
        let options: HttpOptions = serde_json::from_str(r#"{"cors":{"writes":true}}"#).unwrap();
        assert!(options.cors.allow_writes && options.cors.is_any() && options.max_url_size == 8192);
        assert!(serde_json::from_str::<HttpOptions>(r#"{"url_byte":1}"#).is_err());
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<HttpOptions>(&text).unwrap(), options);
    }
}
