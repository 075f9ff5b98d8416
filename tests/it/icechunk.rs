//! Icechunk repositories as mounts: what the real library wrote reads as it reads it itself, on all branches, tags and
//! snapshots, and what is damaged, or leads where it may not, is refused by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use axum::http::{Method, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha256};
use zarrd::store::{AllowedPrefix, SharedStore, StoreOptions, open};

use crate::support::server::{Server, cpu};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/icechunk")
}

/// The files that the virtual chunks of the fixtures are in.
fn elsewhere(url: &str) -> AllowedPrefix {
    let at = Some(format!("file://{}/files/", fixtures().display()));
    AllowedPrefix { url: url.to_owned(), at, options: StoreOptions::default() }
}

fn repository(path: &Path, version: Option<&str>) -> SharedStore {
    let references = vec![elsewhere("s3://elsewhere/files/"), elsewhere("vcc://elsewhere/")];
    let version = version.map(|version| version.parse().unwrap());
    let options = StoreOptions { references, version, ..StoreOptions::default() };
    open(&format!("icechunk+file://{}", path.display()), &options, &cpu()).unwrap()
}

fn serve(name: &str) -> Server {
    Server::of(repository(&fixtures().join(name), None))
}

fn hash(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// A copy of a fixture that a test may change.
fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &to);
            } else {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("repository");
    copy(&fixtures().join(name), &root);
    (folder, root)
}

fn names(listing: &Value) -> (Vec<String>, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let keys = listing["keys"].as_array().unwrap().iter().map(|entry| text(&entry["key"])).collect();
    (keys, listing["prefixes"].as_array().map_or_else(Vec::new, |all| all.iter().map(text).collect()))
}

#[tokio::test]
async fn arrays_of_every_version_read_as_icechunk_reads_them() {
    let mut right = 0;
    for format in [1, 2] {
        let expected = fixtures().join(format!("expected-{format}.json"));
        let expected: Vec<Value> = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
        let mut servers = BTreeMap::new();
        for array in expected {
            let text = |name: &str| array[name].as_str().unwrap().to_owned();
            let (name, version, path) = (text("repository"), text("version"), text("path"));
            let server = servers.entry(name.clone()).or_insert_with(|| serve(&name));
            let path = path.replace(' ', "%20").replace('é', "%C3%A9");
            let pinned = format!("/v1/data/m/@{version}/{path}?format=bytes&endian=stored");
            let mut urls = vec![pinned.replace('@', "%40"), pinned];
            if version == "branch.main" && !path.starts_with('@') {
                urls.push(format!("/v1/data/m/{path}?format=bytes&endian=stored"));
            }
            for url in urls {
                let answer = server.get(&url).await;
                assert_eq!(answer.status, StatusCode::OK, "{name} {url}: {:?}", answer.body);
                assert_eq!(hash(&answer.body), text("sha256"), "{name} {url}");
            }
            right += 1;
        }
    }
    assert!(right >= 100, "{right}");
}
