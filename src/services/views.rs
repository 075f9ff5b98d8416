//! Views of mounts: each mount is served as every view of its store, too, to be read only.
//!
//! Not where a mount is the store at the root path of an address or a host of its own: there every path is a key.

use std::sync::Arc;

use super::engine::ArrayEngine;
use super::mount::Mount;
use crate::array::NodeOpener;
use crate::hierarchy::Hierarchy;
use crate::store::SharedStore;
use crate::views::rechunk::{RechunkBudget, RechunkLimits, Rechunker};
use crate::views::{ViewKind, ViewStore};

/// A view of a mount.
#[derive(Clone, Debug)]
pub(crate) struct Viewed {
    kind: ViewKind,
    /// The view as a mount of its own.
    pub(crate) mount: Arc<Mount>,
    /// The nodes in it.
    pub(crate) hierarchy: Hierarchy,
}

impl Viewed {
    /// All views of a mount, whose nodes are opened so.
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

/// A mount of the same name and rights to read, that shows what this store has.
pub(crate) fn shown_as(mount: &Mount, store: SharedStore) -> Mount {
    let (hosts, redirect) = (Vec::new(), None);
    Mount { store, writable: false, allow_prefix_delete: false, hosts, redirect, ..mount.clone() }
}

/// What rechunks a mount, whose nodes are opened so, with room that all mounts share.
pub(crate) fn rechunker(
    mount: &Mount,
    opener: &NodeOpener,
    arrays: &ArrayEngine,
    room: &RechunkBudget,
) -> Rechunker {
    let limits = RechunkLimits { read: arrays.read, metadata: arrays.metadata, codec: arrays.codec };
    let (name, opener, room) = (Arc::clone(&mount.remembered_as), opener.clone(), room.clone());
    let (reader, cpu, encoded) = (arrays.reader.clone(), arrays.cpu.clone(), arrays.encoded.clone());
    Rechunker::new(name, opener, reader, cpu, encoded, limits, room)
}
