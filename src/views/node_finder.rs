//! [`NodeFinder`]: finds the array that a key belongs to (Zarr core 3.1, "Hierarchy"; the convention
//! "dependent-arrays").
//!
//! This is the nearest stored node above the key, since an array contains no other nodes but those that it declares.
//! The search begins at the path that the form of the key suggests, which is right for most keys. Opened nodes are
//! cached with their versions.

use std::sync::Arc;

use super::error::to_store_error;
use super::placeholder::placeholder_metadata;
use crate::array::{Array, ArrayError, DeclaredArrays, NodeOpener, OpenNode};
use crate::hierarchy::{self, HierarchyError};
use crate::key::{NodePath, StorePrefix};
use crate::metadata::ArrayMetadata;
use crate::store::{ReferenceError, SharedStore, StoreError};

/// Finds nodes of one store.
#[derive(Clone, Debug)]
pub(super) struct NodeFinder(NodeOpener);

/// An array whose document is stored.
#[derive(Debug)]
pub(super) struct StoredArray {
    /// Its path.
    pub(super) path: NodePath,
    /// `None` if its documents or its codecs cannot be used.
    pub(super) array: Option<Arc<Array>>,
    /// The arrays that it declares.
    pub(super) declared: Arc<DeclaredArrays>,
}

/// The node at one path.
enum NodeLookup {
    Missing,
    Group,
    Array(StoredArray),
    /// An array that the array at this path declares.
    Declared(NodePath),
}

impl NodeFinder {
    /// Finds nodes through this opener.
    pub(super) fn new(opener: NodeOpener) -> Self {
        Self(opener)
    }

    /// The opener of the nodes.
    pub(super) fn opener(&self) -> &NodeOpener {
        &self.0
    }

    /// The underlying store.
    pub(super) fn store(&self) -> &SharedStore {
        self.0.hierarchy().store()
    }

    /// Binds metadata as that of an array with chunks stored below a path. Unknown codecs are replaced by placeholders.
    pub(super) fn bind(&self, path: &NodePath, metadata: &Arc<ArrayMetadata>) -> Option<Arc<Array>> {
        let bound =
            self.0.bind(path, metadata).or_else(|_| self.0.bind(path, &placeholder_metadata(metadata)));
        bound.ok().map(Arc::new)
    }

    /// The nearest stored array at a prefix or above.
    pub(super) async fn nearest_array(
        &self,
        prefix: &StorePrefix,
    ) -> Result<Option<StoredArray>, StoreError> {
        let Ok(nearest) = NodePath::parse(prefix.as_str()) else { return Ok(None) };
        let likely = likely_array_path(&nearest);
        let is_group_likely = match self.lookup(&likely).await? {
            NodeLookup::Array(array) => return Ok(Some(array)),
            NodeLookup::Declared(primary) => return self.stored_array(&primary).await,
            NodeLookup::Group => true,
            NodeLookup::Missing => {
                if let Some(opened) = self.find_declared(&likely).await?
                    && let Some(dependent) = &opened.dependent
                {
                    return self.stored_array(&dependent.primary).await;
                }
                false
            }
        };
        let mut next = Some(nearest);
        while let Some(path) = next {
            if path == likely && is_group_likely {
                break;
            }
            if path != likely {
                match self.lookup(&path).await? {
                    NodeLookup::Array(array) => return Ok(Some(array)),
                    NodeLookup::Declared(primary) => return self.stored_array(&primary).await,
                    NodeLookup::Group => break,
                    NodeLookup::Missing => {}
                }
            }
            next = path.parent();
        }
        Ok(None)
    }

    /// The stored array that contains everything below a prefix. A node that is stored at the prefix itself counts
    /// first, even if its name has the form of a part of a chunk key.
    pub(super) async fn enclosing_array(
        &self,
        prefix: &StorePrefix,
    ) -> Result<Option<StoredArray>, StoreError> {
        let Ok(path) = NodePath::parse(prefix.as_str()) else { return Ok(None) };
        match self.lookup(&path).await? {
            NodeLookup::Array(array) => Ok(Some(array)),
            NodeLookup::Declared(primary) => self.stored_array(&primary).await,
            NodeLookup::Group => Ok(None),
            NodeLookup::Missing => self.nearest_array(prefix).await,
        }
    }

    /// The document of the array that is declared at a path, for readers that do not know the convention.
    pub(super) async fn rebased_document(&self, path: &NodePath) -> Result<Option<Arc<str>>, StoreError> {
        let dependent = self.find_declared(path).await?.and_then(|opened| opened.dependent.clone());
        Ok(dependent.and_then(|dependent| dependent.rebased.as_deref().map(Arc::from)))
    }

    /// The array that is declared at a path, if no node is stored there.
    async fn find_declared(&self, path: &NodePath) -> Result<Option<Arc<OpenNode>>, StoreError> {
        self.0.find_declared(path).await.map_err(to_store_error)
    }

    /// The stored array at a path that has just had one.
    async fn stored_array(&self, path: &NodePath) -> Result<Option<StoredArray>, StoreError> {
        Ok(match self.lookup(path).await? {
            NodeLookup::Array(array) => Some(array),
            NodeLookup::Missing | NodeLookup::Group | NodeLookup::Declared(_) => None,
        })
    }

    async fn lookup(&self, path: &NodePath) -> Result<NodeLookup, StoreError> {
        let opened = match self.0.find(path).await {
            Ok(None) => return Ok(NodeLookup::Missing),
            Ok(Some(opened)) => Some(opened),
            Err(ArrayError::Hierarchy(HierarchyError::NoSuchNode { .. } | HierarchyError::Path { .. })) => {
                return Ok(NodeLookup::Missing);
            }
            // An unreadable node is shown as it is stored. Of two nodes with its path, the store itself serves nothing.
            Err(ArrayError::Hierarchy(
                HierarchyError::Metadata { .. }
                | HierarchyError::Store { source: StoreError::References(ReferenceError::TwoNodes), .. },
            )) => None,
            Err(error) => return Err(to_store_error(error)),
        };
        if let Some(dependent) = opened.as_ref().and_then(|opened| opened.dependent.as_ref()) {
            return Ok(NodeLookup::Declared(dependent.primary.clone()));
        }
        let array = match opened.as_ref().map(|opened| (opened.array(), &opened.node)) {
            Some((_, hierarchy::Node::Group(_))) => return Ok(NodeLookup::Group),
            Some((Ok(array), _)) => Some(Arc::clone(array)),
            Some((Err(_), hierarchy::Node::Array(metadata))) => self.bind(path, metadata),
            None => None,
        };
        let declared = self.0.declared(path, opened.as_deref()).await.map_err(to_store_error)?;
        Ok(NodeLookup::Array(StoredArray { path: path.clone(), array, declared }))
    }
}

/// The path of a chunk's array, guessed from a prefix of the chunk's key: the part before the trailing numbers, and
/// before a `c` in front of these.
fn likely_array_path(prefix: &NodePath) -> NodePath {
    let mut path = prefix.clone();
    while is_number(path.name())
        && let Some(parent) = path.parent()
    {
        path = parent;
    }
    match path.parent() {
        Some(parent) if path.name() == "c" => parent,
        _ => path,
    }
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_the_path_of_an_array_from_a_chunk_key() {
        for (prefix, path) in [
            ("a/b/c/0/12", "a/b"),
            ("a/0/c/3", "a/0"),
            ("a/b", "a/b"),
            ("a/0/1", "a"),
            ("c", ""),
            ("c/0", ""),
            ("0/0", ""),
            ("", ""),
            ("a/x/0x", "a/x/0x"),
        ] {
            let prefix = NodePath::parse(prefix).unwrap();
            assert_eq!(likely_array_path(&prefix), NodePath::parse(path).unwrap(), "{prefix}");
        }
    }
}
