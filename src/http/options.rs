//! [`HttpOptions`]: limits of requests and responses, and CORS rules, with their defaults.
//!
//! [`HttpOptions::check`] rejects impossible combinations before a listener is bound, so nothing that is built from options can
//! fail later.

use std::time::Duration;

use axum::http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::base_path::BasePath;
use super::host::is_host;
use super::network::Network;
use super::viewers::{self, Viewer};

/// Limits of requests and responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpOptions {
    /// Size of a URL (path and query). A longer one is 414.
    #[serde(with = "crate::units::size")]
    pub max_url_size: usize,
    /// Headers of a request. More are 431.
    pub max_headers: usize,
    /// Size of all headers of a request together, each counted as a line of HTTP/1.1. More is 431.
    #[serde(with = "crate::units::size")]
    pub max_headers_size: usize,
    /// A prefix of all paths, such as `"/zarr"`. It is removed from requests (a request without it is 404) and added to links.
    /// A mount at the root path of an address or host of its own has no prefix.
    pub base_path: String,
    /// The URL at which others reach this server, with the base path: `"https://data.example/zarr"`. Node documents then have
    /// links that open data in the viewers of `open_in`. They have none as long as this is empty.
    pub public_url: String,
    /// Viewers that node documents link to, if every caller may read the node and the viewer's page may (`http.cors`). These
    /// are pages of others, which are given the URL of the node. Besides the ones of the default, a viewer can be
    /// `"NAME=URL"`, where `{url}` in the URL stands for the node. An empty list disables the links.
    pub open_in: Vec<String>,
    /// Host names of this server besides those of mounts, such as `"data.example"`. A page of the server itself may write without
    /// a credential only if its host is one of these, a loopback name or an address. Under any other name the write is 421,
    /// because the owner of that name could point it here and so write from a page of his own (DNS rebinding). Programs other
    /// than browsers send no `Origin` and may use any name, and anyone may read under every name. At `server.admin_listen`, all
    /// requests need such a name.
    pub hosts: Vec<String>,
    /// Proxies whose forwarding headers are trusted. They are configured with the listener.
    #[serde(skip)]
    pub trusted_proxies: Vec<Network>,
    /// Whether the pages for people are served. That is configured with the listener.
    #[serde(skip)]
    pub ui: bool,
    /// Size of a value that PUT stores or PATCH results in. A larger one is 413.
    #[serde(with = "crate::units::size")]
    pub max_value_size: u64,
    /// A request body that sends nothing for this long is 408.
    #[serde(with = "crate::units::duration")]
    pub body_stall_timeout: Duration,
    /// Bytes per second that a request body must arrive at, measured after `body_stall_timeout`. A slower one is 408.
    #[serde(with = "crate::units::size")]
    pub min_body_rate: u64,
    /// Keys and prefixes on a page of a JSON listing; 1000 at most.
    pub max_list_keys: usize,
    /// Memory for responses in flight, as estimated when they are admitted.
    #[serde(with = "crate::units::size")]
    pub inflight_size: u64,
    /// Responses in flight. Each counts at least as an equal part of `inflight_size`.
    pub max_inflight_requests: u64,
    /// What a streamed value counts towards `inflight_size`, whatever its length.
    #[serde(with = "crate::units::size")]
    pub streamed_response_size: u64,
    /// Size of a response whose length depends on its elements (JSON, CSV, Arrow, text of variable length): it is buffered
    /// completely before it is sent. A longer one is 413. The same holds for responses and request bodies of `/v1/partial`.
    /// It is at most a quarter of `inflight_size`.
    #[serde(with = "crate::units::size")]
    pub max_buffered_response_size: u64,
    /// How long a request waits to be admitted, which means until the responses in flight leave enough of `inflight_size`.
    /// Then it is 503. A request whose expected wait is longer than half of this time is 503 at once.
    ///
    /// Metadata is admitted before stored bytes, these before decoded elements, and these before listings and bulk requests.
    /// The later ones leave 1, 2 and 3 sixteenths of the memory free. Within a class, clients with less in flight go first. A
    /// client that uses more than three times of what is free waits while others are admitted, which keeps the slow responses of
    /// one client from using everything. A response that counts more than 1/128 of the memory (and more than
    /// `streamed_response_size`) leaves 4 sixteenths free, and shorter ones are admitted before it, so there is memory for
    /// short responses however slowly long ones are read.
    #[serde(with = "crate::units::duration")]
    pub admission_timeout: Duration,
    /// Time from a request to the head of its response. Then it is 504. The time of an upload does not count.
    #[serde(with = "crate::units::duration")]
    pub response_timeout: Duration,
    /// Time in which a backend must answer the readiness check. A check never takes longer than half of `response_timeout`.
    #[serde(with = "crate::units::duration")]
    pub readiness_timeout: Duration,
    /// Limits for each client.
    pub rate_limit: RateOptions,
    /// Uploads in parts.
    pub uploads: UploadOptions,
    /// Whether `/metrics` is also public, at the address of the server itself.
    pub public_metrics: bool,
    /// Cross-origin requests.
    pub cors: CorsOptions,
    /// Pictures. They are configured in a section of their own.
    #[serde(skip)]
    pub image: ImageOptions,
}

/// Uploads in parts, as clients of S3 send long values. The parts are staged in the backend of the mount, where nothing shows
/// them, until the upload is completed. A directory keeps them as long as the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UploadOptions {
    /// Unfinished uploads to a mount. One more is 503.
    pub max_uploads: usize,
    /// Size of the parts of all unfinished uploads to a mount. More is 503.
    #[serde(with = "crate::units::size")]
    pub max_staged_size: u64,
    /// An upload that is not finished in this time is aborted. The time begins again when the server starts.
    #[serde(with = "crate::units::duration")]
    pub timeout: Duration,
}

impl Default for UploadOptions {
    fn default() -> Self {
        Self { max_uploads: 1000, max_staged_size: 64 << 30, timeout: Duration::from_hours(24) }
    }
}

/// Pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImageOptions {
    /// Pixels of a picture. A plane with more is halved until it has no more.
    pub max_pixels: u64,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self { max_pixels: 16 << 20 }
    }
}

/// Limits for each client; more is 429, with the time after which to try again. A client is the name in its credential, or else
/// its address (of IPv6, its network of 64 bits). Holders of different signed URLs are different clients, but all URLs of one
/// key count as 64 clients at most. 0: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateOptions {
    /// Requests per second.
    pub request_rate: u32,
    /// Requests that may arrive at once; at least 1 if there is a rate.
    pub request_burst: u32,
    /// Bytes of responses per second. A response that has begun is sent to its end; the next one waits for what it exceeds.
    #[serde(with = "crate::units::size")]
    pub transfer_rate: u64,
    /// Bytes of responses that may be sent at once; at least 1 if there is a rate.
    #[serde(with = "crate::units::size")]
    pub transfer_burst: u64,
}

impl RateOptions {
    /// Whether there is any limit.
    pub(crate) fn is_on(&self) -> bool {
        self.request_rate > 0 || self.transfer_rate > 0
    }

    fn check(&self) -> Result<(), HttpOptionsError> {
        if self.request_rate > 0 && self.request_burst == 0 {
            return Err(HttpOptionsError::NoRequestBurst);
        }
        if self.transfer_rate > 0 && self.transfer_burst == 0 {
            return Err(HttpOptionsError::NoTransferBurst);
        }
        Ok(())
    }
}

/// Cross-origin requests, which are those of pages of other web sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CorsOptions {
    /// Origins whose pages may read: `"*"` alone for all, or origins such as `"https://viewer.example:8443"`. An empty list
    /// disables CORS.
    pub allowed_origins: Vec<String>,
    /// Whether pages of these origins may also write: PUT, PATCH, DELETE, MKCOL, COPY, MOVE and writes by POST. Pages of other
    /// origins are 403.
    pub allow_writes: bool,
    /// Whether browsers may send credentials. Not together with `"*"`.
    pub allow_credentials: bool,
    /// How long a browser may cache the response to a preflight request.
    #[serde(with = "crate::units::duration")]
    pub max_age: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_url_size: 8 << 10,
            max_headers: 100,
            max_headers_size: 32 << 10,
            base_path: String::new(),
            public_url: String::new(),
            open_in: viewers::names(),
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            ui: true,
            max_value_size: 256 << 20,
            body_stall_timeout: Duration::from_secs(30),
            min_body_rate: 16 << 10,
            max_list_keys: 1000,
            inflight_size: 512 << 20,
            max_inflight_requests: 4096,
            max_buffered_response_size: 64 << 20,
            streamed_response_size: 1 << 20,
            admission_timeout: Duration::from_millis(500),
            response_timeout: Duration::from_mins(1),
            readiness_timeout: Duration::from_secs(2),
            rate_limit: RateOptions::default(),
            uploads: UploadOptions::default(),
            public_metrics: false,
            cors: CorsOptions::default(),
            image: ImageOptions::default(),
        }
    }
}

impl Default for CorsOptions {
    fn default() -> Self {
        Self {
            allowed_origins: vec!["*".to_owned()],
            allow_writes: false,
            allow_credentials: false,
            max_age: Duration::from_hours(24),
        }
    }
}

/// Why options or mounts are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpOptionsError {
    /// A limit of zero would reject everything.
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
    /// A rate of requests of which none may arrive.
    #[error("needs `request_burst` beside it, which is at least 1: the requests that may arrive at once")]
    NoRequestBurst,
    /// A rate of bytes of which none may be sent.
    #[error("needs `transfer_burst` beside it, which is at least 1: the bytes that may be sent at once")]
    NoTransferBurst,
    /// Not a path that can be a prefix of others.
    #[error(
        "`base_path` must be empty or a path such as `/zarr`, without a trailing slash and without escapes"
    )]
    BasePath,
    /// Not the URL of a server.
    #[error(
        "`public_url` must be empty or a URL such as `https://data.example/zarr`, without a slash at its end"
    )]
    PublicUrl,
    /// Neither a known viewer nor a template.
    #[error(
        "`{0}` in `open_in` is neither a known viewer ({known}) nor `NAME=URL` with `{{url}}` in an `http` or `https` URL",
        known = viewers::names().join(", ")
    )]
    Viewer(String),
    /// A listing page cannot be longer.
    #[error("`max_list_keys` is at most 1000, not {0}")]
    PageTooLong(usize),
    /// `*` beside other origins.
    #[error("`*` must be the only entry of `cors.allowed_origins`")]
    AnyAmongOthers,
    /// Browsers reject this combination.
    #[error("`cors.allow_credentials` needs the origins by name, not `*`")]
    AnyWithCredentials,
    /// An origin is not `scheme://host[:port]`.
    #[error("`{0}` is not an origin such as `https://viewer.example`")]
    Origin(String),
    /// A mount name that cannot be part of a URL.
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

impl HttpOptionsError {
    /// The setting within `[http]` that is invalid; none for a setting of a mount.
    #[must_use]
    pub fn setting(&self) -> &[&'static str] {
        match self {
            Self::NoRequestBurst => &["rate_limit", "request_rate"],
            Self::NoTransferBurst => &["rate_limit", "transfer_rate"],
            Self::Zero(name) => std::slice::from_ref(name),
            Self::BasePath => &["base_path"],
            Self::PublicUrl => &["public_url"],
            Self::Viewer(_) => &["open_in"],
            Self::Host(_) => &["hosts"],
            Self::PageTooLong(_) => &["max_list_keys"],
            Self::AnyAmongOthers | Self::Origin(_) => &["cors", "allowed_origins"],
            Self::AnyWithCredentials => &["cors", "allow_credentials"],
            Self::MountName(_) | Self::DuplicateMount(_) | Self::DuplicateHost(_) | Self::CacheControl(_) => {
                &[]
            }
        }
    }
}

impl HttpOptions {
    /// Checks the rules that types cannot express.
    ///
    /// # Errors
    /// [`HttpOptionsError`] names the option.
    pub fn check(&self) -> Result<(), HttpOptionsError> {
        for (name, is_zero) in [
            ("max_url_size", self.max_url_size == 0),
            ("max_headers", self.max_headers == 0),
            ("max_headers_size", self.max_headers_size == 0),
            ("body_stall_timeout", self.body_stall_timeout.is_zero()),
            ("max_list_keys", self.max_list_keys == 0),
            ("inflight_size", self.inflight_size == 0),
            ("max_inflight_requests", self.max_inflight_requests == 0),
            ("response_timeout", self.response_timeout.is_zero()),
            ("readiness_timeout", self.readiness_timeout.is_zero()),
        ] {
            if is_zero {
                return Err(HttpOptionsError::Zero(name));
            }
        }
        if BasePath::parse(&self.base_path).is_none() {
            return Err(HttpOptionsError::BasePath);
        }
        if !self.public_url.is_empty() && !is_public_url(&self.public_url) {
            return Err(HttpOptionsError::PublicUrl);
        }
        if let Some(viewer) = self.open_in.iter().find(|viewer| Viewer::parse(viewer).is_none()) {
            return Err(HttpOptionsError::Viewer(viewer.clone()));
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

    /// How long a check of a backend may take, so that the response that reports it can still begin in time.
    pub(crate) fn readiness_wait(&self) -> Duration {
        self.readiness_timeout.min(self.response_timeout / 2)
    }
}

impl CorsOptions {
    /// Whether every origin may read.
    pub(crate) fn is_any(&self) -> bool {
        self.allowed_origins.iter().any(|origin| origin == "*")
    }

    /// Whether pages of an origin may read.
    pub(crate) fn allows(&self, origin: &str) -> bool {
        self.is_any() || self.allowed_origins.iter().any(|allowed| allowed == origin)
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

/// Whether a text is an origin and a base path.
fn is_public_url(text: &str) -> bool {
    let start = text.find("://").map_or(0, |at| at + 3);
    let path = text.get(start..).and_then(|rest| rest.find('/')).map_or(text.len(), |at| start + at);
    let (origin, path) = text.split_at(path);
    is_origin(origin) && BasePath::parse(path).is_some()
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
    fn the_defaults_are_valid_and_an_error_names_the_invalid_option() {
        assert_eq!(HttpOptions::default().check(), Ok(()));
        assert_eq!(cors(&["*"], true), Err(HttpOptionsError::AnyWithCredentials));
        assert_eq!(cors(&["*", "https://a.example"], false), Err(HttpOptionsError::AnyAmongOthers));
        for origin in ["null", "https://", "a.example", "https://a.example/", "ftp://a", "https://a\r\nb"] {
            assert_eq!(cors(&[origin], false), Err(HttpOptionsError::Origin(origin.to_owned())));
        }
        assert_eq!(cors(&["https://a.example:8443", "http://[::1]:80"], true), Ok(()));
        assert_eq!(cors(&[], false), Ok(()));
        let zero = HttpOptions { response_timeout: Duration::ZERO, ..Default::default() };
        assert_eq!(zero.check(), Err(HttpOptionsError::Zero("response_timeout")));
        let relative = HttpOptions { base_path: "zarr/".to_owned(), ..Default::default() };
        assert_eq!(relative.check(), Err(HttpOptionsError::BasePath));
        let url = HttpOptions { hosts: vec!["http://a".to_owned()], ..Default::default() };
        assert_eq!(url.check(), Err(HttpOptionsError::Host("http://a".to_owned())));
        let long = HttpOptions { max_list_keys: 1001, ..Default::default() };
        assert_eq!(long.check(), Err(HttpOptionsError::PageTooLong(1001)));
        let rates = |rates| HttpOptions { rate_limit: rates, ..Default::default() }.check();
        let (requests, bytes) = (RateOptions::default(), RateOptions::default());
        let none = RateOptions { request_rate: 1, ..requests };
        assert_eq!(rates(none), Err(HttpOptionsError::NoRequestBurst));
        let none = RateOptions { transfer_rate: 1, ..bytes };
        assert_eq!(rates(none), Err(HttpOptionsError::NoTransferBurst));
    }

    #[test]
    fn unknown_options_are_rejected_and_missing_ones_have_defaults() {
        let options: HttpOptions = serde_json::from_str(r#"{"cors":{"allow_writes":true}}"#).unwrap();
        assert!(options.cors.allow_writes && options.cors.is_any() && options.max_url_size == 8192);
        assert!(serde_json::from_str::<HttpOptions>(r#"{"max_url_sizes":1}"#).is_err());
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<HttpOptions>(&text).unwrap(), options);
    }
}
