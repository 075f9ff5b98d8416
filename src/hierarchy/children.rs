//! [`Children`]: the nodes directly below a group.

use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::task::yield_now;

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
        let is_consolidated = copies.is_some();
        let listing = match self.store.list_dir(path.prefix()).await {
            Ok(listing) => listing,
            Err(StoreError::NotListable) => {
                let copies = match copies {
                    None => self.inherited_consolidated_children(path, group.zarr_format, limit).await?,
                    own => own,
                };
                return Ok(Children {
                    is_consolidated,
                    ..copies.map_or_else(Children::default, Children::from)
                });
            }
            Err(source) => return Err(HierarchyError::Store { key: path.prefix().to_string(), source }),
        };
        let candidates: Vec<NodePath> = listing
            .prefixes
            .iter()
            .filter_map(|prefix| NodePath::parse(prefix.as_str()).ok())
            .filter(|child| group.zarr_format != ZarrFormat::V3 || !child.is_reserved_in_v3())
            .collect();
        let known = &copies.unwrap_or_default().children;
        let mut confirmed = stream::iter(candidates)
            .map(|child| async move {
                if let Some(&kind) = known.get(child.name()) {
                    return Ok(Some(Child { name: child.name().to_owned(), kind: Some(kind) }));
                }
                // Stores in memory answer at once: without this, sixteen would be begun before another task has its turn.
                yield_now().await;
                let kind = match self.load_child(&child).await {
                    Ok(node) if node.zarr_format() == ZarrFormat::V3 && child.is_reserved_in_v3() => {
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
                Ok(Some(Child { name: child.name().to_owned(), kind }))
            })
            .buffered(CONCURRENCY);
        let (mut children, mut truncated) = (Vec::new(), false);
        while let Some(child) = confirmed.try_next().await? {
            let Some(child) = child else { continue };
            if children.len() == limit {
                truncated = true;
                break;
            }
            children.push(child);
        }
        let is_same =
            || children.len() == known.len() && children.iter().all(|child| known.contains_key(&child.name));
        let is_stale = is_consolidated && !truncated && known.len() < limit && !is_same();
        Ok(Children { children: Some(children), truncated, is_consolidated, is_stale })
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
