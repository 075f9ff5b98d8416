//! [`DependentSet`]: a stored array and the arrays that it declares (the convention "dependent-arrays"), as a view
//! shows them.
//!
//! The stored array is the primary. The view shows each array below its own path. A stored key below the primary is a
//! chunk of one or several of these arrays, or another value, which stays unchanged. A declared array does not exist
//! where a node is stored at its path: the search for the nearest stored node finds that node instead, and listings
//! omit the declared one.

use std::sync::Arc;

use super::kind::ViewKind;
use super::node_finder::{NodeFinder, StoredArray};
use super::view_array::{ListingScope, ViewArray};
use crate::array::{Declared, DeclaredArrays};
use crate::chunk::ChunkCoords;
use crate::key::{NodePath, StorePrefix};
use crate::store::Version;

/// A stored array and the arrays that it declares.
#[derive(Debug)]
pub(crate) struct DependentSet {
    kind: ViewKind,
    node_finder: NodeFinder,
    path: NodePath,
    /// The stored array itself; `None` if it cannot be used.
    primary: Option<Arc<ViewArray>>,
    declared: Arc<DeclaredArrays>,
}

/// What a key below the path of a set refers to.
pub(crate) enum KeyMatch {
    /// A view chunk.
    Chunk(Arc<ViewArray>, ChunkCoords),
    /// A stored chunk that the view shows under another key, or in parts.
    Hidden,
    /// Any other value.
    Other,
}

impl DependentSet {
    /// The set of a stored array; `None` if the view leaves all of it unchanged.
    pub(crate) fn for_array(kind: ViewKind, nodes: &NodeFinder, stored: StoredArray) -> Option<Self> {
        let StoredArray { path, array, declared } = stored;
        let primary = array.and_then(|array| match ViewArray::for_node(kind, path.clone(), &array) {
            None if !declared.arrays.is_empty() => Some(ViewArray::unchanged(path.clone(), &array)),
            array => array,
        });
        if primary.is_none() && declared.arrays.is_empty() {
            return None;
        }
        Some(Self { kind, node_finder: nodes.clone(), path, primary: primary.map(Arc::new), declared })
    }

    /// The path of the stored array. All arrays of the set are stored and shown below it.
    pub(crate) fn path(&self) -> &NodePath {
        &self.path
    }

    /// What a key refers to.
    pub(crate) fn match_key(&self, key: &str) -> KeyMatch {
        let near =
            self.declared.arrays.iter().filter(|declared| key.starts_with(declared.path.prefix().as_str()));
        for array in near.filter_map(|declared| self.view_array(declared)).chain(self.primary.clone()) {
            if let Some(coords) = array.decode_key(key) {
                return KeyMatch::Chunk(array, coords);
            }
        }
        if self.is_stored_chunk(key) { KeyMatch::Hidden } else { KeyMatch::Other }
    }

    /// Whether keys of stored chunks are hidden where they are not keys of view chunks. They stay visible if the stored
    /// array cannot be used.
    pub(crate) fn hides_chunks(&self) -> bool {
        self.primary.is_some()
    }

    /// Whether a stored key is that of a chunk, and hidden.
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

    /// The view of a declared array; `None` if that cannot be used.
    pub(crate) fn view_array(&self, declared: &Declared) -> Option<Arc<ViewArray>> {
        let array = declared.array(|metadata| self.node_finder.bind(&self.path, metadata))?;
        Some(Arc::new(ViewArray::for_declared(self.kind, declared.path.clone(), array)))
    }

    /// The arrays that may have view chunks below a prefix in the set, each with the prefix of its stored chunks.
    pub(crate) fn arrays_below(&self, prefix: &StorePrefix) -> Vec<(Arc<ViewArray>, StorePrefix)> {
        let prefix_text = prefix.as_str();
        let is_near = |path: &NodePath| {
            let path = path.prefix().as_str();
            path.starts_with(prefix_text) || prefix_text.starts_with(path)
        };
        let declared = self.declared.arrays.iter().filter(|declared| is_near(&declared.path));
        let arrays =
            self.primary.iter().cloned().chain(declared.filter_map(|declared| self.view_array(declared)));
        let listed = arrays.filter_map(|array| {
            if array.path().prefix().as_str().starts_with(prefix_text) {
                let stored = array.stored_prefix();
                return Some((array, stored));
            }
            match array.listing_scope(prefix) {
                ListingScope::Chunks(stored) => Some((array, stored)),
                ListingScope::Others => None,
            }
        });
        listed.collect()
    }

    /// The array that is declared at a path, and the version of the document that declares it.
    pub(crate) fn declared(&self, path: &NodePath) -> Option<(&Declared, &Version)> {
        let declared = self.declared.arrays.iter().find(|declared| declared.path == *path)?;
        Some((declared, self.declared.version.as_ref()?))
    }

    /// Whether a listing shows a stored key unchanged.
    pub(crate) fn lists_as_stored(&self, key: &str) -> bool {
        matches!(self.match_key(key), KeyMatch::Other)
    }
}
