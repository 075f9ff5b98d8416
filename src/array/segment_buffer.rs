//! [`SegmentBuffer`]: the elements of a segment, which chunks are copied to.

use std::sync::Arc;

use futures::future::try_join_all;

use super::chunk_reader::LoadedChunk;
use super::error::ArrayError;
use super::plan::Plan;
use super::segments::ResponseSegment;
use super::stripes::{CopyDivision, Stripe, divide};
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
    /// Whether all elements are in the response, so that a fill value counts for each. Of those at a list of positions few are.
    are_all_sent: bool,
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
            are_all_sent: !plan.is_gathered(),
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

    /// Copies loaded chunks to their places: on the pool where the segment is large, and there by several threads. After an error
    /// the buffer has no elements.
    ///
    /// # Errors
    /// The inner error says why they cannot be copied; the outer one, that the copying panicked.
    pub(super) async fn copy(
        &mut self,
        loaded: Vec<LoadedChunk>,
        cpu: &ComputePool,
    ) -> Result<Result<(), AssembleError>, ComputePoolError> {
        let is_short = self.is_short(&loaded);
        let (layout, fill, elements) = (self.layout, Arc::clone(&self.fill), self.elements.take());
        let copy = move |loaded: Vec<LoadedChunk>, elements: Option<ElementsMut>| {
            let mut elements = elements.unwrap_or_else(|| layout.zeroed());
            scatter(&loaded, &fill, layout.are_all_sent, &mut elements).map(|()| elements)
        };
        let copied = if is_short {
            copy(loaded, elements)
        } else {
            // Elements of variable length are appended to one heap.
            let threads = if layout.is_variable { 1 } else { cpu.threads() };
            match divide(loaded, layout.items_bytes, layout.element_bytes, threads) {
                CopyDivision::Whole(loaded) => cpu.run(move || copy(loaded, elements)).await?,
                // Boxed, as the future of every segment would be as large.
                CopyDivision::Stripes(stripes) => Box::pin(self.copy_stripes(stripes, elements, cpu)).await?,
            }
        };
        Ok(copied.map(|elements| self.elements = Some(elements)))
    }

    /// Whether it takes little time to copy chunks to their places: the segment is short, and so are elements of variable length.
    fn is_short(&self, loaded: &[LoadedChunk]) -> bool {
        let pieces = loaded.iter().flat_map(|chunk| &chunk.pieces);
        let heaps = pieces.filter_map(|(elements, _)| Some(elements.as_ref()?.heap().len()));
        let have_short_heaps = || heaps.fold(0, usize::saturating_add) <= INLINE_BYTES;
        self.layout.items_bytes <= INLINE_BYTES && (!self.layout.is_variable || have_short_heaps())
    }

    /// Copies the chunks of each stripe to their places, each stripe on a thread. Their buffers are parts of one allocation.
    async fn copy_stripes(
        &self,
        stripes: Vec<Stripe>,
        elements: Option<ElementsMut>,
        cpu: &ComputePool,
    ) -> Result<Result<ElementsMut, AssembleError>, ComputePoolError> {
        let SegmentLayout { items_bytes, element_bytes, are_all_sent, .. } = self.layout;
        let mut elements = elements.unwrap_or_else(|| ElementsMut::with_capacity(items_bytes, element_bytes));
        let mut copies = Vec::with_capacity(stripes.len());
        for Stripe { bytes, chunks } in stripes.into_iter().rev() {
            let (mut part, fill) = (elements.split_off(bytes.start), Arc::clone(&self.fill));
            copies.push(cpu.spawn_background(move || {
                part.extend_with_zeros(bytes.len());
                scatter(&chunks, &fill, are_all_sent, &mut part).map(|()| part)
            }));
        }
        for copied in try_join_all(copies).await?.into_iter().rev() {
            match copied {
                Ok(part) => elements.append(part),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(elements))
    }

    /// The elements. What no chunk was copied to is zero.
    pub(super) fn into_elements(self) -> Elements {
        self.elements.unwrap_or_else(|| self.layout.zeroed()).freeze()
    }
}

/// Copies each loaded chunk to its windows of the segment, and fills the windows of missing chunks.
fn scatter(
    loaded: &[LoadedChunk],
    fill: &[u8],
    are_all_sent: bool,
    out: &mut ElementsMut,
) -> Result<(), AssembleError> {
    // A fill value of variable length that has zeros in it is not the empty one.
    let is_zero_fill = (fill.is_empty() || !out.is_variable()) && fill.iter().all(|&byte| byte == 0);
    for LoadedChunk { shape, pieces } in loaded {
        for (elements, window) in pieces {
            match elements {
                Some(elements) => out.copy_from(elements, shape, window)?,
                // The buffer begins as zeros, and each place of it is written once.
                None if is_zero_fill => {}
                None if are_all_sent => out.fill_each(fill, window)?,
                None => out.fill(fill, window)?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{AxisRange, ChunkAxis, CopyRegion, VarSlice};
    use crate::cpu::ComputePoolOptions;

    const NUMBERS: SegmentLayout = SegmentLayout {
        items_bytes: 0,
        element_bytes: 2,
        is_variable: false,
        heap_limit: 0,
        are_all_sent: true,
    };
    const TEXTS: SegmentLayout = SegmentLayout {
        items_bytes: 0,
        element_bytes: VarSlice::BYTES,
        is_variable: true,
        heap_limit: 8 << 20,
        are_all_sent: true,
    };

    /// The chunks of this shape of a segment of another one, in no order. Each third is missing.
    fn chunks(shape: &[u64; 3], chunk: &[u64; 3], layout: SegmentLayout) -> Vec<LoadedChunk> {
        let axes = shape.iter().zip(chunk).map(|(&length, &edge)| ChunkAxis::new(length, edge));
        let grid: Vec<ChunkAxis> = axes.collect();
        let whole = CopyRegion::packed(&shape.map(AxisRange::full), layout.element_bytes);
        let elements = usize::try_from(chunk.iter().product::<u64>()).unwrap();
        let loaded = whole.split_by_chunks(&grid).enumerate().map(|(number, (_, window))| {
            let heap: Vec<u8> = (0..251).map(|at| (at + u8::try_from(number % 4).unwrap()) % 251).collect();
            let elements = if layout.is_variable {
                let slice = |at: usize| VarSlice { offset: u32::try_from(at % 251).unwrap(), length: 1 };
                let items: Vec<u8> = (0..elements).flat_map(|at| slice(at).to_item()).collect();
                Elements::variable(items.into(), heap.into())
            } else {
                let items = heap.into_iter().cycle().take(elements * layout.element_bytes);
                Elements::fixed(items.collect::<Vec<u8>>().into())
            };
            let elements = (number % 3 != 1).then_some(elements);
            LoadedChunk { shape: chunk.as_slice().into(), pieces: vec![(elements, window)] }
        });
        let mut loaded: Vec<LoadedChunk> = loaded.collect();
        loaded.sort_by_key(|chunk| chunk.pieces[0].1.out_offset() % 1009);
        loaded
    }

    #[tokio::test]
    async fn several_threads_copy_what_one_does() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 3 }).unwrap();
        for (layout, shape, chunk) in [
            (NUMBERS, [64, 200, 128], [16, 64, 64]),
            (NUMBERS, [5, 1024, 512], [1, 512, 512]),
            (NUMBERS, [7, 300, 700], [3, 70, 650]),
            (TEXTS, [8, 100, 400], [1, 100, 200]),
        ] {
            let items_bytes = usize::try_from(shape.iter().product::<u64>()).unwrap() * layout.element_bytes;
            let layout = SegmentLayout { items_bytes, ..layout };
            let all = chunks(&shape, &chunk, layout).len();
            for (fill, first) in [([0, 0], all), ([5, 6], all), ([0, 0], all / 2), ([5, 6], all / 2)] {
                let fill: Arc<[u8]> = fill.into();
                let mut expected = layout.zeroed();
                scatter(&chunks(&shape, &chunk, layout), &fill, true, &mut expected).unwrap();
                let mut buffer = SegmentBuffer { layout, fill, elements: None };
                let mut loaded = chunks(&shape, &chunk, layout);
                let rest = loaded.split_off(first);
                for loaded in [loaded, rest].into_iter().filter(|loaded| !loaded.is_empty()) {
                    buffer.copy(loaded, &cpu).await.unwrap().unwrap();
                }
                let (copied, expected) = (buffer.into_elements(), expected.freeze());
                let is_equal = if layout.is_variable {
                    copied.variable_elements().eq(expected.variable_elements())
                } else {
                    copied == expected
                };
                assert!(is_equal, "{shape:?}, {first} of {all} chunks first");
            }
        }
    }

    #[tokio::test]
    async fn a_window_that_does_not_fit_is_an_error_for_several_threads_too() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 2 }).unwrap();
        let layout = SegmentLayout { items_bytes: 4 << 20, ..NUMBERS };
        let mut loaded = chunks(&[64, 256, 128], &[16, 256, 128], layout);
        // Elements of a shorter chunk.
        loaded[0].pieces[0].0 = Some(Elements::fixed(vec![1; 16].into()));
        let mut buffer = SegmentBuffer { layout, fill: [0, 0].into(), elements: None };
        assert_eq!(buffer.copy(loaded, &cpu).await.unwrap(), Err(AssembleError::Geometry));
    }
}
