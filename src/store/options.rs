//! [`StoreOptions`]: everything about a store that its URL does not say.

use serde::{Deserialize, Serialize};

use super::{Durability, LocalOptions, ObjectOptions, Secret, Symlinks};

/// How a store is opened. Each option is for the backends named; the others ignore it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the configuration file")]
pub struct StoreOptions {
    /// All: whether values may be written and erased. A right of the mount, not of the backend: not read from here.
    #[serde(skip)]
    pub writable: bool,

    /// Local: what becomes of symbolic links.
    pub symlinks: Symlinks,
    /// Local: when a write is acknowledged.
    pub durability: Durability,
    /// Local: how many file operations may be under way at once (1 to 64).
    pub concurrency: usize,

    /// Remote: read "403 Forbidden" as "no such key". Needed for buckets that may be read but not listed; with
    /// expired credentials such a store looks empty.
    pub missing_on_403: bool,
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
            symlinks: local.symlinks,
            durability: local.durability,
            concurrency: local.concurrency,
            missing_on_403: false,
            endpoint: None,
            allow_http: false,
            anonymous: None,
            instance_credentials: false,
            region: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            virtual_hosted: false,
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
            concurrency: self.concurrency,
        }
    }

    pub(super) fn object(&self) -> ObjectOptions {
        ObjectOptions { writable: self.writable, missing_on_403: self.missing_on_403 }
    }
}
