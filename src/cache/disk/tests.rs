//! The disk cache in front of a store that counts requests: what it serves is what the store has, whatever happens to its files.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use tempfile::TempDir;

use super::record::MAX_DATA;
use super::*;
use crate::cache::caches::Evictable;
use crate::cache::disk_report::DiskReads;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, CachePolicy, DirEntries, ListEntry, SharedStore, Shortcuts, Store, StoreError, StoreKind,
    Value, ValueBody, ValueInfo, Version,
};

const MIB: usize = 1 << 20;

/// A remote store in memory, which counts requests and sends bodies in pieces.
#[derive(Debug, Default)]
struct Remote {
    values: Mutex<BTreeMap<String, (Version, Bytes)>>,
    heads: AtomicU64,
    gets: AtomicU64,
}

impl Remote {
    fn put(&self, key: &str, tag: &str, bytes: Bytes) {
        self.values.lock().unwrap().insert(key.to_owned(), (Version::strong(tag), bytes));
    }

    /// Heads and gets since the last call.
    fn requests(&self) -> (u64, u64) {
        (self.heads.swap(0, Ordering::SeqCst), self.gets.swap(0, Ordering::SeqCst))
    }

    fn stored(&self, key: &StoreKey) -> Option<(ValueInfo, Bytes)> {
        let (version, bytes) = self.values.lock().unwrap().get(key.as_str())?.clone();
        Some((ValueInfo { size: bytes.len() as u64, version, modified: None }, bytes))
    }
}

#[async_trait]
impl Store for Remote {
    fn kind(&self) -> StoreKind {
        StoreKind::S3
    }

    async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
        self.heads.fetch_add(1, Ordering::SeqCst);
        Ok(self.stored(key).map(|(info, _)| info))
    }

    async fn get(
        &self,
        key: &StoreKey,
        range: ByteRange,
        if_match: Option<&Version>,
    ) -> Result<Option<Value>, StoreError> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        let Some((info, bytes)) = self.stored(key) else { return Ok(None) };
        if if_match.is_some_and(|version| *version != info.version) {
            return Err(StoreError::VersionChanged);
        }
        let range = range.resolve(info.size).ok_or(StoreError::RangeNotSatisfiable { size: info.size })?;
        let body = bytes.slice(slice(&range));
        let pieces: Vec<_> = body.chunks(100_003).map(|piece| Ok(body.slice_ref(piece))).collect();
        Ok(Some(Value { info, range, body: ValueBody::Stream(stream::iter(pieces).boxed()) }))
    }

    fn list_dir_after(&self, _: &StorePrefix, _: &str) -> DirEntries {
        stream::empty().boxed()
    }

    fn list_prefix(
        &self,
        _: &StorePrefix,
        _: Option<&StoreKey>,
    ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
        stream::empty().boxed()
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Shortcuts for Remote {}

fn slice(range: &Range<u64>) -> Range<usize> {
    usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()
}

/// Bytes that differ from those of every other seed.
fn noise(seed: usize, length: usize) -> Bytes {
    let mut state = seed as u64 ^ 0x5851_f42d_4c95_7f2d;
    let bytes = (0..length).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    });
    bytes.collect()
}

fn options(path: &Path, size: usize) -> DiskCacheOptions {
    DiskCacheOptions { path: Some(path.to_owned()), size: size as u64, ..DiskCacheOptions::default() }
}

fn opened(path: &Path, size: usize) -> DiskCache {
    DiskCache::open(&options(path, size)).unwrap().unwrap()
}

fn wrapped(cache: &DiskCache, remote: &Arc<Remote>, policy: CachePolicy) -> SharedStore {
    let mount = CachedMount { name: "m", cache_name: "m", place: "here", policy, writable: false };
    cache.wrap(&mount, Arc::clone(remote) as SharedStore)
}

/// A remote store, a folder for a cache of this size, and the cache.
struct Scene {
    remote: Arc<Remote>,
    folder: TempDir,
    size: usize,
    cache: Option<DiskCache>,
}

impl Scene {
    fn new(size: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cache = opened(folder.path(), size);
        Self { remote: Arc::default(), folder, size, cache: Some(cache) }
    }

    fn cache(&self) -> &DiskCache {
        self.cache.as_ref().unwrap()
    }

    fn store(&self) -> SharedStore {
        wrapped(self.cache(), &self.remote, CachePolicy::Always)
    }

    /// Ends the cache, and opens it again.
    fn restart(&mut self) {
        self.cache = None;
        self.cache = Some(opened(self.folder.path(), self.size));
    }

    fn reads(&self) -> DiskReads {
        self.cache().disk_report().unwrap().mounts[0].1
    }

    /// The files of segments.
    fn files(&self) -> Vec<std::path::PathBuf> {
        let all = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("segment-")).collect()
    }

    fn bytes_on_disk(&self) -> u64 {
        self.files().iter().map(|path| fs::metadata(path).unwrap().len()).sum()
    }
}

fn key(text: &str) -> StoreKey {
    StoreKey::parse(text).unwrap()
}

async fn read(store: &SharedStore, name: &str, range: ByteRange) -> Bytes {
    let value = store.get(&key(name), range, None).await.unwrap().unwrap();
    value.bytes(u64::MAX).await.unwrap()
}

async fn whole(store: &SharedStore, name: &str) -> Bytes {
    read(store, name, ByteRange::Whole).await
}

#[tokio::test]
async fn what_was_read_before_a_restart_costs_one_head_after_it() {
    let mut scene = Scene::new(16 * MIB);
    scene.remote.put("a/b", "1", noise(1, 100_000));
    assert_eq!(whole(&scene.store(), "a/b").await, noise(1, 100_000));
    assert_eq!(scene.remote.requests(), (0, 1));
    scene.cache().flush();
    assert_eq!(whole(&scene.store(), "a/b").await, noise(1, 100_000));
    assert_eq!(scene.remote.requests(), (1, 0));
    scene.restart();
    let store = scene.store();
    assert_eq!(whole(&store, "a/b").await, noise(1, 100_000));
    assert_eq!(scene.remote.requests(), (1, 0));
    let pinned = store.get(&key("a/b"), ByteRange::Suffix(10), Some(&Version::strong("1"))).await;
    assert_eq!(pinned.unwrap().unwrap().bytes(10).await.unwrap(), noise(1, 100_000)[99_990..]);
    assert_eq!(scene.remote.requests(), (0, 0), "the caller knows the version");
    assert_eq!(scene.reads(), DiskReads { hits: 2, misses: 0, hit_bytes: 100_010 });
}

#[tokio::test]
async fn a_changed_version_has_its_own_bytes_and_an_erased_value_has_none() {
    let mut scene = Scene::new(16 * MIB);
    for (tag, seed) in [("1", 1), ("2", 2), ("3", 3)] {
        scene.remote.put("a", tag, noise(seed, 1000));
        for _ in 0..2 {
            assert_eq!(whole(&scene.store(), "a").await, noise(seed, 1000));
            scene.cache().flush();
        }
        scene.restart();
    }
    let stale = scene.store().get(&key("a"), ByteRange::Whole, Some(&Version::strong("2"))).await;
    assert!(matches!(stale, Err(StoreError::VersionChanged)), "{stale:?}");
    scene.remote.values.lock().unwrap().clear();
    assert!(scene.store().get(&key("a"), ByteRange::Whole, None).await.unwrap().is_none());
}

#[tokio::test]
async fn every_range_of_a_long_value_is_the_same_from_the_disk() {
    let mut scene = Scene::new(64 * MIB);
    let size = 5 * MIB as u64 + 17;
    let bytes = noise(7, 5 * MIB + 17);
    scene.remote.put("long", "1", bytes.clone());
    assert_eq!(whole(&scene.store(), "long").await, bytes);
    scene.cache().flush();
    scene.restart();
    let (store, edge) = (scene.store(), MAX_DATA as u64);
    scene.remote.requests();
    for range in [
        ByteRange::Whole,
        ByteRange::Bounded(0, 1),
        ByteRange::Bounded(edge - 1, edge + 1),
        ByteRange::Bounded(edge, 2 * edge),
        ByteRange::Bounded(3, size - 3),
        ByteRange::From(size - 1),
        ByteRange::Suffix(17),
        ByteRange::Suffix(size + 5),
        ByteRange::Bounded(4 * edge - 7, 8 * edge + 9),
    ] {
        let expected = bytes.slice(slice(&range.resolve(size).unwrap()));
        assert_eq!(read(&store, "long", range).await, expected, "{range:?}");
        assert_eq!(scene.remote.requests(), (1, 0), "{range:?}");
    }
    let outside = store.get(&key("long"), ByteRange::From(size), None).await;
    assert!(matches!(outside, Err(StoreError::RangeNotSatisfiable { .. })), "{outside:?}");
}

#[tokio::test]
async fn only_what_was_fetched_is_cached() {
    let scene = Scene::new(16 * MIB);
    let bytes = noise(3, 2 * MIB);
    scene.remote.put("a", "1", bytes.clone());
    let store = scene.store();
    for (range, gets) in [
        (ByteRange::Bounded(1000, 2000), 1),
        (ByteRange::Bounded(1000, 2000), 0),
        (ByteRange::Bounded(1500, 1501), 0),
        (ByteRange::Bounded(1500, 2500), 1),
        (ByteRange::Bounded(1000, 2500), 0),
        (ByteRange::Bounded(999, 2500), 1),
        (ByteRange::Whole, 1),
        (ByteRange::Suffix(1), 0),
    ] {
        let expected = bytes.slice(slice(&range.resolve(2 * MIB as u64).unwrap()));
        assert_eq!(read(&store, "a", range).await, expected);
        assert_eq!(scene.remote.requests().1, gets, "{range:?}");
        scene.cache().flush();
    }
}

#[tokio::test]
async fn values_that_never_change_need_no_request_after_a_restart() {
    let mut scene = Scene::new(16 * MIB);
    scene.remote.put("a", "1", noise(1, 1000));
    whole(&scene.store(), "a").await;
    scene.cache().flush();
    scene.restart();
    scene.remote.requests();
    let store = wrapped(scene.cache(), &scene.remote, CachePolicy::Immutable);
    assert_eq!(whole(&store, "a").await, noise(1, 1000));
    let info = store.head(&key("a")).await.unwrap().unwrap();
    assert_eq!((info.size, info.version), (1000, Version::strong("1")));
    assert_eq!(scene.remote.requests(), (0, 0));
    let uncached = wrapped(scene.cache(), &scene.remote, CachePolicy::Uncached);
    whole(&uncached, "a").await;
    assert_eq!(scene.remote.requests(), (0, 1));
}

#[tokio::test]
async fn weak_versions_and_stores_of_this_machine_are_not_cached() {
    let scene = Scene::new(16 * MIB);
    let weak = (Version::weak("1"), noise(1, 1000));
    scene.remote.values.lock().unwrap().insert("a".to_owned(), weak);
    for _ in 0..2 {
        assert_eq!(whole(&scene.store(), "a").await, noise(1, 1000));
        assert_eq!(scene.remote.requests(), (0, 1));
        scene.cache().flush();
    }
    assert_eq!(scene.files().len(), 0);
}

/// A folder as a server that was killed leaves it, with these values, and the table of its segment if it is complete.
async fn left_behind(values: &[(&str, Bytes)], is_complete: bool) -> (Arc<Remote>, TempDir, String) {
    let scene = Scene::new(4 * MIB);
    for (name, bytes) in values {
        scene.remote.put(name, "1", bytes.clone());
        whole(&scene.store(), name).await;
    }
    scene.cache().flush();
    let copy = tempfile::tempdir().unwrap();
    let Scene { remote, folder, cache, .. } = scene;
    let cache = if is_complete { None } else { cache };
    let name = "segment-0000000000000000".to_owned();
    fs::copy(folder.path().join(&name), copy.path().join(&name)).unwrap();
    drop(cache);
    (remote, copy, name)
}

#[tokio::test]
async fn whatever_bit_is_flipped_no_wrong_byte_is_served_and_damaged_records_are_read_again() {
    let value = noise(9, 120);
    for is_complete in [false, true] {
        let (remote, folder, name) = left_behind(&[("a/b", value.clone())], is_complete).await;
        let path = folder.path().join(&name);
        let intact = fs::read(&path).unwrap();
        let record = 64..64 + 88 + "m@here".len() + "a/b".len() + 1 + value.len();
        for at in 0..intact.len() {
            let mut damaged = intact.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, &damaged).unwrap();
            let cache = opened(folder.path(), 4 * MIB);
            let store = wrapped(&cache, &remote, CachePolicy::Always);
            remote.requests();
            assert_eq!(whole(&store, "a/b").await, value, "byte {at}");
            if record.contains(&at) {
                assert_eq!(remote.requests().1, 1, "byte {at} was not found to be damaged");
            }
            drop((store, cache));
            for entry in fs::read_dir(folder.path()).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn of_a_file_that_ends_anywhere_the_whole_records_are_served() {
    let (one, two) = (noise(1, 300), noise(2, 400));
    for is_complete in [false, true] {
        let values = [("a", one.clone()), ("b", two.clone())];
        let (remote, folder, name) = left_behind(&values, is_complete).await;
        let path = folder.path().join(&name);
        let intact = fs::read(&path).unwrap();
        let lengths = [300, 400].map(|data: usize| (88 + "m@here".len() + 1 + 1 + data).next_multiple_of(64));
        for length in 0..intact.len() {
            fs::write(&path, &intact[..length]).unwrap();
            let cache = opened(folder.path(), 4 * MIB);
            let store = wrapped(&cache, &remote, CachePolicy::Always);
            remote.requests();
            assert_eq!((whole(&store, "a").await, whole(&store, "b").await), (one.clone(), two.clone()));
            let missing =
                u64::from(length < 64 + lengths[0]) + u64::from(length < 64 + lengths[0] + lengths[1]);
            assert_eq!(remote.requests().1, missing, "{length} bytes");
            drop((store, cache));
            for entry in fs::read_dir(folder.path()).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_hole_in_a_file_costs_the_records_in_it_and_no_others() {
    let values: Vec<(String, Bytes)> = (0..8).map(|n| (format!("k{n}"), noise(n, 5000))).collect();
    let named: Vec<(&str, Bytes)> = values.iter().map(|(name, bytes)| (&**name, bytes.clone())).collect();
    let (remote, folder, name) = left_behind(&named, false).await;
    let path = folder.path().join(&name);
    let mut bytes = fs::read(&path).unwrap();
    // As a power cut leaves pages that were not written: of the third and the fourth value.
    bytes[64 + 2 * 5120 + 100..64 + 3 * 5120 + 200].fill(0);
    fs::write(&path, bytes).unwrap();
    let cache = opened(folder.path(), 4 * MIB);
    let store = wrapped(&cache, &remote, CachePolicy::Always);
    remote.requests();
    for (name, bytes) in &values {
        assert_eq!(whole(&store, name).await, bytes);
    }
    assert_eq!(remote.requests(), (7, 2), "one has its head, so its version is requested");
}

#[tokio::test]
async fn a_value_cannot_pass_for_a_record() {
    let (_, folder, name) = left_behind(&[("a", noise(1, 500))], false).await;
    let forged = fs::read(folder.path().join(name)).unwrap();
    for padding in (0..64).step_by(8) {
        // Another cache stores a value with these bytes, at every alignment, and its own record is damaged.
        let value = [vec![0; padding], forged.clone()].concat();
        let (_, folder, name) = left_behind(&[("b", value.into())], false).await;
        let path = folder.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[64] ^= 1;
        fs::write(&path, bytes).unwrap();
        let cache = opened(folder.path(), 4 * MIB);
        assert_eq!(cache.engine().state().index.parts(), 0);
    }
}

#[tokio::test]
async fn files_of_others_stay_and_a_second_server_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["notes.txt", "segment-1", "segment-00000000000000zz", "segment-000000000000000F", "lock2"];
    for name in names {
        fs::write(folder.path().join(name), "mine").unwrap();
    }
    fs::create_dir(folder.path().join("segment-0000000000000007")).unwrap();
    let cache = opened(folder.path(), 4 * MIB);
    let second = DiskCache::open(&options(folder.path(), 4 * MIB));
    assert!(matches!(second, Err(DiskCacheError::InUse(_))), "{second:?}");
    drop(cache);
    drop(opened(folder.path(), 4 * MIB));
    for name in names {
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"mine", "{name}");
    }
    let file = DiskCache::open(&options(&folder.path().join("notes.txt"), 4 * MIB));
    assert!(matches!(file, Err(DiskCacheError::NotADirectory(_))), "{file:?}");
}

#[tokio::test]
async fn the_files_never_take_more_than_their_size() {
    let mut scene = Scene::new(4 * MIB);
    for round in 0..3 {
        for number in 0..60 {
            let name = format!("{round}/{number}");
            scene.remote.put(&name, "1", noise(number, 200_000));
            // The second read admits it.
            for _ in 0..2 {
                assert_eq!(whole(&scene.store(), &name).await, noise(number, 200_000));
            }
            scene.cache().flush();
            assert!(scene.bytes_on_disk() <= 4 * MIB as u64, "{}", scene.bytes_on_disk());
        }
        scene.restart();
    }
    assert!(scene.bytes_on_disk() > 2 * MIB as u64, "{}", scene.bytes_on_disk());
    scene.cache = None;
    scene.cache = Some(opened(scene.folder.path(), 4 * MIB));
    let smaller = options(scene.folder.path(), 4 * MIB);
    scene.cache = None;
    let smaller = DiskCacheOptions { index_size: 128 << 10, ..smaller };
    let cache = DiskCache::open(&smaller).unwrap().unwrap();
    assert!(cache.engine().state().index.parts() <= (128 << 10) * 7 / 8 / 192);
}

#[tokio::test]
async fn a_scan_does_not_evict_what_is_used() {
    let scene = Scene::new(8 * MIB);
    let store = scene.store();
    let (hot, scanned, rounds) = (96, 1200, 8);
    let value = |number: usize| noise(number, 8_000);
    for number in 0..hot + rounds * scanned {
        scene.remote.put(&format!("v/{number}"), "1", value(number));
    }
    let (mut reads, mut misses) = (0, 0);
    for round in 0..rounds {
        // Between two reads of what is used, more is scanned than fits into the cache. Some of it is read twice, so that
        // segments are evicted all the time.
        let scan = hot + round * scanned..hot + (round + 1) * scanned;
        let twice = scan.clone().step_by(12);
        for number in (0..hot).chain(scan).chain(twice) {
            scene.remote.requests();
            assert_eq!(whole(&store, &format!("v/{number}")).await, value(number));
            // By then, all of that was read twice while the cache was full.
            if number < hot && round > 2 {
                reads += 1;
                misses += scene.remote.requests().1;
            }
            scene.cache().flush();
        }
    }
    assert!(scene.cache().usage()[0].1.evictions > 300);
    assert!(misses * 50 < reads, "{misses} of {reads} reads of what is used were misses");
}

#[tokio::test]
async fn what_is_prefetched_is_admitted_at_once() {
    let scene = Scene::new(4 * MIB);
    let store = scene.store();
    for number in 0..40 {
        scene.remote.put(&format!("scan/{number}"), "1", noise(number, 200_000));
        whole(&store, &format!("scan/{number}")).await;
        scene.cache().flush();
    }
    scene.remote.put("a/b", "1", noise(1, 1000));
    whole(&store, "a/b").await;
    scene.cache().flush();
    whole(&store, "a/b").await;
    scene.remote.put("a/c", "1", noise(2, 1000));
    let admitted = scene.cache().admit_all("m", &StorePrefix::parse("a/").unwrap());
    whole(&store, "a/c").await;
    scene.cache().flush();
    drop(admitted);
    scene.remote.requests();
    whole(&store, "a/c").await;
    assert_eq!(scene.remote.requests(), (1, 0));
}

#[tokio::test]
async fn a_purge_holds_at_once_and_after_a_restart() {
    let mut scene = Scene::new(16 * MIB);
    for name in ["a/x", "ab/x", "b/x"] {
        scene.remote.put(name, "1", noise(1, 1000));
        whole(&scene.store(), name).await;
    }
    scene.cache().flush();
    scene.cache().purge("m", &StorePrefix::parse("a/").unwrap());
    let gets = async |scene: &Scene, name: &str| {
        scene.remote.requests();
        // Changed without another version: this is what a purge is for.
        whole(&scene.store(), name).await;
        scene.remote.requests().1
    };
    // Not written again by this read, so that the restart reads the purge.
    scene.cache().engine().generation.advance();
    scene.restart();
    assert_eq!((gets(&scene, "a/x").await, gets(&scene, "ab/x").await, gets(&scene, "b/x").await), (1, 0, 0));
    scene.cache().flush();
    assert_eq!(gets(&scene, "a/x").await, 0, "it was written again");
    scene.cache().purge("m", &StorePrefix::root());
    assert_eq!((gets(&scene, "a/x").await, gets(&scene, "b/x").await), (1, 1));
    scene.cache().purge("other", &StorePrefix::root());
}

#[tokio::test]
async fn a_read_that_began_before_a_purge_is_not_written() {
    let scene = Scene::new(16 * MIB);
    scene.remote.put("a", "1", noise(1, 1000));
    let value = scene.store().get(&key("a"), ByteRange::Whole, None).await.unwrap().unwrap();
    scene.cache().purge("m", &StorePrefix::root());
    value.bytes(1000).await.unwrap();
    scene.cache().flush();
    scene.remote.requests();
    whole(&scene.store(), "a").await;
    assert_eq!(scene.remote.requests(), (0, 1));
}

#[tokio::test]
async fn a_directory_that_vanishes_makes_reads_slower_and_is_used_again_when_it_is_back() {
    let scene = Scene::new(4 * MIB);
    let store = scene.store();
    for number in 0..40 {
        scene.remote.put(&number.to_string(), "1", noise(number, 200_000));
    }
    whole(&store, "0").await;
    scene.cache().flush();
    fs::remove_dir_all(scene.folder.path()).unwrap();
    for number in 0..30 {
        assert_eq!(whole(&store, &number.to_string()).await, noise(number, 200_000));
        scene.cache().flush();
    }
    let report = scene.cache().disk_report().unwrap();
    assert!(report.is_paused && report.failures > 0, "{report:?}");
    fs::create_dir(scene.folder.path()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    for number in 30..40 {
        for _ in 0..2 {
            assert_eq!(whole(&store, &number.to_string()).await, noise(number, 200_000));
        }
        scene.cache().flush();
    }
    assert!(!scene.cache().disk_report().unwrap().is_paused);
    assert!(!scene.files().is_empty());
}

#[tokio::test]
async fn a_long_read_goes_on_at_the_backend_where_the_disk_ends() {
    let scene = Scene::new(64 * MIB);
    let bytes = noise(5, 6 * MIB);
    scene.remote.put("long", "1", bytes.clone());
    let store = scene.store();
    whole(&store, "long").await;
    scene.cache().flush();
    let value = store.get(&key("long"), ByteRange::Whole, None).await.unwrap().unwrap();
    let ValueBody::Stream(mut body) = value.body else { panic!("it is short") };
    let mut read = body.try_next().await.unwrap().unwrap().to_vec();
    scene.cache().purge("m", &StorePrefix::root());
    scene.remote.requests();
    while let Some(part) = body.try_next().await.unwrap() {
        read.extend_from_slice(&part);
    }
    assert!(read == bytes);
    assert_eq!(scene.remote.requests(), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_at_the_same_time_as_writes_purges_and_evictions_are_right() {
    let scene = Arc::new(Scene::new(4 * MIB));
    let store = scene.store();
    for number in 0..64 {
        scene.remote.put(&format!("k/{number}"), "0", noise(number, 10_000 + number * 4_000));
    }
    let readers = (0..4).map(|reader| {
        let (scene, store) = (Arc::clone(&scene), Arc::clone(&store));
        tokio::spawn(async move {
            for step in 0..400 {
                let number = (step * (reader + 3) + step / 7) % 64;
                let name = format!("k/{number}");
                if reader == 0 && step % 10 == 0 {
                    let seed = number + 64 * step;
                    scene.remote.put(&name, &seed.to_string(), noise(seed, 10_000 + number * 4_000));
                }
                let value = store.get(&key(&name), ByteRange::Whole, None).await.unwrap().unwrap();
                let seed: usize = value.info.version.tag().parse().unwrap();
                let seed = if seed == 0 { number } else { seed };
                assert!(
                    value.bytes(u64::MAX).await.unwrap() == noise(seed, 10_000 + number * 4_000),
                    "{name}"
                );
                if reader == 1 && step % 50 == 0 {
                    let cache = scene.cache().clone();
                    let purge = move || cache.purge("m", &StorePrefix::parse("k/").unwrap());
                    std::thread::spawn(purge).join().unwrap();
                }
            }
        })
    });
    for ended in join_all(readers).await {
        ended.unwrap();
    }
    assert!(scene.reads().hits > 0, "{:?}", scene.reads());
    assert_eq!(scene.cache().disk_report().unwrap().damaged, 0);
}
