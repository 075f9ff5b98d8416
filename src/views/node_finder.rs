//! [`Nodes`]: which array a key is of (Zarr core 3.1, "Hierarchy"; the convention "dependent-arrays").
//!
//! The nearest stored node above a key says so: below an array there are no other nodes but those that it declares. It is
//! looked for where the key itself says that it is first, which is right for most. Nodes that were opened are remembered
//! with their versions.

use std::sync::Arc;

use super::error::failed;
use super::placeholder::placeholder_metadata;
use crate::array::{Array, ArrayError, DeclaredArrays, NodeOpener, OpenNode};
use crate::hierarchy::{self, HierarchyError};
use crate::key::{NodePath, StorePrefix};
use crate::metadata::ArrayMetadata;
use crate::store::{SharedStore, StoreError};

/// The nodes of one store.
#[derive(Clone, Debug)]
pub(super) struct Nodes(NodeOpener);

/// An array whose document is stored.
#[derive(Debug)]
pub(super) struct StoredArray {
    /// Where.
    pub(super) path: NodePath,
    /// `None` if its documents or its codecs cannot be used.
    pub(super) array: Option<Arc<Array>>,
    /// The arrays that it declares.
    pub(super) declared: Arc<DeclaredArrays>,
}

/// What is at one path.
enum Node {
    Missing,
    Group,
    Array(StoredArray),
    /// An array that the one at this path declares.
    Declared(NodePath),
}

impl Nodes {
    /// The nodes that are opened so.
    pub(super) fn new(opener: NodeOpener) -> Self {
        Self(opener)
    }

    /// What opens them.
    pub(super) fn opener(&self) -> &NodeOpener {
        &self.0
    }

    /// The store.
    pub(super) fn store(&self) -> &SharedStore {
        self.0.hierarchy().store()
    }

    /// Binds metadata as that of an array whose chunks are stored below a path, whether or not its codecs are known.
    pub(super) fn bind(&self, path: &NodePath, metadata: &Arc<ArrayMetadata>) -> Option<Arc<Array>> {
        let bound =
            self.0.bind(path, metadata).or_else(|_| self.0.bind(path, &placeholder_metadata(metadata)));
        bound.ok().map(Arc::new)
    }

    /// The stored array that is nearest to a prefix, at it or above.
    pub(super) async fn above(&self, prefix: &StorePrefix) -> Result<Option<StoredArray>, StoreError> {
        let Ok(nearest) = NodePath::parse(prefix.as_str()) else { return Ok(None) };
        let likely = likely(&nearest);
        let is_group_likely = match self.at(&likely).await? {
            Node::Array(array) => return Ok(Some(array)),
            Node::Declared(primary) => return self.stored(&primary).await,
            Node::Group => true,
            Node::Missing => {
                if let Some(opened) = self.declared(&likely).await?
                    && let Some(dependent) = &opened.dependent
                {
                    return self.stored(&dependent.primary).await;
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
                match self.at(&path).await? {
                    Node::Array(array) => return Ok(Some(array)),
                    Node::Declared(primary) => return self.stored(&primary).await,
                    Node::Group => break,
                    Node::Missing => {}
                }
            }
            next = path.parent();
        }
        Ok(None)
    }

    /// The stored array that all below a prefix is of: the one at it, if a node is stored there, whatever its name makes
    /// of it.
    pub(super) async fn around(&self, prefix: &StorePrefix) -> Result<Option<StoredArray>, StoreError> {
        let Ok(path) = NodePath::parse(prefix.as_str()) else { return Ok(None) };
        match self.at(&path).await? {
            Node::Array(array) => Ok(Some(array)),
            Node::Declared(primary) => self.stored(&primary).await,
            Node::Group => Ok(None),
            Node::Missing => self.above(prefix).await,
        }
    }

    /// The document of the array that is declared at a path, for readers that do not know the convention.
    pub(super) async fn rebased(&self, path: &NodePath) -> Result<Option<Arc<str>>, StoreError> {
        let dependent = self.declared(path).await?.and_then(|opened| opened.dependent.clone());
        Ok(dependent.and_then(|dependent| dependent.rebased.as_deref().map(Arc::from)))
    }

    /// The array that is declared at a path, where nothing is stored.
    async fn declared(&self, path: &NodePath) -> Result<Option<Arc<OpenNode>>, StoreError> {
        self.0.find_declared(path).await.map_err(failed)
    }

    /// The stored array at a path that had one a moment ago.
    async fn stored(&self, path: &NodePath) -> Result<Option<StoredArray>, StoreError> {
        Ok(match self.at(path).await? {
            Node::Array(array) => Some(array),
            Node::Missing | Node::Group | Node::Declared(_) => None,
        })
    }

    async fn at(&self, path: &NodePath) -> Result<Node, StoreError> {
        let opened = match self.0.find(path).await {
            Ok(None) => return Ok(Node::Missing),
            Ok(Some(opened)) => Some(opened),
            Err(ArrayError::Hierarchy(HierarchyError::NoSuchNode { .. } | HierarchyError::Path { .. })) => {
                return Ok(Node::Missing);
            }
            // Whatever it is, it is shown as it is stored.
            Err(ArrayError::Hierarchy(HierarchyError::Metadata { .. })) => None,
            Err(error) => return Err(failed(error)),
        };
        if let Some(dependent) = opened.as_ref().and_then(|opened| opened.dependent.as_ref()) {
            return Ok(Node::Declared(dependent.primary.clone()));
        }
        let array = match opened.as_ref().map(|opened| (opened.array(), &opened.node)) {
            Some((_, hierarchy::Node::Group(_))) => return Ok(Node::Group),
            Some((Ok(array), _)) => Some(Arc::clone(array)),
            Some((Err(_), hierarchy::Node::Array(metadata))) => self.bind(path, metadata),
            None => None,
        };
        let declared = self.0.declared(path, opened.as_deref()).await.map_err(failed)?;
        Ok(Node::Array(StoredArray { path: path.clone(), array, declared }))
    }
}

/// Where the array of a chunk is, going by a prefix of the chunk's key: above numbers, and a `c` before them.
fn likely(prefix: &NodePath) -> NodePath {
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
    fn a_chunks_key_says_where_its_array_is() {
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
            assert_eq!(likely(&prefix), NodePath::parse(path).unwrap(), "{prefix}");
        }
    }
}
