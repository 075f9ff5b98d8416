//! [`ArrayWriter`]: writes bands of elements, several stored values at a time.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use futures::stream::{FuturesUnordered, StreamExt};

use super::checks::WriteChecks;
use super::chunk_part::ChunkPart;
use super::error::WriteError;
use super::lease::LeaseOwner;
use super::line::{ValueWrite, WriteLines};
use super::options::WriteOptions;
use super::plan::WritePlan;
use super::stored_chunk::StoredChunk;
use super::written::{StoredValueReport, Written};
use crate::array::Array;
use crate::chunk::{ChunkCoords, CopyRegion, Elements, Subset};
use crate::cpu::ComputePool;
use crate::units::Clock;

/// Writes elements. Clones share the lines of writers, so a process has one.
#[derive(Clone)]
pub struct ArrayWriter {
    lines: WriteLines,
    options: WriteOptions,
    /// The name of this process among the servers that append, and the number of its tasks that do.
    process: Arc<str>,
    owners: Arc<AtomicU64>,
    /// The clock by which other servers wait for a lease to end.
    clock: Clock,
}

impl ArrayWriter {
    /// A writer that encodes on this pool. By the clock, servers wait for each other.
    #[must_use]
    pub fn new(cpu: ComputePool, options: WriteOptions, clock: Clock) -> Self {
        // The keys of two hashers are random, and together too long to be drawn twice.
        let process = [0; 2].map(|_| format!("{:016x}", RandomState::new().hash_one(0_u8))).concat();
        Self { lines: WriteLines::new(cpu), options, process: process.into(), owners: Arc::default(), clock }
    }

    /// The lines of writers.
    pub(super) fn lines(&self) -> &WriteLines {
        &self.lines
    }

    /// The clock.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// A new owner of leases, in this process.
    pub(super) fn new_owner(&self) -> LeaseOwner {
        LeaseOwner::new(&self.process, self.owners.fetch_add(1, Relaxed))
    }

    /// The limits.
    #[must_use]
    pub fn options(&self) -> &WriteOptions {
        &self.options
    }

    /// About the most bytes that a write holds beside its band: of each value in work what is stored, what will be, and the
    /// elements of a chunk that is encoded.
    #[must_use]
    pub fn working_bytes(&self, plan: &WritePlan) -> u64 {
        self.working_bytes_of(plan.array(), plan.values())
    }

    /// The same for a write to this number of values of an array.
    #[must_use]
    pub fn working_bytes_of(&self, array: &Array, values: u64) -> u64 {
        let together = values.min(self.options.max_concurrency.max(1) as u64);
        array.first_chain().working_bytes().saturating_mul(2).saturating_mul(together)
    }

    /// The same writer, which stores chunks of nothing but the fill value too.
    #[must_use]
    pub fn storing_fill(&self) -> Self {
        Self { options: WriteOptions { erase_fill: false, ..self.options }, ..self.clone() }
    }

    /// Writes the elements of a band: in C order, or one for all places, as far as the checks allow it.
    ///
    /// After the first failure no further value is begun; those that were, are waited for.
    pub async fn write(
        &self,
        array: &Arc<Array>,
        band: &Subset,
        elements: Elements,
        is_same_everywhere: bool,
        checks: &WriteChecks,
    ) -> Written {
        let item = array.metadata().data_type.element_bytes();
        let stride = if is_same_everywhere { 0 } else { item };
        let region = CopyRegion::packed(band.axes(), stride);
        let mut pieces = region.split_by_chunks(array.grid().axes());
        let mut writes = FuturesUnordered::new();
        let (mut written, mut is_going_on) = (Written::default(), true);
        loop {
            while is_going_on && writes.len() < self.options.max_concurrency.max(1) {
                let Some((coords, region)) = pieces.next() else {
                    is_going_on = false;
                    break;
                };
                let part = ChunkPart { region, elements: elements.clone() };
                writes.push(self.write_chunk(array, coords, part, checks.clone()));
            }
            let Some(outcome) = writes.next().await else { return written };
            is_going_on &= outcome.is_ok();
            written.add(outcome);
        }
    }

    async fn write_chunk(
        &self,
        array: &Arc<Array>,
        coords: ChunkCoords,
        part: ChunkPart,
        checks: WriteChecks,
    ) -> Result<StoredValueReport, WriteError> {
        let chunk = StoredChunk::new(array, coords)?;
        self.lines.write(ValueWrite { chunk, part, checks, erases_fill: self.options.erase_fill }).await
    }
}

impl fmt::Debug for ArrayWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrayWriter").field("options", &self.options).finish_non_exhaustive()
    }
}
