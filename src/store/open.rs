//! From a URL and options to a store.
//!
//! `path`, `file://`, `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, `http(s)://host/path`,
//! `memory://`. Where a path ends in `.zip`, the store holds what that file holds. The names after `s3://`, `gs://` and `az://` are taken as they are written: the key of a bucket is
//! not percent-encoded. A store without credentials is anonymous; it asks no metadata service for any unless it
//! is told to. Nothing is connected to here: whether a backend answers is for [`super::Store::check`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::signer::Signer;
use object_store::{ObjectStore, RetryConfig, StaticCredentialProvider};
use url::Url;

use super::backend::ThrottledStore;
use super::object::Connector;
use super::{
    LocalStore, ObjectBackend, Secret, Shared, SharedStore, StoreError, StoreKind, StoreOptions, Symlinks,
    ZipBudget, ZipStore,
};
use crate::cpu::ComputePool;
use crate::error::{Classify, ErrorClass};
use crate::key::{KeyError, StoreKey, StorePrefix};

/// Why a store could not be opened. For the operator: it names what the configuration names, but no secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL names a backend that there is not.
    #[error("`{0}://` is not a kind of store; there are file, s3, gs, az, http, https and memory")]
    UnknownScheme(String),
    /// The URL is not one.
    #[error("the URL is not valid: {0}")]
    InvalidUrl(&'static str),
    /// What stands after the bucket or host can be no prefix of keys.
    #[error("the prefix in the URL is not valid: {0}")]
    InvalidPrefix(#[from] KeyError),
    /// There is no such directory.
    #[error("there is no directory `{}`", .0.display())]
    NoDirectory(PathBuf),
    /// There is something else.
    #[error("`{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The directory could not be opened.
    #[error("the directory `{}` cannot be opened", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// Options that do not go together, or one that is missing.
    #[error("the options do not fit: {0}")]
    Options(&'static str),
    /// The client could not be made.
    #[error("the client of the backend cannot be made")]
    Client(#[source] Shared),
}

impl Classify for OpenError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::UnknownScheme(_)
            | Self::InvalidUrl(_)
            | Self::InvalidPrefix(_)
            | Self::NoDirectory(_)
            | Self::NotADirectory(_)
            | Self::Options(_) => ErrorClass::InvalidRequest,
            Self::Directory { source, .. } => source.class(),
            Self::Client(_) => ErrorClass::BackendFailed,
        }
    }
}

/// Whether a URL or path names a zip file: its last segment ends in `.zip`. What ends in `.zip/` is a directory.
#[must_use]
pub fn is_zip(url: &str) -> bool {
    let has_segments = match url.split_once("://") {
        Some((scheme, rest)) if !scheme.eq_ignore_ascii_case("file") => rest.find('/') > Some(0),
        _ => true,
    };
    has_segments && url.ends_with(ZIP)
}

/// How the names of zip files end.
const ZIP: &str = ".zip";

/// The kind of backend that a URL names; of a zip file, of what it lies in. `None` if there is no such kind.
#[must_use]
pub fn kind_of(url: &str) -> Option<StoreKind> {
    let Some((scheme, _)) = url.split_once("://") else { return Some(StoreKind::Local) };
    match scheme.to_ascii_lowercase().as_str() {
        "file" => Some(StoreKind::Local),
        "memory" => Some(StoreKind::Memory),
        "s3" => Some(StoreKind::S3),
        "gs" => Some(StoreKind::Gcs),
        "az" => Some(StoreKind::Azure),
        "http" | "https" => Some(StoreKind::Http),
        _ => None,
    }
}

/// Opens the store that a URL names. What it decodes itself, it decodes on `cpu`.
///
/// # Errors
/// [`OpenError`], in words for the operator.
pub fn open(url: &str, options: &StoreOptions, cpu: &ComputePool) -> Result<SharedStore, OpenError> {
    open_within(url, options, cpu, &ZipBudget::default())
}

/// As [`open`], where the directories of zip files share a budget.
///
/// # Errors
/// As [`open`].
pub fn open_within(
    url: &str,
    options: &StoreOptions,
    cpu: &ComputePool,
    directories: &ZipBudget,
) -> Result<SharedStore, OpenError> {
    if is_zip(url) && !is_local_directory(url) {
        return open_zip(url, options, cpu, directories);
    }
    open_directory(url, options)
}

/// The store over the zip file that a URL names, within the store over what it lies in. The file may come later.
fn open_zip(
    url: &str,
    options: &StoreOptions,
    cpu: &ComputePool,
    directories: &ZipBudget,
) -> Result<SharedStore, OpenError> {
    if options.writable {
        return Err(OpenError::Options("a zip file is only read, so `writable` must be false"));
    }
    let (directory, name) = if let Some(path) = local_path(url)? {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or(OpenError::InvalidUrl("the file's name is not UTF-8"))?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // The operator names this one file, so a link to it means it, as one to a directory does.
        let options = StoreOptions { symlinks: Symlinks::Follow, ..options.clone() };
        (open_local(parent.unwrap_or(Path::new(".")), &options)?, name)
    } else {
        let (directory, name) = url.rsplit_once('/').unwrap_or((url, ""));
        (open_directory(directory, options)?, name_of_file(url, name)?)
    };
    Ok(Arc::new(ZipStore::new(directory, StoreKey::parse(&name)?, cpu.clone(), directories.clone())))
}

/// The last segment of a URL as a key: only those of web servers are percent-encoded.
fn name_of_file(url: &str, name: &str) -> Result<String, OpenError> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Ok(name.to_owned());
    }
    if name.contains(['?', '#']) {
        return Err(OpenError::InvalidUrl("it must not have a query or a fragment"));
    }
    match object_store::path::Path::from_url_path(name) {
        Ok(path) if path.parts().count() == 1 => Ok(path.as_ref().to_owned()),
        _ => Err(OpenError::InvalidUrl("its path is not made of valid names")),
    }
}

fn is_local_directory(url: &str) -> bool {
    matches!(local_path(url), Ok(Some(path)) if LocalStore::is_directory(&path) == Some(true))
}

/// The path that a URL names on this machine; `None` if it names something elsewhere.
fn local_path(url: &str) -> Result<Option<PathBuf>, OpenError> {
    match url.split_once("://") {
        None => Ok(Some(PathBuf::from(url))),
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => {
            let path = Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
            path.map(Some).ok_or(OpenError::InvalidUrl("`file://` wants an absolute path"))
        }
        Some(_) => Ok(None),
    }
}

/// Opens the store that a URL names, which is no zip file.
fn open_directory(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    if let Some(path) = local_path(url)? {
        return open_local(&path, options);
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    match kind_of(url) {
        Some(StoreKind::Memory) if rest.trim_matches('/').is_empty() => {
            Ok(Arc::new(ObjectBackend::memory(options.writable)))
        }
        Some(StoreKind::Memory) => Err(OpenError::InvalidUrl("nothing may stand after `memory://`")),
        Some(kind @ StoreKind::S3) => open_bucket(kind, rest, options, s3),
        Some(kind @ StoreKind::Gcs) => open_bucket(kind, rest, options, gcs),
        Some(kind @ StoreKind::Azure) => open_bucket(kind, rest, options, azure),
        Some(StoreKind::Http) => open_http(url, options),
        // Paths were opened above.
        Some(StoreKind::Local | StoreKind::Zip) | None => Err(OpenError::UnknownScheme(scheme.to_owned())),
    }
}

fn open_local(path: &Path, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    match LocalStore::is_directory(path) {
        None => return Err(OpenError::NoDirectory(path.to_owned())),
        Some(false) => return Err(OpenError::NotADirectory(path.to_owned())),
        Some(true) => {}
    }
    let store = LocalStore::open(path, &options.local())
        .map_err(|source| OpenError::Directory { path: path.to_owned(), source })?;
    Ok(Arc::new(store))
}

/// A client that can sign URLs and list in pages as well.
trait Bucket: ObjectStore + Signer + PaginatedListStore {}

impl<T: ObjectStore + Signer + PaginatedListStore> Bucket for T {}

type Build = fn(&str, &StoreOptions, &Connector, RetryConfig) -> Result<Arc<dyn Bucket>, OpenError>;

fn open_bucket(
    kind: StoreKind,
    rest: &str,
    options: &StoreOptions,
    build: Build,
) -> Result<SharedStore, OpenError> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(OpenError::InvalidUrl("the name of the bucket or container is missing"));
    }
    let is_plain = options.endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    if is_plain && !options.allow_http {
        return Err(OpenError::Options("an endpoint of plain http needs `allow_http = true`"));
    }
    if options.anonymous == Some(true) && (options.instance_credentials || has_credentials(kind, options)) {
        return Err(OpenError::Options("`anonymous = true` and credentials exclude each other"));
    }
    let prefix = prefix_of(prefix)?;
    let patience = options.patience();
    let connector = Connector::new(!is_plain, &patience).map_err(OpenError::Client)?;
    let inner = build(bucket, options, &connector, patience.retries())?;
    let once = build(bucket, options, &connector.once(), patience.no_retries())?;
    if options.signs_urls && is_anonymous(kind, options)? {
        return Err(OpenError::Options("`redirect = true` needs credentials to sign URLs with"));
    }
    let backend = ObjectBackend::new(kind, inner.clone(), once.clone(), prefix, options.object())
        .with_pages(inner.clone(), once);
    let backend = if options.signs_urls { backend.with_signer(inner) } else { backend };
    Ok(guarded(backend, &connector, options))
}

/// A backend that is elsewhere, asked with restraint.
fn guarded(backend: ObjectBackend, connector: &Connector, options: &StoreOptions) -> SharedStore {
    Arc::new(ThrottledStore::new(Arc::new(backend.with_retries_of(connector)), options.restraint()))
}

/// `a/b`, with a slash at the end or without, as a prefix; empty is the root.
fn prefix_of(text: &str) -> Result<StorePrefix, KeyError> {
    match text.strip_suffix('/').unwrap_or(text) {
        "" => Ok(StorePrefix::root()),
        text => StorePrefix::parse(&format!("{text}/")),
    }
}

fn has_credentials(kind: StoreKind, options: &StoreOptions) -> bool {
    match kind {
        StoreKind::S3 => options.access_key_id.is_some() || options.secret_access_key.is_some(),
        StoreKind::Gcs => {
            options.service_account_path.is_some()
                || options.service_account_key.is_some()
                || options.bearer_token.is_some()
        }
        StoreKind::Azure => {
            options.account_key.is_some() || options.sas_token.is_some() || options.bearer_token.is_some()
        }
        StoreKind::Local | StoreKind::Memory | StoreKind::Http | StoreKind::Zip => false,
    }
}

/// Whether requests go out unsigned: if that was asked for, or if there is nothing to sign them with.
fn is_anonymous(kind: StoreKind, options: &StoreOptions) -> Result<bool, OpenError> {
    let signed = options.instance_credentials || has_credentials(kind, options);
    match options.anonymous {
        Some(false) if !signed => {
            Err(OpenError::Options("`anonymous = false`, but there are no credentials"))
        }
        anonymous => Ok(anonymous.unwrap_or(!signed)),
    }
}

fn client_error(error: object_store::Error) -> OpenError {
    OpenError::Client(Arc::new(error))
}

fn text(secret: Option<&Secret>) -> Option<&str> {
    secret.map(Secret::expose)
}

fn s3(
    bucket: &str,
    options: &StoreOptions,
    connector: &Connector,
    retry: RetryConfig,
) -> Result<Arc<dyn Bucket>, OpenError> {
    let base =
        if options.instance_credentials { AmazonS3Builder::from_env() } else { AmazonS3Builder::new() };
    let mut builder = base
        .with_bucket_name(bucket)
        .with_retry(retry)
        .with_http_connector(connector.clone())
        .with_virtual_hosted_style_request(options.virtual_hosted)
        .with_disable_bulk_delete(true)
        .with_skip_signature(is_anonymous(StoreKind::S3, options)?)
        .with_allow_http(options.allow_http);
    if options.upload_checksum {
        builder = builder.with_checksum_algorithm(Checksum::SHA256);
    }
    match (options.access_key_id.as_deref(), text(options.secret_access_key.as_ref())) {
        (Some(id), Some(key)) => builder = builder.with_access_key_id(id).with_secret_access_key(key),
        (None, None) => {}
        _ => return Err(OpenError::Options("`access_key_id` and `secret_access_key` go together")),
    }
    for (name, value) in [
        (AmazonS3ConfigKey::Region, options.region.as_deref()),
        (AmazonS3ConfigKey::Endpoint, options.endpoint.as_deref()),
        (AmazonS3ConfigKey::Token, text(options.session_token.as_ref())),
    ] {
        if let Some(value) = value {
            builder = builder.with_config(name, value);
        }
    }
    Ok(Arc::new(builder.build().map_err(client_error)?))
}

fn gcs(
    bucket: &str,
    options: &StoreOptions,
    connector: &Connector,
    retry: RetryConfig,
) -> Result<Arc<dyn Bucket>, OpenError> {
    let base = if options.instance_credentials {
        GoogleCloudStorageBuilder::from_env()
    } else {
        GoogleCloudStorageBuilder::new()
    };
    let mut builder = base.with_bucket_name(bucket).with_retry(retry).with_http_connector(connector.clone());
    if is_anonymous(StoreKind::Gcs, options)? {
        // The empty credential is never sent; without it, the client looks for one on the machine.
        let nothing = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
        builder = builder.with_skip_signature(true).with_credentials(Arc::new(nothing));
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    if let Some(path) = &options.service_account_path {
        builder = builder.with_service_account_path(path);
    }
    if let Some(key) = text(options.service_account_key.as_ref()) {
        builder = builder.with_service_account_key(key);
    }
    if let Some(token) = text(options.bearer_token.as_ref()) {
        builder = builder.with_bearer_token(token);
    }
    Ok(Arc::new(builder.build().map_err(client_error)?))
}

fn azure(
    container: &str,
    options: &StoreOptions,
    connector: &Connector,
    retry: RetryConfig,
) -> Result<Arc<dyn Bucket>, OpenError> {
    let Some(account) = &options.account else {
        return Err(OpenError::Options("`az://` needs `account`"));
    };
    let base = if options.instance_credentials {
        MicrosoftAzureBuilder::from_env()
    } else {
        MicrosoftAzureBuilder::new()
    };
    let mut builder = base
        .with_account(account)
        .with_container_name(container)
        .with_retry(retry)
        .with_http_connector(connector.clone())
        .with_skip_signature(is_anonymous(StoreKind::Azure, options)?)
        .with_allow_http(options.allow_http);
    for (name, value) in [
        (AzureConfigKey::Endpoint, options.endpoint.as_deref()),
        (AzureConfigKey::AccessKey, text(options.account_key.as_ref())),
        (AzureConfigKey::SasKey, text(options.sas_token.as_ref())),
        (AzureConfigKey::Token, text(options.bearer_token.as_ref())),
    ] {
        if let Some(value) = value {
            builder = builder.with_config(name, value);
        }
    }
    Ok(Arc::new(builder.build().map_err(client_error)?))
}

/// The client gets the host alone, and the path is a prefix of keys as in a bucket: listings (`PROPFIND`) name
/// everything by its full path.
fn open_http(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let Ok(mut url) = Url::parse(url) else {
        return Err(OpenError::InvalidUrl("it does not parse"));
    };
    if url.query().is_some() || url.fragment().is_some() {
        return Err(OpenError::InvalidUrl("it must not have a query or a fragment"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(OpenError::InvalidUrl("it must not have a user name or password in it"));
    }
    let Ok(path) = object_store::path::Path::from_url_path(url.path()) else {
        return Err(OpenError::InvalidUrl("its path is not made of valid names"));
    };
    let prefix = prefix_of(path.as_ref())?;
    let patience = options.patience();
    let connector = Connector::new(url.scheme() == "https", &patience).map_err(OpenError::Client)?;
    url.set_path("/");
    let build = |connector: &Connector, retry| {
        let builder = HttpBuilder::new().with_url(url.as_str()).with_retry(retry);
        let store = builder.with_http_connector(connector.clone()).build().map_err(client_error)?;
        Ok::<_, OpenError>(Arc::new(store) as Arc<dyn ObjectStore>)
    };
    let (inner, once) =
        (build(&connector, patience.retries())?, build(&connector.once(), patience.no_retries())?);
    Ok(guarded(
        ObjectBackend::new(StoreKind::Http, inner, once, prefix, options.object()),
        &connector,
        options,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Durability;
    use crate::store::tests::cpu;

    /// With an endpoint of plain http, no certificates are needed to open it.
    fn remote() -> StoreOptions {
        StoreOptions {
            account: Some("account".into()),
            endpoint: Some("http://localhost:1".into()),
            allow_http: true,
            ..StoreOptions::default()
        }
    }

    fn error(url: &str, options: &StoreOptions) -> String {
        open(url, options, &cpu()).unwrap_err().to_string()
    }

    #[test]
    fn a_url_names_its_kind_of_store() {
        let options = remote();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display();
        for (url, kind) in [
            (path.to_string(), StoreKind::Local),
            (format!("file://{path}"), StoreKind::Local),
            ("memory://".to_owned(), StoreKind::Memory),
            ("s3://bucket/some/prefix".to_owned(), StoreKind::S3),
            ("gs://bucket".to_owned(), StoreKind::Gcs),
            ("az://container/p/".to_owned(), StoreKind::Azure),
            ("http://localhost:1/a%20b/".to_owned(), StoreKind::Http),
        ] {
            assert_eq!(open(&url, &options, &cpu()).unwrap().kind(), kind, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_opened_says_why() {
        let options = StoreOptions::default();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(error("/no/such/directory", &options).contains("no directory `/no/such/directory`"));
        assert!(error(file.to_str().unwrap(), &options).contains("is not a directory"));
        assert!(error("ftp://host/", &options).contains("`ftp://` is not a kind of store"));
        assert!(error("s3://", &options).contains("bucket"));
        assert!(error("s3://bucket/a//b", &options).contains("prefix"));
        let no_account = StoreOptions { account: None, ..remote() };
        assert!(error("az://container", &no_account).contains("`account`"));
        assert!(error("memory://x", &options).contains("memory"));
        assert!(error("http://user:password@host/", &options).contains("user name"));
        let plain =
            StoreOptions { endpoint: Some("http://localhost:9000".into()), ..StoreOptions::default() };
        assert!(error("s3://bucket", &plain).contains("allow_http"));
        let half = StoreOptions { access_key_id: Some("id".into()), ..remote() };
        assert!(error("s3://bucket", &half).contains("go together"));
    }

    #[test]
    fn a_url_that_ends_in_zip_names_the_file_and_not_a_directory_of_that_name() {
        let options = remote();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display();
        std::fs::create_dir(directory.path().join("directory.zip")).unwrap();
        for (url, kind) in [
            (format!("{path}/not yet.zip"), StoreKind::Zip),
            (format!("file://{path}/not%20yet.zip"), StoreKind::Zip),
            (format!("{path}/directory.zip"), StoreKind::Local),
            (format!("file://{path}/directory.zip/"), StoreKind::Local),
            ("s3://bucket/some/a.zip".to_owned(), StoreKind::Zip),
            ("s3://bucket/some/a.zip/".to_owned(), StoreKind::S3),
            ("s3://bucket.zip".to_owned(), StoreKind::S3),
            ("gs://bucket/a.zip".to_owned(), StoreKind::Zip),
            ("az://container/a.zip".to_owned(), StoreKind::Zip),
            ("http://localhost:1/a%20b.zip".to_owned(), StoreKind::Zip),
            ("http://host.zip".to_owned(), StoreKind::Http),
            ("a.zip".to_owned(), StoreKind::Zip),
        ] {
            assert_eq!(open(&url, &options, &cpu()).unwrap().kind(), kind, "{url}");
        }
        let writable = StoreOptions { writable: true, ..remote() };
        assert!(error("s3://bucket/a.zip", &writable).contains("only read"));
        assert!(error("http://host/a?b.zip", &options).contains("query"));
        assert!(error("http://host/a%2fb.zip", &options).contains("valid names"));
        assert!(error("http://host/a?b/c.zip", &options).contains("query"));
        assert!(error("/no/such/directory/a.zip", &options).contains("no directory `/no/such/directory`"));
        assert!(error("memory:///a.zip", &options).contains("memory"));
        assert!(error("s3:///a.zip", &options).contains("bucket"));
    }

    #[tokio::test]
    async fn the_name_of_a_zip_file_is_decoded_where_urls_are_encoded() {
        let folder = tempfile::tempdir().unwrap();
        let empty = [b"PK\x05\x06".as_slice(), &[0; 18]].concat();
        std::fs::write(folder.path().join("a b.zip"), empty).unwrap();
        let url = Url::from_file_path(folder.path().join("a b.zip")).unwrap();
        assert!(url.as_str().ends_with("a%20b.zip"));
        open(url.as_str(), &StoreOptions::default(), &cpu()).unwrap().check().await.unwrap();
        let link = folder.path().join("link.zip");
        std::os::unix::fs::symlink("a b.zip", &link).unwrap();
        let linked = open(link.to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap();
        linked.check().await.expect("a link to a file is the file");
        for (url, name) in [("http://h/a%20b.zip", "a b.zip"), ("s3://b/a%20b.zip", "a%20b.zip")] {
            let last = url.rsplit_once('/').unwrap().1;
            assert_eq!(name_of_file(url, last).unwrap(), name);
        }
    }

    #[test]
    fn options_never_show_their_secrets_and_refuse_what_they_do_not_know() {
        let json = r#"{"region": "r", "access_key_id": "id", "secret_access_key": "hunter2", "sas_token": "hunter2"}"#;
        let options: StoreOptions = serde_json::from_str(json).unwrap();
        assert!(!format!("{options:?}").contains("hunter2"));
        assert!(!serde_json::to_string(&options).unwrap().contains("hunter2"));
        let plain = StoreOptions { endpoint: remote().endpoint, allow_http: true, ..options };
        let store = open("s3://bucket", &plain, &cpu()).unwrap();
        assert!(!format!("{store:?}").contains("hunter2"));
        assert!(serde_json::from_str::<StoreOptions>(r#"{"regoin": "r"}"#).is_err());
    }

    #[test]
    fn stores_of_one_root_in_one_server_share_it_until_the_last_of_them_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        let options = StoreOptions { writable: true, ..StoreOptions::default() };
        let first = open(path, &options, &cpu()).unwrap();
        let second = StoreOptions { durability: Durability::Rename, ..options.clone() };
        let second = open(path, &second, &cpu()).expect("a configuration that was read again");
        let third = open(path, &options, &cpu()).unwrap();
        let lock = std::fs::File::open(directory.path().join(".zarr-server/lock")).unwrap();
        drop((first, third));
        assert!(lock.try_lock().is_err(), "one is still there");
        drop(second);
        lock.try_lock().expect("nobody has it any more");
        assert_eq!(lock.metadata().unwrap().len(), 0, "what one of them wrote may not be on the disk");
    }

    #[test]
    fn a_second_server_that_writes_to_a_root_is_refused_in_clear_words() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        let options = StoreOptions { writable: true, ..StoreOptions::default() };
        drop(open(path, &options, &cpu()).unwrap());
        // As another server has it.
        let lock = std::fs::File::open(directory.path().join(".zarr-server/lock")).unwrap();
        lock.try_lock().unwrap();
        let refused = open(path, &options, &cpu()).unwrap_err();
        let OpenError::Directory { source, .. } = refused else { panic!("{refused:?}") };
        assert!(matches!(source, StoreError::RootInUse(_)), "{source:?}");
        assert!(source.to_string().contains("another server"));
        open(path, &StoreOptions::default(), &cpu()).expect("readers are welcome");
        drop(lock);
        open(path, &options, &cpu()).expect("and so is the next writer");
    }
}
