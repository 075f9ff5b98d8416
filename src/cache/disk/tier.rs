//! [`Tier`]: the parts of the disk cache that the stores of all mounts share.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;

use super::collector::Queue;
use super::engine::{Engine, Unread, ValueName};
use super::index::CachedPart;
use super::record::{MAX_DATA, MAX_HEAD};
use super::segment::Wait;
use super::threads::Threads;
use super::writer::Message;
use crate::store::{ValueInfo, Version};

/// How long the end of the cache waits for the thread that writes, whose disk may not respond.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Two records. No more are read at a time on the caller's thread, where the system has them in memory: to hand them to another thread
/// takes longer.
const NONBLOCKING_BYTES: usize = 2 * (MAX_DATA + MAX_HEAD);
/// Bytes that are read and verified for one unit of a task's budget, after which other tasks have their turn.
const UNIT_BYTES: usize = 32 << 10;

/// Files and index, the queue to the thread that writes, and the threads that read. It ends with its last user, if it was not
/// closed.
#[derive(Debug)]
pub(super) struct Tier {
    pub(super) engine: Arc<Engine>,
    pub(super) queue: Queue,
    pub(super) threads: Threads,
}

impl Tier {
    /// The bytes of a range of a value, of this version if one is given, and size, version and time of the value; `None` if not all of
    /// them are there as they were written.
    pub(super) async fn read(
        &self,
        name: &ValueName,
        version: Option<&Version>,
        range: Range<u64>,
    ) -> Option<(ValueInfo, Bytes)> {
        let parts = self.engine.covering(name, version, &range)?;
        let bytes = parts.iter().map(CachedPart::stored_bytes).fold(0, usize::saturating_add);
        if bytes <= NONBLOCKING_BYTES {
            for _unit in 0..=bytes / UNIT_BYTES {
                tokio::task::consume_budget().await;
            }
            let found = self.engine.read((name, version), &range, &parts, Wait::Never);
            if found != Err(Unread::WouldBlock) {
                return found.ok();
            }
        }
        let (engine, name, version) = (Arc::clone(&self.engine), name.clone(), version.cloned());
        let read = move || engine.read((&name, version.as_ref()), &range, &parts, Wait::ForDisk).ok();
        self.threads.run(read).await
    }

    /// Size, version and time of a value, of which the byte at an offset is in the cache.
    pub(super) async fn info(&self, name: &ValueName, at: u64) -> Option<ValueInfo> {
        tokio::task::consume_budget().await;
        let found = self.engine.info(name, at, Wait::Never);
        if found != Err(Unread::WouldBlock) {
            return found.ok();
        }
        let (engine, name) = (Arc::clone(&self.engine), name.clone());
        self.threads.run(move || engine.info(&name, at, Wait::ForDisk).ok()).await
    }

    /// Waits until everything that is queued is written and the directory is released, if the thread that writes has not ended.
    pub(super) fn close(&self) {
        let (done, wait) = mpsc::sync_channel(1);
        if self.queue.sender.send(Message::Stop(done)).is_ok() {
            let _ = wait.recv_timeout(STOP_TIMEOUT);
        }
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.close();
    }
}
