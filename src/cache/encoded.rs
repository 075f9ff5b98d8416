//! [`EncodedCache`]: chunks that were encoded anew, by what they were made of.
//!
//! Chunks in other shapes or by other codecs than they are stored in take long to make and are asked for again. Each is
//! remembered under the version that names all it was made of.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;

use super::caches::{Kind, Remembers, is_node_below};
use super::shelf::{Shelf, Usage};
use crate::array::ArrayError;
use crate::chunk::ChunkCoords;
use crate::key::{NodePath, StorePrefix};
use crate::store::Version;

/// Bytes that the name of a chunk takes beside its path and recipe.
const NAME_BYTES: u64 = 200;
/// The part of the cache that is for what was made last.
const LATEST_SHARE: u64 = 16;

/// A chunk that is made, whatever it is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EncodedName {
    /// The mount's name.
    pub mount: Arc<str>,
    /// The array.
    pub path: NodePath,
    /// How it is made.
    pub recipe: Arc<str>,
    /// Its coordinates, in the grid that the recipe gives the array.
    pub coords: ChunkCoords,
}

impl EncodedName {
    fn bytes(&self) -> u64 {
        let texts =
            self.path.as_str().len().saturating_add(self.coords.len().saturating_mul(size_of::<u64>()));
        (texts as u64).saturating_add(NAME_BYTES)
    }
}

/// Remembers encoded chunks; the least used fall out. Clones share them.
#[derive(Clone, Debug)]
pub struct EncodedCache {
    chunks: Arc<Shelf<(EncodedName, Version), Bytes>>,
    latest: Arc<Shelf<EncodedName, Version>>,
}

impl EncodedCache {
    /// A cache of so many bytes.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let latest_bytes = capacity_bytes / LATEST_SHARE;
        let chunks =
            Shelf::new(capacity_bytes - latest_bytes, |(name, _): &(EncodedName, Version), chunk: &Bytes| {
                name.bytes().saturating_add(chunk.len() as u64)
            });
        let latest = Shelf::new(latest_bytes, |name: &EncodedName, _: &Version| name.bytes());
        Self { chunks: Arc::new(chunks), latest: Arc::new(latest) }
    }

    /// The version that was made last, if that is remembered. What it is made of may have changed since.
    #[must_use]
    pub fn latest(&self, name: &EncodedName) -> Option<Version> {
        let version = self.latest.recall(name)?;
        self.chunks.holds(&(name.clone(), version.clone())).then_some(version)
    }

    /// The chunk of this version, if it is remembered.
    #[must_use]
    pub fn recall(&self, name: &EncodedName, version: &Version) -> Option<Bytes> {
        self.chunks.recall(&(name.clone(), version.clone()))
    }

    /// The chunk of this version, as remembered or as `load` makes it, which is run once for all who want it.
    ///
    /// # Errors
    /// Those of `load`.
    pub async fn get(
        &self,
        name: &EncodedName,
        version: &Version,
        load: BoxFuture<'static, Result<Bytes, ArrayError>>,
    ) -> Result<Bytes, ArrayError> {
        let since = self.latest.epoch();
        let chunk = self.chunks.get(&(name.clone(), version.clone()), load).await;
        let chunk = chunk.unwrap_or_else(|| Err(ArrayError::Abandoned { what: name.path.to_string() }))?;
        self.latest.remember(name, version, since);
        Ok(chunk)
    }
}

impl Remembers for EncodedCache {
    fn usage(&self) -> Vec<(Kind, Usage)> {
        vec![(Kind::Encoded, self.chunks.usage().and(self.latest.usage().held()))]
    }

    fn forget(&self, mount: &str, prefix: &StorePrefix) -> u64 {
        let is_meant = |name: &EncodedName| *name.mount == *mount && is_node_below(&name.path, prefix);
        self.latest.forget(is_meant);
        self.chunks.forget(|(name, _)| is_meant(name))
    }

    fn forget_half(&self) {
        self.chunks.forget_half();
        self.latest.forget_half();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(coords: &[u64]) -> EncodedName {
        let path = NodePath::parse("a").unwrap();
        EncodedName { mount: "m".into(), path, recipe: "auto/raw".into(), coords: coords.to_vec() }
    }

    async fn get(cache: &EncodedCache, name: &EncodedName, version: &str, chunk: &'static str) -> Bytes {
        let load = Box::pin(async move { Ok(Bytes::from(chunk)) });
        cache.get(name, &Version::strong(version), load).await.unwrap()
    }

    #[tokio::test]
    async fn a_chunk_is_made_once_for_each_version_of_what_it_is_made_of() {
        let cache = EncodedCache::new(1 << 20);
        assert_eq!(cache.latest(&name(&[0])), None);
        assert_eq!(get(&cache, &name(&[0]), "1", "one").await, "one");
        let one = Version::strong("1");
        assert_eq!((cache.latest(&name(&[0])), cache.latest(&name(&[1]))), (Some(one.clone()), None));
        assert_eq!(cache.recall(&name(&[0]), &one).unwrap(), "one");
        assert_eq!(get(&cache, &name(&[0]), "1", "other").await, "one");
        assert_eq!(get(&cache, &name(&[0]), "2", "two").await, "two");
        assert_eq!(get(&cache, &name(&[1]), "1", "next").await, "next");
    }

    #[tokio::test]
    async fn a_cache_of_no_bytes_remembers_nothing() {
        let cache = EncodedCache::new(0);
        assert_eq!(get(&cache, &name(&[0]), "1", "one").await, "one");
        assert_eq!(cache.latest(&name(&[0])), None);
        assert_eq!(get(&cache, &name(&[0]), "1", "other").await, "other");
    }
}
