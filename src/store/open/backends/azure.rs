//! Opens a container of Azure Blob Storage: `az://container/prefix`.

use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

use crate::store::open::backend::Backend;
use crate::store::open::bucket::{Bucket, ClientConfig, open_bucket};
use crate::store::open::error::OpenError;
use crate::store::options::Section as _;
use crate::store::{
    AzureOptions, BearerTokenOptions, BucketOptions, RemoteOptions, Secret, SharedStore, StoreKind,
    StoreOptions,
};

pub(super) const BACKEND: Backend = Backend {
    kind: StoreKind::AZURE,
    schemes: &["az"],
    options: &[RemoteOptions::KEYS, BucketOptions::KEYS, AzureOptions::KEYS, BearerTokenOptions::KEYS],
    can_sign: true,
    open,
};

fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let (own, token) = (&options.azure, options.bearer.bearer_token.as_ref());
    let has_credentials = own.account_key.is_some() || own.sas_token.is_some() || token.is_some();
    open_bucket(StoreKind::AZURE, url, options, has_credentials, |config| build(config, own, token))
}

fn build(
    config: ClientConfig<'_>,
    options: &AzureOptions,
    token: Option<&Secret>,
) -> Result<Arc<dyn Bucket>, OpenError> {
    let Some(account) = &options.account else {
        return Err(OpenError::Options("`az://` needs `account`"));
    };
    let ClientConfig { bucket, options: shared, is_anonymous, connector, retry } = config;
    let base = if shared.instance_credentials {
        MicrosoftAzureBuilder::from_env()
    } else {
        MicrosoftAzureBuilder::new()
    };
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
    Ok(Arc::new(builder.build().map_err(OpenError::from_client)?))
}
