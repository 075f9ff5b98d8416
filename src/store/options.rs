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
    (LOCAL, &["symlinks", "durability", "max_concurrency"]),
    (
        REMOTE,
        &[
            "missing_on_403",
            "connect_timeout",
            "read_timeout",
            "max_attempts",
            "retry_timeout",
            "max_retry_percent",
            "max_concurrent_requests",
            "queue_timeout",
            "circuit_breaker_failures",
            "max_buffered_upload_size",
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

/// Options of the backend; each is for the backends that it names. Secrets are best set by environment variables, such as
/// `ZARRD__MOUNTS__NAME__OPTIONS__SECRET_ACCESS_KEY`.
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
    /// Local, zip: whether a file with unchanged timestamps counts as unchanged. A promise of the mount: not read from here.
    #[serde(skip)]
    pub believes_times: bool,

    /// Local: which symbolic links are followed: those that stay within the root (`"within"`; absolute links count as leaving it,
    /// and without Linux's `openat2` none is followed), all (`"follow"`), or none (`"deny"`).
    ///
    /// A link that is not followed, that leads to nothing or in a circle is 500 `unusable-link`: never 404, which clients read as
    /// fill values, and not 403 either, which GDAL and Neuroglancer read in the same way. Listings show such a link as a key.
    /// Writes and deletions of a key that is a link replace or delete the link itself, and a prefix is deleted with the links in
    /// it, but without their targets. A copy or move whose source and destination are the same through a link is rejected (403
    /// `overlapping`).
    pub symlinks: Symlinks,
    /// Local: when a write is acknowledged: once it is on the disk (`"fsync"`), or once it is visible (`"rename"`).
    pub durability: Durability,
    /// Local: blocking file operations in flight (1 to 64).
    pub max_concurrency: usize,

    /// Remote: treat 403 as "no such key", for buckets that permit reading but not listing. With expired credentials such a store
    /// seems empty.
    pub missing_on_403: bool,
    /// Remote: time for a connection to be established.
    #[serde(with = "crate::units::duration")]
    pub connect_timeout: Duration,
    /// Remote: time in which a response must make progress, before its head or within it. There is no limit on the duration of a
    /// whole response: its reader decides that.
    #[serde(with = "crate::units::duration")]
    pub read_timeout: Duration,
    /// Remote: attempts of a request in all, if it fails and may be repeated (at least 1). A conditional write is repeated only if
    /// the attempt before it is known to have had no effect.
    pub max_attempts: usize,
    /// Remote: time after which a request is not repeated.
    #[serde(with = "crate::units::duration")]
    pub retry_timeout: Duration,
    /// Remote: retry budget: how many of a hundred requests may be repeated, so that retries do not multiply the load of a backend
    /// in trouble (100: all that fail).
    pub max_retry_percent: u8,
    /// Remote: requests in flight (at least 1). Where none of them ends for two seconds, those that wait are 503 at once.
    pub max_concurrent_requests: usize,
    /// Remote: how long a request waits for its turn among them. Then it is 503.
    #[serde(with = "crate::units::duration")]
    pub queue_timeout: Duration,
    /// Remote: circuit breaker: when this many requests have failed within 10 seconds (no connection, timeout, 5xx, 429) and no
    /// more have succeeded, all are 503 for a second, and then one is tried. 0: never.
    pub circuit_breaker_failures: usize,
    /// Remote: size of a value that is buffered in memory because the backend accepts it only as a whole: with a condition, or
    /// because it accepts no parts.
    #[serde(with = "crate::units::size")]
    pub max_buffered_upload_size: u64,
    /// S3, GCS, Azure: URL of a server other than the provider's own.
    ///
    /// Example: `"https://objects.example"`
    pub endpoint: Option<String>,
    /// S3, GCS, Azure: whether `endpoint` may be `http://`, without encryption.
    pub allow_http: bool,
    /// S3, GCS, Azure: whether requests are sent unsigned. They are if no credentials are given.
    ///
    /// Example: `true`
    pub anonymous: Option<bool>,
    /// S3, GCS, Azure: whether credentials come from the environment and the metadata service of the machine.
    pub instance_credentials: bool,

    /// S3: the region. Without it, `us-east-1`.
    ///
    /// Example: `"us-east-1"`
    pub region: Option<String>,
    /// S3: identifier of the access key.
    ///
    /// Example: `"…"`
    pub access_key_id: Option<String>,
    /// S3: the secret access key.
    ///
    /// Example: `"…"`
    pub secret_access_key: Option<Secret>,
    /// S3: the token of temporary credentials.
    ///
    /// Example: `"…"`
    pub session_token: Option<Secret>,
    /// S3: whether the bucket is part of the host name instead of the path.
    pub virtual_hosted: bool,
    /// S3: whether a SHA-256 checksum is sent with every upload, so that the backend rejects bytes that were damaged in transit.
    pub upload_checksum: bool,

    /// GCS: file with the key of a service account.
    ///
    /// Example: `"/run/secrets/key.json"`
    pub service_account_path: Option<String>,
    /// GCS: the key of a service account itself (JSON).
    ///
    /// Example: `"…"`
    pub service_account_key: Option<Secret>,
    /// GCS, Azure: a bearer token, sent as it is.
    ///
    /// Example: `"…"`
    pub bearer_token: Option<Secret>,

    /// Azure: the storage account.
    ///
    /// Example: `"…"`
    pub account: Option<String>,
    /// Azure: key of the account.
    ///
    /// Example: `"…"`
    pub account_key: Option<Secret>,
    /// Azure: a shared access signature.
    ///
    /// Example: `"…"`
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
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(30),
            max_attempts: 3,
            retry_timeout: Duration::from_secs(10),
            max_retry_percent: 10,
            max_concurrent_requests: 64,
            queue_timeout: Duration::from_secs(5),
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
            retry: self.retry_timeout,
            // The providers' own servers take conditions; of others, which the environment may name too, nothing is known.
            known: self.endpoint.is_none() && !self.instance_credentials,
        }
    }

    pub(super) fn restraint(&self) -> ThrottleOptions {
        ThrottleOptions {
            requests: self.max_concurrent_requests,
            queue: self.queue_timeout,
            failures: self.circuit_breaker_failures,
        }
    }

    pub(super) fn patience(&self) -> TimeoutOptions {
        TimeoutOptions {
            connect: self.connect_timeout,
            read: self.read_timeout,
            tries: self.max_attempts,
            retry: self.retry_timeout,
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
