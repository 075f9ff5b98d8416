//! The options of each kind of backend, and those that several of them share.
//!
//! The options of a local store are [`LocalOptions`](crate::store::LocalOptions), beside that store.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::section::section;
use crate::store::Secret;
use crate::store::backend::ThrottleOptions;
use crate::store::object::TimeoutOptions;

/// Options of all remote backends: S3, GCS, Azure and web servers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteOptions {
    /// Read "403 Forbidden" as "no such key". Needed for buckets that may be read but not listed; with expired
    /// credentials such a store looks empty.
    pub missing_on_403: bool,
    /// Timeout for connecting, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long a response may stall, in milliseconds, before its head or within it. There is no timeout for the
    /// complete response: that depends on its reader.
    pub read_timeout_ms: u64,
    /// The most attempts for one request, if it fails and may be repeated (at least 1).
    pub tries: usize,
    /// No retry begins later than this after the first attempt, in milliseconds.
    pub retry_ms: u64,
    /// The retry budget: the most retries for each hundred answered requests (100: no limit).
    pub retry_percent: u8,
    /// The most concurrent requests (at least 1).
    pub requests: usize,
    /// How long a request waits to become one of them, in milliseconds; then it is rejected with 503.
    pub queue_ms: u64,
    /// The circuit breaker opens for a second when this many requests fail within 10 seconds and no more than that
    /// succeed; 0 for never.
    pub breaker_failures: usize,
    /// The longest value, in bytes, that is held in memory because the backend takes it only in one piece: under a
    /// condition, or where it takes no multipart uploads.
    pub held_bytes: u64,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            missing_on_403: false,
            connect_timeout_ms: 5_000,
            read_timeout_ms: 30_000,
            tries: 3,
            retry_ms: 10_000,
            retry_percent: 10,
            requests: 64,
            queue_ms: 5_000,
            breaker_failures: 10,
            held_bytes: 64 << 20,
        }
    }
}

section!(RemoteOptions {
    missing_on_403,
    connect_timeout_ms,
    read_timeout_ms,
    tries,
    retry_ms,
    retry_percent,
    requests,
    queue_ms,
    breaker_failures,
    held_bytes,
});

impl RemoteOptions {
    pub(in crate::store) fn throttle(&self) -> ThrottleOptions {
        ThrottleOptions {
            requests: self.requests,
            queue: Duration::from_millis(self.queue_ms),
            failures: self.breaker_failures,
        }
    }

    pub(in crate::store) fn timeouts(&self) -> TimeoutOptions {
        TimeoutOptions {
            connect: Duration::from_millis(self.connect_timeout_ms),
            read: Duration::from_millis(self.read_timeout_ms),
            tries: self.tries,
            retry: Duration::from_millis(self.retry_ms),
            retry_percent: self.retry_percent,
        }
    }
}

/// Options of the backends that have buckets or containers: S3, GCS and Azure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BucketOptions {
    /// Another server than the provider's own.
    pub endpoint: Option<String>,
    /// Let `endpoint` be unencrypted `http://`.
    pub allow_http: bool,
    /// Send requests unsigned. By default they are if no credentials are given.
    pub anonymous: Option<bool>,
    /// Get credentials from the environment and the machine's metadata service.
    pub instance_credentials: bool,
}

section!(BucketOptions { endpoint, allow_http, anonymous, instance_credentials });

/// Options of S3 alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3Options {
    /// The region (default `us-east-1`).
    pub region: Option<String>,
    /// The identifier of the access key.
    pub access_key_id: Option<String>,
    /// The access key.
    pub secret_access_key: Option<Secret>,
    /// The token that goes with temporary credentials.
    pub session_token: Option<Secret>,
    /// Put the bucket into the host name instead of the path.
    pub virtual_hosted: bool,
    /// Send a checksum with every upload, for the backend to compare.
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
    upload_checksum,
});

/// Options of GCS alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcsOptions {
    /// The file with a service account's key.
    pub service_account_path: Option<String>,
    /// A service account's key itself (JSON).
    pub service_account_key: Option<Secret>,
}

section!(GcsOptions { service_account_path, service_account_key });

/// Options of Azure alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AzureOptions {
    /// The storage account.
    pub account: Option<String>,
    /// The account's key.
    pub account_key: Option<Secret>,
    /// A shared access signature.
    pub sas_token: Option<Secret>,
}

section!(AzureOptions { account, account_key, sas_token });

/// The option that GCS and Azure share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BearerTokenOptions {
    /// A token that is sent as it is.
    pub bearer_token: Option<Secret>,
}

section!(BearerTokenOptions { bearer_token });
