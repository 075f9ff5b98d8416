//! [`Finds`]: chunks that are read before anything is known of them, once for all who want them.
//!
//! A read that began before a request may give it what was there before it, so such a read is shared with care: who
//! comes later looks for the version that is stored by then, and takes what the read gave only if it is of that one.

use std::sync::Arc;

use futures::future::join;
use tracing::Instrument;

use super::caches::is_key_below;
use super::flights::{Boarding, Flights};
use super::shelf::{Outcome, Shelf, Usage};
use crate::array::{ChunkSource, Found, StoredKey, StoredValue, Trace};
use crate::codec::CodecChain;
use crate::key::{StoreKey, StorePrefix};
use crate::store::Version;

/// Bytes that a chunk takes here beside its key and tag.
const KNOWN_BYTES: u64 = 200;

/// A chunk, whatever its version.
type Name = (Arc<str>, StoreKey);

/// What was found last, and reads under way. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Finds {
    latest: Arc<Shelf<Name, Arc<StoredValue>>>,
    underway: Arc<Flights<(Name, u64), Outcome<Found>>>,
}

impl Finds {
    /// Remembers so many bytes of versions.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        let latest = Shelf::new(capacity_bytes, |name: &Name, value: &Arc<StoredValue>| {
            (name.1.as_str().len() as u64)
                .saturating_add(value.info.version.tag().len() as u64)
                .saturating_add(KNOWN_BYTES)
        });
        Self { latest: Arc::new(latest), underway: Arc::new(Flights::new()) }
    }

    /// Forgets about half of the versions.
    pub(super) fn forget_half(&self) {
        self.latest.forget_half();
    }

    /// Something of this version of a chunk is remembered from now on.
    pub(super) fn note(&self, value: &Arc<StoredValue>) {
        if !value.info.version.is_settled() {
            return;
        }
        let name = (Arc::clone(&value.mount), value.key.clone());
        if self.latest.recall(&name).is_some_and(|known| known.info.version == value.info.version) {
            return;
        }
        self.latest.remember(&name, value, self.latest.epoch());
    }

    /// What is remembered of versions.
    pub(super) fn usage(&self) -> Usage {
        self.latest.usage().held()
    }

    /// Forgets the versions of the keys of a mount below a prefix. Reads that are under way are shared with nobody else.
    pub(super) fn forget(&self, mount: &str, prefix: &StorePrefix) {
        let is_meant = |(of, key): &Name| **of == *mount && is_key_below(key, prefix);
        self.underway.forget(|(name, _)| is_meant(name));
        self.latest.forget(is_meant);
    }

    /// The last version that something is remembered of. There may be a newer one.
    pub(super) fn latest(&self, key: &StoredKey) -> Option<Arc<StoredValue>> {
        self.latest.recall(&(Arc::clone(&key.mount), key.key.clone()))
    }

    /// The version that is stored now.
    pub(super) async fn look(&self, key: &StoredKey, trace: &Trace) -> Outcome<Option<Arc<StoredValue>>> {
        if let Some(known) = self.latest(key)
            && known.is_current(trace)
        {
            return Ok(Some(known));
        }
        let value = key.look(trace).await?;
        if let Some(value) = &value
            && let Some(known) = self.latest(key)
            && known.info.version == value.info.version
        {
            known.note_looks_of(value);
            return Ok(Some(known));
        }
        Ok(value)
    }

    /// Reads a chunk by `source`, in a task that no single caller can end by leaving, or shares in such a read, and says
    /// whether the read was its own. `land` is shown what was read before anybody else. What turns out to be remembered
    /// is looked at only.
    pub(super) async fn find(
        &self,
        source: &Arc<dyn ChunkSource>,
        key: &StoredKey,
        chain: &Arc<CodecChain>,
        trace: &Arc<Trace>,
        is_remembered: impl Fn() -> bool,
        land: impl FnOnce(&Found) + Send + 'static,
    ) -> Outcome<(Found, bool)> {
        let name = ((Arc::clone(&key.mount), key.key.clone()), chain.id());
        // By now somebody may have landed what it takes; which version is stored is for a look to tell.
        let landed = |_: &_| is_remembered().then(|| Ok(Found::seen(None)));
        let waiter = match self.underway.board_one(&name, self.latest.epoch(), landed) {
            Boarding::Claimed(ticket, waiter) => {
                let (source, key, chain) = (Arc::clone(source), key.clone(), Arc::clone(chain));
                let trace = Arc::clone(trace);
                let read = async move {
                    tokio::select! {
                        found = source.find(&key, &chain, &trace) => {
                            if let Ok(found) = &found {
                                land(found);
                            }
                            ticket.land(found);
                        }
                        () = ticket.deserted() => {}
                    }
                };
                tokio::spawn(read.in_current_span());
                waiter
            }
            Boarding::Joined(waiter) => {
                let (value, shared) = join(self.look(key, trace), waiter.wait()).await;
                let value = value?;
                return Ok(match shared.transpose()? {
                    Some(found) if version(found.value.as_ref()) == version(value.as_ref()) => (found, false),
                    Some(_) | None => (Found::seen(value), false),
                });
            }
            Boarding::Hit(_) => return Ok((Found::seen(self.look(key, trace).await?), false)),
        };
        match waiter.wait().await {
            Some(found) => found.map(|found| (found, true)),
            None => Ok((Found::seen(self.look(key, trace).await?), false)),
        }
    }
}

fn version(value: Option<&Arc<StoredValue>>) -> Option<&Version> {
    value.map(|value| &value.info.version)
}
