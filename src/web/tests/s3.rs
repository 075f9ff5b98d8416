//! Tests of the S3 dialect: buckets, values and failures. Listings are compared with a model in `tests/it`.

use std::time::Duration;

use axum::body::Body;
use axum::http::Extensions;

use super::faults::faults;
use super::{Answer, Headers, Server};
use crate::admission::{AdmissionRequest, Priority};
use crate::error::{Classify, ErrorClass};
use crate::http::HttpOptions;

const VALUES: &[(&str, &[u8])] = &[("zarr.json", b"{}"), ("a/zarr.json", b"{}"), ("a/c/0", b"0123456789")];

impl Answer {
    /// The code of an S3 error, after a check that all its parts agree.
    fn s3_error(&self, path: &str) -> &str {
        assert_eq!(self.header("content-type"), "application/xml", "{self:?}");
        let id = self.header("x-amz-request-id");
        assert!(!id.is_empty() && id == self.header("x-request-id"), "{self:?}");
        let text = self.text();
        let (code, rest) = text
            .strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>")
            .and_then(|text| text.split_once("</Code><Message>"))
            .unwrap_or_else(|| panic!("{text}"));
        let (message, rest) = rest.split_once("</Message>").unwrap();
        assert!(!message.is_empty());
        assert_eq!(rest, format!("<Resource>{path}</Resource><RequestId>{id}</RequestId></Error>"));
        code
    }
}

#[tokio::test]
async fn a_mount_is_a_bucket() {
    let server = Server::new(VALUES);
    for url in ["/s3", "/s3/"] {
        let answer = server.get(url).await;
        assert_eq!(answer.header("content-type"), "application/xml");
        assert!(answer.text().ends_with(
            "<Buckets><Bucket><Name>m</Name></Bucket><Bucket><Name>r</Name></Bucket>\
             <Bucket><Name>w</Name></Bucket></Buckets></ListAllMyBucketsResult>"
        ));
    }
    for url in ["/s3/m", "/s3/m/"] {
        let head = server.send("HEAD", url, &[]).await;
        assert_eq!((head.status.as_u16(), head.header("x-amz-bucket-region")), (200, "us-east-1"));
        let root = |text: &str| text.split_once("?>\n").unwrap().1.to_owned();
        let xmlns = "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";
        for (query, name) in [("location", "LocationConstraint"), ("versioning=", "VersioningConfiguration")]
        {
            let answer = server.get(&format!("{url}?{query}")).await;
            assert_eq!(root(answer.text()), format!("<{name} {xmlns}></{name}>"));
        }
    }
    assert!(server.store.take_asked().is_empty(), "no store is asked about buckets");
    for (method, url) in [("GET", "/s3/none"), ("GET", "/s3/none/?list-type=2"), ("GET", "/s3/none/a")] {
        let answer = server.send(method, url, &[]).await;
        let path = url.split('?').next().unwrap();
        assert_eq!((answer.status.as_u16(), answer.s3_error(path)), (404, "NoSuchBucket"));
    }
    assert_eq!(server.send("HEAD", "/s3/none", &[]).await.status.as_u16(), 404);
}

#[tokio::test]
async fn a_listing_has_the_form_of_s3() {
    let server = Server::new(VALUES);
    let answer = server.get("/s3/m?list-type=2&prefix=a/&delimiter=/&start-after=a/b&fetch-owner=true").await;
    assert_eq!(
        (answer.header("content-type"), answer.header("cache-control")),
        ("application/xml", "no-cache")
    );
    assert_eq!(
        answer.text(),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>m</Name><Prefix>a/</Prefix>\
         <StartAfter>a/b</StartAfter><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter>\
         <IsTruncated>false</IsTruncated>\
         <Contents><Key>a/zarr.json</Key><LastModified>2001-09-09T01:46:42.000Z</LastModified>\
         <ETag>&quot;v2&quot;</ETag><Size>2</Size><StorageClass>STANDARD</StorageClass></Contents>\
         <CommonPrefixes><Prefix>a/c/</Prefix></CommonPrefixes>\
         </ListBucketResult>"
    );
    let answer = server.get("/s3/m/?max-keys=1&prefix=a/&marker=").await;
    assert_eq!(
        answer.text().split_once("<Contents>").unwrap().0,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>m</Name><Prefix>a/</Prefix>\
         <Marker></Marker><NextMarker>a/c/0</NextMarker><MaxKeys>1</MaxKeys><IsTruncated>true</IsTruncated>"
    );
}

/// The parts of a response that are the same in both dialects, without the names of the request.
fn said(answer: &Answer) -> (u16, Vec<(String, String)>, Option<&str>) {
    let headers =
        answer.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let mut headers: Vec<_> = headers.filter(|(name, _)| !name.ends_with("request-id")).collect();
    headers.sort();
    (answer.status.as_u16(), headers, answer.status.is_success().then(|| answer.text()))
}

#[tokio::test]
async fn a_value_is_read_as_by_the_store_routes() {
    let server = Server::new(VALUES);
    let signed: Headers<'_> = &[
        ("authorization", "AWS4-HMAC-SHA256 Credential=k/x, Signature=f"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
    ];
    let requests: [Headers<'_>; 11] = [
        &[],
        signed,
        &[("range", "bytes=2-4")],
        &[("range", "bytes=-3")],
        &[("range", "bytes=0-1,4-5")],
        &[("range", "bytes=2-4"), ("if-match", "\"v3\"")],
        &[("if-none-match", "\"v3\"")],
        &[("if-none-match", "\"v1\"")],
        &[("if-modified-since", "Sun, 09 Sep 2001 01:46:43 GMT")],
        &[("if-range", "\"v3\""), ("range", "bytes=2-4")],
        &[("if-range", "\"v2\""), ("range", "bytes=2-4")],
    ];
    for method in ["GET", "HEAD"] {
        for headers in requests {
            let store = server.send(method, "/store/m/a/c/0", headers).await;
            for query in
                ["", "?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=f&x-id=GetObject", "?versionId=null"]
            {
                let s3 = server.send(method, &format!("/s3/m/a/c/0{query}"), headers).await;
                assert_eq!(said(&s3), said(&store), "{method} {headers:?} {query}");
                assert!(!s3.header("x-amz-request-id").is_empty());
            }
        }
    }
}

#[tokio::test]
async fn refusals_have_the_form_of_s3() {
    let server = Server::new(VALUES);
    for (method, url, headers, status, code) in [
        ("GET", "/s3/m/none", &[] as Headers<'_>, 404, "NoSuchKey"),
        ("GET", "/s3/m/a", &[], 404, "NoSuchKey"),
        ("GET", "/s3/m/a/", &[], 404, "NoSuchKey"),
        ("GET", "/s3//m", &[], 404, "NoSuchKey"),
        ("GET", "/s3/m/a/c/0", &[("range", "bytes=10-")], 416, "InvalidRange"),
        ("GET", "/s3/m/a/c/0", &[("if-match", "\"x\"")], 412, "PreconditionFailed"),
        ("GET", "/s3/m/a/c/0?versionId=3", &[], 400, "InvalidArgument"),
        ("GET", "/s3/m/a/%2e%2e/b", &[], 400, "InvalidArgument"),
        ("GET", "/s3/m/%ff", &[], 400, "InvalidArgument"),
        ("GET", "/s3/m?prefix=%ff", &[], 400, "InvalidArgument"),
        ("GET", "/s3/m?list-type=2&continuation-token=garbage", &[], 400, "InvalidArgument"),
        ("GET", "/s3/m?max-keys=-1", &[], 400, "InvalidArgument"),
        ("GET", "/s3/m?delimiter=-", &[], 501, "NotImplemented"),
        ("GET", "/s3/m?acl", &[], 501, "NotImplemented"),
        ("GET", "/s3/?session", &[], 501, "NotImplemented"),
        ("GET", "/s3/m/zarr.json?tagging", &[], 501, "NotImplemented"),
        ("GET", "/s3/r?uploads", &[], 501, "NotImplemented"),
        ("GET", "/s3/m/zarr.json?uploads", &[], 501, "NotImplemented"),
        ("GET", "/s3/m/zarr.json?partNumber=1", &[], 501, "NotImplemented"),
        ("PUT", "/s3/r/b", &[], 405, "MethodNotAllowed"),
        ("PUT", "/s3/r/b?uploadId=1&partNumber=1", &[], 405, "MethodNotAllowed"),
        ("POST", "/s3/r/b?uploads", &[], 405, "MethodNotAllowed"),
        ("POST", "/s3/r?delete", &[], 405, "MethodNotAllowed"),
        ("DELETE", "/s3/r/zarr.json", &[], 405, "MethodNotAllowed"),
        ("PUT", "/s3/m/b?tagging", &[], 501, "NotImplemented"),
        ("PUT", "/s3/m/b?partNumber=1", &[], 501, "NotImplemented"),
        ("PUT", "/s3/m/b?uploadId=1&partNumber=0", &[], 400, "InvalidArgument"),
        ("PUT", "/s3/m/b?uploadId=1&partNumber=10001", &[], 400, "InvalidArgument"),
        ("PUT", "/s3/m/b", &[("x-amz-content-sha256", "0")], 400, "InvalidArgument"),
        (
            "PUT",
            "/s3/m/b",
            &[("x-amz-content-sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")],
            501,
            "NotImplemented",
        ),
        (
            "PUT",
            "/s3/m/b",
            &[("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")],
            411,
            "MissingContentLength",
        ),
        ("PUT", "/s3/m/b", &[("content-encoding", "gzip")], 415, "InvalidRequest"),
        ("PUT", "/s3/m/b", &[("content-length", "9999999999")], 413, "EntityTooLarge"),
        ("PUT", "/s3/m/b", &[("x-amz-copy-source", "m/none")], 404, "NoSuchKey"),
        ("PUT", "/s3/m/b", &[("x-amz-copy-source", "none/b")], 404, "NoSuchBucket"),
        ("PUT", "/s3/m/b", &[("x-amz-copy-source", "m/%ff")], 400, "InvalidArgument"),
        ("PUT", "/s3/m/b", &[("x-amz-copy-source", "m/zarr.json?versionId=1")], 400, "InvalidArgument"),
        ("PUT", "/s3/m/zarr.json", &[("if-none-match", "*")], 412, "PreconditionFailed"),
        ("PUT", "/s3/m/none", &[("if-match", "\"x\"")], 412, "PreconditionFailed"),
        ("POST", "/s3/m/b", &[], 400, "InvalidArgument"),
        ("POST", "/s3/m", &[], 501, "NotImplemented"),
        ("POST", "/s3/m?delete", &[], 400, "MalformedXML"),
        ("DELETE", "/s3/m", &[], 501, "NotImplemented"),
        ("PUT", "/s3/none", &[], 404, "NoSuchBucket"),
        ("PUT", "/s3/", &[], 501, "NotImplemented"),
        ("PATCH", "/s3/r/b", &[], 405, "MethodNotAllowed"),
        ("PROPFIND", "/s3/m/", &[], 405, "MethodNotAllowed"),
        ("TRACE", "/s3/r/b", &[], 405, "MethodNotAllowed"),
    ] {
        let answer = server.send(method, url, headers).await;
        let path = url.split('?').next().unwrap();
        assert_eq!((answer.status.as_u16(), answer.s3_error(path)), (status, code), "{method} {url}");
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        if status == 405 {
            assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS");
        }
    }
    assert_eq!(server.store.value("b"), None);
    assert!(server.store.value("zarr.json").is_some());
    let long = format!("/s3/m/{}", "x".repeat(10_000));
    assert_eq!(server.get(&long).await.s3_error(&long), "InvalidURI");
    for (url, allow) in [
        ("/s3", "GET, HEAD, OPTIONS"),
        ("/s3/r/a", "GET, HEAD, OPTIONS"),
        ("/s3/m/a", "GET, HEAD, PUT, POST, DELETE, OPTIONS"),
    ] {
        let answer = server.send("OPTIONS", url, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (204, allow));
    }
    assert_eq!(server.get("/s3x/m").await.problem(), "not-found", "other routes do not use the S3 dialect");
    assert_eq!(server.get("/store/m/s3/x").await.problem(), "not-found");
}

#[tokio::test]
async fn no_fault_becomes_a_listing_or_a_missing_key() {
    let urls = [
        "/s3/m/zarr.json",
        "/s3/m/none",
        "/s3/m?list-type=2&delimiter=/",
        "/s3/m?prefix=a",
        "/s3/m/?prefix=a/",
    ];
    let mut injected = 0;
    for fault in faults() {
        for url in urls {
            let server = Server::new(VALUES);
            *server.store.fault.lock().unwrap() = Some(fault.clone());
            let answer = server.get(url).await;
            let (status, code) = (answer.status.as_u16(), answer.s3_error(url.split('?').next().unwrap()));
            assert!(
                status >= 400 && status != 404 && !code.starts_with("NoSuch"),
                "{fault:?} {url}: {status}"
            );
            assert!(!answer.text().contains("secret"), "{}", answer.text());
            match fault.class() {
                ErrorClass::BackendFailed => assert_eq!((status, code), (502, "InternalError")),
                ErrorClass::TimedOut => assert_eq!((status, code), (504, "InternalError")),
                ErrorClass::Overloaded => assert_eq!((status, code), (503, "SlowDown")),
                _ => {}
            }
            let head = server.send("HEAD", url, &[]).await;
            assert_eq!(head.text(), "");
            injected += server.store.take_asked().len();
        }
    }
    assert!(injected >= faults().len() * urls.len());
}

#[tokio::test]
async fn a_failed_listing_is_an_error() {
    for cut in 0..3 {
        let server = Server::new(VALUES);
        *server.store.list_cut.lock().unwrap() = Some(cut);
        let answer = server.get("/s3/m?list-type=2").await;
        assert_eq!((answer.status.as_u16(), answer.s3_error("/s3/m")), (502, "InternalError"));
    }
}

#[tokio::test]
async fn the_middleware_responds_in_the_s3_dialect_too() {
    let server = Server::new(VALUES);
    *server.store.panics.lock().unwrap() = true;
    let answer = server.send("GET", "/s3/m/a/c/0", &[("if-none-match", "*")]).await;
    assert_eq!((answer.status.as_u16(), answer.s3_error("/s3/m/a/c/0")), (500, "InternalError"));

    let server = Server::with_options(
        VALUES,
        HttpOptions { response_timeout: Duration::from_millis(20), ..HttpOptions::default() },
    );
    *server.store.hangs.lock().unwrap() = true;
    let answer = server.get("/s3/m/a/c/0").await;
    assert_eq!((answer.status.as_u16(), answer.s3_error("/s3/m/a/c/0")), (504, "InternalError"));

    let options = HttpOptions {
        inflight_size: 1,
        admission_timeout: Duration::from_millis(1),
        ..HttpOptions::default()
    };
    let server = Server::with_options(VALUES, options);
    let anyone = AdmissionRequest::new(Priority::Metadata, &Extensions::new());
    let held = server.state.traffic.admission.acquire(anyone, 1).await.unwrap();
    let answer = server.send_body("GET", "/s3/m/a/c/0", &[], Body::empty()).await;
    assert_eq!((answer.status.as_u16(), answer.s3_error("/s3/m/a/c/0")), (503, "SlowDown"));
    let seconds = Duration::from_secs(answer.header("retry-after").parse().unwrap());
    assert!(seconds <= Duration::from_secs(5));
    drop(held);
    assert_eq!(server.get("/s3/m/a/c/0").await.status.as_u16(), 200);
}

#[tokio::test]
async fn head_has_the_headers_of_get() {
    let server = Server::new(VALUES);
    for url in
        ["/s3", "/s3/", "/s3/none", "/s3/m/a/c/0", "/s3/m/none", "/s3/m/%ff", "/s3/m/a?acl", "/s3/m?acl"]
    {
        let id: Headers<'_> = &[("x-request-id", "one")];
        let (get, head) = (server.send("GET", url, id).await, server.send("HEAD", url, id).await);
        assert_eq!((get.status, &get.headers), (head.status, &head.headers), "{url}");
        assert_eq!(head.text(), "", "{url}");
    }
}

#[tokio::test]
async fn pages_of_other_origins_may_send_the_headers_of_sdks() {
    let server = Server::new(VALUES);
    let headers: Headers<'_> = &[
        ("origin", "https://viewer.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "amz-sdk-invocation-id,x-amz-content-sha256,x-amz-user-agent"),
    ];
    let answer = server.send("OPTIONS", "/s3/m/a", headers).await;
    let allowed = answer.header("access-control-allow-headers").to_ascii_lowercase();
    let allowed: Vec<_> = allowed.split(',').map(str::trim).collect();
    for name in headers[2].1.split(',') {
        assert!(allowed.contains(&name), "{name}");
    }
}

fn of_chunks(text: &'static str, length: &'static str) -> (Headers<'static>, &'static str) {
    let headers: &'static [(&str, &str)] = Box::leak(Box::new([
        ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        ("content-encoding", "aws-chunked"),
        ("x-amz-trailer", "x-amz-checksum-crc32"),
        ("x-amz-decoded-content-length", length),
    ]));
    (headers, text)
}

#[tokio::test]
async fn a_body_is_stored_decoded_and_only_if_everything_said_about_it_is_true() {
    let hash = "a948904f2f0f479b8f8197694b30184b0d2ed1c1cd2a1ec0fb85d299a192a447";
    let other: Headers<'_> =
        &[("x-amz-content-sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")];
    let chunks = |text, length| of_chunks(text, length);
    let right = "6\r\nhello \r\n6\r\nworld\n\r\n0\r\nx-amz-checksum-crc32:rwg7LQ==\r\n\r\n";
    for (headers, body) in [
        (&[] as Headers<'_>, "hello world\n"),
        (&[("x-amz-content-sha256", hash)], "hello world\n"),
        (
            &[
                ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
                ("x-amz-checksum-sha1", "IlljY7PeQLBvmB+4XYIxLowO1RE="),
            ],
            "hello world\n",
        ),
        chunks(right, "12"),
    ] {
        let server = Server::new(VALUES);
        let answer = server.put("/s3/m/b", headers, body).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, ""), "{headers:?}");
        assert_eq!(server.store.value("b").unwrap(), "hello world\n");
        assert_eq!(answer.header("etag"), server.send("HEAD", "/store/m/b", &[]).await.header("etag"));
        if body == right {
            assert_eq!(answer.header("x-amz-checksum-crc32"), "rwg7LQ==");
        }
    }
    for ((headers, body), status, code) in [
        ((other, "hello world\n"), 400, "XAmzContentSHA256Mismatch"),
        ((&[("x-amz-checksum-crc32", "AAAAAA==")] as Headers<'_>, "hello world\n"), 400, "BadDigest"),
        ((&[("content-md5", "x")], "hello world\n"), 400, "InvalidArgument"),
        (chunks(right, "11"), 400, "IncompleteBody"),
        (chunks(right, "13"), 400, "IncompleteBody"),
        (chunks("c\r\nhello world\n\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", "12"), 400, "BadDigest"),
        (chunks("c\r\nhello world\n\r\n0\r\n\r\n", "12"), 400, "InvalidArgument"),
        (chunks("c\r\nhello world\n\r\n", "12"), 400, "IncompleteBody"),
        (chunks("c\r\nhello w", "12"), 400, "IncompleteBody"),
        (chunks("hello world\n", "12"), 400, "InvalidArgument"),
        (chunks("ffffffffffffffff\r\nhello world\n", "12"), 400, "IncompleteBody"),
    ] {
        let server = Server::new(VALUES);
        let answer = server.put("/s3/m/b", headers, body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.s3_error("/s3/m/b")),
            (status, code),
            "{headers:?} {body:?}"
        );
        assert_eq!(server.store.value("b"), None, "{body:?}");
    }
}

#[tokio::test]
async fn a_copy_is_of_any_mount_and_folders_are_made_of_nothing() {
    let server = Server::new(VALUES);
    for (url, source) in
        [("/s3/m/b", "/r/a/c/0"), ("/s3/m/c", "m%2Fa/c/0"), ("/s3/w/d", "m/a/c/0?versionId=null")]
    {
        let answer = server.send("PUT", url, &[("x-amz-copy-source", source)]).await;
        assert_eq!(answer.status.as_u16(), 200, "{answer:?}");
        assert!(answer.text().contains("<CopyObjectResult"), "{answer:?}");
        assert_eq!(server.store.value(url.rsplit('/').next().unwrap()).unwrap(), "0123456789");
    }
    let failing = [("x-amz-copy-source", "m/a/c/0"), ("x-amz-copy-source-if-match", "\"other\"")];
    assert_eq!(server.send("PUT", "/s3/m/e", &failing).await.status.as_u16(), 412);
    let folder = server.send("PUT", "/s3/m/folder/", &[("content-length", "0")]).await;
    assert_eq!((folder.status.as_u16(), server.store.value("folder")), (200, None));
    assert_eq!(server.put("/s3/m/folder/", &[("content-length", "1")], "x").await.status.as_u16(), 400);
    assert_eq!(server.send("DELETE", "/s3/m/a/", &[]).await.status.as_u16(), 204);
    assert!(server.store.value("a/c/0").is_some(), "a folder is not a prefix that is erased");
    let body = "<Delete><Object><Key>a/c/0</Key></Object><Object><Key>b</Key><ETag>x</ETag></Object>\
                <Object><Key>a//b</Key></Object><Object><Key>none</Key></Object></Delete>";
    let answer = server.send_body("POST", "/s3/m?delete", &[], Body::from(body)).await;
    assert!(
        answer.text().contains(
            "<Deleted><Key>a/c/0</Key></Deleted><Error><Key>b</Key><Code>PreconditionFailed</Code>"
        ),
        "{answer:?}"
    );
    assert!(answer.text().contains("<Error><Key>a//b</Key><Code>InvalidArgument</Code>"), "{answer:?}");
    assert!(answer.text().ends_with("<Deleted><Key>none</Key></Deleted></DeleteResult>"), "{answer:?}");
    assert_eq!((server.store.value("a/c/0"), server.store.value("b").is_some()), (None, true));
}
