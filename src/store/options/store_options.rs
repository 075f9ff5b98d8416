//! [`StoreOptions`]: the options of one store, as the configuration has them, and the sections that it consists of: the
//! options of each kind of backend, and those that several of them share.
//!
//! The options of a local store are [`LocalOptions`], beside that store. A new section is a struct with [`section!`], a
//! field of [`StoreOptions`] with its default, and an entry of [`sections!`].

use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::section::{section, sections};
use crate::store::backend::ThrottleOptions;
use crate::store::object::TimeoutOptions;
use crate::store::{LocalOptions, PinnedVersion, Secret, Writers};

/// Options of the backend; each is for the backends that it names. Secrets are best set by environment variables, such as
/// `ZARRD__MOUNTS__NAME__OPTIONS__SECRET_ACCESS_KEY`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreOptions {
    /// Whether values may be written and erased. A right of the mount: not read from the table.
    #[serde(skip)]
    pub writable: bool,
    /// Who writes to the backend. A promise of the mount: not read from the table.
    #[serde(skip)]
    pub writers: Writers,
    /// Whether URLs are signed for callers. A right of the mount: not read from the table.
    #[serde(skip)]
    pub signs_urls: bool,
    /// Whether a file with unchanged times counts as unchanged. A promise of the mount: not read from the table.
    #[serde(skip)]
    pub trusts_file_times: bool,
    /// Where references may lead. A table of the mount: not read from this one.
    #[serde(skip)]
    pub references: Vec<AllowedPrefix>,
    /// Where the name of a web server may lead. A rule for what references lead to: not read from the table.
    #[serde(skip)]
    pub reach: HostReach,
    /// The version of a repository whose keys are those without a version; `None` for the branch `main`. A key of the
    /// mount: not read from this table.
    #[serde(skip)]
    pub version: Option<PinnedVersion>,
    /// Directories, and zip files in them. Its `writable` and `trusts_file_times` are those of the mount.
    #[serde(flatten)]
    pub local: LocalOptions,
    /// All remote backends.
    #[serde(flatten)]
    pub remote: RemoteOptions,
    /// S3, GCS and Azure.
    #[serde(flatten)]
    pub bucket: BucketOptions,
    /// S3.
    #[serde(flatten)]
    pub s3: S3Options,
    /// GCS.
    #[serde(flatten)]
    pub gcs: GcsOptions,
    /// GCS and Azure.
    #[serde(flatten)]
    pub bearer: BearerTokenOptions,
    /// Azure.
    #[serde(flatten)]
    pub azure: AzureOptions,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let local = LocalOptions::default();
        Self {
            writable: local.writable,
            writers: Writers::Any,
            signs_urls: false,
            trusts_file_times: local.trusts_file_times,
            references: Vec::new(),
            reach: HostReach::Any,
            version: None,
            local,
            remote: RemoteOptions::default(),
            bucket: BucketOptions::default(),
            s3: S3Options::default(),
            gcs: GcsOptions::default(),
            bearer: BearerTokenOptions::default(),
            azure: AzureOptions::default(),
        }
    }
}

impl StoreOptions {
    /// The options of a local store, with the rights of the mount.
    pub(in crate::store) fn to_local(&self) -> LocalOptions {
        let (writable, trusts_file_times) = (self.writable, self.trusts_file_times);
        LocalOptions { writable, trusts_file_times, ..self.local.clone() }
    }
}

/// Where the name of a host may lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostReach {
    /// Anywhere: to this network too.
    #[default]
    Any,
    /// To addresses of the internet alone.
    Public,
}

/// A prefix that references may lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedPrefix {
    /// The beginning of URLs, as references have it: a scheme, a bucket or host, and a path that ends in a slash.
    pub url: String,
    /// Where that is, if it is not the URL itself.
    pub at: Option<String>,
    /// Whether the name of a web server may lead to addresses of this network.
    pub private_addresses: bool,
    /// Options of the backend there.
    pub options: StoreOptions,
}

impl AllowedPrefix {
    /// The URL of the store.
    #[must_use]
    pub fn store_url(&self) -> &str {
        self.at.as_deref().unwrap_or(&self.url)
    }

    /// The options of the store. An address of this network is allowed where the operator wrote it, or says so.
    pub(in crate::store) fn store_options(&self) -> StoreOptions {
        let host = Url::parse(self.store_url()).ok();
        let is_address = match host.as_ref().and_then(Url::host) {
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        let reach = if self.private_addresses || is_address { HostReach::Any } else { HostReach::Public };
        StoreOptions { reach, ..self.options.clone() }
    }
}

sections!(StoreOptions {
    local: LocalOptions,
    remote: RemoteOptions,
    bucket: BucketOptions,
    s3: S3Options,
    gcs: GcsOptions,
    bearer: BearerTokenOptions,
    azure: AzureOptions,
});

/// Options of all remote backends: S3, GCS, Azure and web servers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteOptions {
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
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
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
        }
    }
}

section!(RemoteOptions {
    missing_on_403,
    connect_timeout,
    read_timeout,
    max_attempts,
    retry_timeout,
    max_retry_percent,
    max_concurrent_requests,
    queue_timeout,
    circuit_breaker_failures,
    max_buffered_upload_size,
});

impl RemoteOptions {
    pub(in crate::store) fn throttle(&self) -> ThrottleOptions {
        ThrottleOptions {
            requests: self.max_concurrent_requests,
            queue: self.queue_timeout,
            failures: self.circuit_breaker_failures,
        }
    }

    pub(in crate::store) fn timeouts(&self) -> TimeoutOptions {
        TimeoutOptions {
            connect: self.connect_timeout,
            read: self.read_timeout,
            tries: self.max_attempts,
            retry: self.retry_timeout,
            retry_percent: self.max_retry_percent,
        }
    }
}

/// Options of the backends that have buckets or containers: S3, GCS and Azure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BucketOptions {
    /// S3, GCS, Azure: URL of a server other than the provider's own.
    ///
    /// Example: `"https://objects.example"`
    pub endpoint: Option<String>,
    /// S3, GCS, Azure: whether `endpoint` may be `http://`, without encryption.
    pub allow_http: bool,
    /// S3, GCS, Azure: where the credentials come from if there are none among these options.
    ///
    /// * `"chain"`: from the places that the provider's own tools search, the first one that has some. S3: the environment
    ///   (`AWS_ACCESS_KEY_ID` …), the profile (`AWS_PROFILE`, `~/.aws/config`, `~/.aws/credentials`, with assumed roles), a web
    ///   identity, the container, the machine's metadata service. Region and endpoint come from there too. GCS and Azure: the
    ///   environment, the default credentials of `gcloud`, a workload identity, the metadata service. `AZURE_STORAGE_CONNECTION_STRING`
    ///   names account, endpoint and credentials, if `account` is not set; `STORAGE_EMULATOR_HOST` the endpoint of an emulator of GCS,
    ///   which gets no credentials. If no place has some, requests are sent unsigned.
    /// * `"anonymous"`: from nowhere, requests are sent unsigned.
    ///
    /// Without it, they are sent unsigned; for a URL on the command line it is `"chain"`.
    ///
    /// Example: `"chain"`
    pub credentials: Option<CredentialSource>,
}

section!(BucketOptions { endpoint, allow_http, credentials });

/// Where credentials come from that no option names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CredentialSource {
    /// The places that the provider's own tools search.
    Chain,
    /// Nowhere: requests are unsigned.
    Anonymous,
}

/// Options of S3 alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3Options {
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
    /// S3: whether the requester pays for requests and data, which some buckets require.
    pub requester_pays: bool,
    /// S3: whether a SHA-256 checksum is sent with every upload, so that the backend rejects bytes that were damaged in transit.
    pub upload_checksum: bool,
}

impl Default for S3Options {
    fn default() -> Self {
        Self {
            region: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            virtual_hosted: false,
            requester_pays: false,
            upload_checksum: true,
        }
    }
}

section!(S3Options {
    region,
    access_key_id,
    secret_access_key,
    session_token,
    virtual_hosted,
    requester_pays,
    upload_checksum,
});

/// Options of GCS alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcsOptions {
    /// GCS: file with the key of a service account.
    ///
    /// Example: `"/run/secrets/key.json"`
    pub service_account_path: Option<String>,
    /// GCS: the key of a service account itself (JSON).
    ///
    /// Example: `"…"`
    pub service_account_key: Option<Secret>,
}

section!(GcsOptions { service_account_path, service_account_key });

/// Options of Azure alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AzureOptions {
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

section!(AzureOptions { account, account_key, sas_token });

/// The option that GCS and Azure share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BearerTokenOptions {
    /// GCS, Azure: a bearer token, sent as it is.
    ///
    /// Example: `"…"`
    pub bearer_token: Option<Secret>,
}

section!(BearerTokenOptions { bearer_token });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Secret, StoreKind, backends_of};

    #[test]
    fn every_option_is_read_and_written_and_belongs_to_a_backend() {
        let text = |text: &str| Some(text.to_owned());
        let secret = || serde_json::from_str::<Secret>("\"x\"").ok();
        let all = StoreOptions {
            bucket: BucketOptions {
                endpoint: text("x"),
                credentials: Some(CredentialSource::Anonymous),
                ..BucketOptions::default()
            },
            s3: S3Options {
                region: text("x"),
                access_key_id: text("x"),
                secret_access_key: secret(),
                session_token: secret(),
                ..S3Options::default()
            },
            gcs: GcsOptions { service_account_path: text("x"), service_account_key: secret() },
            bearer: BearerTokenOptions { bearer_token: secret() },
            azure: AzureOptions { account: text("x"), account_key: secret(), sas_token: secret() },
            ..StoreOptions::default()
        };
        let written = serde_json::to_value(&all).unwrap();
        let mut keys: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(keys.iter().all(|key| backends_of(key).is_some_and(|kinds| !kinds.is_empty())));
        let mut listed = StoreOptions::keys().to_vec();
        keys.sort_unstable();
        listed.sort_unstable();
        assert_eq!(keys, listed);
        let read: StoreOptions = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        assert_eq!(backends_of("region"), Some(&[StoreKind::S3][..]));
        assert_eq!(backends_of("bearer_token"), Some(&[StoreKind::GCS, StoreKind::AZURE][..]));
        assert_eq!(backends_of("regoin"), None);
    }

    #[test]
    fn a_key_that_is_given_twice_is_rejected() {
        let twice = serde_json::from_str::<StoreOptions>(r#"{"max_attempts": 1, "max_attempts": 2}"#);
        assert!(twice.unwrap_err().to_string().contains("duplicate field `max_attempts`"));
    }
}
