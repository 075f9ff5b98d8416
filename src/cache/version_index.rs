//! [`VersionIndex`]: chunks that are read before anything is known of them, once for all who want them.
//!
//! A read that began before a request may give it what was there before it, so such a read is shared with care: who
//! comes later looks for the version that is stored by then, and takes what the read gave only if it is of that one.

use std::sync::Arc;

use futures::future::join;
use tracing::Instrument;

use super::caches::is_key_below;
use super::single_flight::{Join, SingleFlight};
use super::weighted_cache::{CacheUsage, LoadResult, WeightedCache};
use crate::array::{ChunkLookup, ChunkSource, ReadContext, StoredKey, StoredValue};
use crate::codec::CodecChain;
use crate::key::{StoreKey, StorePrefix};
use crate::store::Version;

/// Bytes that a chunk takes here beside its key and tag.
const KNOWN_BYTES: u64 = 200;

/// A chunk, whatever its version.
type Name = (Arc<str>, StoreKey);

/// What was found last, and reads under way. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct VersionIndex {
    latest: Arc<WeightedCache<Name, Arc<StoredValue>>>,
    underway: Arc<SingleFlight<(Name, u64), LoadResult<ChunkLookup>>>,
}

impl VersionIndex {
    /// Remembers so many bytes of versions.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let latest = WeightedCache::new(capacity_bytes, |name: &Name, value: &Arc<StoredValue>| {
            (name.1.as_str().len() as u64)
                .saturating_add(value.info.version.tag().len() as u64)
                .saturating_add(KNOWN_BYTES)
        });
        Self { latest: Arc::new(latest), underway: Arc::new(SingleFlight::new()) }
    }

    /// Forgets about half of the versions.
    pub(crate) fn evict_half(&self) {
        self.latest.evict_half();
    }

    /// Something of this version of a chunk is remembered from now on.
    pub(crate) fn record_version(&self, value: &Arc<StoredValue>) {
        if !value.info.version.is_settled() {
            return;
        }
        let name = (Arc::clone(&value.mount), value.key.clone());
        if self.latest.cached(&name).is_some_and(|known| known.info.version == value.info.version) {
            return;
        }
        self.latest.insert(&name, value, self.latest.generation());
    }

    /// What is remembered of versions.
    pub(crate) fn usage(&self) -> CacheUsage {
        self.latest.usage().held()
    }

    /// Forgets the versions of the keys of a mount below a prefix. Reads that are under way are shared with nobody else.
    pub(crate) fn purge(&self, mount: &str, prefix: &StorePrefix) {
        let is_meant = |(of, key): &Name| **of == *mount && is_key_below(key, prefix);
        self.underway.detach(|(name, _)| is_meant(name));
        self.latest.purge(is_meant);
    }

    /// The last version that something is remembered of. There may be a newer one.
    pub(crate) fn latest_version(&self, key: &StoredKey) -> Option<Arc<StoredValue>> {
        self.latest.cached(&(Arc::clone(&key.mount), key.key.clone()))
    }

    /// The version that is stored now.
    pub(crate) async fn lookup_version(
        &self,
        key: &StoredKey,
        trace: &ReadContext,
    ) -> LoadResult<Option<Arc<StoredValue>>> {
        if let Some(known) = self.latest_version(key)
            && known.is_fresh(trace)
        {
            return Ok(Some(known));
        }
        let value = key.lookup_version(trace).await?;
        if let Some(value) = &value
            && let Some(known) = self.latest_version(key)
            && known.info.version == value.info.version
        {
            known.copy_validation(value);
            return Ok(Some(known));
        }
        Ok(value)
    }

    /// Reads a chunk by `source`, in a task that no single caller can end by leaving, or shares in such a read, and says
    /// whether the read was its own. `land` is shown what was read before anybody else. What turns out to be remembered
    /// is looked at only.
    pub(crate) async fn fetch_or_lookup(
        &self,
        source: &Arc<dyn ChunkSource>,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        trace: &Arc<ReadContext>,
        is_remembered: impl Fn() -> bool,
        land: impl FnOnce(&ChunkLookup) + Send + 'static,
    ) -> LoadResult<(ChunkLookup, bool)> {
        let name = ((Arc::clone(&key.mount), key.key.clone()), chain.id());
        // By now somebody may have landed what it takes; which version is stored is for a look to tell.
        let landed = |_: &_| is_remembered().then(|| Ok(ChunkLookup::seen(None)));
        let waiter = match self.underway.join_one(&name, self.latest.generation(), landed) {
            Join::Leader(ticket, waiter) => {
                let (source, key, chain) = (Arc::clone(source), key.clone(), Arc::clone(chain));
                let trace = Arc::clone(trace);
                let read = async move {
                    tokio::select! {
                        found = source.fetch_or_lookup(&key, &chain, &trace) => {
                            if let Ok(found) = &found {
                                land(found);
                            }
                            ticket.complete(found);
                        }
                        () = ticket.cancelled() => {}
                    }
                };
                tokio::spawn(read.in_current_span());
                waiter
            }
            Join::Follower(waiter) => {
                let (value, shared) = join(self.lookup_version(key, trace), waiter.wait()).await;
                let value = value?;
                return Ok(match shared.transpose()? {
                    Some(found) if version(found.value.as_ref()) == version(value.as_ref()) => (found, false),
                    Some(_) | None => (ChunkLookup::seen(value), false),
                });
            }
            Join::Hit(_) => return Ok((ChunkLookup::seen(self.lookup_version(key, trace).await?), false)),
        };
        match waiter.wait().await {
            Some(found) => found.map(|found| (found, true)),
            None => Ok((ChunkLookup::seen(self.lookup_version(key, trace).await?), false)),
        }
    }
}

fn version(value: Option<&Arc<StoredValue>>) -> Option<&Version> {
    value.map(|value| &value.info.version)
}
