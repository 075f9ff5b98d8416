//! [`Dependencies`]: what an answer was made of, to tell whether it would be made the same again.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::node::OpenNode;
use super::open::NodeOpener;
use super::snapshot::ChunkVersions;
use crate::key::{NodePath, StoreKey};
use crate::store::WatchToken;

/// Answers made of so many chunks are worth being watched over: to look at each takes longer than all the rest.
const WATCHED_CHUNKS: std::ops::RangeInclusive<usize> = 16..=4096;
/// Looks that found nothing changed, before a watch is begun.
const LOOKS_BEFORE_A_WATCH: u32 = 8;
/// What is watched is looked at all the same after so long.
const LOOKS_APART: Duration = Duration::from_secs(1);

/// The documents and chunks that an answer was made of.
#[derive(Debug)]
pub struct Dependencies {
    opener: NodeOpener,
    path: NodePath,
    /// Not held: it may be large, and is remembered elsewhere as long as it is used.
    node: Weak<OpenNode>,
    chunks: ChunkVersions,
    known: Mutex<Known>,
}

/// What is known of whether it is still the same. Held while that is looked at, for all who had come before.
#[derive(Debug, Default)]
struct Known {
    /// All was seen as it was since then.
    seen: Option<Instant>,
    /// When the last look began, and since when it has been quiet where it looked.
    quiet: Option<(Instant, WatchToken)>,
    /// Looks that found nothing changed since a watch was tried.
    looks: u32,
}

impl Dependencies {
    /// What an answer was made of: a node, and chunks of it.
    #[must_use]
    pub fn new(opener: NodeOpener, path: NodePath, node: &Arc<OpenNode>, chunks: ChunkVersions) -> Self {
        Self { opener, path, node: Arc::downgrade(node), chunks, known: Mutex::default() }
    }

    /// Bytes of memory, roughly.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.chunks.bytes()
    }

    /// Whether all of it is the same, as freshly as the store asks for, and that is plain without waiting for the store.
    /// One look is for all requests that began before it.
    pub async fn is_fresh(self: &Arc<Self>, began: Instant) -> bool {
        // Whoever came meanwhile begins now: what is seen from here on is new enough for all of them.
        tokio::task::yield_now().await;
        let store = self.opener.hierarchy().store();
        let mut known = self.known.lock().await;
        if known.seen.is_some_and(|seen| seen >= store.freshness_horizon(began)) {
            return true;
        }
        let now = Instant::now();
        if let Some((looked, quiet)) = known.quiet
            && now - looked < LOOKS_APART
            && store.unchanged_since(quiet)
        {
            known.seen = Some(now);
            return true;
        }
        known.seen = self.revalidate(began).await;
        let quiet =
            known.quiet.take().filter(|(_, quiet)| known.seen.is_some() && store.unchanged_since(*quiet));
        known.quiet = quiet.map(|(_, quiet)| (now, quiet));
        known.looks = if known.seen.is_some() { known.looks.saturating_add(1) } else { 0 };
        if known.quiet.is_none()
            && known.looks >= LOOKS_BEFORE_A_WATCH
            && WATCHED_CHUNKS.contains(&self.chunks.len())
        {
            known.looks = 0;
            let made_of = Arc::clone(self);
            tokio::spawn(async move { made_of.watch().await });
        }
        known.seen.is_some()
    }

    /// When the first look began of those that found all of this the same, all of them new enough for a request that began
    /// then; `None` if something has changed, or if that cannot be told without waiting.
    async fn revalidate(&self, began: Instant) -> Option<Instant> {
        let (node, seen) = self.opener.try_find(&self.path, began)?;
        let is_same = std::ptr::eq(Arc::as_ptr(&node), self.node.as_ptr());
        if is_same { Some(self.chunks.validated_since(began).await?.min(seen)) } else { None }
    }

    /// Has the store tell of changes from now on.
    async fn watch(&self) {
        let document = self.path.prefix().key("zarr.json").ok();
        let keys: Vec<StoreKey> = self.chunks.keys().cloned().chain(document).collect();
        let Some(quiet) = self.opener.hierarchy().store().watch(keys).await else { return };
        let mut known = self.known.lock().await;
        // Looked at since the watch began: what changed before was not told.
        let now = Instant::now();
        known.quiet = self.revalidate(now).await.map(|_| (now, quiet));
    }
}
