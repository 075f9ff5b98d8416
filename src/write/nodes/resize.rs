//! [`Resize`]: what a change of an array's shape does to stored chunks.
//!
//! An element outside of the shape may be stored: in the chunk across the edge, or in a chunk that an earlier change did not erase.
//! It must not be seen when the array grows again. So before it grows, chunks in the new part are erased, and in a chunk
//! across the old edge the elements behind it are replaced by the fill value. When it shrinks, chunks outside are erased
//! after the document is stored: until then they are part of the array.
//!
//! Other clients may change the shape at the same time, and write elements under it. So a chunk is changed only as it was when the
//! document still had the expected version: its version is read first, then that of the document, and then the chunk is
//! erased or written at its version ([`DocumentGuard`]).

use std::pin::pin;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::erased_chunks::{count_outside, outside};
use super::error::NodeWriteError;
use crate::array::Array;
use crate::chunk::{AxisRange, ChunkCoords, Elements, Subset};
use crate::key::StoreKey;
use crate::store::{Store, StoreError, Version, WriteCondition};
use crate::write::ArrayWriter;
use crate::write::guarded::WriteGuard;
use crate::write::uncached::as_stored;

/// The most chunks that are erased after one check of the document.
const ERASED_TOGETHER: usize = 64;

/// The version of an array's document under which its chunks may be changed.
pub(super) struct DocumentGuard<'s> {
    pub(super) store: &'s dyn Store,
    pub(super) key: &'s StoreKey,
    pub(super) version: &'s Version,
}

impl WriteGuard for &DocumentGuard<'_> {
    type Error = NodeWriteError;

    /// Checks that the document still has the version.
    ///
    /// # Errors
    /// [`NodeWriteError::ConditionFailed`] if it has another one.
    async fn check(&mut self) -> Result<(), NodeWriteError> {
        let info = self.store.head(self.key).await;
        let info = info.map_err(|source| NodeWriteError::store(self.key, source))?;
        let condition = WriteCondition::IfVersion(self.version.clone());
        condition.check(info.as_ref()).map_err(|_other| NodeWriteError::ConditionFailed)
    }

    /// A later version does not break the work off: chunks are changed at their own versions.
    async fn hold<T: Send>(&mut self, work: impl Future<Output = T> + Send) -> Result<T, NodeWriteError> {
        Ok(work.await)
    }

    fn note_in_flight(&mut self) {}
}

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
    /// A failure of the backend, or [`NodeWriteError::ConditionFailed`]; the array is as it was then, for readers.
    pub(super) async fn clear_new_part(
        &self,
        writer: &ArrayWriter,
        guard: &DocumentGuard<'_>,
    ) -> Result<(), NodeWriteError> {
        let (old, new) = (self.before.grid().grid_shape(), self.after.grid().grid_shape());
        erase(&self.after, outside(&new, &old), writer, guard).await?;
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
            let mut behind: Vec<_> =
                self.after.metadata().shape.iter().map(|length| AxisRange::full(*length)).collect();
            if let Some(range) = behind.get_mut(axis) {
                *range = AxisRange { start: *old, count: end.saturating_sub(*old), ..*range };
            }
            let mut guard = guard;
            let behind = Subset(behind);
            let filled = writer.fill_guarded(&self.after, &behind, &element, &mut guard);
            filled.await.map_err(|error: NodeWriteError| error)?;
        }
        Ok(())
    }

    /// Erases the chunks that are outside now.
    ///
    /// # Errors
    /// A failure of the backend, or [`NodeWriteError::ConditionFailed`]; what is left is erased before the array grows again.
    pub(super) async fn erase_outside(
        &self,
        writer: &ArrayWriter,
        guard: &DocumentGuard<'_>,
    ) -> Result<(), NodeWriteError> {
        let (old, new) = (self.before.grid().grid_shape(), self.after.grid().grid_shape());
        erase(&self.before, outside(&old, &new), writer, guard).await
    }
}

/// Erases chunks of an array, several at a time.
async fn erase(
    array: &Array,
    chunks: impl Iterator<Item = ChunkCoords> + Send,
    writer: &ArrayWriter,
    guard: &DocumentGuard<'_>,
) -> Result<(), NodeWriteError> {
    let (concurrency, mut guard) = (writer.options().max_concurrency.max(1), guard);
    let find = chunks.map(|coords| async move {
        let place = array.stored_key(&coords)?;
        let info = as_stored(&*place.store).head(&place.key).await;
        let info = info.map_err(|source| NodeWriteError::store(&place.key, source))?;
        Ok::<_, NodeWriteError>(info.map(|info| (place, info.version)))
    });
    let found = stream::iter(find).buffer_unordered(concurrency);
    let mut found = pin!(found.try_filter_map(|found| async { Ok(found) }).try_chunks(ERASED_TOGETHER));
    while let Some(together) = found.next().await {
        let together = together.map_err(|error| error.1)?;
        guard.check().await?;
        let erase = together.into_iter().map(|(place, version)| async move {
            let no_conditions = || NodeWriteError::NoConditions { key: place.key.clone() };
            let version = version.pin().ok_or_else(no_conditions)?.clone();
            match place.store.erase(&place.key, WriteCondition::IfVersion(version)).await {
                Ok(_existed) => Ok(()),
                Err(StoreError::ConditionFailed | StoreError::VersionChanged) => {
                    Err(NodeWriteError::ConditionFailed)
                }
                Err(StoreError::NotSupported(_)) => Err(no_conditions()),
                Err(source) => Err(NodeWriteError::store(&place.key, source)),
            }
        });
        stream::iter(erase).buffer_unordered(concurrency).try_collect::<()>().await?;
    }
    Ok(())
}
