//! Opens a bucket of Amazon S3 or of a server that speaks its protocol: `s3://bucket/prefix`.

use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};

use crate::store::open::backend::Backend;
use crate::store::open::bucket::{Bucket, ClientConfig, open_bucket};
use crate::store::open::error::OpenError;
use crate::store::options::Section as _;
use crate::store::{BucketOptions, RemoteOptions, S3Options, Secret, SharedStore, StoreKind, StoreOptions};

pub(super) const BACKEND: Backend = Backend {
    kind: StoreKind::S3,
    schemes: &["s3"],
    options: &[RemoteOptions::KEYS, BucketOptions::KEYS, S3Options::KEYS],
    can_sign: true,
    open,
};

fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let own = &options.s3;
    let has_credentials = own.access_key_id.is_some() || own.secret_access_key.is_some();
    open_bucket(StoreKind::S3, url, options, has_credentials, |config| build(config, own))
}

fn build(config: ClientConfig<'_>, options: &S3Options) -> Result<Arc<dyn Bucket>, OpenError> {
    let ClientConfig { bucket, options: shared, is_anonymous, connector, retry } = config;
    let base = if shared.instance_credentials { AmazonS3Builder::from_env() } else { AmazonS3Builder::new() };
    let mut builder = base
        .with_bucket_name(bucket)
        .with_retry(retry)
        .with_http_connector(connector)
        .with_virtual_hosted_style_request(options.virtual_hosted)
        .with_disable_bulk_delete(true)
        .with_skip_signature(is_anonymous)
        .with_allow_http(shared.allow_http);
    if options.upload_checksum {
        builder = builder.with_checksum_algorithm(Checksum::SHA256);
    }
    match (options.access_key_id.as_deref(), options.secret_access_key.as_ref().map(Secret::expose)) {
        (Some(id), Some(key)) => builder = builder.with_access_key_id(id).with_secret_access_key(key),
        (None, None) => {}
        _ => return Err(OpenError::Options("`access_key_id` and `secret_access_key` go together")),
    }
    for (name, value) in [
        (AmazonS3ConfigKey::Region, options.region.as_deref()),
        (AmazonS3ConfigKey::Endpoint, shared.endpoint.as_deref()),
        (AmazonS3ConfigKey::Token, options.session_token.as_ref().map(Secret::expose)),
    ] {
        if let Some(value) = value {
            builder = builder.with_config(name, value);
        }
    }
    Ok(Arc::new(builder.build().map_err(OpenError::from_client)?))
}
