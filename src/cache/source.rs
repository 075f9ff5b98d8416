//! [`CachedSource`]: a [`ChunkSource`] that caches decoded chunks and shard indexes of the source below it.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use tracing::Instrument;

use super::caches::{CacheKind, Evictable, PurgeOutcome, base_name, is_key_below, is_of_mount};
use super::generation::Generation;
use super::options::CacheOptions;
use super::recent_parts::RecentParts;
use super::single_flight::{Follower, Join, Leader};
use super::uncached::UncachedSource;
use super::version_index::VersionIndex;
use super::weighted_cache::{CacheUsage, LOAD_ATTEMPTS, LoadResult, WeightedCache};
use crate::array::{
    ArrayError, ChunkData, ChunkLocation, ChunkLookup, ChunkSource, FetchBudget, ReadContext, StoredKey,
    StoredValue,
};
use crate::chunk::Elements;
use crate::codec::{CodecChain, ShardIndex};
use crate::key::StorePrefix;

/// The bytes for indexes divided by this are for versions.
const VERSIONS_SHARE: u64 = 4;
/// Chunks of at most this many bytes are always decoded whole: that takes no longer than the rest of a request.
const ALWAYS_WHOLE_BYTES: u64 = 64 << 10;
/// Bytes that an inner chunk takes in the index of a shard.
const INDEX_ENTRY_BYTES: u64 = 16;

/// Bytes that the description of a stored value takes, about; its parts share it.
const VALUE_BYTES: u64 = 200;

/// The key of a decoded chunk or a shard index: the bytes that it came from, and the chain that decoded them.
#[derive(Clone, Debug)]
struct DecodedKey {
    value: Arc<StoredValue>,
    range: Range<u64>,
    chain: u64,
}

impl PartialEq for DecodedKey {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.value, &other.value);
        // A version of a key means the same bytes in all snapshots of a mount.
        let is_same_value = || {
            one.key == two.key
                && base_name(&one.mount) == base_name(&two.mount)
                && one.info.version == two.info.version
        };
        self.range == other.range && self.chain == other.chain && (Arc::ptr_eq(one, two) || is_same_value())
    }
}

impl Eq for DecodedKey {}

impl Hash for DecodedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.key.hash(state);
        self.value.info.version.hash(state);
        self.range.hash(state);
        self.chain.hash(state);
    }
}

impl DecodedKey {
    fn new(value: &Arc<StoredValue>, chain: &CodecChain, range: Range<u64>) -> Self {
        Self { value: Arc::clone(value), range, chain: chain.id() }
    }

    /// The key of a chunk that is a whole stored value, or of the index of such a shard.
    fn for_value(value: &Arc<StoredValue>, chain: &CodecChain) -> Self {
        Self::new(value, chain, 0..value.info.size)
    }

    /// Bytes of memory, beside the size of the type.
    fn bytes(&self) -> u64 {
        (self.value.key.as_str().len() as u64).saturating_add(VALUE_BYTES)
    }
}

/// A source that caches what the source below it returns, and sends it no request twice at a time. Clones share the caches.
#[derive(Clone, Debug)]
pub struct CachedSource {
    inner: Arc<dyn ChunkSource>,
    decoded: Arc<WeightedCache<DecodedKey, Elements>>,
    indexes: Arc<WeightedCache<DecodedKey, Arc<ShardIndex>>>,
    versions: VersionIndex,
    recent_parts: Arc<RecentParts>,
}

impl CachedSource {
    /// A source that caches what `inner` returns.
    #[must_use]
    pub fn new(inner: Arc<dyn ChunkSource>, options: &CacheOptions) -> Self {
        let decoded_bytes = options.decoded_size - options.response_bytes();
        let decoded = WeightedCache::new(decoded_bytes, |id: &DecodedKey, elements: &Elements| {
            id.bytes().saturating_add(elements.bytes() as u64)
        });
        let versions_bytes = options.index_size / VERSIONS_SHARE;
        let indexes = WeightedCache::new(
            options.index_size - versions_bytes,
            |id: &DecodedKey, index: &Arc<ShardIndex>| {
                id.bytes().saturating_add((index.len() as u64).saturating_mul(INDEX_ENTRY_BYTES))
            },
        );
        let versions = VersionIndex::new(versions_bytes);
        let recent_parts = Arc::new(RecentParts::new());
        Self { inner, decoded: Arc::new(decoded), indexes: Arc::new(indexes), versions, recent_parts }
    }

    /// Whether the part of a chunk that every request needs is cached at its latest known version: the whole chunk, or the
    /// index of a shard.
    fn has_required_part(&self, key: &StoredKey, chain: &CodecChain) -> bool {
        self.versions.latest_version(key).is_some_and(|value| {
            let id = DecodedKey::for_value(&value, chain);
            if chain.sharding().is_some() { self.indexes.contains(&id) } else { self.decoded.contains(&id) }
        })
    }

    /// Caches what was read of a chunk since the beginning of these generations.
    fn insert_part(&self, found: &ChunkLookup, chain: &CodecChain, since: Generations) {
        let Some(value) = found.value.as_ref().filter(|value| value.info.version.is_settled()) else {
            return;
        };
        let id = DecodedKey::for_value(value, chain);
        match &found.data {
            ChunkData::NotRead => return,
            ChunkData::Elements(elements) => self.decoded.insert(&id, elements, since.decoded),
            ChunkData::Index(index) => self.indexes.insert(&id, index, since.indexes),
        }
        self.versions.record_version(value);
    }

    /// Loads the parts of a value that these leaders stand for, in a task that is cancelled only when all of their followers
    /// are dropped.
    fn spawn_load(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        leaders: Vec<Leader<DecodedKey, LoadResult<Elements>>>,
        context: &Arc<ReadContext>,
    ) {
        if leaders.is_empty() {
            return;
        }
        let (source, value, chain, context) =
            (self.clone(), Arc::clone(value), Arc::clone(chain), Arc::clone(context));
        let load = async move {
            let ranges: Vec<Range<u64>> = leaders.iter().map(|leader| leader.key().range.clone()).collect();
            let outcomes = tokio::select! {
                outcomes = source.inner.elements(&value, &chain, &ranges, &context) => outcomes,
                _ = join_all(leaders.iter().map(Leader::cancelled)) => return,
            };
            let is_settled = value.info.version.is_settled();
            for (leader, outcome) in leaders.into_iter().zip(outcomes) {
                // An unsettled version is never requested again, so caching it would be useless.
                if is_settled { source.decoded.complete(leader, outcome) } else { leader.complete(outcome) }
            }
            source.versions.record_version(&value);
        };
        tokio::spawn(load.in_current_span());
    }
}

/// The generations of the caches when a read began.
#[derive(Clone, Copy, Debug)]
struct Generations {
    decoded: Generation,
    indexes: Generation,
}

impl Evictable for CachedSource {
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        let indexes = self.indexes.usage().and(self.versions.usage());
        vec![(CacheKind::Decoded, self.decoded.usage()), (CacheKind::Index, indexes)]
    }

    fn purge(&self, mount: &str, prefix: &StorePrefix) -> PurgeOutcome {
        let matches =
            |id: &DecodedKey| is_of_mount(&id.value.mount, mount) && is_key_below(&id.value.key, prefix);
        // Versions first: without them no request finds the other entries.
        self.versions.purge(mount, prefix);
        self.recent_parts.clear();
        PurgeOutcome::of_memory(self.indexes.purge(matches).saturating_add(self.decoded.purge(matches)))
    }

    fn evict_half(&self) {
        self.decoded.evict_half();
        self.indexes.evict_half();
        self.versions.evict_half();
    }
}

#[async_trait]
impl ChunkSource for CachedSource {
    fn concurrency(&self) -> usize {
        self.inner.concurrency()
    }

    fn budget(&self) -> Option<FetchBudget> {
        self.inner.budget()
    }

    fn prefers_whole(&self, location: ChunkLocation<'_>, chain: &CodecChain, part: &CodecChain) -> bool {
        let decoded_bytes = chain.decoded_bytes();
        self.decoded.fits(decoded_bytes)
            && (decoded_bytes <= ALWAYS_WHOLE_BYTES || self.recent_parts.record_request(location, part.id()))
    }

    fn uncached(&self) -> Option<Arc<dyn ChunkSource>> {
        let (inner, decoded) = (Arc::clone(&self.inner), Arc::clone(&self.decoded));
        Some(Arc::new(UncachedSource::new(inner, move |chunks| decoded.add_misses(chunks))))
    }

    fn try_fetch_or_lookup(
        &self,
        key: &StoredKey,
        chain: &CodecChain,
        context: &ReadContext,
    ) -> Option<ChunkLookup> {
        let id = DecodedKey::for_value(&self.versions.latest_version(key)?, chain);
        let data = if chain.sharding().is_some() {
            ChunkData::Index(self.indexes.get(&id)?)
        } else {
            ChunkData::Elements(self.decoded.get(&id)?)
        };
        if !id.value.is_fresh(context) {
            return None;
        }
        if matches!(data, ChunkData::Elements(_)) {
            context.add_hits(1);
        }
        Some(ChunkLookup { value: Some(id.value), data })
    }

    fn try_elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &CodecChain,
        range: &Range<u64>,
    ) -> Option<Elements> {
        self.decoded.get(&DecodedKey::new(value, chain, range.clone()))
    }

    fn try_shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &CodecChain,
        shard: &Range<u64>,
    ) -> Option<Arc<ShardIndex>> {
        self.indexes.get(&DecodedKey::new(value, chain, shard.clone()))
    }

    async fn lookup_version(
        &self,
        key: &StoredKey,
        context: &ReadContext,
    ) -> LoadResult<Option<Arc<StoredValue>>> {
        self.versions.lookup_version(key, context).await
    }

    async fn fetch_or_lookup(
        &self,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        context: &Arc<ReadContext>,
    ) -> LoadResult<ChunkLookup> {
        let is_cached = || self.has_required_part(key, chain);
        if is_cached() {
            return Ok(ChunkLookup::version_only(self.versions.lookup_version(key, context).await?));
        }
        let (source, bound) = (self.clone(), Arc::clone(chain));
        let since = Generations { decoded: self.decoded.generation(), indexes: self.indexes.generation() };
        let on_read = move |found: &ChunkLookup| source.insert_part(found, &bound, since);
        let (found, is_own) =
            self.versions.fetch_or_lookup(&self.inner, key, chain, context, is_cached, on_read).await?;
        match (&found.data, is_own) {
            (ChunkData::Elements(_), true) => {
                self.decoded.add_misses(1);
                context.add_misses(1);
            }
            (ChunkData::Elements(_), false) => context.add_hits(1),
            (ChunkData::Index(_), true) => self.indexes.add_misses(1),
            (ChunkData::Index(_), false) | (ChunkData::NotRead, _) => {}
        }
        Ok(found)
    }

    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        context: &Arc<ReadContext>,
    ) -> Vec<LoadResult<Elements>> {
        let mut elements: Vec<Option<LoadResult<Elements>>> = ranges.iter().map(|_| None).collect();
        let mut missed = 0;
        for _ in 0..LOAD_ATTEMPTS {
            let (mut leaders, mut followers): (Vec<_>, Vec<(usize, Follower<_>)>) = (Vec::new(), Vec::new());
            let missing: Vec<usize> =
                (0..ranges.len()).filter(|&position| elements[position].is_none()).collect();
            let ids: Vec<DecodedKey> = missing
                .iter()
                .map(|&position| DecodedKey::new(value, chain, ranges[position].clone()))
                .collect();
            for (position, join) in missing.into_iter().zip(self.decoded.join_loads(&ids)) {
                match join {
                    Join::Hit(outcome) => elements[position] = Some(outcome),
                    Join::Follower(follower) => followers.push((position, follower)),
                    Join::Leader(leader, follower) => {
                        leaders.push(leader);
                        followers.push((position, follower));
                    }
                }
            }
            missed += leaders.len();
            self.spawn_load(value, chain, leaders, context);
            for (position, follower) in followers {
                elements[position] = follower.wait().await;
            }
            if elements.iter().all(Option::is_some) {
                break;
            }
        }
        context.add_misses(missed as u64);
        context.add_hits(ranges.len().saturating_sub(missed) as u64);
        let cancelled = || Err(ArrayError::LoadCancelled { what: value.key.to_string() });
        elements.into_iter().map(|outcome| outcome.unwrap_or_else(cancelled)).collect()
    }

    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        context: &Arc<ReadContext>,
    ) -> LoadResult<Arc<ShardIndex>> {
        if !value.info.version.is_settled() {
            return self.inner.shard_index(value, chain, shard, context).await;
        }
        let id = DecodedKey::new(value, chain, shard.clone());
        let (inner, value, chain) = (Arc::clone(&self.inner), Arc::clone(value), Arc::clone(chain));
        let context = Arc::clone(context);
        let versions = self.versions.clone();
        let load = async move {
            let index = inner.shard_index(&value, &chain, shard, &context).await?;
            versions.record_version(&value);
            Ok(index)
        };
        let index = self.indexes.get_or_load(&id, Box::pin(load)).await;
        index.unwrap_or_else(|| Err(ArrayError::LoadCancelled { what: id.value.key.to_string() }))
    }
}
