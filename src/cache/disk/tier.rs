//! [`Tier`]: the parts of the disk cache that the stores of all mounts share.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use super::collector::Queue;
use super::engine::Engine;
use super::threads::Threads;
use super::writer::Message;

/// How long the end of the cache waits for the thread that writes, whose disk may not respond.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Files and index, the queue to the thread that writes, and the threads that read. It ends with its last user, if it was not
/// closed.
#[derive(Debug)]
pub(super) struct Tier {
    pub(super) engine: Arc<Engine>,
    pub(super) queue: Queue,
    pub(super) threads: Threads,
}

impl Tier {
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
