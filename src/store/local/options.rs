//! [`LocalOptions`]: how a directory is opened as a store.

use serde::{Deserialize, Serialize};

use crate::store::options::section;

/// How symbolic links below the root are treated.
///
/// If links are followed, two keys may lead to one file. Conditional writes still treat them as two keys: each is
/// compared and replaced in one step, but not together with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Symlinks {
    /// No link is followed: a value behind one is an error, and not absent.
    Deny,
    /// Links are followed if they stay below the root (absolute links never do). Needs the system call `openat2` of
    /// Linux: without it, no link is followed.
    #[default]
    Within,
    /// All links are followed, even out of the root.
    Follow,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When the value and its name are on the disk.
    #[default]
    Fsync,
    /// When it is visible. A power failure may undo the last writes.
    Rename,
}

/// How a local store is opened.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalOptions {
    /// How symbolic links are treated.
    pub symlinks: Symlinks,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// Whether values may be written. Only one server may open a root for writing.
    #[serde(skip)]
    pub writable: bool,
    /// The most concurrent file operations that may block: 1 to [`MAX_CONCURRENCY`](super::MAX_CONCURRENCY).
    pub concurrency: usize,
    /// Whether a file with unchanged times counts as unchanged. Writes through a memory map may not change them:
    /// without this, no version is settled and every read goes to the file.
    #[serde(skip)]
    pub trusts_file_times: bool,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            symlinks: Symlinks::default(),
            durability: Durability::Fsync,
            writable: false,
            concurrency: 32,
            trusts_file_times: true,
        }
    }
}

section!(LocalOptions { symlinks, durability, concurrency });
