//! [`CachedSource`]: a [`ChunkSource`] that remembers what the one below it gave, and asks it for nothing twice at once.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use tracing::Instrument;

use super::CacheOptions;
use super::caches::{CacheKind, Evictable, is_key_below};
use super::parts_asked::PartsAsked;
use super::single_flight::{Follower, Join, Leader};
use super::uncached::UncachedSource;
use super::version_index::VersionIndex;
use super::weighted_cache::{CacheUsage, Generation, LOAD_ATTEMPTS, LoadResult, WeightedCache};
use crate::array::{
    ArrayError, ChunkData, ChunkLocation, ChunkLookup, ChunkSource, FetchBudget, ReadContext, StoredKey,
    StoredValue,
};
use crate::chunk::Elements;
use crate::codec::CodecChain;
use crate::codec::sharding_indexed::ShardIndex;
use crate::key::StorePrefix;

/// The part of what is for indexes that is for versions.
const VERSIONS_SHARE: u64 = 4;
/// Chunks of no more bytes are decoded whole each time: that takes no longer than all the rest of a request.
const ALWAYS_WHOLE_BYTES: u64 = 64 << 10;
/// What an inner chunk takes in a shard's index in memory.
const INDEX_ENTRY_BYTES: u64 = 16;

/// What the description of a stored value takes in memory, which its parts share: roughly, in bytes.
const VALUE_BYTES: u64 = 200;

/// What a decoded chunk or an index is remembered under: the bytes it came from, and how they were decoded.
#[derive(Clone, Debug)]
struct PartId {
    value: Arc<StoredValue>,
    range: Range<u64>,
    chain: u64,
}

impl PartialEq for PartId {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.value, &other.value);
        let is_same_value =
            || one.key == two.key && one.mount == two.mount && one.info.version == two.info.version;
        self.range == other.range && self.chain == other.chain && (Arc::ptr_eq(one, two) || is_same_value())
    }
}

impl Eq for PartId {}

impl Hash for PartId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.key.hash(state);
        self.value.info.version.hash(state);
        self.range.hash(state);
        self.chain.hash(state);
    }
}

impl PartId {
    fn new(value: &Arc<StoredValue>, chain: &CodecChain, range: Range<u64>) -> Self {
        Self { value: Arc::clone(value), range, chain: chain.id() }
    }

    /// All of a value, or of a shard its index.
    fn whole(value: &Arc<StoredValue>, chain: &CodecChain) -> Self {
        Self::new(value, chain, 0..value.info.size)
    }

    /// Bytes of memory, beside those of every key.
    fn bytes(&self) -> u64 {
        (self.value.key.as_str().len() as u64).saturating_add(VALUE_BYTES)
    }
}

/// A source that remembers. Clones share what they remember.
#[derive(Clone, Debug)]
pub struct CachedSource {
    inner: Arc<dyn ChunkSource>,
    decoded: Arc<WeightedCache<PartId, Elements>>,
    indexes: Arc<WeightedCache<PartId, Arc<ShardIndex>>>,
    finds: VersionIndex,
    parts_asked: Arc<PartsAsked>,
}

impl CachedSource {
    /// Remembers what `inner` gives.
    #[must_use]
    pub fn new(inner: Arc<dyn ChunkSource>, options: CacheOptions) -> Self {
        let decoded_bytes = options.decoded_size - options.answers_bytes();
        let decoded = WeightedCache::new(decoded_bytes, |id: &PartId, elements: &Elements| {
            id.bytes().saturating_add(elements.bytes() as u64)
        });
        let versions_bytes = options.index_size / VERSIONS_SHARE;
        let indexes = WeightedCache::new(
            options.index_size - versions_bytes,
            |id: &PartId, index: &Arc<ShardIndex>| {
                id.bytes().saturating_add((index.len() as u64).saturating_mul(INDEX_ENTRY_BYTES))
            },
        );
        let finds = VersionIndex::new(versions_bytes);
        let parts_asked = Arc::new(PartsAsked::new());
        Self { inner, decoded: Arc::new(decoded), indexes: Arc::new(indexes), finds, parts_asked }
    }

    /// Whether what has to be read of a chunk in any case is remembered, of the last version that anything is.
    fn caches(&self, key: &StoredKey, chain: &CodecChain) -> bool {
        self.finds.latest_version(key).is_some_and(|value| {
            let id = PartId::whole(&value, chain);
            if chain.sharding().is_some() { self.indexes.contains(&id) } else { self.decoded.contains(&id) }
        })
    }

    /// Remembers what was read of a chunk since then.
    fn insert_decoded(&self, found: &ChunkLookup, chain: &CodecChain, since: Since) {
        let Some(value) = found.value.as_ref().filter(|value| value.info.version.is_settled()) else {
            return;
        };
        let id = PartId::whole(value, chain);
        match &found.part {
            ChunkData::Nothing => return,
            ChunkData::Elements(elements) => self.decoded.insert(&id, elements, since.decoded),
            ChunkData::Index(index) => self.indexes.insert(&id, index, since.indexes),
        }
        self.finds.record_version(value);
    }

    /// Loads what was claimed, in a task that no single caller can end by leaving; it ends when all have left.
    fn load(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        claimed: Vec<Leader<PartId, LoadResult<Elements>>>,
        trace: &Arc<ReadContext>,
    ) {
        if claimed.is_empty() {
            return;
        }
        let (source, value, chain, trace) =
            (self.clone(), Arc::clone(value), Arc::clone(chain), Arc::clone(trace));
        let load = async move {
            let ranges: Vec<Range<u64>> = claimed.iter().map(|ticket| ticket.key().range.clone()).collect();
            let outcomes = tokio::select! {
                outcomes = source.inner.elements(&value, &chain, &ranges, &trace) => outcomes,
                _ = join_all(claimed.iter().map(Leader::cancelled)) => return,
            };
            let is_settled = value.info.version.is_settled();
            for (ticket, outcome) in claimed.into_iter().zip(outcomes) {
                // Nobody would ever ask again for what is unsettled.
                if is_settled { source.decoded.complete(ticket, outcome) } else { ticket.complete(outcome) }
            }
            source.finds.record_version(&value);
        };
        tokio::spawn(load.in_current_span());
    }
}

/// When a read began.
#[derive(Clone, Copy, Debug)]
struct Since {
    decoded: Generation,
    indexes: Generation,
}

impl Evictable for CachedSource {
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        let indexes = self.indexes.usage().and(self.finds.usage());
        vec![(CacheKind::Decoded, self.decoded.usage()), (CacheKind::Index, indexes)]
    }

    fn purge(&self, mount: &str, prefix: &StorePrefix) -> u64 {
        let is_meant = |id: &PartId| *id.value.mount == *mount && is_key_below(&id.value.key, prefix);
        // Versions first: what is looked for by them is found by nobody then.
        self.finds.purge(mount, prefix);
        self.parts_asked.clear();
        self.indexes.purge(is_meant).saturating_add(self.decoded.purge(is_meant))
    }

    fn evict_half(&self) {
        self.decoded.evict_half();
        self.indexes.evict_half();
        self.finds.evict_half();
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

    fn prefers_whole(&self, place: ChunkLocation<'_>, chain: &CodecChain, part: &CodecChain) -> bool {
        let decoded_bytes = chain.decoded_bytes();
        self.decoded.fits(decoded_bytes)
            && (decoded_bytes <= ALWAYS_WHOLE_BYTES || self.parts_asked.is_another(place, part.id()))
    }

    fn uncached(&self) -> Option<Arc<dyn ChunkSource>> {
        let (inner, decoded) = (Arc::clone(&self.inner), Arc::clone(&self.decoded));
        Some(Arc::new(UncachedSource::new(inner, move |chunks| decoded.missed(chunks))))
    }

    fn try_find(&self, key: &StoredKey, chain: &CodecChain, trace: &ReadContext) -> Option<ChunkLookup> {
        let id = PartId::whole(&self.finds.latest_version(key)?, chain);
        let part = if chain.sharding().is_some() {
            ChunkData::Index(self.indexes.cached(&id)?)
        } else {
            ChunkData::Elements(self.decoded.cached(&id)?)
        };
        if !id.value.is_fresh(trace) {
            return None;
        }
        if matches!(part, ChunkData::Elements(_)) {
            trace.add_hits(1);
        }
        Some(ChunkLookup { value: Some(id.value), part })
    }

    fn try_elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &CodecChain,
        range: &Range<u64>,
    ) -> Option<Elements> {
        self.decoded.cached(&PartId::new(value, chain, range.clone()))
    }

    fn try_shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &CodecChain,
        shard: &Range<u64>,
    ) -> Option<Arc<ShardIndex>> {
        self.indexes.cached(&PartId::new(value, chain, shard.clone()))
    }

    async fn lookup_version(
        &self,
        key: &StoredKey,
        trace: &ReadContext,
    ) -> LoadResult<Option<Arc<StoredValue>>> {
        self.finds.lookup_version(key, trace).await
    }

    async fn fetch_or_lookup(
        &self,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        trace: &Arc<ReadContext>,
    ) -> LoadResult<ChunkLookup> {
        let is_remembered = || self.caches(key, chain);
        if is_remembered() {
            return Ok(ChunkLookup::seen(self.finds.lookup_version(key, trace).await?));
        }
        let (source, bound) = (self.clone(), Arc::clone(chain));
        let since = Since { decoded: self.decoded.generation(), indexes: self.indexes.generation() };
        let land = move |found: &ChunkLookup| source.insert_decoded(found, &bound, since);
        let (found, is_own) =
            self.finds.fetch_or_lookup(&self.inner, key, chain, trace, is_remembered, land).await?;
        match (&found.part, is_own) {
            (ChunkData::Elements(_), true) => {
                self.decoded.missed(1);
                trace.add_misses(1);
            }
            (ChunkData::Elements(_), false) => trace.add_hits(1),
            (ChunkData::Index(_), true) => self.indexes.missed(1),
            (ChunkData::Index(_), false) | (ChunkData::Nothing, _) => {}
        }
        Ok(found)
    }

    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        trace: &Arc<ReadContext>,
    ) -> Vec<LoadResult<Elements>> {
        let mut elements: Vec<Option<LoadResult<Elements>>> = ranges.iter().map(|_| None).collect();
        let mut missed = 0;
        for _ in 0..LOAD_ATTEMPTS {
            let (mut claimed, mut waiting): (Vec<_>, Vec<(usize, Follower<_>)>) = (Vec::new(), Vec::new());
            let wanted: Vec<usize> = (0..ranges.len()).filter(|&place| elements[place].is_none()).collect();
            let ids: Vec<PartId> =
                wanted.iter().map(|&place| PartId::new(value, chain, ranges[place].clone())).collect();
            for (place, boarding) in wanted.into_iter().zip(self.decoded.join_loads(&ids)) {
                match boarding {
                    Join::Hit(outcome) => elements[place] = Some(outcome),
                    Join::Follower(waiter) => waiting.push((place, waiter)),
                    Join::Leader(ticket, waiter) => {
                        claimed.push(ticket);
                        waiting.push((place, waiter));
                    }
                }
            }
            missed += claimed.len();
            self.load(value, chain, claimed, trace);
            for (place, waiter) in waiting {
                elements[place] = waiter.wait().await;
            }
            if elements.iter().all(Option::is_some) {
                break;
            }
        }
        trace.add_misses(missed as u64);
        trace.add_hits(ranges.len().saturating_sub(missed) as u64);
        let abandoned = || Err(ArrayError::Abandoned { what: value.key.to_string() });
        elements.into_iter().map(|outcome| outcome.unwrap_or_else(abandoned)).collect()
    }

    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        trace: &Arc<ReadContext>,
    ) -> LoadResult<Arc<ShardIndex>> {
        if !value.info.version.is_settled() {
            return self.inner.shard_index(value, chain, shard, trace).await;
        }
        let id = PartId::new(value, chain, shard.clone());
        let (inner, value, chain) = (Arc::clone(&self.inner), Arc::clone(value), Arc::clone(chain));
        let trace = Arc::clone(trace);
        let finds = self.finds.clone();
        let load = async move {
            let index = inner.shard_index(&value, &chain, shard, &trace).await?;
            finds.record_version(&value);
            Ok(index)
        };
        let index = self.indexes.get(&id, Box::pin(load)).await;
        index.unwrap_or_else(|| Err(ArrayError::Abandoned { what: id.value.key.to_string() }))
    }
}
