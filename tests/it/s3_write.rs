//! Uploads in parts through the S3 API: what shows when, what is bounded, and what a crash leaves.

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use zarrd::http::{HttpOptions, UploadOptions};
use zarrd::services::Mount;
use zarrd::store::{LocalOptions, LocalStore, SharedStore};

use crate::support::hierarchy::memory;
use crate::support::server::{Answer, Server};

const PART_BYTES: usize = 5 << 20;

fn local(root: &Path) -> SharedStore {
    let options = LocalOptions { writable: true, ..LocalOptions::default() };
    std::sync::Arc::new(LocalStore::open(root, &options).unwrap())
}

fn serve(store: SharedStore, uploads: UploadOptions) -> Server {
    let mut server = Server::build(Mount { writable: true, ..Mount::read_only("m", store) });
    server.http = HttpOptions { uploads, ..HttpOptions::default() };
    server.finish()
}

/// The text of an element of an answer; empty if there is none.
fn text(answer: &Answer, name: &str) -> String {
    let all = std::str::from_utf8(&answer.body).unwrap();
    let inner =
        all.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once(&format!("</{name}>")));
    inner.map_or(String::new(), |(inner, _)| inner.replace("&quot;", "\""))
}

async fn begin(server: &Server, key: &str) -> Answer {
    server.request("POST", &format!("/s3/m/{key}?uploads"), &[], Body::empty()).await
}

async fn part(server: &Server, key: &str, id: &str, number: u32, body: impl Into<Vec<u8>>) -> Answer {
    let (url, body) = (format!("/s3/m/{key}?partNumber={number}&uploadId={id}"), body.into());
    server.request("PUT", &url, &[("content-length", &body.len().to_string())], body).await
}

async fn complete(
    server: &Server,
    key: &str,
    id: &str,
    tags: &[(u32, String)],
    headers: &[(&str, &str)],
) -> Answer {
    let parts: Vec<String> = tags
        .iter()
        .map(|(number, tag)| format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"))
        .collect();
    let parts = parts.concat();
    let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    server.request("POST", &format!("/s3/m/{key}?uploadId={id}"), headers, body).await
}

/// Everything that a client can list.
async fn listed(server: &Server) -> String {
    let store = server.get("/store/m/?recursive&format=json").await;
    let bucket = server.get("/s3/m?list-type=2").await;
    format!("{}{}", String::from_utf8_lossy(&store.body), text(&bucket, "Key"))
}

#[tokio::test]
async fn an_upload_appears_whole_and_its_parts_never() {
    let folder = tempfile::tempdir().unwrap();
    for store in [memory(), local(folder.path())] {
        let server = serve(store, UploadOptions::default());
        assert_eq!(server.request("PUT", "/s3/m/a/key", &[], "before").await.status, 200);
        let id = text(&begin(&server, "a/key").await, "UploadId");
        let mut tags = Vec::new();
        let bodies = [vec![1; PART_BYTES], vec![2; PART_BYTES], vec![3; 10]];
        for (number, body) in [2, 7, 9].into_iter().zip(&bodies) {
            let answer = part(&server, "a/key", &id, number, body.clone()).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            tags.push((number, answer.header("etag").to_owned()));
        }
        assert!(!listed(&server).await.contains("zarr-server"));
        for url in [
            format!("/s3/m/.zarr-server/uploads/{id}/00002"),
            format!("/store/m/.zarr-server/uploads/{id}/key"),
        ] {
            assert_eq!(server.get(&url).await.status, 404, "{url}");
            assert_eq!(server.request("PUT", &url, &[], "x").await.status, 400, "{url}");
        }
        assert_eq!(server.get("/s3/m/a/key").await.body, "before");

        // What is not there is not completed, nor another key with it.
        for (key, id) in
            [("a/other", id.as_str()), ("a/key", "0123456789abcdef0123456789abcdef"), ("a/key", "..")]
        {
            let answer = complete(&server, key, id, &tags, &[]).await;
            assert_eq!(
                (answer.status.as_u16(), &*text(&answer, "Code")),
                (404, "NoSuchUpload"),
                "{key} {id}"
            );
            assert_eq!(part(&server, key, id, 1, *b"x").await.status, 404);
        }
        let tag = server.ask(axum::http::Method::HEAD, "/s3/m/a/key", &[]).await.header("etag").to_owned();
        for condition in [("if-none-match", "*"), ("if-match", "\"other\"")] {
            let answer = complete(&server, "a/key", &id, &tags, &[condition]).await;
            assert_eq!((answer.status.as_u16(), &*text(&answer, "Code")), (412, "PreconditionFailed"));
        }
        assert_eq!(server.get("/s3/m/a/key").await.body, "before");
        let answer = complete(&server, "a/key", &id, &tags, &[("if-match", &tag)]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let value = server.get("/s3/m/a/key").await;
        assert_eq!((value.body.to_vec(), value.header("etag")), (bodies.concat(), &*text(&answer, "ETag")));
        assert_eq!(complete(&server, "a/key", &id, &tags, &[]).await.status, 404, "it has ended");
    }
    let staged = folder.path().join(".zarr-server/uploads");
    let left = std::fs::read_dir(staged)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name() != ".zarr-server");
    assert_eq!(left.count(), 0, "the parts are erased");
}

#[tokio::test]
async fn a_part_that_breaks_off_or_changes_makes_no_torn_value() {
    let server = serve(memory(), UploadOptions::default());
    let id = text(&begin(&server, "key").await, "UploadId");
    let first = part(&server, "key", &id, 1, *b"first").await.header("etag").to_owned();
    let url = format!("/s3/m/key?partNumber=1&uploadId={id}");
    for (headers, body) in [
        (vec![("content-length", "9")], "short"),
        (vec![("content-length", "5"), ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")], "wrong"),
    ] {
        assert_eq!(server.request("PUT", &url, &headers, body).await.status, 400);
    }
    let unknown = Request::builder().method("PUT").uri(&url);
    let stream = futures::stream::iter([Ok::<_, std::io::Error>("of unknown length")]);
    assert_eq!(server.send(unknown.body(Body::from_stream(stream)).unwrap()).await.status, 411);
    let second = part(&server, "key", &id, 1, *b"second").await.header("etag").to_owned();
    let answer = complete(&server, "key", &id, &[(1, first)], &[]).await;
    assert_eq!((answer.status.as_u16(), &*text(&answer, "Code")), (400, "InvalidPart"));
    assert_eq!(server.get("/s3/m/key").await.status, 404);
    assert_eq!(complete(&server, "key", &id, &[(1, second)], &[]).await.status, 200);
    assert_eq!(server.get("/s3/m/key").await.body, "second");
}

#[tokio::test]
async fn unfinished_uploads_are_bounded_in_number_bytes_and_time() {
    let limits = UploadOptions { max_uploads: 2, max_staged_size: 100, timeout: Duration::from_hours(1) };
    let server = serve(memory(), limits);
    let ids = [begin(&server, "a").await, begin(&server, "b").await].map(|answer| text(&answer, "UploadId"));
    let third = begin(&server, "c").await;
    assert_eq!((third.status.as_u16(), &*text(&third, "Code")), (503, "SlowDown"));
    assert!(text(&third, "Message").contains("max_uploads"), "{third:?}");
    assert_eq!(part(&server, "a", &ids[0], 1, [0; 60]).await.status, 200);
    let more = part(&server, "b", &ids[1], 1, [0; 60]).await;
    assert_eq!((more.status.as_u16(), &*text(&more, "Code")), (503, "SlowDown"));
    assert!(text(&more, "Message").contains("max_staged_size"), "{more:?}");
    let url = format!("/s3/m/b?partNumber=1&uploadId={}", ids[1]);
    for _ in 0..3 {
        let broken = server.request("PUT", &url, &[("content-length", "30")], "too short").await;
        assert_eq!(broken.status, 400, "a part that breaks off does not count");
    }
    let abort = server.request("DELETE", &format!("/s3/m/a?uploadId={}", ids[0]), &[], Body::empty()).await;
    assert_eq!(abort.status, 204);
    assert_eq!(part(&server, "b", &ids[1], 1, [0; 60]).await.status, 200, "an abort gives the bytes back");
    assert_eq!(begin(&server, "c").await.status, 200, "and the place");

    // Every upload has expired when they are listed next.
    let server = serve(memory(), UploadOptions { timeout: Duration::ZERO, ..UploadOptions::default() });
    let id = text(&begin(&server, "a").await, "UploadId");
    assert_eq!(part(&server, "a", &id, 1, *b"x").await.status, 200);
    let listed = server.get("/s3/m?uploads").await;
    assert_eq!((listed.status.as_u16(), text(&listed, "Upload")), (200, String::new()));
    assert_eq!(part(&server, "a", &id, 1, *b"x").await.status, 404);
}

#[tokio::test]
async fn a_directory_that_is_opened_again_has_no_parts_and_a_bucket_keeps_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(local(folder.path()), UploadOptions::default());
    let id = text(&begin(&server, "key").await, "UploadId");
    let tag = part(&server, "key", &id, 1, *b"part").await.header("etag").to_owned();
    assert!(folder.path().join(".zarr-server/uploads").join(&id).exists());
    drop(server);
    let server = serve(local(folder.path()), UploadOptions::default());
    assert!(!folder.path().join(".zarr-server/uploads").exists());
    let answer = complete(&server, "key", &id, &[(1, tag)], &[]).await;
    assert_eq!((answer.status.as_u16(), &*text(&answer, "Code")), (404, "NoSuchUpload"));

    // Another replica over the same store goes on with an upload.
    let store = memory();
    let one = serve(store.clone(), UploadOptions::default());
    let id = text(&begin(&one, "key").await, "UploadId");
    let tag = part(&one, "key", &id, 1, *b"part").await.header("etag").to_owned();
    let other = serve(store, UploadOptions::default());
    assert!(text(&other.get("/s3/m?uploads").await, "UploadId").contains(&id));
    assert_eq!(complete(&other, "key", &id, &[(1, tag)], &[]).await.status, 200);
    assert_eq!(one.get("/s3/m/key").await.body, "part");
    assert_eq!(complete(&one, "key", &id, &[(1, String::new())], &[]).await.status, 404);
}
