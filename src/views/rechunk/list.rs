//! Listings of a rechunked hierarchy: stored keys, with the documents and chunks of each array replaced.
//!
//! A listing goes level by level, in the order of the keys. A derived chunk exists if any of its stored chunks does,
//! which a listing of the stored keys shows without a lookup of each. A listed entry equals the result of `head`, and
//! the length of a chunk is known only after encoding, so chunks are encoded as the caller consumes the listing. A
//! chunk that cannot be encoded, because a stored one is corrupt or an element has no value in the requested type, is
//! listed with length 0; reading it returns the error.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;

use futures::future::ready;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::view::{RechunkStore, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP, ZMETADATA};
use crate::array::ArrayError;
use crate::chunk::ChunkAxis;
use crate::cpu::DropOnPool;
use crate::error::{Classify, ErrorClass};
use crate::key::{NodePath, StoreKey, StorePrefix};
use crate::store::{DirEntries, DirEntry, ListEntry, Reservation, Store, StoreError, ValueInfo, Version};
use crate::views::derived_store::Entries;
use crate::views::error::{ViewError, to_store_error};
use crate::views::node_finder::StoredArray;

/// Concurrent `head` requests of a listing, each of which may encode a chunk.
const CONCURRENT_HEADS: usize = 4;
/// The most stored chunks of one array that a listing holds in memory.
const MAX_STORED_CHUNKS: usize = 1 << 20;
/// The most chunks along a dimension that a listing allows.
const MAX_ALONG_DIMENSION: usize = 1 << 17;
/// Bytes of a number as text, alone and as part of a key, with the allocations that hold it.
const ITEM_TEXT_BYTES: usize = 160;

type ListItems = BoxStream<'static, Result<ListItem, StoreError>>;

/// An entry directly below a prefix.
#[derive(Debug)]
enum ListItem {
    /// A stored key, unchanged.
    Stored(ListEntry),
    /// The key of a generated document or chunk.
    Generated(StoreKey),
    Prefix(StorePrefix),
}

impl ListItem {
    fn as_str(&self) -> &str {
        match self {
            Self::Stored(entry) => entry.key.as_str(),
            Self::Generated(key) => key.as_str(),
            Self::Prefix(prefix) => prefix.as_str(),
        }
    }
}

/// The chunks of an array, derived from its stored chunks.
struct ChunkListing {
    path: NodePath,
    is_in_v3: bool,
    rank: usize,
    /// For each stored chunk, the range of overlapping derived chunks along each dimension. Sorted.
    stored: DropOnPool<StoredRanges>,
    /// The memory of these ranges.
    _reservation: Reservation,
}

type StoredRanges = Vec<Vec<RangeInclusive<u64>>>;

/// The keys and prefixes directly under a prefix, after a text.
pub(super) fn list_dir(store: RechunkStore, prefix: StorePrefix, after: String) -> DirEntries {
    let below = store.clone();
    let items = async move { list_children(&below, &prefix, &after, &mut None).await };
    entries(store, stream::once(items).try_flatten().boxed())
}

/// Every key under a prefix, after `after` if given.
pub(super) fn list_prefix(store: RechunkStore, prefix: StorePrefix, after: Option<StoreKey>) -> Entries {
    let walk = KeyWalk { store: store.clone(), after, levels: Vec::new(), root: Some(prefix), chunks: None };
    let keys = stream::try_unfold(walk, |mut walk| async move {
        Ok::<_, StoreError>(walk.next().await?.map(|item| (item, walk)))
    });
    let entries = entries(store, keys.boxed());
    let keys = entries.try_filter_map(|entry| {
        let DirEntry::Key(entry) = entry else { return ready(Ok(None)) };
        ready(Ok(Some(entry)))
    });
    keys.boxed()
}

/// The entries of items, from a `head` of each generated key; keys without a value are left out.
fn entries(store: RechunkStore, items: ListItems) -> DirEntries {
    items
        .map_ok(move |item| {
            let store = store.clone();
            async move {
                tokio::task::consume_budget().await;
                match item {
                    ListItem::Stored(entry) => Ok(Some(DirEntry::Key(entry))),
                    ListItem::Prefix(prefix) => Ok(Some(DirEntry::Prefix(prefix))),
                    ListItem::Generated(key) => match store.head(&key).await {
                        Err(error) if is_permanent(error.class()) => {
                            Ok(Some(DirEntry::Key(unreadable_entry(key))))
                        }
                        info => Ok(info?.map(|info| DirEntry::Key(ListEntry { key, info }))),
                    },
                }
            }
        })
        .try_buffered(CONCURRENT_HEADS)
        .try_filter_map(|entry| ready(Ok(entry)))
        .boxed()
}

/// Whether a value cannot be generated from what is stored, so that another attempt would fail too.
fn is_permanent(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::CorruptData
            | ErrorClass::InvalidMetadata
            | ErrorClass::TooLarge
            | ErrorClass::UnusableLink
            | ErrorClass::Unsupported
    )
}

/// The entry of a value that cannot be generated.
fn unreadable_entry(key: StoreKey) -> ListEntry {
    ListEntry { key, info: ValueInfo { size: 0, version: Version::weak("unmade"), modified: None } }
}

/// A walk over all keys below a prefix, in order.
struct KeyWalk {
    store: RechunkStore,
    after: Option<StoreKey>,
    levels: Vec<ListItems>,
    root: Option<StorePrefix>,
    /// The chunks of the current array.
    chunks: Option<Arc<ChunkListing>>,
}

impl KeyWalk {
    async fn next(&mut self) -> Result<Option<ListItem>, StoreError> {
        if let Some(prefix) = self.root.take() {
            self.descend(&prefix).await?;
        }
        while let Some(level) = self.levels.last_mut() {
            match level.try_next().await? {
                None => {
                    self.levels.pop();
                }
                Some(item) if self.after.as_ref().is_some_and(|after| is_before(&item, after.as_str())) => {}
                Some(ListItem::Prefix(prefix)) => self.descend(&prefix).await?,
                Some(item) => return Ok(Some(item)),
            }
        }
        Ok(None)
    }

    async fn descend(&mut self, prefix: &StorePrefix) -> Result<(), StoreError> {
        // The keys after `after` begin with the name that it has at this level, or with a later one.
        let rest = self.after.as_ref().and_then(|after| after.as_str().strip_prefix(prefix.as_str()));
        let name = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let after = if name.is_empty() { String::new() } else { format!("{prefix}{name}") };
        let items = list_children(&self.store, prefix, &after, &mut self.chunks).await?;
        self.levels.push(items);
        Ok(())
    }
}

/// Whether no key of an item comes after this one.
fn is_before(item: &ListItem, after: &str) -> bool {
    item.as_str() <= after && !(matches!(item, ListItem::Prefix(_)) && after.starts_with(item.as_str()))
}

/// The entries directly below a prefix and after a text, in the order of the keys. `chunks` are those of the array that
/// was visited last.
async fn list_children(
    store: &RechunkStore,
    prefix: &StorePrefix,
    after: &str,
    chunks: &mut Option<Arc<ChunkListing>>,
) -> Result<ListItems, StoreError> {
    let below =
        |known: &ChunkListing| prefix.as_str().strip_prefix(known.path.prefix().as_str()).map(str::to_owned);
    let items = if let Some(known) = chunks
        && let Some(below) = below(known)
    {
        Arc::clone(known).items_below(store, prefix, below).await?
    } else {
        match store.nearest_array(prefix).await? {
            None => return Ok(list_group(store, prefix, after)),
            Some(StoredArray { path, array, .. }) => {
                // Without its codecs, only its document is listed; reading that returns the error.
                let known = if array.is_some() {
                    ChunkListing::for_array(store, path).await?
                } else {
                    ChunkListing::empty(store, path)
                };
                let known = Arc::new(known);
                *chunks = Some(Arc::clone(&known));
                let below = below(&known).unwrap_or_default();
                known.items_below(store, prefix, below).await?
            }
        }
    };
    let (items, reservation, after) = (items.0, items.1, after.to_owned());
    let items = items.into_iter().filter(move |item| item.as_str() > after.as_str());
    let items = items.map(move |item| {
        // The reservation covers all items until the last is consumed.
        let _reservation = &reservation;
        Ok(item)
    });
    Ok(stream::iter(items).boxed())
}

/// The stored entries directly below a prefix outside of arrays, with one document in place of those of a group. The
/// `head` of the document decides whether there is a group.
fn list_group(store: &RechunkStore, prefix: &StorePrefix, after: &str) -> ListItems {
    let generated = prefix.key(ZARR_JSON).ok().filter(|key| key.as_str() > after);
    let stored = store.base_store().list_dir_after(prefix, after).try_filter_map(|entry| {
        ready(Ok(match entry {
            DirEntry::Prefix(prefix) => Some(ListItem::Prefix(prefix)),
            DirEntry::Key(entry) => match entry.key.name() {
                ZARR_JSON | ZGROUP | ZARRAY | ZATTRS | ZMETADATA => None,
                _ => Some(ListItem::Stored(entry)),
            },
        }))
    });
    let merged = stream::try_unfold(
        (stored.boxed().peekable(), generated),
        |(mut stored, mut generated)| async move {
            let next = Pin::new(&mut stored).peek().await;
            let is_generated_next = match (&generated, next) {
                (Some(generated), Some(Ok(next))) => generated.as_str() < next.as_str(),
                (generated, None) => generated.is_some(),
                _ => false,
            };
            let item = if is_generated_next {
                generated.take().map(ListItem::Generated)
            } else {
                stored.try_next().await?
            };
            Ok::<_, StoreError>(item.map(|item| (item, (stored, generated))))
        },
    );
    merged.boxed()
}

impl ChunkListing {
    /// No chunks.
    fn empty(store: &RechunkStore, path: NodePath) -> Self {
        let stored = DropOnPool::new(StoredRanges::new(), store.shared().cpu());
        Self { path, is_in_v3: true, rank: 0, stored, _reservation: Reservation::default() }
    }

    /// The chunks of the array at a path.
    async fn for_array(store: &RechunkStore, path: NodePath) -> Result<Self, StoreError> {
        let Some(opened) =
            super::resolve_key::find_node(store.opener(), &path).await.map_err(to_store_error)?
        else {
            return Ok(Self::empty(store, path));
        };
        let rechunked = match store.rechunked(&path, &opened) {
            Err(error) if is_permanent(error.class()) => return Ok(Self::empty(store, path)),
            rechunked => rechunked?,
        };
        let array = rechunked.array();
        let cpu = store.shared().cpu();
        let (mut stored, mut reservation) = (DropOnPool::new(StoredRanges::new(), cpu), store.reservation());
        let rank = rechunked.grid().len();
        // A slot in a list with twice the capacity, and an allocation.
        let row_bytes = 2 * size_of::<Vec<u64>>() + rank * size_of::<RangeInclusive<u64>>() + 16;
        let mut keys = store.base_store().list_prefix(path.prefix(), None);
        while let Some(entry) = keys.try_next().await? {
            // Many entries may be ready at once; let other tasks run.
            tokio::task::consume_budget().await;
            let below = entry.key.as_str().strip_prefix(path.prefix().as_str()).unwrap_or_default();
            let Some(coords) = array.chunk_coords(below) else { continue };
            let ranges = coords.iter().zip(array.grid().axes()).zip(rechunked.grid());
            let ranges: Option<Vec<_>> =
                ranges.map(|((&coord, stored), shown)| overlapping_chunks(coord, stored, shown)).collect();
            reservation.grow(if ranges.is_some() { row_bytes as u64 } else { 0 })?;
            stored.extend(ranges);
            if stored.len() > MAX_STORED_CHUNKS {
                return Err(to_store_error(ViewError::TooManyChunks { path, limit: MAX_STORED_CHUNKS }));
            }
        }
        let bytes = (row_bytes * stored.len()) as u64;
        let sort = move || {
            stored.sort_unstable_by(|one, other| ends(one).cmp(ends(other)));
            stored
        };
        let stored =
            cpu.run_or_inline(bytes, sort).await.map_err(|error| to_store_error(ArrayError::from(error)))?;
        Ok(Self { is_in_v3: rechunked.has_v3_type(), rank, path, stored, _reservation: reservation })
    }

    /// The result of [`ChunkListing::items`], and a reservation of its memory.
    async fn items_below(
        self: Arc<Self>,
        store: &RechunkStore,
        prefix: &StorePrefix,
        below: String,
    ) -> Result<(Vec<ListItem>, Reservation), StoreError> {
        /// Estimated work for each stored chunk.
        const WORK_BYTES: usize = 128;
        let (mut reservation, prefix) = (store.reservation(), prefix.clone());
        let bytes = (WORK_BYTES * self.stored.len()) as u64;
        let work = move || {
            let items = self.items(&prefix, &below, &mut reservation)?;
            Ok((items, reservation))
        };
        let worked = store.shared().cpu().run_or_inline(bytes, work).await;
        worked.map_err(|error| to_store_error(ArrayError::from(error)))?
    }

    /// The entries directly below a prefix of the array. `below` is that prefix without the array's own.
    fn items(
        &self,
        prefix: &StorePrefix,
        below: &str,
        reservation: &mut Reservation,
    ) -> Result<Vec<ListItem>, StoreError> {
        let mut items = Vec::new();
        let mut add = |name: &str, is_key: bool| {
            // The beginning of a key is always a valid prefix. A key is too long only in a vast array.
            if is_key {
                items.extend(prefix.key(name).map(ListItem::Generated));
            } else {
                items.extend(prefix.join(name).map(ListItem::Prefix));
            }
        };
        let at = match (below, self.is_in_v3) {
            ("", true) => {
                if !self.stored.is_empty() {
                    add("c", self.rank == 0);
                }
                add(ZARR_JSON, true);
                return Ok(items);
            }
            ("", false) => {
                add(ZARRAY, true);
                add(ZATTRS, true);
                if self.rank == 0 && !self.stored.is_empty() {
                    add("0", true);
                }
                Some(Vec::new())
            }
            (below, true) => below.strip_prefix("c/").and_then(parse_numbers),
            (below, false) => parse_numbers(below),
        };
        let Some(at) = at.filter(|at| at.len() < self.rank) else { return Ok(items) };
        let is_key = at.len() + 1 == self.rank;
        // The texts of the keys live as long as the items, and the numbers until those are built.
        let item_bytes = 2 * size_of::<ListItem>() + prefix.as_str().len() + ITEM_TEXT_BYTES;
        for name in self.next_numbers(&at, item_bytes as u64, reservation)? {
            add(&name, is_key);
        }
        Ok(items)
    }

    /// The stored chunks that overlap derived chunks with this first number; all of them if it is `None`. They are
    /// adjacent, because chunks do not overlap each other.
    fn stored_with_first(&self, first: Option<u64>) -> &[Vec<RangeInclusive<u64>>] {
        let Some(first) = first else { return &self.stored };
        let is_before =
            |ranges: &Vec<RangeInclusive<u64>>| ranges.first().is_some_and(|range| *range.end() < first);
        let is_not_behind =
            |ranges: &Vec<RangeInclusive<u64>>| ranges.first().is_some_and(|range| *range.start() <= first);
        let start = self.stored.partition_point(is_before);
        let end = self.stored.partition_point(is_not_behind);
        self.stored.get(start..end).unwrap_or_default()
    }

    /// The next numbers of the derived chunks that begin with these numbers, as texts in order. Each takes `bytes`
    /// bytes of the reservation.
    fn next_numbers(
        &self,
        at: &[u64],
        bytes: u64,
        reservation: &mut Reservation,
    ) -> Result<Vec<String>, StoreError> {
        // Stored chunks that differ in another dimension only overlap the same derived chunks.
        let mut spans = BTreeSet::new();
        for ranges in self.stored_with_first(at.first().copied()) {
            let is_at = at.iter().zip(ranges).all(|(number, range)| range.contains(number));
            let Some(next) = ranges.get(at.len()).filter(|_| is_at) else { continue };
            spans.insert((*next.start(), *next.end()));
        }
        let mut numbers = BTreeSet::new();
        for number in spans.into_iter().flat_map(|(start, end)| start..=end) {
            if numbers.insert(number) {
                reservation.grow(bytes)?;
            }
            if numbers.len() > MAX_ALONG_DIMENSION {
                let path = self.path.clone();
                return Err(to_store_error(ViewError::TooManyAlongDimension {
                    path,
                    limit: MAX_ALONG_DIMENSION,
                }));
            }
        }
        let mut names: Vec<String> = numbers.iter().map(u64::to_string).collect();
        // In a key, a number is followed by the end or by a slash, which sorts before all digits.
        names.sort_unstable();
        Ok(names)
    }
}

/// Both ends along each dimension. Of two adjacent stored chunks, both ends are in order.
fn ends(ranges: &[RangeInclusive<u64>]) -> impl Iterator<Item = (&u64, &u64)> {
    ranges.iter().map(|range| (range.start(), range.end()))
}

/// The derived chunks along a dimension that a stored chunk overlaps; `None` if that is beyond the array's end.
fn overlapping_chunks(coord: u64, stored: &ChunkAxis, shown: &ChunkAxis) -> Option<RangeInclusive<u64>> {
    let last = stored.length().checked_sub(1)?;
    let edge = shown.edge()?;
    let chunk = stored.chunk(coord);
    if coord >= stored.chunks() {
        return None;
    }
    let end = chunk.start.saturating_add(chunk.edge.saturating_sub(1)).min(last);
    Some(chunk.start / edge..=end / edge)
}

/// The numbers of a prefix such as `0/12/`.
fn parse_numbers(below: &str) -> Option<Vec<u64>> {
    let Some(numbers) = below.strip_suffix('/') else { return below.is_empty().then(Vec::new) };
    numbers.split('/').map(super::resolve_key::parse_number).collect()
}
