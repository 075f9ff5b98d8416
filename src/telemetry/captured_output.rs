//! [`CapturedOutput`]: what tests read a log from.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

/// Bytes that were written. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl CapturedOutput {
    /// All of them.
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for CapturedOutput {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
