//! Files that come, change and go while they are read.

use std::sync::Arc;

use futures::future::join_all;

use super::super::{ZipError, ZipStore};
use super::{Below, FILE, Zip, deflated, stored};
use crate::error::{Classify, ErrorClass};
use crate::store::ContainerBudget;
use crate::store::tests::{cpu, key, keys, put, read};
use crate::store::{ByteRange, ObjectBackend, SharedStore, Shortcuts, Store, StoreError, WriteCondition};

/// A file with one large entry, which takes two reads, and one small.
fn file(byte: u8) -> Vec<u8> {
    Zip::of([stored("large", vec![byte; 100_000]), stored("small", [byte]), deflated("deflated", &[byte; 9])])
        .bytes()
}

#[tokio::test]
async fn concurrent_requests_read_the_directory_once() {
    let below = Below::new(false);
    below.holds(file(1)).await;
    let store = below.zip();
    let (small, large) = (key("small"), key("large"));
    let heads = (0..32).map(|n| store.head(if n % 2 == 0 { &small } else { &large }));
    for info in join_all(heads).await {
        assert!(info.unwrap().is_some());
    }
    assert_eq!(below.gets().len(), 1);
    assert_eq!(keys(&store, "").await.len(), 3);
    assert!(below.gets().is_empty(), "it is cached");
}

#[tokio::test]
async fn validating_an_entry_validates_the_file() {
    let inner: SharedStore = Arc::new(ObjectBackend::memory(true));
    let store = ZipStore::new(Arc::clone(&inner), key(FILE), cpu(), ContainerBudget::default());
    assert!(!store.validate_cached(&key("none"), None), "nothing is known of the file");
    let mut before = None;
    for byte in 1..=3 {
        put(&*inner, FILE, file(byte)).await;
        assert!(!store.validate_cached(&key("small"), before.as_ref()), "{byte}");
        before = store.head(&key("small")).await.unwrap().map(|info| info.version);
        assert!(store.validate_cached(&key("small"), before.as_ref()), "{byte}");
        assert!(
            !store.validate_cached(&key("large"), before.as_ref())
                && !store.validate_cached(&key("small"), None)
        );
        assert!(store.validate_cached(&key("none"), None));
    }
}

#[tokio::test]
async fn a_missing_file_is_a_failure_until_it_appears() {
    let below = Below::new(false);
    let store = below.zip();
    for outcome in [
        store.check().await,
        store.head(&key("small")).await.map(drop),
        store.get(&key("small"), ByteRange::Whole, None).await.map(drop),
        store.list_dir(&crate::key::StorePrefix::root()).await.map(drop),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, StoreError::Zip(ZipError::NoFile)), "never an absent key: {error:?}");
        assert_eq!(error.class(), ErrorClass::BackendFailed);
    }
    below.holds(file(1)).await;
    store.check().await.unwrap();
    assert_eq!(read(&store, "small").await.unwrap(), [1].as_slice());
    below.inner.erase(&key(FILE), WriteCondition::Always).await.unwrap();
    let error = store.get(&key("small"), ByteRange::Whole, None).await.unwrap_err();
    assert!(matches!(error, StoreError::Zip(ZipError::NoFile)), "{error:?}");
}

#[tokio::test]
async fn a_new_file_has_new_versions_and_its_own_values() {
    for weak in [false, true] {
        let below = Below::new(weak);
        below.holds(file(1)).await;
        let store = below.zip();
        for text in ["large", "small", "deflated"] {
            let first = store.head(&key(text)).await.unwrap().unwrap().version;
            assert_eq!(first.is_strong(), !weak, "no version is better than the file's");
            below.holds(file(2)).await;
            let error = store.get(&key(text), ByteRange::Whole, Some(&first)).await.unwrap_err();
            assert!(matches!(error, StoreError::VersionChanged), "{text}: {error:?}");
            assert!(read(&store, text).await.unwrap().iter().all(|byte| *byte == 2), "{text}");
            let second = store.head(&key(text)).await.unwrap().unwrap().version;
            assert_ne!(first, second);
        }
        below.holds(Zip::of([stored("other", "x")]).bytes()).await;
        assert_eq!(read(&store, "small").await, None, "a key that went with the old file is gone");
        assert_eq!(read(&store, "other").await.unwrap(), "x");
    }
}

#[tokio::test]
async fn a_file_that_changes_between_two_reads_of_a_value_is_never_mixed() {
    // Before the tail, before the header, before the bytes: a first read makes three.
    for reads in 0..3 {
        for pinned in [false, true] {
            let below = Below::new(false);
            below.holds(file(1)).await;
            let store = below.zip();
            let version = store.head(&key("large")).await.unwrap().unwrap().version;
            let store = below.zip();
            below.becomes(reads, file(2));
            let value = store.get(&key("large"), ByteRange::Whole, pinned.then_some(&version)).await;
            if pinned {
                assert!(matches!(value, Err(StoreError::VersionChanged)), "{reads}: {value:?}");
            } else {
                let bytes = value.unwrap().unwrap().bytes(1 << 20).await.unwrap();
                assert_eq!(bytes, vec![2; 100_000], "{reads}");
            }
        }
    }
}

#[tokio::test]
async fn a_new_file_replaces_a_broken_one() {
    let below = Below::new(false);
    below.holds("not yet written").await;
    let store = below.zip();
    let error = store.check().await.unwrap_err();
    assert!(matches!(error, StoreError::Zip(ZipError::Broken(_))), "{error:?}");
    below.holds(file(1)).await;
    assert_eq!(read(&store, "deflated").await.unwrap(), [1; 9].as_slice());
}
