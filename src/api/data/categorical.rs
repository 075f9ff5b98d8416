//! Whether the elements of an array are categories, which decides the method `auto`, and the nodes above the array that say
//! so.

use std::time::Instant;

use crate::array::Dependencies;
use crate::auth::{KeyScope, Permission, Rights, Scope};
use crate::conventions::has_categories;
use crate::cpu::ComputePool;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::ArrayMetadata;
use crate::services::extract::NodeTarget;
use crate::views::{FoundAbove, ImageFinder, LevelAbove, NodeAbove};

/// Whether elements are categories, and what a response depends on because of that.
#[derive(Debug, Default)]
pub(crate) struct Categorical {
    pub(crate) has_categories: bool,
    /// The nodes above the array that were asked.
    pub(crate) above: Vec<NodeAbove>,
    /// Whether a caller who may not read the same nodes could get another response.
    pub(crate) is_private: bool,
}

/// Whether an array has categories by its own attributes.
pub(crate) fn has_flags(metadata: &ArrayMetadata) -> bool {
    has_categories(&metadata.attributes, None)
}

/// Whether the elements of an array at a path are categories, by its own attributes or by those of its image.
pub(crate) async fn categorical(
    rights: &Rights,
    target: &NodeTarget,
    path: &NodePath,
    metadata: &ArrayMetadata,
    cpu: &ComputePool,
) -> Result<Categorical, Problem> {
    if has_flags(metadata) {
        return Ok(Categorical { has_categories: true, ..Categorical::default() });
    }
    let may_read = |path: &NodePath| {
        let need = Permission::derived(Scope::Read, KeyScope::Prefix(path.prefix().clone()));
        rights.allows(&target.mount.name, &need)
    };
    let finder = ImageFinder::new(&target.opener, cpu, &may_read, Instant::now());
    let found = finder.above(path).await?;
    Ok(match found.level {
        Some(LevelAbove::OfImage(image)) => Categorical {
            has_categories: has_categories(&metadata.attributes, Some(&image.ome)),
            above: found.nodes,
            is_private: image.ome.is_labels || image.list.is_some(),
        },
        Some(LevelAbove::OfLayout) | None => {
            Categorical { has_categories: false, above: found.nodes, is_private: false }
        }
    })
}

/// Whether all of these nodes are known, so that a change of one is noticed.
pub(crate) fn are_known(above: &[NodeAbove]) -> bool {
    above.iter().all(|node| !matches!(node.found, FoundAbove::Unknown))
}

/// The dependencies of a response, and these nodes.
pub(crate) fn and_above(dependencies: Dependencies, above: &[NodeAbove]) -> Dependencies {
    above.iter().fold(dependencies, |all, NodeAbove { path, found }| match found {
        FoundAbove::Node(node) => all.and_node(path.clone(), node),
        FoundAbove::Absent(located_at) => all.and_absent(path.clone(), *located_at),
        FoundAbove::Unknown => all,
    })
}
