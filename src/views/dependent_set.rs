//! [`DependentSet`]: a stored array and those that it declares (the convention "dependent-arrays"), as a view shows them.
//!
//! Each is shown below its own path. What is stored below the array is a chunk of one or several of them, or something
//! else, which is shown as it is. A declared array in whose place something is stored is none: who looks for the nearest
//! stored node above a key never comes here for it, and listings leave it out.

use std::sync::Arc;

use super::kind::ViewKind;
use super::node_finder::{Nodes, StoredArray};
use super::view_array::{Scope, ViewArray};
use crate::array::{Declared, DeclaredArrays};
use crate::chunk::ChunkCoords;
use crate::key::{NodePath, StorePrefix};
use crate::store::Version;

/// A stored array and those that it declares.
#[derive(Debug)]
pub(crate) struct DependentSet {
    kind: ViewKind,
    nodes: Nodes,
    path: NodePath,
    /// The stored array itself; `None` if it cannot be used.
    primary: Option<Arc<ViewArray>>,
    declared: Arc<DeclaredArrays>,
}

/// What a key below a family's path is.
pub(crate) enum KeyMatch {
    /// Of a chunk that is shown.
    Chunk(Arc<ViewArray>, ChunkCoords),
    /// Of a stored chunk that is shown under another key, or in parts.
    Hidden,
    /// Of anything else.
    Other,
}

impl DependentSet {
    /// The family of a stored array; `None` if all of it is shown as it is stored.
    pub(crate) fn of(kind: ViewKind, nodes: &Nodes, stored: StoredArray) -> Option<Self> {
        let StoredArray { path, array, declared } = stored;
        let primary = array.and_then(|array| match ViewArray::for_node(kind, path.clone(), &array) {
            None if !declared.arrays.is_empty() => Some(ViewArray::unchanged(path.clone(), &array)),
            shown => shown,
        });
        if primary.is_none() && declared.arrays.is_empty() {
            return None;
        }
        Some(Self { kind, nodes: nodes.clone(), path, primary: primary.map(Arc::new), declared })
    }

    /// Where the stored array is, below which all are stored and shown.
    pub(crate) fn path(&self) -> &NodePath {
        &self.path
    }

    /// What a key is.
    pub(crate) fn find(&self, key: &str) -> KeyMatch {
        let near =
            self.declared.arrays.iter().filter(|declared| key.starts_with(declared.path.prefix().as_str()));
        for shown in near.filter_map(|declared| self.shown(declared)).chain(self.primary.clone()) {
            if let Some(coords) = shown.decode(key) {
                return KeyMatch::Chunk(shown, coords);
            }
        }
        if self.is_stored_chunk(key) { KeyMatch::Hidden } else { KeyMatch::Other }
    }

    /// Whether stored chunks are hidden where they are not shown: what may be those of an array that cannot be used is
    /// left as it is.
    pub(crate) fn hides_chunks(&self) -> bool {
        self.primary.is_some()
    }

    /// Whether what is stored under a key is a chunk, and hidden.
    fn is_stored_chunk(&self, key: &str) -> bool {
        let Some(primary) = &self.primary else { return false };
        if primary.decode_stored(key).is_some() {
            return true;
        }
        let below = key.strip_prefix(self.path.prefix().as_str());
        below.is_some_and(|below| {
            self.declared.arrays.iter().any(|declared| declared.chunk_coords(below).is_some())
        })
    }

    /// How a declared array is shown; `None` if it cannot be used.
    pub(crate) fn shown(&self, declared: &Declared) -> Option<Arc<ViewArray>> {
        let array = declared.array(|metadata| self.nodes.bind(&self.path, metadata))?;
        Some(Arc::new(ViewArray::of_declared(self.kind, declared.path.clone(), array)))
    }

    /// The arrays that something may be shown of below a prefix that is in the family's, each with where its stored
    /// chunks are listed.
    pub(crate) fn below(&self, prefix: &StorePrefix) -> Vec<(Arc<ViewArray>, StorePrefix)> {
        let prefix_text = prefix.as_str();
        let is_near = |path: &NodePath| {
            let path = path.prefix().as_str();
            path.starts_with(prefix_text) || prefix_text.starts_with(path)
        };
        let declared = self.declared.arrays.iter().filter(|declared| is_near(&declared.path));
        let shown = self.primary.iter().cloned().chain(declared.filter_map(|declared| self.shown(declared)));
        let listed = shown.filter_map(|shown| {
            if shown.path().prefix().as_str().starts_with(prefix_text) {
                let stored = shown.stored_prefix();
                return Some((shown, stored));
            }
            match shown.scope(prefix) {
                Scope::Chunks(stored) => Some((shown, stored)),
                Scope::Others => None,
            }
        });
        listed.collect()
    }

    /// The array that is declared at a path, and the version of the document that says so.
    pub(crate) fn declared(&self, path: &NodePath) -> Option<(&Declared, &Version)> {
        let declared = self.declared.arrays.iter().find(|declared| declared.path == *path)?;
        Some((declared, self.declared.version.as_ref()?))
    }

    /// Whether a key that is stored is listed as what it is stored as.
    pub(crate) fn lists_as_stored(&self, key: &str) -> bool {
        matches!(self.find(key), KeyMatch::Other)
    }
}
