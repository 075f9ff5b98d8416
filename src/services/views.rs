//! Views of mounts: each mount is also served as every view of its store, read-only.
//!
//! A mount at the root path of an address or a host has no views there: every path is a key.

use std::sync::Arc;

use super::engine::ArrayEngine;
use super::mount::Mount;
use crate::array::NodeOpener;
use crate::hierarchy::Hierarchy;
use crate::store::SharedStore;
use crate::views::pyramid::PyramidTarget;
use crate::views::rechunk::{RechunkBudget, RechunkLimits, Rechunker};
use crate::views::{ViewKind, ViewStore};

/// A view of a mount.
#[derive(Clone, Debug)]
pub(crate) struct Viewed {
    kind: ViewKind,
    /// The view as a mount of its own.
    pub(crate) mount: Arc<Mount>,
    /// The hierarchy of the view.
    pub(crate) hierarchy: Hierarchy,
}

impl Viewed {
    /// All views of a mount; `opener` opens the mount's nodes.
    pub(crate) fn all(mount: &Mount, opener: &NodeOpener, arrays: &ArrayEngine) -> Vec<Self> {
        [ViewKind::Plain, ViewKind::Unshard].map(|kind| Self::new(kind, mount, opener, arrays)).into()
    }

    fn new(kind: ViewKind, mount: &Mount, opener: &NodeOpener, arrays: &ArrayEngine) -> Self {
        let source = Arc::clone(arrays.reader.source());
        let cpu = arrays.cpu.clone();
        let store = ViewStore::new(kind, opener.clone(), source, cpu.clone(), arrays.metadata, arrays.codec);
        let store: SharedStore = Arc::new(store);
        let hierarchy = Hierarchy::new(Arc::clone(&store), arrays.metadata, cpu)
            .with_separator(mount.dimension_separator);
        Self { kind, mount: Arc::new(shown_as(mount, store)), hierarchy }
    }

    /// The view of this kind.
    pub(crate) fn of(views: &[Self], kind: ViewKind) -> Option<&Self> {
        views.iter().find(|viewed| viewed.kind == kind)
    }
}

/// A read-only mount with the same name that serves another store.
pub(crate) fn shown_as(mount: &Mount, store: SharedStore) -> Mount {
    let (hosts, redirect) = (Vec::new(), None);
    Mount { store, writable: false, allow_prefix_delete: false, hosts, redirect, ..mount.clone() }
}

/// The rechunker of a mount; `opener` opens the mount's nodes, and all mounts share the budget.
pub(crate) fn rechunker(
    mount: &Mount,
    opener: &NodeOpener,
    arrays: &ArrayEngine,
    budget: &RechunkBudget,
) -> Rechunker {
    let limits = RechunkLimits { read: arrays.read, metadata: arrays.metadata, codec: arrays.codec };
    let (name, opener, budget) = (Arc::clone(&mount.cache_name), opener.clone(), budget.clone());
    let (reader, cpu, encoded) = (arrays.reader.clone(), arrays.cpu.clone(), arrays.encoded.clone());
    Rechunker::new(name, opener, reader, cpu, encoded, limits, budget)
}

/// A store that a pyramid is written into.
pub(crate) fn pyramid_target(arrays: &ArrayEngine, store: SharedStore) -> PyramidTarget {
    let mount = Mount::read_only("written", store);
    let hierarchy = Hierarchy::new(Arc::clone(&mount.store), arrays.metadata, arrays.cpu.clone());
    let cached_as = Arc::clone(&mount.cache_name);
    let opener = NodeOpener::new(cached_as, hierarchy, arrays.codec, Arc::clone(&arrays.memo));
    let budget = RechunkBudget::new(arrays.cpu.threads());
    PyramidTarget { rechunker: rechunker(&mount, &opener, arrays, &budget) }
}
