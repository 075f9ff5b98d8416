//! [`StoreOptions`]: everything about a store that its URL does not say.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::backend::ThrottleOptions;
use super::object::TimeoutOptions;
use super::{Durability, LocalOptions, ObjectOptions, Secret, StoreKind, Symlinks};

const LOCAL: &[StoreKind] = &[StoreKind::Local];
const REMOTE: &[StoreKind] = &[StoreKind::S3, StoreKind::Gcs, StoreKind::Azure, StoreKind::Http];
const BUCKETS: &[StoreKind] = &[StoreKind::S3, StoreKind::Gcs, StoreKind::Azure];
const S3: &[StoreKind] = &[StoreKind::S3];
const GCS: &[StoreKind] = &[StoreKind::Gcs];
const AZURE: &[StoreKind] = &[StoreKind::Azure];

/// Which backends each option is for.
const BACKENDS: &[(&[StoreKind], &[&str])] = &[
    (LOCAL, &["symlinks", "durability", "concurrency"]),
    (
        REMOTE,
        &[
            "missing_on_403",
            "connect_timeout_ms",
            "read_timeout_ms",
            "tries",
            "retry_ms",
            "retry_percent",
            "requests",
            "queue_ms",
            "breaker_failures",
            "held_bytes",
        ],
    ),
    (BUCKETS, &["endpoint", "allow_http", "anonymous", "instance_credentials"]),
    (
        S3,
        &[
            "region",
            "access_key_id",
            "secret_access_key",
            "session_token",
            "virtual_hosted",
            "upload_checksum",
        ],
    ),
    (GCS, &["service_account_path", "service_account_key"]),
    (&[StoreKind::Gcs, StoreKind::Azure], &["bearer_token"]),
    (AZURE, &["account", "account_key", "sas_token"]),
];

/// The backends that an option is for, by its key; `None` if there is no such option.
#[must_use]
pub fn backends_of(option: &str) -> Option<&'static [StoreKind]> {
    BACKENDS.iter().find(|(_, options)| options.contains(&option)).map(|(kinds, _)| *kinds)
}

/// How a store is opened. Each option is for the backends named ([`backends_of`]).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration file")]
pub struct StoreOptions {
    /// All: whether values may be written and erased. A right of the mount, not of the backend: not read from here.
    #[serde(skip)]
    pub writable: bool,
    /// S3, GCS, Azure: whether URLs are signed for callers. A right of the mount: not read from here.
    #[serde(skip)]
    pub signs_urls: bool,
    /// Local, zip: whether a file that has the times it had is taken for unchanged. A promise of the mount: not read from
    /// here.
    #[serde(skip)]
    pub believes_times: bool,

    /// Local: what becomes of symbolic links.
    pub symlinks: Symlinks,
    /// Local: when a write is acknowledged.
    pub durability: Durability,
    /// Local: how many file operations that may wait can be under way at once (1 to 64).
    pub max_concurrency: usize,

    /// Remote: read "403 Forbidden" as "no such key". Needed for buckets that may be read but not listed; with
    /// expired credentials such a store looks empty.
    pub missing_on_403: bool,
    /// Remote: how many milliseconds a connection may take to come about.
    pub connect_timeout: u64,
    /// Remote: how many milliseconds an answer may stall, before its head or within it. How long it takes in all is for
    /// its reader.
    pub read_timeout: u64,
    /// Remote: how often a request is made in all, if it fails and may be made again (at least 1).
    pub max_attempts: usize,
    /// Remote: after how many milliseconds a request is not made again.
    pub retry_timeout: u64,
    /// Remote: of a hundred requests, how many may be made again (100: all that fail).
    pub max_retry_percent: u8,
    /// Remote: how many questions may be under way at once (at least 1).
    pub max_concurrent_requests: usize,
    /// Remote: how many milliseconds a question waits for its turn among them; then it is 503.
    pub queue_timeout: u64,
    /// Remote: how many questions must fail within 10 seconds, and no more of them succeed, for the backend to be left
    /// alone for a second; 0 for never.
    pub circuit_breaker_failures: usize,
    /// Remote: the longest value, in bytes, that is held in memory because the backend takes it only whole: under a
    /// condition, or not in parts.
    pub max_buffered_upload_size: u64,
    /// S3, GCS, Azure: another server than the provider's own.
    pub endpoint: Option<String>,
    /// S3, GCS, Azure: let `endpoint` be plain `http://`.
    pub allow_http: bool,
    /// S3, GCS, Azure: send requests unsigned. By default they are if no credentials are given.
    pub anonymous: Option<bool>,
    /// S3, GCS, Azure: get credentials from the environment and the machine's metadata service.
    pub instance_credentials: bool,

    /// S3: the region (default `us-east-1`).
    pub region: Option<String>,
    /// S3: the identifier of the access key.
    pub access_key_id: Option<String>,
    /// S3: the access key.
    pub secret_access_key: Option<Secret>,
    /// S3: the token that goes with temporary credentials.
    pub session_token: Option<Secret>,
    /// S3: put the bucket into the host name instead of the path.
    pub virtual_hosted: bool,
    /// S3: send a checksum with every upload, for the backend to compare.
    pub upload_checksum: bool,

    /// GCS: the file with a service account's key.
    pub service_account_path: Option<String>,
    /// GCS: a service account's key itself (JSON).
    pub service_account_key: Option<Secret>,
    /// GCS, Azure: a token to be sent as it is.
    pub bearer_token: Option<Secret>,

    /// Azure: the storage account.
    pub account: Option<String>,
    /// Azure: the account's key.
    pub account_key: Option<Secret>,
    /// Azure: a shared access signature.
    pub sas_token: Option<Secret>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let local = LocalOptions::default();
        Self {
            writable: false,
            signs_urls: false,
            believes_times: local.believes_times,
            symlinks: local.symlinks,
            durability: local.durability,
            max_concurrency: local.concurrency,
            missing_on_403: false,
            connect_timeout: 5_000,
            read_timeout: 30_000,
            max_attempts: 3,
            retry_timeout: 10_000,
            max_retry_percent: 10,
            max_concurrent_requests: 64,
            queue_timeout: 5_000,
            circuit_breaker_failures: 10,
            max_buffered_upload_size: 64 << 20,
            endpoint: None,
            allow_http: false,
            anonymous: None,
            instance_credentials: false,
            region: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            virtual_hosted: false,
            upload_checksum: true,
            service_account_path: None,
            service_account_key: None,
            bearer_token: None,
            account: None,
            account_key: None,
            sas_token: None,
        }
    }
}

impl StoreOptions {
    pub(super) fn local(&self) -> LocalOptions {
        LocalOptions {
            symlinks: self.symlinks,
            durability: self.durability,
            writable: self.writable,
            concurrency: self.max_concurrency,
            believes_times: self.believes_times,
        }
    }

    pub(super) fn object(&self) -> ObjectOptions {
        ObjectOptions {
            writable: self.writable,
            missing_on_403: self.missing_on_403,
            held_bytes: self.max_buffered_upload_size,
            retry: Duration::from_millis(self.retry_timeout),
            // The providers' own servers take conditions; of others, which the environment may name too, nothing is known.
            known: self.endpoint.is_none() && !self.instance_credentials,
        }
    }

    pub(super) fn restraint(&self) -> ThrottleOptions {
        ThrottleOptions {
            requests: self.max_concurrent_requests,
            queue: Duration::from_millis(self.queue_timeout),
            failures: self.circuit_breaker_failures,
        }
    }

    pub(super) fn patience(&self) -> TimeoutOptions {
        TimeoutOptions {
            connect: Duration::from_millis(self.connect_timeout),
            read: Duration::from_millis(self.read_timeout),
            tries: self.max_attempts,
            retry: Duration::from_millis(self.retry_timeout),
            retry_percent: self.max_retry_percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_option_it_is_known_whose_it_is() {
        let text = |text: &str| Some(text.to_owned());
        let secret = || serde_json::from_str::<Secret>("\"x\"").ok();
        let all = StoreOptions {
            endpoint: text("x"),
            anonymous: Some(true),
            region: text("x"),
            access_key_id: text("x"),
            secret_access_key: secret(),
            session_token: secret(),
            service_account_path: text("x"),
            service_account_key: secret(),
            bearer_token: secret(),
            account: text("x"),
            account_key: secret(),
            sas_token: secret(),
            ..StoreOptions::default()
        };
        let all = serde_json::to_value(&all).unwrap();
        let mut keys: Vec<&str> = all.as_object().unwrap().keys().map(String::as_str).collect();
        let mut listed: Vec<&str> =
            BACKENDS.iter().flat_map(|(_, options)| options.iter().copied()).collect();
        keys.sort_unstable();
        listed.sort_unstable();
        assert_eq!(keys, listed);
        assert_eq!(backends_of("region"), Some(S3));
        assert_eq!(backends_of("regoin"), None);
    }
}
