//! [`NodeCache`]: opened nodes, by mount, path and the versions of their documents.

use std::sync::Arc;

use moka::sync::Cache;

use super::LARGEST_SHARE;
use crate::array::{NodeMemo, Opened};
use crate::hierarchy::Located;
use crate::key::NodePath;

type Key = (Arc<str>, NodePath, Located);

/// Remembers opened nodes; the least used fall out.
///
/// A document parsed takes up to forty times its own bytes, so a node counts for more the longer its documents are.
#[derive(Clone, Debug)]
pub struct NodeCache {
    cache: Cache<Key, Arc<Opened>>,
    largest: u32,
}

/// What a node counts as: one, and one for each KiB of its documents.
fn weight(located: &Located) -> u32 {
    u32::try_from(located.document_bytes() >> 10).unwrap_or(u32::MAX).saturating_add(1)
}

impl NodeCache {
    /// A cache of at most so many nodes, if their documents are short.
    #[must_use]
    pub fn new(nodes: u64) -> Self {
        let weigher = |(_, _, located): &Key, _: &Arc<Opened>| weight(located);
        let cache = Cache::builder().max_capacity(nodes).weigher(weigher).build();
        Self { cache, largest: u32::try_from(nodes / LARGEST_SHARE).unwrap_or(u32::MAX).max(1) }
    }
}

impl NodeMemo for NodeCache {
    fn get(&self, mount: &Arc<str>, path: &NodePath, located: &Located) -> Option<Arc<Opened>> {
        self.cache.get(&(Arc::clone(mount), path.clone(), located.clone()))
    }

    fn put(&self, mount: &Arc<str>, path: &NodePath, opened: &Arc<Opened>) {
        if weight(&opened.located) <= self.largest {
            let key = (Arc::clone(mount), path.clone(), opened.located.clone());
            self.cache.insert(key, Arc::clone(opened));
        }
    }
}
