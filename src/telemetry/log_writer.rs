//! [`LogWriter`]: writes log lines from a thread of its own, so that a blocked reader delays no request.
//!
//! A full pipe or a stopped terminal blocks only this thread. It writes lines in batches, because one wake-up and one
//! system call for each line would take longer than a small response. The queue is bounded in bytes; lines that do not
//! fit are dropped and counted.
//!
//! `tracing-appender` is not used: it bounds its queue in lines instead of bytes, allocates and writes each line
//! separately, and waits at most about one second at exit.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Maximum bytes of queued lines, including the batch being written.
const MAX_BUFFERED_BYTES: usize = 4 << 20;
/// The thread writes a batch once this many bytes are queued,
const BATCH_BYTES: usize = 64 << 10;
/// or this long after the first line of the batch.
const BATCH_DELAY: Duration = Duration::from_millis(20);

/// Number of dropped lines.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// The number of lines dropped since the start of the process.
pub(super) fn dropped_lines() -> u64 {
    DROPPED.load(Relaxed)
}

/// A handle to the thread that writes log lines. Clones share the queue.
#[derive(Clone, Debug)]
pub(super) struct LogWriter(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Notifies the thread that a batch is due.
    wake: Condvar,
    /// Notifies flushes that a batch was written.
    batch_written: Condvar,
}

/// The queued lines, with byte counters since the start of the process.
#[derive(Debug, Default)]
struct Queue {
    /// Lines that the thread has not taken yet, concatenated.
    pending: Vec<u8>,
    /// Bytes of the batch being written.
    writing_bytes: usize,
    /// Bytes enqueued, and bytes written.
    enqueued_bytes: u64,
    written_bytes: u64,
    /// Number of callers that wait for a flush.
    flush_waiters: usize,
}

impl LogWriter {
    /// Starts a thread that writes lines to `output`. If the thread cannot start, queued lines are never written, and
    /// lines that do not fit are dropped.
    pub(super) fn start(output: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let writer = Self(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("zarrd-log".to_owned());
        drop(thread.spawn(move || shared.write_all(output)));
        writer
    }

    /// Waits until all lines enqueued so far are written, but at most `longest`.
    pub(super) fn flush(&self, longest: Duration) {
        let Self(shared) = self;
        let mut queue = shared.lock();
        let target = queue.enqueued_bytes;
        queue.flush_waiters += 1;
        shared.wake.notify_one();
        let queue =
            shared.batch_written.wait_timeout_while(queue, longest, |queue| queue.written_bytes < target);
        queue.unwrap_or_else(PoisonError::into_inner).0.flush_waiters -= 1;
    }

    fn enqueue(&self, line: &[u8]) {
        let Self(shared) = self;
        let mut queue = shared.lock();
        let before = queue.pending.len();
        if before + queue.writing_bytes + line.len() > MAX_BUFFERED_BYTES {
            drop(queue);
            DROPPED.fetch_add(1, Relaxed);
            return;
        }
        queue.pending.extend_from_slice(line);
        queue.enqueued_bytes += line.len() as u64;
        // The thread sleeps while the queue is empty, else until the batch is full or its delay has passed.
        let is_due = before == 0 || (before < BATCH_BYTES && queue.pending.len() >= BATCH_BYTES);
        drop(queue);
        if is_due {
            shared.wake.notify_one();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code panics while it holds the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, mut output: impl Write) {
        let mut batch = Vec::new();
        loop {
            let queue = self.wake.wait_while(self.lock(), |queue| queue.pending.is_empty());
            let queue = queue.unwrap_or_else(PoisonError::into_inner);
            let is_short = |queue: &mut Queue| queue.pending.len() < BATCH_BYTES && queue.flush_waiters == 0;
            let queue = self.wake.wait_timeout_while(queue, BATCH_DELAY, is_short);
            let mut queue = queue.unwrap_or_else(PoisonError::into_inner).0;
            std::mem::swap(&mut queue.pending, &mut batch);
            queue.writing_bytes = batch.len();
            drop(queue);
            // The reader may be gone; logging continues.
            let _ = output.write_all(&batch);
            let _ = output.flush();
            let mut queue = self.lock();
            queue.writing_bytes = 0;
            queue.written_bytes += batch.len() as u64;
            drop(queue);
            batch.clear();
            self.batch_written.notify_all();
        }
    }
}

/// The writer of one line; each call of `write` enqueues its bytes as one unit.
#[derive(Debug)]
pub(super) struct LogLine<'a>(&'a LogWriter);

impl Write for LogLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.enqueue(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> LogLine<'a> {
        LogLine(self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use super::*;

    /// An output that blocks until it is released and counts its writes.
    struct BlockedOutput(Receiver<()>, Arc<Mutex<(usize, Vec<u8>)>>);

    impl Write for BlockedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let mut written = self.1.lock().unwrap();
            written.0 += 1;
            written.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_output_blocks_no_writer_and_bounds_memory() {
        let (go, stopped) = sync_channel(0);
        let written = Arc::new(Mutex::new((0, Vec::new())));
        let writer = LogWriter::start(BlockedOutput(stopped, Arc::clone(&written)));
        let line = [b'x'; 1 << 10];
        let sent = 2 * MAX_BUFFERED_BYTES / line.len();
        let before = dropped_lines();
        for _ in 0..sent {
            assert_eq!(writer.make_writer().write(&line).unwrap(), line.len());
        }
        let lost = usize::try_from(dropped_lines() - before).unwrap();
        assert_eq!(lost, sent / 2);
        drop(go);
        writer.flush(Duration::from_mins(1));
        {
            let (writes, bytes) = &*written.lock().unwrap();
            assert_eq!(bytes.len(), (sent - lost) * line.len());
            // Lines queued while the output was blocked are written in one call.
            assert!(*writes <= 2, "{writes} writes");
        }
        writer.make_writer().write_all(b"more").unwrap();
        writer.flush(Duration::from_mins(1));
        assert!(written.lock().unwrap().1.ends_with(b"more"));
    }
}
