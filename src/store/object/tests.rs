//! The remote stores against a small server that sends any response, valid or not.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream::TryStreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::store::tests::{body, cpu, key, keys, prefix, read};
use crate::store::{
    AzureOptions, BucketOptions, ByteRange, S3Options, Secret, SharedStore, StoreError, StoreOptions,
    ValueInfo, Version, WriteCondition, is_unanswered, open, trouble,
};

/// The head of a request, as text; its body is read and discarded.
type Head = String;
type Answer = Arc<dyn Fn(&str) -> String + Send + Sync>;

struct Server {
    address: String,
    seen: Arc<Mutex<Vec<Head>>>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, log): (Answer, _) = (Arc::new(answer), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(converse(socket, Arc::clone(&answer), Arc::clone(&log)));
            }
        });
        Self { address, seen }
    }

    fn requests(&self, beginning: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|head| head.starts_with(beginning)).count()
    }

    fn s3(&self, change: impl FnOnce(&mut StoreOptions)) -> SharedStore {
        let mut options = StoreOptions {
            bucket: BucketOptions {
                endpoint: Some(self.address.clone()),
                allow_http: true,
                ..BucketOptions::default()
            },
            writable: true,
            s3: S3Options {
                access_key_id: Some("id".into()),
                secret_access_key: Some(Secret::new("secret")),
                ..S3Options::default()
            },
            ..StoreOptions::default()
        };
        change(&mut options);
        open("s3://bucket/some/prefix", &options, &cpu()).unwrap()
    }

    fn http(&self) -> SharedStore {
        let options = StoreOptions { writable: true, ..StoreOptions::default() };
        open(&format!("{}/some/prefix", self.address), &options, &cpu()).unwrap()
    }
}

async fn converse(mut socket: TcpStream, answer: Answer, log: Arc<Mutex<Vec<Head>>>) {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let total = end + length.map_or(0, |length| length.parse::<usize>().unwrap());
    while bytes.len() < total && socket.read_buf(&mut bytes).await.unwrap_or(0) > 0 {}
    let text = answer(&head);
    log.lock().unwrap().push(head);
    let _ = socket.write_all(text.as_bytes()).await;
    let _ = socket.shutdown().await;
}

const MODIFIED: &str = "last-modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n";

fn reply(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

/// A value of ten bytes, from a server with range requests.
fn ten_bytes(head: &str) -> String {
    let headers = format!("{MODIFIED}etag: \"v1\"\r\n");
    match head.split("range: bytes=").nth(1).and_then(|rest| rest.split("\r\n").next()) {
        None => reply("200 OK", &headers, "0123456789"),
        Some("2-4") => {
            reply("206 Partial Content", &format!("{headers}content-range: bytes 2-4/10\r\n"), "234")
        }
        Some("-3") => {
            reply("206 Partial Content", &format!("{headers}content-range: bytes 7-9/10\r\n"), "789")
        }
        Some(_) => reply("416 Range Not Satisfiable", "content-range: bytes */10\r\n", ""),
    }
}

async fn bytes(store: &SharedStore, range: ByteRange) -> Result<Bytes, StoreError> {
    store.get(&key("a"), range, None).await?.unwrap().bytes(1000).await
}

#[tokio::test]
async fn ranges_are_read_below_the_prefix_of_the_url() {
    let server = Server::start(ten_bytes).await;
    for store in [server.s3(|_| ()), server.http()] {
        assert_eq!(bytes(&store, ByteRange::Whole).await.unwrap(), "0123456789");
        assert_eq!(bytes(&store, ByteRange::Bounded(2, 5)).await.unwrap(), "234");
        assert_eq!(bytes(&store, ByteRange::Suffix(3)).await.unwrap(), "789");
        let error = bytes(&store, ByteRange::From(10)).await.unwrap_err();
        assert!(matches!(error, StoreError::RangeNotSatisfiable { size: 10 }), "{error:?}");
    }
    assert!(server.requests("get /bucket/some/prefix/a ") >= 4, "the prefix of the URL precedes the key");
    assert!(server.requests("get /some/prefix/a ") >= 4);
}

#[tokio::test]
async fn a_web_server_without_ranges_is_read_completely_and_trimmed() {
    let server = Server::start(|_| ten_bytes("")).await;
    let store = server.http();
    for (range, expected) in [
        (ByteRange::Bounded(2, 5), "234"),
        (ByteRange::Suffix(3), "789"),
        (ByteRange::From(8), "89"),
        (ByteRange::Bounded(0, 100), "0123456789"),
    ] {
        assert_eq!(bytes(&store, range).await.unwrap(), expected, "{range:?}");
    }
    let error = bytes(&store, ByteRange::From(10)).await.unwrap_err();
    assert!(matches!(error, StoreError::RangeNotSatisfiable { size: 10 }), "{error:?}");
}

#[tokio::test]
async fn a_backend_that_ignores_conditions_does_not_mix_versions() {
    let server = Server::start(ten_bytes).await;
    for store in [server.s3(|_| ()), server.http()] {
        let old = Version::strong("v0");
        for range in [ByteRange::Whole, ByteRange::Bounded(2, 5)] {
            let error = store.get(&key("a"), range, Some(&old)).await.unwrap_err();
            assert!(matches!(error, StoreError::VersionChanged), "{error:?}");
        }
        let current = Version::strong("v1");
        assert!(store.get(&key("a"), ByteRange::Whole, Some(&current)).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_truncated_body_is_rejected() {
    let server = Server::start(|_| {
        reply("200 OK", &format!("{MODIFIED}etag: \"v1\"\r\n"), "0123456789").replace("6789", "")
    });
    let server = server.await;
    for store in [server.s3(|_| ()), server.http()] {
        assert!(bytes(&store, ByteRange::Whole).await.is_err());
    }
}

#[tokio::test]
async fn a_read_on_a_connection_with_bytes_that_are_no_response_is_retried() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(move |head| match count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        // The end of a body that was longer than promised, as the next request finds it.
        0 => "and the rest of it\r\n\r\n".to_owned(),
        _ => ten_bytes(head),
    });
    let server = server.await;
    assert_eq!(bytes(&server.s3(|_| ()), ByteRange::Whole).await.unwrap(), "0123456789");
    assert_eq!(server.requests("get "), 2);
}

#[tokio::test]
async fn no_failure_of_a_backend_is_taken_for_absence() {
    let answers = [
        ("400 Bad Request", "backend"),
        ("401 Unauthorized", "backend"),
        ("403 Forbidden", "backend"),
        ("409 Conflict", "backend"),
        ("301 Moved Permanently", "backend"),
        ("429 Too Many Requests", "busy"),
        ("500 Internal Server Error", "backend"),
        ("501 Not Implemented", "backend"),
        ("503 Service Unavailable", "busy"),
        ("504 Gateway Timeout", "timed out"),
    ];
    let checks = answers.into_iter().map(|(status, expected)| async move {
        let server = Server::start(move |_| reply(status, "", "<secret>host</secret>")).await;
        for store in [server.s3(|_| ()), server.http()] {
            let head = store.head(&key("a")).await.unwrap_err();
            let get = store.get(&key("a"), ByteRange::Suffix(4), None).await.unwrap_err();
            for error in [head, get] {
                let found = match &error {
                    StoreError::Backend(_) => "backend",
                    StoreError::Busy(_) => "busy",
                    StoreError::TimedOut(_) => "timed out",
                    _ => "something else",
                };
                assert_eq!(found, expected, "{status}: {error:?}");
                assert!(!error.to_string().contains("host") && !error.to_string().contains("127.0.0.1"));
            }
        }
    });
    futures::future::join_all(checks).await;

    let refused = open("http://127.0.0.1:1/", &StoreOptions::default(), &cpu()).unwrap();
    assert!(matches!(refused.head(&key("a")).await.unwrap_err(), StoreError::Backend(_)));
}

/// A server with no bucket for HEAD, whose document for GET has this code.
async fn without_bucket(code: &'static str) -> Server {
    Server::start(move |head| {
        let document = format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code></Error>");
        reply("404 Not Found", "", if head.starts_with("head ") { "" } else { &document })
    })
    .await
}

#[tokio::test]
async fn a_key_of_a_bucket_that_does_not_exist_is_not_absent() {
    for code in ["NoSuchBucket", "ContainerNotFound"] {
        let server = without_bucket(code).await;
        let store = server.s3(|_| ());
        let errors = [
            store.get(&key("a"), ByteRange::Whole, None).await.map(drop),
            store.get(&key("a"), ByteRange::Suffix(3), None).await.map(drop),
            store.head(&key("a")).await.map(drop),
            store.check().await,
        ];
        for result in errors {
            let error = result.unwrap_err();
            assert!(matches!(error, StoreError::Backend(_)), "{error:?}");
            assert_eq!(trouble(&error), "there is no such bucket or container");
            assert!(!is_unanswered(&error), "it is an answer: no stale value replaces it");
        }
        assert_eq!(server.requests("get "), 4, "it is not asked again");
    }
}

/// A server that answers with a status and, but for HEAD, with a document with this code and more.
async fn refusing(status: &'static str, headers: &'static str, document: &'static str) -> Server {
    Server::start(move |head| reply(status, headers, if head.starts_with("head ") { "" } else { document }))
        .await
}

#[tokio::test]
async fn a_refusal_is_reported_with_its_code_and_what_to_do_about_it() {
    for (status, headers, document, parts) in [
        (
            "403 Forbidden",
            "",
            "<Error><Code>AccessDenied</Code></Error>",
            &["status 403, AccessDenied", "`options.credentials"][..],
        ),
        (
            "403 Forbidden",
            "",
            "<Error><Code>InvalidAccessKeyId</Code></Error>",
            &["InvalidAccessKeyId", "the access key"],
        ),
        ("403 Forbidden", "", "<Error><Code>RequestTimeTooSkewed</Code></Error>", &["clock"]),
        ("400 Bad Request", "", "<Error><Code>ExpiredToken</Code></Error>", &["ExpiredToken", "expired"]),
        ("403 Forbidden", "", "<Error><Code>the-bucket</Code></Error>", &["it refuses access (status 403)"]),
        (
            "400 Bad Request",
            "",
            "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>",
            &["in the region `eu-west-1`", "options.region"],
        ),
        (
            "301 Moved Permanently",
            "x-amz-bucket-region: eu-west-1\r\n",
            "<Error><Code>PermanentRedirect</Code></Error>",
            &["in the region `eu-west-1`", "options.region"],
        ),
        ("301 Moved Permanently", "", "", &["perhaps in another region", "options.region"]),
    ] {
        let server = refusing(status, headers, document).await;
        let store = server.s3(|_| ());
        for result in [store.get(&key("a"), ByteRange::Whole, None).await.map(drop), store.check().await] {
            let error = result.unwrap_err();
            let trouble = trouble(&error);
            assert!(parts.iter().all(|part| trouble.contains(part)), "{status}: {trouble}");
            assert!(!trouble.contains("the-bucket"));
            assert!(!is_unanswered(&error), "{status}: a refusal is an answer");
        }
    }
}

#[tokio::test]
async fn the_absence_of_a_key_is_confirmed_once_where_its_bucket_was_not_seen() {
    let server = without_bucket("NoSuchKey").await;
    let store = server.s3(|_| ());
    for _ in 0..3 {
        assert_eq!(store.head(&key("a")).await.unwrap(), None);
    }
    assert_eq!((server.requests("head "), server.requests("get ")), (3, 1));
    assert!(store.get(&key("a"), ByteRange::Whole, None).await.unwrap().is_none());
}

#[tokio::test]
async fn not_found_is_absence_and_forbidden_only_if_configured() {
    let server = Server::start(|_| reply("404 Not Found", "", "")).await;
    for store in [server.s3(|_| ()), server.http()] {
        assert_eq!(store.head(&key("a")).await.unwrap(), None);
        assert!(store.get(&key("a"), ByteRange::Suffix(4), None).await.unwrap().is_none());
        store.check().await.unwrap();
    }
    let server = Server::start(|_| reply("403 Forbidden", "", "")).await;
    let store = server.s3(|options| options.remote.missing_on_403 = true);
    assert_eq!(store.head(&key("a")).await.unwrap(), None);
    assert!(store.get(&key("a"), ByteRange::Whole, None).await.unwrap().is_none());
}

#[tokio::test]
async fn a_missing_key_is_absent_even_if_the_backend_rejects_its_version_or_range() {
    let server = Server::start(|head| {
        let status = if head.starts_with("head ") { "404 Not Found" } else { "412 Precondition Failed" };
        reply(status, "", "")
    });
    let store = server.await.s3(|_| ());
    let version = Version::strong("v1");
    assert!(store.get(&key("a"), ByteRange::Suffix(4), Some(&version)).await.unwrap().is_none());

    // A range after the end, for which the server sends the last byte.
    let server = Server::start(|head| {
        let headers = format!("{MODIFIED}etag: \"v1\"\r\ncontent-range: bytes 9-9/10\r\n");
        if head.contains("range: ") { reply("206 Partial Content", &headers, "9") } else { ten_bytes(head) }
    });
    let store = server.await.s3(|_| ());
    let error = bytes(&store, ByteRange::From(10)).await.unwrap_err();
    assert!(matches!(error, StoreError::RangeNotSatisfiable { size: 10 }), "{error:?}");
    assert!(matches!(bytes(&store, ByteRange::From(4)).await.unwrap_err(), StoreError::Backend(_)));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = Server::start(ten_bytes).await;
    let location = format!("location: {}/a\r\n", other.address);
    let server = Server::start(move |_| reply("302 Found", &location, "")).await;
    assert!(matches!(server.http().head(&key("a")).await.unwrap_err(), StoreError::Backend(_)));
    assert_eq!(other.requests(""), 0);

    let server = Server::start(|_| reply("301 Moved Permanently", "location: /some/prefix/a/\r\n", "")).await;
    assert_eq!(server.http().head(&key("a")).await.unwrap(), None, "a directory is no value");
}

#[tokio::test]
async fn a_store_without_credentials_sends_none() {
    let server = Server::start(ten_bytes).await;
    let store = server.s3(|options| {
        options.s3.access_key_id = None;
        options.s3.secret_access_key = None;
    });
    store.head(&key("a")).await.unwrap();
    assert!(!server.seen.lock().unwrap().iter().any(|head| head.contains("authorization:")));
    server.s3(|_| ()).head(&key("a")).await.unwrap();
    assert!(server.seen.lock().unwrap().iter().any(|head| head.contains("authorization: aws4-hmac-sha256")));
}

#[tokio::test]
async fn a_write_over_a_weak_version_is_rejected() {
    let server = Server::start(ten_bytes).await;
    for store in [server.s3(|_| ()), server.http()] {
        let weak = WriteCondition::IfVersion(Version::weak("v1"));
        let error = store.set(&key("a"), body("x"), weak.clone()).await.unwrap_err();
        assert!(matches!(error, StoreError::ConditionFailed), "{error:?}");
        assert!(matches!(store.erase(&key("a"), weak).await, Err(StoreError::ConditionFailed)));
    }
    assert_eq!(server.requests("put ") + server.requests("delete "), 0);
}

#[tokio::test]
async fn gcs_and_azure_get_conditions_and_write_ids_in_their_own_headers() {
    for (url, put, erase, id) in [
        (
            "gs://bucket",
            "x-goog-if-generation-match: 7\r\n",
            "x-goog-if-generation-match: 7\r\n",
            "x-goog-meta-",
        ),
        ("az://bucket", "if-match: \"v1\"\r\n", "", "x-ms-meta-"),
    ] {
        let created = Mutex::new(0);
        let server = Server::start(move |head| {
            let headers = format!("{MODIFIED}etag: \"v1\"\r\nx-goog-generation: 7\r\n");
            let is_create = head.contains("if-none-match: *") || head.contains("generation-match: 0");
            let is_other = head.contains("if-match: ") && !head.contains("if-match: \"v1\"");
            if is_create {
                // Of the creations of the probe, the second fails.
                *created.lock().unwrap() += 1;
            }
            match head.split(' ').next() {
                Some("put") if is_other || (is_create && *created.lock().unwrap() == 2) => {
                    reply("412 Precondition Failed", "", "")
                }
                Some("put") => reply("201 Created", "etag: \"v2\"\r\n", ""),
                Some("delete") => reply("204 No Content", "", ""),
                Some("post") => reply("400 Bad Request", "", ""),
                _ => reply("200 OK", &headers, "0123456789"),
            }
        });
        let server = server.await;
        let options = StoreOptions {
            bucket: BucketOptions {
                endpoint: Some(server.address.clone()),
                allow_http: true,
                ..BucketOptions::default()
            },
            writable: true,
            azure: AzureOptions { account: Some("account".into()), ..AzureOptions::default() },
            ..StoreOptions::default()
        };
        let store = open(url, &options, &cpu()).unwrap();
        let condition = || WriteCondition::IfVersion(Version::strong("v1"));
        let outcome = store.set(&key("a"), body("x"), condition()).await.unwrap();
        assert_eq!(outcome.version, Some(Version::strong("v2")));
        let has_header = |method: &str, word: &str| {
            let seen = server.seen.lock().unwrap();
            seen.iter().any(|head| head.starts_with(&format!("{method} ")) && head.contains(word))
        };
        assert!(has_header("put", put), "{url}");
        assert!(has_header("put", &format!("{id}zarr_server_write_id: ")), "{url}");
        if !erase.is_empty() {
            assert!(store.erase(&key("a"), condition()).await.unwrap());
            assert!(has_header("delete", erase), "{url}");
        }
    }
}

#[tokio::test]
async fn a_long_value_is_uploaded_in_parts() {
    let server = Server::start(|head| {
        let begun = "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>7</UploadId>\
                     </InitiateMultipartUploadResult>";
        let done = "<CompleteMultipartUploadResult><ETag>\"whole\"</ETag></CompleteMultipartUploadResult>";
        match head.split(' ').next() {
            Some("post") if head.contains("uploadid=7") => reply("200 OK", "", done),
            Some("post") => reply("200 OK", "", begun),
            _ => reply("200 OK", "etag: \"part\"\r\n", ""),
        }
    });
    let server = server.await;
    let bytes = vec![1; 20 << 20];
    let outcome = server.s3(|_| ()).set(&key("a"), body(bytes), WriteCondition::Always).await.unwrap();
    assert_eq!(outcome.version, Some(Version::strong("whole")));
    assert_eq!(server.requests("put "), 3, "of 8, 8 and 4 MiB");
    let long = body(vec![1; 65 << 20]);
    let error = server.s3(|_| ()).set(&key("a"), long, WriteCondition::IfAbsent).await.unwrap_err();
    assert!(matches!(error, StoreError::BodyTooLarge { limit: 67_108_864 }), "{error:?}");
}

#[tokio::test]
async fn a_bucket_is_listed_without_the_directories_that_tools_leave_behind() {
    let object = |key: &str, size: u32| {
        format!(
            "<Contents><Key>some/prefix/{key}</Key><LastModified>2015-10-21T07:28:00.000Z</LastModified>\
             <ETag>&quot;v{size}&quot;</ETag><Size>{size}</Size></Contents>"
        )
    };
    let all = ["d-x", "d/", "d/k", "e/", "e/f/", "e/f/k", "empty", "z"];
    let all: String =
        all.iter().map(|key| object(key, u32::from(!key.ends_with('/') && *key != "empty"))).collect();
    let directly = object("empty", 0)
        + &object("z", 1)
        + "<CommonPrefixes><Prefix>some/prefix/d/</Prefix></CommonPrefixes>";
    let server = Server::start(move |head| {
        let inner = if head.contains("delimiter=") { &directly } else { &all };
        reply("200 OK", "", &format!("<ListBucketResult>{inner}</ListBucketResult>"))
    });
    let server = server.await;
    let store = server.s3(|_| ());
    assert_eq!(keys(&*store, "").await, ["d-x", "d/k", "e/f/k", "empty", "z"]);
    let rest: Vec<_> = store.list_prefix(&prefix(""), Some(&key("empty"))).try_collect().await.unwrap();
    assert_eq!(rest.len(), 1, "although this server begins at the beginning again");
    let listing = store.list_dir(&prefix("")).await.unwrap();
    let names: Vec<_> = listing.keys.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!((names, listing.prefixes), (vec!["empty", "z"], vec![prefix("d/")]));
    let ValueInfo { size, version, modified } = listing.keys[1].info.clone();
    assert_eq!((size, version, modified.is_some()), (1, Version::strong("v1"), true));
}

#[tokio::test]
async fn a_listing_that_breaks_off_or_is_refused_is_an_error() {
    let server = Server::start(|_| reply("403 Forbidden", "", "")).await;
    let store = server.s3(|_| ());
    assert!(matches!(store.list_dir(&prefix("")).await.unwrap_err(), StoreError::Backend(_)));
    let all: Result<Vec<_>, _> = store.list_prefix(&prefix(""), None).try_collect().await;
    assert!(matches!(all.unwrap_err(), StoreError::Backend(_)));

    let server = Server::start(|_| reply("200 OK", "", "<ListBucketResult><Contents>")).await;
    assert!(server.s3(|_| ()).list_dir(&prefix("")).await.is_err());
}

#[tokio::test]
async fn a_web_server_lists_if_it_supports_propfind() {
    for answer in [reply("405 Method Not Allowed", "", ""), reply("200 OK", "", "<html>hello</html>")] {
        let server = Server::start(move |_| answer.clone()).await;
        let store = server.http();
        assert!(matches!(store.list_dir(&prefix("")).await.unwrap_err(), StoreError::NotListable));
        let all: Result<Vec<_>, _> = store.list_prefix(&prefix(""), None).try_collect().await;
        assert!(matches!(all.unwrap_err(), StoreError::NotListable));
    }
    let entry = |href: &str, kind: &str| {
        format!(
            "<D:response><D:href>{href}</D:href><D:propstat><D:prop><D:getlastmodified>Wed, 21 Oct 2015 07:28:00 \
             GMT</D:getlastmodified><D:getcontentlength>3</D:getcontentlength><D:resourcetype>{kind}\
             </D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        )
    };
    let directory = "<D:collection/>";
    let found = entry("/some/prefix/", directory)
        + &entry("/some/prefix/z", "")
        + &entry("/some/prefix/b%20c/", directory)
        + &entry("/some/prefix/a", "");
    let server = Server::start(move |_| {
        reply("207 Multi-Status", "", &format!("<D:multistatus xmlns:D=\"DAV:\">{found}</D:multistatus>"))
    });
    let server = server.await;
    let store = server.http();
    let listing = store.list_dir(&prefix("")).await.unwrap();
    let names: Vec<_> = listing.keys.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!((names, listing.prefixes), (vec!["a", "z"], vec![prefix("b c/")]));
    assert!(!listing.keys[0].info.version.is_strong(), "size and time make a weak version");
    assert_eq!(keys(&*store, "").await, ["a", "z"], "in order");
}

#[tokio::test]
async fn a_read_only_store_writes_nothing() {
    let server = Server::start(ten_bytes).await;
    let store = server.s3(|options| options.writable = false);
    let always = WriteCondition::Always;
    assert!(matches!(store.set(&key("a"), body("x"), always.clone()).await, Err(StoreError::ReadOnly)));
    assert!(matches!(store.erase(&key("a"), always).await, Err(StoreError::ReadOnly)));
    assert!(matches!(store.erase_prefix(&prefix("")).await, Err(StoreError::ReadOnly)));
    assert_eq!(server.requests(""), 0);
    assert_eq!(read(&*store, "a").await.unwrap(), "0123456789");
}

#[tokio::test]
async fn versions_of_two_memory_stores_differ() {
    let (one, two) = (super::ObjectBackend::memory(true), super::ObjectBackend::memory(true));
    let first = crate::store::tests::put(&one, "a", "one").await.version;
    assert_ne!(first, crate::store::tests::put(&two, "a", "two").await.version);
}
