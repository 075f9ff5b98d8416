//! Listing: the directories below a prefix as keys, in the order of the keys' bytes.
//!
//! Names of directories are sorted as if they ended in `/`, which is the order of their keys. Entries that cannot be
//! keys (names that are not UTF-8, special files, files that vanished meanwhile) are left out; a directory that cannot
//! be read is an error. A link that is not followed is listed as a key: a read of it fails with the reason, so no
//! client takes it for absent. The walk advances in bounded steps, as the stream is polled.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::SystemTime;

use futures::stream::{StreamExt, TryStreamExt, iter, unfold};
use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, statat};
use rustix::io::Errno;

use super::blocking::Blocking;
use super::failure::os;
use super::names::{FirstNames, Names};
use super::root::{Root, is_file};
use super::root_state::LocalRootState;
use super::version::info_of;
use crate::key::{StoreKey, StorePrefix};
use crate::store::reserved_keys::is_reserved;
use crate::store::{DirEntries, DirEntry, ListEntry, StoreError, ValueInfo};

/// The names that the first step of a walk examines, and the most that any step does: a short page does not wait for a
/// long step.
const FIRST_STEP: usize = 64;
const NAMES_PER_STEP: usize = 1024;
/// A step ends after this many bytes of keys.
const STEP_BYTES: usize = 64 << 10;
/// The names that the first pass over a directory keeps, and the factor by which each further pass keeps more.
const FIRST_NAMES: usize = 1024;
const MORE_NAMES: usize = 8;
/// The most bytes of names that a walk holds for all its directories; and the least for one directory.
pub(super) const NAMES_BYTES: usize = 512 << 10;
const MIN_NAMES_BYTES: usize = 4 << 10;

/// The most entries that [`sample_prefixes`] examines by `stat`, to see whether they are directories.
const MAX_STATS: usize = 64;

/// A directory, by device and inode.
type Identity = (u64, u64);

/// Which entries a walk returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    /// The keys and prefixes directly under its start.
    Directly,
    /// All keys.
    All,
    /// All keys, where a link is a key itself and never followed.
    AllWithoutLinks,
}

/// The entries below a prefix, after a text.
pub(super) fn list(
    shared: Arc<LocalRootState>,
    blocking: Blocking,
    below: Below,
    prefix: &StorePrefix,
    after: &str,
) -> DirEntries {
    let walk = Walk::new(shared, below, prefix, after);
    unfold(Some((walk, blocking)), |state| async {
        let (mut walk, blocking) = state?;
        let step = blocking.walk(move || walk.step().map(|entries| (entries, walk))).await;
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
pub(super) struct Walk {
    shared: Arc<LocalRootState>,
    below: Below,
    after: String,
    /// The directory to read next.
    next: Option<StorePrefix>,
    frames: Vec<Frame>,
    /// How many names the next step examines.
    step: usize,
}

/// A directory on the path of the walk, and its names that are still to be visited.
struct Frame {
    prefix: StorePrefix,
    /// Identifies the directory, to notice a link that leads back up.
    stat: Stat,
    names: Names,
    /// How many names the last pass was to keep.
    limit: usize,
}

impl Walk {
    pub(super) fn new(shared: Arc<LocalRootState>, below: Below, prefix: &StorePrefix, after: &str) -> Self {
        // All keys below the prefix come before such a text.
        let is_passed = after > prefix.as_str() && !after.starts_with(prefix.as_str());
        let next = (!is_passed).then(|| prefix.clone());
        Self { shared, below, after: after.to_owned(), next, frames: Vec::new(), step: FIRST_STEP }
    }

    pub(super) fn is_done(&self) -> bool {
        self.next.is_none()
            && self.frames.iter().all(|frame| frame.names.is_exhausted() && frame.names.is_complete())
    }

    /// Bytes of names that the walk holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.frames.iter().map(|frame| frame.names.held_bytes()).sum()
    }

    /// The next entries. Examines each of them by `stat`, and no others.
    pub(super) fn step(&mut self) -> Result<Vec<DirEntry>, StoreError> {
        let shared = Arc::clone(&self.shared);
        let root = &shared.root;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut open: Option<(StorePrefix, Option<OwnedFd>)> = None;
        for _ in 0..self.step {
            if bytes > STEP_BYTES {
                break;
            }
            if let Some(prefix) = self.next.take() {
                self.enter(root, prefix)?;
            }
            let Some(frame) = self.frames.last_mut() else {
                break;
            };
            let Some(name) = frame.names.next() else {
                self.read_more(root)?;
                continue;
            };
            if let Some(below) = name.strip_suffix('/').and_then(|name| frame.prefix.join(name).ok()) {
                let is_passed = below.as_str() <= self.after.as_str();
                match self.below {
                    Below::Directly if !is_passed && contains_key(root, &below, &mut HashSet::new()) => {
                        bytes += below.as_str().len();
                        entries.push(DirEntry::Prefix(below));
                    }
                    Below::All | Below::AllWithoutLinks
                        if !is_passed || self.after.starts_with(below.as_str()) =>
                    {
                        self.next = Some(below);
                    }
                    Below::Directly | Below::All | Below::AllWithoutLinks => {}
                }
                continue;
            }
            let Ok(key) = frame.prefix.key(name) else {
                continue;
            };
            if key.as_str() <= self.after.as_str() {
                continue;
            }
            if open.as_ref().is_none_or(|(prefix, _)| *prefix != frame.prefix) {
                open = Some((frame.prefix.clone(), root.open_directory(frame.prefix.as_str())?));
            }
            if let Some((_, Some(directory))) = &open
                && let Some(info) = stat_entry(root, directory, name, &key, self.below)?
            {
                bytes += key.as_str().len();
                entries.push(DirEntry::Key(ListEntry { key, info }));
            }
        }
        self.step = NAMES_PER_STEP.min(self.step * 2);
        Ok(entries)
    }

    /// Descends into a directory.
    fn enter(&mut self, root: &Root, prefix: StorePrefix) -> Result<(), StoreError> {
        let Some(directory) = root.open_directory(prefix.as_str())? else {
            return Ok(());
        };
        let stat = fstat(&directory).map_err(|errno| os("stat a directory", errno))?;
        let is_same = |above: &Stat| (above.st_dev, above.st_ino) == (stat.st_dev, stat.st_ino);
        if self.frames.iter().any(|above| is_same(&above.stat)) {
            return Ok(());
        }
        // Entries come after the name with which `after` continues here, or are below that name.
        let rest = self.after.strip_prefix(prefix.as_str()).unwrap_or_default();
        let after = rest.split('/').next().unwrap_or_default();
        let names =
            first_names(root, &directory, &prefix, self.below, after, FIRST_NAMES, self.free_bytes())?;
        self.frames.push(Frame { prefix, stat, names, limit: FIRST_NAMES });
        Ok(())
    }

    /// Reads more names of the current directory, or leaves it.
    fn read_more(&mut self, root: &Root) -> Result<(), StoreError> {
        let Some(Frame { prefix, stat, names, limit }) = self.frames.pop() else {
            return Ok(());
        };
        let Some(after) = names.last().filter(|_| !names.is_complete()).map(str::to_owned) else {
            return Ok(());
        };
        // Freed before the next names take its place.
        drop(names);
        let Some(directory) = root.open_directory(prefix.as_str())? else {
            return Ok(());
        };
        let limit = limit.saturating_mul(MORE_NAMES);
        let names = first_names(root, &directory, &prefix, self.below, &after, limit, self.free_bytes())?;
        self.frames.push(Frame { prefix, stat, names, limit });
        Ok(())
    }

    /// Bytes of names that one more directory may hold. Leaves some for directories below it.
    fn free_bytes(&self) -> usize {
        let free = NAMES_BYTES.saturating_sub(self.held_bytes());
        match self.below {
            Below::Directly => free,
            Below::All | Below::AllWithoutLinks => (free / 4 * 3).max(MIN_NAMES_BYTES),
        }
    }
}

/// The first names after `after` in a directory that can be keys or, followed by `/`, prefixes; sorted.
fn first_names(
    root: &Root,
    directory: &OwnedFd,
    prefix: &StorePrefix,
    below: Below,
    after: &str,
    names: usize,
    bytes: usize,
) -> Result<Names, StoreError> {
    let mut first = FirstNames::new(after, names, bytes);
    for entry in Dir::read_from(directory).map_err(|errno| os("read a directory", errno))? {
        let entry = entry.map_err(|errno| os("read a directory", errno))?;
        if !first.may_take(entry.file_name().to_bytes()) {
            continue;
        }
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let Ok(key) = prefix.key(name) else {
            continue;
        };
        match kind_of(root, directory, name, &key, below, entry.file_type())? {
            Some(FileType::RegularFile) => first.take(name, false),
            Some(FileType::Directory) => first.take(name, true),
            _ => {}
        }
    }
    Ok(first.into_names())
}

/// The prefixes directly under a prefix, among the first entries of its directory in the order of the file system. Does
/// not read them, and calls `stat` for few entries of unknown type.
pub(super) fn sample_prefixes(
    root: &Root,
    prefix: &StorePrefix,
    entries: usize,
) -> Result<Vec<StorePrefix>, StoreError> {
    let Some(directory) = root.open_directory(prefix.as_str())? else {
        return Ok(Vec::new());
    };
    let (mut found, mut stats) = (Vec::new(), 0);
    for entry in Dir::read_from(&directory).map_err(|errno| os("read a directory", errno))?.take(entries) {
        let entry = entry.map_err(|errno| os("read a directory", errno))?;
        let kind = entry.file_type();
        if matches!(kind, FileType::Symlink | FileType::Unknown) {
            stats += 1;
        } else if kind != FileType::Directory {
            continue;
        }
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Ok(key) = prefix.key(name) else { continue };
        if stats <= MAX_STATS
            && kind_of(root, &directory, name, &key, Below::Directly, kind)? == Some(FileType::Directory)
        {
            found.push(key.as_prefix());
        }
    }
    Ok(found)
}

/// Whether an entry is a file, a directory, or something that is not listed.
fn kind_of(
    root: &Root,
    directory: &OwnedFd,
    name: &str,
    key: &StoreKey,
    below: Below,
    mut kind: FileType,
) -> Result<Option<FileType>, StoreError> {
    if is_reserved(name) {
        return Ok(None);
    }
    if kind == FileType::Unknown {
        kind = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(os("stat an entry of a directory", errno)),
        };
    }
    if kind != FileType::Symlink {
        return Ok(Some(kind));
    }
    if below == Below::AllWithoutLinks {
        return Ok(Some(FileType::RegularFile));
    }
    match root.open_file(key.as_str()) {
        Ok(Some(_)) | Err(StoreError::Link { .. }) => Ok(Some(FileType::RegularFile)),
        Ok(None) => Ok(root.open_directory(key.as_str())?.map(|_| FileType::Directory)),
        Err(error) => Err(error),
    }
}

/// Size and version of a file in a directory; `None` if it is gone or no longer a regular file.
fn stat_entry(
    root: &Root,
    directory: &OwnedFd,
    name: &str,
    key: &StoreKey,
    below: Below,
) -> Result<Option<ValueInfo>, StoreError> {
    let began = SystemTime::now();
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if is_file(&stat) => Ok(Some(info_of(&root.file_state(stat, began)))),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
            let itself = || Ok(Some(info_of(&root.file_state(stat, began))));
            if below == Below::AllWithoutLinks {
                return itself();
            }
            match super::read::head(root, key) {
                Err(StoreError::Link { .. }) => itself(),
                found => found,
            }
        }
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(os("stat an entry of a directory", errno)),
    }
}

/// Whether a prefix exists, that is, whether a key is below it. `true` for one that cannot be read: its own listing
/// reports the error.
///
/// Each directory is read once, whichever path leads to it: links could form endless paths through a few directories.
/// No path is longer than a key can be.
fn contains_key(root: &Root, prefix: &StorePrefix, seen: &mut HashSet<Identity>) -> bool {
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
        let found = match kind_of(root, &directory, name, &key, Below::Directly, entry.file_type()) {
            Ok(Some(FileType::RegularFile)) | Err(_) => true,
            Ok(Some(FileType::Directory)) => contains_key(root, &key.as_prefix(), seen),
            Ok(_) => false,
        };
        if found {
            return true;
        }
    }
    false
}
