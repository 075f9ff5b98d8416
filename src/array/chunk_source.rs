//! [`ChunkSource`]: where reads get decoded chunks from.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use super::error::ArrayError;
use super::read_context::ReadContext;
use super::stored::{ChunkLookup, StoredKey, StoredValue};
use crate::chunk::Elements;
use crate::codec::CodecChain;
use crate::codec::sharding_indexed::ShardIndex;
use crate::key::StoreKey;

/// How much is being fetched and decoded, over all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchBudget {
    /// Bytes that may be.
    pub limit_bytes: u64,
    /// Bytes that are, as they were estimated.
    pub in_flight_bytes: u64,
}

/// Where the bytes of a chunk are stored, whatever their version.
#[derive(Clone, Copy, Debug, Hash)]
pub struct ChunkLocation<'a> {
    /// Name of the mount.
    pub mount: &'a str,
    /// Key of the stored value.
    pub key: &'a StoreKey,
    /// First byte of the chunk in the value: 0, but for inner chunks of a shard.
    pub start: u64,
}

/// Gives decoded chunks and shard indexes of stored values.
#[async_trait]
pub trait ChunkSource: std::fmt::Debug + Send + Sync {
    /// Questions to the store of one request that may be under way at a time.
    fn concurrency(&self) -> usize;

    /// How much is being fetched and decoded; `None` where nobody counts.
    fn budget(&self) -> Option<FetchBudget> {
        None
    }

    /// Whether a request that needs no more than `part` of a chunk should decode the chunk whole by `chain`, because it is
    /// remembered then and other parts of it were asked for before. The call counts as a request for that part.
    fn prefers_whole(&self, _location: ChunkLocation<'_>, _chain: &CodecChain, _part: &CodecChain) -> bool {
        false
    }

    /// The source of chunks that are needed once, which are not remembered; `None` where none is in any case.
    fn uncached(&self) -> Option<Arc<dyn ChunkSource>> {
        None
    }

    /// As [`ChunkSource::fetch_or_lookup`], where all of it is in memory and known to be what is stored, no older than the request;
    /// `None` if that cannot be told without waiting.
    fn try_find(&self, _key: &StoredKey, _chain: &CodecChain, _trace: &ReadContext) -> Option<ChunkLookup> {
        None
    }

    /// As [`ChunkSource::elements`] of one range, if they are in memory.
    fn try_elements(
        &self,
        _value: &Arc<StoredValue>,
        _chain: &CodecChain,
        _range: &Range<u64>,
    ) -> Option<Elements> {
        None
    }

    /// As [`ChunkSource::shard_index`], if it is in memory.
    fn try_shard_index(
        &self,
        _value: &Arc<StoredValue>,
        _chain: &CodecChain,
        _shard: &Range<u64>,
    ) -> Option<Arc<ShardIndex>> {
        None
    }

    /// The version that is stored under a key now, no older than the call.
    async fn lookup_version(
        &self,
        key: &StoredKey,
        context: &ReadContext,
    ) -> Result<Option<Arc<StoredValue>>, ArrayError> {
        key.lookup_version(context).await
    }

    /// What is stored under a key now, no older than the call. To read it tells its version as well as to look at it
    /// does, so what has to be read in any case is read at once: a chunk whole, of a shard the index.
    async fn fetch_or_lookup(
        &self,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        context: &Arc<ReadContext>,
    ) -> Result<ChunkLookup, ArrayError>;

    /// The elements (C order, canonical form) that each of these byte ranges of a value decodes to by `chain`, in the
    /// order asked. One that fails does not keep the others from succeeding.
    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        context: &Arc<ReadContext>,
    ) -> Vec<Result<Elements, ArrayError>>;

    /// The index of the shard that stands at `shard` in a value, encoded by `chain`, which has a sharding codec. Ranges
    /// in it count from the start of the shard.
    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        context: &Arc<ReadContext>,
    ) -> Result<Arc<ShardIndex>, ArrayError>;
}
