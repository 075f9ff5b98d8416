//! [`Engine`]: the segments of the disk cache, the index of what is in them, and reads of it.
//!
//! Reads may come from any thread; the one [`DiskWriter`](super::writer::DiskWriter) alone changes files. Whatever fails here is a miss:
//! the caller reads from the backend.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::ghost::Ghost;
use super::index::{CachedPart, Index, PART_BYTES, RecordPlace};
use super::options::DiskCacheOptions;
use super::record::{MAX_HEAD, Record, RecordKind};
use super::scope_names::stored_scope;
use super::segment::{Segment, Wait};
use crate::cache::caches::is_key_below;
use crate::cache::generation::GenerationCounter;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{ByteRange, ValueInfo, Version};

/// The size of the cache divided by this is the size of a segment, between the bounds below.
const SEGMENTS: u64 = 256;
const SEGMENT_SIZES: std::ops::RangeInclusive<u64> = 512 << 10..=2 << 30;
/// The memory for the index divided by this is for the table of misses.
const GHOST_SHARE: u64 = 8;

/// The name of a value: its store, and its key there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValueName {
    pub(super) scope: Arc<str>,
    pub(super) key: StoreKey,
}

/// A purge: of all keys of a scope below a prefix that were written before this place.
#[derive(Clone, Debug)]
pub(super) struct Purge {
    pub(super) scope: Box<str>,
    pub(super) prefix: StorePrefix,
    pub(super) at: (u64, u32),
}

/// A segment, and the hashes of the names of the values that it has parts of.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) segment: Arc<Segment>,
    pub(super) names: Vec<u64>,
}

/// What changes while the cache is used.
#[derive(Debug)]
pub(super) struct State {
    pub(super) index: Index,
    pub(super) ghost: Ghost,
    /// By their numbers, and so in the order in which they were written.
    pub(super) segments: BTreeMap<u64, Known>,
    pub(super) purges: Vec<Purge>,
    /// Prefixes of scopes below which everything is admitted, each with a number.
    admitted: Vec<(u64, Arc<str>, StorePrefix)>,
    /// Whether what is written evicts something.
    pub(super) is_full: bool,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub(super) struct EngineCounts {
    pub(super) evictions: AtomicU64,
    /// Parts that were not written because they came too fast or the disk failed.
    pub(super) dropped: AtomicU64,
    pub(super) written_bytes: AtomicU64,
    /// Records that were not as they were written.
    pub(super) damaged: AtomicU64,
    /// Reads and writes of files that failed.
    pub(super) failures: AtomicU64,
}

/// Why a read returns nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Not all of it is there as it was written.
    Missing,
    /// The disk has to be read, and the caller may not wait for it.
    WouldBlock,
}

/// The disk cache without its queue.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) directory: PathBuf,
    pub(super) size: u64,
    pub(super) segment_size: u64,
    pub(super) max_parts: usize,
    pub(super) counts: EngineCounts,
    /// Advanced by each purge, before it is written.
    pub(super) generation: GenerationCounter,
    /// Whether nothing is written for now, because the disk failed.
    pub(super) is_paused: AtomicBool,
    /// The lock of the directory, while it is held.
    pub(super) lock: Mutex<Option<File>>,
    state: Mutex<State>,
    names: RandomState,
    versions: RandomState,
    has_warned: AtomicBool,
}

impl Engine {
    pub(super) fn new(directory: PathBuf, options: &DiskCacheOptions) -> Self {
        let ghost_bytes = options.index_size / GHOST_SHARE;
        let max_parts =
            usize::try_from((options.index_size - ghost_bytes) / PART_BYTES).unwrap_or(usize::MAX);
        let state = State {
            index: Index::default(),
            ghost: Ghost::new(ghost_bytes),
            segments: BTreeMap::new(),
            purges: Vec::new(),
            admitted: Vec::new(),
            is_full: false,
        };
        Self {
            directory,
            size: options.size,
            segment_size: (options.size / SEGMENTS).clamp(*SEGMENT_SIZES.start(), *SEGMENT_SIZES.end()),
            max_parts,
            counts: EngineCounts::default(),
            generation: GenerationCounter::default(),
            is_paused: AtomicBool::new(false),
            lock: Mutex::new(None),
            state: Mutex::new(state),
            names: RandomState::new(),
            versions: RandomState::new(),
            has_warned: AtomicBool::new(false),
        }
    }

    /// No code panics while it holds the lock, and none does I/O.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hash of a name.
    pub(super) fn name_hash(&self, scope: &str, key: &str) -> u64 {
        self.names.hash_one((scope, key))
    }

    /// The hash of a version of a value.
    pub(super) fn version_hash(&self, scope: &str, key: &str, tag: &str) -> u64 {
        self.versions.hash_one((scope, key, tag))
    }

    /// The size of a value, and what a range is in it, if all of that is in the cache, of this version if one is given.
    pub(super) fn covers(
        &self,
        name: &ValueName,
        version: Option<&Version>,
        range: ByteRange,
    ) -> Option<(u64, Range<u64>)> {
        let (scope, key) = (&*name.scope, name.key.as_str());
        let version = version.map(|version| self.version_hash(scope, key, version.tag()));
        let State { index, purges, .. } = &*self.state();
        let is_live = |location| is_live(purges, scope, &name.key, location);
        index.covers(self.name_hash(scope, key), version, range, is_live)
    }

    /// The parts that have all of a range of a value, of this version if one is given, for [`Engine::read`]. They count as read.
    pub(super) fn covering(
        &self,
        name: &ValueName,
        version: Option<&Version>,
        range: &Range<u64>,
    ) -> Option<Vec<CachedPart>> {
        let (scope, key) = (&*name.scope, name.key.as_str());
        let version = version.map(|version| self.version_hash(scope, key, version.tag()));
        let State { index, purges, .. } = &mut *self.state();
        let is_live = |location| is_live(purges, scope, &name.key, location);
        index.covering(self.name_hash(scope, key), version, range, is_live)
    }

    /// The bytes of a range of a value, of this version if one is given, and size, version and time of the value.
    pub(super) fn read(
        &self,
        (name, version): (&ValueName, Option<&Version>),
        range: &Range<u64>,
        parts: &[CachedPart],
        wait: Wait,
    ) -> Result<(ValueInfo, Bytes), Unread> {
        let length = usize::try_from(range.end - range.start).map_err(|_too_long| Unread::Missing)?;
        let (mut bytes, mut info, mut at) = (Vec::new(), None::<ValueInfo>, range.start);
        // All parts are read into the same memory: what was just used is in the processor's cache.
        let mut buffer = Vec::new();
        for part in parts {
            let version = info.as_ref().map(|info| &info.version).or(version);
            let (record, data) = self.read_part(name, version, part, &mut buffer, wait)?;
            let info = info.insert(info_of(&record));
            let end = part.end.min(range.end);
            let wanted = part_of(&data, (at, end), part.start).ok_or(Unread::Missing)?;
            // A slice holds the whole record in memory: little more than what it has.
            if wanted.len() == length && length >= buffer.len() / 4 * 3 {
                return Ok((info.clone(), Bytes::from(buffer).slice(wanted)));
            }
            bytes.reserve_exact(length.saturating_sub(bytes.len()));
            bytes.extend_from_slice(buffer.get(wanted).ok_or(Unread::Missing)?);
            at = end;
        }
        Ok((info.ok_or(Unread::Missing)?, bytes.into()))
    }

    /// Size, version and time of a value, as a record has them: any of those with the first byte of a range.
    pub(super) fn info(&self, name: &ValueName, at: u64, wait: Wait) -> Result<ValueInfo, Unread> {
        let (scope, key) = (&*name.scope, name.key.as_str());
        let part = {
            let State { index, purges, .. } = &*self.state();
            index.part(self.name_hash(scope, key), at, |location| is_live(purges, scope, &name.key, location))
        };
        let part = part.ok_or(Unread::Missing)?;
        // The head has a checksum of its own.
        let length = (part.location.length as usize).min(MAX_HEAD);
        let buffer = &mut Vec::new();
        let record = self.read_record(name, &part, (length, buffer), wait, |record, _, _| Some(record))?;
        is_of(&record, name, None, &part).then(|| info_of(&record)).ok_or(Unread::Missing)
    }

    /// Whether a part of a value that was read from the backend is worth writing.
    pub(super) fn admits(&self, name: &ValueName, version: &Version, start: u64, end: u64) -> bool {
        let (scope, key) = (&*name.scope, name.key.as_str());
        let hash = self.name_hash(scope, key);
        let version = self.version_hash(scope, key, version.tag());
        let State { index, ghost, purges, admitted, is_full, .. } = &mut *self.state();
        let is_live = |location| is_live(purges, scope, &name.key, location);
        if index.covers(hash, Some(version), ByteRange::Bounded(start, end), is_live).is_some() {
            return false;
        }
        let is_admitted = |(_, owner, prefix): &(u64, Arc<str>, StorePrefix)| {
            **owner == *stored_scope(scope) && is_key_below(&name.key, prefix)
        };
        !*is_full || admitted.iter().any(is_admitted) || ghost.record_miss(self.names.hash_one((hash, start)))
    }

    /// Reads a record into a buffer, and returns it and where the bytes of the value are in the buffer. One that is not of this value
    /// and version is missing, and so is one that is not as it was written, which is not requested again.
    fn read_part(
        &self,
        name: &ValueName,
        version: Option<&Version>,
        part: &CachedPart,
        buffer: &mut Vec<u8>,
        wait: Wait,
    ) -> Result<(Record, Range<usize>), Unread> {
        let length = part.location.length as usize;
        let (record, data) =
            self.read_record(name, part, (length, buffer), wait, |record, bytes, nonce| {
                let from = record.head_length();
                let data = from..from + record.verified(bytes, nonce)?.len();
                Some((record, data))
            })?;
        is_of(&record, name, version, part).then_some((record, data)).ok_or(Unread::Missing)
    }

    /// Reads the first bytes of a record into a buffer, and returns what `checked` makes of its head and them.
    fn read_record<T>(
        &self,
        name: &ValueName,
        part: &CachedPart,
        (length, buffer): (usize, &mut Vec<u8>),
        wait: Wait,
        checked: impl FnOnce(Record, &[u8], u64) -> Option<T>,
    ) -> Result<T, Unread> {
        let RecordPlace { segment, offset, .. } = part.location;
        let segment = self.state().segments.get(&segment).map(|known| Arc::clone(&known.segment));
        let segment = segment.ok_or(Unread::Missing)?;
        if wait == Wait::Never && !segment.is_nonblocking() {
            return Err(Unread::WouldBlock);
        }
        buffer.resize(length, 0);
        match segment.read_into(offset.into(), buffer, wait) {
            Ok(()) => {}
            Err(error) if wait == Wait::Never && error.kind() == io::ErrorKind::WouldBlock => {
                return Err(Unread::WouldBlock);
            }
            Err(error) => {
                self.read_failed(&error);
                self.remove(name, part.location);
                return Err(Unread::Missing);
            }
        }
        let nonce = segment.nonce();
        let found =
            Record::decode(buffer, nonce, offset.into()).and_then(|record| checked(record, buffer, nonce));
        if found.is_none() {
            self.counts.damaged.fetch_add(1, Ordering::Relaxed);
            self.warn_once("a record of the disk cache is damaged: it is read from the backend again");
            self.remove(name, part.location);
        }
        found.ok_or(Unread::Missing)
    }

    /// Removes the part of a value that is at a place.
    fn remove(&self, name: &ValueName, location: RecordPlace) {
        let hash = self.name_hash(&name.scope, name.key.as_str());
        self.state().index.take(hash, |found| found == location);
    }

    fn read_failed(&self, error: &io::Error) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                error = %error,
                path = %self.directory.display(),
                "the disk cache cannot be read: what it has is read from the backend"
            );
        }
    }

    fn warn_once(&self, message: &'static str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(path = %self.directory.display(), "{message}");
        }
    }

    /// Admits everything below a prefix until [`Engine::end_admission`] is called with the number that this returns.
    pub(super) fn begin_admission(&self, scope: &Arc<str>, prefix: &StorePrefix) -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        self.state().admitted.push((number, Arc::clone(scope), prefix.clone()));
        number
    }

    pub(super) fn end_admission(&self, number: u64) {
        self.state().admitted.retain(|(known, _, _)| *known != number);
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.state().bytes()
    }
}

impl State {
    /// The place behind everything that is written; `None` if nothing is.
    pub(super) fn end(&self) -> Option<(u64, u32)> {
        let (number, known) = self.segments.last_key_value()?;
        Some((*number, u32::try_from(known.segment.length()).unwrap_or(u32::MAX)))
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.values().map(|known| known.segment.length()).sum()
    }

    /// Adds the part of a value that a record has.
    pub(super) fn insert(&mut self, hashes: (u64, u64), record: &Record, location: RecordPlace) {
        let (name, version) = hashes;
        let end = record.start.saturating_add(record.data_length as u64);
        let part = CachedPart { start: record.start, end, location, reads: 0 };
        self.index.insert(name, version, record.size, part);
        if let Some(known) = self.segments.get_mut(&location.segment) {
            known.names.push(name);
        }
    }

    /// Removes the oldest segment but the newest one, with its parts, and returns it with those that were read. The purges that
    /// are about them stay until [`State::drop_purges`].
    pub(super) fn take_oldest(&mut self, counts: &EngineCounts) -> Option<(Arc<Segment>, Vec<CachedPart>)> {
        if self.segments.len() < 2 {
            return None;
        }
        let (number, Known { segment, mut names }) = self.segments.pop_first()?;
        names.sort_unstable();
        names.dedup();
        let mut used = Vec::new();
        let mut evicted = 0;
        for name in names {
            for (_, _, part) in self.index.take(name, |location| location.segment == number) {
                evicted += 1;
                if part.reads > 0 {
                    used.push(part);
                }
            }
        }
        counts.evictions.fetch_add(evicted, Ordering::Relaxed);
        Some((segment, used))
    }

    /// Removes the purges that are about nothing any more: that went with the oldest segments.
    pub(super) fn drop_purges(&mut self) {
        let oldest = self.segments.keys().next().copied().unwrap_or(u64::MAX);
        self.purges.retain(|purge| purge.at.0 >= oldest);
    }
}

/// Size, version and time of the value that a record has a part of.
fn info_of(record: &Record) -> ValueInfo {
    ValueInfo { size: record.size, version: Version::strong(&record.tag), modified: record.modified }
}

/// Where the bytes of a value from `start` to `end` are in a buffer that has those from `first` on in `data`; `None` if it has not all.
fn part_of(data: &Range<usize>, (start, end): (u64, u64), first: u64) -> Option<Range<usize>> {
    let from = data.start.checked_add(usize::try_from(start.checked_sub(first)?).ok()?)?;
    let to = from.checked_add(usize::try_from(end.checked_sub(start)?).ok()?)?;
    (to <= data.end).then_some(from..to)
}

/// Whether a record is that part of a value: two names may have one hash.
fn is_of(record: &Record, name: &ValueName, version: Option<&Version>, part: &CachedPart) -> bool {
    let end = record.start.checked_add(record.data_length as u64);
    record.kind == RecordKind::Value
        && *record.scope == *name.scope
        && *record.key == *name.key.as_str()
        && version.is_none_or(|version| *record.tag == *version.tag())
        && (record.start, end) == (part.start, Some(part.end))
}

/// Whether no purge is about a record. A purge of a mount's stored values is about what is derived of them too.
pub(super) fn is_live(purges: &[Purge], scope: &str, key: &StoreKey, location: RecordPlace) -> bool {
    let is_before = |purge: &Purge| (location.segment, location.offset) < purge.at;
    let scope = stored_scope(scope);
    !purges.iter().any(|purge| is_before(purge) && *purge.scope == *scope && is_key_below(key, &purge.prefix))
}
