//! [`PassingSource`]: a [`ChunkSource`] for chunks that are needed once: they are counted, and not remembered.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use super::shelf::Outcome;
use crate::array::{ArrayError, ChunkSource, Found, StoredKey, StoredValue, Trace};
use crate::chunk::Elements;
use crate::codec::CodecChain;
use crate::codec::sharding_indexed::ShardIndex;

/// What the source below gives, as it is.
pub(super) struct PassingSource<M> {
    inner: Arc<dyn ChunkSource>,
    missed: M,
}

impl<M: Fn(usize)> PassingSource<M> {
    /// Passes on what `inner` gives; `missed` is told of how many chunks were loaded.
    pub(super) fn new(inner: Arc<dyn ChunkSource>, missed: M) -> Self {
        Self { inner, missed }
    }

    fn count(&self, chunks: usize, trace: &Trace) {
        (self.missed)(chunks);
        trace.add_misses(chunks as u64);
    }
}

impl<M> fmt::Debug for PassingSource<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PassingSource").field(&self.inner).finish()
    }
}

#[async_trait]
impl<M: Fn(usize) + Send + Sync> ChunkSource for PassingSource<M> {
    fn concurrency(&self) -> usize {
        self.inner.concurrency()
    }

    async fn find(&self, key: &StoredKey, chain: &Arc<CodecChain>, trace: &Arc<Trace>) -> Outcome<Found> {
        self.count(1, trace);
        self.inner.find(key, chain, trace).await
    }

    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        trace: &Arc<Trace>,
    ) -> Vec<Result<Elements, ArrayError>> {
        self.count(ranges.len(), trace);
        self.inner.elements(value, chain, ranges, trace).await
    }

    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        trace: &Arc<Trace>,
    ) -> Outcome<Arc<ShardIndex>> {
        self.inner.shard_index(value, chain, shard, trace).await
    }
}
