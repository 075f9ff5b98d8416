//! Directories come and go with the keys below them, and are durable before a value in them is acknowledged.
//!
//! Keys are a flat namespace: a directory without keys is no part of the store and blocks no key. A writer creates the
//! directories it needs, the erasure of the last key below one removes it, and neither waits for the other: a writer
//! whose directory is removed meanwhile begins again (see `write`). A directory that stays empty, because a process
//! died before it put a value there, does no harm; the next writer or erasure there uses or removes it.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::disk::Step;
use super::failure::{is_absence, os};
use super::paths::{ancestors, parent_path};
use super::root_state::LocalRootState;
use crate::key::{MAX_KEY_SEGMENTS, StoreKey};
use crate::store::StoreError;

impl LocalRootState {
    fn record_new(&self, directory: &str) {
        if let Some(staging) = &self.staging {
            staging.new_directories.record(directory);
        }
    }

    /// Opens a directory below the root, and creates it and its ancestors if they are missing.
    pub(super) fn create_directories(&self, path: &str) -> Result<OwnedFd, Errno> {
        match self.root.directory_fd(path) {
            Err(Errno::NOENT) if !path.is_empty() => {}
            result => return result,
        }
        for directory in ancestors(path) {
            let (above, name) = directory.rsplit_once('/').unwrap_or(("", directory));
            // Recorded first: every writer below it must from now on make it durable.
            self.record_new(directory);
            let above = self.root.directory_fd(above)?;
            let mode = Mode::from_raw_mode(0o777);
            match self.disk.call(Step::MakeDirectory, || mkdirat(&above, name, mode)) {
                // Recorded again: another writer may be making an earlier directory of that name durable right now.
                Ok(()) => self.record_new(directory),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        self.root.directory_fd(path)
    }

    /// Makes the directories above a key durable that were created since the store was opened.
    pub(super) fn sync_new_directories(&self, key: &StoreKey) -> Result<(), StoreError> {
        let Some(staging) = &self.staging else { return Ok(()) };
        let prefix = key.parent();
        for directory in ancestors(parent_path(prefix.as_str())) {
            let Some(recorded) = staging.new_directories.recorded(directory) else {
                continue;
            };
            let above = directory.rsplit_once('/').map_or("", |(above, _)| above);
            match self.root.directory_fd(above) {
                Ok(above) => self.sync_directory("make the directories durable", &above)?,
                // Erased again meanwhile, and the value with it.
                Err(errno) if is_absence(errno) => {}
                Err(errno) => return Err(os("open a new directory", errno)),
            }
            staging.new_directories.remove(directory, recorded);
        }
        Ok(())
    }

    /// Removes the directories of a path that are empty, from the last one up. One that stays does no harm.
    pub(super) fn remove_empty_directories(&self, mut path: &str) {
        while !path.is_empty() {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            let Ok(directory) = self.root.directory_fd(above) else {
                return;
            };
            let remove = || unlinkat(&directory, name, AtFlags::REMOVEDIR);
            if self.disk.call(Step::RemoveDirectory, remove).is_err() {
                return;
            }
            path = above;
        }
    }
}

/// Removes a directory that has nothing but empty directories in it. Returns whether it is gone.
pub(super) fn remove_empty(parent: &OwnedFd, name: &str) -> Result<bool, Errno> {
    remove_empty_at(parent, name, 0)
}

fn remove_empty_at(parent: &OwnedFd, name: &str, depth: usize) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(parent, name, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(true),
        Err(errno) => return Err(errno),
    };
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let Ok(inner) = entry.file_name().to_str() else {
            return Ok(false);
        };
        if matches!(inner, "." | "..") {
            continue;
        }
        let maybe_directory = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if !maybe_directory || depth >= MAX_KEY_SEGMENTS || !remove_empty_at(&directory, inner, depth + 1)? {
            return Ok(false);
        }
    }
    match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno),
    }
}
