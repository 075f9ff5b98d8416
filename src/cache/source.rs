//! [`CachedSource`]: a [`ChunkSource`] that remembers what the one below it gave, and asks it for nothing twice at once.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use moka::sync::Cache;

use super::flights::{Boarding, Flights, Ticket, Waiter};
use super::{CacheOptions, LARGEST_SHARE, weight};
use crate::array::{ArrayError, ChunkSource, StoredValue, Trace};
use crate::codec::CodecChain;
use crate::codec::sharding_indexed::ShardIndex;
use crate::key::StoreKey;
use crate::store::Version;

/// A load that was abandoned by those who began it is begun again this often by those who still want it.
const TRIES: usize = 4;

/// What an inner chunk takes in a shard's index in memory.
const INDEX_ENTRY_BYTES: usize = 16;

/// What a decoded chunk or an index is remembered under: the bytes it came from, and how they were decoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PartId {
    mount: Arc<str>,
    key: StoreKey,
    version: Version,
    range: Range<u64>,
    chain: u64,
}

impl PartId {
    fn new(value: &StoredValue, chain: &CodecChain, range: Range<u64>) -> Self {
        Self {
            mount: Arc::clone(&value.mount),
            key: value.key.clone(),
            version: value.info.version.clone(),
            range,
            chain: chain.id(),
        }
    }
}

type Outcome<T> = Result<T, ArrayError>;

/// One kind of thing that is remembered and loaded.
#[derive(Debug)]
struct Shelf<T: Clone + Send + Sync + 'static> {
    cache: Cache<PartId, T>,
    flights: Flights<PartId, Outcome<T>>,
    largest: u64,
    bytes_of: fn(&T) -> usize,
}

impl<T: Clone + Send + Sync + 'static> Shelf<T> {
    fn new(capacity: u64, bytes_of: fn(&T) -> usize) -> Self {
        let cache = Cache::builder()
            .max_capacity(capacity)
            .weigher(move |id: &PartId, value: &T| weight(bytes_of(value) + id.key.as_str().len()))
            .build();
        Self { cache, flights: Flights::new(), largest: capacity / LARGEST_SHARE, bytes_of }
    }

    /// Remembers what was loaded and hands it to all who wait.
    fn land(&self, ticket: Ticket<PartId, Outcome<T>>, outcome: Outcome<T>) {
        if let Ok(value) = &outcome
            && (self.bytes_of)(value) as u64 <= self.largest
        {
            self.cache.insert(ticket.key().clone(), value.clone());
        }
        ticket.land(outcome);
    }

    fn board(&self, id: &PartId) -> Boarding<PartId, Outcome<T>> {
        match self.cache.get(id) {
            Some(value) => Boarding::Hit(Ok(value)),
            None => self.flights.board(id, |id| self.cache.get(id).map(Ok)),
        }
    }
}

/// A source that remembers. Clones share what they remember.
#[derive(Clone, Debug)]
pub struct CachedSource {
    inner: Arc<dyn ChunkSource>,
    decoded: Arc<Shelf<Bytes>>,
    indexes: Arc<Shelf<Arc<ShardIndex>>>,
}

impl CachedSource {
    /// Remembers what `inner` gives.
    #[must_use]
    pub fn new(inner: Arc<dyn ChunkSource>, options: CacheOptions) -> Self {
        Self {
            inner,
            decoded: Arc::new(Shelf::new(options.decoded_bytes, Bytes::len)),
            indexes: Arc::new(Shelf::new(options.index_bytes, |index| {
                index.len().saturating_mul(INDEX_ENTRY_BYTES)
            })),
        }
    }

    /// Loads what was claimed, in a task that no single caller can end by leaving; it ends when all have left.
    fn load(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        claimed: Vec<Ticket<PartId, Outcome<Bytes>>>,
        trace: &Arc<Trace>,
    ) {
        if claimed.is_empty() {
            return;
        }
        let (source, value, chain, trace) =
            (self.clone(), Arc::clone(value), Arc::clone(chain), Arc::clone(trace));
        tokio::spawn(async move {
            let ranges: Vec<Range<u64>> = claimed.iter().map(|ticket| ticket.key().range.clone()).collect();
            let outcomes = tokio::select! {
                outcomes = source.inner.elements(&value, &chain, &ranges, &trace) => outcomes,
                _ = join_all(claimed.iter().map(Ticket::deserted)) => return,
            };
            for (ticket, outcome) in claimed.into_iter().zip(outcomes) {
                source.decoded.land(ticket, outcome);
            }
        });
    }
}

#[async_trait]
impl ChunkSource for CachedSource {
    async fn elements(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        ranges: &[Range<u64>],
        trace: &Arc<Trace>,
    ) -> Vec<Outcome<Bytes>> {
        let mut elements: Vec<Option<Outcome<Bytes>>> = ranges.iter().map(|_| None).collect();
        let mut missed = 0;
        for _ in 0..TRIES {
            let (mut claimed, mut waiting): (Vec<_>, Vec<(usize, Waiter<_>)>) = (Vec::new(), Vec::new());
            for (place, range) in ranges.iter().enumerate() {
                if elements[place].is_some() {
                    continue;
                }
                match self.decoded.board(&PartId::new(value, chain, range.clone())) {
                    Boarding::Hit(outcome) => elements[place] = Some(outcome),
                    Boarding::Joined(waiter) => waiting.push((place, waiter)),
                    Boarding::Claimed(ticket, waiter) => {
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
        let abandoned = || Err(ArrayError::Abandoned { key: value.key.clone() });
        elements.into_iter().map(|outcome| outcome.unwrap_or_else(abandoned)).collect()
    }

    async fn shard_index(
        &self,
        value: &Arc<StoredValue>,
        chain: &Arc<CodecChain>,
        shard: Range<u64>,
        trace: &Arc<Trace>,
    ) -> Outcome<Arc<ShardIndex>> {
        let id = PartId::new(value, chain, shard.clone());
        for _ in 0..TRIES {
            let waiter = match self.indexes.board(&id) {
                Boarding::Hit(outcome) => return outcome,
                Boarding::Joined(waiter) => waiter,
                Boarding::Claimed(ticket, waiter) => {
                    let (source, value, chain) = (self.clone(), Arc::clone(value), Arc::clone(chain));
                    let (shard, trace) = (shard.clone(), Arc::clone(trace));
                    tokio::spawn(async move {
                        let outcome = tokio::select! {
                            outcome = source.inner.shard_index(&value, &chain, shard, &trace) => outcome,
                            () = ticket.deserted() => return,
                        };
                        source.indexes.land(ticket, outcome);
                    });
                    waiter
                }
            };
            if let Some(outcome) = waiter.wait().await {
                return outcome;
            }
        }
        Err(ArrayError::Abandoned { key: value.key.clone() })
    }
}
