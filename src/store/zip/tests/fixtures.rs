//! Zip files that zarr-python and Python's zipfile wrote read as zipfile reads them.

use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::{ZipError, ZipStore};
use super::refusal;
use crate::store::ContainerBudget;
use crate::store::tests::{cpu, key, keys, read};
use crate::store::{LocalOptions, LocalStore, Store, StoreError};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/zip")
}

fn open(name: &str) -> ZipStore {
    let local = LocalStore::open(&folder(), &LocalOptions::default()).unwrap();
    ZipStore::new(std::sync::Arc::new(local), key(name), cpu(), ContainerBudget::default())
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

#[tokio::test]
async fn zip_files_of_python_are_read_as_by_python() {
    let expected: Value =
        serde_json::from_slice(&std::fs::read(folder().join("expected.json")).unwrap()).unwrap();
    for (name, entries) in expected.as_object().unwrap() {
        let store = open(name);
        let mut all: Vec<_> = entries.as_object().unwrap().keys().cloned().collect();
        all.sort_unstable();
        assert!(!all.is_empty());
        assert_eq!(keys(&store, "").await, all, "{name}");
        for (text, what) in entries.as_object().unwrap() {
            if name == "methods.zip" && text != "stored" {
                continue;
            }
            let info = store.head(&key(text)).await.unwrap().unwrap();
            assert_eq!(info.size, what["size"].as_u64().unwrap(), "{name} {text}");
            let digest = hex(&Sha256::digest(read(&store, text).await.unwrap()));
            assert_eq!(digest, what["sha256"].as_str().unwrap(), "{name} {text}");
        }
    }
    assert_eq!(expected.as_object().unwrap().len(), 6);
}

#[tokio::test]
async fn names_that_are_not_keys_are_skipped_and_the_last_of_one_name_counts() {
    let store = open("names.zip");
    assert_eq!(read(&store, "twice").await.unwrap(), "the second", "the last of one name counts");
    for text in ["back\\slash", "C:\\x", "up", "b", "absolute", "here", "folder"] {
        assert_eq!(read(&store, text).await, None, "{text}");
    }
}

#[tokio::test]
async fn another_compression_is_rejected_by_its_number() {
    let store = open("methods.zip");
    assert_eq!(refusal(&store, "bzip2").await, ZipError::Method(12));
    assert_eq!(refusal(&store, "lzma").await, ZipError::Method(14));
    let error = store.head(&key("lzma")).await.unwrap_err();
    assert!(matches!(error, StoreError::Zip(ZipError::Method(14))), "{error:?}");
}
