//! [`VersionIndex`]: the latest known version of each chunk, and shared reads of chunks of which no version is known.
//!
//! A read that began before a request may return an older version than the request must get. So a request that joins a read
//! in flight also requests the version that is stored by then, and takes the result of the read only if it is of that
//! version.

use std::sync::Arc;

use futures::future::join;
use tracing::Instrument;

use super::caches::{is_key_below, is_of_mount};
use super::single_flight::{Join, SingleFlight};
use super::weighted_cache::{CacheUsage, LoadResult, WeightedCache};
use crate::array::{ChunkLookup, ChunkSource, ReadContext, StoredKey, StoredValue};
use crate::codec::CodecChain;
use crate::key::{StoreKey, StorePrefix};
use crate::store::Version;

/// Bytes that a chunk takes in the index beside its key and version tag.
const KNOWN_BYTES: u64 = 200;

/// A chunk of any version: its mount and key.
type ChunkName = (Arc<str>, StoreKey);

/// The versions that were found last, and the reads in flight. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct VersionIndex {
    latest: Arc<WeightedCache<ChunkName, Arc<StoredValue>>>,
    reads: Arc<SingleFlight<(ChunkName, u64), LoadResult<ChunkLookup>>>,
}

impl VersionIndex {
    /// An index with this capacity.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let latest = WeightedCache::new(capacity_bytes, |name: &ChunkName, value: &Arc<StoredValue>| {
            (name.1.as_str().len() as u64)
                .saturating_add(value.info.version.tag().len() as u64)
                .saturating_add(KNOWN_BYTES)
        });
        Self { latest: Arc::new(latest), reads: Arc::new(SingleFlight::new()) }
    }

    /// Removes about half of the versions.
    pub(crate) fn evict_half(&self) {
        self.latest.evict_half();
    }

    /// Records a version of a chunk of which something is cached from now on.
    pub(crate) fn record_version(&self, value: &Arc<StoredValue>) {
        if !value.info.version.is_settled() {
            return;
        }
        let name = (Arc::clone(&value.mount), value.key.clone());
        if self.latest.get(&name).is_some_and(|known| known.info.version == value.info.version) {
            return;
        }
        self.latest.insert(&name, value, self.latest.generation());
    }

    /// How much it holds.
    pub(crate) fn usage(&self) -> CacheUsage {
        self.latest.usage().held()
    }

    /// Removes the versions of the keys of a mount below a prefix. No later request joins a read in flight of these keys.
    pub(crate) fn purge(&self, mount: &str, prefix: &StorePrefix) {
        let matches = |(owner, key): &ChunkName| is_of_mount(owner, mount) && is_key_below(key, prefix);
        self.reads.detach(|(name, _)| matches(name));
        self.latest.purge(matches);
    }

    /// The latest version of which something is cached. A newer one may be stored.
    pub(crate) fn latest_version(&self, key: &StoredKey) -> Option<Arc<StoredValue>> {
        self.latest.get(&(Arc::clone(&key.mount), key.key.clone()))
    }

    /// Returns the version that is stored now.
    pub(crate) async fn lookup_version(
        &self,
        key: &StoredKey,
        context: &ReadContext,
    ) -> LoadResult<Option<Arc<StoredValue>>> {
        if let Some(known) = self.latest_version(key)
            && known.is_fresh(context)
        {
            return Ok(Some(known));
        }
        let value = key.lookup_version(context).await?;
        if let Some(value) = &value
            && let Some(known) = self.latest_version(key)
            && known.info.version == value.info.version
        {
            known.copy_validation(value);
            return Ok(Some(known));
        }
        Ok(value)
    }

    /// Reads a chunk by `source` in a task that no single request can cancel, or joins such a read, and returns whether the
    /// read is this request's own. `on_read` gets the result before any request does. Where the chunk turns out to be cached,
    /// only its version is requested.
    pub(crate) async fn fetch_or_lookup(
        &self,
        source: &Arc<dyn ChunkSource>,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        context: &Arc<ReadContext>,
        is_cached: impl Fn() -> bool,
        on_read: impl FnOnce(&ChunkLookup) + Send + 'static,
    ) -> LoadResult<(ChunkLookup, bool)> {
        let name = ((Arc::clone(&key.mount), key.key.clone()), chain.id());
        // Another read may have cached the chunk by now; which version is stored, a lookup says.
        let cached = |_: &_| is_cached().then(|| Ok(ChunkLookup::version_only(None)));
        let follower = match self.reads.join_one(&name, self.latest.generation(), cached) {
            Join::Leader(leader, follower) => {
                let (source, key, chain) = (Arc::clone(source), key.clone(), Arc::clone(chain));
                let context = Arc::clone(context);
                let read = async move {
                    tokio::select! {
                        found = source.fetch_or_lookup(&key, &chain, &context) => {
                            if let Ok(found) = &found {
                                on_read(found);
                            }
                            leader.complete(found);
                        }
                        () = leader.cancelled() => {}
                    }
                };
                tokio::spawn(read.in_current_span());
                follower
            }
            Join::Follower(follower) => {
                let (value, shared) = join(self.lookup_version(key, context), follower.wait()).await;
                let value = value?;
                return Ok(match shared.transpose()? {
                    Some(found) if version(found.value.as_ref()) == version(value.as_ref()) => (found, false),
                    Some(_) | None => (ChunkLookup::version_only(value), false),
                });
            }
            Join::Hit(_) => {
                return Ok((ChunkLookup::version_only(self.lookup_version(key, context).await?), false));
            }
        };
        match follower.wait().await {
            Some(found) => found.map(|found| (found, true)),
            None => Ok((ChunkLookup::version_only(self.lookup_version(key, context).await?), false)),
        }
    }
}

fn version(value: Option<&Arc<StoredValue>>) -> Option<&Version> {
    value.map(|value| &value.info.version)
}
