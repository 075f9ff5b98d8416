//! [`Directory`]: the entries of one version of a zip file, in the order of their keys.
//!
//! Keys are the names as they are written. An entry is no key if its name cannot be one: directories (`a/`), `..`,
//! absolute names, names with a backslash (some programs take it for a slash), names that are not UTF-8. Of entries
//! of one name the last in the central directory counts: that is how a value is replaced in a zip file.

use std::sync::OnceLock;

use super::ZipError;
use super::record::{End, central};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{DirEntry, ListEntry, ValueInfo, Version};

/// Most entries of a zip file, those included that are no keys.
pub(super) const MAX_ENTRIES: u64 = 1 << 20;
/// Longest central directory, in bytes.
pub(super) const MAX_DIRECTORY_BYTES: u64 = 256 << 20;
/// Most bytes of a deflated entry: it is decoded whole.
const MAX_DEFLATED_BYTES: u64 = 64 << 20;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The entries of one version of a zip file.
#[derive(Debug)]
pub(super) struct Directory {
    /// What the file is: its version, size and time.
    pub(super) file: ValueInfo,
    entries: Vec<Entry>,
}

/// An entry that has a key.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: StoreKey,
    /// Where its local header is in the file.
    pub(super) offset: u64,
    /// Where the next entry or the central directory begins: it may not reach beyond.
    pub(super) end: u64,
    /// Bytes it takes in the file.
    pub(super) compressed: u64,
    /// Bytes of the value.
    pub(super) size: u64,
    /// CRC-32 of the value.
    pub(super) crc: u32,
    pub(super) method: u16,
    encrypted: bool,
    /// Where its bytes begin in the file, once its local header has been read.
    pub(super) data: OnceLock<u64>,
}

/// How an entry's bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// As they are.
    Stored,
    /// Deflated (RFC 1951).
    Deflated,
}

impl Entry {
    /// How the bytes are kept, if they can be read at all.
    pub(super) fn kept(&self) -> Result<Kept, ZipError> {
        if self.encrypted {
            return Err(ZipError::Feature("encrypted entries"));
        }
        match self.method {
            STORED if self.compressed != self.size => {
                Err(ZipError::Broken("a stored entry has two different sizes"))
            }
            STORED => Ok(Kept::Stored),
            DEFLATED if self.compressed == 0 => Err(ZipError::Broken("a deflated entry has no bytes")),
            DEFLATED => {
                let (size, limit) = (self.size.max(self.compressed), MAX_DEFLATED_BYTES);
                let what = "deflated entry, in bytes,";
                if size > limit { Err(ZipError::TooLarge { what, size, limit }) } else { Ok(Kept::Deflated) }
            }
            method => Err(ZipError::Method(method)),
        }
    }
}

impl Directory {
    /// Whether a directory is small enough to be read.
    pub(super) fn check_limits(end: &End) -> Result<(), ZipError> {
        let length = end.directory.end.saturating_sub(end.directory.start);
        for (what, size, limit) in [
            ("number of entries", end.entries, MAX_ENTRIES),
            ("central directory, in bytes,", length, MAX_DIRECTORY_BYTES),
        ] {
            if size > limit {
                return Err(ZipError::TooLarge { what, size, limit });
            }
        }
        Ok(())
    }

    /// The entries of a central directory, which is `bytes`.
    pub(super) fn parse(bytes: &[u8], end: &End, file: ValueInfo) -> Result<Self, ZipError> {
        let (mut entries, mut offsets) = (Vec::new(), Vec::new());
        let mut rest = bytes;
        while !rest.is_empty() {
            let (record, behind) = central(rest)?;
            rest = behind;
            let offset = record.offset.checked_add(end.base);
            let offset = offset.ok_or(ZipError::Broken("an entry lies outside the file"))?;
            offsets.push(offset);
            let (size, limit) = (offsets.len() as u64, MAX_ENTRIES);
            if size > limit {
                return Err(ZipError::TooLarge { what: "number of entries", size, limit });
            }
            let Some(key) = key(record.name) else {
                continue;
            };
            entries.push(Entry {
                key,
                offset,
                end: 0,
                compressed: record.compressed,
                size: record.size,
                crc: record.crc,
                method: record.method,
                encrypted: record.encrypted,
                data: OnceLock::new(),
            });
        }
        let found = offsets.len() as u64;
        if found != end.entries && (end.exact || found & 0xffff != end.entries) {
            return Err(ZipError::Broken("its central directory has not as many entries as it says"));
        }
        offsets.sort_unstable();
        for entry in &mut entries {
            let next = offsets.partition_point(|&offset| offset <= entry.offset);
            let next = offsets.get(next).copied().unwrap_or(end.directory.start);
            entry.end = next.min(end.directory.start);
        }
        // The sort is stable: of one key, the last of the file is now the first, and stays.
        entries.reverse();
        entries.sort_by(|one, two| one.key.cmp(&two.key));
        entries.dedup_by(|later, first| later.key == first.key);
        entries.shrink_to_fit();
        Ok(Self { file, entries })
    }

    /// The entry of a key.
    pub(super) fn find(&self, key: &StoreKey) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.key.cmp(key)).ok()?;
        self.entries.get(at)
    }

    /// What is known of an entry. Its version is the file's and its place there; the time is the file's.
    pub(super) fn info(&self, entry: &Entry) -> ValueInfo {
        let tag = format!("{}-{:x}", self.file.version.tag(), entry.offset);
        let version = if self.file.version.is_strong() { Version::strong(&tag) } else { Version::weak(&tag) };
        ValueInfo { size: entry.size, version, modified: self.file.modified }
    }

    /// Where the listing of a prefix begins: its first entry after a text.
    pub(super) fn begin(&self, prefix: &StorePrefix, after: &str) -> usize {
        let is_before = |entry: &Entry| entry.key.as_str() < prefix.as_str() || entry.key.as_str() <= after;
        self.entries.partition_point(is_before)
    }

    /// The entry at a place of the listing of a prefix; `None` at its end.
    pub(super) fn listed(&self, at: usize, prefix: &StorePrefix) -> Option<ListEntry> {
        let entry = self.entries.get(at).filter(|entry| entry.key.as_str().starts_with(prefix.as_str()))?;
        Some(ListEntry { key: entry.key.clone(), info: self.info(entry) })
    }

    /// The key or prefix directly under a prefix that the entry at a place stands for; goes on to the place behind all
    /// that it stands for.
    pub(super) fn next_under(&self, prefix: &StorePrefix, at: &mut usize) -> Option<DirEntry> {
        let entry = self.listed(*at, prefix)?;
        let below = entry.key.as_str().strip_prefix(prefix.as_str()).unwrap_or_default();
        let Some(inner) = below.split_once('/').and_then(|(name, _)| prefix.join(name).ok()) else {
            *at += 1;
            return Some(DirEntry::Key(entry));
        };
        let rest = self.entries.get(*at..).unwrap_or_default();
        *at += rest.partition_point(|entry| entry.key.as_str().starts_with(inner.as_str()));
        Some(DirEntry::Prefix(inner))
    }
}

/// A name as a key, if it can be one.
fn key(name: &[u8]) -> Option<StoreKey> {
    let text = std::str::from_utf8(name).ok().filter(|text| !text.contains('\\'))?;
    StoreKey::parse(text).ok()
}
