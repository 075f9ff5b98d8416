//! Writes that are made only as long as something else holds.
//!
//! The version of each stored value is read first, then it is checked whether the write is still allowed, and then the value is
//! stored at that version. Who is not allowed any more because another writer has begun, cannot change what that one has stored.

use std::future::ready;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::array_writer::ArrayWriter;
use super::chunk_part::ChunkPart;
use super::error::WriteError;
use super::pause::{ATTEMPTS, pause};
use super::stored_chunk::{StoredChunk, VersionCheck};
use crate::array::Array;
use crate::chunk::{CopyRegion, Elements, Subset};
use crate::store::Version;

/// The most values that are stored after one check.
const TOGETHER: usize = 64;

/// What must hold for a write to be made.
pub(super) trait WriteGuard {
    /// Why it does not hold, or cannot be checked.
    type Error;

    /// Checks that it holds now.
    fn check(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

impl ArrayWriter {
    /// Writes the elements of a band, in C order, while `guard` allows it. Each value is stored, also one of fill values.
    ///
    /// # Errors
    /// The first error of `guard`; [`WriteError`], also if others change a value at each attempt. Some values may be stored then.
    pub(super) async fn write_guarded<G: WriteGuard + Send, E: From<WriteError> + From<G::Error>>(
        &self,
        array: &Arc<Array>,
        band: &Subset,
        elements: &Elements,
        guard: &mut G,
    ) -> Result<(), E> {
        let region = CopyRegion::packed(band.axes(), array.metadata().data_type.element_bytes());
        let mut parts = region.split_by_chunks(array.grid().axes()).map(|(coords, region)| {
            let chunk = StoredChunk::new(array, coords)?;
            Ok::<_, WriteError>((chunk, ChunkPart { region, elements: elements.clone() }))
        });
        loop {
            let mut left: Vec<_> = parts.by_ref().take(TOGETHER).collect::<Result<_, _>>()?;
            if left.is_empty() {
                return Ok(());
            }
            for attempt in 0..ATTEMPTS {
                pause(attempt).await;
                left = self.write_once::<G, E>(left, guard).await?;
                if left.is_empty() {
                    break;
                }
            }
            if let Some((chunk, _)) = left.first() {
                return Err(WriteError::Contended { key: chunk.place.key.clone() }.into());
            }
        }
    }

    /// Writes parts of values. Returns those whose value has changed since its version was read.
    async fn write_once<G: WriteGuard + Send, E: From<WriteError> + From<G::Error>>(
        &self,
        parts: Vec<(StoredChunk, ChunkPart)>,
        guard: &mut G,
    ) -> Result<Vec<(StoredChunk, ChunkPart)>, E> {
        let concurrency = self.options().max_concurrency.max(1);
        let find = parts.into_iter().map(|(chunk, part)| async move {
            let version = chunk.version().await?;
            Ok::<_, WriteError>((chunk, part, version))
        });
        let found: Vec<_> = stream::iter(find).buffer_unordered(concurrency).try_collect().await?;
        guard.check().await?;
        let write = found.into_iter().map(|(chunk, part, version)| async move {
            let check = same_version(version);
            match self.lines().write(chunk.clone(), part.clone(), Some(check), false).await {
                Ok(_stored) => Ok(None),
                Err(WriteError::ConditionFailed) => Ok(Some((chunk, part))),
                Err(error) => Err(error),
            }
        });
        let written = stream::iter(write).buffer_unordered(concurrency);
        Ok(written.try_filter_map(|changed| ready(Ok::<_, WriteError>(changed))).try_collect().await?)
    }
}

/// Allows a value of this version, or none if there was none.
fn same_version(expected: Option<Version>) -> VersionCheck {
    Arc::new(move |stored: Option<&Version>| match (&expected, stored) {
        (None, None) => true,
        (Some(expected), Some(stored)) => expected.matches(stored),
        _ => false,
    })
}
