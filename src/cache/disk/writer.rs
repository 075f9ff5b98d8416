//! [`DiskWriter`]: the thread that writes the disk cache: appends records, evicts segments, and waits while the disk fails.
//!
//! Segments are evicted in the order in which they were written. What was read since it was written is written again, in place of
//! being evicted. A failure of the disk is logged once, and tried again after a while; until then nothing is written.

use std::cmp::Reverse;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::engine::{Engine, Known, Purge, State, ValueName, is_live};
use super::index::{CachedPart, RecordPlace};
use super::lock;
use super::lookups::{self, LookupSource, SavedLookup, to_wall_clock};
use super::record::{Record, RecordKind};
use super::scopes::MountScopes;
use super::segment::{Segment, Table};
use crate::cache::caches::is_key_below;
use crate::cache::generation::Generation;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{ByteRange, ValueInfo};

/// How long nothing is written after a failure.
const RETRY_INTERVAL: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 5000 });
/// How often lookups are written.
const SAVE_INTERVAL: Duration = Duration::from_secs(10);
/// The most purges that are kept apart. With more, everything is evicted.
const MAX_PURGES: usize = 256;

/// What the thread is asked for.
#[derive(Debug)]
pub(super) enum Message {
    /// To write a part of a value.
    Part(PendingPart),
    /// To purge everything of a scope below a prefix; responds once that is durable.
    Purge(Arc<str>, StorePrefix, SyncSender<bool>),
    /// To write the lookups of this source from now on.
    KeepLookups(Arc<dyn LookupSource>, Arc<MountScopes>),
    /// To respond once everything before this is written.
    #[cfg(test)]
    Flush(SyncSender<()>),
    /// To complete the segment that is written, release the directory, and end.
    Stop(SyncSender<()>),
}

/// A part of a value that is to be written.
#[derive(Debug)]
pub(super) struct PendingPart {
    pub(super) name: ValueName,
    pub(super) info: ValueInfo,
    pub(super) start: u64,
    pub(super) data: Bytes,
    /// When its read began.
    pub(super) since: Generation,
    /// Its share of the queue.
    pub(super) _permit: OwnedSemaphorePermit,
}

/// The segment that is written.
#[derive(Debug)]
struct Active {
    segment: Arc<Segment>,
    table: Table,
}

/// Writes what the queue gives.
#[derive(Debug)]
pub(super) struct DiskWriter {
    engine: Arc<Engine>,
    active: Option<Active>,
    next_number: u64,
    /// When writing is tried again.
    paused_until: Option<Instant>,
    nonces: RandomState,
    lookups: Option<KeptLookups>,
}

/// The source of lookups, and what of it was written.
#[derive(Debug)]
struct KeptLookups {
    source: Arc<dyn LookupSource>,
    scopes: Arc<MountScopes>,
    next_save: Instant,
    /// How many were written, and when the newest of them was sent.
    saved: (usize, Option<Instant>),
    /// Lookups from before any of these purges, of a scope below a prefix, are not written.
    purges: Vec<(Arc<str>, StorePrefix, Instant)>,
    /// The same of everything: when there were more purges than are kept apart.
    since: Option<Instant>,
}

impl KeptLookups {
    fn record_purge(&mut self, scope: &Arc<str>, prefix: &StorePrefix) {
        let now = Instant::now();
        self.saved = (0, None);
        if self.purges.len() >= MAX_PURGES {
            self.purges.clear();
            self.since = Some(now);
        }
        self.purges.push((Arc::clone(scope), prefix.clone(), now));
    }

    fn is_live(&self, scope: &str, key: &StoreKey, asked: Instant) -> bool {
        let is_purged = |(owner, prefix, since): &(Arc<str>, StorePrefix, Instant)| {
            asked <= *since && **owner == *scope && is_key_below(key, prefix)
        };
        self.since.is_none_or(|since| asked > since) && !self.purges.iter().any(is_purged)
    }
}

impl DiskWriter {
    /// A writer whose segments have numbers from this one on.
    pub(super) fn new(engine: Arc<Engine>, next_number: u64) -> Self {
        Self {
            engine,
            active: None,
            next_number,
            paused_until: None,
            nonces: RandomState::new(),
            lookups: None,
        }
    }

    /// Writes until the queue is closed.
    pub(super) fn run(mut self, queue: &Receiver<Message>) {
        if self.engine.is_paused.load(Ordering::Relaxed) {
            self.paused_until = Some(Instant::now() + RETRY_INTERVAL);
        }
        while let Some(message) = self.next(queue) {
            match message {
                Message::Part(part) => self.write(&part),
                Message::Purge(scope, prefix, done) => {
                    let is_durable = self.remove_lookups(&scope, &prefix) & self.purge(&scope, &prefix);
                    let _ = done.send(is_durable);
                }
                Message::KeepLookups(source, scopes) => {
                    let next_save = Instant::now() + SAVE_INTERVAL;
                    let kept = KeptLookups {
                        source,
                        scopes,
                        next_save,
                        saved: (0, None),
                        purges: Vec::new(),
                        since: None,
                    };
                    self.lookups = Some(kept);
                }
                #[cfg(test)]
                Message::Flush(done) => {
                    let _ = done.send(());
                }
                Message::Stop(done) => {
                    self.stop();
                    let _ = done.send(());
                    return;
                }
            }
        }
        self.stop();
    }

    /// The next message; `None` once the queue is closed. Lookups are written in the meantime.
    fn next(&mut self, queue: &Receiver<Message>) -> Option<Message> {
        loop {
            let Some(kept) = &self.lookups else { return queue.recv().ok() };
            let left = kept.next_save.saturating_duration_since(Instant::now());
            match queue.recv_timeout(left) {
                Ok(message) if !left.is_zero() => return Some(message),
                Ok(message) => {
                    self.save_lookups();
                    return Some(message);
                }
                Err(RecvTimeoutError::Timeout) => self.save_lookups(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Writes the lookups, if there are others than before.
    fn save_lookups(&mut self) {
        let is_locked = self.renew_lock().is_ok();
        let Some(kept) = &mut self.lookups else { return };
        kept.next_save = Instant::now() + SAVE_INTERVAL;
        let lookups = kept.source.lookups();
        let newest = lookups.iter().map(|(.., asked)| *asked).max();
        if (lookups.len(), newest) == kept.saved || self.paused_until.is_some() || !is_locked {
            return;
        }
        let saving = (lookups.len(), newest);
        let saved = lookups.into_iter().filter_map(|(mount, key, info, asked)| {
            let scope = kept.scopes.stored(&mount).filter(|scope| kept.is_live(scope, &key, asked))?;
            Some(SavedLookup { scope: (&*scope).into(), key, info, asked: to_wall_clock(asked)? })
        });
        match lookups::save(&self.engine.directory, self.engine.size, saved) {
            Ok(()) => kept.saved = saving,
            Err(_) => drop(self.engine.counts.failures.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Removes the lookups that were written. Returns whether that holds after a crash.
    fn remove_lookups(&mut self, scope: &Arc<str>, prefix: &StorePrefix) -> bool {
        if let Some(kept) = &mut self.lookups {
            kept.record_purge(scope, prefix);
        }
        lookups::remove(&self.engine.directory).is_ok()
    }

    /// Completes the segment that is written, which makes the next start faster, and releases the directory.
    fn stop(&mut self) {
        self.save_lookups();
        let _ = self.seal();
        *self.engine.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn write(&mut self, part: &PendingPart) {
        let is_due = self.paused_until.is_none_or(|until| Instant::now() >= until);
        if !is_due {
            self.engine.counts.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // A purge came since the bytes were requested.
        if part.since != self.engine.generation.current() {
            return;
        }
        let outcome = self.resume().and_then(|()| self.write_part(part));
        match outcome {
            Ok(()) => self.succeeded(),
            Err(error) => self.failed(&error),
        }
    }

    /// Takes the directory again after a failure: it may have vanished, and with it the lock.
    fn resume(&mut self) -> io::Result<()> {
        if self.paused_until.is_none() { Ok(()) } else { self.renew_lock() }
    }

    /// Keeps the lock, or takes that of a directory that came in place of the locked one.
    fn renew_lock(&self) -> io::Result<()> {
        let mut held = self.engine.lock.lock().unwrap_or_else(PoisonError::into_inner);
        lock::renew(&self.engine.directory, &mut held)
    }

    fn succeeded(&mut self) {
        if self.paused_until.take().is_some() {
            self.engine.is_paused.store(false, Ordering::Relaxed);
            tracing::info!(path = %self.engine.directory.display(), "the disk cache is written again");
        }
    }

    fn failed(&mut self, error: &io::Error) {
        self.engine.counts.failures.fetch_add(1, Ordering::Relaxed);
        self.engine.counts.dropped.fetch_add(1, Ordering::Relaxed);
        if self.paused_until.is_none() {
            tracing::warn!(
                error = %error,
                path = %self.engine.directory.display(),
                "the disk cache cannot be written; it is tried again every {} s, and what it has is still used",
                RETRY_INTERVAL.as_secs()
            );
        }
        self.paused_until = Some(Instant::now() + RETRY_INTERVAL);
        self.engine.is_paused.store(true, Ordering::Relaxed);
    }

    fn write_part(&mut self, part: &PendingPart) -> io::Result<()> {
        let PendingPart { name, info, start, data, .. } = part;
        let record = Record {
            kind: RecordKind::Value,
            scope: (&*name.scope).into(),
            key: name.key.as_str().into(),
            tag: info.version.tag().into(),
            start: *start,
            size: info.size,
            modified: info.modified,
            data_length: data.len(),
        };
        let range = ByteRange::Bounded(*start, start + data.len() as u64);
        // Another request may have read it at the same time.
        if !record.is_writable() || self.engine.covers(name, Some(&info.version), range).is_some() {
            return Ok(());
        }
        let location = self.append_or_evict(&record, data)?;
        self.insert(&record, location);
        self.evict_beyond_index();
        Ok(())
    }

    fn insert(&self, record: &Record, location: RecordPlace) {
        let name = self.engine.name_hash(&record.scope, &record.key);
        let version = self.engine.version_hash(&record.scope, &record.key, &record.tag);
        self.engine.state().insert((name, version), record, location);
    }

    /// Appends a record. If the disk is full, the oldest segments make space for it. One alone may be short, but no more than the
    /// bytes of a long one are given up: what is not free then is taken by others.
    fn append_or_evict(&mut self, record: &Record, data: &[u8]) -> io::Result<RecordPlace> {
        let least = self.engine.bytes().saturating_sub(self.engine.segment_size);
        // Later segments are of failed attempts, and free nothing.
        let end = self.next_number;
        let mut is_first = true;
        loop {
            let error = match self.append(record, data) {
                Ok(location) => return Ok(location),
                Err(error) => error,
            };
            self.abandon();
            // Another file may do where this one alone may not grow.
            let may_help = is_first || error.kind() != ErrorKind::FileTooLarge;
            let is_old = self.engine.state().segments.keys().next().is_some_and(|oldest| *oldest < end);
            if !is_full(&error) || !may_help || !is_old || self.engine.bytes() <= least {
                return Err(error);
            }
            is_first = false;
            self.evict_oldest();
        }
    }

    fn append(&mut self, record: &Record, data: &[u8]) -> io::Result<RecordPlace> {
        let has_space = |active: &Active| {
            let end = active.segment.length() + record.length() as u64 + active.table.bytes_with(record);
            end <= self.engine.segment_size
        };
        if !self.active.as_ref().is_some_and(has_space) {
            self.rotate()?;
        }
        let Some(active) = &mut self.active else { return Err(ErrorKind::NotFound.into()) };
        append_to(active, &self.engine, record, data)
    }

    /// Completes the segment that is written, and begins the next, with space for it.
    fn rotate(&mut self) -> io::Result<()> {
        // Another directory may have come in place of this one, and another server may use it.
        self.renew_lock()?;
        // Without its table, a segment is searched at the next start.
        let _ = self.seal();
        // Only where the cache became smaller.
        while self.engine.bytes() + self.engine.segment_size > self.engine.size && self.evict_oldest() {}
        if self.engine.bytes() + self.engine.segment_size > self.engine.size {
            self.remove_all();
        }
        let number = self.next_number;
        // A number whose file cannot be created is not tried again: there may be one.
        self.next_number = number.checked_add(1).ok_or(ErrorKind::QuotaExceeded)?;
        let nonce = self.nonces.hash_one(number);
        let segment = Arc::new(Segment::create(&self.engine.directory, number, nonce)?);
        let known = Known { segment: Arc::clone(&segment), names: Vec::new() };
        self.engine.state().segments.insert(number, known);
        self.active = Some(Active { segment, table: Table::default() });
        // The next segment will need its space while it takes over what is used of the oldest one.
        let sealed = self.engine.bytes();
        let is_full = sealed + 2 * self.engine.segment_size > self.engine.size;
        self.engine.state().is_full = is_full;
        if is_full {
            self.evict_unused();
        }
        Ok(())
    }

    /// Writes the table of the segment that is written, which is complete then.
    fn seal(&mut self) -> io::Result<()> {
        let Some(Active { segment, table }) = self.active.take() else { return Ok(()) };
        segment.append(&table.encode(segment.nonce(), segment.length())).inspect_err(|_| segment.trim())
    }

    /// Writes no more into a segment, because it may end in a torn record.
    fn abandon(&mut self) {
        if let Some(active) = self.active.take() {
            active.segment.trim();
        }
    }

    /// Removes the oldest segment, and writes what was read of it again, what was read most first, as long as
    /// the new segment has space for that and something new.
    fn evict_unused(&mut self) {
        let oldest = self.engine.state().take_oldest(&self.engine.counts);
        let Some((segment, mut used)) = oldest else { return };
        used.sort_by_key(|part| Reverse(part.reads));
        for part in used {
            let Some(active) = &mut self.active else { break };
            let length = u64::from(part.location.length);
            if active.segment.length() + length > self.engine.segment_size / 4 * 3 {
                break;
            }
            let Some((record, data)) = read_again(&self.engine, &segment, &part) else { continue };
            let Ok(location) = append_to(active, &self.engine, &record, &data) else {
                self.abandon();
                break;
            };
            self.insert(&record, location);
        }
        // Not before: a purge in the segment decides what of it is written again.
        self.engine.state().drop_purges();
        self.remove(&segment);
    }

    fn remove(&self, segment: &Segment) {
        if !segment.remove() {
            self.engine.counts.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Removes the oldest segment. Returns whether there was one beside that which is written.
    fn evict_oldest(&mut self) -> bool {
        let oldest = {
            let mut state = self.engine.state();
            let oldest = state.take_oldest(&self.engine.counts);
            state.drop_purges();
            oldest
        };
        if let Some((segment, _)) = &oldest {
            self.remove(segment);
        }
        oldest.is_some()
    }

    /// Evicts segments until the index fits.
    fn evict_beyond_index(&mut self) {
        while self.engine.state().index.parts() > self.engine.max_parts {
            self.engine.state().is_full = true;
            if !self.evict_oldest() {
                self.remove_all();
            }
        }
    }

    /// Removes all segments. Returns whether no file is left that the next start would read.
    fn remove_all(&mut self) -> bool {
        self.active = None;
        let State { index, segments, purges, .. } = &mut *self.engine.state();
        let left = std::mem::take(segments).into_values().filter(|known| !known.segment.remove()).count();
        index.clear();
        purges.clear();
        left == 0
    }

    /// Makes a purge durable: with a record, or if that fails, without everything else. Returns whether it is.
    fn purge(&mut self, scope: &Arc<str>, prefix: &StorePrefix) -> bool {
        if self.engine.state().segments.is_empty() {
            return true;
        }
        let record = Record {
            kind: RecordKind::Purge,
            scope: (&**scope).into(),
            key: prefix.as_str().into(),
            tag: "".into(),
            start: 0,
            size: 0,
            modified: None,
            data_length: 0,
        };
        let is_kept = self.engine.state().purges.len() < MAX_PURGES;
        let written = if is_kept {
            self.append_or_evict(&record, &[]).and_then(|location| {
                self.active.as_ref().map_or(Ok(()), |active| active.segment.sync())?;
                Ok(location)
            })
        } else {
            Err(ErrorKind::QuotaExceeded.into())
        };
        match written {
            Ok(location) => {
                let at = (location.segment, location.offset);
                let purge = Purge { scope: record.scope, prefix: prefix.clone(), at };
                self.engine.state().purges.push(purge);
                true
            }
            Err(error) => {
                let is_removed = self.remove_all();
                if !is_removed {
                    self.engine.counts.failures.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(
                        error = %error,
                        path = %self.engine.directory.display(),
                        "a purge of the disk cache holds only until the next start, because neither it can be written nor the files \
                         removed: delete the directory before the next start"
                    );
                }
                is_removed
            }
        }
    }
}

/// Appends a record to the segment that is written.
fn append_to(active: &mut Active, engine: &Engine, record: &Record, data: &[u8]) -> io::Result<RecordPlace> {
    let Active { segment, table } = active;
    let at = segment.length();
    let bytes = record.encode(data, segment.nonce(), at);
    segment.append(&bytes)?;
    engine.counts.written_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    let too_long = |_| io::Error::from(ErrorKind::FileTooLarge);
    let offset = u32::try_from(at).map_err(too_long)?;
    table.add(offset, record, &bytes);
    let length = u32::try_from(bytes.len()).map_err(too_long)?;
    Ok(RecordPlace { segment: segment.number, offset, length })
}

/// A record of a segment that is evicted, if it is as it was written and not purged.
fn read_again(engine: &Engine, segment: &Segment, part: &CachedPart) -> Option<(Record, Vec<u8>)> {
    let RecordPlace { offset, length, .. } = part.location;
    let bytes = segment.read(offset.into(), length as usize).ok()?;
    let record = Record::decode(&bytes, segment.nonce(), offset.into())?;
    let data = record.verified(&bytes, segment.nonce())?.to_vec();
    let key = StoreKey::parse(&record.key).ok()?;
    is_live(&engine.state().purges, &record.scope, &key, part.location).then_some((record, data))
}

/// Whether there is no space for a write.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
