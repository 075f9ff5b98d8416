//! [`RechunkBudget`]: limits memory and threads of chunks while they are encoded.
//!
//! Chunks are admitted in the order of their arrival. Small chunks have a reserved share of the memory and of the
//! threads, so they never wait behind large ones, which take seconds to encode.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::validations::Validations;

/// A memory budget for chunks in progress, shared by the mounts that use it. Clones share it.
#[derive(Clone, Debug)]
pub struct RechunkBudget {
    /// Memory for chunks of any size.
    shared: Arc<Semaphore>,
    /// Memory for small chunks that find none in the shared part.
    small: Arc<Semaphore>,
    /// Limits the number of large chunks that are encoded at the same time.
    encoders: Arc<Semaphore>,
    /// When encoded chunks were found current: of all mounts, so that many mounts need no more memory than one.
    validations: Validations,
}

impl RechunkBudget {
    /// Bytes of all chunks in progress. A chunk that needs more runs beside small chunks only.
    pub const BYTES: u64 = 128 << 20;
    /// Bytes of the budget that are reserved for a chunk of a pyramid that is built in the background.
    pub(in crate::views) const BUILD_BYTES: u64 = 32 << 20;
    /// Bytes of the budget that any chunk may use.
    const SHARED_BYTES: u64 = Self::BYTES - Self::SMALL_RESERVED_BYTES - Self::BUILD_BYTES;
    /// Bytes of the budget that are reserved for small chunks.
    const SMALL_RESERVED_BYTES: u64 = 16 << 20;
    /// Chunks above this number of bytes are large.
    const SMALL_CHUNK_BYTES: u64 = 4 << 20;

    /// A full budget for this number of encoding threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let semaphore = |units: u32| Arc::new(Semaphore::new(usize::try_from(units).unwrap_or(1)));
        Self {
            shared: semaphore(kibibytes(Self::SHARED_BYTES)),
            small: semaphore(kibibytes(Self::SMALL_RESERVED_BYTES)),
            encoders: Arc::new(Semaphore::new((threads / 2).max(1))),
            validations: Validations::default(),
        }
    }

    /// When encoded chunks were found current.
    pub(in crate::views) fn validations(&self) -> &Validations {
        &self.validations
    }

    /// Waits for memory for a chunk of this many bytes. A chunk above the shared budget waits for all of it.
    pub(in crate::views) async fn acquire(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let permits = kibibytes(bytes).clamp(1, kibibytes(Self::SHARED_BYTES));
        if bytes > Self::SMALL_CHUNK_BYTES {
            // The semaphores are never closed.
            return Arc::clone(&self.shared).acquire_many_owned(permits).await.ok();
        }
        // This overtakes no waiting chunk: while one waits, no permit is free.
        match Arc::clone(&self.shared).try_acquire_many_owned(permits) {
            Ok(taken) => Some(taken),
            Err(_) => Arc::clone(&self.small).acquire_many_owned(permits).await.ok(),
        }
    }

    /// Waits for an encoding thread for a chunk of this many bytes; a small chunk does not wait.
    pub(in crate::views) async fn acquire_encoder(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        if bytes > Self::SMALL_CHUNK_BYTES {
            Arc::clone(&self.encoders).acquire_owned().await.ok()
        } else {
            None
        }
    }
}

/// Kibibytes, the unit of the permits.
fn kibibytes(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[tokio::test]
    async fn small_chunks_never_wait_behind_large_ones() {
        for large in [5 * MIB, 60 * MIB, RechunkBudget::BYTES, u64::MAX] {
            let budget = RechunkBudget::new(2);
            let mut admitted = Vec::new();
            while let Some(taken) = budget.acquire(large).now_or_never() {
                admitted.push((taken, budget.acquire_encoder(large).now_or_never()));
            }
            assert!(admitted.iter().skip(1).all(|(_, encoder)| encoder.is_none()), "a thread is left");
            // More large chunks wait.
            let mut waiting: Vec<_> = (0..32).map(|_| Box::pin(budget.acquire(large))).collect();
            assert!(waiting.iter_mut().all(|waits| waits.now_or_never().is_none()));
            for small in [1, 1 << 10, RechunkBudget::SMALL_CHUNK_BYTES] {
                assert!(budget.acquire(small).now_or_never().is_some(), "{small} bytes beside {large}");
                assert!(
                    budget.acquire_encoder(small).now_or_never().is_some(),
                    "{small} bytes beside {large}"
                );
            }
            // Small chunks stay within their share, and freed memory goes to the chunks that waited for it.
            let mut small = Vec::new();
            while let Some(taken) = budget.acquire(RechunkBudget::SMALL_CHUNK_BYTES).now_or_never() {
                small.push(taken);
            }
            assert!(
                small.len() as u64 * RechunkBudget::SMALL_CHUNK_BYTES <= RechunkBudget::BYTES,
                "{}",
                small.len()
            );
            admitted.clear();
            assert!(waiting.remove(0).now_or_never().is_some(), "the first who waited");
        }
    }
}
