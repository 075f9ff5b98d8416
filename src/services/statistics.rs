//! [`Statistics`]: the statistics of a selection, read chunk by chunk, in bounded memory.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::element_groups::ElementGroups;
use super::state::AppState;
use super::struct_field::StructField;
use crate::array::{Array, ArrayError, OpenNode, Pieces, Plan, ReadContext, ReadLimits, Snapshot};
use crate::reduce::CfValues;
use crate::reduce::statistics::{CellDistributions, Cells, Cursor, Distribution};
use crate::store::Version;

/// Chunks of which versions are requested at a time.
const LOOKUPS: usize = 16;
/// Chunks that are read at a time.
pub(crate) const READS: usize = 4;
/// The most bytes that the sums of one group may need where there are many groups.
const MANY_SUM_BYTES: u64 = 128;
/// The most groups whose sums may need any number of bytes.
const FEW_GROUPS: u64 = 1 << 10;
/// Bytes of a group beside its sums of floats and its histogram.
const GROUP_BYTES: u64 = 96;

/// Statistics of an array that are about to be computed: the versions of the chunks are known.
pub(crate) struct Statistics {
    node: Arc<OpenNode>,
    values: Arc<CfValues>,
    groups: ElementGroups,
    /// What of the values' cache keys follows from the request.
    decodes: bool,
    /// The field of a struct that they are of.
    field: Option<StructField>,
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
        field: Option<StructField>,
        pieces: &Pieces,
        groups: ElementGroups,
    ) -> Result<Self, ArrayError> {
        let array = Arc::clone(node.array()?);
        let trace = state.engine.reader.read_context(array.mount());
        // The pieces were chosen within the limits; one of them may be larger than a response.
        let limits = ReadLimits { max_response_size: u64::MAX, ..state.engine.read };
        let snapshots = stream::iter(pieces.subsets.clone())
            .map(|subset| {
                let (reader, trace) = (state.engine.reader.clone(), Arc::clone(&trace));
                let array = Arc::clone(&array);
                async move {
                    // There may be many pieces, and planning one takes time.
                    tokio::task::consume_budget().await;
                    reader.lookup_versions(&Plan::new(&array, subset, &limits)?, &trace).await
                }
            })
            .buffered(LOOKUPS)
            .try_collect()
            .await?;
        Ok(Self { node, values, groups, decodes, field, snapshots, trace })
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

    /// The counts, sums and extremes of each group, with a histogram of these edges. What is cached of unchanged chunks is not
    /// read.
    pub(crate) async fn cells(
        &self,
        state: &AppState,
        edges: Option<Arc<[f64]>>,
    ) -> Result<Cells, ArrayError> {
        let mut all = self.empty(self.groups.count(), edges.as_deref())?;
        let mut parts = stream::iter(self.snapshots.clone())
            .map(|snapshot| async {
                let cells = self.groups.cells(snapshot.plan().subset())?;
                Ok::<_, ArrayError>((self.cells_of(state, snapshot, edges.clone()).await?, cells))
            })
            .buffered(READS);
        while let Some((part, cells)) = parts.try_next().await? {
            let bytes = part.memory_bytes();
            let merge = move || {
                let mut all: Cells = all;
                all.merge(&part, &cells);
                all
            };
            all = state.engine.cpu.run_or_inline(bytes, merge).await?;
            self.check_memory(&all)?;
        }
        Ok(all)
    }

    async fn cells_of(
        &self,
        state: &AppState,
        snapshot: Snapshot,
        edges: Option<Arc<[f64]>>,
    ) -> Result<Arc<Cells>, ArrayError> {
        let (snapshot, piece) = (&snapshot, snapshot.plan().subset());
        let key = self.key(snapshot, edges.as_deref());
        if let Some(cells) = key.as_deref().and_then(|key| state.responses.statistics.cells(key)) {
            return Ok(cells);
        }
        let groups = self.groups.count_of(piece);
        let mut all = self.empty(groups, edges.as_deref())?;
        if is_absent(snapshot) {
            let fill = self.fill(snapshot);
            let (values, times) = (Arc::clone(&self.values), elements(snapshot) / groups.max(1));
            let work = move || {
                all.add_equal(&values, &fill, times, edges.as_deref());
                all
            };
            all = state.engine.cpu.run_or_inline(groups.saturating_mul(GROUP_BYTES), work).await?;
        } else {
            let mut cursor = self.groups.cursor_in(piece)?;
            let mut segments = self.segments(state, snapshot);
            while let Some(segment) = segments.try_next().await? {
                let (values, edges, started) = (Arc::clone(&self.values), edges.clone(), Instant::now());
                let field = self.field.clone();
                let bytes = segment.len() as u64;
                let work = move || {
                    let mut all: Cells = all;
                    all.add(&values, &items(field.as_ref(), segment), &mut cursor, edges.as_deref());
                    (all, cursor)
                };
                (all, cursor) = state.engine.cpu.run_or_inline(bytes, work).await?;
                self.trace.add_encode_time(started);
            }
        }
        self.check_memory(&all)?;
        if let Some(key) = key {
            state.responses.statistics.insert_cells(&key, &all);
        }
        Ok(Arc::new(all))
    }

    /// A number of groups without elements.
    fn empty(&self, groups: u64, edges: Option<&[f64]>) -> Result<Cells, ArrayError> {
        let count = usize::try_from(groups).map_err(|_too_many| ArrayError::Geometry)?;
        let bins = edges.map_or(0, |edges| edges.len().saturating_sub(1));
        let sums = sum_bytes(&self.values, groups).saturating_mul(groups);
        Ok(Cells::new(&self.values, count, bins).with_sums_within(sums))
    }

    /// Refuses statistics whose sums need more memory than there is.
    fn check_memory(&self, cells: &Cells) -> Result<(), ArrayError> {
        if !cells.is_full() {
            return Ok(());
        }
        let groups = self.groups.count();
        Err(ArrayError::TooLarge {
            what: "bytes for exact sums of numbers of very different size",
            requested: u128::from(self.values.most_sum_bytes()) * u128::from(groups),
            limit: sum_bytes(&self.values, groups).saturating_mul(groups),
        })
    }

    /// How often each value occurs.
    pub(crate) async fn distribution(&self, state: &AppState) -> Result<Distribution, ArrayError> {
        let mut all = Distribution::default();
        for snapshot in &self.snapshots {
            if is_absent(snapshot) {
                all.merge(Distribution::of_equal(&self.values, &self.fill(snapshot), elements(snapshot)));
                continue;
            }
            let mut segments = self.segments(state, snapshot);
            while let Some(segment) = segments.try_next().await? {
                let (values, field) = (Arc::clone(&self.values), self.field.clone());
                let work = move || {
                    all.merge(Distribution::of(&values, &items(field.as_ref(), segment)));
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

    /// The values of each group.
    pub(crate) async fn distributions(&self, state: &AppState) -> Result<CellDistributions, ArrayError> {
        let mut all = CellDistributions::default();
        for snapshot in &self.snapshots {
            let mut cursor: Cursor = self.groups.cursor(snapshot.plan().subset())?;
            let values = Arc::clone(&self.values);
            if is_absent(snapshot) {
                let fill = self.fill(snapshot);
                let count = elements(snapshot);
                let work = move || {
                    all.add_equal(&values, &fill, count, &mut cursor);
                    all
                };
                all = state.engine.cpu.run(work).await?;
                continue;
            }
            let mut segments = self.segments(state, snapshot);
            while let Some(segment) = segments.try_next().await? {
                let (values, field) = (Arc::clone(&values), self.field.clone());
                let work = move || {
                    all.add(&values, &items(field.as_ref(), segment), &mut cursor);
                    (all, cursor)
                };
                (all, cursor) = state.engine.cpu.run(work).await?;
            }
        }
        let work = move || {
            all.sort();
            all
        };
        Ok(state.engine.cpu.run(work).await?)
    }

    /// The number that an element of a chunk without a value stands for.
    fn fill(&self, snapshot: &Snapshot) -> Bytes {
        let fill = snapshot.plan().array().metadata().fill_value.as_bytes();
        items(self.field.as_ref(), Bytes::copy_from_slice(fill))
    }

    /// The elements of a snapshot.
    fn segments(
        &self,
        state: &AppState,
        snapshot: &Snapshot,
    ) -> stream::BoxStream<'static, Result<Bytes, ArrayError>> {
        let bytes = snapshot.plan().response_bytes();
        let elements = state.engine.reader.elements(snapshot.clone(), 0..bytes, &self.trace);
        elements.map_ok(crate::chunk::Elements::into_items).boxed()
    }

    /// The key of a piece's statistics; `None` if its version is not known to change with its content.
    fn key(&self, snapshot: &Snapshot, edges: Option<&[f64]>) -> Option<String> {
        let plan = snapshot.plan();
        let array: &Array = plan.array();
        let mut key = format!("{}\0{}\0{:?}\0{}", array.mount(), array.path(), plan.subset(), self.decodes);
        // Writing to a `String` cannot fail.
        let field = self.field.as_ref().map(StructField::path);
        let _ = write!(key, "\0{:?}\0{field:?}", self.groups.is_reduced());
        for version in self.node.located.versions().chain(snapshot.versions()) {
            key.push('\0');
            if let Some(version) = version {
                key.push_str(version.tag());
            }
        }
        if let Some(edges) = edges {
            let (low, high) = (edges.first()?.to_bits(), edges.last()?.to_bits());
            let _ = write!(key, "\0{low:x} {high:x} {}", edges.len());
        }
        Some(key)
    }
}

/// The numbers in whole elements: these themselves, or those of a field.
fn items(field: Option<&StructField>, elements: Bytes) -> Bytes {
    match field {
        Some(field) => field.of(elements),
        None => elements,
    }
}

/// The most bytes that the sums of floats of a group may need on average, and as many for those of their squares.
fn sum_bytes(values: &CfValues, groups: u64) -> u64 {
    let most = values.most_sum_bytes();
    if groups <= FEW_GROUPS { most } else { most.min(MANY_SUM_BYTES) }
}

/// Bytes of memory of a number of groups with a histogram of this number of bins, at most (saturated).
pub(crate) fn group_bytes(values: &CfValues, groups: u64, bins: usize) -> u64 {
    let sums = if values.are_integers() { 0 } else { sum_bytes(values, groups).saturating_mul(2) };
    let bins = (bins as u64).saturating_mul(8);
    GROUP_BYTES.saturating_add(sums).saturating_add(bins).saturating_mul(groups)
}

/// Whether none of a snapshot's chunks is stored, so that all of its elements are the fill value.
fn is_absent(snapshot: &Snapshot) -> bool {
    snapshot.versions().all(|version| version.is_none())
}

/// The number of a snapshot's elements.
fn elements(snapshot: &Snapshot) -> u64 {
    u64::try_from(snapshot.plan().subset().elements()).unwrap_or(u64::MAX)
}
