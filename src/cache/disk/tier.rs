//! [`Tier`]: the parts of the disk cache that the stores of all mounts share.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;

use super::collector::Queue;
use super::engine::{Engine, Unread, ValueName};
use super::segment::Wait;
use super::threads::Threads;
use super::writer::Message;
use crate::store::{ValueInfo, Version};

/// How long the end of the cache waits for the thread that writes, whose disk may not respond.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Ranges of at most this length are read on the caller's thread if the system has them in memory: to hand them to a thread costs more.
const NONBLOCKING_BYTES: u64 = 512 << 10;
/// After a longer one, other tasks have their turn.
const SHORT_BYTES: u64 = 64 << 10;

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
        let length = range.end.saturating_sub(range.start);
        if length <= NONBLOCKING_BYTES {
            let found = self.engine.read(name, version, &range, Wait::Never);
            if length > SHORT_BYTES {
                tokio::task::yield_now().await;
            }
            if found != Err(Unread::WouldBlock) {
                return found.ok();
            }
        }
        let (engine, name, version) = (Arc::clone(&self.engine), name.clone(), version.cloned());
        self.threads.run(move || engine.read(&name, version.as_ref(), &range, Wait::ForDisk).ok()).await
    }

    /// Size, version and time of a value, of which the byte at an offset is in the cache.
    pub(super) async fn info(&self, name: &ValueName, at: u64) -> Option<ValueInfo> {
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
