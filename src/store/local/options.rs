//! [`LocalOptions`]: how a directory is opened as a store.

use serde::{Deserialize, Serialize};

use crate::store::options::section;

/// What becomes of symbolic links below the root.
///
/// Where links are followed, two keys may lead to one file. To conditional writes they are two keys all the same: each
/// is compared and replaced in one step, but not with the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Symlinks {
    /// Links are not followed, wherever they lead: what is behind one is an error, and not absent.
    Deny,
    /// Links are followed as long as they do not leave the root (absolute links do, wherever they lead). Needs the
    /// system call `openat2` of Linux: without it, no link is followed.
    #[default]
    Within,
    /// Links are followed wherever they lead, out of the root as well.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalOptions {
    /// What becomes of symbolic links.
    pub symlinks: Symlinks,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// Whether values may be written. Only one server may open a root for writing.
    pub writable: bool,
    /// How many file operations that may wait can be under way at once: 1 to [`MAX_CONCURRENCY`](super::MAX_CONCURRENCY).
    pub concurrency: usize,
    /// Whether a file that has the times it had is taken for unchanged. Writes through a memory map may not show in them:
    /// without this, nothing is known of a file but what a read gives.
    pub believes_times: bool,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            symlinks: Symlinks::default(),
            durability: Durability::Fsync,
            writable: false,
            concurrency: 32,
            believes_times: true,
        }
    }
}

section!(LocalOptions { symlinks, durability, concurrency } skip { writable, believes_times });
