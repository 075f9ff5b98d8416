//! Whether two extents share a file: through links, a file has several keys, and a directory several prefixes. They may be
//! extents of two stores over directories of this machine.
//!
//! Directories are compared by device and inode, each with all that are above it. A missing directory counts as the nearest
//! existing one above it. Links below the prefix that is read are searched for, since reads follow them; erasing does not.
//! Hard links are values of their own: a replaced one leaves the others as they are.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{Dir, FileType, Mode, fstat, openat, readlinkat};

use super::failure::os;
use super::root::{ABOVE, Root, is_link};
use crate::key::{StoreKey, StorePrefix};
use crate::store::reserved_keys::is_reserved;
use crate::store::resolved_extent::{DirectoryId, ResolvedExtent};
use crate::store::{Extent, StoreError};

/// The most links in a row that are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// Whether a write to `written` can change what is read of `read`.
pub(super) fn overlap(root: &Root, read: &Extent, written: &Extent) -> Result<bool, StoreError> {
    Ok(read.overlaps(written) || overlap_resolved(root, read, &resolve(root, written)?)?)
}

/// As [`overlap`], where the second extent may be that of another store.
pub(super) fn overlap_resolved(root: &Root, read: &Extent, to: &ResolvedExtent) -> Result<bool, StoreError> {
    let from = resolve(root, read)?;
    if from.is_in(to) || to.is_in(&from) {
        return Ok(true);
    }
    match (read, to.nearest()) {
        (Extent::Below(prefix), Some(directory)) if to.name.is_none() => {
            links_into(root, prefix, (directory, to.exists), &mut HashSet::new())
        }
        _ => Ok(false),
    }
}

/// Where an extent lies.
pub(super) fn resolve(root: &Root, extent: &Extent) -> Result<ResolvedExtent, StoreError> {
    match extent {
        Extent::Key(key) => {
            let (directory, exists) = nearest(root, &key.parent())?;
            let (directory, name) = if exists && matches!(root.open_file(key.as_str()), Ok(Some(_))) {
                resolve_links_of(directory, key.name().into())
            } else {
                (directory, key.name().into())
            };
            let directories = with_ancestors(root, directory)?;
            Ok(ResolvedExtent { directories, exists, name: Some(name) })
        }
        Extent::Below(prefix) => {
            let (directory, exists) = nearest(root, prefix)?;
            Ok(ResolvedExtent { directories: with_ancestors(root, directory)?, exists, name: None })
        }
    }
}

/// Whether some link makes a directory lie below a prefix, or a link below the prefix leads into it. If the directory is the
/// nearest one above a missing one, the missing one is in no other directory of it, so that links into it do not count. As in a
/// listing, each directory is read once, and no deeper than keys can be.
fn links_into(
    root: &Root,
    prefix: &StorePrefix,
    (into, exists): (DirectoryId, bool),
    seen: &mut HashSet<DirectoryId>,
) -> Result<bool, StoreError> {
    let directory = match root.open_directory(prefix.as_str()) {
        Ok(Some(directory)) => directory,
        Ok(None) | Err(StoreError::Link { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let here = identity(&directory)?;
    if here == into {
        return Ok(true);
    }
    if !seen.insert(here) {
        return Ok(false);
    }
    for entry in Dir::read_from(&directory).map_err(|errno| os("read a directory", errno))? {
        let entry = entry.map_err(|errno| os("read a directory", errno))?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if is_reserved(name) {
            continue;
        }
        let Ok(key) = prefix.key(name) else { continue };
        let mut kind = entry.file_type();
        if kind == FileType::Unknown && is_link(&directory, name) {
            kind = FileType::Symlink;
        }
        let leads = match kind {
            FileType::Symlink => {
                let (file, behind) = (resolve(root, &Extent::Key(key.clone()))?, key.as_prefix());
                let folder = resolve(root, &Extent::Below(behind.clone()))?;
                let leads_into = |extent: &ResolvedExtent| exists && extent.directories.contains(&into);
                leads_into(&file) || leads_into(&folder) || links_into(root, &behind, (into, exists), seen)?
            }
            // Not a directory after all.
            FileType::Directory | FileType::Unknown => {
                links_into(root, &key.as_prefix(), (into, exists), seen)?
            }
            _ => false,
        };
        if leads {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The directory of a prefix, or else its nearest existing ancestor, and whether it is the former. Nothing exists
/// behind a link that is not followed.
fn nearest(root: &Root, prefix: &StorePrefix) -> Result<(OwnedFd, bool), StoreError> {
    let mut at = prefix.clone();
    loop {
        match root.open_directory(at.as_str()) {
            Ok(Some(directory)) => return Ok((directory, at == *prefix)),
            Ok(None) | Err(StoreError::Link { .. }) => {}
            Err(error) => return Err(error),
        }
        // The root itself is never absent: that is an error.
        at = at.as_key().as_ref().map_or_else(StorePrefix::root, StoreKey::parent);
    }
}

/// The directory and the name of the file that a name leads to.
fn resolve_links_of(mut directory: OwnedFd, mut name: OsString) -> (OwnedFd, OsString) {
    for _ in 0..MAX_LINKS {
        if !is_link(&directory, &name) {
            break;
        }
        let Ok(target) = readlinkat(&directory, &name, Vec::new()) else { break };
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        let Some(next) = target.file_name() else { break };
        if let Some(above) = target.parent().filter(|above| !above.as_os_str().is_empty()) {
            let Ok(opened) = openat(&directory, above, ABOVE, Mode::empty()) else { break };
            directory = opened;
        }
        next.clone_into(&mut name);
    }
    (directory, name)
}

/// A directory and those above it, up to the top of the file system, or to the last one above the root that can be opened.
fn with_ancestors(root: &Root, mut directory: OwnedFd) -> Result<Vec<DirectoryId>, StoreError> {
    let end = identity(root.fd())?;
    let mut last = identity(&directory)?;
    let mut found = vec![last];
    loop {
        directory = match openat(&directory, "..", ABOVE, Mode::empty()) {
            Ok(above) => above,
            Err(_) if found.contains(&end) => return Ok(found),
            Err(errno) => return Err(os("open the directory above another", errno)),
        };
        let above = identity(&directory)?;
        if above == last {
            return Ok(found);
        }
        found.push(above);
        last = above;
    }
}

fn identity(directory: impl AsFd) -> Result<DirectoryId, StoreError> {
    let stat = fstat(directory).map_err(|errno| os("stat a directory", errno))?;
    Ok((stat.st_dev, stat.st_ino))
}
