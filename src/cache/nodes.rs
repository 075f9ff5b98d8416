//! [`NodeCache`]: opened nodes, by mount, path and the versions of their documents.

use std::sync::Arc;

use async_trait::async_trait;

use super::shelf::Shelf;
use crate::array::{ArrayError, NodeId, NodeMemo, Opened, Opening};

/// Bytes of memory that a document takes when parsed, for each of its own, at most.
const PARSED_RATIO: u64 = 40;
/// Bytes that a node takes beside what its documents say.
const NODE_BYTES: u64 = 2 << 10;

/// Remembers opened nodes; the least used fall out.
#[derive(Clone, Debug)]
pub struct NodeCache(Arc<Shelf<NodeId, Arc<Opened>>>);

impl NodeCache {
    /// A cache of so many bytes, as estimated from the length of the documents.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Self {
        let weigh = |id: &NodeId, _: &Arc<Opened>| {
            let key = id.path.as_str().len() as u64;
            id.located.document_bytes().saturating_mul(PARSED_RATIO).saturating_add(NODE_BYTES + key)
        };
        Self(Arc::new(Shelf::new(capacity_bytes, weigh)))
    }
}

#[async_trait]
impl NodeMemo for NodeCache {
    async fn node(&self, id: NodeId, opening: Opening) -> Result<Arc<Opened>, ArrayError> {
        let opened = self.0.get(&id, opening).await;
        opened.unwrap_or_else(|| Err(ArrayError::Abandoned { what: id.path.to_string() }))
    }
}
