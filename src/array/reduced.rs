//! Reduced reads: the stored elements of the windows of one segment, read in bounded memory and reduced.
//!
//! The stored elements of most segments fit in memory, and are reduced as one box. A window that does not fit is one segment:
//! its elements are read part by part, in C order. A direct window is then accumulated. Of a cascade, as many steps as fit are
//! applied to each part, and the others to what these give. Either way a result is that of the whole window.

use std::sync::Arc;
use std::time::Instant;

use futures::future::try_join_all;

use super::error::ArrayError;
use super::plan::Plan;
use super::read_context::ReadContext;
use super::reduced_axes;
use super::segment_reader::SegmentReader;
use super::segments::{ResponseSegment, lengths, segments, whole_bytes};
use super::snapshot::Snapshot;
use super::sum_memory;
use crate::chunk::{Elements, Subset};
use crate::reduce::Reduction;

/// Bytes of stored elements that are worth a thread of their own.
const PART_BYTES: usize = 1 << 20;

/// Whether the stored elements of a segment are read as one box. Those of a plan that is not reduced always are.
pub(super) fn is_read_whole(plan: &Plan, segment: &ResponseSegment) -> bool {
    match plan.axis_reduction() {
        Some(over) => fits(plan, segment) && sum_memory::fits(over, plan.response_bytes(), plan.band_bytes()),
        None => plan.reduction().is_none() || fits(plan, segment),
    }
}

/// Whether the stored elements of a segment fit in memory as one box.
fn fits(plan: &Plan, segment: &ResponseSegment) -> bool {
    let item = plan.array().metadata().data_type.element_bytes();
    segment.source_bytes(item) <= whole_bytes(plan.band_bytes())
}

/// Reduces the stored elements of a segment, if the plan is reduced.
pub(super) async fn apply(
    reader: &SegmentReader,
    plan: &Plan,
    segment: &ResponseSegment,
    elements: Elements,
    context: &ReadContext,
) -> Result<Elements, ArrayError> {
    if let Some(over) = plan.axis_reduction() {
        return reduced_axes::apply(reader, over, &segment.subset, elements, context).await;
    }
    let Some(reduction) = plan.reduction() else { return Ok(elements) };
    reduce(reader, reduction, &segment.subset, elements, context).await
}

/// Reads and reduces one segment of a snapshot.
pub(super) async fn segment(
    reader: &SegmentReader,
    snapshot: &Snapshot,
    segment: &ResponseSegment,
    reduction: &Arc<Reduction>,
    context: &Arc<ReadContext>,
) -> Result<Elements, ArrayError> {
    if fits(snapshot.plan(), segment) {
        let elements = reader.stored(snapshot, segment, context).await?;
        return reduce(reader, reduction, &segment.subset, elements, context).await;
    }
    match reduction.steps() {
        [_] => accumulated(reader, snapshot, segment, reduction, context).await,
        _ => cascaded(reader, snapshot, segment, reduction, context).await,
    }
}

/// Reduces a box of elements on the pool, on several threads where it is worth that.
async fn reduce(
    reader: &SegmentReader,
    reduction: &Arc<Reduction>,
    subset: &Subset,
    elements: Elements,
    context: &ReadContext,
) -> Result<Elements, ArrayError> {
    let started = Instant::now();
    let shape = lengths(subset)?;
    let count = (elements.items().len() / PART_BYTES).clamp(1, reader.cpu.threads());
    let parts = reduction.parts(&shape, count).into_iter().map(|(range, shape)| {
        let (reduction, elements) = (Arc::clone(reduction), elements.clone());
        let bytes = range.len() as u64;
        let work = move || reduction.apply(elements.items().get(range).unwrap_or_default(), &shape);
        reader.cpu.run_or_inline(bytes, work)
    });
    let mut parts = try_join_all(parts).await?.into_iter();
    let first = parts.next().unwrap_or_default();
    let reduced = parts.fold(first, |mut reduced, part| {
        reduced.extend_from_slice(&part);
        reduced
    });
    context.add_encode_time(started);
    Ok(Elements::fixed(reduced.into()))
}

/// The one result of a window whose elements do not fit in memory.
async fn accumulated(
    reader: &SegmentReader,
    snapshot: &Snapshot,
    segment: &ResponseSegment,
    reduction: &Reduction,
    context: &Arc<ReadContext>,
) -> Result<Elements, ArrayError> {
    let mut window = reduction.reducer().accumulate().ok_or(ArrayError::Geometry)?;
    for part in parts(snapshot, &segment.subset, None) {
        let elements = reader.stored(snapshot, &part, context).await?;
        let started = Instant::now();
        window = reader
            .cpu
            .run(move || {
                window.add(elements.items());
                window
            })
            .await?;
        context.add_encode_time(started);
    }
    let mut result = Vec::new();
    window.finish(&mut result);
    Ok(Elements::fixed(result.into()))
}

/// The one result of a cascade whose elements do not fit in memory.
async fn cascaded(
    reader: &SegmentReader,
    snapshot: &Snapshot,
    segment: &ResponseSegment,
    reduction: &Reduction,
    context: &Arc<ReadContext>,
) -> Result<Elements, ArrayError> {
    let whole = whole_bytes(snapshot.plan().band_bytes()).into();
    let item = reduction.reducer().element_bytes() as u128;
    let count = (1..reduction.steps().len())
        .take_while(|&count| {
            let window = reduction.first_steps(count).source_window(&segment.subset);
            window.saturating_mul(item) <= whole
        })
        .last()
        .ok_or(ArrayError::Geometry)?;
    let first = Arc::new(reduction.first_steps(count));
    let mut items = Vec::new();
    for part in parts(snapshot, &segment.subset, Some(&first)) {
        let elements = reader.stored(snapshot, &part, context).await?;
        let reduced = reduce(reader, &first, &part.subset, elements, context).await?;
        items.extend_from_slice(reduced.items());
    }
    let later = Arc::new(reduction.later_steps(count));
    reduce(reader, &later, &first.firsts(&segment.subset), Elements::fixed(items.into()), context).await
}

/// The parts of a box of stored elements, in C order: of its elements, or of what a reduction makes of them.
fn parts(
    snapshot: &Snapshot,
    subset: &Subset,
    reduction: Option<&Reduction>,
) -> impl Iterator<Item = ResponseSegment> + Send + use<> {
    let rank = subset.axes().len();
    let factors = reduction.map_or_else(|| vec![1; rank], |reduction| reduction.factors(rank));
    let plan = snapshot.plan();
    let item = plan.array().metadata().data_type.element_bytes() as u64;
    segments(plan.array(), subset, &factors, item, whole_bytes(plan.band_bytes()), 0..u64::MAX)
}
