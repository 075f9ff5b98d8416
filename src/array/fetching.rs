//! [`Fetching`]: what all fetches have in common: options, memory, and the threads that decode.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;

use super::chunk_source::FetchBudget;
use super::error::ArrayError;
use super::read_context::ReadContext;
use super::stored::StoredValue;
use crate::codec::CodecError;
use crate::cpu::ComputePool;
use crate::store::{ByteRange, StoreError};

/// How ranges of stored values are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchOptions {
    /// Ranges of one value with at most this many bytes between them are merged into one.
    #[serde(with = "crate::units::size")]
    pub max_coalesce_gap: u64,
    /// Size of a merged range.
    #[serde(with = "crate::units::size")]
    pub max_coalesce_size: u64,
    /// Store operations in flight for one request: lookups of chunks, and fetches.
    pub max_concurrency: usize,
    /// Memory for bytes that are being fetched and decoded, for all requests together.
    #[serde(with = "crate::units::size")]
    pub inflight_size: u64,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            max_coalesce_gap: 4 << 10,
            max_coalesce_size: 16 << 20,
            max_concurrency: 32,
            inflight_size: 512 << 20,
        }
    }
}

/// What all fetches have in common. Clones share the memory.
#[derive(Clone, Debug)]
pub(super) struct Fetching {
    pub(super) cpu: ComputePool,
    pub(super) options: FetchOptions,
    /// A permit for each KiB that may be in flight.
    budget: Arc<Semaphore>,
    budget_kib: u32,
}

impl Fetching {
    /// Fetches with a budget of their own.
    pub(super) fn new(cpu: ComputePool, options: FetchOptions) -> Self {
        let budget_kib = u32::try_from(options.inflight_size >> 10).unwrap_or(u32::MAX).max(1);
        let permits =
            usize::try_from(budget_kib).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Self { cpu, options, budget: Arc::new(Semaphore::new(permits)), budget_kib }
    }

    /// Waits until this many bytes may be in flight. A request larger than the budget waits for all of it.
    pub(super) async fn reserve(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX).clamp(1, self.budget_kib);
        // The semaphore is never closed.
        Arc::clone(&self.budget).acquire_many_owned(kib).await.ok()
    }

    /// The memory that may be in flight, and that which is.
    pub(super) fn budget(&self) -> FetchBudget {
        let limit_bytes = u64::from(self.budget_kib) << 10;
        let free_bytes = (self.budget.available_permits() as u64) << 10;
        FetchBudget { limit_bytes, in_flight_bytes: limit_bytes.saturating_sub(free_bytes) }
    }
}

/// Reads exactly one range of a value at its version. Returns also whether a cache accounts for its bytes, so that they must not
/// be kept.
pub(super) async fn read_range(
    value: &StoredValue,
    range: Range<u64>,
    context: &ReadContext,
) -> Result<(Bytes, bool), ArrayError> {
    let length = range.end - range.start;
    let _permit = context.acquire_fetch_permit().await;
    let start = Instant::now();
    let bytes = async {
        if length == 0 {
            return Ok((Bytes::new(), false));
        }
        let whole = range == (0..value.info.size);
        let requested = if whole { ByteRange::Whole } else { ByteRange::Bounded(range.start, range.end) };
        let found = value.store.get(&value.key, requested, value.info.version.pin()).await?;
        // The value existed at the lookup of its version, so its absence is a change.
        let found = found.ok_or(StoreError::VersionChanged)?;
        if found.info.version != value.info.version {
            return Err(StoreError::VersionChanged);
        }
        if found.range != range {
            return Err(StoreError::WrongLength);
        }
        found.borrowed_bytes(length).await
    };
    let bytes = bytes.instrument(tracing::trace_span!(target: "zarrd::span", "fetch", bytes = length)).await;
    context.add_fetch_time(start);
    bytes.map_err(|source| ArrayError::Store { key: value.key.clone(), source })
}

/// The error of bytes of a value that cannot be decoded.
pub(super) fn undecodable(value: &StoredValue, part: &Range<u64>, source: CodecError) -> ArrayError {
    ArrayError::Chunk { key: value.key.clone(), start: part.start, end: part.end, source }
}
