//! [`Resize`]: what a change of an array's shape does to stored chunks.
//!
//! An element outside of the shape may be stored: in the chunk across the edge, or in a chunk that an earlier change did not erase.
//! It must not be seen when the array grows again. So before it grows, chunks in the new part are erased, and in a chunk
//! across the old edge the elements behind it are replaced by the fill value. When it shrinks, chunks outside are erased
//! after the document is stored: until then they are part of the array.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::erased_chunks::{chunks_in, count_outside, outside};
use super::error::NodeWriteError;
use crate::array::{Array, ArrayError};
use crate::chunk::{AxisRange, ChunkCoords, Elements, Subset};
use crate::store::WriteCondition;
use crate::write::ArrayWriter;

/// A change of an array's shape.
pub(super) struct Resize {
    /// The array as it is.
    before: Arc<Array>,
    /// The array as it will be.
    after: Arc<Array>,
}

impl Resize {
    /// A change whose chunks are few enough to be erased by their coordinates.
    ///
    /// # Errors
    /// [`NodeWriteError::TooManyChunks`].
    pub(super) fn new(before: Arc<Array>, after: Arc<Array>, limit: u64) -> Result<Self, NodeWriteError> {
        let (old, new) = (before.grid().grid_shape(), after.grid().grid_shape());
        let chunks = count_outside(&old, &new).saturating_add(count_outside(&new, &old));
        // The chunks across the old edges are read.
        let across = new.iter().fold(1_u128, |product, length| product.saturating_mul((*length).into()));
        let is_growing =
            before.metadata().shape.iter().zip(&after.metadata().shape).any(|(old, new)| new > old);
        let across = if is_growing { across.saturating_sub(count_outside(&new, &old)) } else { 0 };
        let chunks = chunks.saturating_add(across);
        if chunks > limit.into() {
            return Err(NodeWriteError::TooManyChunks { chunks, limit });
        }
        Ok(Self { before, after })
    }

    /// Clears what would be seen in the new part, before the document is stored.
    ///
    /// # Errors
    /// A failure of the backend; the array is as it was then, for readers.
    pub(super) async fn clear_new_part(&self, writer: &ArrayWriter) -> Result<(), NodeWriteError> {
        let (old, new) = (self.before.grid().grid_shape(), self.after.grid().grid_shape());
        erase(&self.after, outside(&new, &old), writer).await?;
        let fill = self.after.metadata().fill_value.clone();
        let element = Elements::one(&self.after.metadata().data_type, fill.as_bytes());
        for (axis, (old, new)) in
            self.before.metadata().shape.iter().zip(&self.after.metadata().shape).enumerate()
        {
            if new <= old {
                continue;
            }
            let Some(edge) = self.after.grid().axes().get(axis) else { continue };
            let Some(last) = old.checked_sub(1) else { continue };
            let chunk = edge.chunk_containing(last);
            let end = chunk.start.saturating_add(chunk.edge).min(*new);
            if end <= *old {
                continue;
            }
            self.fill_behind(writer, (axis, *old, end), &element).await?;
        }
        Ok(())
    }

    /// Replaces the elements from `old` to `end` along a dimension by the fill value, in the chunks that are stored.
    async fn fill_behind(
        &self,
        writer: &ArrayWriter,
        (axis, old, end): (usize, u64, u64),
        element: &Elements,
    ) -> Result<(), NodeWriteError> {
        let grid = self.after.grid();
        let chunk = grid.axes().get(axis).map_or(0, |edges| edges.chunk_containing(old).coord);
        let mut across: Vec<_> = grid.grid_shape().into_iter().map(|count| 0..count).collect();
        if let Some(range) = across.get_mut(axis) {
            *range = chunk..chunk.saturating_add(1);
        }
        let fill = chunks_in(across).map(|coords| self.fill_chunk(writer, coords, (axis, old, end), element));
        let concurrency = writer.options().max_concurrency.max(1);
        stream::iter(fill).buffer_unordered(concurrency).try_collect().await
    }

    async fn fill_chunk(
        &self,
        writer: &ArrayWriter,
        coords: ChunkCoords,
        (axis, old, end): (usize, u64, u64),
        element: &Elements,
    ) -> Result<(), NodeWriteError> {
        let place = self.after.stored_key(&coords)?;
        let info = place.store.head(&place.key).await;
        if info.map_err(|source| NodeWriteError::store(&place.key, source))?.is_none() {
            return Ok(());
        }
        let mut ranges = self.after.grid().chunk_ranges(&coords).ok_or(ArrayError::Geometry)?;
        if let Some(range) = ranges.get_mut(axis) {
            *range = AxisRange { start: old, count: end.saturating_sub(old), ..*range };
        }
        let written = writer.write(&self.after, &Subset(ranges), element.clone(), true, None).await;
        written.failure.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Erases the chunks that are outside now.
    ///
    /// # Errors
    /// A failure of the backend; what is left is erased before the array grows again.
    pub(super) async fn erase_outside(&self, writer: &ArrayWriter) -> Result<(), NodeWriteError> {
        let (old, new) = (self.before.grid().grid_shape(), self.after.grid().grid_shape());
        erase(&self.before, outside(&old, &new), writer).await
    }
}

/// Erases chunks of an array, several at a time.
async fn erase(
    array: &Array,
    chunks: impl Iterator<Item = ChunkCoords> + Send,
    writer: &ArrayWriter,
) -> Result<(), NodeWriteError> {
    let erase = chunks.map(|coords| async move {
        let place = array.stored_key(&coords)?;
        let erased = place.store.erase(&place.key, WriteCondition::Always).await;
        erased.map(|_existed| ()).map_err(|source| NodeWriteError::store(&place.key, source))
    });
    stream::iter(erase).buffer_unordered(writer.options().max_concurrency.max(1)).try_collect().await
}
