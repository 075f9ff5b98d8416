//! [`Caches`]: all that is remembered, for whoever wants to know how much that is or wants it forgotten.
//!
//! What is remembered is under the version it came from, and does not go stale by itself. Forgetting is for those who know
//! better than the backend's versions do, and for measurements. Keys are those of the abstract store interface (Zarr core
//! 3.1). Small answers as they went out are not here: they belong to `http`.

use std::sync::Arc;

use super::weighted_cache::CacheUsage;
use crate::key::{NodePath, StoreKey, StorePrefix};

/// A kind of thing that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheKind {
    /// Decoded chunks.
    Decoded,
    /// Indexes of shards, and versions of chunks.
    Index,
    /// Opened nodes.
    Node,
    /// Small stored values, or parts of them.
    Value,
    /// Chunks that were encoded anew.
    Encoded,
    /// Small answers as they went out.
    Answers,
}

impl CacheKind {
    /// The kind as a stable word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decoded => "decoded",
            Self::Index => "index",
            Self::Node => "node",
            Self::Value => "value",
            Self::Encoded => "encoded",
            Self::Answers => "answers",
        }
    }
}

/// What remembers.
pub trait Evictable: std::fmt::Debug + Send + Sync {
    /// What it holds of each kind.
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)>;

    /// Forgets what it knows of the keys of a mount below a prefix, and says how many things that were. Whatever is being
    /// loaded is not remembered, so nothing of before comes back. Takes as long as to look at everything once.
    fn purge(&self, mount: &str, prefix: &StorePrefix) -> u64;

    /// Forgets about half of all.
    fn evict_half(&self);
}

/// All that remembers. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Caches(Vec<Arc<dyn Evictable>>);

impl Caches {
    /// These, and another.
    #[must_use]
    pub fn and(mut self, cache: impl Evictable + 'static) -> Self {
        self.0.push(Arc::new(cache));
        self
    }

    /// What is remembered, by kind.
    #[must_use]
    pub fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        self.0.iter().flat_map(|cache| cache.usage()).collect()
    }

    /// Forgets what is known of the keys of a mount below a prefix, and says how many things that were.
    #[must_use]
    pub fn forget(&self, mount: &str, prefix: &StorePrefix) -> u64 {
        self.0.iter().map(|cache| cache.purge(mount, prefix)).fold(0, u64::saturating_add)
    }

    /// Forgets about half of all.
    pub fn forget_half(&self) {
        self.0.iter().for_each(|cache| cache.evict_half());
    }
}

/// Whether a key is below a prefix, or is what the prefix is called.
pub(super) fn is_key_below(key: &StoreKey, prefix: &StorePrefix) -> bool {
    let (key, prefix) = (key.as_str(), prefix.as_str());
    key.starts_with(prefix) || prefix.strip_suffix('/') == Some(key)
}

/// Whether a node stands at a prefix or below it.
pub(super) fn is_node_below(path: &NodePath, prefix: &StorePrefix) -> bool {
    path.prefix().as_str().starts_with(prefix.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_prefix_is_told_by_whole_names() {
        let key = |text: &str| StoreKey::parse(text).unwrap();
        let prefix = |text: &str| StorePrefix::parse(text).unwrap();
        for (text, below, expected) in [
            ("a/b", "a/", true),
            ("a/b/c", "a/b/", true),
            ("a/b", "a/b/", true),
            ("a/bc", "a/b/", false),
            ("b", "a/", false),
        ] {
            assert_eq!(is_key_below(&key(text), &prefix(below)), expected, "{text} {below}");
        }
        assert!(is_key_below(&key("a"), &StorePrefix::root()));
        let node = |text: &str| NodePath::parse(text).unwrap();
        assert!(is_node_below(&node("a"), &prefix("a/")) && is_node_below(&node("a/b"), &prefix("a/")));
        assert!(!is_node_below(&node("ab"), &prefix("a/")) && !is_node_below(&node(""), &prefix("a/")));
        assert!(is_node_below(&node(""), &StorePrefix::root()));
    }
}
