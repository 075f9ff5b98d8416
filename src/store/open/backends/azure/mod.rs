//! Opens a container of Azure Blob Storage: `az://container/prefix`.

mod connection_string;

use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

use self::connection_string::ConnectionString;
use crate::store::open::backend::Backend;
use crate::store::open::bucket::{Bucket, ClientConfig, SIGNED_BY_OPTIONS, open_bucket};
use crate::store::open::endpoint::{endpoint_error, user_info_error};
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
    locate: Some(locate),
    open,
};

/// What is missing, and where it may be.
const NO_ACCOUNT: &str = "`az://` needs `account`; with `credentials = \"chain\"`, AZURE_STORAGE_ACCOUNT_NAME or \
    AZURE_STORAGE_CONNECTION_STRING name it as well";
/// What the chain of the client finds, in words.
const DEFAULT_CREDENTIALS: &str = "with the default credentials of Azure";
/// What the connection string has, in words.
const SIGNED_BY_CONNECTION_STRING: &str = "with the credentials of `AZURE_STORAGE_CONNECTION_STRING`";
/// What names the endpoint of the chain.
const ENDPOINT: &str = "the environment (`AZURE_STORAGE_ENDPOINT`)";

/// Adds the account, the endpoint and the credentials that the environment names, where the options have none.
fn locate(options: &mut StoreOptions) -> Result<(), OpenError> {
    if options.bucket.credentials != Some(CredentialSource::Chain) {
        return Ok(());
    }
    if options.azure.account.is_none() {
        add_connection_string(options)?;
    }
    if options.azure.account.is_none() {
        options.azure.account =
            MicrosoftAzureBuilder::from_env().get_config_value(&AzureConfigKey::AccountName);
    }
    if options.bucket.endpoint.is_none() {
        add_endpoint(options)?;
    }
    Ok(())
}

fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let uses_chain = options.bucket.credentials == Some(CredentialSource::Chain);
    let (mut options, signed) = (options.clone(), has_credentials(options).then_some(SIGNED_BY_OPTIONS));
    locate(&mut options)?;
    let signed = signed.or(has_credentials(&options).then_some(SIGNED_BY_CONNECTION_STRING));
    let of_chain = || (uses_chain && chain_has_credentials()).then_some(DEFAULT_CREDENTIALS);
    let signed = signed.or_else(of_chain);
    let (own, token) = (options.azure.clone(), options.bearer.bearer_token.clone());
    open_bucket(StoreKind::AZURE, url, &options, signed, |config| build(config, &own, token.as_ref()))
}

/// Whether the options have credentials.
fn has_credentials(options: &StoreOptions) -> bool {
    let AzureOptions { account_key, sas_token, .. } = &options.azure;
    account_key.is_some() || sas_token.is_some() || options.bearer.bearer_token.is_some()
}

/// Adds the account, the endpoint and the credentials of the connection string in the environment, if there is one.
fn add_connection_string(options: &mut StoreOptions) -> Result<(), OpenError> {
    let Some(found) = ConnectionString::of_process()? else { return Ok(()) };
    if !has_credentials(options) {
        (options.azure.account_key, options.azure.sas_token) = (found.key, found.sas_token);
    }
    options.azure.account = Some(found.account);
    if options.bucket.endpoint.is_none() && found.endpoint.is_some() {
        // The tools of Azure ask for no leave.
        (options.bucket.endpoint, options.bucket.allow_http) = (found.endpoint, true);
    }
    if has_credentials(options) {
        // Other variables of the environment have no say.
        options.bucket.credentials = None;
    }
    Ok(())
}

/// Adds the endpoint that a variable of the client names.
fn add_endpoint(options: &mut StoreOptions) -> Result<(), OpenError> {
    let found = MicrosoftAzureBuilder::from_env().get_config_value(&AzureConfigKey::Endpoint);
    let Some(endpoint) = found.filter(|endpoint| !endpoint.is_empty()) else { return Ok(()) };
    if let Some(reason) = endpoint_error(&endpoint) {
        return Err(OpenError::Endpoint { origin: ENDPOINT, reason });
    }
    (options.bucket.endpoint, options.bucket.allow_http) = (Some(endpoint), true);
    Ok(())
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
        return Err(OpenError::Options(NO_ACCOUNT));
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
        (AzureConfigKey::MsiEndpoint, "the environment (`IDENTITY_ENDPOINT`)"),
        (AzureConfigKey::AuthorityHost, "the environment (`AZURE_STORAGE_AUTHORITY_HOST`)"),
    ] {
        if let Some(reason) = builder.get_config_value(&key).as_deref().and_then(user_info_error) {
            return Err(OpenError::Endpoint { origin, reason });
        }
    }
    Ok(Arc::new(builder.build().map_err(OpenError::from_client)?))
}
