//! `get_partial_values`, `set_partial_values` and `erase_values` (Zarr core 3.1, "Abstract store interface"), built
//! from the other verbs, so that every backend has them.
//!
//! All ranges of one value are read at one version of it. A write of parts reads the value, overlays the parts and
//! stores the result on condition of the version that was read: a reader sees the value before or after, never between,
//! and no other write is lost. A missing value counts as empty, and a gap before an offset is filled with zero bytes.
//! The value streams through; only the parts are in memory. Nothing here is atomic over several keys.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::{Mutex, Semaphore};

use super::{
    ByteRange, SetResult, Store, StoreError, Value, ValueInfo, ValueStream, Version, WriteCondition,
};
use crate::key::StoreKey;

/// The most requests of one call that are in flight.
const CONCURRENCY: usize = 16;
/// The most attempts to read the ranges of a value that changes meanwhile.
const READ_ATTEMPTS: usize = 3;
/// The most attempts of a write, if another writer intervenes each time.
const WRITE_ATTEMPTS: u32 = 10;
/// Fills a gap, piece by piece.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Serializes the writers of parts in this process, so that they do not repeat each other's work. Keys share locks by
/// hash.
static KEY_LOCKS: [Mutex<()>; 256] = [const { Mutex::const_new(()) }; 256];

/// A failure of one of several parts or keys.
#[derive(Clone, Debug, thiserror::Error)]
#[error("part {part}: {error}")]
pub struct PartFailure {
    /// Its index in the caller's list, from zero.
    pub part: usize,
    /// What went wrong there.
    #[source]
    pub error: StoreError,
}

/// Bytes to be written into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuePart {
    /// Their offset in the value, in bytes.
    pub offset: u64,
    /// The bytes. An empty part changes nothing.
    pub bytes: Bytes,
}

/// Parts to be written into one value.
#[derive(Clone, Debug)]
pub struct PartialWrite {
    /// The value's key.
    pub key: StoreKey,
    /// The parts, in order: where they overlap, the later one wins.
    pub parts: Vec<ValuePart>,
    /// The length in bytes that the value must have afterwards, if that is to be checked.
    pub result_bytes: Option<u64>,
    /// The longest that the value may become, in bytes.
    pub limit_bytes: u64,
}

/// Reads ranges of values, in the order given; `None` where the key does not exist. Each range costs one request to the
/// store, and all ranges of one key are of one version.
///
/// # Errors
/// [`StoreError::PartsTooLarge`] before more than `limit_bytes` are held; [`StoreError::RangeNotSatisfiable`];
/// [`StoreError::VersionChanged`] if a value changes as often as it is read; any failure of the store.
pub async fn get_partial_values(
    store: &dyn Store,
    key_ranges: &[(StoreKey, ByteRange)],
    limit_bytes: u64,
) -> Result<Vec<Option<Bytes>>, PartFailure> {
    let mut by_key = BTreeMap::<&StoreKey, Vec<(usize, ByteRange)>>::new();
    for (part, (key, range)) in key_ranges.iter().enumerate() {
        by_key.entry(key).or_default().push((part, *range));
    }
    let by_key: Vec<_> = by_key.into_iter().map(|(key, ranges)| (key.clone(), ranges)).collect();
    let reads =
        Reads { store, requests: Semaphore::new(CONCURRENCY), held_bytes: AtomicU64::new(0), limit_bytes };
    let reads = &reads;
    let mut values = vec![None; key_ranges.len()];
    let mut keys = stream::iter(by_key)
        .map(|(key, ranges)| async move { reads.read_key(&key, ranges).await })
        .buffer_unordered(CONCURRENCY);
    while let Some(parts) = keys.try_next().await? {
        for (part, bytes) in parts {
            if let Some(value) = values.get_mut(part) {
                *value = bytes;
            }
        }
    }
    drop(keys);
    Ok(values)
}

/// Parts that were read, with their indices in the caller's list.
type Parts = Vec<(usize, Option<Bytes>)>;

/// The state that all reads of one call share.
struct Reads<'a> {
    store: &'a dyn Store,
    requests: Semaphore,
    held_bytes: AtomicU64,
    limit_bytes: u64,
}

impl Reads<'_> {
    /// Ranges of one value, all of one version.
    async fn read_key(&self, key: &StoreKey, ranges: Vec<(usize, ByteRange)>) -> Result<Parts, PartFailure> {
        let mut attempts = 1;
        loop {
            let held = AtomicU64::new(0);
            match self.at_one_version(key, &ranges, &held).await {
                Err(PartFailure { error: StoreError::VersionChanged, .. }) if attempts < READ_ATTEMPTS => {
                    attempts += 1;
                    self.held_bytes.fetch_sub(held.into_inner(), Ordering::Relaxed);
                }
                read => return read,
            }
        }
    }

    async fn at_one_version(
        &self,
        key: &StoreKey,
        ranges: &[(usize, ByteRange)],
        held: &AtomicU64,
    ) -> Result<Parts, PartFailure> {
        let Some(((first, range), rest)) = ranges.split_first() else { return Ok(Vec::new()) };
        let at = |part: usize| move |error| PartFailure { part, error };
        let Some((version, bytes)) = self.range(key, *range, None, held).await.map_err(at(*first))? else {
            return Ok(ranges.iter().map(|(part, _)| (*part, None)).collect());
        };
        let version = &version;
        let rest = stream::iter(rest.to_vec()).map(|(part, range)| async move {
            let read = self.range(key, range, version.pin(), held).await.map_err(at(part))?;
            match read {
                Some((now, bytes)) if now == *version => Ok((part, Some(bytes))),
                _ => Err(PartFailure { part, error: StoreError::VersionChanged }),
            }
        });
        let mut parts: Parts = rest.buffer_unordered(CONCURRENCY).try_collect().await?;
        parts.push((*first, Some(bytes)));
        Ok(parts)
    }

    async fn range(
        &self,
        key: &StoreKey,
        range: ByteRange,
        pin: Option<&Version>,
        held: &AtomicU64,
    ) -> Result<Option<(Version, Bytes)>, StoreError> {
        // The semaphore is never closed.
        let _guard = self.requests.acquire().await.ok();
        let Some(value) = self.store.get(key, range, pin).await? else { return Ok(None) };
        if range.resolve(value.info.size).as_ref() != Some(&value.range) {
            return Err(StoreError::WrongLength);
        }
        held.fetch_add(value.len(), Ordering::Relaxed);
        let before = self.held_bytes.fetch_add(value.len(), Ordering::Relaxed);
        if before.saturating_add(value.len()) > self.limit_bytes {
            return Err(StoreError::PartsTooLarge { limit: self.limit_bytes });
        }
        let version = value.info.version.clone();
        Ok(Some((version, value.bytes(self.limit_bytes).await?)))
    }
}

/// Writes parts into one value: all of them, or none. At each attempt, `may_write` decides whether the stored value may
/// be replaced.
///
/// # Errors
/// The error of `may_write`; [`StoreError::BodyTooLarge`] and [`StoreError::LengthMismatch`] for the resulting value;
/// [`StoreError::NotSupported`] if the backend has only weak versions; [`StoreError::Contended`] if another writer
/// intervened at each attempt; any failure of the store. In all cases but the last, nothing was written.
pub async fn set_partial_values(
    store: &dyn Store,
    write: &PartialWrite,
    may_write: impl Fn(Option<&ValueInfo>) -> Result<(), StoreError> + Send + Sync,
) -> Result<SetResult, StoreError> {
    let too_large = StoreError::BodyTooLarge { limit: write.limit_bytes };
    let parts = disjoint(&write.parts).filter(|(end, _)| *end <= write.limit_bytes).ok_or(too_large)?;
    let _guard = KEY_LOCKS[usize::from(lock_index(store, &write.key))].lock().await;
    for attempts in 0..WRITE_ATTEMPTS {
        if attempts > 0 {
            pause(attempts).await;
        }
        if let Some(outcome) = attempt(store, write, &parts, &may_write).await? {
            return Ok(outcome);
        }
    }
    Err(StoreError::Contended(None))
}

/// One attempt; `None` if another writer intervened.
async fn attempt(
    store: &dyn Store,
    write: &PartialWrite,
    (end, parts): &(u64, VecDeque<ValuePart>),
    may_write: &(impl Fn(Option<&ValueInfo>) -> Result<(), StoreError> + Send + Sync),
) -> Result<Option<SetResult>, StoreError> {
    let current = store.get(&write.key, ByteRange::Whole, None).await?;
    let info = current.as_ref().map(|value| &value.info);
    may_write(info)?;
    let result = info.map_or(0, |info| info.size).max(*end);
    if result > write.limit_bytes {
        return Err(StoreError::BodyTooLarge { limit: write.limit_bytes });
    }
    if let Some(asked) = write.result_bytes.filter(|asked| *asked != result) {
        return Err(StoreError::LengthMismatch { asked, result });
    }
    let condition = match info.map(|info| info.version.pin()) {
        None => WriteCondition::IfAbsent,
        Some(Some(version)) => WriteCondition::IfVersion(version.clone()),
        Some(None) => {
            return Err(StoreError::NotSupported("writing parts of values: it does not name their versions"));
        }
    };
    match store.set(&write.key, overlaid(current, parts.clone(), result), condition).await {
        Ok(outcome) => Ok(Some(outcome)),
        Err(StoreError::ConditionFailed | StoreError::VersionChanged) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Erases values, and skips those that do not exist. Returns how many were erased, up to the first failure, and that
/// failure with its index in the list.
pub async fn erase_values(store: &dyn Store, keys: &[StoreKey]) -> (u64, Option<PartFailure>) {
    let mut seen = BTreeSet::new();
    let once: Vec<_> = keys.iter().enumerate().filter(|(_, key)| seen.insert(*key)).collect();
    let mut erased = 0;
    for some in once.chunks(CONCURRENCY) {
        // Waits for all of these, so that the count is what was erased.
        let results = join_all(some.iter().map(|(_, key)| store.erase(key, WriteCondition::Always))).await;
        let mut failure = None;
        for ((part, _), result) in some.iter().zip(results) {
            match result {
                Ok(existed) => erased += u64::from(existed),
                Err(error) => failure = failure.or(Some(PartFailure { part: *part, error })),
            }
        }
        if failure.is_some() {
            return (erased, failure);
        }
    }
    (erased, None)
}

fn lock_index(store: &dyn Store, key: &StoreKey) -> u8 {
    let mut hasher = DefaultHasher::new();
    std::ptr::from_ref(store).cast::<()>().addr().hash(&mut hasher);
    key.hash(&mut hasher);
    let [index, ..] = hasher.finish().to_le_bytes();
    index
}

/// Sleeps for a random time, longer with each attempt, so that colliding writers diverge.
async fn pause(attempts: u32) {
    let most_ms = 10_u64 << attempts.min(5);
    tokio::time::sleep(Duration::from_millis(RandomState::new().hash_one(attempts) % most_ms)).await;
}

/// The parts sorted and without overlaps (the later ones win), and the end of the last of them; `None` if an end
/// overflows.
fn disjoint(parts: &[ValuePart]) -> Option<(u64, VecDeque<ValuePart>)> {
    let mut placed = BTreeMap::<u64, Bytes>::new();
    let mut end_of_all = 0;
    for ValuePart { offset, bytes } in parts.iter().filter(|part| !part.bytes.is_empty()) {
        let end = offset.checked_add(length(bytes))?;
        end_of_all = end.max(end_of_all);
        // From the last part that begins before this one's end, down to the first that ends after its start.
        while let Some((&start, under)) = placed.range(..end).next_back()
            && start + length(under) > *offset
        {
            let under = under.clone();
            placed.remove(&start);
            let under_end = start + length(&under);
            if under_end > end {
                placed.insert(end, suffix(&under, end - start));
            }
            if start < *offset {
                let mut head = under;
                head.truncate(usize::try_from(offset - start).unwrap_or(usize::MAX));
                placed.insert(start, head);
            }
        }
        placed.insert(*offset, bytes.clone());
    }
    Some((end_of_all, placed.into_iter().map(|(offset, bytes)| ValuePart { offset, bytes }).collect()))
}

fn length(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// All but the first bytes.
fn suffix(bytes: &Bytes, without: u64) -> Bytes {
    let without = usize::try_from(without).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(without..)
}

/// A value with parts laid over it, as a stream.
struct Overlaid {
    old: ValueStream,
    /// Bytes of the old value that are not passed on yet.
    piece: Bytes,
    old_bytes: u64,
    parts: VecDeque<ValuePart>,
    at: u64,
    result_bytes: u64,
}

/// The bytes of a value with parts laid over it. Ends in an error if the old value is not as long as it says.
fn overlaid(old: Option<Value>, parts: VecDeque<ValuePart>, result_bytes: u64) -> ValueStream {
    let (old_bytes, old) =
        old.map_or_else(|| (0, stream::empty().boxed()), |old| (old.info.size, old.body.into_stream()));
    let state = Overlaid { old, piece: Bytes::new(), old_bytes, parts, at: 0, result_bytes };
    stream::try_unfold(state, |mut state| async move {
        let next = state.next().await?;
        Ok(next.map(|bytes| (bytes, state)))
    })
    .boxed()
}

impl Overlaid {
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        let bytes = if let Some(part) = self.parts.pop_front_if(|part| part.offset == self.at) {
            self.discard_old(length(&part.bytes)).await?;
            part.bytes
        } else {
            let until = self.parts.front().map_or(self.result_bytes, |part| part.offset);
            if self.at < until.min(self.old_bytes) {
                self.take(until.min(self.old_bytes) - self.at).await?
            } else if self.at < until {
                let zeros = usize::try_from(until - self.at).unwrap_or(usize::MAX);
                Bytes::from_static(ZEROS.get(..zeros).unwrap_or(&ZEROS))
            } else {
                return self.finish().await.map(|()| None);
            }
        };
        self.at = self.at.saturating_add(length(&bytes));
        Ok(Some(bytes))
    }

    /// Some bytes of the old value, at least one, at most `most`.
    async fn take(&mut self, most: u64) -> Result<Bytes, StoreError> {
        while self.piece.is_empty() {
            self.piece = self.old.try_next().await?.ok_or(StoreError::WrongLength)?;
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ok(self.piece.split_to(most.min(self.piece.len())))
    }

    /// Discards the old bytes that a part of this length replaces.
    async fn discard_old(&mut self, bytes: u64) -> Result<(), StoreError> {
        let mut left = self.old_bytes.saturating_sub(self.at).min(bytes);
        while left > 0 {
            left = left.saturating_sub(length(&self.take(left).await?));
        }
        Ok(())
    }

    /// The old value must end where it said.
    async fn finish(&mut self) -> Result<(), StoreError> {
        while self.piece.is_empty() {
            match self.old.try_next().await? {
                Some(piece) => self.piece = piece,
                None => return Ok(()),
            }
        }
        Err(StoreError::WrongLength)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use futures::stream::BoxStream;
    use proptest::prelude::*;

    use super::*;
    use crate::key::StorePrefix;
    use crate::store::{
        Capabilities, DirEntries, ListEntry, SharedStore, Shortcuts, StoreKind, StoreOptions, ValueBody, open,
    };

    fn memory() -> SharedStore {
        let cpu = crate::cpu::ComputePool::new(crate::cpu::ComputePoolOptions { threads: 1 }).unwrap();
        open("memory://", &StoreOptions { writable: true, ..StoreOptions::default() }, &cpu).unwrap()
    }

    fn key(text: &str) -> StoreKey {
        StoreKey::parse(text).unwrap()
    }

    async fn put(store: &dyn Store, name: &str, value: &[u8]) {
        let body = ValueBody::Bytes(Bytes::copy_from_slice(value)).into_stream();
        store.set(&key(name), body, WriteCondition::Always).await.unwrap();
    }

    async fn value(store: &dyn Store, name: &str) -> Option<Vec<u8>> {
        let value = store.get(&key(name), ByteRange::Whole, None).await.unwrap()?;
        Some(value.bytes(1 << 20).await.unwrap().to_vec())
    }

    fn write(parts: &[(u64, &[u8])]) -> PartialWrite {
        let part =
            |&(offset, bytes): &(u64, &[u8])| ValuePart { offset, bytes: Bytes::copy_from_slice(bytes) };
        let parts = parts.iter().map(part).collect();
        PartialWrite { key: key("a"), parts, result_bytes: None, limit_bytes: 1 << 20 }
    }

    #[expect(clippy::unnecessary_wraps, reason = "it replaces a condition")]
    fn always(_: Option<&ValueInfo>) -> Result<(), StoreError> {
        Ok(())
    }

    /// A store in which another writer changes `a` right after it is read, this many times.
    #[derive(Debug)]
    struct FlakyStore {
        inner: SharedStore,
        times: std::sync::Mutex<u32>,
        weak: bool,
    }

    impl FlakyStore {
        fn new(times: u32) -> Self {
            Self { inner: memory(), times: std::sync::Mutex::new(times), weak: false }
        }
    }

    #[async_trait]
    impl Store for FlakyStore {
        fn kind(&self) -> StoreKind {
            self.inner.kind()
        }

        async fn head(&self, key: &StoreKey) -> Result<Option<ValueInfo>, StoreError> {
            self.inner.head(key).await
        }

        async fn get(
            &self,
            key: &StoreKey,
            range: ByteRange,
            if_match: Option<&Version>,
        ) -> Result<Option<Value>, StoreError> {
            let mut value = self.inner.get(key, range, if_match).await?;
            let meddles = {
                let mut times = self.times.lock().unwrap();
                *times = times.saturating_sub(1);
                *times > 0
            };
            if meddles {
                put(&*self.inner, "a", format!("meddled {:?}", self.times).as_bytes()).await;
            }
            if let (true, Some(value)) = (self.weak, &mut value) {
                value.info.version = Version::weak(value.info.version.tag());
            }
            Ok(value)
        }

        async fn set(
            &self,
            key: &StoreKey,
            body: ValueStream,
            condition: WriteCondition,
        ) -> Result<SetResult, StoreError> {
            self.inner.set(key, body, condition).await
        }

        async fn erase(&self, key: &StoreKey, condition: WriteCondition) -> Result<bool, StoreError> {
            if key.as_str() == "bad" {
                return Err(StoreError::WrongLength);
            }
            self.inner.erase(key, condition).await
        }

        async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<u64, StoreError> {
            self.inner.erase_prefix(prefix).await
        }

        fn list_dir_after(&self, prefix: &StorePrefix, after: &str) -> DirEntries {
            self.inner.list_dir_after(prefix, after)
        }

        fn list_prefix(
            &self,
            prefix: &StorePrefix,
            after: Option<&StoreKey>,
        ) -> BoxStream<'static, Result<ListEntry, StoreError>> {
            self.inner.list_prefix(prefix, after)
        }

        async fn check(&self) -> Result<(), StoreError> {
            self.inner.check().await
        }
    }

    impl Shortcuts for FlakyStore {
        fn capabilities(&self) -> Capabilities {
            self.inner.capabilities()
        }
    }

    #[tokio::test]
    async fn ranges_are_returned_in_order_and_none_for_missing_keys() {
        let store = memory();
        put(&*store, "a", b"0123456789").await;
        put(&*store, "b", b"").await;
        let ranges = [
            (key("a"), ByteRange::Suffix(3)),
            (key("none"), ByteRange::Whole),
            (key("b"), ByteRange::Whole),
            (key("a"), ByteRange::Bounded(2, 4)),
            (key("a"), ByteRange::From(8)),
            (key("a"), ByteRange::Whole),
        ];
        let values = get_partial_values(&*store, &ranges, 17).await.unwrap();
        let expected = [Some("789"), None, Some(""), Some("23"), Some("89"), Some("0123456789")];
        assert_eq!(values, expected.map(|text| text.map(|text| Bytes::from_static(text.as_bytes()))));
        let failure = get_partial_values(&*store, &ranges, 16).await.unwrap_err();
        assert!(matches!(failure.error, StoreError::PartsTooLarge { limit: 16 }), "{failure:?}");
        let outside = [(key("a"), ByteRange::Whole), (key("b"), ByteRange::From(0))];
        let failure = get_partial_values(&*store, &outside, 100).await.unwrap_err();
        assert_eq!(failure.part, 1);
        assert!(matches!(failure.error, StoreError::RangeNotSatisfiable { size: 0 }), "{failure:?}");
    }

    #[tokio::test]
    async fn ranges_of_one_value_are_of_one_version() {
        let ranges = [(key("a"), ByteRange::Bounded(0, 9)), (key("a"), ByteRange::Bounded(0, 100))];
        for (times, weak) in [(2, false), (2, true), (3, false)] {
            let store = FlakyStore { weak, ..FlakyStore::new(times) };
            put(&*store.inner, "a", b"unmeddled").await;
            let values = get_partial_values(&store, &ranges, 100).await.unwrap();
            let [Some(head), Some(complete)] = &*values else { panic!("{values:?}") };
            assert!(complete.starts_with(head), "{head:?} {complete:?}");
        }
        let store = FlakyStore::new(100);
        put(&*store.inner, "a", b"unmeddled").await;
        let failure = get_partial_values(&store, &ranges, 100).await.unwrap_err();
        assert!(matches!(failure.error, StoreError::VersionChanged), "{failure:?}");
    }

    #[tokio::test]
    async fn parts_are_written_into_a_value_and_gaps_filled_with_zeros() {
        let store = memory();
        let created = set_partial_values(&*store, &write(&[(2, b"cd"), (3, b"DE")]), always).await.unwrap();
        assert!(created.created);
        assert_eq!(value(&*store, "a").await.unwrap(), b"\0\0cDE");
        set_partial_values(&*store, &write(&[(7, b"hi"), (0, b"a")]), always).await.unwrap();
        assert_eq!(value(&*store, "a").await.unwrap(), b"a\0cDE\0\0hi");
        let refused = PartialWrite { result_bytes: Some(9), ..write(&[(9, b"x")]) };
        let error = set_partial_values(&*store, &refused, always).await.unwrap_err();
        assert!(matches!(error, StoreError::LengthMismatch { asked: 9, result: 10 }), "{error:?}");
        for (offset, limit_bytes) in [(10, 10), (0, 8), (u64::MAX, 10)] {
            let refused = PartialWrite { limit_bytes, ..write(&[(offset, b"x")]) };
            let error = set_partial_values(&*store, &refused, always).await.unwrap_err();
            assert!(matches!(error, StoreError::BodyTooLarge { .. }), "{error:?}");
        }
        assert_eq!(value(&*store, "a").await.unwrap(), b"a\0cDE\0\0hi");
    }

    #[tokio::test]
    async fn a_write_that_loses_a_race_is_retried_on_the_new_value() {
        let store = FlakyStore::new(4);
        put(&*store.inner, "a", b"unmeddled").await;
        set_partial_values(&store, &write(&[(0, b"X")]), always).await.unwrap();
        let text = String::from_utf8(value(&*store.inner, "a").await.unwrap()).unwrap();
        assert!(text.starts_with("Xeddled"), "{text}");
        let store = FlakyStore::new(100);
        let error = set_partial_values(&store, &write(&[(0, b"X")]), always).await.unwrap_err();
        assert!(matches!(error, StoreError::Contended(None)), "{error:?}");
        assert!(value(&*store.inner, "a").await.unwrap().starts_with(b"meddled"));
    }

    #[tokio::test]
    async fn a_condition_is_checked_at_each_attempt_and_ends_the_write() {
        let store = FlakyStore::new(2);
        put(&*store.inner, "a", b"unmeddled").await;
        let before = store.inner.head(&key("a")).await.unwrap();
        let unchanged = |info: Option<&ValueInfo>| {
            if info == before.as_ref() { Ok(()) } else { Err(StoreError::ConditionFailed) }
        };
        let error = set_partial_values(&store, &write(&[(0, b"X")]), unchanged).await.unwrap_err();
        assert!(matches!(error, StoreError::ConditionFailed), "{error:?}");
        assert!(value(&*store.inner, "a").await.unwrap().starts_with(b"meddled"));
    }

    #[tokio::test]
    async fn parts_are_rejected_for_a_backend_with_only_weak_versions() {
        let store = FlakyStore { weak: true, ..FlakyStore::new(0) };
        put(&*store.inner, "a", b"before").await;
        let error = set_partial_values(&store, &write(&[(0, b"X")]), always).await.unwrap_err();
        assert!(matches!(error, StoreError::NotSupported(_)), "{error:?}");
        assert_eq!(value(&*store.inner, "a").await.unwrap(), b"before");
    }

    #[tokio::test]
    async fn keys_are_erased_up_to_the_first_failure_and_counted() {
        let store = FlakyStore::new(0);
        let names: Vec<String> = (0..40).map(|number| format!("k{number:02}")).collect();
        for name in &names {
            put(&*store.inner, name, b"x").await;
        }
        let mut keys: Vec<StoreKey> = names.iter().map(|name| key(name)).collect();
        keys.insert(20, key("bad"));
        keys.insert(0, key("none"));
        keys.insert(0, key("k00"));
        let (erased, failure) = erase_values(&store, &keys).await;
        assert_eq!(failure.map(|failure| failure.part), Some(22));
        let left = store.inner.list_prefix(&StorePrefix::root(), None).count().await;
        assert_eq!(erased, 40 - u64::try_from(left).unwrap());
        assert!((16..40).contains(&erased), "{erased}");
        keys.retain(|key| key.as_str() != "bad");
        let (erased, failure) = erase_values(&store, &keys).await;
        assert!(failure.is_none());
        assert_eq!(erased, u64::try_from(left).unwrap());
    }

    /// An old value that comes in pieces, and is as long as it says or not.
    fn old(bytes: &[u8], size: u64, piece: usize) -> Value {
        let pieces: Vec<_> = bytes.chunks(piece).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let info = ValueInfo { size, version: Version::strong("v"), modified: None };
        Value::new(info, 0..size, ValueBody::Stream(stream::iter(pieces).boxed()))
    }

    async fn collected(body: ValueStream) -> Result<Vec<u8>, StoreError> {
        body.try_collect::<Vec<Bytes>>().await.map(|pieces| pieces.concat())
    }

    #[tokio::test]
    async fn an_old_value_of_another_length_than_its_metadata_says_is_rejected() {
        for (bytes, size) in [(&b"0123"[..], 5), (b"0123456", 5), (b"", 5), (b"0", 0)] {
            for parts in [&[][..], &[(0, &b"abc"[..])], &[(4, b"x"), (9, b"y")], &[(0, b"abcdefgh")]] {
                let (end, parts) = disjoint(&write(parts).parts).unwrap();
                let body = overlaid(Some(old(bytes, size, 2)), parts, end.max(size));
                let result = collected(body).await;
                assert!(matches!(result, Err(StoreError::WrongLength)), "{bytes:?} {size} {result:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn parts_are_written_as_into_a_file(
            before in proptest::option::of(proptest::collection::vec(1_u8..10, 0..30)),
            piece in 1_usize..8,
            parts in proptest::collection::vec((0_u64..40, proptest::collection::vec(10_u8.., 0..12)), 0..6),
        ) {
            let mut expected = before.clone().unwrap_or_default();
            for (offset, bytes) in parts.iter().filter(|(_, bytes)| !bytes.is_empty()) {
                let (start, end) = (*offset as usize, *offset as usize + bytes.len());
                expected.resize(expected.len().max(end), 0);
                expected[start..end].copy_from_slice(bytes);
            }
            let parts: Vec<(u64, &[u8])> =
                parts.iter().map(|(offset, bytes)| (*offset, &bytes[..])).collect();
            let (end, parts) = disjoint(&write(&parts).parts).unwrap();
            let size = before.as_ref().map_or(0, |bytes| bytes.len() as u64);
            let old = before.as_ref().map(|bytes| old(bytes, size, piece));
            let result = futures::executor::block_on(collected(overlaid(old, parts, end.max(size)))).unwrap();
            prop_assert_eq!(result, expected);
        }
    }

    #[test]
    fn a_long_gap_is_filled_in_pieces() {
        let (end, parts) = disjoint(&write(&[(1 << 18, b"x")]).parts).unwrap();
        let pieces: Vec<Bytes> =
            futures::executor::block_on(overlaid(None, parts, end).try_collect()).unwrap();
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), (1 << 18) + 1);
        assert!(pieces.iter().all(|piece| piece.len() <= ZEROS.len()));
    }

    #[tokio::test]
    async fn concurrent_writers_of_parts_lose_nothing() {
        let store: SharedStore = Arc::new(FlakyStore::new(0));
        let writers = (0..16_u64).map(|place| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for number in 0..20_u8 {
                    set_partial_values(&*store, &write(&[(place, &[number])]), always).await.unwrap();
                }
            })
        });
        for writer in join_all(writers).await {
            writer.unwrap();
        }
        assert_eq!(value(&*store, "a").await.unwrap(), [19; 16]);
    }
}
