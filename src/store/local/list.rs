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

use futures::stream::{StreamExt, TryStreamExt, iter, unfold};
use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, statat};
use rustix::io::Errno;

use super::blocking::Blocking;
use super::failure::os;
use super::names::{Names, Selection};
use super::root::{Root, is_file};
use super::root_state::LocalRootState;
use super::version::info_of;
use crate::key::{StoreKey, StorePrefix};
use crate::store::reserved_keys::is_reserved;
use crate::store::{DirEntries, DirEntry, ListEntry, StoreError, ValueInfo};

/// Names that the first step of a walk looks at, and the most that any does: those who want few wait for few.
const FIRST_STEP: usize = 64;
const NAMES_PER_STEP: usize = 1024;
/// Text of keys after which a step ends.
const STEP_BYTES: usize = 64 << 10;
/// Names that the first reading of a directory keeps, and how many times as many each further one does.
const FIRST_NAMES: usize = 1024;
const MORE_NAMES: usize = 8;
/// Bytes of names that a walk holds, all its directories together; and the least that one directory has of them.
pub(super) const NAMES_BYTES: usize = 512 << 10;
const LEAST_BYTES: usize = 4 << 10;

/// Entries that a glance at a directory looks at, to see whether they are directories.
const MOST_LOOKS: usize = 64;

/// What tells one directory from another: device and number.
type Identity = (u64, u64);

/// Which entries a walk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    /// The keys and prefixes directly under where it begins.
    Directly,
    /// All keys.
    All,
    /// All keys, with links as they are: none is followed.
    AllUnlinked,
}

/// The entries below a prefix, after a text.
pub(super) fn list(
    area: Arc<LocalRootState>,
    blocking: Blocking,
    below: Below,
    prefix: &StorePrefix,
    after: &str,
) -> DirEntries {
    let walk = Walk::new(area, below, prefix, after);
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
    area: Arc<LocalRootState>,
    below: Below,
    after: String,
    /// The directory that is to be read next.
    next: Option<StorePrefix>,
    frames: Vec<Frame>,
    /// Names that the next step looks at.
    step: usize,
}

/// A directory on the way down, and what of it is still to be visited.
struct Frame {
    prefix: StorePrefix,
    /// What it is, to notice a link that leads back up.
    stat: Stat,
    names: Names,
    /// How many names the last reading was to keep.
    kept: usize,
}

impl Walk {
    pub(super) fn new(area: Arc<LocalRootState>, below: Below, prefix: &StorePrefix, after: &str) -> Self {
        // All keys below the prefix come before such a text.
        let is_passed = after > prefix.as_str() && !after.starts_with(prefix.as_str());
        let next = (!is_passed).then(|| prefix.clone());
        Self { area, below, after: after.to_owned(), next, frames: Vec::new(), step: FIRST_STEP }
    }

    pub(super) fn is_done(&self) -> bool {
        self.next.is_none()
            && self.frames.iter().all(|frame| frame.names.is_over() && frame.names.is_complete())
    }

    /// Bytes of names that it holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.frames.iter().map(|frame| frame.names.held_bytes()).sum()
    }

    /// The next entries. Every one of them is looked at, and nothing else.
    pub(super) fn step(&mut self) -> Result<Vec<DirEntry>, StoreError> {
        let area = Arc::clone(&self.area);
        let root = &area.root;
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
                self.read_on(root)?;
                continue;
            };
            if let Some(below) = name.strip_suffix('/').and_then(|name| frame.prefix.join(name).ok()) {
                let is_passed = below.as_str() <= self.after.as_str();
                match self.below {
                    Below::Directly if !is_passed && holds_a_key(root, &below, &mut HashSet::new()) => {
                        bytes += below.as_str().len();
                        entries.push(DirEntry::Prefix(below));
                    }
                    Below::All | Below::AllUnlinked
                        if !is_passed || self.after.starts_with(below.as_str()) =>
                    {
                        self.next = Some(below);
                    }
                    Below::Directly | Below::All | Below::AllUnlinked => {}
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
                && let Some(info) = look_at(root, directory, name, &key, self.below)?
            {
                bytes += key.as_str().len();
                entries.push(DirEntry::Key(ListEntry { key, info }));
            }
        }
        self.step = NAMES_PER_STEP.min(self.step * 2);
        Ok(entries)
    }

    /// Goes down into a directory.
    fn enter(&mut self, root: &Root, prefix: StorePrefix) -> Result<(), StoreError> {
        let Some(directory) = root.open_directory(prefix.as_str())? else {
            return Ok(());
        };
        let stat = fstat(&directory).map_err(|errno| os("look at a directory", errno))?;
        let is_same = |above: &Stat| (above.st_dev, above.st_ino) == (stat.st_dev, stat.st_ino);
        if self.frames.iter().any(|above| is_same(&above.stat)) {
            return Ok(());
        }
        // What is listed comes after the name that the text goes on with here, or is below that.
        let rest = self.after.strip_prefix(prefix.as_str()).unwrap_or_default();
        let after = rest.split('/').next().unwrap_or_default();
        let names = first_names(root, &directory, &prefix, self.below, after, FIRST_NAMES, self.room())?;
        self.frames.push(Frame { prefix, stat, names, kept: FIRST_NAMES });
        Ok(())
    }

    /// Reads on in the directory that it is in, or leaves it.
    fn read_on(&mut self, root: &Root) -> Result<(), StoreError> {
        let Some(Frame { prefix, stat, names, kept }) = self.frames.pop() else {
            return Ok(());
        };
        let Some(after) = names.last().filter(|_| !names.is_complete()).map(str::to_owned) else {
            return Ok(());
        };
        // Gone before others are held in its place.
        drop(names);
        let Some(directory) = root.open_directory(prefix.as_str())? else {
            return Ok(());
        };
        let kept = kept.saturating_mul(MORE_NAMES);
        let names = first_names(root, &directory, &prefix, self.below, &after, kept, self.room())?;
        self.frames.push(Frame { prefix, stat, names, kept });
        Ok(())
    }

    /// Bytes of names that one directory more may hold: where others may lie below it, some are left for them.
    fn room(&self) -> usize {
        let free = NAMES_BYTES.saturating_sub(self.held_bytes());
        match self.below {
            Below::Directly => free,
            Below::All | Below::AllUnlinked => (free / 4 * 3).max(LEAST_BYTES),
        }
    }
}

/// The first names behind `after` in a directory that can be keys or, with a `/` after them, prefixes; sorted.
fn first_names(
    root: &Root,
    directory: &OwnedFd,
    prefix: &StorePrefix,
    below: Below,
    after: &str,
    names: usize,
    bytes: usize,
) -> Result<Names, StoreError> {
    let mut first = Selection::new(after, names, bytes);
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

/// The prefixes directly under a prefix, among the first entries of its directory as they come. What is in them is not
/// looked at, and few entries are whose names do not say that they are directories.
pub(super) fn glance(
    root: &Root,
    prefix: &StorePrefix,
    entries: usize,
) -> Result<Vec<StorePrefix>, StoreError> {
    let Some(directory) = root.open_directory(prefix.as_str())? else {
        return Ok(Vec::new());
    };
    let (mut found, mut looks) = (Vec::new(), 0);
    for entry in Dir::read_from(&directory).map_err(|errno| os("read a directory", errno))?.take(entries) {
        let entry = entry.map_err(|errno| os("read a directory", errno))?;
        let kind = entry.file_type();
        if matches!(kind, FileType::Symlink | FileType::Unknown) {
            looks += 1;
        } else if kind != FileType::Directory {
            continue;
        }
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Ok(key) = prefix.key(name) else { continue };
        if looks <= MOST_LOOKS
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
            Err(errno) => return Err(os("look at an entry of a directory", errno)),
        };
    }
    if kind != FileType::Symlink {
        return Ok(Some(kind));
    }
    if below == Below::AllUnlinked {
        return Ok(Some(FileType::RegularFile));
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
    below: Below,
) -> Result<Option<ValueInfo>, StoreError> {
    let began = SystemTime::now();
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if is_file(&stat) => Ok(Some(info_of(&root.looked(stat, began)))),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
            let itself = || Ok(Some(info_of(&root.looked(stat, began))));
            if below == Below::AllUnlinked {
                return itself();
            }
            match super::read::head(root, key) {
                Err(StoreError::Link { .. }) => itself(),
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
        let found = match kind_of(root, &directory, name, &key, Below::Directly, entry.file_type()) {
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
