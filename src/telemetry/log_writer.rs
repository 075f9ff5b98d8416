//! [`Lines`]: lines of the log on their way to whoever reads them, without anybody waiting.
//!
//! A thread of its own writes them, so that a reader who takes nothing (a full pipe, a stopped terminal) holds up nobody
//! else. It writes many lines at once: waking a thread and a system call for each line would take longer than a small
//! answer does. What waits is bounded in bytes; what does not fit is dropped, and counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Bytes of lines that wait at most.
const MOST_BYTES: usize = 4 << 20;
/// Lines are written once so many bytes of them wait,
const BATCH_BYTES: usize = 64 << 10;
/// or so long after the first of them came.
const BATCH_DELAY: Duration = Duration::from_millis(20);

/// Lines that were dropped.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many lines were dropped so far.
pub(super) fn dropped() -> u64 {
    DROPPED.load(Relaxed)
}

/// The way to the thread that writes. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// There is something for the thread to do.
    work: Condvar,
    /// A batch was written.
    written: Condvar,
}

/// Lines on their way. They are counted from the start.
#[derive(Debug, Default)]
struct Queue {
    /// Lines that nobody has taken yet, one after the other.
    waiting: Vec<u8>,
    /// Bytes that the thread took and has not written yet.
    taken_bytes: usize,
    /// Bytes that were ever added, and ever written.
    added: u64,
    done: u64,
    /// Whoever waits for what waits.
    flushes: usize,
}

impl Lines {
    /// Has a thread write lines to `output`. If there can be no thread, what waits is never written, and what does not fit
    /// is dropped.
    pub(super) fn start(output: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let lines = Self(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("zarrd-log".to_owned());
        drop(thread.spawn(move || shared.write_all(output)));
        lines
    }

    /// Waits until what was added so far has been written, but no longer than this.
    pub(super) fn flush(&self, longest: Duration) {
        let Self(shared) = self;
        let mut queue = shared.lock();
        let added = queue.added;
        queue.flushes += 1;
        shared.work.notify_one();
        let waited = shared.written.wait_timeout_while(queue, longest, |queue| queue.done < added);
        waited.unwrap_or_else(PoisonError::into_inner).0.flushes -= 1;
    }

    fn add(&self, line: &[u8]) {
        let Self(shared) = self;
        let mut queue = shared.lock();
        let before = queue.waiting.len();
        if before + queue.taken_bytes + line.len() > MOST_BYTES {
            drop(queue);
            DROPPED.fetch_add(1, Relaxed);
            return;
        }
        queue.waiting.extend_from_slice(line);
        queue.added += line.len() as u64;
        // It sleeps where nothing waits, and waits for a batch where something does.
        let is_due = before == 0 || (before < BATCH_BYTES && queue.waiting.len() >= BATCH_BYTES);
        drop(queue);
        if is_due {
            shared.work.notify_one();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing that can panic is done under the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, mut output: impl Write) {
        let mut batch = Vec::new();
        loop {
            let queue = self.work.wait_while(self.lock(), |queue| queue.waiting.is_empty());
            let queue = queue.unwrap_or_else(PoisonError::into_inner);
            let is_short = |queue: &mut Queue| queue.waiting.len() < BATCH_BYTES && queue.flushes == 0;
            let queue = self.work.wait_timeout_while(queue, BATCH_DELAY, is_short);
            let mut queue = queue.unwrap_or_else(PoisonError::into_inner).0;
            std::mem::swap(&mut queue.waiting, &mut batch);
            queue.taken_bytes = batch.len();
            drop(queue);
            // Nobody may be reading; that is no reason to stop.
            let _ = output.write_all(&batch);
            let _ = output.flush();
            let mut queue = self.lock();
            queue.taken_bytes = 0;
            queue.done += batch.len() as u64;
            drop(queue);
            batch.clear();
            self.written.notify_all();
        }
    }
}

/// One line: it is written in one piece.
#[derive(Debug)]
pub(super) struct Line<'a>(&'a Lines);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use super::*;

    /// Takes nothing before it is told to; counts how often it is given something.
    struct Stopped(Receiver<()>, Arc<Mutex<(usize, Vec<u8>)>>);

    impl Write for Stopped {
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
    fn a_reader_who_takes_nothing_holds_up_nobody_and_costs_bounded_memory() {
        let (go, stopped) = sync_channel(0);
        let written = Arc::new(Mutex::new((0, Vec::new())));
        let lines = Lines::start(Stopped(stopped, Arc::clone(&written)));
        let line = [b'x'; 1 << 10];
        let sent = 2 * MOST_BYTES / line.len();
        let before = dropped();
        for _ in 0..sent {
            assert_eq!(lines.make_writer().write(&line).unwrap(), line.len());
        }
        let lost = usize::try_from(dropped() - before).unwrap();
        assert_eq!(lost, sent / 2);
        drop(go);
        lines.flush(Duration::from_mins(1));
        {
            let (writes, bytes) = &*written.lock().unwrap();
            assert_eq!(bytes.len(), (sent - lost) * line.len());
            // What came while the reader took nothing is written in one go.
            assert!(*writes <= 2, "{writes} writes");
        }
        lines.make_writer().write_all(b"more").unwrap();
        lines.flush(Duration::from_mins(1));
        assert!(written.lock().unwrap().1.ends_with(b"more"));
    }
}
