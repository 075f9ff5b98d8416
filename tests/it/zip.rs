//! Zip files as mounts: their entries are served like files of a directory, and broken archives are refused.

use std::path::{Path, PathBuf};

use axum::http::{Method, StatusCode};
use zarrd::store::{ContainerBudget, OpenBudgets, StoreOptions, open, open_within};

use crate::support::process::{run, text};
use crate::support::server::{Server, cpu};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/zip").join(name)
}

fn serve(path: &Path) -> Server {
    Server::of(open(path.to_str().unwrap(), &StoreOptions::default(), &cpu()).unwrap())
}

/// An element of the fixtures' array: its number, or the fill value in the chunk that is not there.
fn element(row: i16, column: i16) -> [u8; 2] {
    let value = if row >= 10 && column >= 20 { -1 } else { row * 30 + column };
    value.to_le_bytes()
}

#[tokio::test]
async fn slices_of_an_array_in_a_zip_file_return_its_elements() {
    for name in ["v3-stored.zip", "v2-deflated.zip"] {
        let server = serve(&fixture(name));
        let all: Vec<u8> =
            (0..20).flat_map(|row| (0..30).flat_map(move |column| element(row, column))).collect();
        assert_eq!(server.elements("m/deep/a", "...").await, all, "{name}");
        let some: Vec<u8> =
            (8..12).flat_map(|row| (18..22).flat_map(move |column| element(row, column))).collect();
        assert_eq!(server.elements("m/deep/a", "8:12,18:22").await, some, "{name}");
        let node = server.get("/v1/nodes/m/deep").await;
        assert_eq!(node.status, StatusCode::OK, "{name}: {:?}", node.body);
        assert!(String::from_utf8_lossy(&node.body).contains("deep/a"), "{name}: its children are found");
    }
}

#[tokio::test]
async fn keys_of_a_zip_file_are_listed_and_read() {
    let server = serve(&fixture("v3-stored.zip"));
    let listing = server.get("/store/m/?recursive&format=json").await.json();
    let keys: Vec<_> =
        listing["keys"].as_array().unwrap().iter().map(|entry| entry["key"].as_str().unwrap()).collect();
    let chunks = ["deep/a/c/0/0", "deep/a/c/0/1", "deep/a/c/0/2", "deep/a/c/1/0", "deep/a/c/1/1"];
    let documents = ["deep/a/zarr.json", "deep/zarr.json", "zarr.json"];
    assert_eq!(keys, [chunks.as_slice(), &documents].concat());
    let deep = server.get("/store/m/deep/?format=json").await.json();
    assert!(deep["prefixes"].to_string().contains("a/"), "{deep}");

    let whole = server.get("/store/m/deep/a/c/0/1").await;
    assert_eq!((whole.status, whole.body.len()), (StatusCode::OK, 200));
    let etag = whole.header("etag").to_owned();
    assert!(etag.starts_with('"'), "strong: {etag}");
    let head = server.ask(Method::HEAD, "/store/m/deep/a/c/0/1", &[]).await;
    assert_eq!((head.header("content-length"), head.header("etag")), ("200", &*etag));
    let part = server.ask(Method::GET, "/store/m/deep/a/c/0/1", &[("range", "bytes=10-19")]).await;
    assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
    assert_eq!((part.header("content-range"), &part.body), ("bytes 10-19/200", &whole.body.slice(10..20)));
    let same = server.ask(Method::GET, "/store/m/deep/a/c/0/1", &[("if-none-match", &*etag)]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);

    for absent in ["deep/a/c/1/2", "a", "deep/a/c/0/1/x"] {
        server.get(&format!("/store/m/{absent}")).await.refuses(404, "not-found", absent);
    }
    let mounts = server.get("/v1/mounts").await.json();
    assert_eq!(
        (&mounts["mounts"][0]["kind"], &mounts["mounts"][0]["state"]),
        (&"zip".into(), &"ready".into())
    );
}

#[tokio::test]
async fn a_zip_directory_over_the_memory_budget_is_refused_by_its_own_code() {
    let path = fixture("v3-stored.zip");
    let options = StoreOptions::default();
    let budgets = OpenBudgets { zip: ContainerBudget::new(100), ..OpenBudgets::default() };
    let store = open_within(path.to_str().unwrap(), &options, &cpu(), &budgets).unwrap();
    let server = Server::of(store);
    for url in ["/store/m/deep/a/c/0/0", "/v1/data/m/deep/a", "/store/m/?format=json"] {
        let detail = server.get(url).await.refuses(501, "over-budget", url);
        assert!(detail.contains("`cache.zip_directory_size`"), "{detail}");
    }
    let mounts = server.get("/v1/mounts").await.json();
    assert_eq!(mounts["mounts"][0]["why"], "over-budget");
}

#[tokio::test]
async fn zip_entries_with_escaping_names_cannot_be_reached() {
    let server = serve(&fixture("names.zip"));
    let listing = server.get("/store/m/?recursive&format=json").await.json().to_string();
    for name in ["up", "absolute", "slash", "here", "C:", "a//b"] {
        assert!(!listing.contains(name), "{name} in {listing}");
    }
    for path in ["back%5Cslash", "C:%5Cx", "up", "absolute", "b", "here"] {
        assert_eq!(server.get(&format!("/store/m/{path}")).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    for path in ["%2e%2e/up", "a/%2e%2e/b"] {
        assert_eq!(server.get(&format!("/store/m/{path}")).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
    assert_eq!(server.get("/store/m/twice").await.body, "the second");
    assert_eq!(server.get("/store/m/%E6%97%A5%E6%9C%AC/%C3%A9").await.body, "names are kept");
}

#[tokio::test]
async fn a_broken_or_missing_zip_file_is_never_an_empty_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    let server = serve(&path);
    let answers = async |what: &str, status: u16, code: &str| {
        for url in [
            "/store/m/deep/a/c/0/0",
            "/store/m/deep/a/zarr.json",
            "/v1/data/m/deep/a",
            "/store/m/?format=json",
        ] {
            server.get(url).await.refuses(status, code, &format!("{what}: {url}"));
        }
    };
    answers("not there", 502, "backend-failed").await;
    let whole = std::fs::read(fixture("v3-stored.zip")).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    answers("cut short", 500, "corrupt-data").await;
    let mut holed = whole.clone();
    holed[whole.len() - 200..whole.len() - 100].fill(0);
    std::fs::write(&path, holed).unwrap();
    answers("a hole in its directory", 500, "corrupt-data").await;
    // The file that was waited for.
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(server.elements("m/deep/a", "0,:3").await.as_ref(), [0, 0, 1, 0, 2, 0]);

    let other = serve(&fixture("methods.zip"));
    let says = other.get("/store/m/lzma").await.refuses(501, "unsupported", "lzma");
    assert!(says.contains("14"), "{says}");
}

#[test]
fn the_configuration_of_a_zip_file_is_checked() {
    let zip = fixture("v3-stored.zip");
    let folder = tempfile::tempdir().unwrap();
    let checked = |url: &Path, writable: bool| {
        let file = folder.path().join("zarrd.toml");
        std::fs::write(&file, format!("[mounts.m]\nurl = {url:?}\nwritable = {writable}\n")).unwrap();
        let output = run(&["check", "--config", file.to_str().unwrap()]);
        (output.status.code(), text(&output.stderr))
    };
    assert_eq!(checked(&zip, false).0, Some(0));
    assert_eq!(checked(&folder.path().join("later.zip"), false).0, Some(0), "the file may come later");
    let (code, says) = checked(&zip, true);
    assert!(code != Some(0) && says.contains("only read"), "{says}");
    let (code, says) = checked(Path::new("/no/such/folder/a.zip"), false);
    assert!(code != Some(0) && says.contains("/no/such/folder"), "{says}");
}
