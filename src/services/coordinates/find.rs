//! [`FoundCoordinate`]: the array that has the labels of a dimension.

use std::sync::Arc;
use std::time::Instant;

use crate::array::{Array, ArrayError, CachedLookup, OpenNode};
use crate::auth::{KeyScope, Permission, Rights, Scope};
use crate::error::ErrorClass;
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::services::extract::NodeTarget;
use crate::views::{FoundAbove, NodeAbove};

/// Groups above an array in which its coordinates are searched.
const MOST_GROUPS: usize = 16;

/// What was found of the coordinate of a dimension.
#[derive(Debug, Default)]
pub(super) struct FoundCoordinate {
    /// The coordinate: its path, its node and its array. `None` if the dimension has none that the caller may read.
    pub(super) coordinate: Option<(NodePath, Arc<OpenNode>, Arc<Array>)>,
    /// The paths that decided, the nearest first.
    pub(super) nodes: Vec<NodeAbove>,
    /// Whether every caller who may read the array finds the same.
    pub(super) is_public: bool,
}

impl FoundCoordinate {
    /// The coordinate of a dimension of an array: the array of one dimension with its name, beside the array, else beside a
    /// group above it. One that the caller may not read is as if it was not there.
    ///
    /// # Errors
    /// Failures of the store; a document or codecs of the coordinate that cannot be used.
    pub(super) async fn of_dimension(
        target: &NodeTarget,
        rights: &Rights,
        array: &NodePath,
        name: &str,
        began: Instant,
    ) -> Result<Self, ArrayError> {
        let mut found = Self { is_public: true, ..Self::default() };
        let mut below = array.clone();
        for _ in 0..MOST_GROUPS {
            let Some(group) = below.parent() else { break };
            // A name that no node can have is of no coordinate.
            let Ok(path) = group.child(name) else { break };
            found.is_public &= is_public(target, rights, &path);
            below = group;
            if !may_read(target, rights, &path) {
                found.nodes.push(NodeAbove { path, found: FoundAbove::Unknown });
                continue;
            }
            match Box::pin(target.opener.find_cached(&path, began)).await? {
                CachedLookup::Absent(located_at) => {
                    found.nodes.push(NodeAbove { path, found: FoundAbove::Absent(located_at) });
                }
                CachedLookup::Node(node) => {
                    found
                        .nodes
                        .push(NodeAbove { path: path.clone(), found: FoundAbove::Node(Arc::clone(&node)) });
                    if matches!(node.node, Node::Group(_)) {
                        continue;
                    }
                    let coordinate = node.array()?;
                    if coordinate.metadata().shape.len() == 1 {
                        let coordinate = Arc::clone(coordinate);
                        found.coordinate = Some((path, node, coordinate));
                        break;
                    }
                }
            }
        }
        Ok(found)
    }
}

/// The coordinate of a dimension, which has a name and a length, of an array; `None` if it has none that the caller may read.
/// `advice` is what to do instead of using one that has another length.
///
/// # Errors
/// 400 if the coordinate has another length; as [`FoundCoordinate::of_dimension`].
pub(crate) async fn coordinate_of(
    target: &NodeTarget,
    rights: &Rights,
    array: &NodePath,
    dimension: (&str, u64),
    advice: &str,
    began: Instant,
) -> Result<Option<(Arc<OpenNode>, Arc<Array>)>, Problem> {
    let find = FoundCoordinate::of_dimension(target, rights, array, dimension.0, began);
    let Some((path, node, coordinate)) = Box::pin(find).await?.coordinate else { return Ok(None) };
    check_length(dimension, &path, &coordinate.metadata().shape, |_| advice.to_owned())?;
    Ok(Some((node, coordinate)))
}

/// Checks that a dimension, which has a name and a length, is as long as its coordinate. `advice` is what to do with a dimension of
/// this name instead of using the coordinate.
pub(super) fn check_length(
    (name, length): (&str, u64),
    path: &NodePath,
    shape: &[u64],
    advice: impl FnOnce(&str) -> String,
) -> Result<(), Problem> {
    if *shape == [length] {
        return Ok(());
    }
    let advice = advice(name);
    Err(Problem::from_class(ErrorClass::InvalidRequest).detail(format!(
        "the dimension `{name}` has {length} elements, and its coordinate `{path}` has the shape {shape:?}; {advice}"
    )))
}

/// Whether the caller may read a node.
pub(super) fn may_read(target: &NodeTarget, rights: &Rights, path: &NodePath) -> bool {
    rights.allows(&target.mount.name, &to_read(path))
}

/// Whether every caller may read a node.
pub(super) fn is_public(target: &NodeTarget, rights: &Rights, path: &NodePath) -> bool {
    rights.are_those_of_all(&target.mount.name, &to_read(path))
}

fn to_read(path: &NodePath) -> Permission {
    Permission::derived(Scope::Read, KeyScope::Prefix(path.prefix().clone()))
}
