//! [`ResolvedExtent`]: where an extent lies on the disks of this machine.

use std::ffi::OsString;

use rustix::fs::Dev;

/// A directory by the numbers of its device and inode.
pub(super) type DirectoryId = (Dev, u64);

/// Where an extent of a store over a directory lies, whichever names and links lead there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedExtent {
    /// The directory of a prefix or of a key's file, and those above it, the nearest first.
    pub(super) directories: Vec<DirectoryId>,
    /// Whether the first of them is that directory itself, and not the nearest one above a missing one.
    pub(super) exists: bool,
    /// The name of a key's file in it.
    pub(super) name: Option<OsString>,
}

impl ResolvedExtent {
    /// The directory itself, if it exists.
    pub(super) fn directory(&self) -> Option<DirectoryId> {
        self.nearest().filter(|_| self.exists)
    }

    /// The directory itself, or the nearest one above it that exists.
    pub(super) fn nearest(&self) -> Option<DirectoryId> {
        self.directories.first().copied()
    }

    /// Whether this extent is the other one, or a part of it.
    pub(super) fn is_in(&self, other: &Self) -> bool {
        let Some(directory) = other.directory() else { return false };
        if other.name.is_none() {
            return self.directories.contains(&directory);
        }
        self.name == other.name && self.directory() == Some(directory)
    }
}
