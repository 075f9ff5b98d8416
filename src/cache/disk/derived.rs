//! [`DiskChunk`]: a chunk that the server encoded, on the disk under a version of all that it was made of.
//!
//! Such chunks are of every mount whose versions hold over a restart, also of local ones: what takes long is to make them. They are
//! in a scope beside that of the stored values, so that no stored value can pass for one, and a purge or a prefetch
//! of the mount reaches both. A chunk is written as a whole or not at all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::counts::DiskCounts;
use super::engine::ValueName;
use super::options::QUEUE_BYTES;
use super::record::MAX_DATA;
use super::tier::Tier;
use super::writer::{Message, PendingPart};
use crate::cache::generation::Generation;
use crate::store::{ByteRange, ValueInfo, Version};

/// Longer chunks are not written: one of them would fill the queue for others.
const LARGEST_BYTES: usize = 16 << 20;
const _: () = assert!(LARGEST_BYTES as u64 <= QUEUE_BYTES / 2, "the queue has space for a chunk and others");

/// A derived chunk of any version, as the disk cache knows it.
#[derive(Debug)]
pub(in crate::cache) struct DiskChunk {
    pub(super) tier: Arc<Tier>,
    pub(super) name: ValueName,
    pub(super) counts: Arc<DiskCounts>,
}

impl DiskChunk {
    /// Whether it is on the disk, in any version.
    pub(in crate::cache) fn is_stored(&self) -> bool {
        self.tier.engine.covers(&self.name, None, ByteRange::Whole).is_some()
    }

    /// The chunk in this version, if it is on the disk as it was written.
    pub(in crate::cache) async fn read(&self, version: &Version) -> Option<Bytes> {
        let covered = self.tier.engine.covers(&self.name, Some(version), ByteRange::Whole);
        let (_, range) = covered.filter(|_| version.is_strong())?;
        let (_, chunk) = self.tier.read(&self.name, Some(version), range).await?;
        self.counts.hits.fetch_add(1, Ordering::Relaxed);
        self.counts.hit_bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        Some(chunk)
    }

    /// The time between two purges in which encoding begins now.
    pub(in crate::cache) fn generation(&self) -> Generation {
        self.tier.engine.generation.current()
    }

    /// Queues a chunk that was encoded since `since` for the disk. The caller never waits: what does not fit is not written.
    pub(in crate::cache) fn write(&self, version: &Version, chunk: &Bytes, since: Generation) {
        self.counts.misses.fetch_add(1, Ordering::Relaxed);
        let (engine, queue) = (&self.tier.engine, &self.tier.queue);
        let size = chunk.len() as u64;
        let is_kept = version.is_strong() && (1..=LARGEST_BYTES).contains(&chunk.len());
        if !is_kept || !engine.admits(&self.name, version, 0, size) {
            return;
        }
        let parts: Vec<Bytes> = chunk.chunks(MAX_DATA).map(|part| chunk.slice_ref(part)).collect();
        let permits: Option<Vec<_>> = parts.iter().map(|part| queue.reserve(part.len())).collect();
        let Some(permits) = permits else {
            engine.counts.dropped.fetch_add(parts.len() as u64, Ordering::Relaxed);
            return;
        };
        let mut start = 0;
        for (data, permit) in parts.into_iter().zip(permits) {
            let info = ValueInfo { size, version: version.clone(), modified: None };
            let length = data.len() as u64;
            let part = PendingPart { name: self.name.clone(), info, start, data, since, _permit: permit };
            start += length;
            // After the end of the thread nothing is written.
            let _ = queue.sender.send(Message::Part(part));
        }
    }
}
