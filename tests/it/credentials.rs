//! Credentials of S3 that no option gives: `zarrd serve s3://…` works with the environment that the tools of AWS work with.

use std::io::BufRead;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::{any, get, put};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::client;
use crate::support::process::{Running, zarrd};
use crate::support::s3::TestS3;

const PROFILES: &str = "[profile keys]\nregion = eu-west-3\naws_access_key_id = PROFILE\n\
    aws_secret_access_key = s\n[profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = keys\n\
    external_id = outside\n[profile sso]\nsso_session = x\n";

/// The token service, and the service of a container with its keys.
struct Services {
    address: String,
    /// The `Authorization` header and the form of each request for keys.
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Services {
    async fn start() -> Self {
        let requests: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let ours = Arc::clone(&requests);
        let sts = async move |request: axum::extract::Request| {
            let (parts, body) = request.into_parts();
            let form = axum::body::to_bytes(body, 1 << 16).await.unwrap();
            let header = parts.headers.get("authorization");
            let header = header.map_or("", |value| value.to_str().unwrap()).to_owned();
            let query = parts.uri.query().unwrap_or_default();
            let form = format!("{query}{}", String::from_utf8(form.to_vec()).unwrap());
            ours.lock().unwrap().push((header, form.clone()));
            let action =
                if form.contains("WithWebIdentity") { "AssumeRoleWithWebIdentity" } else { "AssumeRole" };
            format!(
                "<{action}Response><{action}Result><Credentials><AccessKeyId>ROLE</AccessKeyId>\
                 <SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>\
                 <Expiration>2126-01-01T00:00:00Z</Expiration></Credentials></{action}Result></{action}Response>"
            )
        };
        let theirs = Arc::clone(&requests);
        let keys = async move |headers: axum::http::HeaderMap| {
            let header = headers.get("authorization").map_or("none", |value| value.to_str().unwrap());
            theirs.lock().unwrap().push((header.to_owned(), String::new()));
            "{\"AccessKeyId\":\"CONTAINER\",\"SecretAccessKey\":\"s\",\"Token\":\"t\",\
             \"Expiration\":\"2126-01-01T00:00:00Z\"}"
        };
        let machine = async || {
            "{\"AccessKeyId\":\"MACHINE\",\"SecretAccessKey\":\"s\",\"Token\":\"t\",\
             \"Expiration\":\"2126-01-01T00:00:00Z\"}"
        };
        let router = Router::new()
            .route("/", any(sts))
            .route("/keys", get(keys))
            .route("/latest/api/token", put(async || "session"))
            .route("/latest/meta-data/iam/security-credentials/", get(async || "role"))
            .route("/latest/meta-data/iam/security-credentials/role", get(machine));
        Self { address: serve(router).await, requests }
    }
}

/// Serves these routes: the address.
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// The answer of a server with these variables whose requests cannot be signed.
async fn failed_with(s3: &TestS3, variables: &[(&str, &str)]) -> (u16, String) {
    let mut command = zarrd(&["serve", &format!("data={}", TestS3::s3_url())]);
    command.env("AWS_ENDPOINT_URL_S3", s3.endpoint()).envs(variables.iter().copied());
    let server = Running::of(command);
    let answer = client::get(format!("http://{}/store/data/key", server.address)).await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// What the start of a server with these variables says of the mount `data`.
fn banner(variables: &[(&str, &str)]) -> String {
    let mut command = zarrd(&["serve", &format!("data={}", TestS3::s3_url())]);
    command.envs(variables.iter().copied());
    let mut server = Running::of(command);
    let mut line = String::new();
    server.stdout.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[test]
fn the_start_says_what_requests_to_a_bucket_are_signed_with() {
    let (_folder, config, token) = files();
    let none = ("AWS_EC2_METADATA_DISABLED", "true");
    let keys = [("AWS_ACCESS_KEY_ID", "ENVIRONMENT"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
    let file = ("AWS_CONFIG_FILE", config.as_str());
    let web = [("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"), ("AWS_WEB_IDENTITY_TOKEN_FILE", token.as_str())];
    for (variables, expected) in [
        (&[none][..], ", without credentials"),
        (&keys, ", with the keys of the environment"),
        (&[file, ("AWS_PROFILE", "keys")], ", with the keys of a profile"),
        (&[file, ("AWS_PROFILE", "role")], ", with an assumed role"),
        (&web, ", with a web identity"),
    ] {
        let line = banner(variables);
        assert!(line.contains("/store/data/") && line.ends_with(expected), "{line}");
        assert!(!line.contains("ENVIRONMENT") && !line.contains("hidden"), "{line}");
    }
}

/// A server with these variables: the key and the region that it signs a request with; `None` if it signs nothing.
async fn signed_with(s3: &TestS3, variables: &[(&str, &str)]) -> Option<(String, String)> {
    let mut command = zarrd(&["serve", &format!("data={}", TestS3::s3_url())]);
    command.env("AWS_ENDPOINT_URL", s3.endpoint()).envs(variables.iter().copied());
    let server = Running::of(command);
    let url = format!("http://{}/store/data/key", server.address);
    let answer = client::get(url).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.bytes().await.unwrap()),
        (200, "value".into()),
        "{variables:?}"
    );
    let signature = s3.last_header("authorization")?;
    let scope = signature.strip_prefix("AWS4-HMAC-SHA256 Credential=").unwrap();
    let mut parts = scope.split('/');
    let (key, region) = (parts.next().unwrap(), parts.nth(1).unwrap());
    Some(pair(key, region))
}

/// What a server with this disk cache and this endpoint in the environment has under a key.
async fn cached_at(s3: &TestS3, cache: &str) -> String {
    let mut command = zarrd(&["serve", &format!("data={}", TestS3::s3_url())]);
    command.env("AWS_ENDPOINT_URL", s3.endpoint()).env("AWS_EC2_METADATA_DISABLED", "true");
    command.env("ZARRD__CACHE__DISK__PATH", cache).env("ZARRD__MOUNTS__DATA__FRESHNESS", "immutable");
    let mut server = Running::of(command);
    let answer = client::get(format!("http://{}/store/data/key", server.address)).await.unwrap();
    let text = answer.text().await.unwrap();
    server.signal(Signal::TERM);
    assert!(server.child.wait().unwrap().success());
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cached_of_a_bucket_is_not_served_for_one_at_another_endpoint_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let [one, other] = [TestS3::start().await, TestS3::start().await];
    one.insert("key", "one");
    other.insert("key", "other");
    for (bucket, expected) in [(&one, "one"), (&other, "other"), (&one, "one")] {
        assert_eq!(cached_at(bucket, cache.to_str().unwrap()).await, expected);
    }
}

fn pair(key: &str, region: &str) -> (String, String) {
    (key.to_owned(), region.to_owned())
}

/// A folder with a file of profiles and a token.
fn files() -> (TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (config, token) = (path("config", PROFILES), path("token", "signed.by.issuer"));
    (folder, config, token)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_on_the_command_line_is_read_with_the_credentials_of_the_environment() {
    let (s3, services) = (TestS3::start().await, Services::start().await);
    s3.insert("key", "value");
    let (_folder, config, token) = files();
    // No machine that runs this has a metadata service for it to find.
    let none = ("AWS_EC2_METADATA_DISABLED", "true");
    assert_eq!(signed_with(&s3, &[none]).await, None, "anonymous if there is nothing");

    let keys = [("AWS_ACCESS_KEY_ID", "ENVIRONMENT"), ("AWS_SECRET_ACCESS_KEY", "s")];
    assert_eq!(signed_with(&s3, &keys).await, Some(pair("ENVIRONMENT", "us-east-1")));
    let with_token = [keys[0], keys[1], ("AWS_SESSION_TOKEN", "temporary"), ("AWS_REGION", "eu-north-1")];
    assert_eq!(signed_with(&s3, &with_token).await, Some(pair("ENVIRONMENT", "eu-north-1")));
    assert_eq!(s3.last_header("x-amz-security-token").as_deref(), Some("temporary"));

    let file = ("AWS_CONFIG_FILE", config.as_str());
    assert_eq!(signed_with(&s3, &[file, ("AWS_PROFILE", "keys")]).await, Some(pair("PROFILE", "eu-west-3")));

    // The keys of the credentials file do not get the token of the other.
    let of_two_files = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = of_two_files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let first = path("config", "[profile two]\naws_session_token = stale\n");
    let second = path("credentials", "[two]\naws_access_key_id = TWO\naws_secret_access_key = s\n");
    let two = [
        ("AWS_CONFIG_FILE", first.as_str()),
        ("AWS_SHARED_CREDENTIALS_FILE", second.as_str()),
        ("AWS_PROFILE", "two"),
    ];
    assert_eq!(signed_with(&s3, &two).await, Some(pair("TWO", "us-east-1")));
    assert_eq!(s3.last_header("x-amz-security-token"), None);

    let role = [file, ("AWS_PROFILE", "role"), ("AWS_ENDPOINT_URL_STS", &services.address)];
    assert_eq!(signed_with(&s3, &role).await, Some(pair("ROLE", "us-east-1")));
    assert_eq!(s3.last_header("x-amz-security-token").as_deref(), Some("t"));
    let (signature, form) = services.requests.lock().unwrap().pop().unwrap();
    assert!(
        signature.contains("Credential=PROFILE/") && signature.contains("/us-east-1/sts/"),
        "{signature}"
    );
    assert!(form.contains("Action=AssumeRole&") && form.contains("ExternalId=outside"), "{form}");

    let web = [
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/w"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.as_str()),
        ("AWS_ENDPOINT_URL_STS", &services.address),
    ];
    assert_eq!(signed_with(&s3, &web).await, Some(pair("ROLE", "us-east-1")));
    let (_, form) = services.requests.lock().unwrap().pop().unwrap();
    assert!(form.contains("AssumeRoleWithWebIdentity") && form.contains("signed.by.issuer"), "{form}");

    let url = format!("{}/keys", services.address);
    let container = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token),
    ];
    assert_eq!(signed_with(&s3, &container).await, Some(pair("CONTAINER", "us-east-1")));

    let machine = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", services.address.as_str())];
    assert_eq!(signed_with(&s3, &machine).await, Some(pair("MACHINE", "us-east-1")));
    // A service without a role, as on a machine of another provider.
    let endpoint = s3.endpoint();
    assert_eq!(signed_with(&s3, &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &endpoint)]).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_of_a_container_gets_the_token_of_the_variable_or_the_file_or_none() {
    let (s3, services) = (TestS3::start().await, Services::start().await);
    s3.insert("key", "value");
    let (_folder, _, token) = files();
    let url = format!("{}/keys", services.address);
    let of_variable = ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer x");
    let of_file = ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.as_str());
    for (tokens, header) in
        [(vec![], "none"), (vec![of_variable], "Bearer x"), (vec![of_variable, of_file], "signed.by.issuer")]
    {
        let url = vec![("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str())];
        let variables = [url, tokens].concat();
        assert_eq!(signed_with(&s3, &variables).await, Some(pair("CONTAINER", "us-east-1")));
        assert_eq!(services.requests.lock().unwrap().pop().unwrap().0, header);
    }
}

#[test]
fn the_service_of_a_container_on_another_host_must_be_encrypted() {
    let written = refused_with(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://host.example/keys")]);
    assert!(written.contains("`AWS_CONTAINER_CREDENTIALS_FULL_URI` must be `https://`"), "{written}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_takes_credentials_of_the_environment_only_if_it_says_so() {
    let s3 = TestS3::start().await;
    s3.insert("key", "value");
    let keys = [("AWS_ACCESS_KEY_ID", "ENVIRONMENT"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zarrd.toml");
    for (options, key) in [
        ("", None),
        ("credentials = 'anonymous'\n", None),
        ("credentials = 'chain'\n", Some("ENVIRONMENT")),
        ("credentials = 'chain'\naccess_key_id = 'OWN'\nsecret_access_key = 's'\n", Some("OWN")),
    ] {
        let mount = format!(
            "[mounts.data]\nurl = '{}'\n[mounts.data.options]\nendpoint = '{}'\nallow_http = true\n\
             requester_pays = true\n{options}",
            TestS3::s3_url(),
            s3.endpoint()
        );
        std::fs::write(&file, mount).unwrap();
        let mut command = zarrd(&["serve", "--config", file.to_str().unwrap()]);
        command.envs(keys);
        let server = Running::of(command);
        let answer = client::get(format!("http://{}/store/data/key", server.address)).await.unwrap();
        assert_eq!(answer.status().as_u16(), 200, "{options}");
        let signature = s3.last_header("authorization");
        assert_eq!(signature.is_some(), key.is_some(), "{options}");
        assert!(signature.is_none_or(|text| text.contains(&format!("={}/", key.unwrap()))), "{options}");
        let payer = s3.last_header("x-amz-request-payer");
        assert_eq!(payer.as_deref(), key.map(|_| "requester"), "{options}");
    }
}

/// What stops the start of a server with these variables.
fn refused_with(variables: &[(&str, &str)]) -> String {
    let mut command = zarrd(&["serve", "s3://bucket", "--listen", "127.0.0.1:0"]);
    // No machine that runs this has a metadata service for it to find.
    command.env("AWS_EC2_METADATA_DISABLED", "true").envs(variables.iter().copied());
    let output = command.output().unwrap();
    let written =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(!output.status.success() && !written.contains("panicked"), "{variables:?}: {written}");
    written
}

#[test]
fn a_password_in_an_endpoint_stops_the_start_and_is_not_logged() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    std::fs::write(&config, "[default]\nendpoint_url = http://u:SECRETX@127.0.0.1:1\n").unwrap();
    let address = "http://u:SECRETX@127.0.0.1:1";
    let web = [("AWS_ROLE_ARN", "arn:aws:iam::1:role/w"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/none")];
    for (variables, name) in [
        (vec![("AWS_ENDPOINT_URL_S3", address)], "AWS_ENDPOINT_URL_S3"),
        (vec![("AWS_ENDPOINT_URL", address)], "AWS_ENDPOINT_URL"),
        (vec![("AWS_CONFIG_FILE", config.to_str().unwrap())], "endpoint_url"),
        (vec![web[0], web[1], ("AWS_ENDPOINT_URL_STS", address)], "AWS_ENDPOINT_URL_STS"),
    ] {
        let written = refused_with(&variables);
        assert!(written.contains(name) && !written.contains("SECRETX"), "{written}");
    }
}

#[test]
fn keys_and_regions_that_no_header_can_have_stop_the_start_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    std::fs::write(
        &config,
        "[default]\naws_access_key_id = SECRETX\u{e9}\naws_secret_access_key = s\n[profile far]\nregion = a SECRETX\n",
    )
    .unwrap();
    let config = ("AWS_CONFIG_FILE", config.to_str().unwrap());
    let (id, secret) = (("AWS_ACCESS_KEY_ID", "ID"), ("AWS_SECRET_ACCESS_KEY", "s"));
    for (variables, name) in [
        (vec![("AWS_ACCESS_KEY_ID", "ID\r\nSECRETX"), secret], "`AWS_ACCESS_KEY_ID`"),
        (vec![id, secret, ("AWS_SESSION_TOKEN", "SECRETX\n")], "`AWS_SESSION_TOKEN`"),
        (vec![id, secret, ("AWS_REGION", "eu\r\nSECRETX")], "`AWS_REGION`"),
        (vec![("AWS_DEFAULT_REGION", "SECRETX/")], "`AWS_DEFAULT_REGION`"),
        (vec![config], "`aws_access_key_id`"),
        (vec![config, ("AWS_PROFILE", "far")], "the profile (`region`)"),
    ] {
        let written = refused_with(&variables);
        assert!(written.contains(name) && !written.contains("SECRETX"), "{written}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_service_that_no_header_can_have_fail_requests_and_no_more() {
    let s3 = TestS3::start().await;
    s3.insert("key", "value");
    let keys = async || {
        "{\"AccessKeyId\":\"A\\nB\",\"SecretAccessKey\":\"s\",\"Token\":\"t\",\
         \"Expiration\":\"2126-01-01T00:00:00Z\"}"
    };
    let url = format!("{}/keys", serve(Router::new().route("/keys", get(keys))).await);
    let (status, text) = failed_with(&s3, &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str())]).await;
    // A panic would be 500.
    assert!(matches!(status, 502..=504), "{status}: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_instead_of_keys_fails_the_request() {
    let s3 = TestS3::start().await;
    s3.insert("key", "value");
    let endless = async || {
        let chunk = || Ok::<_, std::convert::Infallible>(axum::body::Bytes::from_static(&[b'x'; 4096]));
        axum::body::Body::from_stream(futures::stream::repeat_with(chunk))
    };
    let services = serve(Router::new().fallback(endless)).await;
    let (_folder, config, token) = files();
    let url = format!("{services}/keys");
    for variables in [
        vec![
            ("AWS_CONFIG_FILE", config.as_str()),
            ("AWS_PROFILE", "role"),
            ("AWS_ENDPOINT_URL_STS", services.as_str()),
        ],
        vec![
            ("AWS_ROLE_ARN", "arn:aws:iam::1:role/w"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", token.as_str()),
            ("AWS_ENDPOINT_URL_STS", services.as_str()),
        ],
        vec![("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str())],
    ] {
        let (status, text) = failed_with(&s3, &variables).await;
        assert!(matches!(status, 502..=504), "{variables:?}: {status}: {text}");
    }
    // It is not the service of AWS.
    let machine = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", services.as_str())];
    assert_eq!(signed_with(&s3, &machine).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_cannot_be_used_stops_the_start_with_its_reason() {
    let (_folder, config, _) = files();
    for (profile, reason) in [("missing", "there is no profile `missing`"), ("sso", "export-credentials")] {
        let mut command = zarrd(&["serve", "s3://bucket", "--listen", "127.0.0.1:0"]);
        let output = command.env("AWS_CONFIG_FILE", &config).env("AWS_PROFILE", profile).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(reason), "{error}");
    }
}
