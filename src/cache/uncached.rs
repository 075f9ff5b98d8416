//! [`UncachedSource`]: a [`ChunkSource`] for chunks that are needed once: they are counted, and not remembered.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use super::weighted_cache::LoadResult;
use crate::array::{ArrayError, ChunkLookup, ChunkSource, ReadContext, StoredKey, StoredValue};
use crate::chunk::Elements;
use crate::codec::{CodecChain, ShardIndex};

/// What the source below gives, as it is.
pub(crate) struct UncachedSource<M> {
    inner: Arc<dyn ChunkSource>,
    missed: M,
}

impl<M: Fn(usize)> UncachedSource<M> {
    /// Passes on what `inner` gives; `missed` is told of how many chunks were loaded.
    pub(crate) fn new(inner: Arc<dyn ChunkSource>, missed: M) -> Self {
        Self { inner, missed }
    }

    fn count(&self, chunks: usize, trace: &ReadContext) {
        (self.missed)(chunks);
        trace.add_misses(chunks as u64);
    }
}

impl<M> fmt::Debug for UncachedSource<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PassingSource").field(&self.inner).finish()
    }
}

#[async_trait]
impl<M: Fn(usize) + Send + Sync> ChunkSource for UncachedSource<M> {
    fn concurrency(&self) -> usize {
        self.inner.concurrency()
    }

    async fn fetch_or_lookup(
        &self,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        trace: &Arc<ReadContext>,
    ) -> LoadResult<ChunkLookup> {
        self.count(1, trace);
        self.inner.fetch_or_lookup(key, chain, trace).await
    }

    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        trace: &Arc<ReadContext>,
    ) -> Vec<Result<Elements, ArrayError>> {
        self.count(ranges.len(), trace);
        self.inner.elements(value, chain, ranges, trace).await
    }

    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        trace: &Arc<ReadContext>,
    ) -> LoadResult<Arc<ShardIndex>> {
        self.inner.shard_index(value, chain, shard, trace).await
    }
}
