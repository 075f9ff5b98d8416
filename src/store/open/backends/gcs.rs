//! Opens a bucket of Google Cloud Storage: `gs://bucket/prefix`.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::StaticCredentialProvider;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};

use crate::store::open::backend::Backend;
use crate::store::open::bucket::{Bucket, ClientConfig, SIGNED_BY_OPTIONS, open_bucket};
use crate::store::open::endpoint::endpoint_error;
use crate::store::open::error::OpenError;
use crate::store::open::metadata_service;
use crate::store::options::Section as _;
use crate::store::{
    BearerTokenOptions, BucketOptions, CredentialSource, GcsOptions, RemoteOptions, Secret, SharedStore,
    StoreKind, StoreOptions,
};

pub(super) const BACKEND: Backend = Backend {
    kind: StoreKind::GCS,
    schemes: &["gs"],
    options: &[RemoteOptions::KEYS, BucketOptions::KEYS, GcsOptions::KEYS, BearerTokenOptions::KEYS],
    can_sign: true,
    locate: Some(locate),
    open,
};

/// Variables with credentials, as the client reads them.
const VARIABLES: [&str; 4] = [
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
];

/// What the chain of the client finds, in words.
const DEFAULT_CREDENTIALS: &str = "with the default credentials of Google Cloud";

/// The variable with the address of an emulator.
const EMULATOR: &str = "STORAGE_EMULATOR_HOST";
/// What names the endpoint of the chain.
const ENDPOINT: &str = "the environment (`GOOGLE_BASE_URL`, `STORAGE_EMULATOR_HOST`)";

/// Adds the endpoint that the environment names, where the options have none.
fn locate(options: &mut StoreOptions) -> Result<(), OpenError> {
    if options.bucket.credentials == Some(CredentialSource::Chain) && options.bucket.endpoint.is_none() {
        add_endpoint(options)?;
    }
    Ok(())
}

fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let mut options = options.clone();
    locate(&mut options)?;
    let uses_chain = options.bucket.credentials == Some(CredentialSource::Chain);
    let options = &options;
    let (own, token) = (&options.gcs, options.bearer.bearer_token.as_ref());
    let is_given = own.service_account_path.is_some() || own.service_account_key.is_some() || token.is_some();
    let of_chain = || (uses_chain && chain_has_credentials()).then_some(DEFAULT_CREDENTIALS);
    let signed = if is_given { Some(SIGNED_BY_OPTIONS) } else { of_chain() };
    open_bucket(StoreKind::GCS, url, options, signed, |config| build(config, own, token))
}

/// Adds the endpoint that a variable names: one of the client, or the one that leads Google's own libraries to an emulator.
fn add_endpoint(options: &mut StoreOptions) -> Result<(), OpenError> {
    let is_set = |endpoint: &String| !endpoint.is_empty();
    let of_client = GoogleCloudStorageBuilder::from_env().get_config_value(&GoogleConfigKey::BaseUrl);
    let of_client = of_client.filter(is_set).map(|endpoint| (endpoint, CredentialSource::Chain));
    #[expect(clippy::disallowed_methods, reason = "the chain is that of the provider's tools")]
    let emulator = std::env::var(EMULATOR).ok().filter(is_set);
    // Credentials of the provider are not for an emulator.
    let emulator = emulator.map(|host| (with_scheme(&host), CredentialSource::Anonymous));
    let Some((endpoint, credentials)) = of_client.or(emulator) else { return Ok(()) };
    if let Some(reason) = endpoint_error(&endpoint) {
        return Err(OpenError::Endpoint { origin: ENDPOINT, reason });
    }
    // The tools of Google ask for no leave.
    let bucket = BucketOptions { endpoint: Some(endpoint), allow_http: true, credentials: Some(credentials) };
    options.bucket = bucket;
    Ok(())
}

/// The URL of an emulator, which some programs name by its host and port alone.
fn with_scheme(host: &str) -> String {
    if host.contains("://") { host.to_owned() } else { format!("http://{host}") }
}

/// Whether the environment, the default credentials of `gcloud` or the machine have credentials.
fn chain_has_credentials() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_defaults = || {
        let folder = std::env::var_os("CLOUDSDK_CONFIG").map(PathBuf::from);
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config/gcloud"));
        folder
            .or_else(home)
            .is_some_and(|folder| folder.join("application_default_credentials.json").is_file())
    };
    VARIABLES.iter().any(|name| is_set(name)) || has_defaults() || metadata_service::has_google_account()
}

fn build(
    config: ClientConfig<'_>,
    options: &GcsOptions,
    token: Option<&Secret>,
) -> Result<Arc<dyn Bucket>, OpenError> {
    let ClientConfig { bucket, options: shared, is_anonymous, connector, retry } = config;
    let base = if shared.credentials == Some(CredentialSource::Chain) {
        GoogleCloudStorageBuilder::from_env()
    } else {
        GoogleCloudStorageBuilder::new()
    };
    let mut builder = base.with_bucket_name(bucket).with_retry(retry).with_http_connector(connector);
    if is_anonymous {
        // The client of `store::object` sends no empty credential; without it, the client searches the machine for one.
        let nothing = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
        builder = builder.with_skip_signature(true).with_credentials(Arc::new(nothing));
    }
    if let Some(endpoint) = &shared.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    if let Some(path) = &options.service_account_path {
        builder = builder.with_service_account_path(path);
    }
    if let Some(key) = &options.service_account_key {
        builder = builder.with_service_account_key(key.expose());
    }
    if let Some(token) = token {
        builder = builder.with_bearer_token(token.expose());
    }
    Ok(Arc::new(builder.build().map_err(OpenError::from_client)?))
}
