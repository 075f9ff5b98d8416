//! Which URL opens which store, and what is refused.

use ::url::Url;

use super::open_store::decoded_file_name;
use super::*;
use crate::store::tests::cpu;
use crate::store::{
    AzureOptions, BucketOptions, Durability, LocalOptions, S3Options, StoreError, StoreKind, StoreOptions,
};

/// With an endpoint of unencrypted http, no certificates are needed to open it.
fn remote() -> StoreOptions {
    StoreOptions {
        azure: AzureOptions { account: Some("account".into()), ..AzureOptions::default() },
        bucket: BucketOptions {
            endpoint: Some("http://localhost:1".into()),
            allow_http: true,
            ..BucketOptions::default()
        },
        ..StoreOptions::default()
    }
}

fn error(url: &str, options: &StoreOptions) -> String {
    open(url, options, &cpu()).unwrap_err().to_string()
}

#[test]
fn a_url_selects_its_kind_of_store() {
    let options = remote();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    for (url, kind) in [
        (path.to_string(), StoreKind::LOCAL),
        (format!("file://{path}"), StoreKind::LOCAL),
        ("memory://".to_owned(), StoreKind::MEMORY),
        ("s3://bucket/some/prefix".to_owned(), StoreKind::S3),
        ("gs://bucket".to_owned(), StoreKind::GCS),
        ("az://container/p/".to_owned(), StoreKind::AZURE),
        ("http://localhost:1/a%20b/".to_owned(), StoreKind::HTTP),
    ] {
        assert_eq!(open(&url, &options, &cpu()).unwrap().kind(), kind, "{url}");
    }
}

#[test]
fn an_open_error_gives_the_reason() {
    let options = StoreOptions::default();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(error("/no/such/directory", &options).contains("no directory `/no/such/directory`"));
    assert!(error(file.to_str().unwrap(), &options).contains("is not a directory"));
    assert!(error("ftp://host/", &options).contains("`ftp://` is not a kind of store"));
    assert!(error("s3://", &options).contains("bucket"));
    assert!(error("s3://bucket/a//b", &options).contains("prefix"));
    let no_account = StoreOptions { azure: AzureOptions::default(), ..remote() };
    assert!(error("az://container", &no_account).contains("`account`"));
    assert!(error("memory://x", &options).contains("memory"));
    assert!(error("http://user:password@host/", &options).contains("user name"));
    let bucket = BucketOptions { endpoint: Some("http://localhost:9000".into()), ..BucketOptions::default() };
    let unencrypted = StoreOptions { bucket, ..StoreOptions::default() };
    assert!(error("s3://bucket", &unencrypted).contains("allow_http"));
    let half = StoreOptions {
        s3: S3Options { access_key_id: Some("id".into()), ..S3Options::default() },
        ..remote()
    };
    assert!(error("s3://bucket", &half).contains("go together"));
}

#[test]
fn a_password_in_an_endpoint_is_refused_without_repeating_it() {
    for endpoint in
        ["http://u:SECRETX@localhost:1", "https://SECRETX@host", "u:SECRETX@host", "http://u:SECRETX@h:p"]
    {
        for url in ["s3://bucket", "gs://bucket", "az://container"] {
            let mut options = remote();
            options.bucket.endpoint = Some(endpoint.to_owned());
            let message = error(url, &options);
            assert!(message.contains("`endpoint`") && !message.contains("SECRETX"), "{message}");
        }
    }
}

#[test]
fn an_unencrypted_endpoint_needs_permission_however_its_scheme_is_written() {
    let bucket = BucketOptions { endpoint: Some("HTTP://localhost:9000".into()), ..BucketOptions::default() };
    let options = StoreOptions { bucket, ..StoreOptions::default() };
    assert!(error("s3://bucket", &options).contains("allow_http"));
}

#[test]
fn a_url_that_ends_in_zip_names_the_file_and_not_a_directory_of_that_name() {
    let options = remote();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    std::fs::create_dir(directory.path().join("directory.zip")).unwrap();
    for (url, kind) in [
        (format!("{path}/not yet.zip"), StoreKind::ZIP),
        (format!("file://{path}/not%20yet.zip"), StoreKind::ZIP),
        (format!("{path}/directory.zip"), StoreKind::LOCAL),
        (format!("file://{path}/directory.zip/"), StoreKind::LOCAL),
        ("s3://bucket/some/a.zip".to_owned(), StoreKind::ZIP),
        ("s3://bucket/some/a.zip/".to_owned(), StoreKind::S3),
        ("s3://bucket.zip".to_owned(), StoreKind::S3),
        ("gs://bucket/a.zip".to_owned(), StoreKind::ZIP),
        ("az://container/a.zip".to_owned(), StoreKind::ZIP),
        ("http://localhost:1/a%20b.zip".to_owned(), StoreKind::ZIP),
        ("http://host.zip".to_owned(), StoreKind::HTTP),
        ("a.zip".to_owned(), StoreKind::ZIP),
    ] {
        assert_eq!(open(&url, &options, &cpu()).unwrap().kind(), kind, "{url}");
    }
    let writable = StoreOptions { writable: true, ..remote() };
    assert!(error("s3://bucket/a.zip", &writable).contains("only read"));
    assert!(error("http://host/a?b.zip", &options).contains("query"));
    assert!(error("http://host/a%2fb.zip", &options).contains("invalid names"));
    assert!(error("http://host/a?b/c.zip", &options).contains("query"));
    assert!(error("/no/such/directory/a.zip", &options).contains("no directory `/no/such/directory`"));
    assert!(error("memory:///a.zip", &options).contains("memory"));
    assert!(error("s3:///a.zip", &options).contains("bucket"));
}

#[tokio::test]
async fn the_name_of_a_zip_file_is_decoded_only_in_encoded_urls() {
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
        assert_eq!(decoded_file_name(url, last).unwrap(), name);
    }
}

#[test]
fn options_never_show_their_secrets_and_reject_unknown_keys() {
    let json =
        r#"{"region": "r", "access_key_id": "id", "secret_access_key": "hunter2", "sas_token": "hunter2"}"#;
    let options: StoreOptions = serde_json::from_str(json).unwrap();
    assert!(!format!("{options:?}").contains("hunter2"));
    assert!(!serde_json::to_string(&options).unwrap().contains("hunter2"));
    let unencrypted = StoreOptions { bucket: remote().bucket, ..options };
    let store = open("s3://bucket", &unencrypted, &cpu()).unwrap();
    assert!(!format!("{store:?}").contains("hunter2"));
    assert!(serde_json::from_str::<StoreOptions>(r#"{"regoin": "r"}"#).is_err());
}

#[test]
fn stores_of_one_root_share_its_lock_until_the_last_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let options = StoreOptions { writable: true, ..StoreOptions::default() };
    let first = open(path, &options, &cpu()).unwrap();
    let second = StoreOptions {
        local: LocalOptions { durability: Durability::Rename, ..LocalOptions::default() },
        ..options.clone()
    };
    let second = open(path, &second, &cpu()).expect("a reloaded configuration");
    let third = open(path, &options, &cpu()).unwrap();
    let lock = std::fs::File::open(directory.path().join(".zarr-server/lock")).unwrap();
    drop((first, third));
    assert!(lock.try_lock().is_err(), "one is still open");
    drop(second);
    lock.try_lock().expect("the last store released it");
    assert_eq!(lock.metadata().unwrap().len(), 0, "what one of them wrote may not be on the disk");
}

#[test]
fn a_second_server_that_writes_to_a_root_is_rejected() {
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
    open(path, &StoreOptions::default(), &cpu()).expect("a reader needs no lock");
    drop(lock);
    open(path, &options, &cpu()).expect("and so is the next writer");
}
