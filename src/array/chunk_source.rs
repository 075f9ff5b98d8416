//! [`ChunkSource`]: the source of decoded chunks.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use super::error::ArrayError;
use super::read_context::ReadContext;
use super::stored::{ChunkLookup, StoredKey, StoredValue};
use crate::chunk::Elements;
use crate::codec::{CodecChain, ShardIndex};
use crate::key::StoreKey;

/// How much is being fetched and decoded for all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchBudget {
    /// The most bytes that may be in flight.
    pub limit_bytes: u64,
    /// The estimated bytes that are in flight.
    pub in_flight_bytes: u64,
}

/// Where a chunk of any version is stored.
#[derive(Clone, Copy, Debug, Hash)]
pub struct ChunkLocation<'a> {
    /// Name of the mount.
    pub mount: &'a str,
    /// Key of the stored value.
    pub key: &'a StoreKey,
    /// The first byte of the chunk in the value: 0 except for inner chunks of a shard.
    pub start: u64,
}

/// A source of decoded chunks and shard indexes of stored values.
///
/// The methods `try_fetch_or_lookup`, `try_elements` and `try_shard_index` [answer from memory without suspending](super#answers-from-memory-without-suspending).
/// A source without a cache leaves them as they are.
#[async_trait]
pub trait ChunkSource: std::fmt::Debug + Send + Sync {
    /// The most requests to the store that one read may have in flight.
    fn concurrency(&self) -> usize;

    /// How much is being fetched and decoded; `None` if this source does not count it.
    fn budget(&self) -> Option<FetchBudget> {
        None
    }

    /// Whether a request that needs only `part` of a chunk should decode the whole chunk by `chain`: where the chunk is then
    /// cached and other parts of it were requested before. The call counts as a request for that part.
    fn prefers_whole(&self, _location: ChunkLocation<'_>, _chain: &CodecChain, _part: &CodecChain) -> bool {
        false
    }

    /// The source to use for chunks that are needed once and not to be cached; `None` if this source caches nothing.
    fn uncached(&self) -> Option<Arc<dyn ChunkSource>> {
        None
    }

    /// The result of [`ChunkSource::fetch_or_lookup`], if all of it is in memory and known to be what is stored, no older than
    /// the request ([without suspending](super#answers-from-memory-without-suspending)).
    fn try_fetch_or_lookup(
        &self,
        _key: &StoredKey,
        _chain: &CodecChain,
        _trace: &ReadContext,
    ) -> Option<ChunkLookup> {
        None
    }

    /// The result of [`ChunkSource::elements`] for one range, if it is in memory
    /// ([without suspending](super#answers-from-memory-without-suspending)).
    fn try_elements(
        &self,
        _value: &Arc<StoredValue>,
        _chain: &CodecChain,
        _range: &Range<u64>,
    ) -> Option<Elements> {
        None
    }

    /// The result of [`ChunkSource::shard_index`], if it is in memory
    /// ([without suspending](super#answers-from-memory-without-suspending)).
    fn try_shard_index(
        &self,
        _value: &Arc<StoredValue>,
        _chain: &CodecChain,
        _shard: &Range<u64>,
    ) -> Option<Arc<ShardIndex>> {
        None
    }

    /// Returns the version that is stored under a key, no older than the call; `None` if nothing is stored.
    ///
    /// # Errors
    /// Failures of the store.
    async fn lookup_version(
        &self,
        key: &StoredKey,
        context: &ReadContext,
    ) -> Result<Option<Arc<StoredValue>>, ArrayError> {
        key.lookup_version(context).await
    }

    /// Finds what is stored under a key, no older than the call. Reading a value gives its version as well as a lookup does,
    /// so this reads what is needed in any case: the whole chunk, or the index of a shard. A source that has these bytes
    /// cached requests the version only.
    ///
    /// # Errors
    /// Failures of the store; bytes that do not decode.
    async fn fetch_or_lookup(
        &self,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        context: &Arc<ReadContext>,
    ) -> Result<ChunkLookup, ArrayError>;

    /// The elements (C order, canonical form) that each of these byte ranges of a value decodes to by `chain`, in the order
    /// of `ranges`. Each range has a result of its own.
    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        context: &Arc<ReadContext>,
    ) -> Vec<Result<Elements, ArrayError>>;

    /// The index of the shard at the bytes `shard` of a value, which is encoded by `chain` with a sharding codec. The ranges
    /// of the index count from the start of the shard.
    ///
    /// # Errors
    /// Failures of the store; bytes that do not decode; [`ArrayError::Geometry`] if `chain` has no sharding codec.
    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        context: &Arc<ReadContext>,
    ) -> Result<Arc<ShardIndex>, ArrayError>;
}
