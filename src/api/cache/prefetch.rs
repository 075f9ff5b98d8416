//! Prefetch: loads metadata documents, shard indexes and decoded chunks into the caches before clients request them.
//!
//! A prefetch uses the same readers as any request, so it fills the same caches. A limit on bytes keeps it from evicting
//! its own entries, and a limit on time ends it; dropping the future cancels it. It counts failures and continues: a later
//! read of the same object reports the error. Nothing is written.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::admission::{Admission, AdmissionRequest};
use crate::array::{Array, ArrayError, Plan, ReadLimits};
use crate::chunk::{ChunkCoords, Subset};
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::services::engine::ArrayEngine;
use crate::services::extract::NodeTarget;
use crate::store::{DirEntry, StoreError};

/// Chunks that are loaded concurrently.
const CONCURRENCY: usize = 8;
/// Maximum number of children visited of a group; hierarchies rarely have more.
const MOST_CHILDREN: usize = 10_000;
/// Maximum length of the queue of nodes to visit.
const MOST_WAITING: usize = 100_000;

/// What a prefetch loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PrefetchLevel {
    /// Metadata documents.
    Metadata,
    /// Also shard indexes.
    #[default]
    Indexes,
    /// Also decoded chunks.
    Chunks,
}

/// The extent and the limits of a prefetch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefetchRequest {
    pub(crate) level: PrefetchLevel,
    /// Maximum number of bytes of decoded chunks.
    pub(crate) bytes: u64,
    pub(crate) until: Instant,
}

/// The result of a prefetch.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct PrefetchReport {
    /// Nodes whose metadata documents were read.
    pub(super) nodes: u64,
    /// Arrays among these nodes.
    pub(super) arrays: u64,
    /// Shards whose indexes were read.
    pub(super) indexes: u64,
    /// Stored chunks (or shards) that were decoded; with `view`, chunks of the view.
    pub(super) chunks: u64,
    /// Size of these chunks in bytes, decoded; with `view`, as the view encodes them.
    pub(super) decoded_bytes: u64,
    /// Nodes, indexes and chunks that could not be loaded.
    pub(super) failed: u64,
    /// Whether everything below the prefix was loaded: no limit was reached and nothing failed.
    pub(super) complete: bool,
}

impl PrefetchReport {
    /// Whether it is known that there was nothing to load.
    pub(super) fn is_of_nothing(&self) -> bool {
        self.complete && self.nodes == 0
    }
}

/// Loads a node and everything below it.
///
/// # Errors
/// 503 if the server is overloaded.
pub(crate) async fn prefetch(
    admission: &Admission,
    engine: &Arc<ArrayEngine>,
    target: &NodeTarget,
    entrant: AdmissionRequest,
    wanted: &PrefetchRequest,
) -> Result<PrefetchReport, Problem> {
    let _permit = admission.acquire(entrant, engine.read.segment_size).await?;
    // One read is enough: what is prefetched is requested later.
    let _admitted = engine.caches.admit_all(&target.mount.cache_name, target.path.prefix());
    let mut warming =
        Prefetch { engine, target, wanted, warmed: PrefetchReport::default(), cut_short: false };
    let in_time = timeout_at(wanted.until, warming.run()).await.is_ok();
    let Prefetch { warmed, cut_short, .. } = warming;
    let complete = in_time && !cut_short && warmed.failed == 0;
    Ok(PrefetchReport { complete, ..warmed })
}

struct Prefetch<'a> {
    engine: &'a Arc<ArrayEngine>,
    target: &'a NodeTarget,
    wanted: &'a PrefetchRequest,
    warmed: PrefetchReport,
    /// Whether a limit was reached.
    cut_short: bool,
}

impl Prefetch<'_> {
    async fn run(&mut self) {
        let mut waiting = vec![self.target.path.clone()];
        while let Some(path) = waiting.pop() {
            match self.visit(&path).await {
                Ok(below) => waiting.extend(below),
                Err(_) => self.warmed.failed += 1,
            }
            if waiting.len() > MOST_WAITING {
                waiting.truncate(MOST_WAITING);
                self.cut_short = true;
            }
        }
    }

    /// Loads a node and returns the paths of its children.
    async fn visit(&mut self, path: &NodePath) -> Result<Vec<NodePath>, ArrayError> {
        let hierarchy = self.target.opener.hierarchy();
        let Some(opened) = self.target.opener.find(path).await? else {
            // A prefix without a document may have nodes below it.
            return Ok(match self.listed_below(path).await {
                Ok(paths) => paths,
                Err(StoreError::NotListable) => Vec::new(),
                Err(_) => {
                    self.warmed.failed += 1;
                    Vec::new()
                }
            });
        };
        self.warmed.nodes += 1;
        match &opened.node {
            Node::Group(group) => {
                let children = hierarchy.children(path, group, MOST_CHILDREN).await?;
                self.cut_short |= children.truncated;
                let children = children.children.unwrap_or_default();
                Ok(children.iter().filter_map(|child| path.child(&child.name).ok()).collect())
            }
            Node::Array(_) => {
                self.warmed.arrays += 1;
                let array = Arc::clone(opened.array()?);
                match self.wanted.level {
                    PrefetchLevel::Metadata => {}
                    PrefetchLevel::Indexes if !array.is_sharded() => {}
                    PrefetchLevel::Indexes => self.load(&array, Self::index).await,
                    PrefetchLevel::Chunks => self.load(&array, Self::chunk).await,
                }
                Ok(Vec::new())
            }
        }
    }

    /// The paths directly below a prefix, at most one more than the queue holds.
    async fn listed_below(&self, path: &NodePath) -> Result<Vec<NodePath>, StoreError> {
        let mut listing = self.target.opener.hierarchy().store().list_dir_after(path.prefix(), "");
        let mut paths = Vec::new();
        while paths.len() <= MOST_WAITING
            && let Some(entry) = listing.try_next().await?
        {
            // Many entries may be ready at once; let other tasks run.
            tokio::task::consume_budget().await;
            if let DirEntry::Prefix(prefix) = entry
                && let Ok(path) = NodePath::parse(prefix.as_str())
            {
                paths.push(path);
            }
        }
        Ok(paths)
    }

    /// Runs `part` for each chunk of an array, a few concurrently.
    async fn load<F>(&mut self, array: &Arc<Array>, part: fn(Job) -> F)
    where
        F: Future<Output = Result<Loaded, ArrayError>>,
    {
        let counts_bytes = self.wanted.level == PrefetchLevel::Chunks;
        let element_bytes = array.metadata().data_type.element_bytes() as u64;
        let mut budget = self.wanted.bytes.saturating_sub(self.warmed.decoded_bytes);
        let mut met_bound = false;
        let jobs = coords(array.grid().grid_shape()).map_while(|coords| {
            let elements = array
                .grid()
                .chunk_shape_at(&coords)
                .iter()
                .fold(1, |all: u64, edge| all.saturating_mul(*edge));
            if counts_bytes {
                let Some(left) = budget.checked_sub(elements.saturating_mul(element_bytes)) else {
                    met_bound = true;
                    return None;
                };
                budget = left;
            }
            Some(Job { engine: Arc::clone(self.engine), array: Arc::clone(array), coords })
        });
        let mut loads = stream::iter(jobs).map(part).buffer_unordered(CONCURRENCY);
        let warmed = &mut self.warmed;
        while let Some(loaded) = loads.next().await {
            match loaded {
                Ok(Loaded { indexes, chunks, decoded_bytes }) => {
                    warmed.indexes += indexes;
                    warmed.chunks += chunks;
                    warmed.decoded_bytes = warmed.decoded_bytes.saturating_add(decoded_bytes);
                }
                Err(_) => warmed.failed += 1,
            }
        }
        drop(loads);
        self.cut_short |= met_bound;
    }

    /// Reads the index of a shard.
    async fn index(Job { engine, array, coords }: Job) -> Result<Loaded, ArrayError> {
        let chain = array.chain_for(&coords, &array.grid().chunk_shape_at(&coords))?;
        let trace = engine.reader.read_context(array.mount());
        let found =
            engine.reader.source().fetch_or_lookup(&array.stored_key(&coords)?, &chain, &trace).await?;
        Ok(Loaded { indexes: u64::from(found.value.is_some()), ..Loaded::default() })
    }

    /// Reads a chunk, or all inner chunks of a shard.
    async fn chunk(Job { engine, array, coords }: Job) -> Result<Loaded, ArrayError> {
        let Some(ranges) = array.grid().chunk_ranges(&coords) else { return Ok(Loaded::default()) };
        // The byte and time limits of the prefetch apply in place of the limits of one request.
        let (response_bytes, decoded_bytes, chunks) = (u64::MAX, u64::MAX, u64::MAX);
        let limits = ReadLimits {
            max_response_size: response_bytes,
            max_decoded_size: decoded_bytes,
            max_chunks: chunks,
            ..engine.read
        };
        let plan = Plan::new(&array, Subset(ranges), &limits)?;
        let trace = engine.reader.read_context(array.mount());
        let snapshot = engine.reader.snapshot(&plan, &trace).await?;
        if snapshot.versions().all(|version| version.is_none()) {
            return Ok(Loaded::default());
        }
        let bytes = plan.response_bytes();
        let mut parts = engine.reader.elements(snapshot, 0..bytes, &trace);
        while parts.try_next().await?.is_some() {}
        Ok(Loaded { indexes: u64::from(array.is_sharded()), chunks: 1, decoded_bytes: bytes })
    }
}

/// A chunk to be loaded.
struct Job {
    engine: Arc<ArrayEngine>,
    array: Arc<Array>,
    coords: ChunkCoords,
}

/// What one job loaded.
#[derive(Default)]
struct Loaded {
    indexes: u64,
    chunks: u64,
    decoded_bytes: u64,
}

/// All coordinates of a grid in C order. The iterator is lazy: a grid can have more chunks than `u64::MAX`.
fn coords(shape: Vec<u64>) -> impl Iterator<Item = ChunkCoords> {
    let first = shape.iter().all(|length| *length > 0).then(|| vec![0; shape.len()]);
    std::iter::successors(first, move |coords| {
        let mut next = coords.clone();
        for (coord, length) in next.iter_mut().zip(&shape).rev() {
            *coord += 1;
            if *coord < *length {
                return Some(next);
            }
            *coord = 0;
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_come_in_c_order_and_an_empty_grid_has_none() {
        assert_eq!(coords(vec![2, 1, 2]).collect::<Vec<_>>(), [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]]);
        assert_eq!(coords(vec![]).collect::<Vec<_>>(), [Vec::<u64>::new()]);
        assert_eq!(coords(vec![2, 0]).count(), 0);
        assert_eq!(coords(vec![u64::MAX, u64::MAX]).take(3).count(), 3);
    }
}
