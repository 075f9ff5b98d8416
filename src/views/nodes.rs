//! [`Nodes`]: which array a key is of (Zarr core 3.1, "Hierarchy").
//!
//! The nearest node above a key says so: below an array there are no other nodes. It is looked for where the key itself
//! says that it is first, which is right for most. Nodes that were opened are remembered with their versions.

use std::sync::Arc;

use super::error::failed;
use crate::array::{Array, ArrayError, Opener};
use crate::hierarchy::HierarchyError;
use crate::key::{NodePath, StorePrefix};
use crate::store::{SharedStore, StoreError};

/// The nodes of one store.
#[derive(Clone, Debug)]
pub(super) struct Nodes(Opener);

/// What is at or above a prefix.
pub(super) enum Above {
    /// No array.
    Nothing,
    /// An array.
    Array {
        /// Where.
        path: NodePath,
        /// `None` if its documents or its codecs cannot be used.
        array: Option<Arc<Array>>,
    },
}

/// What is at one path.
enum Node {
    Missing,
    Group,
    Array(Option<Arc<Array>>),
}

impl Nodes {
    /// The nodes that are opened so.
    pub(super) fn new(opener: Opener) -> Self {
        Self(opener)
    }

    /// The store.
    pub(super) fn store(&self) -> &SharedStore {
        self.0.hierarchy().store()
    }

    /// The array that is nearest to a prefix, at it or above.
    pub(super) async fn above(&self, prefix: &StorePrefix) -> Result<Above, StoreError> {
        let Ok(nearest) = NodePath::parse(prefix.as_str()) else { return Ok(Above::Nothing) };
        let likely = likely(&nearest);
        let is_group_likely = match self.at(&likely).await? {
            Node::Array(array) => return Ok(Above::Array { path: likely, array }),
            Node::Group => true,
            Node::Missing => false,
        };
        let mut next = Some(nearest);
        while let Some(path) = next {
            if path == likely && is_group_likely {
                break;
            }
            if path != likely {
                match self.at(&path).await? {
                    Node::Array(array) => return Ok(Above::Array { path, array }),
                    Node::Group => break,
                    Node::Missing => {}
                }
            }
            next = path.parent();
        }
        Ok(Above::Nothing)
    }

    async fn at(&self, path: &NodePath) -> Result<Node, StoreError> {
        match self.0.find(path).await {
            Ok(None) => Ok(Node::Missing),
            Ok(Some(opened)) => Ok(match opened.array() {
                Ok(array) => Node::Array(Some(Arc::clone(array))),
                Err(ArrayError::NotAnArray { .. }) => Node::Group,
                Err(_) => Node::Array(None),
            }),
            Err(ArrayError::Hierarchy(HierarchyError::NoSuchNode { .. } | HierarchyError::Path { .. })) => {
                Ok(Node::Missing)
            }
            // Whatever it is, it is shown as it is stored.
            Err(ArrayError::Hierarchy(HierarchyError::Metadata { .. })) => Ok(Node::Array(None)),
            Err(error) => Err(failed(error)),
        }
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
