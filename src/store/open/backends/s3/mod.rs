//! Opens a bucket of Amazon S3 or of a server that speaks its protocol: `s3://bucket/prefix`.

mod assumed_role;
mod chain;
mod checked_keys;
mod container;
mod key_service;
mod profiles;
mod variables;

use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredentialProvider, Checksum};
use object_store::client::HttpConnector;
use object_store::{ClientOptions, RetryConfig};

use self::assumed_role::AssumedRole;
use self::chain::{Chain, ChainCredentials};
use self::checked_keys::{CheckedKeys, is_region, unusable_part};
use self::container::ContainerKeys;
use self::key_service::KeyService;
use self::variables::AwsVariables;
use crate::store::object::Connector;
use crate::store::open::backend::Backend;
use crate::store::open::bucket::{Bucket, ClientConfig, SIGNED_BY_OPTIONS, open_bucket};
use crate::store::open::endpoint::endpoint_error;
use crate::store::open::error::OpenError;
use crate::store::open::metadata_service;
use crate::store::options::Section as _;
use crate::store::{
    BucketOptions, CredentialSource, RemoteOptions, S3Options, Secret, SharedStore, StoreKind, StoreOptions,
};

pub(super) const BACKEND: Backend = Backend {
    kind: StoreKind::S3,
    schemes: &["s3"],
    options: &[RemoteOptions::KEYS, BucketOptions::KEYS, S3Options::KEYS],
    can_sign: true,
    locate: Some(locate),
    open,
};

/// The region of requests if nothing names another.
const DEFAULT_REGION: &str = "us-east-1";
/// A file that there is on every system, and that has no bytes.
const EMPTY_FILE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };
/// What names the region is not known where it is checked.
const REGION_ERROR: &str = "the region of the option `region`, the environment (`AWS_REGION`, `AWS_DEFAULT_REGION`) or \
    the profile (`region`) has other characters than letters, digits, `-`, `_` and `.`";
/// What names keys that are given.
const OPTION_KEYS: &str = "the options (`access_key_id`, `session_token`)";
/// What names keys of the chain.
const CHAIN_KEYS: &str = "the environment (`AWS_ACCESS_KEY_ID`, `AWS_SESSION_TOKEN`) or the profile \
    (`aws_access_key_id`, `aws_session_token`)";
/// What names the endpoint of the chain.
const ENDPOINT: &str =
    "the environment (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`) or the profile (`endpoint_url`)";
/// What names the endpoint of the token service.
const STS_ENDPOINT: &str =
    "the environment (`AWS_ENDPOINT_URL_STS`, `AWS_ENDPOINT_URL`) or the profile (`endpoint_url`)";

fn locate(options: &mut StoreOptions) -> Result<(), OpenError> {
    if options.bucket.credentials != Some(CredentialSource::Chain) {
        return Ok(());
    }
    // No metadata service names an endpoint.
    let chain = Chain::find(&AwsVariables::of_process(), |_endpoint| false)?;
    add_place(options, &chain)
}

/// Adds the endpoint and the region of the chain, where the options have none.
fn add_place(options: &mut StoreOptions, chain: &Chain) -> Result<(), OpenError> {
    if options.bucket.endpoint.is_none()
        && let Some(endpoint) = &chain.endpoint
    {
        if let Some(reason) = endpoint_error(endpoint) {
            return Err(OpenError::Endpoint { origin: ENDPOINT, reason });
        }
        options.bucket.endpoint = Some(endpoint.clone());
        // The tools of AWS ask for no leave.
        options.bucket.allow_http = true;
    }
    if options.s3.region.is_none() {
        options.s3.region.clone_from(&chain.region);
    }
    Ok(())
}

fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let own = &options.s3;
    let has_keys = own.access_key_id.is_some() || own.secret_access_key.is_some();
    if options.bucket.credentials != Some(CredentialSource::Chain) {
        let signed = has_keys.then_some(SIGNED_BY_OPTIONS);
        return open_bucket(StoreKind::S3, url, options, signed, |config| build(config, own, None));
    }
    let mut chain = Chain::find(&AwsVariables::of_process(), metadata_service::has_aws_role)?;
    let mut options = options.clone();
    if has_keys {
        chain.credentials = None;
    }
    if let Some(credentials) = &chain.credentials {
        tracing::info!(url, "requests are signed {}", credentials.origin());
    }
    add_place(&mut options, &chain)?;
    let of_chain = chain.credentials.as_ref().map(ChainCredentials::origin);
    let signed = if has_keys { Some(SIGNED_BY_OPTIONS) } else { of_chain };
    let own = options.s3.clone();
    open_bucket(StoreKind::S3, url, &options, signed, |config| build(config, &own, Some(&chain)))
}

fn build(
    config: ClientConfig<'_>,
    options: &S3Options,
    chain: Option<&Chain>,
) -> Result<Arc<dyn Bucket>, OpenError> {
    let ClientConfig { bucket, options: shared, is_anonymous, connector, retry } = config;
    let region = options.region.as_deref().unwrap_or(DEFAULT_REGION);
    if !is_region(region) {
        return Err(OpenError::Credentials(REGION_ERROR.to_owned()));
    }
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(region)
        .with_retry(retry.clone())
        .with_http_connector(connector.clone())
        .with_virtual_hosted_style_request(options.virtual_hosted)
        .with_disable_bulk_delete(true)
        .with_skip_signature(is_anonymous)
        .with_request_payer(options.requester_pays)
        .with_allow_http(shared.allow_http);
    if options.upload_checksum {
        builder = builder.with_checksum_algorithm(Checksum::SHA256);
    }
    if let Some(endpoint) = &shared.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    match (options.access_key_id.as_deref(), options.secret_access_key.as_ref().map(Secret::expose)) {
        (Some(id), Some(key)) => {
            let token = options.session_token.as_ref().map(Secret::expose);
            builder = with_keys(builder, (id, key, token), OPTION_KEYS)?;
        }
        (None, None) => {}
        _ => return Err(OpenError::Options("`access_key_id` and `secret_access_key` go together")),
    }
    if let Some(chain) = chain
        && let Some(credentials) = &chain.credentials
    {
        let signing = Signing { sts_endpoint: chain.sts_endpoint.as_deref(), region, connector, retry };
        builder = builder.with_credentials(signing.provider(credentials)?);
    }
    Ok(Arc::new(builder.build().map_err(OpenError::from_client)?))
}

/// Adds keys: the identifier, the secret and the token. `origin` says what names them.
fn with_keys(
    builder: AmazonS3Builder,
    (id, secret, token): (&str, &str, Option<&str>),
    origin: &str,
) -> Result<AmazonS3Builder, OpenError> {
    if let Some(part) = unusable_part(id, token) {
        let reason = format!("the {part} of {origin} has characters that no header can have");
        return Err(OpenError::Credentials(reason));
    }
    let builder = builder.with_access_key_id(id).with_secret_access_key(secret);
    Ok(match token {
        Some(token) => builder.with_token(token),
        None => builder,
    })
}

/// What signing with credentials of the chain takes.
struct Signing<'a> {
    sts_endpoint: Option<&'a str>,
    region: &'a str,
    connector: Connector,
    retry: RetryConfig,
}

impl Signing<'_> {
    /// What gives the keys that requests are signed with.
    fn provider(&self, credentials: &ChainCredentials) -> Result<AwsCredentialProvider, OpenError> {
        Ok(Arc::new(CheckedKeys::new(self.unchecked(credentials)?, credentials.origin())))
    }

    fn unchecked(&self, credentials: &ChainCredentials) -> Result<AwsCredentialProvider, OpenError> {
        let uses_sts =
            matches!(credentials, ChainCredentials::WebIdentity { .. } | ChainCredentials::Role { .. });
        if uses_sts && let Some(reason) = self.sts_endpoint.and_then(endpoint_error) {
            return Err(OpenError::Endpoint { origin: STS_ENDPOINT, reason });
        }
        let service = KeyService::new(self.connector.clone());
        match credentials {
            ChainCredentials::Keys { id, secret, token, .. } => {
                let keys = (id.as_str(), secret.as_str(), token.as_deref());
                let builder = with_keys(self.client(service), keys, CHAIN_KEYS)?;
                provider_of(builder, &[])
            }
            ChainCredentials::WebIdentity { role, token_file, session } => provider_of(
                self.client(service),
                &[
                    (AmazonS3ConfigKey::RoleArn, Some(role)),
                    (AmazonS3ConfigKey::WebIdentityTokenFile, Some(token_file)),
                    (AmazonS3ConfigKey::RoleSessionName, session.as_deref()),
                    (AmazonS3ConfigKey::StsEndpoint, self.sts_endpoint),
                ],
            ),
            ChainCredentials::Container(ContainerKeys { url, token }) => provider_of(
                self.client(service.with_token(token.clone())),
                &[
                    (AmazonS3ConfigKey::ContainerCredentialsFullUri, Some(url)),
                    // Without a file, the client does not use the URL.
                    (AmazonS3ConfigKey::ContainerAuthorizationTokenFile, Some(EMPTY_FILE)),
                ],
            ),
            ChainCredentials::Machine { endpoint } => provider_of(
                self.client(service),
                &[(AmazonS3ConfigKey::MetadataEndpoint, endpoint.as_deref())],
            ),
            ChainCredentials::Role { role, session, external_id, source } => {
                let client = service.connect(&ClientOptions::new()).map_err(OpenError::from_client)?;
                let source = self.provider(source)?;
                let role = AssumedRole::new(
                    source,
                    client,
                    (self.sts_endpoint, self.region),
                    role,
                    (session.as_deref(), external_id.as_deref()),
                );
                Ok(Arc::new(role))
            }
        }
    }

    /// A client that requests nothing but keys.
    fn client(&self, service: KeyService) -> AmazonS3Builder {
        AmazonS3Builder::new()
            .with_bucket_name("none")
            .with_region(self.region)
            .with_retry(self.retry.clone())
            .with_http_connector(service)
    }
}

/// What gives the keys of a client with these settings: no other type of the crate does.
fn provider_of(
    builder: AmazonS3Builder,
    settings: &[(AmazonS3ConfigKey, Option<&str>)],
) -> Result<AwsCredentialProvider, OpenError> {
    let builder = settings.iter().fold(builder, |builder, (key, value)| match value {
        Some(value) => builder.with_config(*key, *value),
        None => builder,
    });
    let client = builder.build().map_err(OpenError::from_client)?;
    Ok(Arc::clone(client.credentials()))
}
