//! Listing: the directories below a prefix as keys, in the order of the keys' bytes.
//!
//! A directory's names are sorted with `/` after those of directories, which is where their keys stand. What can
//! be no key (names that are not UTF-8, special files, what vanished meanwhile) is left out; a directory that cannot
//! be read is an error. A link that is not followed is listed as a key: whoever reads it is told why it is none, and
//! nobody takes it for absent. The walk goes on in bounded steps as it is asked for.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::SystemTime;

use futures::stream::{BoxStream, StreamExt, TryStreamExt, iter, unfold};
use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, statat};
use rustix::io::Errno;

use super::Area;
use super::blocking::Blocking;
use super::failure::os;
use super::root::{Root, is_file};
use super::version::info_of;
use crate::key::{StoreKey, StorePrefix};
use crate::store::own_names::is_reserved;
use crate::store::{DirListing, ListEntry, StoreError, ValueInfo};

/// The most names that one step of a walk looks at.
const NAMES_PER_STEP: usize = 1024;

/// What tells one directory from another: device and number.
type Identity = (u64, u64);

/// The keys and prefixes directly under a prefix.
pub(super) fn list_dir(root: &Root, prefix: &StorePrefix) -> Result<DirListing, StoreError> {
    let mut listing = DirListing::default();
    let Some(directory) = root.open_directory(prefix.as_str())? else {
        return Ok(listing);
    };
    for name in names(root, &directory, prefix)? {
        if let Some(below) = name.strip_suffix('/').and_then(|name| prefix.join(name).ok()) {
            if holds_a_key(root, &below, &mut HashSet::new()) {
                listing.prefixes.push(below);
            }
        } else if let Ok(key) = prefix.key(&name)
            && let Some(info) = look_at(root, &directory, &name, &key)?
        {
            listing.keys.push(ListEntry { key, info });
        }
    }
    Ok(listing)
}

/// Every key under a prefix, after `after`.
pub(super) fn list_prefix(
    area: Arc<Area>,
    blocking: Blocking,
    prefix: &StorePrefix,
    after: Option<&StoreKey>,
) -> BoxStream<'static, Result<ListEntry, StoreError>> {
    let walk = Walk { area, after: after.cloned(), next: Some(prefix.clone()), frames: Vec::new() };
    unfold(Some((walk, blocking)), |state| async {
        let (mut walk, blocking) = state?;
        let step = blocking.run(move || walk.step().map(|entries| (entries, walk))).await;
        match step {
            Ok((entries, walk)) if walk.is_done() => Some((Ok(entries), None)),
            Ok((entries, walk)) => Some((Ok(entries), Some((walk, blocking)))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .map_ok(|entries| iter(entries.into_iter().map(Ok)))
    .try_flatten()
    .boxed()
}

/// A walk through the tree, between two steps. It holds names, but no open directory.
struct Walk {
    area: Arc<Area>,
    after: Option<StoreKey>,
    /// The directory that is to be read next.
    next: Option<StorePrefix>,
    frames: Vec<Frame>,
}

/// A directory on the way down, and what of it is still to be visited.
struct Frame {
    prefix: StorePrefix,
    /// What it is, to notice a link that leads back up.
    stat: Stat,
    names: std::vec::IntoIter<String>,
}

impl Walk {
    fn is_done(&self) -> bool {
        self.next.is_none() && self.frames.is_empty()
    }

    fn step(&mut self) -> Result<Vec<ListEntry>, StoreError> {
        let area = Arc::clone(&self.area);
        let root = &area.root;
        let mut entries = Vec::new();
        let mut open: Option<(StorePrefix, Option<OwnedFd>)> = None;
        for _ in 0..NAMES_PER_STEP {
            if let Some(prefix) = self.next.take() {
                self.enter(root, prefix)?;
            }
            let Some(frame) = self.frames.last_mut() else {
                break;
            };
            let Some(name) = frame.names.next() else {
                self.frames.pop();
                continue;
            };
            if let Some(below) = name.strip_suffix('/').and_then(|name| frame.prefix.join(name).ok()) {
                let passed = self.after.as_ref().is_some_and(|after| {
                    below.as_str() < after.as_str() && !after.as_str().starts_with(below.as_str())
                });
                self.next = (!passed).then_some(below);
                continue;
            }
            let Ok(key) = frame.prefix.key(&name) else {
                continue;
            };
            if self.after.as_ref().is_some_and(|after| key <= *after) {
                continue;
            }
            if open.as_ref().is_none_or(|(prefix, _)| *prefix != frame.prefix) {
                open = Some((frame.prefix.clone(), root.open_directory(frame.prefix.as_str())?));
            }
            if let Some((_, Some(directory))) = &open
                && let Some(info) = look_at(root, directory, &name, &key)?
            {
                entries.push(ListEntry { key, info });
            }
        }
        Ok(entries)
    }

    fn enter(&mut self, root: &Root, prefix: StorePrefix) -> Result<(), StoreError> {
        let Some(directory) = root.open_directory(prefix.as_str())? else {
            return Ok(());
        };
        let stat = fstat(&directory).map_err(|errno| os("look at a directory", errno))?;
        let is_same = |above: &Stat| (above.st_dev, above.st_ino) == (stat.st_dev, stat.st_ino);
        if self.frames.iter().any(|above| is_same(&above.stat)) {
            return Ok(());
        }
        let names = names(root, &directory, &prefix)?.into_iter();
        self.frames.push(Frame { prefix, stat, names });
        Ok(())
    }
}

/// The names in a directory that can be keys or, with a `/` after them, prefixes; sorted.
fn names(root: &Root, directory: &OwnedFd, prefix: &StorePrefix) -> Result<Vec<String>, StoreError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).map_err(|errno| os("read a directory", errno))? {
        let entry = entry.map_err(|errno| os("read a directory", errno))?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let Ok(key) = prefix.key(name) else {
            continue;
        };
        match kind_of(root, directory, name, &key, entry.file_type())? {
            Some(FileType::RegularFile) => names.push(name.to_owned()),
            Some(FileType::Directory) => names.push(format!("{name}/")),
            _ => {}
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether an entry is a file, a directory, or something that is not listed.
fn kind_of(
    root: &Root,
    directory: &OwnedFd,
    name: &str,
    key: &StoreKey,
    mut kind: FileType,
) -> Result<Option<FileType>, StoreError> {
    if is_reserved(name) {
        return Ok(None);
    }
    if kind == FileType::Unknown {
        kind = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(os("look at an entry of a directory", errno)),
        };
    }
    if kind != FileType::Symlink {
        return Ok(Some(kind));
    }
    match root.open_file(key.as_str()) {
        Ok(Some(_)) | Err(StoreError::Link { .. }) => Ok(Some(FileType::RegularFile)),
        Ok(None) => Ok(root.open_directory(key.as_str())?.map(|_| FileType::Directory)),
        Err(error) => Err(error),
    }
}

/// Size and version of a directory's file; `None` if it is gone or was replaced by something that is none.
fn look_at(
    root: &Root,
    directory: &OwnedFd,
    name: &str,
    key: &StoreKey,
) -> Result<Option<ValueInfo>, StoreError> {
    let began = SystemTime::now();
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if is_file(&stat) => Ok(Some(info_of(&root.looked(stat, began)))),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
            match super::read::head(root, key) {
                Err(StoreError::Link { .. }) => Ok(Some(info_of(&root.looked(stat, began)))),
                found => found,
            }
        }
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(os("look at an entry of a directory", errno)),
    }
}

/// Whether a prefix exists, which it does if a key is below it. One that cannot be read may well hold some, and
/// says so when it is listed itself.
///
/// A directory is looked into once, by whichever way: links could make endless ways through a few of them. No deeper
/// than keys go, since the prefix of each is one of a key's.
fn holds_a_key(root: &Root, prefix: &StorePrefix, seen: &mut HashSet<Identity>) -> bool {
    let directory = match root.open_directory(prefix.as_str()) {
        Ok(Some(directory)) => directory,
        Ok(None) => return false,
        Err(_) => return true,
    };
    match fstat(&directory) {
        Ok(stat) if seen.insert((stat.st_dev, stat.st_ino)) => {}
        Ok(_) => return false,
        Err(_) => return true,
    }
    let Ok(entries) = Dir::read_from(&directory) else {
        return true;
    };
    for entry in entries {
        let Ok(entry) = entry else {
            return true;
        };
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let Ok(key) = prefix.key(name) else {
            continue;
        };
        let found = match kind_of(root, &directory, name, &key, entry.file_type()) {
            Ok(Some(FileType::RegularFile)) | Err(_) => true,
            Ok(Some(FileType::Directory)) => holds_a_key(root, &key.as_prefix(), seen),
            Ok(_) => false,
        };
        if found {
            return true;
        }
    }
    false
}
