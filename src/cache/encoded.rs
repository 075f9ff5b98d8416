//! [`EncodedCache`]: a cache of chunks that were re-encoded in other shapes or by other codecs than they are stored in.
//!
//! Such chunks take long to encode and are requested again. Each is cached with a version that covers all of its sources: in memory,
//! and on the disk, if there is a disk cache.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, join};

use super::caches::{CacheKind, Evictable, PurgeOutcome, is_node_below, is_of_mount};
use super::disk::{DiskCache, DiskChunk};
use super::single_flight::Join;
use super::weighted_cache::{CacheUsage, LOAD_ATTEMPTS, LoadResult, WeightedCache};
use crate::array::ArrayError;
use crate::chunk::ChunkCoords;
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::store::Version;

/// Bytes that the key of a chunk takes beside its path and coordinates.
const NAME_BYTES: u64 = 200;

/// A re-encoded chunk of any version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EncodedKey {
    /// The mount's name.
    pub mount: Arc<str>,
    /// The array.
    pub path: NodePath,
    /// The shape and the codecs that it is encoded in.
    pub recipe: Arc<str>,
    /// Its coordinates in the grid of that shape.
    pub coords: ChunkCoords,
}

impl EncodedKey {
    fn bytes(&self) -> u64 {
        let texts =
            self.path.as_str().len().saturating_add(self.coords.len().saturating_mul(size_of::<u64>()));
        (texts as u64).saturating_add(NAME_BYTES)
    }

    /// The key below its array, of fixed length but for the coordinates; `None` if it is too long for a key.
    fn disk_key(&self) -> Option<StoreKey> {
        let recipe = Version::from_own_text(self.recipe.as_bytes());
        let coords: Vec<String> = self.coords.iter().map(u64::to_string).collect();
        self.path.prefix().key(&format!("{}.{}", recipe.tag(), coords.join("."))).ok()
    }
}

/// The bytes of a re-encoded chunk, with a version that covers all of its sources; `None` if none of them is stored.
pub type EncodedChunk = Option<(Version, Bytes)>;

/// A cache of re-encoded chunks, with the latest version of each, which evicts the least used. Clones share the entries.
#[derive(Clone, Debug)]
pub struct EncodedCache {
    memory: Arc<WeightedCache<EncodedKey, EncodedChunk>>,
    disk: Option<DiskCache>,
}

impl EncodedCache {
    /// A cache with this capacity.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let weigh = |key: &EncodedKey, encoded: &EncodedChunk| {
            key.bytes().saturating_add(encoded.as_ref().map_or(0, |(_, chunk)| chunk.len() as u64))
        };
        Self { memory: Arc::new(WeightedCache::new(capacity_bytes, weigh)), disk: None }
    }

    /// The same cache with the disk below it.
    #[must_use]
    pub fn with_disk(self, disk: Option<DiskCache>) -> Self {
        Self { disk, ..self }
    }

    fn on_disk(&self, key: &EncodedKey) -> Option<DiskChunk> {
        self.disk.as_ref()?.derived(&key.mount, key.disk_key()?)
    }

    /// Whether the chunk is in memory or on the disk, in any version.
    #[must_use]
    pub fn contains(&self, key: &EncodedKey) -> bool {
        self.memory.contains(key) || self.is_on_disk(key)
    }

    /// Whether the chunk is on the disk, in any version.
    #[must_use]
    pub fn is_on_disk(&self, key: &EncodedKey) -> bool {
        self.on_disk(key).is_some_and(|chunk| chunk.is_stored())
    }

    /// The chunk in this version from the disk, if it is there. It is in memory then too.
    pub async fn read_disk(&self, key: &EncodedKey, version: &Version) -> Option<EncodedChunk> {
        let since = self.memory.generation();
        let chunk = self.on_disk(key)?.read(version).await?;
        let found = Some((version.clone(), chunk));
        self.memory.insert(key, &found, since);
        Some(found)
    }

    /// The chunk from the disk, if it is there in the version that `version` finds; otherwise from `encode`, and on the disk then.
    ///
    /// # Errors
    /// Those of `version` and `encode`.
    pub async fn from_disk_or_encode(
        &self,
        key: &EncodedKey,
        version: impl Future<Output = LoadResult<Option<Version>>> + Send,
        encode: impl Future<Output = LoadResult<EncodedChunk>> + Send,
    ) -> LoadResult<EncodedChunk> {
        let Some(on_disk) = self.on_disk(key) else { return encode.await };
        if on_disk.is_stored()
            && let Some(version) = version.await?
            && let Some(chunk) = on_disk.read(&version).await
        {
            return Ok(Some((version, chunk)));
        }
        let since = on_disk.generation();
        let encoded = encode.await?;
        if let Some((version, chunk)) = &encoded {
            on_disk.write(version, chunk, since);
        }
        Ok(encoded)
    }

    /// The chunk as it was last encoded, if it is cached; its sources may have changed since.
    #[must_use]
    pub fn latest(&self, key: &EncodedKey) -> Option<EncodedChunk> {
        self.memory.get(key)
    }

    /// The chunk as it is now: from the cache, from an encoding in flight, or from `encode`, which runs once for all
    /// concurrent callers. A chunk whose encoding began before the call is returned only if it is of the version that
    /// `lookup` finds.
    ///
    /// # Errors
    /// Those of `lookup` and `encode`.
    pub async fn get<'a>(
        &self,
        key: &EncodedKey,
        lookup: impl Fn() -> BoxFuture<'a, LoadResult<Option<Version>>> + Send,
        encode: BoxFuture<'static, LoadResult<EncodedChunk>>,
    ) -> LoadResult<EncodedChunk> {
        let mut encode = Some(encode);
        for _ in 0..LOAD_ATTEMPTS {
            let known = self.memory.contains(key).then(|| self.memory.get(key)).flatten();
            if let Some(known) = &known
                && lookup().await?.as_ref() == version(known)
            {
                return Ok(known.clone());
            }
            let is_newer = |encoded: &EncodedChunk| {
                known.as_ref().is_none_or(|known| version(known) != version(encoded))
            };
            match self.memory.join_refresh(key, is_newer) {
                Join::Hit(_) => {}
                Join::Follower(follower) => {
                    let (now, encoded) = join(lookup(), follower.wait()).await;
                    let now = now?;
                    if let Some(encoded) = encoded.transpose()?
                        && version(&encoded) == now.as_ref()
                    {
                        return Ok(encoded);
                    }
                }
                Join::Leader(leader, follower) => {
                    let Some(encode) = encode.take() else { break };
                    self.memory.spawn_load(leader, encode);
                    let cancelled = || Err(ArrayError::LoadCancelled { what: key.path.to_string() });
                    return follower.wait().await.unwrap_or_else(cancelled);
                }
            }
        }
        // The sources change faster than other callers encode them.
        match encode {
            Some(encode) => encode.await,
            None => Err(ArrayError::LoadCancelled { what: key.path.to_string() }),
        }
    }
}

fn version(encoded: &EncodedChunk) -> Option<&Version> {
    encoded.as_ref().map(|(version, _)| version)
}

impl Evictable for EncodedCache {
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        vec![(CacheKind::Encoded, self.memory.usage())]
    }

    fn purge(&self, mount: &str, prefix: &StorePrefix) -> PurgeOutcome {
        let matches = |key: &EncodedKey| is_of_mount(&key.mount, mount) && is_node_below(&key.path, prefix);
        PurgeOutcome::of_memory(self.memory.purge(matches))
    }

    fn evict_half(&self) {
        self.memory.evict_half();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    fn key(coords: &[u64]) -> EncodedKey {
        let path = NodePath::parse("a").unwrap();
        EncodedKey { mount: "m".into(), path, recipe: "auto/raw".into(), coords: coords.to_vec() }
    }

    /// A lookup that finds this version.
    fn at(version: &Version) -> BoxFuture<'_, LoadResult<Option<Version>>> {
        Box::pin(std::future::ready(Ok(Some(version.clone()))))
    }

    /// Gets a chunk while `stored` is its version, where encoding gives these bytes.
    async fn get(cache: &EncodedCache, key: &EncodedKey, stored: &str, chunk: &'static str) -> Bytes {
        let stored = Version::strong(stored);
        let encode = Box::pin(std::future::ready(Ok(Some((stored.clone(), Bytes::from(chunk))))));
        cache.get(key, || at(&stored), encode).await.unwrap().unwrap().1
    }

    #[tokio::test]
    async fn a_chunk_is_encoded_once_for_each_version_of_its_sources() {
        let cache = EncodedCache::new(1 << 20);
        assert_eq!(get(&cache, &key(&[0]), "1", "one").await, "one");
        assert_eq!(get(&cache, &key(&[0]), "1", "other").await, "one");
        assert_eq!(get(&cache, &key(&[0]), "2", "two").await, "two");
        assert_eq!(get(&cache, &key(&[1]), "1", "next").await, "next");
        assert_eq!(get(&cache, &key(&[0]), "2", "other").await, "two");
    }

    #[tokio::test]
    async fn a_cache_of_zero_bytes_caches_nothing() {
        let cache = EncodedCache::new(0);
        assert_eq!(get(&cache, &key(&[0]), "1", "one").await, "one");
        assert_eq!(get(&cache, &key(&[0]), "1", "other").await, "other");
    }

    #[tokio::test]
    async fn no_chunk_is_returned_where_nothing_is_stored() {
        let cache = EncodedCache::new(1 << 20);
        let encode = Box::pin(std::future::ready(Ok(None)));
        let encoded = cache.get(&key(&[0]), || Box::pin(std::future::ready(Ok(None))), encode).await;
        assert_eq!(encoded.unwrap(), None);
    }

    /// Gets a chunk whose sources change from version `old` to `new` after the first encoding began.
    async fn changing(cache: EncodedCache, lookups: &AtomicUsize, encodings: Arc<AtomicUsize>) -> Bytes {
        let encode = Box::pin(async move {
            let number = encodings.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            let version = if number == 0 { "old" } else { "new" };
            Ok(Some((Version::strong(version), Bytes::from(version))))
        });
        let new = Version::strong("new");
        let lookup = || {
            lookups.fetch_add(1, Ordering::SeqCst);
            at(&new)
        };
        cache.get(&key(&[0]), lookup, encode).await.unwrap().unwrap().1
    }

    #[tokio::test]
    async fn a_later_caller_never_gets_an_older_version() {
        let (cache, lookups) = (EncodedCache::new(1 << 20), AtomicUsize::new(0));
        let encodings = Arc::new(AtomicUsize::new(0));
        let all = (0..10).map(|_| changing(cache.clone(), &lookups, Arc::clone(&encodings)));
        let given = join_all(all).await;
        // The first caller began before the write; all others share the second encoding.
        assert_eq!(given[0], "old");
        assert!(given[1..].iter().all(|chunk| chunk == "new"), "{given:?}");
        assert_eq!(encodings.load(Ordering::SeqCst), 2);
        assert!(lookups.load(Ordering::SeqCst) >= 9);
    }

    #[tokio::test]
    async fn concurrent_callers_share_one_encoding() {
        let (cache, encodings) = (EncodedCache::new(0), AtomicUsize::new(0));
        let encodings = Arc::new(encodings);
        let all = (0..10).map(|_| {
            let (cache, encodings) = (cache.clone(), Arc::clone(&encodings));
            async move {
                let one = Version::strong("1");
                let encode = Box::pin(async move {
                    encodings.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    Ok(Some((Version::strong("1"), Bytes::from("one"))))
                });
                cache.get(&key(&[0]), || at(&one), encode).await.unwrap()
            }
        });
        let given = join_all(all).await;
        assert!(given.iter().all(|encoded| encoded.as_ref().is_some_and(|(_, chunk)| chunk == "one")));
        assert_eq!(encodings.load(Ordering::SeqCst), 1);
    }
}
