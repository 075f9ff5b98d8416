//! [`Disk`]: the one way to the calls that change what is on the disk.
//!
//! Each call is named by its [`Step`], so that tests can see in which order they are made and put a failure in the way
//! of any of them. Beyond that this asks again when a signal came in between. It knows nothing of keys.

use rustix::io::Errno;

use super::root::retry;

/// A call that changes what is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A staging file is made.
    Create,
    /// Bytes are written to it.
    Write,
    /// It gets its time.
    Stamp,
    /// Its bytes are made durable.
    SyncFile,
    /// A directory is made.
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

/// What comes before every step in a test: it may note the step, or be the step's failure.
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
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests have something to look up here"))]
    pub(super) fn call<T>(&self, step: Step, call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        #[cfg(test)]
        if let Some(script) = &mut *self.script.lock().unwrap() {
            script(step)?;
        }
        let _ = step;
        retry(call)
    }
}
