//! [`LongValues`]: the memory of long values that are requested often ([`memory_file`](super::memory_file)).
//!
//! A value counts until it is evicted and the last response with it has ended. If slow clients hold all of the memory, further values are
//! read from the store for each request.

use std::hash::Hash;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::TryStreamExt;

use super::memory_file::FilePartWriter;
use super::recent_requests::RecentRequests;
use crate::key::StoreKey;
use crate::store::{ByteRange, Store, StoreError, Version};

/// Shorter values are not copied: they are sent as fast otherwise.
const LEAST_BYTES: u64 = 1 << 20;
/// Longer values are not copied.
const MOST_BYTES: u64 = 8 << 20;
/// A value is copied when it is requested for this time. To copy it takes as long as two responses.
const COPIED_AT: u64 = 4;

/// The memory of long values, and the requests for them.
#[derive(Debug)]
pub(super) struct LongValues {
    recent: RecentRequests,
    held_bytes: Arc<AtomicU64>,
    /// The most bytes of values that are cached or still being sent.
    most_held: u64,
}

/// Bytes of memory of a value, until it is dropped.
#[derive(Debug)]
struct HeldBytes {
    all: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl LongValues {
    /// Values that take at most this memory together.
    pub(super) fn new(most_held: u64) -> Self {
        Self { recent: RecentRequests::new(), held_bytes: Arc::default(), most_held }
    }

    /// Whether values, and parts of values, of this length are copied.
    pub(super) fn copies(length: u64) -> bool {
        (LEAST_BYTES..=MOST_BYTES).contains(&length)
    }

    /// Records a request for a value, or a part of one, that may be copied, and returns whether it is to be copied now.
    pub(super) fn is_hot<P: Hash>(&self, part: &P) -> bool {
        self.recent.record(part) == COPIED_AT
    }

    /// Memory for a value, if there is enough.
    fn reserve(&self, bytes: u64) -> Option<HeldBytes> {
        let sum = |held: u64| held.checked_add(bytes).filter(|&sum| sum <= self.most_held);
        self.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).ok()?;
        Some(HeldBytes { all: Arc::clone(&self.held_bytes), bytes })
    }

    /// A copy of a value, or a part of it, at a version; `None` if there is no memory for it, or no such value any more.
    pub(super) async fn copy(
        &self,
        store: &dyn Store,
        key: &StoreKey,
        range: ByteRange,
        version: &Version,
        length: u64,
    ) -> Result<Option<Bytes>, StoreError> {
        let (Some(held), Some(mut writer)) = (self.reserve(length), FilePartWriter::new(length)) else {
            return Ok(None);
        };
        let Some(value) = store.get(key, range, Some(version)).await?.filter(|value| value.len() == length)
        else {
            return Ok(None);
        };
        let failed = |error: io::Error| StoreError::Backend(Arc::new(error));
        let mut pieces = value.into_exact_stream();
        while let Some(piece) = pieces.try_next().await? {
            writer.write(&piece).await.map_err(failed)?;
        }
        Ok(Some(writer.finish().map_err(failed)?.into_bytes(held)))
    }
}
