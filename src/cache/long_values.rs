//! [`LongValues`]: long values of near stores that are requested often, in memory that is sent without copying ([`memory_file`]).
//!
//! To read a value of 4 MiB and to send it copies each byte twice, which takes five times as much processor time as to have the kernel
//! send it. Values are counted with what is still sent of them: where slow clients hold too much, others are read from the store.
//!
//! [`memory_file`]: super::memory_file

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::TryStreamExt;

use super::memory_file::FilePartWriter;
use super::recent_requests::RecentRequests;
use crate::key::StoreKey;
use crate::store::{ByteRange, Store, StoreError, Version};

/// Shorter values, in bytes, take no longer to copy than to send otherwise.
const LEAST_BYTES: u64 = 1 << 20;
/// Longer values, in bytes, are not cached.
const MOST_BYTES: u64 = 8 << 20;
/// A value is copied when it is requested for this time: that takes as long as two or three responses without it.
const COPIED_AT: u64 = 4;

/// The memory of long values.
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

    /// Whether values and parts of this length are copied.
    pub(super) fn is_long(length: u64) -> bool {
        (LEAST_BYTES..=MOST_BYTES).contains(&length)
    }

    /// Records a request for a value, or a part of one, that could be copied, and returns whether it is to be copied now.
    pub(super) fn is_hot<P: Hash>(&self, part: &P) -> bool {
        self.recent.record(part) == COPIED_AT
    }

    /// Memory for a value, if there is enough.
    fn reserve(&self, bytes: u64) -> Option<HeldBytes> {
        let held = HeldBytes { all: Arc::clone(&self.held_bytes), bytes };
        // If it is too much, what was added is subtracted as `held` is dropped.
        let before = held.all.fetch_add(bytes, Ordering::Relaxed);
        (before.saturating_add(bytes) <= self.most_held).then_some(held)
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
        let no_memory = |error: std::io::Error| StoreError::Backend(Arc::new(error));
        let mut pieces = value.into_exact_stream();
        while let Some(piece) = pieces.try_next().await? {
            writer.write(&piece).await.map_err(no_memory)?;
        }
        // To map it takes a moment, and more where memory has to be freed for it.
        #[expect(clippy::disallowed_methods, reason = "the memory of long values bounds how many there are")]
        let finished = tokio::task::spawn_blocking(move || writer.finish()).await;
        let part = finished.map_err(std::io::Error::other).and_then(|part| part).map_err(no_memory)?;
        Ok(Some(part.into_bytes(held)))
    }
}
