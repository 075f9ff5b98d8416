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
    /// Local: which symbolic links are followed: those that stay within the root (`"within"`; absolute links count as leaving it,
    /// and without Linux's `openat2` none is followed), all (`"follow"`), or none (`"deny"`).
    ///
    /// A link that is not followed, that leads to nothing or in a circle is 500 `unusable-link`: never 404, which clients read as
    /// fill values, and not 403 either, which GDAL and Neuroglancer read in the same way. Listings show such a link as a key.
    /// Writes and deletions of a key that is a link replace or delete the link itself, and a prefix is deleted with the links in
    /// it, but without their targets. A copy or move whose source and destination are the same through a link is rejected (403
    /// `overlapping`).
    pub symlinks: Symlinks,
    /// Local: when a write is acknowledged: once it is on the disk (`"fsync"`), or once it is visible (`"rename"`).
    pub durability: Durability,
    /// Whether values may be written. Only one server may open a root for writing.
    #[serde(skip)]
    pub writable: bool,
    /// Local: blocking file operations in flight (1 to 64).
    pub max_concurrency: usize,
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
            max_concurrency: 32,
            trusts_file_times: true,
        }
    }
}

section!(LocalOptions { symlinks, durability, max_concurrency });
