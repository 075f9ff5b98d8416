//! Writes that are made only as long as something else holds.
//!
//! The version of each stored value is read first, then it is checked whether the write is still allowed, and then the value is
//! stored at that version. Who is not allowed any more because another writer has begun, cannot change what that one has stored, and
//! sends nothing any more. Until then no other write of this process changes the values ([`ValueTurn`](super::line::ValueTurn)).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use futures::future::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::array_writer::ArrayWriter;
use super::checks::WriteChecks;
use super::chunk_part::ChunkPart;
use super::each::each_of;
use super::error::WriteError;
use super::line::ValueWrite;
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

    /// Does work that it allows, and breaks it off once it does not.
    fn hold<T: Send>(
        &mut self,
        work: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Result<T, Self::Error>> + Send;

    /// Notes that a write has failed which may still arrive.
    fn note_in_flight(&mut self);
}

/// Parts of stored values that are written while a guard allows it.
struct GuardedParts<P> {
    parts: P,
    /// Whether only values that are there are written.
    only_stored: bool,
    /// Whether a chunk of nothing but the fill value is erased.
    erases_fill: bool,
}

impl ArrayWriter {
    /// Writes the elements of a band, in C order, while `guard` allows it. Each value is stored, also one of fill values.
    ///
    /// # Errors
    /// The first error of `guard`; [`WriteError`], also if other processes change a value at each attempt. Some values may be stored
    /// then.
    pub(super) async fn write_guarded<G: WriteGuard + Send, E: From<WriteError> + From<G::Error>>(
        &self,
        array: &Arc<Array>,
        band: &Subset,
        elements: &Elements,
        guard: &mut G,
    ) -> Result<(), E> {
        let region = CopyRegion::packed(band.axes(), array.metadata().data_type.element_bytes());
        let parts = parts(array, &region, elements);
        self.run_guarded(GuardedParts { parts, only_stored: false, erases_fill: false }, guard).await
    }

    /// Gives all elements of a band the same value, in the stored values that are there, while `guard` allows it.
    ///
    /// # Errors
    /// As [`ArrayWriter::write_guarded`].
    pub(super) async fn fill_guarded<G: WriteGuard + Send, E: From<WriteError> + From<G::Error>>(
        &self,
        array: &Arc<Array>,
        band: &Subset,
        element: &Elements,
        guard: &mut G,
    ) -> Result<(), E> {
        let region = CopyRegion::packed(band.axes(), 0);
        let (parts, erases_fill) = (parts(array, &region, element), self.options().erase_fill);
        self.run_guarded(GuardedParts { parts, only_stored: true, erases_fill }, guard).await
    }

    async fn run_guarded<P, G, E>(&self, mut guarded: GuardedParts<P>, guard: &mut G) -> Result<(), E>
    where
        P: Iterator<Item = Result<(StoredChunk, ChunkPart), WriteError>> + Send,
        G: WriteGuard + Send,
        E: From<WriteError> + From<G::Error>,
    {
        loop {
            let left: Result<Vec<_>, _> = guarded.parts.by_ref().take(TOGETHER).collect();
            let mut left = left?;
            if left.is_empty() {
                return Ok(());
            }
            let (only_stored, erases_fill) = (guarded.only_stored, guarded.erases_fill);
            for attempt in 0..ATTEMPTS {
                pause(attempt).await;
                left = self.write_once::<G, E>(left, (only_stored, erases_fill), guard).await?;
                if left.is_empty() {
                    break;
                }
            }
            if let Some((chunk, _)) = left.first() {
                return Err(WriteError::Contended { key: chunk.place.key.clone() }.into());
            }
        }
    }

    /// Writes parts of values, of which each has its turn meanwhile. Returns those that must be written again: another process has changed
    /// the value since its version was read.
    async fn write_once<G: WriteGuard + Send, E: From<WriteError> + From<G::Error>>(
        &self,
        parts: Vec<(StoredChunk, ChunkPart)>,
        (only_stored, erases_fill): (bool, bool),
        guard: &mut G,
    ) -> Result<Vec<(StoredChunk, ChunkPart)>, E> {
        let concurrency = self.options().max_concurrency.max(1);
        let chunks: Vec<StoredChunk> = parts.iter().map(|(chunk, _)| chunk.clone()).collect();
        let turns = self.lines().turns(&chunks).await?;
        let find = parts.into_iter().zip(turns).map(|((chunk, part), turn)| async move {
            let version = chunk.version().await?;
            Ok::<_, WriteError>((chunk, part, turn, version))
        });
        let found: Vec<_> = stream::iter(find).buffer_unordered(concurrency).try_collect().await?;
        guard.check().await?;
        let found = found.into_iter().filter(|(.., version)| !only_stored || version.is_some());
        let is_in_flight = AtomicBool::new(false);
        let write = found.map(|(chunk, part, turn, version)| {
            let is_in_flight = &is_in_flight;
            let write = async move {
                let checks = WriteChecks { value: Some(same_version(version)), array: None };
                let write = ValueWrite { chunk: chunk.clone(), part: part.clone(), checks, erases_fill };
                match self.lines().write_in_turn(&turn, write).await {
                    Ok(_stored) => Ok(None),
                    Err(WriteError::ConditionFailed) => Ok(Some((chunk, part))),
                    Err(error) => {
                        is_in_flight.fetch_or(!error.is_without_effect(), Relaxed);
                        Err(error)
                    }
                }
            };
            write.boxed()
        });
        let written = guard.hold(each_of(concurrency, write.collect())).await;
        if is_in_flight.into_inner() {
            guard.note_in_flight();
        }
        Ok(written??.into_iter().flatten().collect())
    }
}

/// The stored values of a region, with the part of each.
fn parts<'r>(
    array: &'r Arc<Array>,
    region: &'r CopyRegion,
    elements: &'r Elements,
) -> impl Iterator<Item = Result<(StoredChunk, ChunkPart), WriteError>> + Send + 'r {
    region.split_by_chunks(array.grid().axes()).map(|(coords, region)| {
        let chunk = StoredChunk::new(array, coords)?;
        Ok((chunk, ChunkPart { region, elements: elements.clone() }))
    })
}

/// Allows a value of this version, or none if there was none.
fn same_version(expected: Option<Version>) -> VersionCheck {
    Arc::new(move |stored: Option<&Version>| match (&expected, stored) {
        (None, None) => true,
        (Some(expected), Some(stored)) => expected.matches(stored),
        _ => false,
    })
}
