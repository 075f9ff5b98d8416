//! One suite for every store: the promises of the interface, checked for each implementation.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};

use super::*;
use crate::cpu::{ComputePool, ComputePoolOptions};
use crate::key::{StoreKey, StorePrefix};

/// One pool for all tests of the module.
pub(super) fn cpu() -> ComputePool {
    static CPU: LazyLock<ComputePool> =
        LazyLock::new(|| ComputePool::new(ComputePoolOptions { threads: 2 }).unwrap());
    CPU.clone()
}

/// A key from its text.
pub(super) fn key(text: &str) -> StoreKey {
    StoreKey::parse(text).unwrap()
}

/// A prefix from its text.
pub(super) fn prefix(text: &str) -> StorePrefix {
    StorePrefix::parse(text).unwrap()
}

/// A body of one piece.
pub(super) fn body(bytes: impl Into<Bytes>) -> ValueStream {
    ValueBody::Bytes(bytes.into()).into_stream()
}

/// A body that breaks off after its first pieces.
pub(super) fn broken_body(pieces: usize) -> ValueStream {
    let pieces = std::iter::repeat_n(Ok(Bytes::from(vec![7; 1 << 20])), pieces);
    futures::stream::iter(pieces.chain([Err(StoreError::BodyAborted("the sender left"))])).boxed()
}

/// Stores a value without a condition.
pub(super) async fn put(store: &dyn Store, text: &str, bytes: impl Into<Bytes>) -> SetResult {
    store.set(&key(text), body(bytes), WriteCondition::Always).await.unwrap()
}

/// A value's bytes.
pub(super) async fn read(store: &dyn Store, text: &str) -> Option<Bytes> {
    let value = store.get(&key(text), ByteRange::Whole, None).await.unwrap()?;
    Some(value.bytes(1 << 30).await.unwrap())
}

/// The keys under a prefix, in the order they are listed.
pub(super) async fn keys(store: &dyn Store, under: &str) -> Vec<String> {
    let entries = store.list_prefix(&prefix(under), None);
    entries.map_ok(|entry| entry.key.to_string()).try_collect().await.unwrap()
}

/// Checks everything the interface promises, on an empty, writable store.
pub(super) async fn conforms(store: &dyn Store) {
    store.check().await.unwrap();
    reads_what_was_written(store).await;
    ranges_are_exact(store).await;
    conditions_hold(store).await;
    lists_in_order(store).await;
    erases(store).await;
}

async fn reads_what_was_written(store: &dyn Store) {
    assert_eq!(store.head(&key("a/b")).await.unwrap(), None);
    assert!(store.get(&key("a/b"), ByteRange::Whole, None).await.unwrap().is_none());

    let reports_creation = matches!(store.kind(), StoreKind::LOCAL | StoreKind::MEMORY);
    let first = put(store, "a/b", "one").await;
    assert_eq!(first.created, reports_creation);
    assert_eq!(read(store, "a/b").await.unwrap(), "one");
    let info = store.head(&key("a/b")).await.unwrap().unwrap();
    assert_eq!((info.size, Some(&info.version)), (3, first.version.as_ref()));
    assert!(info.modified.is_some());

    let second = put(store, "a/b", "two").await;
    assert!(!second.created);
    assert_ne!(second.version, first.version);
    assert_eq!(read(store, "a/b").await.unwrap(), "two");

    // A prefix is not a key, nor is what lies below a key.
    assert_eq!(store.head(&key("a")).await.unwrap(), None);
    assert_eq!(store.head(&key("a/b/c")).await.unwrap(), None);

    put(store, "empty", "").await;
    let empty = store.get(&key("empty"), ByteRange::Whole, None).await.unwrap().unwrap();
    assert_eq!((empty.info.size, empty.range.clone()), (0, 0..0));
    assert_eq!(empty.bytes(0).await.unwrap(), "");

    for odd in ["%2e%2e", "a b", "x\\y", "日本/0", "e\u{301}", "name#1", "a&b'<c>", "...", "c.1.2", "a+b?c"]
    {
        put(store, odd, odd).await;
        assert_eq!(read(store, odd).await.unwrap(), odd);
        assert!(keys(store, "").await.contains(&odd.to_owned()), "{odd} is listed");
        assert!(store.erase(&key(odd), WriteCondition::Always).await.unwrap());
    }

    let error = store.set(&key("broken"), broken_body(3), WriteCondition::Always).await.unwrap_err();
    assert!(matches!(error, StoreError::BodyAborted(_)), "{error:?}");
    assert_eq!(store.head(&key("broken")).await.unwrap(), None);

    assert_eq!(store.erase_prefix(&prefix("")).await.unwrap(), 2);
}

async fn ranges_are_exact(store: &dyn Store) {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    put(store, "value", bytes.clone()).await;
    let size = u64::try_from(bytes.len()).unwrap();
    let version = store.head(&key("value")).await.unwrap().unwrap().version;
    for range in [
        ByteRange::Whole,
        ByteRange::Bounded(0, 1),
        ByteRange::Bounded(1_000, 2_999_999),
        ByteRange::Bounded(2_999_999, u64::MAX),
        ByteRange::From(1_500_000),
        ByteRange::From(2_999_999),
        ByteRange::Suffix(16),
        ByteRange::Suffix(u64::MAX),
    ] {
        let value = store.get(&key("value"), range, Some(&version)).await.unwrap().unwrap();
        let resolved = range.resolve(size).unwrap();
        assert_eq!((value.range.clone(), value.info.size), (resolved.clone(), size), "{range:?}");
        assert_eq!(value.info.version, version);
        let at = |end: u64| usize::try_from(end).unwrap();
        assert_eq!(
            value.bytes(size).await.unwrap(),
            bytes[at(resolved.start)..at(resolved.end)],
            "{range:?}"
        );
    }
    for range in
        [ByteRange::From(size), ByteRange::Bounded(5, 5), ByteRange::Bounded(6, 5), ByteRange::Suffix(0)]
    {
        let error = store.get(&key("value"), range, None).await.unwrap_err();
        assert!(matches!(error, StoreError::RangeNotSatisfiable { size: 3_000_000 }), "{range:?}: {error:?}");
        assert!(store.get(&key("nothing"), range, None).await.unwrap().is_none());
    }
    put(store, "empty", "").await;
    for range in [ByteRange::From(0), ByteRange::Bounded(0, 1), ByteRange::Suffix(1)] {
        let error = store.get(&key("empty"), range, None).await.unwrap_err();
        assert!(matches!(error, StoreError::RangeNotSatisfiable { size: 0 }), "{range:?}: {error:?}");
    }
    assert!(store.erase(&key("empty"), WriteCondition::Always).await.unwrap());
    let other = Version::strong("other");
    for range in [ByteRange::Whole, ByteRange::Suffix(4)] {
        let error = store.get(&key("value"), range, Some(&other)).await.unwrap_err();
        assert!(matches!(error, StoreError::VersionChanged), "{error:?}");
        assert!(store.get(&key("nothing"), range, Some(&other)).await.unwrap().is_none());
    }
    assert!(store.erase(&key("value"), WriteCondition::Always).await.unwrap());
}

async fn conditions_hold(store: &dyn Store) {
    let key = &key("c/key");
    let set = |bytes: &'static str, condition| store.set(key, body(bytes), condition);
    let failed = |result: Result<SetResult, _>| matches!(result, Err(StoreError::ConditionFailed));

    assert!(failed(set("x", WriteCondition::IfVersion(Version::strong("none"))).await));
    let first = set("one", WriteCondition::IfAbsent).await.unwrap();
    assert!(first.created);
    assert!(failed(set("two", WriteCondition::IfAbsent).await));
    assert_eq!(read(store, "c/key").await.unwrap(), "one");

    let first = first.version.unwrap();
    let second = set("two", WriteCondition::IfVersion(first.clone())).await.unwrap();
    assert!(!second.created);
    assert!(failed(set("three", WriteCondition::IfVersion(first.clone())).await));
    assert_eq!(read(store, "c/key").await.unwrap(), "two");
    let error = store.get(key, ByteRange::Whole, Some(&first)).await.unwrap_err();
    assert!(matches!(error, StoreError::VersionChanged), "{error:?}");

    for condition in [WriteCondition::IfVersion(first), WriteCondition::IfAbsent] {
        let error = store.erase(key, condition).await.unwrap_err();
        assert!(matches!(error, StoreError::ConditionFailed), "{error:?}");
    }
    assert!(store.erase(key, WriteCondition::IfVersion(second.version.unwrap())).await.unwrap());
    assert_eq!(read(store, "c/key").await, None);

    let writers = (0..16).map(|n| store.set(key, body(n.to_string()), WriteCondition::IfAbsent));
    let won: Vec<_> = futures::future::join_all(writers).await.into_iter().flatten().collect();
    assert_eq!(won.len(), 1, "exactly one of the creations wins");
    // Some backends derive versions from the bytes, so these write other bytes than are stored.
    let version = won[0].version.clone().unwrap();
    let writers =
        (0..16).map(|n| store.set(key, body(format!("new {n}")), WriteCondition::IfVersion(version.clone())));
    let won = futures::future::join_all(writers).await.into_iter().flatten().count();
    assert_eq!(won, 1, "exactly one of the replacements wins");
    assert!(store.erase(key, WriteCondition::Always).await.unwrap());
}

async fn lists_in_order(store: &dyn Store) {
    let mut all = ["a", "b-c", "b.d", "b/a/0", "b/a/1", "b/b", "b0", "c/d/e/f", "zarr.json", "é/0"];
    for text in all.iter().rev() {
        put(store, text, *text).await;
    }
    all.sort_unstable();
    assert_eq!(keys(store, "").await, all);
    assert_eq!(keys(store, "b/").await, ["b/a/0", "b/a/1", "b/b"]);
    assert!(keys(store, "nothing/").await.is_empty());
    assert!(keys(store, "a/").await.is_empty(), "a key is not a prefix");

    for after in ["a", "b", "b-", "b/a/0", "b/a/0/x", "b/a/00", "b/z", "zz", "\u{ff}"] {
        let entries = store.list_prefix(&prefix(""), Some(&key(after)));
        let rest: Vec<_> = entries.map_ok(|entry| entry.key.to_string()).try_collect().await.unwrap();
        let expected: Vec<_> = all.iter().filter(|text| **text > after).copied().collect();
        assert_eq!(rest, expected, "after {after}");
    }

    let root = store.list_dir(&prefix("")).await.unwrap();
    let names: Vec<_> = root.keys.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(names, ["a", "b-c", "b.d", "b0", "zarr.json"]);
    assert_eq!(root.prefixes, [prefix("b/"), prefix("c/"), prefix("é/")]);
    let below = store.list_dir(&prefix("b/")).await.unwrap();
    assert_eq!(below.keys[0].key, key("b/b"));
    assert_eq!(below.prefixes, [prefix("b/a/")]);
    assert_eq!(store.list_dir(&prefix("nothing/")).await.unwrap(), DirListing::default());
    assert_eq!(store.list_dir(&prefix("a/")).await.unwrap(), DirListing::default());

    let sequence = ["a", "b-c", "b.d", "b/", "b0", "c/", "zarr.json", "é/"];
    directories_go_on_after_any_text(store, &[("", &sequence), ("b/", &["b/a/", "b/b"]), ("a/", &[])]).await;

    let info = store.head(&key("b/b")).await.unwrap().unwrap();
    let listed = &below.keys[0].info;
    assert_eq!(
        (listed.size, &listed.version),
        (info.size, &info.version),
        "a listing says the same as a head"
    );
}

/// Fails unless these are the entries of directories, after any text.
pub(super) async fn directories_go_on_after_any_text(store: &dyn Store, directories: &[(&str, &[&str])]) {
    for (under, entries) in directories {
        for after in
            ["", "0", "a", "a/", "b", "b-", "b/", "b//", "b/a", "b/a/0", "b/a\0", "b0", "zz", "\u{ff}/"]
        {
            let listed = store.list_dir_after(&prefix(under), after);
            let listed: Vec<_> = listed.map_ok(|entry| entry.text().to_owned()).try_collect().await.unwrap();
            let expected: Vec<_> = entries.iter().filter(|text| **text > after).copied().collect();
            assert_eq!(listed, expected, "{under:?} after {after:?}");
        }
    }
}

async fn erases(store: &dyn Store) {
    assert!(store.erase(&key("a"), WriteCondition::Always).await.unwrap());
    assert!(!store.erase(&key("a"), WriteCondition::Always).await.unwrap());
    assert!(!store.erase(&key("b/a"), WriteCondition::Always).await.unwrap(), "a prefix is no key");
    assert_eq!(store.erase_prefix(&prefix("b/")).await.unwrap(), 3);
    assert_eq!(store.erase_prefix(&prefix("b/")).await.unwrap(), 0);
    assert_eq!(keys(store, "").await, ["b-c", "b.d", "b0", "c/d/e/f", "zarr.json", "é/0"]);

    // Keys are a flat namespace: where a prefix was, a key may be, and the other way round.
    assert!(store.erase(&key("c/d/e/f"), WriteCondition::Always).await.unwrap());
    assert!(!store.list_dir(&prefix("")).await.unwrap().prefixes.contains(&prefix("c/")));
    put(store, "c/d", "now a key").await;
    assert!(store.erase(&key("c/d"), WriteCondition::Always).await.unwrap());
    put(store, "c/d/e", "a prefix again").await;
    assert_eq!(store.erase_prefix(&prefix("")).await.unwrap(), 6);
    assert_eq!(store.list_dir(&prefix("")).await.unwrap(), DirListing::default());
}

/// A wrapper that adds nothing.
#[derive(Debug)]
struct Wrapper(SharedStore);

#[async_trait]
impl Store for Wrapper {
    fn kind(&self) -> StoreKind {
        self.0.kind()
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.0.head(key).await
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        let value = self.0.get(key, range, if_match).await?;
        Ok(value.map(|value| Value { body: ValueBody::Stream(value.body.into_stream()), ..value }))
    }

    async fn set(
        &self,
        key: &StoreKey,
        body: ValueStream,
        condition: WriteCondition,
    ) -> Result<SetResult, StoreError> {
        self.0.set(key, body, condition).await
    }

    async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
        self.0.erase(key, condition).await
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
        self.0.erase_prefix(prefix).await
    }

    fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
        self.0.list_dir_after(prefix, after)
    }

    fn list_prefix(
        &self,
        prefix: &StorePrefix,
        after: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        self.0.list_prefix(prefix, after)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.0.check().await
    }
}

impl Shortcuts for Wrapper {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}

fn local(directory: &tempfile::TempDir) -> LocalStore {
    LocalStore::open(directory.path(), &LocalOptions { writable: true, ..LocalOptions::default() }).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_local_store_keeps_the_promises_of_the_interface() {
    let directory = tempfile::tempdir().unwrap();
    conforms(&local(&directory)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapper_keeps_the_promises_of_the_interface() {
    let directory = tempfile::tempdir().unwrap();
    conforms(&Wrapper(Arc::new(local(&directory)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_store_keeps_the_promises_of_the_interface() {
    conforms(&ObjectBackend::memory(true)).await;
}
