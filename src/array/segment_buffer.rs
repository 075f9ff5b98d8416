//! [`SegmentBuffer`]: the elements of a segment, which chunks are copied to.

use std::sync::Arc;

use super::chunk_reader::LoadedChunk;
use super::error::ArrayError;
use super::plan::Plan;
use super::segments::ResponseSegment;
use crate::chunk::{AssembleError, Elements, ElementsMut};
use crate::cpu::{ComputePool, ComputePoolError};

/// Copying within a segment of at most this many bytes takes less time than a hop to another thread.
const INLINE_BYTES: usize = 512 << 10;

/// The elements of a segment, which chunks are copied to.
pub(super) struct SegmentBuffer {
    layout: SegmentLayout,
    fill: Arc<[u8]>,
    /// Allocated by the first copy: a segment that is one chunk needs none.
    elements: Option<ElementsMut>,
}

/// The size and kind of a segment's elements.
#[derive(Clone, Copy)]
struct SegmentLayout {
    /// Bytes of all items.
    items_bytes: usize,
    /// Bytes of one.
    element_bytes: usize,
    is_variable: bool,
    /// The most bytes of elements of variable length, beside their items.
    heap_limit: u64,
}

impl SegmentLayout {
    /// Elements that are all zeros, or empty.
    fn zeroed(self) -> ElementsMut {
        let items = vec![0; self.items_bytes];
        if self.is_variable {
            ElementsMut::variable(items, self.heap_limit)
        } else {
            ElementsMut::fixed(items, self.element_bytes)
        }
    }
}

impl SegmentBuffer {
    /// A buffer for one segment of a plan.
    ///
    /// # Errors
    /// [`ArrayError::Geometry`] if the segment is larger than memory can address.
    pub(super) fn new(plan: &Plan, segment: &ResponseSegment) -> Result<Self, ArrayError> {
        let metadata = plan.array().metadata();
        let element_bytes = metadata.data_type.element_bytes();
        let items_bytes =
            usize::try_from(segment.source_bytes(element_bytes)).map_err(|_too_long| ArrayError::Geometry)?;
        let layout = SegmentLayout {
            items_bytes,
            element_bytes,
            is_variable: metadata.data_type.is_variable(),
            heap_limit: plan.heap_limit(),
        };
        Ok(Self { layout, fill: metadata.fill_value.as_bytes().into(), elements: None })
    }

    /// The elements of the one chunk that the whole segment is; `None` if the segment is anything else.
    pub(super) fn as_whole_chunk(&self, loaded: &[LoadedChunk]) -> Option<Elements> {
        let SegmentLayout { items_bytes, element_bytes, is_variable, .. } = self.layout;
        let [LoadedChunk { shape, pieces }] = loaded else { return None };
        let [(Some(elements), window)] = &pieces[..] else { return None };
        let is_whole =
            !is_variable && elements.items().len() == items_bytes && window.is_identity(shape, element_bytes);
        is_whole.then(|| elements.clone())
    }

    /// Copies loaded chunks to their places, on the pool where the segment is large.
    ///
    /// # Errors
    /// The inner error says why they cannot be copied; the outer one, that the copying panicked.
    pub(super) async fn copy(
        &mut self,
        loaded: Vec<LoadedChunk>,
        cpu: &ComputePool,
    ) -> Result<Result<(), AssembleError>, ComputePoolError> {
        let (layout, fill, elements) = (self.layout, Arc::clone(&self.fill), self.elements.take());
        let copy = move || {
            let mut elements = elements.unwrap_or_else(|| layout.zeroed());
            scatter(&loaded, &fill, &mut elements).map(|()| elements)
        };
        let copied = if layout.items_bytes <= INLINE_BYTES { copy() } else { cpu.run(copy).await? };
        Ok(copied.map(|elements| self.elements = Some(elements)))
    }

    /// The elements. What no chunk was copied to is zero.
    pub(super) fn into_elements(self) -> Elements {
        self.elements.unwrap_or_else(|| self.layout.zeroed()).freeze()
    }
}

/// Copies each loaded chunk to its windows of the segment, and fills the windows of missing chunks.
fn scatter(loaded: &[LoadedChunk], fill: &[u8], out: &mut ElementsMut) -> Result<(), AssembleError> {
    // A fill value of variable length that has zeros in it is not the empty one.
    let is_zero_fill = (fill.is_empty() || !out.is_variable()) && fill.iter().all(|&byte| byte == 0);
    for LoadedChunk { shape, pieces } in loaded {
        for (elements, window) in pieces {
            match elements {
                Some(elements) => out.copy_from(elements, shape, window)?,
                // The buffer begins as zeros, and each place of it is written once.
                None if is_zero_fill => {}
                None => out.fill(fill, window)?,
            }
        }
    }
    Ok(())
}
