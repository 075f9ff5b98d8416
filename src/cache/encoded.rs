//! [`EncodedCache`]: chunks that were encoded anew, by what they were made of.
//!
//! Chunks in other shapes or by other codecs than they are stored in take long to make and are asked for again. Each is
//! remembered with the version that names all it was made of.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, join};

use super::caches::{CacheKind, Evictable, is_node_below};
use super::single_flight::Join;
use super::weighted_cache::{CacheUsage, LOAD_ATTEMPTS, LoadResult, WeightedCache};
use crate::array::ArrayError;
use crate::chunk::ChunkCoords;
use crate::key::{NodePath, StorePrefix};
use crate::store::Version;

/// Bytes that the name of a chunk takes beside its path and recipe.
const NAME_BYTES: u64 = 200;

/// A chunk that is made, whatever it is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EncodedKey {
    /// The mount's name.
    pub mount: Arc<str>,
    /// The array.
    pub path: NodePath,
    /// How it is made.
    pub recipe: Arc<str>,
    /// Its coordinates, in the grid that the recipe gives the array.
    pub coords: ChunkCoords,
}

impl EncodedKey {
    fn bytes(&self) -> u64 {
        let texts =
            self.path.as_str().len().saturating_add(self.coords.len().saturating_mul(size_of::<u64>()));
        (texts as u64).saturating_add(NAME_BYTES)
    }
}

/// What came of making a chunk: its bytes, under the version that names all it was made of; `None` if nothing is stored of
/// it.
pub type EncodedChunk = Option<(Version, Bytes)>;

/// Remembers encoded chunks, each as it was made last; the least used fall out. Clones share them.
#[derive(Clone, Debug)]
pub struct EncodedCache(Arc<WeightedCache<EncodedKey, EncodedChunk>>);

impl EncodedCache {
    /// A cache of so many bytes.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let weigh = |name: &EncodedKey, made: &EncodedChunk| {
            name.bytes().saturating_add(made.as_ref().map_or(0, |(_, chunk)| chunk.len() as u64))
        };
        Self(Arc::new(WeightedCache::new(capacity_bytes, weigh)))
    }

    /// The chunk as it is now: as it is remembered, as somebody makes it at this moment, or as `make` makes it, once for
    /// all who want it. What began before the call is given only if it is of the version that `look` finds.
    ///
    /// # Errors
    /// Those of `look` and `make`.
    pub async fn get<'a>(
        &self,
        name: &EncodedKey,
        look: impl Fn() -> BoxFuture<'a, LoadResult<Option<Version>>> + Send,
        make: BoxFuture<'static, LoadResult<EncodedChunk>>,
    ) -> LoadResult<EncodedChunk> {
        let mut make = Some(make);
        for _ in 0..LOAD_ATTEMPTS {
            let known = self.0.contains(name).then(|| self.0.cached(name)).flatten();
            if let Some(known) = &known
                && look().await?.as_ref() == version(known)
            {
                return Ok(known.clone());
            }
            let is_new =
                |made: &EncodedChunk| known.as_ref().is_none_or(|known| version(known) != version(made));
            match self.0.join_refresh(name, is_new) {
                Join::Hit(_) => {}
                Join::Follower(waiter) => {
                    let (now, made) = join(look(), waiter.wait()).await;
                    let now = now?;
                    if let Some(made) = made.transpose()?
                        && version(&made) == now.as_ref()
                    {
                        return Ok(made);
                    }
                }
                Join::Leader(ticket, waiter) => {
                    let Some(make) = make.take() else { break };
                    self.0.load(ticket, make);
                    let abandoned = || Err(ArrayError::Abandoned { what: name.path.to_string() });
                    return waiter.wait().await.unwrap_or_else(abandoned);
                }
            }
        }
        // What is stored changes faster than others make something of it.
        match make {
            Some(make) => make.await,
            None => Err(ArrayError::Abandoned { what: name.path.to_string() }),
        }
    }
}

fn version(made: &EncodedChunk) -> Option<&Version> {
    made.as_ref().map(|(version, _)| version)
}

impl Evictable for EncodedCache {
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        vec![(CacheKind::Encoded, self.0.usage())]
    }

    fn purge(&self, mount: &str, prefix: &StorePrefix) -> u64 {
        self.0.purge(|name| *name.mount == *mount && is_node_below(&name.path, prefix))
    }

    fn evict_half(&self) {
        self.0.evict_half();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    fn name(coords: &[u64]) -> EncodedKey {
        let path = NodePath::parse("a").unwrap();
        EncodedKey { mount: "m".into(), path, recipe: "auto/raw".into(), coords: coords.to_vec() }
    }

    /// What a look finds.
    fn at(version: &Version) -> BoxFuture<'_, LoadResult<Option<Version>>> {
        Box::pin(std::future::ready(Ok(Some(version.clone()))))
    }

    /// What is asked for while this version is stored, if it is made as these bytes.
    async fn get(cache: &EncodedCache, name: &EncodedKey, stored: &str, chunk: &'static str) -> Bytes {
        let stored = Version::strong(stored);
        let make = Box::pin(std::future::ready(Ok(Some((stored.clone(), Bytes::from(chunk))))));
        cache.get(name, || at(&stored), make).await.unwrap().unwrap().1
    }

    #[tokio::test]
    async fn a_chunk_is_made_once_for_each_version_of_what_it_is_made_of() {
        let cache = EncodedCache::new(1 << 20);
        assert_eq!(get(&cache, &name(&[0]), "1", "one").await, "one");
        assert_eq!(get(&cache, &name(&[0]), "1", "other").await, "one");
        assert_eq!(get(&cache, &name(&[0]), "2", "two").await, "two");
        assert_eq!(get(&cache, &name(&[1]), "1", "next").await, "next");
        assert_eq!(get(&cache, &name(&[0]), "2", "other").await, "two");
    }

    #[tokio::test]
    async fn a_cache_of_no_bytes_remembers_nothing() {
        let cache = EncodedCache::new(0);
        assert_eq!(get(&cache, &name(&[0]), "1", "one").await, "one");
        assert_eq!(get(&cache, &name(&[0]), "1", "other").await, "other");
    }

    #[tokio::test]
    async fn nothing_is_made_where_nothing_is_stored() {
        let cache = EncodedCache::new(1 << 20);
        let make = Box::pin(std::future::ready(Ok(None)));
        let made = cache.get(&name(&[0]), || Box::pin(std::future::ready(Ok(None))), make).await;
        assert_eq!(made.unwrap(), None);
    }

    /// The chunk, made of what is stored at two moments: at first while this version is stored, and then while that is.
    async fn changing(cache: EncodedCache, looks: &AtomicUsize, makes: Arc<AtomicUsize>) -> Bytes {
        let make = Box::pin(async move {
            let number = makes.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            let version = if number == 0 { "old" } else { "new" };
            Ok(Some((Version::strong(version), Bytes::from(version))))
        });
        let new = Version::strong("new");
        let look = || {
            looks.fetch_add(1, Ordering::SeqCst);
            at(&new)
        };
        cache.get(&name(&[0]), look, make).await.unwrap().unwrap().1
    }

    #[tokio::test]
    async fn whoever_comes_later_is_given_nothing_that_is_older() {
        let (cache, looks) = (EncodedCache::new(1 << 20), AtomicUsize::new(0));
        let makes = Arc::new(AtomicUsize::new(0));
        let all = (0..10).map(|_| changing(cache.clone(), &looks, Arc::clone(&makes)));
        let given = join_all(all).await;
        // The first began before the write; all others share what the second makes.
        assert_eq!(given[0], "old");
        assert!(given[1..].iter().all(|chunk| chunk == "new"), "{given:?}");
        assert_eq!(makes.load(Ordering::SeqCst), 2);
        assert!(looks.load(Ordering::SeqCst) >= 9);
    }

    #[tokio::test]
    async fn a_chunk_that_is_made_is_made_once_for_all_who_want_it() {
        let (cache, makes) = (EncodedCache::new(0), AtomicUsize::new(0));
        let makes = Arc::new(makes);
        let all = (0..10).map(|_| {
            let (cache, makes) = (cache.clone(), Arc::clone(&makes));
            async move {
                let one = Version::strong("1");
                let make = Box::pin(async move {
                    makes.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    Ok(Some((Version::strong("1"), Bytes::from("one"))))
                });
                cache.get(&name(&[0]), || at(&one), make).await.unwrap()
            }
        });
        let given = join_all(all).await;
        assert!(given.iter().all(|made| made.as_ref().is_some_and(|(_, chunk)| chunk == "one")));
        assert_eq!(makes.load(Ordering::SeqCst), 1);
    }
}
