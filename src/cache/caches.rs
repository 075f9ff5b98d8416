//! [`Caches`]: all caches of the server, to report their usage and to purge them.
//!
//! Entries do not go stale by themselves, because each is under the version it came from. A purge is for changes that the
//! backend's versions do not show, and for measurements. Keys are those of the abstract store interface (Zarr core 3.1). The
//! cache of responses is not among these: it belongs to `http`.

use std::sync::Arc;

use super::disk_report::DiskReport;
use super::weighted_cache::CacheUsage;
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::store::PinnedVersion;

/// A kind of cache entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheKind {
    /// Decoded chunks.
    Decoded,
    /// Shard indexes, and the versions of chunks.
    Index,
    /// Opened nodes.
    Node,
    /// Small stored values, or parts of them.
    Value,
    /// The last lookups of values of mounts whose freshness has `stale`.
    Lookup,
    /// Re-encoded chunks.
    Encoded,
    /// Responses.
    Answers,
    /// Parts of stored values, on a local disk.
    Disk,
}

impl CacheKind {
    /// The kind in metrics; the word never changes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decoded => "decoded",
            Self::Index => "index",
            Self::Node => "node",
            Self::Value => "value",
            Self::Lookup => "lookup",
            Self::Encoded => "encoded",
            Self::Answers => "answers",
            Self::Disk => "disk",
        }
    }
}

/// What a purge did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeOutcome {
    /// How many entries were removed.
    pub entries: u64,
    /// Whether it holds after a restart too.
    pub is_durable: bool,
}

impl PurgeOutcome {
    /// What a purge of a cache in memory did.
    pub(super) const fn of_memory(entries: u64) -> Self {
        Self { entries, is_durable: true }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            is_durable: self.is_durable && other.is_durable,
        }
    }
}

/// A cache that can be purged.
pub trait Evictable: std::fmt::Debug + Send + Sync {
    /// How much it holds of each kind, and how often that was used.
    fn usage(&self) -> Vec<(CacheKind, CacheUsage)>;

    /// Removes the entries of the keys of a mount below a prefix. The results of loads in flight are not cached either, so
    /// nothing from before the purge comes back. Takes time in proportion to all entries.
    fn purge(&self, mount: &str, prefix: &StorePrefix) -> PurgeOutcome;

    /// Removes what is cached of a mount that is served no longer under this name.
    fn drop_mount(&self, mount: &str) {
        self.purge(mount, &StorePrefix::root());
    }

    /// Removes about half of all entries.
    fn evict_half(&self);

    /// Admits everything that is read of the keys of a mount below a prefix, until the result is dropped. `None` for a cache
    /// that admits everything anyway.
    fn admit_all(&self, _mount: &str, _prefix: &StorePrefix) -> Option<Box<dyn Send>> {
        None
    }

    /// The report of a cache on a disk; `None` for one in memory.
    fn disk_report(&self) -> Option<DiskReport> {
        None
    }
}

/// All caches of the server. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Caches(Vec<Arc<dyn Evictable>>);

impl Caches {
    /// These caches and another.
    #[must_use]
    pub fn and(mut self, cache: impl Evictable + 'static) -> Self {
        self.0.push(Arc::new(cache));
        self
    }

    /// The usage of the caches, by kind.
    #[must_use]
    pub fn usage(&self) -> Vec<(CacheKind, CacheUsage)> {
        self.0.iter().flat_map(|cache| cache.usage()).collect()
    }

    /// Removes the entries of the keys of a mount below a prefix.
    #[must_use]
    pub fn purge(&self, mount: &str, prefix: &StorePrefix) -> PurgeOutcome {
        let outcomes = self.0.iter().map(|cache| cache.purge(mount, prefix));
        outcomes.fold(PurgeOutcome::of_memory(0), PurgeOutcome::and)
    }

    /// Removes what is cached of a mount that is served no longer under this name.
    pub fn drop_mount(&self, mount: &str) {
        for cache in &self.0 {
            cache.drop_mount(mount);
        }
    }

    /// Admits everything that is read of the keys of a mount below a prefix, until the result is dropped.
    #[must_use]
    pub fn admit_all(&self, mount: &str, prefix: &StorePrefix) -> Vec<Box<dyn Send>> {
        self.0.iter().filter_map(|cache| cache.admit_all(mount, prefix)).collect()
    }

    /// The report of the disk cache, if there is one.
    #[must_use]
    pub fn disk_report(&self) -> Option<DiskReport> {
        self.0.iter().find_map(|cache| cache.disk_report())
    }

    /// Removes about half of all entries.
    pub fn evict_half(&self) {
        self.0.iter().for_each(|cache| cache.evict_half());
    }
}

/// Whether a key is below a prefix, or is the prefix without its slash. Versions in the two do not count: what is read of a
/// branch is cached under its snapshot, or under no version.
pub(super) fn is_key_below(key: &StoreKey, prefix: &StorePrefix) -> bool {
    let (key, prefix) = (PinnedVersion::without(key.as_str()), PinnedVersion::without(prefix.as_str()));
    key.starts_with(prefix) || prefix.strip_suffix('/') == Some(key)
}

/// Whether what is cached under a mount's name is of that mount: under its own name, or under that of one of its snapshots,
/// which follows an `@`.
pub(super) fn is_of_mount(owner: &str, mount: &str) -> bool {
    base_name(owner) == mount
}

/// The name of a mount without that of a snapshot.
pub(super) fn base_name(owner: &str) -> &str {
    owner.split_once('@').map_or(owner, |(mount, _)| mount)
}

/// Whether a node is at a prefix or below it. Versions in the two do not count, as of keys.
pub(super) fn is_node_below(path: &NodePath, prefix: &StorePrefix) -> bool {
    PinnedVersion::without(path.prefix().as_str()).starts_with(PinnedVersion::without(prefix.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_matches_whole_path_segments() {
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

    #[test]
    fn a_prefix_matches_in_all_versions_whichever_it_names() {
        let id = "4N0217AZA4VNPYD0HR0G";
        let versions = [String::new(), "@branch.main/".into(), "@tag.v1/".into(), format!("@{id}/")];
        for (key_version, prefix_version) in
            versions.iter().flat_map(|one| versions.iter().map(move |two| (one, two)))
        {
            let key = |text: &str| StoreKey::parse(&format!("{key_version}{text}")).unwrap();
            let node = |text: &str| NodePath::parse(&format!("{key_version}{text}")).unwrap();
            let prefix = |text: &str| StorePrefix::parse(&format!("{prefix_version}{text}")).unwrap();
            assert!(is_key_below(&key("a/c/0"), &prefix("a/")), "{key_version} {prefix_version}");
            assert!(!is_key_below(&key("ab/c/0"), &prefix("a/")), "{key_version} {prefix_version}");
            assert!(is_key_below(&key("a/c/0"), &prefix("")), "{key_version} {prefix_version}");
            assert!(is_node_below(&node("a/b"), &prefix("a/")), "{key_version} {prefix_version}");
            assert!(!is_node_below(&node("b"), &prefix("a/")), "{key_version} {prefix_version}");
        }
        let key = StoreKey::parse("@odd/a").unwrap();
        assert!(!is_key_below(&key, &StorePrefix::parse("a/").unwrap()), "its first segment is no version");
    }
}
