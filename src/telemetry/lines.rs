//! [`Lines`]: lines of the log on their way to whoever reads them, without anybody waiting.
//!
//! A thread of its own writes them, so that a reader who takes nothing (a full pipe, a stopped terminal) holds up nobody
//! else. What waits is bounded in bytes; what does not fit is dropped, and counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Bytes of lines that wait at most.
const MOST_BYTES: usize = 4 << 20;

/// Lines that were dropped.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many lines were dropped so far.
pub(super) fn dropped() -> u64 {
    DROPPED.load(Relaxed)
}

/// What the thread is given.
enum Work {
    Line(Vec<u8>),
    /// Everything before this has been written.
    Flushed(Sender<()>),
}

/// The way to the thread that writes. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    work: Sender<Work>,
    waiting_bytes: Arc<AtomicUsize>,
}

impl Lines {
    /// Has a thread write lines to `output`. If there can be no thread, all lines are dropped.
    pub(super) fn start(output: impl Write + Send + 'static) -> Self {
        let (work, lines) = channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&waiting_bytes);
        let thread = std::thread::Builder::new().name("zarrd-log".to_owned());
        // Without it the channel has no other end, and each line finds that out.
        drop(thread.spawn(move || write_all(output, &lines, &waiting)));
        Self { work, waiting_bytes }
    }

    /// Waits until what was written so far has been taken, but no longer than this.
    pub(super) fn flush(&self, longest: Duration) {
        let (done, written) = channel();
        if self.work.send(Work::Flushed(done)).is_ok() {
            let _ = written.recv_timeout(longest);
        }
    }

    fn add(&self, line: &[u8]) {
        let before = self.waiting_bytes.fetch_add(line.len(), Relaxed);
        let fits = before.saturating_add(line.len()) <= MOST_BYTES;
        if !fits || self.work.send(Work::Line(line.to_vec())).is_err() {
            self.waiting_bytes.fetch_sub(line.len(), Relaxed);
            DROPPED.fetch_add(1, Relaxed);
        }
    }
}

fn write_all(mut output: impl Write, lines: &Receiver<Work>, waiting_bytes: &AtomicUsize) {
    while let Ok(work) = lines.recv() {
        match work {
            Work::Line(line) => {
                // Nobody may be reading; that is no reason to stop.
                let _ = output.write_all(&line);
                waiting_bytes.fetch_sub(line.len(), Relaxed);
            }
            Work::Flushed(done) => {
                let _ = output.flush();
                let _ = done.send(());
            }
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
    use std::sync::Mutex;
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// Takes nothing before it is told to.
    struct Stopped(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Stopped {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_who_takes_nothing_holds_up_nobody_and_costs_bounded_memory() {
        let (go, stopped) = sync_channel(0);
        let written = Arc::new(Mutex::new(Vec::new()));
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
        assert_eq!(written.lock().unwrap().len(), (sent - lost) * line.len());
        lines.make_writer().write_all(b"more").unwrap();
        lines.flush(Duration::from_mins(1));
        assert!(written.lock().unwrap().ends_with(b"more"));
    }
}
