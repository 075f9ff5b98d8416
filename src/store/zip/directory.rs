//! [`Directory`]: the entries of one version of a zip file, in the order of their keys.
//!
//! It is held as it is stored, with two lists of the offsets of its records: one in the order of keys, one in the order
//! of the entries in the file. A record is parsed again each time it is needed, which takes less time than finding it.
//! So an entry takes its record and twelve bytes of memory, all of it within a budget ([`crate::store::ContainerBudget`]).
//!
//! Keys are the names as they are written. An entry has no key if its name cannot be one: directories (`a/`), `..`,
//! absolute names, names with a backslash (some programs take it for a slash), names that are not UTF-8. Of several
//! entries with one name, the last in the central directory counts: that is how a value is replaced in a zip file.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;

use super::ZipError;
use super::record::{Central, End, central};
use crate::key::{StoreKey, StorePrefix};
use crate::store::container::ContainerReservation;
use crate::store::{DirEntry, ListEntry, ValueInfo};

/// The most bytes of a deflated entry: a read of a part of it decodes all of it.
const MAX_DEFLATED_BYTES: u64 = 64 << 20;
/// The overhead of an entry beside its record, in bytes: its offsets in two lists, and the length of its local header.
const ENTRY_BYTES: u64 = 12;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The entries of one version of a zip file.
#[derive(Debug)]
pub(super) struct Directory {
    /// Version, size and time of the file.
    pub(super) file: ValueInfo,
    /// The central directory as it is stored.
    bytes: Bytes,
    end: End,
    /// The offsets of the records with a key, in the order of the keys.
    by_key: Box<[u32]>,
    /// The offsets of all records, in the order of their entries in the file.
    by_offset: Box<[u32]>,
    /// The length of the local header of each key, in bytes; 0 until it has been read.
    local: Box<[AtomicU32]>,
    _reserved: ContainerReservation,
}

/// An entry that has a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZipEntry<'a> {
    pub(super) key: &'a str,
    /// Its index among the keys.
    place: usize,
    /// The offset of its local header in the file.
    pub(super) offset: u64,
    /// The offset of the next entry or of the central directory: its bytes end before that.
    pub(super) end: u64,
    /// Its compressed size, in bytes.
    pub(super) compressed: u64,
    /// The size of the value, in bytes.
    pub(super) size: u64,
    /// CRC-32 of the value.
    pub(super) crc: u32,
    pub(super) method: u16,
    encrypted: bool,
}

/// How an entry's bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// As they are.
    Stored,
    /// Deflated (RFC 1951).
    Deflated,
}

impl ZipEntry<'_> {
    /// How the bytes are stored; an error if they cannot be read.
    pub(super) fn storage(&self) -> Result<Storage, ZipError> {
        if self.encrypted {
            return Err(ZipError::Feature("encrypted entries"));
        }
        match self.method {
            STORED if self.compressed != self.size => {
                Err(ZipError::Broken("a stored entry has two different sizes"))
            }
            STORED => Ok(Storage::Stored),
            DEFLATED if self.compressed == 0 => Err(ZipError::Broken("a deflated entry has no bytes")),
            DEFLATED => {
                let (size, limit) = (self.size.max(self.compressed), MAX_DEFLATED_BYTES);
                let what = "deflated entry, in bytes,";
                if size > limit {
                    Err(ZipError::TooLarge { what, size, limit })
                } else {
                    Ok(Storage::Deflated)
                }
            }
            method => Err(ZipError::Method(method)),
        }
    }
}

impl Directory {
    /// Parses the central directory in `bytes`. Its own memory beside them is added to `reserved`.
    pub(super) fn parse(
        bytes: Bytes,
        end: End,
        file: ValueInfo,
        mut reserved: ContainerReservation,
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
            // The count of the records has checked that all offsets fit.
            let at = u32::try_from(bytes.len() - rest.len()).unwrap_or(u32::MAX);
            let (record, behind) = central(rest)?;
            rest = behind;
            by_offset.push(at);
            if is_key(record.name) {
                by_key.push(at);
            }
        }
        by_offset.sort_unstable_by_key(|&at| record(&bytes, at).map(|record| record.offset));
        // Of several records with one key, the last of the file comes first, and stays. Most files have long runs in the
        // order of keys, which the stable sort takes as they are: it parses a tenth of the records for those.
        by_key.sort_by(|&one, &two| {
            name(&bytes, one).cmp(name(&bytes, two)).then(Reverse(one).cmp(&Reverse(two)))
        });
        by_key.dedup_by(|later, first| name(&bytes, *later) == name(&bytes, *first));
        let local = by_key.iter().map(|_| AtomicU32::new(0)).collect();
        let (by_key, by_offset) = (by_key.into_boxed_slice(), by_offset.into_boxed_slice());
        Ok(Self { file, bytes, end, by_key, by_offset, local, _reserved: reserved })
    }

    /// The entry of a key.
    pub(super) fn find(&self, key: &StoreKey) -> Option<ZipEntry<'_>> {
        let wanted = key.as_str().as_bytes();
        let place = self.by_key.binary_search_by(|&at| name(&self.bytes, at).cmp(wanted)).ok()?;
        self.entry(place)
    }

    /// Size, version and time of an entry. The version is the file's with the entry's offset; the time is the file's.
    pub(super) fn info(&self, entry: &ZipEntry<'_>) -> ValueInfo {
        let version = self.file.version.for_part(&format!("{:x}", entry.offset));
        ValueInfo { size: entry.size, version, modified: self.file.modified }
    }

    /// The offset of an entry's bytes in the file, if its local header has been read.
    pub(super) fn data(&self, entry: &ZipEntry<'_>) -> Option<u64> {
        match self.local.get(entry.place)?.load(Ordering::Relaxed) {
            0 => None,
            length => entry.offset.checked_add(length.into()),
        }
    }

    /// Stores the length of an entry's local header.
    pub(super) fn cache_header_length(&self, entry: &ZipEntry<'_>, length: u64) {
        if let (Some(local), Ok(length)) = (self.local.get(entry.place), u32::try_from(length)) {
            local.store(length, Ordering::Relaxed);
        }
    }

    /// The index at which the listing of a prefix begins: its first entry after a text.
    pub(super) fn begin(&self, prefix: &StorePrefix, after: &str) -> usize {
        let (prefix, after) = (prefix.as_str().as_bytes(), after.as_bytes());
        self.by_key.partition_point(|&at| {
            let name = name(&self.bytes, at);
            name < prefix || name <= after
        })
    }

    /// The entry at an index in the listing of a prefix; `None` at its end.
    pub(super) fn listed(&self, at: usize, prefix: &StorePrefix) -> Option<ListEntry> {
        let entry = self.entry(at).filter(|entry| entry.key.starts_with(prefix.as_str()))?;
        Some(ListEntry { key: StoreKey::parse(entry.key).ok()?, info: self.info(&entry) })
    }

    /// The key or prefix directly under a prefix to which the entry at `at` belongs. Advances `at` past all entries of
    /// it.
    pub(super) fn next_under(&self, prefix: &StorePrefix, at: &mut usize) -> Option<DirEntry> {
        let key = std::str::from_utf8(name(&self.bytes, *self.by_key.get(*at)?)).ok()?;
        let below = key.strip_prefix(prefix.as_str())?;
        let Some(inner) = below.split_once('/').and_then(|(name, _)| prefix.join(name).ok()) else {
            let entry = self.listed(*at, prefix)?;
            *at += 1;
            return Some(DirEntry::Key(entry));
        };
        *at += self.count_under(&inner, *at);
        Some(DirEntry::Prefix(inner))
    }

    /// The number of entries of a prefix from the index of its first one. Steps double in length, because most prefixes
    /// have few entries: a search among all that follow would parse a dozen records for each.
    fn count_under(&self, prefix: &StorePrefix, from: usize) -> usize {
        let rest = self.by_key.get(from..).unwrap_or_default();
        let is_under = |&at: &u32| name(&self.bytes, at).starts_with(prefix.as_str().as_bytes());
        let mut bound = 1;
        while rest.get(bound).is_some_and(is_under) {
            bound *= 2;
        }
        let (within, _) = rest.split_at(bound.min(rest.len()));
        within.partition_point(is_under)
    }

    /// The entry at an index among the keys.
    fn entry(&self, place: usize) -> Option<ZipEntry<'_>> {
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
        Some(ZipEntry { key, place, offset, end, compressed, size, crc, method, encrypted })
    }
}

/// Counts the records of a central directory, and checks that each can be parsed.
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

/// The record at an offset.
fn record(bytes: &[u8], at: u32) -> Option<Central<'_>> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    central(rest).ok().map(|(record, _)| record)
}

/// The name in the record at an offset.
fn name(bytes: &[u8], at: u32) -> &[u8] {
    record(bytes, at).map(|record| record.name).unwrap_or_default()
}

/// Whether a name can be a key.
fn is_key(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|text| !text.contains('\\') && StoreKey::parse(text).is_ok())
}
