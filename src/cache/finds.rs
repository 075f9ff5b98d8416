//! [`Finds`]: chunks that are read before anything is known of them, once for all who want them.
//!
//! A read that began before a request may give it what was there before it, so such a read is shared with care: who
//! comes later looks for the version that is stored by then, and takes what the read gave only if it is of that one.

use std::sync::Arc;

use futures::future::join;

use super::flights::{Boarding, Flights};
use super::shelf::{Outcome, Shelf};
use crate::array::{ChunkSource, Found, StoredKey, StoredValue, Trace};
use crate::codec::CodecChain;
use crate::key::StoreKey;
use crate::store::{ValueInfo, Version};

/// A chunk, whatever its version.
type Name = (Arc<str>, StoreKey);

/// What was found last, and reads under way. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Finds {
    /// The last version that something is remembered of.
    latest: Arc<Shelf<Name, ValueInfo>>,
    underway: Arc<Flights<(Name, u64), Outcome<Found>>>,
}

impl Finds {
    /// Remembers so many bytes of versions.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        let latest = Shelf::new(capacity_bytes, |name: &Name, info: &ValueInfo| {
            (name.1.as_str().len() as u64).saturating_add(info.version.tag().len() as u64)
        });
        Self { latest: Arc::new(latest), underway: Arc::new(Flights::new()) }
    }

    /// Something of this version of a chunk is remembered from now on.
    pub(super) fn note(&self, mount: &Arc<str>, key: &StoreKey, info: &ValueInfo) {
        self.latest.remember(&(Arc::clone(mount), key.clone()), info);
    }

    /// The last version that was noted. There may be a newer one.
    pub(super) fn latest(&self, key: &StoredKey) -> Option<ValueInfo> {
        self.latest.recall(&(Arc::clone(&key.mount), key.key.clone()))
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
        let waiter = match self.underway.board(&[&name], landed).pop() {
            Some(Boarding::Claimed(ticket, waiter)) => {
                let (source, key, chain) = (Arc::clone(source), key.clone(), Arc::clone(chain));
                let trace = Arc::clone(trace);
                tokio::spawn(async move {
                    tokio::select! {
                        found = source.find(&key, &chain, &trace) => {
                            if let Ok(found) = &found {
                                land(found);
                            }
                            ticket.land(found);
                        }
                        () = ticket.deserted() => {}
                    }
                });
                waiter
            }
            Some(Boarding::Joined(waiter)) => {
                let (value, shared) = join(key.look(trace), waiter.wait()).await;
                let value = value?;
                return Ok(match shared.transpose()? {
                    Some(found) if version(found.value.as_ref()) == version(value.as_ref()) => (found, false),
                    Some(_) | None => (Found::seen(value), false),
                });
            }
            Some(Boarding::Hit(_)) | None => return Ok((Found::seen(key.look(trace).await?), false)),
        };
        match waiter.wait().await {
            Some(found) => found.map(|found| (found, true)),
            None => Ok((Found::seen(key.look(trace).await?), false)),
        }
    }
}

fn version(value: Option<&Arc<StoredValue>>) -> Option<&Version> {
    value.map(|value| &value.info.version)
}
