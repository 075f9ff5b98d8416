//! [`UncachedSource`]: a [`ChunkSource`] for chunks that are needed once, which counts them and does not cache them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use super::weighted_cache::LoadResult;
use crate::array::{ArrayError, ChunkLookup, ChunkSource, ReadContext, StoredKey, StoredValue};
use crate::chunk::Elements;
use crate::codec::{CodecChain, ShardIndex};

/// The source below, with each load counted as a miss.
pub(crate) struct UncachedSource<M> {
    inner: Arc<dyn ChunkSource>,
    on_miss: M,
}

impl<M: Fn(usize)> UncachedSource<M> {
    /// Passes requests on to `inner`, and calls `on_miss` with the number of chunks that each loads.
    pub(crate) fn new(inner: Arc<dyn ChunkSource>, on_miss: M) -> Self {
        Self { inner, on_miss }
    }

    fn count(&self, chunks: usize, context: &ReadContext) {
        (self.on_miss)(chunks);
        context.add_misses(chunks as u64);
    }
}

impl<M> fmt::Debug for UncachedSource<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UncachedSource").field(&self.inner).finish()
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
        context: &Arc<ReadContext>,
    ) -> LoadResult<ChunkLookup> {
        self.count(1, context);
        self.inner.fetch_or_lookup(key, chain, context).await
    }

    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        context: &Arc<ReadContext>,
    ) -> Vec<Result<Elements, ArrayError>> {
        self.count(ranges.len(), context);
        self.inner.elements(value, chain, ranges, context).await
    }

    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        context: &Arc<ReadContext>,
    ) -> LoadResult<Arc<ShardIndex>> {
        self.inner.shard_index(value, chain, shard, context).await
    }
}
