//! [`RechunkBudget`]: how much memory and how many threads chunks take while they are made.
//!
//! Chunks have their turns in the order in which they came, but for small ones: a part of the room is theirs alone, and so is
//! half of the threads, so that they never wait behind large ones, which take seconds to encode.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room for chunks in the making, of all mounts that are given it. Clones share it.
#[derive(Clone, Debug)]
pub struct RechunkBudget {
    /// For chunks of any size.
    any: Arc<Semaphore>,
    /// For small ones that find no room there.
    small: Arc<Semaphore>,
    /// Large ones that are encoded at a time.
    encoders: Arc<Semaphore>,
}

impl RechunkBudget {
    /// Bytes that chunks take together while they are made; one that takes more is made beside small ones alone.
    pub const BYTES: u64 = 128 << 20;
    /// Bytes of these that are for small chunks alone.
    const OF_SMALL: u64 = 16 << 20;
    /// What takes more is large.
    const SMALL: u64 = 4 << 20;

    /// All of the room, with so many threads to encode on.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let room = |units: u32| Arc::new(Semaphore::new(usize::try_from(units).unwrap_or(1)));
        Self {
            any: room(units(Self::BYTES - Self::OF_SMALL)),
            small: room(units(Self::OF_SMALL)),
            encoders: Arc::new(Semaphore::new((threads / 2).max(1))),
        }
    }

    /// Waits until so many bytes may be in the making. What is larger than there is room for waits for all of it.
    pub(super) async fn take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let wanted = units(bytes).clamp(1, units(Self::BYTES - Self::OF_SMALL));
        if bytes > Self::SMALL {
            // The semaphores are never closed.
            return Arc::clone(&self.any).acquire_many_owned(wanted).await.ok();
        }
        // Nobody who waits is passed: while somebody does, nothing is free.
        match Arc::clone(&self.any).try_acquire_many_owned(wanted) {
            Ok(taken) => Some(taken),
            Err(_) => Arc::clone(&self.small).acquire_many_owned(wanted).await.ok(),
        }
    }

    /// Waits until a chunk that takes so many bytes may be encoded; a small one need not wait.
    pub(super) async fn encoder(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        if bytes > Self::SMALL { Arc::clone(&self.encoders).acquire_owned().await.ok() } else { None }
    }
}

/// Kilobytes, in which room is counted.
fn units(bytes: u64) -> u32 {
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
            let room = RechunkBudget::new(2);
            let mut made = Vec::new();
            while let Some(taken) = room.take(large).now_or_never() {
                made.push((taken, room.encoder(large).now_or_never()));
            }
            assert!(made.iter().skip(1).all(|(_, encoder)| encoder.is_none()), "a thread is left");
            // More of them wait.
            let mut waiting: Vec<_> = (0..32).map(|_| Box::pin(room.take(large))).collect();
            assert!(waiting.iter_mut().all(|waits| waits.now_or_never().is_none()));
            for small in [1, 1 << 10, RechunkBudget::SMALL] {
                assert!(room.take(small).now_or_never().is_some(), "{small} bytes beside {large}");
                assert!(room.encoder(small).now_or_never().is_some(), "{small} bytes beside {large}");
            }
            // Small ones take no more than their part, and what is given back goes to those who waited for it.
            let mut small = Vec::new();
            while let Some(taken) = room.take(RechunkBudget::SMALL).now_or_never() {
                small.push(taken);
            }
            assert!(small.len() as u64 * RechunkBudget::SMALL <= RechunkBudget::BYTES, "{}", small.len());
            made.clear();
            assert!(waiting.remove(0).now_or_never().is_some(), "the first who waited");
        }
    }
}
