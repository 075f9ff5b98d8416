//! [`KnownCoordinates`]: the coordinates of some dimensions of an array as they were last found and read.
//!
//! To find the coordinate of a dimension takes a lookup of documents, and to read it one of chunks. Once both are done for all
//! dimensions of a request, one check of all that they depend on finds out whether the result would be the same, for every request
//! that comes before the check.

use std::sync::Arc;
use std::time::Instant;

use crate::array::{ChunkVersions, Dependencies, NodeOpener, OpenNode};
use crate::key::NodePath;
use crate::store::Version;
use crate::views::{FoundAbove, NodeAbove};

/// Bytes of memory of a coordinate beside its paths, about.
const COORDINATE_BYTES: u64 = 1 << 10;

/// The coordinates of some dimensions of an array, in the order of a request.
#[derive(Debug)]
pub(crate) struct KnownCoordinates {
    /// The coordinates.
    pub(crate) coordinates: Vec<KnownCoordinate>,
    /// The version of all of them.
    pub(crate) version: Version,
    /// What they depend on.
    pub(crate) dependencies: Arc<Dependencies>,
}

/// The coordinate of a dimension, without its labels.
#[derive(Debug)]
pub(crate) struct KnownCoordinate {
    /// Its path.
    pub(crate) path: NodePath,
    /// The paths that decided, the nearest first.
    pub(crate) visited: Vec<NodePath>,
    /// The key of its labels in their cache.
    pub(crate) labels: String,
}

/// A coordinate that was found and read now.
#[derive(Debug)]
pub(crate) struct NewCoordinate {
    /// Its path.
    pub(crate) path: NodePath,
    /// Its node.
    pub(crate) node: Arc<OpenNode>,
    /// The nodes that decided, the nearest first.
    pub(crate) nodes: Vec<NodeAbove>,
    /// The key of its labels in their cache.
    pub(crate) labels: String,
    /// Its chunks, if all of them exist.
    pub(crate) chunks: Option<ChunkVersions>,
}

impl KnownCoordinates {
    /// Their key in a cache: the name of the mount in caches, the array, and the dimensions. None of them has a zero byte.
    pub(crate) fn key<'a>(
        mount: &str,
        array: &'a NodePath,
        dimensions: impl Iterator<Item = &'a str>,
    ) -> String {
        let mut key = String::with_capacity(128);
        key.push_str(mount);
        for part in std::iter::once(array.as_str()).chain(dimensions) {
            key.push('\0');
            key.push_str(part);
        }
        key
    }

    /// Coordinates of this version. `None` if there are none, or a change would not be noticed later.
    pub(crate) fn new(opener: &NodeOpener, found: Vec<NewCoordinate>, version: Version) -> Option<Self> {
        let mut dependencies: Option<Dependencies> = None;
        let mut coordinates = Vec::with_capacity(found.len());
        for NewCoordinate { path, node, nodes, labels, chunks } in found {
            // The documents of a dependent array are also those of others.
            if node.dependent.is_some() {
                return None;
            }
            let chunks = chunks?;
            let mut all = match dependencies {
                None => Dependencies::new(opener.clone(), path.clone(), &node, chunks),
                Some(others) => others.and_node(path.clone(), &node).and_chunks(chunks),
            };
            for NodeAbove { path: visited, found } in &nodes {
                all = match found {
                    FoundAbove::Node(_) if *visited == path => all,
                    FoundAbove::Node(node) => all.and_node(visited.clone(), node),
                    FoundAbove::Absent(located_at) => all.and_absent(visited.clone(), *located_at),
                    FoundAbove::Unknown => return None,
                };
            }
            dependencies = Some(all);
            let visited = nodes.into_iter().map(|node| node.path).collect();
            coordinates.push(KnownCoordinate { path, visited, labels });
        }
        Some(Self { coordinates, version, dependencies: Arc::new(dependencies?) })
    }

    /// Whether a request that began at `began` would find and read the same with this opener, if it may read all that was
    /// visited.
    pub(crate) async fn are_current(&self, opener: &NodeOpener, began: Instant) -> bool {
        self.dependencies.are_of(opener) && self.dependencies.validated_since(began).await.is_some()
    }

    /// The paths of all nodes that decided.
    pub(crate) fn visited(&self) -> impl Iterator<Item = &NodePath> {
        self.coordinates.iter().flat_map(|coordinate| &coordinate.visited)
    }

    /// Bytes of memory, about.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let visited = self.visited().map(|path| path.as_str().len() as u64);
        let beside = (self.coordinates.len() as u64).saturating_mul(COORDINATE_BYTES);
        visited.fold(self.dependencies.bytes().saturating_add(beside), u64::saturating_add)
    }
}
