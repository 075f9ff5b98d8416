//! Reads of statistics over whole dimensions: the stored elements of one segment of results, read chunk by chunk and summed in
//! bounded memory.
//!
//! A segment has as many results as there is memory for their sums. Sums are exact, so that elements may come in any order: each
//! chunk is read once. Sums of numbers of very different size need more memory than usual; then the results are computed in halves.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::chunk_boxes::chunk_boxes;
use super::error::ArrayError;
use super::read_context::ReadContext;
use super::segment_reader::SegmentReader;
use super::segments::{ResponseSegment, lengths, whole_bytes};
use super::snapshot::Snapshot;
use super::sum_memory::{READS, sum_bytes};
use crate::chunk::{Elements, Subset};
use crate::reduce::AxisReduction;
use crate::reduce::statistics::{Cells, Cursor};

/// Bytes that one number of a result counts as, where there are no elements: as much work as that number of bytes of them.
const RESULT_BYTES: u64 = 16;

/// The results of a box of elements in memory.
pub(super) async fn apply(
    reader: &SegmentReader,
    over: &Arc<AxisReduction>,
    subset: &Subset,
    elements: Elements,
    context: &ReadContext,
) -> Result<Elements, ArrayError> {
    let (started, over) = (Instant::now(), Arc::clone(over));
    let grid = Grid::new(&over, subset)?;
    let mut cursor = grid.cursor(subset)?;
    let bytes = elements.items().len() as u64;
    let work = move || {
        let mut cells = over.cells(grid.results);
        cells.add(over.values(), elements.items(), &mut cursor, None);
        over.results(&cells)
    };
    let items = reader.cpu.run_or_inline(bytes, work).await??;
    context.add_encode_time(started);
    Ok(Elements::fixed(items.into()))
}

/// Reads the elements of a segment of results, and computes these.
pub(super) async fn segment(
    reader: &SegmentReader,
    snapshot: &Snapshot,
    segment: &ResponseSegment,
    over: &Arc<AxisReduction>,
    context: &Arc<ReadContext>,
) -> Result<Elements, ArrayError> {
    let mut items = Vec::new();
    // In C order from the end.
    let mut waiting = vec![segment.subset.clone()];
    while let Some(subset) = waiting.pop() {
        if let Some(results) = results_of(reader, snapshot, &subset, over, context).await? {
            items.extend_from_slice(&results);
        } else {
            let (first, second) = halves(&subset, over).ok_or(ArrayError::Geometry)?;
            waiting.extend([second, first]);
        }
    }
    Ok(Elements::fixed(items.into()))
}

/// The results of a box of elements; `None` if their sums need more memory than there is.
async fn results_of(
    reader: &SegmentReader,
    snapshot: &Snapshot,
    subset: &Subset,
    over: &Arc<AxisReduction>,
    context: &Arc<ReadContext>,
) -> Result<Option<Vec<u8>>, ArrayError> {
    let plan = snapshot.plan();
    let grid = Grid::new(over, subset)?;
    let mut cells = over.cells(grid.results);
    if grid.results > 1 {
        cells = cells.with_sums_within(sum_bytes(plan.band_bytes()));
    }
    let band_bytes = whole_bytes(plan.band_bytes());
    let mut parts = stream::iter(chunk_boxes(plan.array(), subset, band_bytes))
        .map(|part| async move {
            if snapshot.is_absent(&part) {
                return Ok((part, None));
            }
            let segment = ResponseSegment { subset: part.clone(), bytes: Range::default() };
            let elements = reader.stored(snapshot, &segment, context).await?;
            Ok::<_, ArrayError>((part, Some(elements)))
        })
        .buffered(READS);
    while let Some((part, elements)) = parts.try_next().await? {
        let (started, over) = (Instant::now(), Arc::clone(over));
        let Some(elements) = elements else {
            // As often as it occurs, and in no memory but that of the sums.
            let (mut cursor, count) = grid.kept(&part)?;
            let times = u64::try_from(part.elements()).unwrap_or(u64::MAX) / (count as u64).max(1);
            let fill = plan.array().metadata().fill_value.clone();
            let add = move || {
                let mut cells: Cells = cells;
                cells.add_equal_to(over.values(), fill.as_bytes(), (count, times), &mut cursor, None);
                cells
            };
            cells = reader.cpu.run_or_inline((count as u64).saturating_mul(RESULT_BYTES), add).await?;
            context.add_encode_time(started);
            if cells.is_full() {
                return Ok(None);
            }
            continue;
        };
        let mut cursor = grid.cursor(&part)?;
        let bytes = elements.items().len() as u64;
        let add = move || {
            let mut cells: Cells = cells;
            cells.add(over.values(), elements.items(), &mut cursor, None);
            cells
        };
        cells = reader.cpu.run_or_inline(bytes, add).await?;
        context.add_encode_time(started);
        if cells.is_full() {
            return Ok(None);
        }
    }
    let (started, over) = (Instant::now(), Arc::clone(over));
    let results = reader.cpu.run(move || over.results(&cells)).await??;
    context.add_encode_time(started);
    Ok(Some(results))
}

/// The cells of a box of elements.
struct Grid {
    subset: Subset,
    distances: Vec<usize>,
    is_reduced: Vec<bool>,
    results: usize,
}

impl Grid {
    fn new(over: &AxisReduction, subset: &Subset) -> Result<Self, ArrayError> {
        let lengths = lengths(subset)?;
        let distances = Cursor::distances(&lengths, over.is_reduced());
        let kept = lengths.iter().zip(over.is_reduced()).filter(|(_, is_reduced)| !**is_reduced);
        let results = kept.map(|(&length, _)| length).product();
        Ok(Self { subset: subset.clone(), distances, is_reduced: over.is_reduced().to_vec(), results })
    }

    /// The cells of the elements of a part of the box.
    fn cursor(&self, part: &Subset) -> Result<Cursor, ArrayError> {
        Ok(Cursor::new(&self.dimensions(part)?, self.first(part)?))
    }

    /// Each cell of a part of the box once, and how many they are.
    fn kept(&self, part: &Subset) -> Result<(Cursor, usize), ArrayError> {
        let dimensions = self.dimensions(part)?.into_iter().zip(&self.is_reduced);
        let kept: Vec<(usize, usize)> =
            dimensions.filter(|(_, is_reduced)| !**is_reduced).map(|(dimension, _)| dimension).collect();
        let count = kept.iter().map(|(length, _)| length).product();
        Ok((Cursor::new(&kept, self.first(part)?), count))
    }

    /// The cell of the first element of a part of the box.
    fn first(&self, part: &Subset) -> Result<usize, ArrayError> {
        let mut first = 0;
        for ((part, whole), distance) in part.axes().iter().zip(self.subset.axes()).zip(&self.distances) {
            let place = part.start.abs_diff(whole.start) / whole.step.unsigned_abs().max(1);
            first += usize::try_from(place).map_err(|_too_far| ArrayError::Geometry)? * distance;
        }
        Ok(first)
    }

    /// The length of each dimension of a part, and the distance of its cells.
    fn dimensions(&self, part: &Subset) -> Result<Vec<(usize, usize)>, ArrayError> {
        Ok(lengths(part)?.into_iter().zip(self.distances.iter().copied()).collect())
    }
}

/// A box of elements in two parts, whose results come one after the other; `None` for those of one result.
fn halves(subset: &Subset, over: &AxisReduction) -> Option<(Subset, Subset)> {
    let mut axes = subset.axes().iter().zip(over.is_reduced());
    let place = axes.position(|(axis, is_reduced)| !is_reduced && axis.count > 1)?;
    let axis = subset.axes().get(place)?;
    let middle = axis.count / 2;
    let with = |range| {
        let mut part = subset.clone();
        if let Some(axis) = part.0.get_mut(place) {
            *axis = range;
        }
        part
    };
    Some((with(axis.part(0, middle)), with(axis.part(middle, axis.count - middle))))
}
