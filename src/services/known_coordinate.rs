//! [`KnownCoordinate`]: the coordinate of a dimension as it was last found and read.
//!
//! To find the coordinate of a dimension takes a lookup of documents, and to read it one of chunks. Once both are done, one check
//! of all that they depend on finds out whether the result would be the same, for every request that comes before the check.

use std::sync::Arc;
use std::time::Instant;

use crate::array::{ChunkVersions, Dependencies, NodeOpener, OpenNode};
use crate::key::NodePath;
use crate::store::Version;
use crate::views::{FoundAbove, NodeAbove};

/// Bytes of memory of a coordinate beside its paths and versions, about.
const COORDINATE_BYTES: u64 = 1 << 10;

/// The coordinate of a dimension, without its labels.
#[derive(Debug)]
pub(crate) struct KnownCoordinate {
    /// Its path.
    pub(crate) path: NodePath,
    /// The paths that decided, the nearest first.
    pub(crate) visited: Vec<NodePath>,
    /// The key of its labels in their cache.
    pub(crate) labels: String,
    /// The versions of its documents and chunks.
    pub(crate) versions: Vec<Option<Version>>,
    /// What it depends on.
    pub(crate) dependencies: Arc<Dependencies>,
}

impl KnownCoordinate {
    /// The key of the coordinate of a dimension in a cache: the name of the mount in caches, the array, and the dimension. None
    /// of them has a zero byte.
    pub(crate) fn key(mount: &str, array: &NodePath, dimension: &str) -> String {
        format!("{mount}\0{}\0{dimension}", array.as_str())
    }

    /// A coordinate with these versions and chunks, found by way of these nodes. `None` if a change would not be noticed later.
    pub(crate) fn new(
        opener: &NodeOpener,
        (path, node): (&NodePath, &Arc<OpenNode>),
        nodes: &[NodeAbove],
        versions: &[Option<Version>],
        (labels, chunks): (&str, ChunkVersions),
    ) -> Option<Self> {
        // The documents of a dependent array are also those of others.
        if node.dependent.is_some() {
            return None;
        }
        let mut dependencies = Dependencies::new(opener.clone(), path.clone(), node, chunks);
        for NodeAbove { path: visited, found } in nodes {
            dependencies = match found {
                FoundAbove::Node(_) if visited == path => dependencies,
                FoundAbove::Node(node) => dependencies.and_node(visited.clone(), node),
                FoundAbove::Absent(located_at) => dependencies.and_absent(visited.clone(), *located_at),
                FoundAbove::Unknown => return None,
            };
        }
        Some(Self {
            path: path.clone(),
            visited: nodes.iter().map(|node| node.path.clone()).collect(),
            labels: labels.to_owned(),
            versions: versions.to_vec(),
            dependencies: dependencies.into_shared(),
        })
    }

    /// Whether a request that began at `began` would find and read the same with this opener, if it may read all that was
    /// visited.
    pub(crate) async fn is_current(&self, opener: &NodeOpener, began: Instant) -> bool {
        self.dependencies.are_of(opener) && self.dependencies.validated_since(began).await.is_some()
    }

    /// Bytes of memory, about.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let visited = self.visited.iter().map(|path| path.as_str().len() as u64);
        let versions = self.versions.iter().flatten().map(|version| version.tag().len() as u64);
        let beside = self.dependencies.bytes().saturating_add(COORDINATE_BYTES);
        visited.chain(versions).fold(beside, u64::saturating_add)
    }
}
