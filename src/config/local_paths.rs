//! The directories of this machine that mounts read, compared with that of the disk cache.

use std::path::{Path, PathBuf};

use super::mounts::MountOptions;
use crate::store::{local_path, references_of};

/// The path of this machine that a URL names, if it names one.
fn path_of(url: &str) -> Option<PathBuf> {
    local_path(url).ok().flatten()
}

/// The first mount that reads files of a directory, or of directories in it, which need not exist yet: clients of the mount would
/// get what is in the directory, or change it.
pub(super) fn reading_from<'a>(
    directory: &Path,
    mut mounts: impl Iterator<Item = (&'a String, &'a MountOptions)>,
) -> Option<&'a str> {
    let directory = real_path(directory)?;
    let reads_it = |read: PathBuf| {
        real_path(&read).is_some_and(|read| read.starts_with(&directory) || directory.starts_with(&read))
    };
    mounts.find(|(_, mount)| mount.read_directories().any(reads_it)).map(|(name, _)| name.as_str())
}

/// A path without links, of which the last names need not exist.
fn real_path(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find_map(|above| {
        let found = std::fs::canonicalize(above).ok()?;
        Some(found.join(path.strip_prefix(above).ok()?))
    })
}

impl MountOptions {
    /// The directory of this machine that the mount serves, if it serves one.
    #[must_use]
    pub fn local_root(&self) -> Option<PathBuf> {
        path_of(&self.url)
    }

    /// Where a mount reads files of this machine: its own directory, the document or repository of its references, and the directories
    /// that these may lead into.
    fn read_directories(&self) -> impl Iterator<Item = PathBuf> {
        let prefixes = self.allowed_prefixes().into_iter();
        let prefixes = prefixes.filter_map(|prefix| path_of(prefix.at.as_deref().unwrap_or(&prefix.url)));
        path_of(references_of(&self.url).unwrap_or(&self.url)).into_iter().chain(prefixes)
    }
}
