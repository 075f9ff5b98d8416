//! [`NodeCache`]: opened nodes, by mount, path and the versions of their documents.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;

use super::caches::{Kind, Remembers, is_node_below};
use super::shelf::{Shelf, Usage};
use crate::array::{ArrayError, NodeId, NodeMemo, Opened, Opening};
use crate::hierarchy::Located;
use crate::key::{NodePath, StorePrefix};

/// Bytes of memory that a document takes when parsed, for each of its own, at most.
const PARSED_RATIO: u64 = 40;
/// Bytes that a node takes beside what its documents say.
const NODE_BYTES: u64 = 2 << 10;
/// The part of the cache that is for what was there last.
const LATEST_SHARE: u64 = 16;
/// Bytes that the versions of a node's documents take.
const LATEST_BYTES: u64 = 300;

/// A node, whatever the versions of its documents.
type Name = (Arc<str>, NodePath);

/// Remembers opened nodes; the least used fall out. Clones share them.
#[derive(Clone, Debug)]
pub struct NodeCache {
    nodes: Arc<Shelf<NodeId, Arc<Opened>>>,
    /// The documents that were there last, and when the look began that found them.
    latest: Arc<Shelf<Name, (Located, Instant)>>,
}

impl NodeCache {
    /// A cache of so many bytes, as estimated from the length of the documents.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let weigh = |id: &NodeId, _: &Arc<Opened>| {
            let key = id.path.as_str().len() as u64;
            id.located.document_bytes().saturating_mul(PARSED_RATIO).saturating_add(NODE_BYTES + key)
        };
        let latest = Shelf::new(capacity_bytes / LATEST_SHARE, |name: &Name, _: &(Located, Instant)| {
            (name.1.as_str().len() as u64).saturating_add(LATEST_BYTES)
        });
        let nodes = Shelf::new(capacity_bytes - capacity_bytes / LATEST_SHARE, weigh);
        Self { nodes: Arc::new(nodes), latest: Arc::new(latest) }
    }
}

#[async_trait]
impl NodeMemo for NodeCache {
    fn last(&self, mount: &Arc<str>, path: &NodePath) -> Option<(Arc<Opened>, Instant)> {
        let (mount, path) = (Arc::clone(mount), path.clone());
        let name = (mount, path);
        let (located, when) = self.latest.recall(&name)?;
        let (mount, path) = name;
        Some((self.nodes.recall(&NodeId { mount, path, located })?, when))
    }

    async fn node(&self, id: NodeId, looked: Instant, opening: Opening) -> Result<Arc<Opened>, ArrayError> {
        // Nobody would ever ask again for what is unsettled.
        if !id.located.is_settled() {
            return opening.await;
        }
        let since = self.latest.epoch();
        let opened = self.nodes.get(&id, opening).await;
        let opened = opened.unwrap_or_else(|| Err(ArrayError::Abandoned { what: id.path.to_string() }))?;
        self.latest.remember(&(id.mount, id.path), &(id.located, looked), since);
        Ok(opened)
    }
}

impl Remembers for NodeCache {
    fn usage(&self) -> Vec<(Kind, Usage)> {
        vec![(Kind::Node, self.nodes.usage().and(self.latest.usage().held()))]
    }

    fn forget(&self, mount: &str, prefix: &StorePrefix) -> u64 {
        let is_meant = |of: &str, path: &NodePath| *of == *mount && is_node_below(path, prefix);
        self.latest.forget(|(of, path)| is_meant(of, path));
        self.nodes.forget(|id| is_meant(&id.mount, &id.path))
    }

    fn forget_half(&self) {
        self.nodes.forget_half();
        self.latest.forget_half();
    }
}
