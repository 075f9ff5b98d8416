//! [`SegmentBuffer`]: the elements of a segment, which chunks are copied to.

use std::sync::Arc;

use futures::future::try_join_all;

use super::bands::{Band, bands};
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

    /// Copies loaded chunks to their places, on the pool where the segment is large, and there by several threads.
    ///
    /// # Errors
    /// The inner error says why they cannot be copied; the outer one, that the copying panicked.
    pub(super) async fn copy(
        &mut self,
        loaded: Vec<LoadedChunk>,
        cpu: &ComputePool,
    ) -> Result<Result<(), AssembleError>, ComputePoolError> {
        let (layout, fill) = (self.layout, Arc::clone(&self.fill));
        if layout.items_bytes <= INLINE_BYTES {
            let mut elements = self.elements.take().unwrap_or_else(|| layout.zeroed());
            let copied = scatter(&loaded, &fill, &mut elements);
            self.elements = Some(elements);
            return Ok(copied);
        }
        let most = if layout.is_variable { 1 } else { cpu.threads() };
        let mut bands = bands(loaded, layout.items_bytes, layout.element_bytes, most);
        let copied = if let Some(Band { chunks, .. }) = bands.pop_if(|only| only.bytes.start == 0) {
            let elements = self.elements.take();
            let copy = move || {
                let mut elements = elements.unwrap_or_else(|| layout.zeroed());
                scatter(&chunks, &fill, &mut elements).map(|()| elements)
            };
            cpu.run(copy).await?
        } else {
            self.copy_bands(bands, cpu).await?
        };
        Ok(copied.map(|elements| self.elements = Some(elements)))
    }

    /// Copies each band's chunks to its places, by as many threads as there are bands.
    async fn copy_bands(
        &mut self,
        bands: Vec<Band>,
        cpu: &ComputePool,
    ) -> Result<Result<ElementsMut, AssembleError>, ComputePoolError> {
        let SegmentLayout { items_bytes, element_bytes, .. } = self.layout;
        let mut elements =
            self.elements.take().unwrap_or_else(|| ElementsMut::with_capacity(items_bytes, element_bytes));
        let mut copies = Vec::with_capacity(bands.len());
        for Band { bytes, chunks } in bands.into_iter().rev() {
            let (mut band, fill) = (elements.split_off(bytes.start), Arc::clone(&self.fill));
            copies.push(cpu.spawn_background(move || {
                band.extend_with_zeros(bytes.len());
                scatter(&chunks, &fill, &mut band).map(|()| band)
            }));
        }
        for copied in try_join_all(copies).await?.into_iter().rev() {
            match copied {
                Ok(band) => elements.append(band),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{AxisRange, ChunkAxis, CopyRegion};
    use crate::cpu::ComputePoolOptions;

    /// The chunks of this shape of a segment of two-byte elements, in no order. Each eleventh is missing.
    fn chunks(shape: &[u64; 3], chunk: &[u64; 3]) -> Vec<LoadedChunk> {
        let grid: Vec<ChunkAxis> =
            shape.iter().zip(chunk).map(|(&length, &edge)| ChunkAxis::new(length, edge)).collect();
        let windows = CopyRegion::packed(&shape.map(AxisRange::full), 2).split_by_chunks(&grid).enumerate();
        let bytes = usize::try_from(chunk.iter().product::<u64>()).unwrap() * 2;
        let loaded = windows.map(|(number, (_, window))| {
            let elements = (0..bytes).map(|at| u8::try_from((at / 2 * 31 + number * 7) % 251).unwrap());
            let elements = (number % 11 != 10).then(|| Elements::fixed(elements.collect::<Vec<u8>>().into()));
            LoadedChunk { shape: chunk.as_slice().into(), pieces: vec![(elements, window)] }
        });
        let mut loaded: Vec<LoadedChunk> = loaded.collect();
        loaded.sort_by_key(|chunk| chunk.pieces[0].1.out_offset() % 1009);
        loaded
    }

    #[tokio::test]
    async fn several_threads_copy_what_one_does() {
        let cpu = ComputePool::new(ComputePoolOptions { threads: 3 }).unwrap();
        let fill: Arc<[u8]> = [5, 6].into();
        for (shape, chunk) in
            [([64, 200, 128], [16, 64, 64]), ([3, 1024, 512], [1, 512, 512]), ([7, 300, 700], [8, 7, 650])]
        {
            let items_bytes = usize::try_from(shape.iter().product::<u64>()).unwrap() * 2;
            let layout = SegmentLayout { items_bytes, element_bytes: 2, is_variable: false, heap_limit: 0 };
            let mut expected = layout.zeroed();
            scatter(&chunks(&shape, &chunk), &fill, &mut expected).unwrap();
            let expected = expected.freeze();
            for first in [0, 1, 5] {
                let mut buffer = SegmentBuffer { layout, fill: Arc::clone(&fill), elements: None };
                let mut loaded = chunks(&shape, &chunk);
                let rest = loaded.split_off(first.min(loaded.len()));
                buffer.copy(loaded, &cpu).await.unwrap().unwrap();
                buffer.copy(rest, &cpu).await.unwrap().unwrap();
                assert!(buffer.into_elements() == expected, "{shape:?}, {first} chunks first");
            }
        }
    }
}
