//! Opens a container of Azure Blob Storage: `az://container/prefix`.

use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

use crate::store::open::backend::Backend;
use crate::store::open::bucket::{Bucket, ClientConfig, SIGNED_BY_OPTIONS, open_bucket};
use crate::store::open::endpoint::user_info_error;
use crate::store::open::error::OpenError;
use crate::store::open::metadata_service;
use crate::store::options::Section as _;
use crate::store::{
    AzureOptions, BearerTokenOptions, BucketOptions, CredentialSource, RemoteOptions, Secret, SharedStore,
    StoreKind, StoreOptions,
};

pub(super) const BACKEND: Backend = Backend {
    kind: StoreKind::AZURE,
    schemes: &["az"],
    options: &[RemoteOptions::KEYS, BucketOptions::KEYS, AzureOptions::KEYS, BearerTokenOptions::KEYS],
    can_sign: true,
    open,
};

/// What the chain of the client finds, in words.
const DEFAULT_CREDENTIALS: &str = "with the default credentials of Azure";

fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let (own, token) = (&options.azure, options.bearer.bearer_token.as_ref());
    let is_given = own.account_key.is_some() || own.sas_token.is_some() || token.is_some();
    let uses_chain = options.bucket.credentials == Some(CredentialSource::Chain);
    let of_chain = || (uses_chain && chain_has_credentials()).then_some(DEFAULT_CREDENTIALS);
    let signed = if is_given { Some(SIGNED_BY_OPTIONS) } else { of_chain() };
    open_bucket(StoreKind::AZURE, url, options, signed, |config| build(config, own, token))
}

/// Variables with credentials, as the client reads them.
const VARIABLES: [&str; 7] = [
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
];

/// Whether the environment or the machine has credentials.
fn chain_has_credentials() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    VARIABLES.iter().any(is_set) || metadata_service::has_azure_identity()
}

fn build(
    config: ClientConfig<'_>,
    options: &AzureOptions,
    token: Option<&Secret>,
) -> Result<Arc<dyn Bucket>, OpenError> {
    let ClientConfig { bucket, options: shared, is_anonymous, connector, retry } = config;
    let uses_chain = shared.credentials == Some(CredentialSource::Chain);
    let of_environment =
        || std::env::var_os("AZURE_STORAGE_ACCOUNT_NAME")?.into_string().ok().filter(|_| uses_chain);
    let Some(account) = options.account.clone().or_else(of_environment) else {
        return Err(OpenError::Options("`az://` needs `account`"));
    };
    let base = if uses_chain { MicrosoftAzureBuilder::from_env() } else { MicrosoftAzureBuilder::new() };
    let mut builder = base
        .with_account(account)
        .with_container_name(bucket)
        .with_retry(retry)
        .with_http_connector(connector)
        .with_skip_signature(is_anonymous)
        .with_allow_http(shared.allow_http);
    for (name, value) in [
        (AzureConfigKey::Endpoint, shared.endpoint.as_deref()),
        (AzureConfigKey::AccessKey, options.account_key.as_ref().map(Secret::expose)),
        (AzureConfigKey::SasKey, options.sas_token.as_ref().map(Secret::expose)),
        (AzureConfigKey::Token, token.map(Secret::expose)),
    ] {
        if let Some(value) = value {
            builder = builder.with_config(name, value);
        }
    }
    for (key, origin) in [
        (AzureConfigKey::Endpoint, "the environment (`AZURE_STORAGE_ENDPOINT`)"),
        (AzureConfigKey::MsiEndpoint, "the environment (`IDENTITY_ENDPOINT`)"),
        (AzureConfigKey::AuthorityHost, "the environment (`AZURE_STORAGE_AUTHORITY_HOST`)"),
    ] {
        if let Some(reason) = builder.get_config_value(&key).as_deref().and_then(user_info_error) {
            return Err(OpenError::Endpoint { origin, reason });
        }
    }
    Ok(Arc::new(builder.build().map_err(OpenError::from_client)?))
}
