//! [`ReferenceTable`]: all references of one version of a document, sorted by key.
//!
//! A reference takes 32 bytes and its key; a URL is held once for all references to it; bytes that are in the document
//! itself lie one after another. Everything is reserved from the budget before it is held.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;

use super::ReferenceError;
use super::error::shortened;
use crate::key::StoreKey;
use crate::store::container::{ContainerBudget, ContainerReservation};

/// The target of an entry whose bytes are in the document.
const INLINE: u32 = u32::MAX;
/// The length of an entry that is a complete file.
const WHOLE: u64 = u64::MAX;
/// The most references of a document.
const MAX_REFERENCES: usize = 1 << 26;
/// The longest URL, in bytes.
pub(super) const MAX_URL_BYTES: usize = 4096;
/// The longest part of a key in an error, in bytes.
const SHOWN_KEY_BYTES: usize = 80;
/// The steps in which the reservation grows, in bytes.
const STEP_BYTES: u64 = 64 << 10;

/// What a key leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// Bytes of the document.
    Inline(Bytes),
    /// A complete file, by its URL as the document has it.
    Whole(&'a str),
    /// A range of a file.
    Part {
        /// The URL of the file, as the document has it.
        url: &'a str,
        /// Where the range begins, in bytes.
        offset: u64,
        /// Its length in bytes.
        length: u64,
    },
}

/// The references of one document, sorted by key.
#[derive(Debug)]
pub struct ReferenceTable {
    /// The texts of all keys, in the order of the document.
    keys: String,
    urls: Vec<Box<str>>,
    inline: Bytes,
    entries: Vec<Entry>,
    /// Released with the table.
    _reserved: ContainerReservation,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    offset: u64,
    length: u64,
    key_start: u32,
    target: u32,
    key_bytes: u16,
}

impl Entry {
    fn key<'a>(&self, keys: &'a str) -> &'a str {
        let start = usize::try_from(self.key_start).unwrap_or(usize::MAX);
        keys.get(start..start.saturating_add(self.key_bytes.into())).unwrap_or_default()
    }
}

impl ReferenceTable {
    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The key at an index, in the order of the keys' bytes.
    #[must_use]
    pub fn key(&self, at: usize) -> Option<&str> {
        self.entries.get(at).map(|entry| entry.key(&self.keys))
    }

    /// The reference at an index.
    #[must_use]
    pub fn reference(&self, at: usize) -> Option<Reference<'_>> {
        let entry = self.entries.get(at)?;
        if entry.target == INLINE {
            let (start, length) = (usize::try_from(entry.offset).ok()?, usize::try_from(entry.length).ok()?);
            let end = start.checked_add(length).filter(|end| *end <= self.inline.len())?;
            return Some(Reference::Inline(self.inline.slice(start..end)));
        }
        let url = self.urls.get(usize::try_from(entry.target).ok()?)?;
        Some(match entry.length {
            WHOLE => Reference::Whole(url),
            length => Reference::Part { url, offset: entry.offset, length },
        })
    }

    /// The index of a key.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.key(&self.keys).cmp(key)).ok()
    }

    /// The index of the first key that is not before a text.
    pub(super) fn first_from(&self, text: &str) -> usize {
        self.entries.partition_point(|entry| entry.key(&self.keys) < text)
    }

    /// How many keys begin with a prefix.
    pub(super) fn count_below(&self, prefix: &str) -> usize {
        self.first_behind(prefix).saturating_sub(self.first_from(prefix))
    }

    /// The index of the first key after all those that begin with a prefix, which ends in `/`.
    pub(super) fn first_behind(&self, prefix: &str) -> usize {
        let begins_before = |entry: &Entry| {
            let key = entry.key(&self.keys);
            key.starts_with(prefix) || key < prefix
        };
        self.entries.partition_point(begins_before)
    }
}

/// Builds a table, entry by entry.
#[derive(Debug)]
pub(super) struct TableBuilder {
    keys: String,
    urls: Vec<Box<str>>,
    url_bytes: usize,
    /// The index of the URL with each hash.
    url_indexes: HashMap<u64, u32>,
    hasher: RandomState,
    inline: Vec<u8>,
    entries: Vec<Entry>,
    reserved: ContainerReservation,
    /// What is reserved beside the table: the document itself.
    beside: u64,
}

impl TableBuilder {
    /// An empty table, which is built while a document of this many bytes is held.
    ///
    /// # Errors
    /// [`ReferenceError::OverBudget`].
    pub(super) fn new(budget: &ContainerBudget, document_bytes: u64) -> Result<Self, ReferenceError> {
        let mut reserved = budget.empty();
        reserved.resize(document_bytes)?;
        Ok(Self {
            keys: String::new(),
            urls: Vec::new(),
            url_bytes: 0,
            url_indexes: HashMap::new(),
            hasher: RandomState::new(),
            inline: Vec::new(),
            entries: Vec::new(),
            reserved,
            beside: document_bytes,
        })
    }

    /// Adds a key that leads to bytes.
    pub(super) fn push_inline(&mut self, key: &str, bytes: &[u8]) -> Result<(), ReferenceError> {
        self.reserve(key.len().saturating_add(bytes.len()))?;
        let (offset, length) = (self.inline.len() as u64, bytes.len() as u64);
        self.inline.extend_from_slice(bytes);
        self.push(key, INLINE, offset, length)
    }

    /// Adds a key that leads to a file, or to a range of it: offset and length.
    pub(super) fn push_url(
        &mut self,
        key: &str,
        url: &str,
        range: Option<(u64, u64)>,
    ) -> Result<(), ReferenceError> {
        if url.len() > MAX_URL_BYTES {
            return Err(fault(key, "a URL is longer than 4096 bytes"));
        }
        let (offset, length) = range.unwrap_or((0, WHOLE));
        if range.is_some() && offset.checked_add(length).is_none_or(|end| end > i64::MAX.unsigned_abs()) {
            return Err(fault(key, "a range ends after the longest file"));
        }
        self.reserve(key.len().saturating_add(url.len()))?;
        let target = self.target(url)?;
        self.push(key, target, offset, length)
    }

    /// The index of a URL.
    fn target(&mut self, url: &str) -> Result<u32, ReferenceError> {
        let last = self.urls.len().checked_sub(1);
        if last.and_then(|last| self.urls.get(last)).is_some_and(|known| &**known == url) {
            return Ok(last.and_then(|last| u32::try_from(last).ok()).unwrap_or(INLINE));
        }
        let hash = self.hasher.hash_one(url);
        let at = |index: u32| usize::try_from(index).ok().and_then(|index| self.urls.get(index));
        if let Some(index) = self.url_indexes.get(&hash)
            && at(*index).is_some_and(|known| &**known == url)
        {
            return Ok(*index);
        }
        let index = u32::try_from(self.urls.len()).unwrap_or(INLINE);
        if index == INLINE {
            return Err(ReferenceError::Document("it has too many URLs"));
        }
        self.url_bytes += url.len();
        self.urls.push(url.into());
        self.url_indexes.insert(hash, index);
        Ok(index)
    }

    fn push(&mut self, key: &str, target: u32, offset: u64, length: u64) -> Result<(), ReferenceError> {
        // VirtualiZarr gives the chunk of an array without dimensions no name.
        let named = key.strip_suffix('/').map(|array| format!("{array}/0"));
        let key = named.as_deref().unwrap_or(key);
        if StoreKey::parse(key).is_err() {
            return Err(fault(key, "its key is not one of a store"));
        }
        let places = u32::try_from(self.keys.len()).ok().zip(u16::try_from(key.len()).ok());
        let (Some((key_start, key_bytes)), true) = (places, self.entries.len() < MAX_REFERENCES) else {
            return Err(ReferenceError::Document("it has too many references"));
        };
        self.keys.push_str(key);
        self.entries.push(Entry { offset, length, key_start, target, key_bytes });
        Ok(())
    }

    /// Charges bytes of memory that are held beside the table.
    pub(super) fn hold(&mut self, bytes: u64) -> Result<(), ReferenceError> {
        self.beside = self.beside.saturating_add(bytes);
        self.reserve(0)
    }

    /// Charges for bytes that [`TableBuilder::hold`] charged no longer.
    pub(super) fn release(&mut self, bytes: u64) {
        self.beside = self.beside.saturating_sub(bytes);
    }

    /// Reserves memory for what is there and for as many bytes more, before they are added.
    fn reserve(&mut self, more: usize) -> Result<(), ReferenceError> {
        // Vectors double.
        let grown = |length: usize, capacity: usize, more: usize| {
            if length.saturating_add(more) > capacity {
                capacity.saturating_mul(2).max(length + more)
            } else {
                capacity
            }
        };
        let entry = size_of::<Entry>();
        let needed = grown(self.keys.len(), self.keys.capacity(), more)
            .saturating_add(grown(self.inline.len(), self.inline.capacity(), more))
            .saturating_add(grown(self.entries.len(), self.entries.capacity(), 1).saturating_mul(entry))
            .saturating_add(grown(self.urls.len(), self.urls.capacity(), 1).saturating_mul(16))
            // With what an allocation takes, and what a table of hashes does.
            .saturating_add(self.url_bytes.saturating_add(self.urls.len().saturating_mul(48)));
        let needed = self.beside.saturating_add(needed as u64);
        if needed > self.reserved.bytes() {
            self.reserved.resize(needed.saturating_add(STEP_BYTES).min(needed.saturating_mul(2)))?;
        }
        Ok(())
    }

    /// The table. Of two entries with one key, the later one counts, as in every reader of JSON.
    pub(super) fn finish(mut self) -> Result<ReferenceTable, ReferenceError> {
        let keys = &self.keys;
        // Later entries first, so that `dedup` keeps them.
        self.entries.sort_unstable_by(|one, two| {
            one.key(keys).cmp(two.key(keys)).then(two.key_start.cmp(&one.key_start))
        });
        self.entries.dedup_by(|later, kept| later.key(keys) == kept.key(keys));
        self.entries.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.inline.shrink_to_fit();
        self.urls.shrink_to_fit();
        let held = self.entries.len() * size_of::<Entry>()
            + self.keys.len()
            + self.inline.len()
            + self.url_bytes
            + self.urls.len() * 32
            + size_of::<ReferenceTable>();
        self.reserved.resize(held as u64)?;
        Ok(ReferenceTable {
            keys: self.keys,
            urls: self.urls,
            inline: self.inline.into(),
            entries: self.entries,
            _reserved: self.reserved,
        })
    }
}

/// The error for an entry.
pub(super) fn fault(key: &str, fault: &'static str) -> ReferenceError {
    ReferenceError::Entry { key: shortened(key, SHOWN_KEY_BYTES), fault }
}
