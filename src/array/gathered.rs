//! [`read`]: reads elements at lists of positions or at points: each chunk once, the response as a whole.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::error::ArrayError;
use super::gather_plan::{BOXES_BYTES, GatherPlan};
use super::plan::Plan;
use super::read_context::ReadContext;
use super::segment_reader::SegmentReader;
use super::segments::ResponseSegment;
use super::snapshot::Snapshot;
use crate::chunk::{Elements, ElementsMut};

/// The most boxes that are read at a time.
const CONCURRENCY: u64 = 8;
/// Copying this many bytes takes less time than a hop to another thread.
const INLINE_BYTES: u64 = 64 << 10;
/// Bytes that are copied in the time that it takes to find the place of an element.
const ELEMENT_BYTES: u64 = 64;
/// Boxes that are copied before other tasks run.
const BATCH: usize = 16;

/// Reads all elements of a snapshot.
pub(super) async fn read(
    reader: &SegmentReader,
    snapshot: &Snapshot,
    gather: &Arc<GatherPlan>,
    context: &Arc<ReadContext>,
) -> Result<Elements, ArrayError> {
    let plan: &Plan = snapshot.plan();
    let data_type = &plan.array().metadata().data_type;
    let item = data_type.element_bytes();
    let bytes = usize::try_from(plan.response_bytes()).map_err(|_too_long| ArrayError::Geometry)?;
    let (is_variable, heap_limit) = (data_type.is_variable(), plan.heap_limit());
    let zeroed = move || {
        if is_variable {
            ElementsMut::variable(vec![0; bytes], heap_limit)
        } else {
            ElementsMut::fixed(vec![0; bytes], item)
        }
    };
    // A long one is made by the first long copy.
    let mut out = (bytes as u64 <= INLINE_BYTES).then(zeroed);
    let together = (BOXES_BYTES / plan.array().decoded_bytes().max(1)).clamp(1, CONCURRENCY);
    let is_stored = |coords: &[u64]| snapshot.lookup_of(coords).value.is_some();
    let boxes = stream::iter(gather.boxes(plan.array(), is_stored)).map(|part| async move {
        let segment = ResponseSegment { subset: part.subset.clone(), bytes: 0..0 };
        let elements = reader.stored(snapshot, &segment, context).await?;
        Ok::<_, ArrayError>((part, elements))
    });
    let mut boxes = std::pin::pin!(boxes.buffer_unordered(usize::try_from(together).unwrap_or(1)));
    let mut copied = 0_usize;
    while let Some((part, elements)) = boxes.try_next().await? {
        let gather = Arc::clone(gather);
        let element_bytes = ELEMENT_BYTES.max(item as u64);
        let work = gather.decoded().elements_in(&part).saturating_mul(element_bytes);
        let is_short = work.saturating_add(elements.heap().len() as u64) <= INLINE_BYTES && out.is_some();
        let copy = move || {
            let mut out = out.unwrap_or_else(zeroed);
            gather.decoded().copy(&part, &elements, item, &mut out).map(|()| out)
        };
        let done = if is_short { copy() } else { reader.cpu.run(copy).await? };
        out = Some(done.map_err(|error| plan.assemble_error(error))?);
        copied += 1;
        if copied.is_multiple_of(BATCH) {
            tokio::task::yield_now().await;
        }
    }
    Ok(out.unwrap_or_else(zeroed).freeze())
}
