//! [`BoundedNodeCache`]: a cache of opened nodes, of paths without a node, and of texts rendered from their documents, by mount, path and the versions
//! of the documents.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;

use super::caches::{CacheKind, Evictable, PurgeOutcome, is_node_below, is_of_mount};
use super::weighted_cache::{CacheUsage, WeightedCache};
use crate::array::{
    AbsentId, ArrayError, LoadFuture, NodeCache, NodeId, OpenNode, RenderedText, TextFuture, TextId,
};
use crate::hierarchy::Located;
use crate::key::{NodePath, StorePrefix};

/// The rest divided by this is for texts.
const TEXT_SHARE: u64 = 2;
/// The bytes for nodes, or for texts, divided by this are the most that one may take: the longest document fits, and others
/// beside it.
const LARGEST_SHARE: u64 = 3;
/// Bytes that the key of a text takes beside its path.
const TEXT_BYTES: u64 = 400;
/// The capacity divided by this is for the latest versions.
const LATEST_SHARE: u64 = 16;
/// Bytes that the versions of a node's documents take.
const LATEST_BYTES: u64 = 300;

/// The capacity divided by this is for paths without a node.
const ABSENT_SHARE: u64 = 64;
/// Bytes that a path without a node takes beside its text.
const ABSENT_BYTES: u64 = 150;

/// A node of any version: its mount and path.
type NodeName = (Arc<str>, NodePath);

/// A cache of opened nodes, which evicts the least used. Clones share the entries.
#[derive(Clone, Debug)]
pub struct BoundedNodeCache {
    nodes: Arc<WeightedCache<NodeId, Arc<OpenNode>>>,
    texts: Arc<WeightedCache<TextId, Option<RenderedText>>>,
    /// The documents that were found last, and when the lookup began that found them.
    latest: Arc<WeightedCache<NodeName, (Located, Instant)>>,
    /// Paths without a node, and when the lookup began that found none.
    absent: Arc<WeightedCache<AbsentId, Instant>>,
    /// When paths were purged last.
    purged_at: Arc<Mutex<Option<Instant>>>,
}

impl BoundedNodeCache {
    /// A cache with this capacity.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let weigh = |id: &NodeId, opened: &Arc<OpenNode>| {
            opened.memory_bytes().saturating_add(id.path.as_str().len() as u64)
        };
        let weigh_text = |id: &TextId, rendered: &Option<RenderedText>| {
            let text = rendered.as_ref().map_or(0, |(text, _)| text.len() as u64);
            text.saturating_add(id.path.as_str().len() as u64).saturating_add(TEXT_BYTES)
        };
        let latest =
            WeightedCache::new(capacity_bytes / LATEST_SHARE, |name: &NodeName, _: &(Located, Instant)| {
                (name.1.as_str().len() as u64).saturating_add(LATEST_BYTES)
            });
        let absent = WeightedCache::new(capacity_bytes / ABSENT_SHARE, |id: &AbsentId, _: &Instant| {
            (id.path.as_str().len() as u64).saturating_add(ABSENT_BYTES)
        });
        let rest = capacity_bytes - capacity_bytes / LATEST_SHARE - capacity_bytes / ABSENT_SHARE;
        let texts = WeightedCache::with_largest(rest / TEXT_SHARE, LARGEST_SHARE, weigh_text);
        let nodes = WeightedCache::with_largest(rest - rest / TEXT_SHARE, LARGEST_SHARE, weigh);
        Self {
            nodes: Arc::new(nodes),
            texts: Arc::new(texts),
            latest: Arc::new(latest),
            absent: Arc::new(absent),
            purged_at: Arc::default(),
        }
    }
}

#[async_trait]
impl NodeCache for BoundedNodeCache {
    fn latest(&self, mount: &Arc<str>, path: &NodePath) -> Option<(Arc<OpenNode>, Instant)> {
        let (mount, path) = (Arc::clone(mount), path.clone());
        let name = (mount, path);
        let (located, when) = self.latest.get(&name)?;
        let (mount, path) = name;
        Some((self.nodes.get(&NodeId { mount, path, located })?, when))
    }

    fn absent_at(&self, id: &AbsentId) -> Option<Instant> {
        self.absent.get(id)
    }

    fn insert_absent(&self, id: &AbsentId, located_at: Instant) {
        let since = self.absent.generation();
        let purged_at = *self.purged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if purged_at.is_none_or(|purged_at| purged_at < located_at) {
            self.absent.insert(id, &located_at, since);
        }
    }

    async fn get_or_load(
        &self,
        id: NodeId,
        located_at: Instant,
        load: LoadFuture,
    ) -> Result<Arc<OpenNode>, ArrayError> {
        // An unsettled version is never requested again, so caching it would be useless.
        if !id.located.is_settled() {
            return load.await;
        }
        let since = self.latest.generation();
        let opened = self.nodes.get_or_load(&id, load).await;
        let opened =
            opened.unwrap_or_else(|| Err(ArrayError::LoadCancelled { what: id.path.to_string() }))?;
        self.latest.insert(&(id.mount, id.path), &(id.located, located_at), since);
        Ok(opened)
    }

    async fn get_or_render(
        &self,
        id: TextId,
        render: TextFuture,
    ) -> Result<Option<RenderedText>, ArrayError> {
        let rendered = self.texts.get_or_load(&id, render).await;
        rendered.unwrap_or_else(|| Err(ArrayError::LoadCancelled { what: id.path.to_string() }))
    }
}

impl Evictable for BoundedNodeCache {
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        let held = self.texts.usage().and(self.latest.usage()).and(self.absent.usage()).held();
        vec![(CacheKind::Node, self.nodes.usage().and(held))]
    }

    fn purge(&self, mount: &str, prefix: &StorePrefix) -> PurgeOutcome {
        let matches = |owner: &str, path: &NodePath| is_of_mount(owner, mount) && is_node_below(path, prefix);
        *self.purged_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.absent.purge(|id| matches(&id.mount, &id.path));
        self.latest.purge(|(owner, path)| matches(owner, path));
        self.texts.purge(|id| matches(&id.mount, &id.path));
        PurgeOutcome::of_memory(self.nodes.purge(|id| matches(&id.mount, &id.path)))
    }

    fn evict_half(&self) {
        self.nodes.evict_half();
        self.texts.evict_half();
        self.latest.evict_half();
        self.absent.evict_half();
    }
}
