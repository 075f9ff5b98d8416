//! [`Mounts`]: the mounts by name and host, each with the opener of its nodes, its views, its rechunker and its pyramids.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::engine::ArrayEngine;
use super::mount::Mount;
use super::views::{Viewed, rechunker};
use crate::array::NodeOpener;
use crate::auth::MountLookup;
use crate::cache::Caches;
use crate::hierarchy::Hierarchy;
use crate::http::host;
use crate::http::options::HttpOptionsError;
use crate::store::{BackendState, ObjectId, PinnedStore, PinnedVersion};
use crate::views::ViewKind;
use crate::views::pyramid::{PyramidBuilder, Pyramids};
use crate::views::rechunk::{RechunkBudget, Rechunker};

/// All mounts.
#[derive(Debug)]
pub struct Mounts {
    by_name: BTreeMap<String, (Arc<Mount>, NodeOpener)>,
    /// The views of each mount, by its name.
    views: BTreeMap<String, Vec<Viewed>>,
    /// The rechunker of each mount, by its name.
    rechunkers: BTreeMap<String, Rechunker>,
    /// The pyramids of each mount, by its name.
    pyramids: BTreeMap<String, Pyramids>,
    /// The mounts by host name, in canonical form.
    by_host: BTreeMap<String, Arc<Mount>>,
    /// Whether responses of any mount may be stale.
    may_be_stale: bool,
    /// Whether any mount has versions.
    has_versions: bool,
    /// What mounts at a snapshot are built with.
    shared: Arc<Shared>,
}

/// What all mounts share.
#[derive(Debug)]
struct Shared {
    engine: ArrayEngine,
    budget: RechunkBudget,
    builder: PyramidBuilder,
}

impl Mounts {
    /// These mounts; all rechunkers share the budget, and all pyramids the builder.
    ///
    /// # Errors
    /// [`HttpOptionsError`] if a mount cannot be served, or two have one name or host.
    pub(super) fn new(
        mounts: impl IntoIterator<Item = Mount>,
        engine: &ArrayEngine,
        (budget, builder): (&RechunkBudget, &PyramidBuilder),
    ) -> Result<Self, HttpOptionsError> {
        let (mut by_name, mut by_host) = (BTreeMap::new(), BTreeMap::new());
        let (mut views, mut rechunkers, mut pyramids) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for mount in mounts {
            mount.check()?;
            let opener = opener(&mount, engine);
            views.insert(mount.name.clone(), Viewed::all(&mount, &opener, engine));
            let rechunker = rechunker(&mount, &opener, engine, budget);
            let levels = Pyramids::new(rechunker.clone(), engine.pyramid, builder.clone());
            pyramids.insert(mount.name.clone(), levels);
            rechunkers.insert(mount.name.clone(), rechunker);
            let mount = Arc::new(mount);
            for host in &mount.hosts {
                if by_host.insert(host::canonical(host), Arc::clone(&mount)).is_some() {
                    return Err(HttpOptionsError::DuplicateHost(host.clone()));
                }
            }
            if let Some((twin, _)) = by_name.insert(mount.name.clone(), (mount, opener)) {
                return Err(HttpOptionsError::DuplicateMount(twin.name.clone()));
            }
        }
        let may_be_stale = by_name.values().any(|(mount, _)| mount.staleness.is_some());
        let has_versions = by_name.values().any(|(mount, _)| mount.store.served_version().is_some());
        let (budget, builder) = (budget.clone(), builder.clone());
        let shared = Arc::new(Shared { engine: engine.clone(), budget, builder });
        Ok(Self { by_name, views, rechunkers, pyramids, by_host, may_be_stale, has_versions, shared })
    }

    /// One mount alone, with a version of it at a snapshot: that of keys without a version, if it is `None`. `None` if there is no
    /// mount of this name.
    pub(super) fn at_snapshot(
        &self,
        name: &str,
        version: Option<&PinnedVersion>,
        snapshot: ObjectId,
    ) -> Option<Self> {
        let Shared { engine, budget, builder } = &*self.shared;
        let mount = self.get(name)?;
        let store = PinnedStore::new(Arc::clone(&mount.store), version, snapshot);
        // No name of a mount has this character; what is cached of two snapshots is kept apart.
        let cache_name = format!("{}@{snapshot}", mount.cache_name).into();
        let mount = Mount { cache_name, store: Arc::new(store), hosts: Vec::new(), ..Mount::clone(mount) };
        Self::new([mount], engine, (budget, builder)).ok()
    }

    /// The mount of exactly this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Mount>> {
        self.with_opener(name).map(|(mount, _)| mount)
    }

    /// The mount of exactly this name, with the opener of its nodes.
    pub(crate) fn with_opener(&self, name: &str) -> Option<&(Arc<Mount>, NodeOpener)> {
        self.by_name.get(name)
    }

    /// Whether responses of any mount may be stale.
    pub(crate) fn may_be_stale(&self) -> bool {
        self.may_be_stale
    }

    /// Whether any mount has versions.
    pub(crate) fn has_versions(&self) -> bool {
        self.has_versions
    }

    /// All mounts, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Mount>> {
        self.by_name.values().map(|(mount, _)| mount)
    }

    /// Whether any mount is served at the root path of a host.
    pub(crate) fn has_hosts(&self) -> bool {
        !self.by_host.is_empty()
    }

    /// The mount at the root path of a host, by the host's canonical name.
    pub(crate) fn of_host(&self, host: &str) -> Option<&Arc<Mount>> {
        self.by_host.get(host)
    }

    /// The view of this kind of the mount of exactly this name.
    pub(crate) fn viewed(&self, kind: ViewKind, name: &str) -> Option<&Viewed> {
        Viewed::of(self.views.get(name)?, kind)
    }

    /// The rechunker of the mount of exactly this name.
    pub(crate) fn rechunker(&self, name: &str) -> Option<&Rechunker> {
        self.rechunkers.get(name)
    }

    /// The pyramids of the mount of exactly this name.
    pub(crate) fn pyramids(&self, name: &str) -> Option<&Pyramids> {
        self.pyramids.get(name)
    }

    /// The hierarchy of a mount, or of a view of it.
    pub(crate) fn hierarchy(&self, view: Option<ViewKind>, name: &str) -> Option<&Hierarchy> {
        match view {
            None => self.with_opener(name).map(|(_, opener)| opener.hierarchy()),
            Some(kind) => self.viewed(kind, name).map(|viewed| &viewed.hierarchy),
        }
    }

    /// The state of each backend, by the mount's name; mounts without a remote backend are left out.
    pub(crate) fn backend_states(&self) -> impl Iterator<Item = (&str, BackendState)> {
        self.iter().filter_map(|mount| Some((mount.name.as_str(), mount.store.backend()?)))
    }

    /// Purges the caches of stores that `before` has and these mounts have not.
    pub(crate) fn purge_removed(&self, before: &Self, caches: &Caches) {
        let is_served = |name: &Arc<str>| self.iter().any(|mount| mount.cache_name == *name);
        for mount in before.iter().filter(|mount| !is_served(&mount.cache_name)) {
            caches.drop_mount(&mount.cache_name);
        }
    }
}

/// The opener of a mount's nodes.
fn opener(mount: &Mount, engine: &ArrayEngine) -> NodeOpener {
    let hierarchy = Hierarchy::new(Arc::clone(&mount.store), engine.metadata, engine.cpu.clone())
        .with_separator(mount.dimension_separator);
    let cached_as = Arc::clone(&mount.cache_name);
    NodeOpener::new(cached_as, hierarchy, engine.codec, Arc::clone(&engine.memo))
}

impl MountLookup for Mounts {
    fn opener(&self, mount: &str) -> Option<&NodeOpener> {
        self.with_opener(mount).map(|(_, opener)| opener)
    }

    fn is_consolidated(&self, mount: &str) -> bool {
        self.get(mount).is_some_and(|mount| mount.consolidated)
    }

    fn erases_prefixes(&self, mount: &str) -> bool {
        self.get(mount).is_some_and(|mount| mount.may_erase_prefixes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::test_store::TestStore;

    fn named(name: &str) -> Mount {
        Mount::read_only(name, TestStore::new())
    }

    fn mounts(mounts: Vec<Mount>) -> Result<(), HttpOptionsError> {
        let shared = (&RechunkBudget::new(1), &PyramidBuilder::default());
        Mounts::new(mounts, &ArrayEngine::uncached(), shared).map(|_| ())
    }

    #[test]
    fn mounts_need_unique_names_that_are_valid_in_urls() {
        for name in ["", ".", "..", "a/b", "a b", "é", "a%20", &"x".repeat(65)] {
            assert_eq!(mounts(vec![named(name)]), Err(HttpOptionsError::MountName(name.to_owned())));
        }
        assert_eq!(
            mounts(vec![named("a"), named("a")]),
            Err(HttpOptionsError::DuplicateMount("a".to_owned()))
        );
        assert_eq!(mounts(vec![named("a"), named("A"), named("x.y_z~-1")]), Ok(()));
        let mut odd = named("a");
        odd.cache_control.chunks = "a\nb".to_owned();
        assert_eq!(mounts(vec![odd]), Err(HttpOptionsError::CacheControl("a".to_owned())));
    }

    #[test]
    fn a_host_belongs_to_one_mount() {
        let at_hosts = |hosts: [&str; 2]| {
            let named = hosts.iter().zip(["a", "b"]);
            mounts(
                named
                    .map(|(host, name)| Mount { hosts: vec![(*host).to_owned()], ..self::named(name) })
                    .collect(),
            )
        };
        assert_eq!(at_hosts(["a.example", "b.example"]), Ok(()));
        for twin in ["a.example", "A.Example", "a.example."] {
            assert_eq!(at_hosts(["a.example", twin]), Err(HttpOptionsError::DuplicateHost(twin.to_owned())));
        }
        for odd in ["", "a.example:80", "http://a.example", "a b", "*", "a/b", "user@a"] {
            assert_eq!(at_hosts(["a.example", odd]), Err(HttpOptionsError::Host(odd.to_owned())));
        }
    }
}
