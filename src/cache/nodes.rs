//! [`NodeCache`]: opened nodes, by mount, path and the versions of their documents.

use std::sync::Arc;

use moka::sync::Cache;

use crate::array::{NodeMemo, Opened};
use crate::hierarchy::Located;
use crate::key::NodePath;

/// Remembers opened nodes; the least used fall out.
#[derive(Clone, Debug)]
pub struct NodeCache(Cache<(Arc<str>, NodePath, Located), Arc<Opened>>);

impl NodeCache {
    /// A cache of at most so many nodes.
    #[must_use]
    pub fn new(nodes: u64) -> Self {
        Self(Cache::new(nodes))
    }
}

impl NodeMemo for NodeCache {
    fn get(&self, mount: &Arc<str>, path: &NodePath, located: &Located) -> Option<Arc<Opened>> {
        self.0.get(&(Arc::clone(mount), path.clone(), located.clone()))
    }

    fn put(&self, mount: &Arc<str>, path: &NodePath, opened: &Arc<Opened>) {
        self.0.insert((Arc::clone(mount), path.clone(), opened.located.clone()), Arc::clone(opened));
    }
}
