//! The disk cache in front of a store that counts requests: what it serves is what the store has, whatever happens to its files.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use tempfile::TempDir;

use super::*;
use crate::cache::caches::Evictable;
use crate::cache::disk_report::DiskReads;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{
    ByteRange, CachePolicy, DirEntries, ListEntry, SharedStore, Shortcuts, Store, StoreError, StoreKind,
    Value, ValueBody, ValueInfo, Version,
};

mod admission;
mod damage;
mod lookups;
mod reads;

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
        Ok(Some(Value::new(info, range, ValueBody::Stream(stream::iter(pieces).boxed()))))
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
    let mut bytes = Vec::with_capacity(length + 4);
    while bytes.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend_from_slice(&state.to_be_bytes()[..4]);
    }
    bytes.truncate(length);
    bytes.into()
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
