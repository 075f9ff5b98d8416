//! [`Disk`]: the system calls that change the disk.
//!
//! Each call is named by its [`Step`], so that tests can observe the order of the calls and inject a failure into any
//! of them. Calls that a signal interrupts are repeated. It knows nothing of keys.

use rustix::io::Errno;

use super::root::retry;

/// A call that changes what is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A staging file is created.
    Create,
    /// Bytes are written to it.
    Write,
    /// It gets its time.
    Stamp,
    /// Its bytes are made durable.
    SyncFile,
    /// A directory is created.
    MakeDirectory,
    /// The staging file gets its name.
    Rename,
    /// A directory's names are made durable.
    SyncDirectory,
    /// A value's name is removed.
    Unlink,
    /// An empty directory is removed.
    RemoveDirectory,
}

/// Runs before every step in a test: it may record the step, or fail it.
#[cfg(test)]
pub(super) type Script = Box<dyn FnMut(Step) -> Result<(), Errno> + Send>;

/// Makes the calls.
#[derive(Default)]
pub(super) struct Disk {
    #[cfg(test)]
    pub(super) script: std::sync::Mutex<Option<Script>>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Disk")
    }
}

impl Disk {
    /// Makes a call.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "the disk of tests has state"))]
    pub(super) fn call<T>(&self, step: Step, call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        #[cfg(test)]
        if let Some(script) = &mut *self.script.lock().unwrap() {
            script(step)?;
        }
        let _ = step;
        retry(call)
    }
}
