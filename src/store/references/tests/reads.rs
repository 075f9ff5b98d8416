//! What reads, listings and versions say, with files in memory.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::stream::{StreamExt, once};
use serde_json::json;

use crate::error::{Classify, ErrorClass};
use crate::key::{StoreKey, StorePrefix};
use crate::store::references::AllowList;
use crate::store::tests::cpu;
use crate::store::{
    AllowedPrefix, ByteRange, ContainerBudget, DirEntry, ObjectBackend, ReferenceStore, SharedStore, Store,
    StoreError, StoreOptions, WriteCondition,
};

fn key(text: &str) -> StoreKey {
    StoreKey::parse(text).unwrap()
}

async fn put(store: &SharedStore, name: &str, bytes: impl Into<Bytes>) {
    let bytes = bytes.into();
    let body = once(async { Ok(bytes) }).boxed();
    store.set(&key(name), body, WriteCondition::Always).await.unwrap();
}

/// A store over the document `refs.json` of `files`, whose references lead to the same files by `vcc://f/`.
async fn store(files: &SharedStore, document: serde_json::Value) -> ReferenceStore {
    put(files, "refs.json", document.to_string()).await;
    let prefix = AllowedPrefix {
        url: "vcc://f/in/".to_owned(),
        at: None,
        private_addresses: false,
        options: StoreOptions::default(),
    };
    let below = AllowedPrefix { url: "vcc://f/in/other/".to_owned(), ..prefix.clone() };
    let other: SharedStore = Arc::new(ObjectBackend::memory(true));
    put(&other, "x", "the longer prefix").await;
    let allowed = AllowList::open("vcc://f/in/".to_owned(), &[prefix, below], |prefix| {
        Ok(Arc::clone(if prefix.url.ends_with("other/") { &other } else { files }))
    });
    ReferenceStore::new(
        Arc::clone(files),
        key("refs.json"),
        allowed.unwrap(),
        cpu(),
        ContainerBudget::default(),
    )
}

fn memory() -> SharedStore {
    Arc::new(ObjectBackend::memory(true))
}

async fn read(store: &ReferenceStore, name: &str, range: ByteRange) -> Result<Option<Bytes>, StoreError> {
    match store.get(&key(name), range, None).await? {
        Some(value) => value.bytes(1 << 20).await.map(Some),
        None => Ok(None),
    }
}

async fn class_of(store: &ReferenceStore, name: &str) -> ErrorClass {
    read(store, name, ByteRange::Whole).await.unwrap_err().class()
}

#[tokio::test]
async fn a_key_reads_as_the_range_that_it_leads_to() {
    let files = memory();
    put(&files, "x", "0123456789").await;
    let document = json!({
        "in": "inline", "whole": ["vcc://f/in/x"], "part": ["x", 2, 5], "empty": ["x", 3, 0], "end": ["x", 9, 1],
        "longer": ["vcc://f/in/other/x"], "none": "",
    });
    let store = store(&files, document).await;
    for (name, all) in [
        ("in", "inline"),
        ("whole", "0123456789"),
        ("part", "23456"),
        ("empty", ""),
        ("end", "9"),
        ("longer", "the longer prefix"),
        ("none", ""),
    ] {
        let info = store.head(&key(name)).await.unwrap().unwrap();
        assert_eq!(info.size, all.len() as u64, "{name}");
        for range in [
            ByteRange::Whole,
            ByteRange::Bounded(1, 3),
            ByteRange::Bounded(0, 99),
            ByteRange::From(2),
            ByteRange::Suffix(2),
            ByteRange::Suffix(99),
            ByteRange::Bounded(5, 6),
        ] {
            let expected = range.resolve(info.size);
            match store.get(&key(name), range, Some(&info.version)).await {
                Err(StoreError::RangeNotSatisfiable { size }) => {
                    assert_eq!((expected, size), (None, info.size), "{name} {range:?}");
                }
                value => {
                    let value = value.unwrap().unwrap();
                    let expected = expected.unwrap();
                    assert_eq!((&value.info, &value.range), (&info, &expected), "{name} {range:?}");
                    let bytes = value.bytes(1 << 20).await.unwrap();
                    assert_eq!(
                        bytes,
                        all[expected.start as usize..expected.end as usize],
                        "{name} {range:?}"
                    );
                }
            }
        }
    }
    assert_eq!(read(&store, "absent", ByteRange::Whole).await.unwrap(), None);
    assert!(store.head(&key("absent")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_broken_or_refused_reference_is_an_error_and_never_absent() {
    let files = memory();
    put(&files, "x", "0123456789").await;
    let document = json!({
        "missing": ["y"], "missing-part": ["y", 0, 1], "missing-empty": ["y", 0, 0], "short": ["x", 8, 3], "behind": ["x", 10, 1],
        "far": ["x", 4_611_686_018_427_387_904_u64, 1], "empty-behind": ["x", 11, 0],
        "out": ["s3://bucket/x"], "up": ["../x"], "file": ["/etc/passwd"], "beside": ["vcc://f/inner/x"],
        "metadata": ["http://169.254.169.254/latest"], "good": ["x"],
    });
    let store = store(&files, document).await;
    for name in ["missing", "missing-part", "missing-empty", "short", "behind", "far", "empty-behind"] {
        assert_eq!(class_of(&store, name).await, ErrorClass::ReferenceBroken, "{name}");
        let head = store.head(&key(name)).await.unwrap_err();
        assert_eq!(head.class(), ErrorClass::ReferenceBroken, "{name}");
    }
    for name in ["out", "up", "file", "beside", "metadata"] {
        assert_eq!(class_of(&store, name).await, ErrorClass::ReferenceRefused, "{name}");
        let head = store.head(&key(name)).await.unwrap_err();
        assert_eq!(head.class(), ErrorClass::ReferenceRefused, "{name}");
        assert!(!head.to_string().contains("://b"), "no text names a place: {head}");
    }
    assert_eq!(read(&store, "good", ByteRange::Whole).await.unwrap().unwrap(), "0123456789");
}

#[tokio::test]
async fn a_version_changes_with_the_document_and_with_the_file() {
    let files = memory();
    put(&files, "x", "one").await;
    let first = json!({"a": ["x"], "b": "inline"});
    let store = store(&files, first.clone()).await;
    let version = async |name: &str| store.head(&key(name)).await.unwrap().unwrap().version;
    let (a, b) = (version("a").await, version("b").await);
    assert!(a.is_strong() && b.is_strong() && a != b);
    assert_eq!((version("a").await, version("b").await), (a.clone(), b.clone()));
    put(&files, "x", "two").await;
    let changed = version("a").await;
    assert!(changed != a && version("b").await == b);
    let pinned = store.get(&key("a"), ByteRange::Whole, Some(&a)).await;
    assert!(matches!(pinned, Err(StoreError::VersionChanged)), "{pinned:?}");
    put(&files, "refs.json", json!({"a": ["x", 0, 1], "b": "inline"}).to_string()).await;
    assert_eq!(read(&store, "a", ByteRange::Whole).await.unwrap().unwrap(), "t");
    assert!(version("a").await != changed && version("b").await != b);
    let pinned = store.get(&key("b"), ByteRange::Whole, Some(&b)).await;
    assert!(matches!(pinned, Err(StoreError::VersionChanged)), "{pinned:?}");
    put(&files, "refs.json", "no document").await;
    assert_eq!(class_of(&store, "a").await, ErrorClass::ReferencesRefused);
    assert_eq!(store.check().await.unwrap_err().class(), ErrorClass::ReferencesRefused);
    put(&files, "refs.json", first.to_string()).await;
    assert_eq!(read(&store, "a", ByteRange::Whole).await.unwrap().unwrap(), "two");
    store.check().await.unwrap();
    files.erase(&key("refs.json"), WriteCondition::Always).await.unwrap();
    assert_eq!(class_of(&store, "a").await, ErrorClass::BackendFailed);
}

#[tokio::test]
async fn listings_have_every_key_in_order_with_its_size() {
    let files = memory();
    put(&files, "x", "0123456789").await;
    let names = ["a", "a.b", "a/0/0", "a/0/1", "a/1", "a0", "b/c/d/e", "b/c/f", "z"];
    let document: serde_json::Map<String, serde_json::Value> = names
        .iter()
        .enumerate()
        .map(|(at, name)| ((*name).to_owned(), if at % 2 == 0 { json!(["x"]) } else { json!(["x", 1, at]) }))
        .collect();
    let store = store(&files, document.into()).await;
    let size = |name: &str| {
        let at = names.iter().position(|known| *known == name).unwrap();
        if at % 2 == 0 { 10 } else { at as u64 }
    };
    for prefix in ["", "a/", "a/0/", "b/", "c/", "b/c/d/"] {
        let prefix =
            if prefix.is_empty() { StorePrefix::root() } else { StorePrefix::parse(prefix).unwrap() };
        for after in ["", "a", "a.", "a/", "a/0/", "a/0/0", "b/c/", "zz"] {
            // The naive model: every key, cut at the next slash.
            let mut model: Vec<String> = Vec::new();
            for rest in names.iter().filter_map(|name| name.strip_prefix(prefix.as_str())) {
                let end = rest.find('/').map_or(rest.len(), |slash| slash + 1);
                let text = format!("{prefix}{}", &rest[..end]);
                if text.as_str() > after && model.last() != Some(&text) {
                    model.push(text);
                }
            }
            let found: Vec<DirEntry> = store.list_dir_after(&prefix, after).try_collect().await.unwrap();
            let texts: Vec<&str> = found.iter().map(DirEntry::text).collect();
            assert_eq!(texts, model, "{prefix:?} after {after:?}");
            for entry in found {
                if let DirEntry::Key(entry) = entry {
                    assert_eq!(entry.info.size, size(entry.key.as_str()), "{entry:?}");
                }
            }
            let after_key = StoreKey::parse(after).ok();
            let all: Vec<_> = store.list_prefix(&prefix, after_key.as_ref()).try_collect().await.unwrap();
            let all: Vec<&str> = all.iter().map(|entry| entry.key.as_str()).collect();
            let is_listed = |name: &&str| {
                name.starts_with(prefix.as_str())
                    && after_key.as_ref().is_none_or(|after| *name > after.as_str())
            };
            let model: Vec<&str> = names.into_iter().filter(is_listed).collect();
            assert_eq!(all, model, "{prefix:?} after {after:?}");
        }
    }
}
