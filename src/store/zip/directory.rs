//! [`Directory`]: the entries of one version of a zip file, in the order of their keys.
//!
//! It is held as it is stored, with two lists of where its records begin: one in the order of keys, one in the order in which
//! the entries lie in the file. A record is parsed again each time that it is needed, which takes less time than to find it,
//! so that an entry takes its record and twelve bytes of memory, and all of that is in a budget ([`super::ZipBudget`]).
//!
//! Keys are the names as they are written. An entry is no key if its name cannot be one: directories (`a/`), `..`,
//! absolute names, names with a backslash (some programs take it for a slash), names that are not UTF-8. Of entries
//! of one name the last in the central directory counts: that is how a value is replaced in a zip file.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;

use super::ZipError;
use super::budget::Reserved;
use super::record::{Central, End, central};
use crate::key::{StoreKey, StorePrefix};
use crate::store::{DirEntry, ListEntry, ValueInfo};

/// Most bytes of a deflated entry: a read of a part of it decodes all of it.
const MAX_DEFLATED_BYTES: u64 = 64 << 20;
/// What an entry takes beside its record: its places in two lists, and the length of its local header.
const ENTRY_BYTES: u64 = 12;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The entries of one version of a zip file.
#[derive(Debug)]
pub(super) struct Directory {
    /// What the file is: its version, size and time.
    pub(super) file: ValueInfo,
    /// The central directory as it is stored.
    bytes: Bytes,
    end: End,
    /// Where the records of entries that have a key begin, in the order of the keys.
    by_key: Box<[u32]>,
    /// Where all records begin, in the order of their entries in the file.
    by_offset: Box<[u32]>,
    /// How long the local header of each key is, once it has been read; 0 before.
    local: Box<[AtomicU32]>,
    _reserved: Reserved,
}

/// An entry that has a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    /// Its place among the keys.
    place: usize,
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
}

/// How an entry's bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// As they are.
    Stored,
    /// Deflated (RFC 1951).
    Deflated,
}

impl Entry<'_> {
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
    /// The entries of a central directory, which is `bytes`. What it takes beside them is added to `reserved`.
    pub(super) fn parse(
        bytes: Bytes,
        end: End,
        file: ValueInfo,
        mut reserved: Reserved,
    ) -> Result<Self, ZipError> {
        let found = count(&bytes, &end)?;
        if found != end.entries && (end.exact || found & 0xffff != end.entries) {
            return Err(ZipError::Broken("its central directory has not as many entries as it says"));
        }
        reserved.grow(found.saturating_mul(ENTRY_BYTES))?;
        let found = usize::try_from(found).unwrap_or(usize::MAX);
        let (mut by_key, mut by_offset) = (Vec::with_capacity(found), Vec::with_capacity(found));
        let mut rest = &*bytes;
        while !rest.is_empty() {
            // All places were seen to fit when the records were counted.
            let at = u32::try_from(bytes.len() - rest.len()).unwrap_or(u32::MAX);
            let (record, behind) = central(rest)?;
            rest = behind;
            by_offset.push(at);
            if is_key(record.name) {
                by_key.push(at);
            }
        }
        by_offset.sort_unstable_by_key(|&at| record(&bytes, at).map(|record| record.offset));
        // Of one key, the last of the file comes first, and stays.
        by_key.sort_unstable_by(|&one, &two| {
            name(&bytes, one).cmp(name(&bytes, two)).then(Reverse(one).cmp(&Reverse(two)))
        });
        by_key.dedup_by(|later, first| name(&bytes, *later) == name(&bytes, *first));
        let local = by_key.iter().map(|_| AtomicU32::new(0)).collect();
        let (by_key, by_offset) = (by_key.into_boxed_slice(), by_offset.into_boxed_slice());
        Ok(Self { file, bytes, end, by_key, by_offset, local, _reserved: reserved })
    }

    /// The entry of a key.
    pub(super) fn find(&self, key: &StoreKey) -> Option<Entry<'_>> {
        let wanted = key.as_str().as_bytes();
        let place = self.by_key.binary_search_by(|&at| name(&self.bytes, at).cmp(wanted)).ok()?;
        self.entry(place)
    }

    /// What is known of an entry. Its version is the file's and its place there; the time is the file's.
    pub(super) fn info(&self, entry: &Entry<'_>) -> ValueInfo {
        let version = self.file.version.of_part(&format!("{:x}", entry.offset));
        ValueInfo { size: entry.size, version, modified: self.file.modified }
    }

    /// Where an entry's bytes begin in the file, if its local header has been read.
    pub(super) fn data(&self, entry: &Entry<'_>) -> Option<u64> {
        match self.local.get(entry.place)?.load(Ordering::Relaxed) {
            0 => None,
            length => entry.offset.checked_add(length.into()),
        }
    }

    /// Keeps how long an entry's local header is.
    pub(super) fn keep_header_length(&self, entry: &Entry<'_>, length: u64) {
        if let (Some(local), Ok(length)) = (self.local.get(entry.place), u32::try_from(length)) {
            local.store(length, Ordering::Relaxed);
        }
    }

    /// Where the listing of a prefix begins: its first entry after a text.
    pub(super) fn begin(&self, prefix: &StorePrefix, after: &str) -> usize {
        let (prefix, after) = (prefix.as_str().as_bytes(), after.as_bytes());
        self.by_key.partition_point(|&at| {
            let name = name(&self.bytes, at);
            name < prefix || name <= after
        })
    }

    /// The entry at a place of the listing of a prefix; `None` at its end.
    pub(super) fn listed(&self, at: usize, prefix: &StorePrefix) -> Option<ListEntry> {
        let entry = self.entry(at).filter(|entry| entry.key.starts_with(prefix.as_str()))?;
        Some(ListEntry { key: StoreKey::parse(entry.key).ok()?, info: self.info(&entry) })
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
        let rest = self.by_key.get(*at..).unwrap_or_default();
        *at += rest.partition_point(|&at| name(&self.bytes, at).starts_with(inner.as_str().as_bytes()));
        Some(DirEntry::Prefix(inner))
    }

    /// The entry at a place among the keys.
    fn entry(&self, place: usize) -> Option<Entry<'_>> {
        let Central { encrypted, method, crc, compressed, size, name, offset } =
            record(&self.bytes, *self.by_key.get(place)?)?;
        let key = std::str::from_utf8(name).ok()?;
        let next = self
            .by_offset
            .partition_point(|&at| record(&self.bytes, at).is_some_and(|record| record.offset <= offset));
        let next = self.by_offset.get(next).and_then(|&at| record(&self.bytes, at));
        let absolute = |offset: u64| offset.saturating_add(self.end.base);
        let start = self.end.directory.start;
        let end = next.map_or(start, |next| absolute(next.offset).min(start));
        let offset = absolute(offset);
        Some(Entry { key, place, offset, end, compressed, size, crc, method, encrypted })
    }
}

/// How many records a central directory has, all of which can be read.
fn count(bytes: &[u8], end: &End) -> Result<u64, ZipError> {
    if u32::try_from(bytes.len()).is_err() {
        let (what, limit) = ("central directory, in bytes,", u32::MAX.into());
        return Err(ZipError::TooLarge { what, size: bytes.len() as u64, limit });
    }
    let (mut found, mut rest) = (0, bytes);
    while !rest.is_empty() {
        let (record, behind) = central(rest)?;
        record.offset.checked_add(end.base).ok_or(ZipError::Broken("an entry lies outside the file"))?;
        (found, rest) = (found + 1, behind);
    }
    Ok(found)
}

/// The record that begins there.
fn record(bytes: &[u8], at: u32) -> Option<Central<'_>> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    central(rest).ok().map(|(record, _)| record)
}

/// The name in the record that begins there.
fn name(bytes: &[u8], at: u32) -> &[u8] {
    record(bytes, at).map(|record| record.name).unwrap_or_default()
}

/// Whether a name can be a key.
fn is_key(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|text| !text.contains('\\') && StoreKey::parse(text).is_ok())
}
