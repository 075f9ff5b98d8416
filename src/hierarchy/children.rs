//! The nodes directly below a group.

use futures::stream::{self, StreamExt, TryStreamExt};

use super::locate::Node;
use super::{Hierarchy, HierarchyError};
use crate::key::NodePath;
use crate::store::StoreError;

/// Documents asked for at a time while children are confirmed.
const CONCURRENCY: usize = 16;

/// Array or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// An array.
    Array,
    /// A group.
    Group,
}

impl NodeKind {
    /// The word of the specification's `node_type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Group => "group",
        }
    }
}

/// A node below a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its name.
    pub name: String,
    /// What it is; `None` if its documents cannot be used.
    pub kind: Option<NodeKind>,
}

/// The nodes below a group, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Children {
    /// The children.
    pub children: Vec<Child>,
    /// Whether there are more than were asked for.
    pub truncated: bool,
}

impl Hierarchy {
    /// The first `limit` nodes directly below `path`, each confirmed by a document of its own; `None` if the store cannot
    /// list.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn children(&self, path: &NodePath, limit: usize) -> Result<Option<Children>, HierarchyError> {
        let listing = match self.store.list_dir(path.prefix()).await {
            Ok(listing) => listing,
            Err(StoreError::NotListable) => return Ok(None),
            Err(source) => return Err(HierarchyError::Store { key: path.prefix().to_string(), source }),
        };
        let candidates: Vec<NodePath> = listing
            .prefixes
            .iter()
            .filter_map(|prefix| NodePath::parse(prefix.as_str()).ok())
            // The specification keeps these names for itself: what is below them is no node.
            .filter(|child| !child.name().starts_with("__"))
            .collect();
        let mut confirmed = stream::iter(candidates)
            .map(|child| async move {
                let kind = match self.peek(&child).await {
                    Ok(Node::Array(_)) => Some(NodeKind::Array),
                    Ok(Node::Group(_)) => Some(NodeKind::Group),
                    Err(HierarchyError::NoSuchNode { .. } | HierarchyError::Path { .. }) => return Ok(None),
                    Err(HierarchyError::Metadata { .. }) => None,
                    Err(error @ (HierarchyError::Store { .. } | HierarchyError::Cpu(_))) => {
                        return Err(error);
                    }
                };
                Ok(Some(Child { name: child.name().to_owned(), kind }))
            })
            .buffered(CONCURRENCY);
        let mut found = Children::default();
        while let Some(child) = confirmed.try_next().await? {
            let Some(child) = child else { continue };
            if found.children.len() == limit {
                found.truncated = true;
                break;
            }
            found.children.push(child);
        }
        Ok(Some(found))
    }

    /// The node at a path as its documents have it: no chunk is looked at.
    async fn peek(&self, path: &NodePath) -> Result<Node, HierarchyError> {
        let located = self.locate(path).await?;
        self.load_documents(path, &located).await
    }
}
