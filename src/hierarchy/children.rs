//! [`Children`]: the nodes directly below a group.

use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::task::yield_now;

use super::candidates::next_candidates;
use super::{Hierarchy, HierarchyError, Node};
use crate::key::NodePath;
use crate::metadata::{ConsolidatedChildren, GroupMetadata, NodeKind, ZarrFormat};
use crate::store::StoreError;

/// Number of children whose documents are requested concurrently.
const CONCURRENCY: usize = 16;

/// A node below a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its name.
    pub name: String,
    /// Array or group; `None` if its documents are invalid.
    pub kind: Option<NodeKind>,
}

/// The nodes below a group, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Children {
    /// The children; `None` if unknown, because the store cannot list and there is no consolidated metadata.
    pub children: Option<Vec<Child>>,
    /// Whether there are more children than the limit.
    pub truncated: bool,
    /// Whether consolidated metadata of the group is stored.
    pub is_consolidated: bool,
    /// Whether that names other children than the store has. False if there are more children than the limit.
    pub is_stale: bool,
}

impl From<ConsolidatedChildren> for Children {
    fn from(ConsolidatedChildren { children, truncated }: ConsolidatedChildren) -> Self {
        let child = |(name, kind)| Child { name, kind: Some(kind) };
        let children = Some(children.into_iter().map(child).collect());
        Self { children, truncated, is_consolidated: false, is_stale: false }
    }
}

impl Hierarchy {
    /// The first `limit` nodes directly below a group.
    ///
    /// If the store can list, the children are those stored now; their kinds come from consolidated metadata or from their
    /// own documents. If it cannot, they come from the consolidated metadata of the group or of a group above.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn children(
        &self,
        path: &NodePath,
        group: &GroupMetadata,
        limit: usize,
    ) -> Result<Children, HierarchyError> {
        let copies = self.own_consolidated_children(path, group, limit).await?;
        let (is_consolidated, known) = (copies.is_some(), copies.unwrap_or_default());
        let is_v3 = group.zarr_format == ZarrFormat::V3;
        let mut listing = self.store.list_dir_after(path.prefix(), "");
        let (mut children, mut truncated) = (Vec::new(), false);
        // Only as much of the listing is read as is needed to find one child more than the limit.
        let most = limit.saturating_add(1);
        loop {
            let candidates = match next_candidates(&mut listing, is_v3, most).await {
                Ok(candidates) => candidates,
                Err(StoreError::NotListable) => {
                    let copies = if is_consolidated {
                        Some(known)
                    } else {
                        self.inherited_consolidated_children(path, group.zarr_format, limit).await?
                    };
                    return Ok(Children {
                        is_consolidated,
                        ..copies.map_or_else(Children::default, Children::from)
                    });
                }
                Err(source) => return Err(HierarchyError::Store { key: path.prefix().to_string(), source }),
            };
            let is_last = candidates.len() < most;
            let known = &known.children;
            let mut confirmed = stream::iter(candidates)
                .map(|child| async move {
                    let kind = known.get(child.name()).copied();
                    self.child(child, kind).await
                })
                .buffered(CONCURRENCY);
            while let Some(child) = confirmed.try_next().await? {
                let Some(child) = child else { continue };
                if children.len() == limit {
                    truncated = true;
                    break;
                }
                children.push(child);
            }
            if truncated || is_last {
                break;
            }
        }
        let known = &known.children;
        let is_same =
            || children.len() == known.len() && children.iter().all(|child| known.contains_key(&child.name));
        let is_stale = is_consolidated && !truncated && known.len() < limit && !is_same();
        Ok(Children { children: Some(children), truncated, is_consolidated, is_stale })
    }

    /// The child at a path, of this kind if that is known from consolidated metadata; `None` if there is no node.
    async fn child(&self, path: NodePath, known: Option<NodeKind>) -> Result<Option<Child>, HierarchyError> {
        let name = path.name().to_owned();
        if known.is_some() {
            return Ok(Some(Child { name, kind: known }));
        }
        // Stores in memory answer at once: without this, sixteen would be begun before another task has its turn.
        yield_now().await;
        let kind = match self.load_child(&path).await {
            Ok(node) if node.zarr_format() == ZarrFormat::V3 && path.is_reserved_in_v3() => {
                return Ok(None);
            }
            Ok(Node::Array(_)) => Some(NodeKind::Array),
            Ok(Node::Group(_)) => Some(NodeKind::Group),
            Err(
                HierarchyError::NoSuchNode { .. }
                | HierarchyError::NoSuchDependent { .. }
                | HierarchyError::Path { .. },
            ) => return Ok(None),
            Err(HierarchyError::Dependent { .. }) => None,
            Err(error) if error.is_of_stored_node() => None,
            Err(
                error @ (HierarchyError::Store { .. }
                | HierarchyError::Cpu(_)
                | HierarchyError::BudgetExhausted { .. }
                | HierarchyError::OverBudget { .. }
                | HierarchyError::TooManyNodes { .. }
                | HierarchyError::TooLong { .. }
                | HierarchyError::NotListable { .. }
                | HierarchyError::Metadata { .. }),
            ) => return Err(error),
        };
        Ok(Some(Child { name, kind }))
    }

    /// The first `limit` nodes directly below a group by its own consolidated metadata, without a listing: for when the store
    /// does not answer. `None` if it has none.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn consolidated_children(
        &self,
        path: &NodePath,
        group: &GroupMetadata,
        limit: usize,
    ) -> Result<Option<Children>, HierarchyError> {
        let copies = self.own_consolidated_children(path, group, limit).await?;
        Ok(copies.map(|copies| Children { is_consolidated: true, ..Children::from(copies) }))
    }

    /// The node at a path, from its documents alone; it does not detect the separator of chunk keys.
    async fn load_child(&self, path: &NodePath) -> Result<Node, HierarchyError> {
        let found = self.locate_to_read(path).await?;
        self.load_documents(path, &found).await
    }
}
