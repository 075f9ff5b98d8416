//! Documents of references as mounts: what kerchunk and `VirtualiZarr` wrote reads as their own readers read it, and what
//! leads where it may not is refused by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use zarrd::store::{
    AllowedPrefix, ContainerBudget, OpenBudgets, SharedStore, StoreOptions, open, open_within,
};

use crate::support::process::{run, text};
use crate::support::s3::TestS3;
use crate::support::server::{Server, cpu};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kerchunk")
}

/// A name of this machine that resolves to an address of it, and is not `localhost`.
fn this_machine() -> String {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = [
        own.trim().to_ascii_lowercase(),
        "localhost.".into(),
        "ip6-localhost".into(),
        "localhost.localdomain".into(),
    ];
    let leads_here = |name: &String| {
        let found = std::net::ToSocketAddrs::to_socket_addrs(&(&**name, 0));
        !name.is_empty()
            && found.is_ok_and(|mut found| found.any(|address| address.ip() == std::net::Ipv4Addr::LOCALHOST))
    };
    names.into_iter().find(leads_here).expect("a name of this machine in /etc/hosts")
}

fn allowed(url: impl Into<String>) -> AllowedPrefix {
    AllowedPrefix { url: url.into(), at: None, private_addresses: false, options: StoreOptions::default() }
}

/// The store of a document, whose references may lead to these prefixes.
fn references(document: &Path, prefixes: Vec<AllowedPrefix>) -> SharedStore {
    let options = StoreOptions { references: prefixes, ..StoreOptions::default() };
    open(&format!("kerchunk+file://{}", document.display()), &options, &cpu()).unwrap()
}

/// The server of a fixture.
fn serve(document: &str) -> Server {
    let files = format!("file://{}/files/", fixtures().display());
    Server::of(references(&fixtures().join(document), vec![allowed(files)]))
}

fn expected() -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(fixtures().join("expected.json")).unwrap()).unwrap()
}

fn hash(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[tokio::test]
async fn arrays_that_kerchunk_and_virtualizarr_refer_to_read_as_their_own_readers_read_them() {
    let mut right = 0;
    for array in expected() {
        let (document, path) = (array["document"].as_str().unwrap(), array["path"].as_str().unwrap());
        let server = serve(document);
        for url in [format!("/v1/data/m/{path}"), format!("/v1/data/m/{path}?format=bytes")] {
            let answer = server.get(&url).await;
            assert_eq!(answer.status, StatusCode::OK, "{document} {path}: {:?}", answer.body);
            assert_eq!(hash(&answer.body), array["sha256"].as_str().unwrap(), "{document} {path}");
        }
        right += 1;
    }
    assert!(right >= 50, "{right}");
}

#[tokio::test]
async fn stored_values_are_the_bytes_that_a_reader_of_the_document_by_hand_finds() {
    for document in [
        "hdf5.json",
        "inline.json",
        "nested.json",
        "combined.json",
        "classic.json",
        "whole.json",
        "version0.json",
    ] {
        let server = serve(document);
        let parsed: Value =
            serde_json::from_slice(&std::fs::read(fixtures().join(document)).unwrap()).unwrap();
        let refs = parsed.get("refs").unwrap_or(&parsed).as_object().unwrap();
        let listing = server.get("/store/m/?recursive&format=json").await.json();
        let listed: Vec<(&str, u64)> = listing["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| (entry["key"].as_str().unwrap(), entry["size"].as_u64().unwrap()))
            .collect();
        assert_eq!(listed.len(), refs.len(), "{document}");
        for (key, size) in listed {
            let value = match &refs[key] {
                Value::Array(items) => {
                    let file = std::fs::read(fixtures().join(items[0].as_str().unwrap())).unwrap();
                    if items.len() == 1 {
                        file
                    } else {
                        let number = |at: usize| usize::try_from(items[at].as_u64().unwrap()).unwrap();
                        file[number(1)..number(1) + number(2)].to_vec()
                    }
                }
                Value::Object(_) => continue,
                value => value.as_str().unwrap().as_bytes().to_vec(),
            };
            let is_encoded = value.starts_with(b"base64:");
            let answer = server.get(&format!("/store/m/{key}")).await;
            assert_eq!(answer.status, StatusCode::OK, "{document} {key}");
            assert_eq!(answer.body.len() as u64, size, "{document} {key}");
            assert!(is_encoded || answer.body == value, "{document} {key}");
            let etag = answer.header("etag").to_owned();
            assert!(etag.starts_with('"'), "{document} {key}: {etag}");
            let url = format!("/store/m/{key}");
            let same = server.ask(Method::GET, &url, &[("if-none-match", &*etag)]).await;
            assert_eq!(same.status, StatusCode::NOT_MODIFIED, "{document} {key}");
            if size > 4 {
                let part =
                    server.ask(Method::GET, &url, &[("range", "bytes=2-3"), ("if-range", &*etag)]).await;
                assert_eq!(
                    (part.status, &part.body),
                    (StatusCode::PARTIAL_CONTENT, &answer.body.slice(2..4))
                );
            }
        }
    }
}

#[tokio::test]
async fn a_directory_in_parquet_has_the_keys_of_the_document_that_it_was_made_from() {
    for (directory, document) in [
        ("hdf5.parq", "hdf5.json"),
        ("combined.parq", "combined.json"),
        ("whole.parq", "whole.json"),
        ("arrow.parq", "hdf5.json"),
    ] {
        let (parquet, json) = (serve(directory), serve(document));
        let list = async |server: &Server, url: &str| -> Vec<(String, u64)> {
            let listing = server.get(url).await.json();
            let keys = listing["keys"].as_array().unwrap().clone();
            let pair =
                |entry: &Value| (entry["key"].as_str().unwrap().to_owned(), entry["size"].as_u64().unwrap());
            keys.iter().map(pair).collect()
        };
        let (keys, expected) = (
            list(&parquet, "/store/m/?recursive&format=json").await,
            list(&json, "/store/m/?recursive&format=json").await,
        );
        let names = |keys: &[(String, u64)]| keys.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        assert_eq!(names(&keys), names(&expected), "{directory}");
        for (key, size) in &keys {
            let (ours, theirs) =
                (parquet.get(&format!("/store/m/{key}")).await, json.get(&format!("/store/m/{key}")).await);
            assert_eq!((ours.status, ours.body.len() as u64), (StatusCode::OK, *size), "{directory} {key}");
            // Documents are written again, with other spaces.
            if key.rsplit('/').next().unwrap().starts_with(".z") {
                assert_eq!(ours.json(), theirs.json(), "{directory} {key}");
            } else {
                assert_eq!(ours.body, theirs.body, "{directory} {key}");
            }
        }
        for prefix in ["", "t2m/", "holes/", "a/"] {
            let url = format!("/store/m/{prefix}?format=json");
            let (ours, theirs) = (parquet.get(&url).await.json(), json.get(&url).await.json());
            let names = |listing: &Value| {
                let keys = listing["keys"].as_array().unwrap().iter().map(|entry| entry["key"].clone());
                (keys.collect::<Vec<_>>(), listing["prefixes"].clone())
            };
            assert_eq!(names(&ours), names(&theirs), "{directory} {prefix}");
        }
        for key in ["t2m/9.9.9", "t2m/0", "t2m/00.0.0", "nothing/0", ".zmetadata", "t2m/refs.0.parq"] {
            parquet.get(&format!("/store/m/{key}")).await.refuses(404, "not-found", key);
        }
    }
}

#[tokio::test]
async fn a_file_in_parquet_that_is_refused_is_never_an_absent_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let copy = |name: &str| {
        let to = root.join("refs.parq").join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(fixtures().join("hdf5.parq").join(name), &to).unwrap();
        to
    };
    copy(".zmetadata");
    let file = copy("t2m/refs.0.parq");
    let whole = std::fs::read(&file).unwrap();
    let prefix = AllowedPrefix {
        at: Some(format!("file://{}/files/", fixtures().display())),
        ..allowed(format!("file://{}/files/", root.display()))
    };
    let server = Server::of(references(&root.join("refs.parq"), vec![prefix]));
    assert_eq!(server.get("/v1/data/m/t2m").await.status, StatusCode::OK);
    for length in [0, 3, 100, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        server.get("/v1/data/m/t2m").await.refuses(502, "references-refused", "cut");
        server.get("/store/m/t2m/0.0.0").await.refuses(502, "references-refused", "cut");
    }
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(server.get("/store/m/t2m/0.0.0").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_file_in_parquet_with_fewer_rows_than_chunks_is_refused_and_its_chunks_are_not_absent() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("refs.parq");
    std::fs::create_dir_all(root.join("t2m")).unwrap();
    std::fs::copy(fixtures().join("hdf5.parq/t2m/refs.0.parq"), root.join("t2m/refs.0.parq")).unwrap();
    let documents = std::fs::read(fixtures().join("hdf5.parq/.zmetadata")).unwrap();
    let documents: Value = serde_json::from_slice(&documents).unwrap();
    let prefix = || AllowedPrefix {
        at: Some(format!("file://{}/files/", fixtures().display())),
        ..allowed(format!("file://{}/files/", folder.path().canonicalize().unwrap().display()))
    };
    // The file has ten rows at most, of which the array of the fixture needs six.
    for (record_size, length, is_whole) in [(10, 3, true), (1000, 3, true), (10, 30, true), (1000, 30, false)]
    {
        let mut documents = documents.clone();
        documents["record_size"] = record_size.into();
        documents["metadata"]["t2m/.zarray"]["shape"][0] = length.into();
        std::fs::write(root.join(".zmetadata"), documents.to_string()).unwrap();
        let server = Server::of(references(&root, vec![prefix()]));
        let first = server.get("/store/m/t2m/0.0.0").await;
        let later = server.get("/store/m/t2m/9.0.1").await;
        if is_whole {
            assert_eq!(first.status, StatusCode::OK, "{record_size} {length}: {:?}", first.body);
            assert_eq!(later.status, StatusCode::NOT_FOUND, "{record_size} {length}: {:?}", later.body);
        } else {
            first.refuses(502, "references-refused", "too few rows");
            later.refuses(502, "references-refused", "too few rows");
        }
    }
}

#[tokio::test]
async fn a_listing_of_an_array_asks_for_the_files_that_exist_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let array = json!({ "zarr_format": 2, "shape": [1_u64 << 62], "chunks": [1], "dtype": "|u1", "compressor": null,
        "fill_value": 0, "order": "C", "filters": null });
    let documents =
        json!({ "metadata": { ".zgroup": { "zarr_format": 2 }, "a/.zarray": array }, "record_size": 1 });
    std::fs::create_dir_all(root.join("refs.parq/a")).unwrap();
    std::fs::write(root.join("refs.parq/.zmetadata"), documents.to_string()).unwrap();
    let server = Server::of(references(&root.join("refs.parq"), Vec::new()));
    let listed = server.get("/store/m/a/?format=json").await;
    assert_eq!(listed.status, StatusCode::OK);
    assert_eq!(listed.json()["keys"].as_array().unwrap().len(), 1, "{:?}", listed.body);
}

#[tokio::test]
async fn views_of_references_are_views_of_their_arrays() {
    let server = serve("combined.json");
    let whole = server.elements("m/t2m", "...").await;
    let rechunked = server.get("/rechunk/m/6,5,4/raw/t2m/c/0/0/0").await;
    assert_eq!(rechunked.status, StatusCode::OK, "{:?}", rechunked.body);
    assert_eq!(rechunked.body, whole);
    let node = server.get("/v1/nodes/m/").await;
    assert_eq!(node.status, StatusCode::OK);
    assert!(String::from_utf8_lossy(&node.body).contains("t2m"));
    let mounts = server.get("/v1/mounts").await.json();
    let mount = &mounts["mounts"][0];
    assert_eq!((&mount["kind"], &mount["state"]), (&"kerchunk".into(), &"ready".into()));
    let answer = server.ask(Method::PUT, "/store/m/a", &[]).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
}

fn document(folder: &Path, refs: &Value) -> PathBuf {
    let path = folder.join("refs.json");
    std::fs::write(&path, refs.to_string()).unwrap();
    path
}

fn metadata(shape: u64) -> Value {
    json!({"zarr_format": 2, "shape": [shape], "chunks": [4], "dtype": "|u1", "fill_value": 0, "order": "C",
           "compressor": null, "filters": null})
}

#[tokio::test]
async fn without_a_list_references_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), "0123").unwrap();
    let refs = json!({
        "a/.zarray": metadata(4), "a/0": ["x"], "inline": "text", "file": ["file:///etc/passwd"], "plain": ["/etc/passwd"],
        "metadata": ["http://169.254.169.254/latest/meta-data/"], "link": ["http://169.254.169.254/latest"],
        "loopback": ["http://127.0.0.1:1/x"], "bucket": ["s3://bucket/x", 0, 4], "up": ["../x"],
        "chained": ["simplecache::s3://bucket/x"], "spelled": ["FILE:///etc/passwd"], "host": ["file://host/etc/passwd"],
        "user": ["https://user:password@host/x"],
    });
    let server = Server::of(references(&document(folder.path(), &refs), Vec::new()));
    let mut reasons = Vec::new();
    for key in [
        "a/0", "file", "plain", "metadata", "link", "loopback", "bucket", "up", "chained", "spelled", "host",
        "user",
    ] {
        let url = format!("/store/m/{key}");
        let reason = server.get(&url).await.refuses(502, "reference-refused", key);
        assert!(
            !reason.contains("passwd") && !reason.contains("bucket/x") && !reason.contains("169"),
            "{reason}"
        );
        server.ask(Method::HEAD, &url, &[]).await.status.is_server_error().then_some(()).expect(key);
        reasons.push(reason);
    }
    assert!(reasons[1].contains("file of this machine") && reasons[4].contains("link-local"), "{reasons:?}");
    assert!(reasons[5].contains("loopback") && reasons[8].contains("`::`"), "{reasons:?}");
    server.get("/v1/data/m/a").await.refuses(502, "reference-refused", "never the fill value");
    server.get("/rechunk/m/2/raw/a/0").await.refuses(502, "reference-refused", "nor in a view");
    assert_eq!(server.get("/store/m/inline").await.body, "text");
}

#[tokio::test]
async fn a_prefix_allows_what_begins_with_it_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (name, text) in [("in/x", "inside"), ("in/deep/x", "deeper"), ("inner/x", "beside"), ("x", "above")] {
        std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        std::fs::write(root.join(name), text).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("x"), root.join("in/out")).unwrap();
    let at = |path: &str| format!("file://{}/{path}", root.display());
    let refs = json!({
        "in": [at("in/x")], "plain": [root.join("in/x")], "relative": ["in/x"], "deep": ["in/deep/x", 0, 3],
        "beside": [at("inner/x")], "above": ["x"], "up": [at("in/../x")], "out": ["in/out"], "gone": ["in/y"],
        "short": ["in/x", 3, 4], "directory": ["in/deep"],
    });
    let server = Server::of(references(&document(&root, &refs), vec![allowed(at("in/"))]));
    for (key, value) in [("in", "inside"), ("plain", "inside"), ("relative", "inside"), ("deep", "dee")] {
        assert_eq!(server.get(&format!("/store/m/{key}")).await.body, value, "{key}");
    }
    for key in ["beside", "above", "up"] {
        server.get(&format!("/store/m/{key}")).await.refuses(502, "reference-refused", key);
    }
    for key in ["out", "gone", "short", "directory"] {
        server.get(&format!("/store/m/{key}")).await.refuses(502, "reference-broken", key);
    }
    // What is there again is read again.
    std::fs::write(root.join("in/y"), "back").unwrap();
    assert_eq!(server.get("/store/m/gone").await.body, "back");
}

#[tokio::test]
async fn references_lead_to_web_servers_that_the_list_names() {
    let files = open(fixtures().join("files").to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap();
    let address = Server::of(files).listen().await;
    let folder = tempfile::tempdir().unwrap();
    let base = format!("http://{address}/store/m/");
    let refs = json!({
        "whole": [format!("{base}part-1.bin")], "part": [format!("{base}raw.bin"), 4, 8], "short": [format!("{base}raw.bin"), 480, 8],
        "gone": [format!("{base}absent")], "other": [format!("http://{address}/v1/mounts")],
    });
    let document = document(folder.path(), &refs);
    let server = Server::of(references(&document, vec![allowed(&base)]));
    let raw = std::fs::read(fixtures().join("files/raw.bin")).unwrap();
    assert_eq!(server.get("/store/m/part").await.body, raw[4..12]);
    let part = std::fs::read(fixtures().join("files/part-1.bin")).unwrap();
    assert_eq!(server.get("/store/m/whole").await.body, part);
    for key in ["short", "gone"] {
        server.get(&format!("/store/m/{key}")).await.refuses(502, "reference-broken", key);
    }
    server.get("/store/m/other").await.refuses(502, "reference-refused", "other");
    // Under another name, with a URL of its own.
    let refs = json!({"part": ["vcc://named/raw.bin", 4, 8]});
    let document = self::document(folder.path(), &refs);
    let named = AllowedPrefix { at: Some(base), ..allowed("vcc://named/") };
    let server = Server::of(references(&document, vec![named]));
    assert_eq!(server.get("/store/m/part").await.body, raw[4..12]);
}

#[tokio::test]
async fn what_a_web_server_may_read_as_upward_is_not_sent_whatever_the_scheme_of_its_reference() {
    let files = open(fixtures().join("files").to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap();
    let address = Server::of(files).listen().await;
    let mirror = format!("http://{address}/store/m/");
    let folder = tempfile::tempdir().unwrap();
    let names = ["..;/secret", "a/..;x/secret", ".;/raw.bin", "..\\secret", "a\tb"];
    for scheme in ["s3://old/", "vcc://old/", "gs://old/", &mirror] {
        let mut refs =
            json!({ "right": [format!("{scheme}raw.bin"), 4, 8], "dots": [format!("{scheme}a..;b")] });
        for (at, name) in names.iter().enumerate() {
            refs[format!("whole{at}")] = json!([format!("{scheme}{name}")]);
            refs[format!("part{at}")] = json!([format!("{scheme}{name}"), 0, 4]);
        }
        let document = document(folder.path(), &refs);
        let prefix = AllowedPrefix { at: Some(mirror.clone()), ..allowed(scheme) };
        let server = Server::of(references(&document, vec![prefix]));
        let raw = std::fs::read(fixtures().join("files/raw.bin")).unwrap();
        assert_eq!(server.get("/store/m/right").await.body, raw[4..12], "{scheme}");
        server.get("/store/m/dots").await.refuses(502, "reference-broken", "it is sent, and not there");
        for (at, name) in names.iter().enumerate() {
            for key in [format!("whole{at}"), format!("part{at}")] {
                let what = format!("{scheme}{name}");
                server.get(&format!("/store/m/{key}")).await.refuses(502, "reference-refused", &what);
                let head = server.ask(Method::HEAD, &format!("/store/m/{key}"), &[]).await;
                assert_eq!(head.status, StatusCode::BAD_GATEWAY, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_listing_has_what_is_beside_references_that_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("x"), "0123456").unwrap();
    let refs = json!({
        "in/a": ["x"], "in/part": ["s3://bucket/y", 2, 5], "in/whole": ["s3://bucket/y"], "in/z": "text",
    });
    let prefix = allowed(format!("file://{}/", root.display()));
    let server = Server::of(references(&document(&root, &refs), vec![prefix]));
    for url in ["/store/m/?recursive&format=json", "/store/m/in/?format=json"] {
        let listing = server.get(url).await;
        assert_eq!(listing.status, StatusCode::OK, "{url}: {:?}", listing.body);
        let listed: Vec<(String, u64)> = listing.json()["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| (entry["key"].as_str().unwrap().to_owned(), entry["size"].as_u64().unwrap()))
            .collect();
        let expected = [("in/a", 7), ("in/part", 5), ("in/z", 4)].map(|(key, size)| (key.to_owned(), size));
        assert_eq!(listed, expected, "{url}");
    }
    let objects = server.get("/s3/m?list-type=2&prefix=in/").await;
    let text = String::from_utf8(objects.body.to_vec()).unwrap();
    assert!(objects.status == StatusCode::OK && text.contains("<Key>in/z</Key>"), "{text}");
    server.get("/store/m/in/part").await.refuses(502, "reference-refused", "a read");
}

#[tokio::test]
async fn the_name_of_a_web_server_leads_to_this_network_only_where_the_mount_allows_that() {
    let files = open(fixtures().join("files").to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap();
    let port = Server::of(files).listen().await.port();
    // The name of this machine, as the resolver has it, but not one that says so by itself.
    let base = format!("http://{}:{port}/store/m/", this_machine());
    let folder = tempfile::tempdir().unwrap();
    let refs = json!({"whole": [format!("{base}raw.bin")], "part": [format!("{base}raw.bin"), 4, 8]});
    let document = document(folder.path(), &refs);
    let server = Server::of(references(&document, vec![allowed(&base)]));
    // More often than would open a circuit breaker: the backend did not fail.
    for key in ["whole", "part"].repeat(8) {
        let detail = server.get(&format!("/store/m/{key}")).await.refuses(502, "reference-refused", key);
        assert!(detail.contains("private_addresses") && !detail.contains("127."), "{detail}");
    }
    let prefix = AllowedPrefix { private_addresses: true, ..allowed(&base) };
    let server = Server::of(references(&document, vec![prefix]));
    let raw = std::fs::read(fixtures().join("files/raw.bin")).unwrap();
    assert_eq!(server.get("/store/m/whole").await.body, raw);
    assert_eq!(server.get("/store/m/part").await.body, raw[4..12]);
}

#[tokio::test]
async fn a_web_server_that_has_nothing_to_send_for_a_file_has_not_sent_an_empty_one() {
    let answers = axum::Router::new().fallback(|| async { StatusCode::NO_CONTENT });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, answers).await });
    let base = format!("http://{address}/");
    let folder = tempfile::tempdir().unwrap();
    let document = document(folder.path(), &json!({"whole": [format!("{base}x")]}));
    let server = Server::of(references(&document, vec![allowed(&base)]));
    server.get("/store/m/whole").await.refuses(502, "backend-failed", "204");
}

#[tokio::test]
async fn references_lead_into_buckets_that_the_list_names_with_options_of_their_own() {
    let s3 = TestS3::start().await;
    s3.insert("files/raw.bin", "0123456789");
    s3.insert("other/raw.bin", "abcdefghij");
    let (folder, bucket) = (tempfile::tempdir().unwrap(), TestS3::s3_url());
    let refs = json!({
        "whole": [format!("{bucket}files/raw.bin")], "part": [format!("{bucket}files/raw.bin"), 2, 3],
        "short": [format!("{bucket}files/raw.bin"), 8, 3], "gone": [format!("{bucket}files/absent")],
        "other": [format!("{bucket}other/raw.bin"), 0, 1],
    });
    let document = document(folder.path(), &refs);
    let files = AllowedPrefix { options: s3.options(), ..allowed(format!("{bucket}files/")) };
    let server = Server::of(references(&document, vec![files]));
    assert_eq!(server.get("/store/m/whole").await.body, "0123456789");
    assert_eq!(server.get("/store/m/part").await.body, "234");
    for key in ["short", "gone"] {
        server.get(&format!("/store/m/{key}")).await.refuses(502, "reference-broken", key);
    }
    server.get("/store/m/other").await.refuses(502, "reference-refused", "other");
    let tag = server.get("/store/m/part").await.header("etag").to_owned();
    s3.insert("files/raw.bin", "9876543210");
    let changed = server.get("/store/m/part").await;
    assert_eq!(changed.body, "765");
    assert_ne!(changed.header("etag"), tag);
}

#[tokio::test]
async fn a_document_that_is_refused_makes_its_mount_not_ready_and_no_value_absent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("refs.json");
    let server = Server::of(references(&path, Vec::new()));
    let answers = async |what: &str, code: &str| {
        let urls = ["/store/m/a/0", "/store/m/a/.zarray", "/v1/data/m/a", "/store/m/?format=json"];
        let mut details = Vec::new();
        for url in urls {
            details.push(server.get(url).await.refuses(502, code, &format!("{what}: {url}")));
        }
        // Readiness is kept for a while, so a new server is asked.
        let mounts = Server::of(references(&path, Vec::new())).get("/v1/mounts").await.json();
        assert_eq!(mounts["mounts"][0]["why"], code, "{what}: {mounts}");
        details.remove(0)
    };
    answers("not there", "backend-failed").await;
    for (text, says) in [
        ("no JSON", "line 1"),
        (r#"{"version": 3}"#, "version"),
        (r#"{"version": 1}"#, "neither `refs` nor `gen`"),
        (r#"{"version": 1, "templates": {"a": "x"}}"#, "neither `refs` nor `gen`"),
        (r#"{"version": 1, "refs": {"a/0": ["u", 1]}}"#, "`a/0`"),
        (r#"{"version": 1, "templates": {"a": "x"}, "refs": {"a/0": ["{{b|c}}"]}}"#, "template"),
        (r#"{"../up": "x"}"#, "key"),
    ] {
        std::fs::write(&path, text).unwrap();
        let detail = answers(text, "references-refused").await;
        assert!(detail.contains(says), "{text}: {detail}");
    }
    std::fs::write(&path, json!({"a/.zarray": metadata(2), "a/0": "\u{1}\u{2}\u{3}\u{4}"}).to_string())
        .unwrap();
    assert_eq!(server.elements("m/a", "...").await.as_ref(), [1, 2]);
}

#[tokio::test]
async fn references_over_the_memory_budget_are_refused_with_the_name_of_the_setting() {
    let url = format!("kerchunk+file://{}", fixtures().join("hdf5.json").display());
    let budgets = OpenBudgets { references: ContainerBudget::new(1000), ..OpenBudgets::default() };
    let server = Server::of(open_within(&url, &StoreOptions::default(), &cpu(), &budgets).unwrap());
    let detail = server.get("/store/m/.zgroup").await.refuses(502, "references-refused", "budget");
    assert!(detail.contains("`cache.references_size`"), "{detail}");
}

#[tokio::test]
async fn entity_tags_change_with_the_document_and_with_what_it_leads_to() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("x"), "0123").unwrap();
    let path = document(&root, &json!({"a/.zarray": metadata(4), "a/0": ["x"], "b": ["x", 0, 2]}));
    let store = references(&path, vec![allowed(format!("file://{}/", root.display()))]);
    let server = Server::of(Arc::clone(&store));
    let tags = async || {
        let chunk = server.get("/store/m/a/0").await.header("etag").to_owned();
        (chunk, server.get("/v1/data/m/a").await.header("etag").to_owned())
    };
    let first = tags().await;
    std::fs::write(root.join("x"), "4567").unwrap();
    let second = tags().await;
    assert!(first.0 != second.0 && first.1 != second.1, "{first:?} {second:?}");
    assert_eq!(server.elements("m/a", "...").await, "4567");
    document(&root, &json!({"a/.zarray": metadata(4), "a/0": "89ab"}));
    let third = tags().await;
    assert!(second.0 != third.0 && second.1 != third.1, "{second:?} {third:?}");
    assert_eq!(server.elements("m/a", "...").await, "89ab");
}

#[test]
fn the_configuration_of_references_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("kerchunk+file://{}", fixtures().join("hdf5.json").display());
    let checked = |url: &str, rest: &str| {
        let file = folder.path().join("zarrd.toml");
        std::fs::write(&file, format!("[mounts.m]\nurl = {url:?}\n{rest}")).unwrap();
        let output = run(&["check", "--config", file.to_str().unwrap()]);
        (output.status.code(), text(&output.stderr))
    };
    let files = format!("file://{}/files/", fixtures().display());
    for rest in [
        String::new(),
        format!("[mounts.m.virtual.{files:?}]\noptions = {{ symlinks = \"deny\" }}\n"),
        format!("[mounts.m.virtual.\"vcc://files/\"]\nat = {files:?}\n"),
        "[mounts.m.virtual.\"s3://bucket/\"]\noptions = { region = \"us-east-1\", credentials = \"anonymous\" }\n"
            .to_owned(),
    ] {
        assert_eq!(checked(&url, &rest), (Some(0), String::new()), "{rest}");
    }
    for (url, rest, says) in [
        (&*url, "writable = true\n", "only read: remove `writable`"),
        (&*url, "[mounts.m.virtual.\"/srv/x/\"]\n", "write it as a URL, `file:///srv/x/`"),
        ("kerchunk+/srv/x.json", "", "kerchunk+file:///"),
        (&*url, "redirect = true\n", "sign URLs"),
        (&*url, "[mounts.m.virtual.\"s3://bucket\"]\noptions = { regoin = \"x\" }\n", "regoin"),
        (&*url, "[mounts.m.virtual.\"s3://bucket/a\"]\n", "end with `/`"),
        (&*url, "[mounts.m.virtual.\"s3://bucket/../\"]\n", "`..`"),
        (&*url, "[mounts.m.virtual.\"S3://bucket/\"]\n", "spelling"),
        (&*url, "[mounts.m.virtual.\"file:///\"]\n", "all of this machine"),
        (&*url, "[mounts.m.virtual.\"vcc://name/\"]\n", "`at`"),
        (&*url, "[mounts.m.virtual.\"vcc://name/\"]\nat = \"vcc://other/\"\n", "scheme"),
        (&*url, "[mounts.m.virtual.\"file:///no/such/folder/\"]\n", "/no/such/folder"),
        (&*url, "[mounts.m.virtual.\"file:///tmp/\"]\noptions = { region = \"x\" }\n", "is for S3"),
        ("kerchunk+vcc://bucket/x", "", "scheme"),
        ("vcc://bucket/x", "", "with or without `icechunk+` or `kerchunk+`"),
        ("kerchunk+s3://key@bucket/x", "", "credentials"),
        ("memory://", "[mounts.m.virtual.\"s3://bucket/\"]\n", "kerchunk+"),
    ] {
        let (code, error) = checked(url, rest);
        assert!(code != Some(0) && error.contains(says), "{url} {rest}: {code:?} {error}");
    }
}
