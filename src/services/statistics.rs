//! [`Statistics`]: the statistics of a selection, read chunk by chunk, in bounded memory.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::state::AppState;
use crate::array::{Array, ArrayError, OpenNode, Pieces, Plan, ReadContext, ReadLimits, Snapshot};
use crate::reduce::CfValues;
use crate::reduce::statistics::{Distribution, Partial};
use crate::store::Version;

/// Chunks of which versions are requested at a time.
const LOOKUPS: usize = 16;
/// Chunks that are read at a time.
const READS: usize = 4;

/// Statistics of an array that are about to be computed: the versions of the chunks are known.
pub(crate) struct Statistics {
    node: Arc<OpenNode>,
    values: Arc<CfValues>,
    /// What of the values' cache keys follows from the request.
    decodes: bool,
    snapshots: Vec<Snapshot>,
    trace: Arc<ReadContext>,
}

impl Statistics {
    /// Requests the versions of the chunks, and reads none of them.
    pub(crate) async fn lookup(
        state: &AppState,
        node: Arc<OpenNode>,
        values: Arc<CfValues>,
        decodes: bool,
        pieces: &Pieces,
    ) -> Result<Self, ArrayError> {
        let array = Arc::clone(node.array()?);
        let trace = state.engine.reader.read_context(array.mount());
        // The pieces were chosen within the limits; one of them may be larger than a response.
        let limits = ReadLimits { max_response_size: u64::MAX, ..state.engine.read };
        let plans = pieces.subsets.iter().map(|subset| Plan::new(&array, subset.clone(), &limits));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let snapshots = stream::iter(plans)
            .map(|plan| {
                let (reader, trace) = (state.engine.reader.clone(), Arc::clone(&trace));
                async move { reader.lookup_versions(&plan, &trace).await }
            })
            .buffered(LOOKUPS)
            .try_collect()
            .await?;
        Ok(Self { node, values, decodes, snapshots, trace })
    }

    /// The versions of everything that the statistics depend on.
    pub(crate) fn versions(&self) -> impl Iterator<Item = Option<&Version>> {
        self.node.located.versions().chain(self.snapshots.iter().flat_map(Snapshot::versions))
    }

    /// The reads of the request.
    pub(crate) fn trace(&self) -> &Arc<ReadContext> {
        &self.trace
    }

    /// The number of elements, and of stored chunks.
    pub(crate) fn seen(&self) -> (u64, u64) {
        let elements = self.snapshots.iter().map(elements).sum();
        (elements, self.snapshots.len() as u64)
    }

    /// The counts, sums and extremes, with a histogram of these edges. What is cached of unchanged chunks is not read.
    pub(crate) async fn partial(
        &self,
        state: &AppState,
        edges: Option<Arc<[f64]>>,
    ) -> Result<Partial, ArrayError> {
        let mut all = Partial::default();
        let mut parts = stream::iter(self.snapshots.clone())
            .map(|snapshot| self.partial_of(state, snapshot, edges.clone()))
            .buffered(READS);
        while let Some(part) = parts.try_next().await? {
            all.merge(&part);
        }
        Ok(all)
    }

    async fn partial_of(
        &self,
        state: &AppState,
        snapshot: Snapshot,
        edges: Option<Arc<[f64]>>,
    ) -> Result<Arc<Partial>, ArrayError> {
        let snapshot = &snapshot;
        let key = self.key(snapshot, edges.as_deref());
        if let Some(partial) = key.as_deref().and_then(|key| state.responses.statistics.partial(key)) {
            return Ok(partial);
        }
        let mut all = Partial::default();
        if is_absent(snapshot) {
            let fill = snapshot.plan().array().metadata().fill_value.as_bytes();
            all.merge(&Partial::of_equal(&self.values, fill, elements(snapshot), edges.as_deref()));
        } else {
            let mut segments = self.segments(state, snapshot);
            while let Some(segment) = segments.try_next().await? {
                let (values, edges, started) = (Arc::clone(&self.values), edges.clone(), Instant::now());
                let bytes = segment.len() as u64;
                let work = move || Partial::of(&values, &segment, edges.as_deref());
                all.merge(&state.engine.cpu.run_or_inline(bytes, work).await?);
                self.trace.add_encode_time(started);
            }
        }
        if let Some(key) = key {
            state.responses.statistics.insert_partial(&key, &all);
        }
        Ok(Arc::new(all))
    }

    /// How often each value occurs.
    pub(crate) async fn distribution(&self, state: &AppState) -> Result<Distribution, ArrayError> {
        let mut all = Distribution::default();
        for snapshot in &self.snapshots {
            if is_absent(snapshot) {
                let fill = snapshot.plan().array().metadata().fill_value.as_bytes();
                all.merge(Distribution::of_equal(&self.values, fill, elements(snapshot)));
                continue;
            }
            let mut segments = self.segments(state, snapshot);
            while let Some(segment) = segments.try_next().await? {
                let values = Arc::clone(&self.values);
                let work = move || {
                    all.merge(Distribution::of(&values, &segment));
                    all
                };
                all = state.engine.cpu.run(work).await?;
            }
        }
        let work = move || {
            all.sort();
            all
        };
        Ok(state.engine.cpu.run(work).await?)
    }

    /// The elements of a snapshot.
    fn segments(
        &self,
        state: &AppState,
        snapshot: &Snapshot,
    ) -> stream::BoxStream<'static, Result<bytes::Bytes, ArrayError>> {
        let bytes = snapshot.plan().response_bytes();
        let elements = state.engine.reader.elements(snapshot.clone(), 0..bytes, &self.trace);
        elements.map_ok(crate::chunk::Elements::into_items).boxed()
    }

    /// The key of a piece's statistics; `None` if its version is not known to change with its content.
    fn key(&self, snapshot: &Snapshot, edges: Option<&[f64]>) -> Option<String> {
        let plan = snapshot.plan();
        let array: &Array = plan.array();
        let mut key = format!("{}\0{}\0{:?}\0{}", array.mount(), array.path(), plan.subset(), self.decodes);
        for version in self.node.located.versions().chain(snapshot.versions()) {
            key.push('\0');
            if let Some(version) = version {
                key.push_str(version.tag());
            }
        }
        if let Some(edges) = edges {
            let (low, high) = (edges.first()?.to_bits(), edges.last()?.to_bits());
            // Writing to a `String` cannot fail.
            let _ = write!(key, "\0{low:x} {high:x} {}", edges.len());
        }
        Some(key)
    }
}

/// Whether none of a snapshot's chunks is stored, so that all of its elements are the fill value.
fn is_absent(snapshot: &Snapshot) -> bool {
    snapshot.versions().all(|version| version.is_none())
}

/// The number of a snapshot's elements.
fn elements(snapshot: &Snapshot) -> u64 {
    u64::try_from(snapshot.plan().subset().elements()).unwrap_or(u64::MAX)
}
