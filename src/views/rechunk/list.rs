//! Listings of a rechunked hierarchy: what is stored, with the documents and chunks of each array replaced.
//!
//! Level by level, in the order of the keys. Chunks are those of which something is stored, which takes a listing of
//! the stored ones and no look at any. What a listing says of a key is what a look at it says, and the length of a
//! chunk is not known before it is made; they are made as whoever asks takes them. What is stored and cannot be made,
//! because it is damaged or no number of the type that is asked for, is listed all the same, with no length: reading it
//! says why.

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
use crate::views::error::{ViewError, failed};
use crate::views::node_finder::StoredArray;

/// Chunks that are made side by side for a listing.
const TOGETHER: usize = 4;
/// Stored chunks of one array that are held in memory for a listing.
const MOST_STORED: usize = 1 << 20;
/// Chunks side by side along a dimension that are listed.
const MOST_SIDE_BY_SIDE: usize = 1 << 17;
/// A number as a text, alone and as part of a key, and what holds it meanwhile.
const ITEM_TEXT_BYTES: usize = 160;

type Entries = BoxStream<'static, Result<ListEntry, StoreError>>;
type Items = BoxStream<'static, Result<Item, StoreError>>;

/// What is directly below a prefix.
#[derive(Debug)]
enum Item {
    /// As it is stored.
    Stored(ListEntry),
    /// What is made.
    Made(StoreKey),
    Prefix(StorePrefix),
}

impl Item {
    fn text(&self) -> &str {
        match self {
            Self::Stored(entry) => entry.key.as_str(),
            Self::Made(key) => key.as_str(),
            Self::Prefix(prefix) => prefix.as_str(),
        }
    }
}

/// The chunks that an array has, by what is stored of it.
struct Chunks {
    path: NodePath,
    is_in_v3: bool,
    rank: usize,
    /// For each stored chunk, the chunks that it is in along each dimension. In order.
    stored: DropOnPool<Stored>,
    /// What these take of memory.
    _lot: Reservation,
}

type Stored = Vec<Vec<RangeInclusive<u64>>>;

/// The keys and prefixes directly under a prefix, after a text.
pub(super) fn list_dir(store: RechunkStore, prefix: StorePrefix, after: String) -> DirEntries {
    let below = store.clone();
    let items = async move { items(&below, &prefix, &after, &mut None).await };
    entries(store, stream::once(items).try_flatten().boxed())
}

/// Every key under a prefix, after `after` if that is given.
pub(super) fn list_prefix(store: RechunkStore, prefix: StorePrefix, after: Option<StoreKey>) -> Entries {
    let walk = Walk { store: store.clone(), after, levels: Vec::new(), begin: Some(prefix), chunks: None };
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

/// What a look at each key says; those that turn out to be gone are left out.
fn entries(store: RechunkStore, items: Items) -> DirEntries {
    items
        .map_ok(move |item| {
            let store = store.clone();
            async move {
                tokio::task::consume_budget().await;
                match item {
                    Item::Stored(entry) => Ok(Some(DirEntry::Key(entry))),
                    Item::Prefix(prefix) => Ok(Some(DirEntry::Prefix(prefix))),
                    Item::Made(key) => match store.head(&key).await {
                        Err(error) if is_about_the_value(error.class()) => {
                            Ok(Some(DirEntry::Key(unmade(key))))
                        }
                        info => Ok(info?.map(|info| DirEntry::Key(ListEntry { key, info }))),
                    },
                }
            }
        })
        .try_buffered(TOGETHER)
        .try_filter_map(|entry| ready(Ok(entry)))
        .boxed()
}

/// Whether a value cannot be made because of what is stored and asked for, so that asking again would fail again.
fn is_about_the_value(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::CorruptData
            | ErrorClass::InvalidMetadata
            | ErrorClass::TooLarge
            | ErrorClass::UnusableLink
            | ErrorClass::Unsupported
    )
}

/// What is listed of a value that cannot be made.
fn unmade(key: StoreKey) -> ListEntry {
    ListEntry { key, info: ValueInfo { size: 0, version: Version::weak("unmade"), modified: None } }
}

/// A walk over all keys below a prefix, in their order.
struct Walk {
    store: RechunkStore,
    after: Option<StoreKey>,
    levels: Vec<Items>,
    begin: Option<StorePrefix>,
    /// The array that it is in.
    chunks: Option<Arc<Chunks>>,
}

impl Walk {
    async fn next(&mut self) -> Result<Option<Item>, StoreError> {
        if let Some(prefix) = self.begin.take() {
            self.enter(&prefix).await?;
        }
        while let Some(level) = self.levels.last_mut() {
            match level.try_next().await? {
                None => {
                    self.levels.pop();
                }
                Some(item) if self.after.as_ref().is_some_and(|after| is_before(&item, after.as_str())) => {}
                Some(Item::Prefix(prefix)) => self.enter(&prefix).await?,
                Some(item) => return Ok(Some(item)),
            }
        }
        Ok(None)
    }

    async fn enter(&mut self, prefix: &StorePrefix) -> Result<(), StoreError> {
        // What comes after the key is after the name that the key goes on with here, or below that.
        let rest = self.after.as_ref().and_then(|after| after.as_str().strip_prefix(prefix.as_str()));
        let name = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let after = if name.is_empty() { String::new() } else { format!("{prefix}{name}") };
        let items = items(&self.store, prefix, &after, &mut self.chunks).await?;
        self.levels.push(items);
        Ok(())
    }
}

/// Whether nothing of an item comes after a key.
fn is_before(item: &Item, after: &str) -> bool {
    item.text() <= after && !(matches!(item, Item::Prefix(_)) && after.starts_with(item.text()))
}

/// What is directly below a prefix and after a text, in the order of the keys. `chunks` are those of the array that was
/// met last.
async fn items(
    store: &RechunkStore,
    prefix: &StorePrefix,
    after: &str,
    chunks: &mut Option<Arc<Chunks>>,
) -> Result<Items, StoreError> {
    let below =
        |known: &Chunks| prefix.as_str().strip_prefix(known.path.prefix().as_str()).map(str::to_owned);
    let items = if let Some(known) = chunks
        && let Some(below) = below(known)
    {
        Arc::clone(known).items_below(store, prefix, below).await?
    } else {
        match store.above(prefix).await? {
            None => return Ok(of_group(store, prefix, after)),
            Some(StoredArray { path, array, .. }) => {
                // Without its codecs, no more than its document is there to say why.
                let known =
                    if array.is_some() { Chunks::of(store, path).await? } else { Chunks::none(store, path) };
                let known = Arc::new(known);
                *chunks = Some(Arc::clone(&known));
                let below = below(&known).unwrap_or_default();
                known.items_below(store, prefix, below).await?
            }
        }
    };
    let (items, lot, after) = (items.0, items.1, after.to_owned());
    let items = items.into_iter().filter(move |item| item.text() > after.as_str());
    let items = items.map(move |item| {
        // It is for all of them, until the last is taken.
        let _lot = &lot;
        Ok(item)
    });
    Ok(stream::iter(items).boxed())
}

/// What is stored directly below a prefix that is in no array, with one document in place of those of a group. Whether
/// there is a group, the look at its document says.
fn of_group(store: &RechunkStore, prefix: &StorePrefix, after: &str) -> Items {
    let made = prefix.key(ZARR_JSON).ok().filter(|key| key.as_str() > after);
    let stored = store.below().list_dir_after(prefix, after).try_filter_map(|entry| {
        ready(Ok(match entry {
            DirEntry::Prefix(prefix) => Some(Item::Prefix(prefix)),
            DirEntry::Key(entry) => match entry.key.name() {
                ZARR_JSON | ZGROUP | ZARRAY | ZATTRS | ZMETADATA => None,
                _ => Some(Item::Stored(entry)),
            },
        }))
    });
    let merged = stream::try_unfold((stored.boxed().peekable(), made), |(mut stored, mut made)| async move {
        let next = Pin::new(&mut stored).peek().await;
        let is_made_next = match (&made, next) {
            (Some(made), Some(Ok(next))) => made.as_str() < next.text(),
            (made, None) => made.is_some(),
            _ => false,
        };
        let item = if is_made_next { made.take().map(Item::Made) } else { stored.try_next().await? };
        Ok::<_, StoreError>(item.map(|item| (item, (stored, made))))
    });
    merged.boxed()
}

impl Chunks {
    /// No chunks.
    fn none(store: &RechunkStore, path: NodePath) -> Self {
        let stored = DropOnPool::new(Stored::new(), store.shared().cpu());
        Self { path, is_in_v3: true, rank: 0, stored, _lot: Reservation::default() }
    }

    /// The chunks of the array at a path.
    async fn of(store: &RechunkStore, path: NodePath) -> Result<Self, StoreError> {
        let Some(opened) = super::resolve_key::node(store.opener(), &path).await.map_err(failed)? else {
            return Ok(Self::none(store, path));
        };
        let rechunked = match store.rechunked(&path, &opened) {
            Err(error) if is_about_the_value(error.class()) => return Ok(Self::none(store, path)),
            rechunked => rechunked?,
        };
        let array = rechunked.array();
        let cpu = store.shared().cpu();
        let (mut stored, mut lot) = (DropOnPool::new(Stored::new(), cpu), store.lot());
        let rank = rechunked.grid().len();
        // A place among twice as many, and an allocation.
        let row_bytes = 2 * size_of::<Vec<u64>>() + rank * size_of::<RangeInclusive<u64>>() + 16;
        let mut keys = store.below().list_prefix(path.prefix(), None);
        while let Some(entry) = keys.try_next().await? {
            // Many may be at hand, and others are to have their turn.
            tokio::task::consume_budget().await;
            let below = entry.key.as_str().strip_prefix(path.prefix().as_str()).unwrap_or_default();
            let Some(coords) = array.chunk_coords(below) else { continue };
            let ranges = coords.iter().zip(array.grid().axes()).zip(rechunked.grid());
            let ranges: Option<Vec<_>> =
                ranges.map(|((&coord, stored), shown)| overlap(coord, stored, shown)).collect();
            lot.grow(if ranges.is_some() { row_bytes as u64 } else { 0 })?;
            stored.extend(ranges);
            if stored.len() > MOST_STORED {
                return Err(failed(ViewError::TooManyChunks { path, limit: MOST_STORED }));
            }
        }
        let bytes = (row_bytes * stored.len()) as u64;
        let sort = move || {
            stored.sort_unstable_by(|one, other| ends(one).cmp(ends(other)));
            stored
        };
        let stored = cpu.run_or_inline(bytes, sort).await.map_err(|error| failed(ArrayError::from(error)))?;
        Ok(Self { is_in_v3: rechunked.is_in_v3(), rank, path, stored, _lot: lot })
    }

    /// What is directly below a prefix, as [`Chunks::items`] finds it, and what that takes of memory.
    async fn items_below(
        self: Arc<Self>,
        store: &RechunkStore,
        prefix: &StorePrefix,
        below: String,
    ) -> Result<(Vec<Item>, Reservation), StoreError> {
        /// What there is to look at for each stored chunk.
        const LOOK_BYTES: usize = 128;
        let (mut lot, prefix) = (store.lot(), prefix.clone());
        let bytes = (LOOK_BYTES * self.stored.len()) as u64;
        let work = move || {
            let items = self.items(&prefix, &below, &mut lot)?;
            Ok((items, lot))
        };
        let worked = store.shared().cpu().run_or_inline(bytes, work).await;
        worked.map_err(|error| failed(ArrayError::from(error)))?
    }

    /// What is directly below a prefix of the array's, of which this is what follows the array's own.
    fn items(
        &self,
        prefix: &StorePrefix,
        below: &str,
        lot: &mut Reservation,
    ) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let mut add = |name: &str, is_key: bool| {
            // What begins a key is a prefix; no key is longer than it may be but those of vast arrays.
            if is_key {
                items.extend(prefix.key(name).map(Item::Made));
            } else {
                items.extend(prefix.join(name).map(Item::Prefix));
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
            (below, true) => below.strip_prefix("c/").and_then(numbers),
            (below, false) => numbers(below),
        };
        let Some(at) = at.filter(|at| at.len() < self.rank) else { return Ok(items) };
        let is_key = at.len() + 1 == self.rank;
        // The texts of the keys are held as long as the items are, and the numbers beside them meanwhile.
        let item_bytes = 2 * size_of::<Item>() + prefix.as_str().len() + ITEM_TEXT_BYTES;
        for name in self.names(&at, item_bytes as u64, lot)? {
            add(&name, is_key);
        }
        Ok(items)
    }

    /// The stored chunks that are in chunks with this first number, if that is given. They stand together, as chunks do not
    /// overlap.
    fn stored_at(&self, first: Option<u64>) -> &[Vec<RangeInclusive<u64>>] {
        let Some(first) = first else { return &self.stored };
        let is_before =
            |ranges: &Vec<RangeInclusive<u64>>| ranges.first().is_some_and(|range| *range.end() < first);
        let is_not_behind =
            |ranges: &Vec<RangeInclusive<u64>>| ranges.first().is_some_and(|range| *range.start() <= first);
        let start = self.stored.partition_point(is_before);
        let end = self.stored.partition_point(is_not_behind);
        self.stored.get(start..end).unwrap_or_default()
    }

    /// The next numbers of the chunks whose first ones are these, as texts in their order.
    /// Each takes so many bytes.
    fn names(&self, at: &[u64], bytes: u64, lot: &mut Reservation) -> Result<Vec<String>, StoreError> {
        // Stored chunks beside each other in another dimension are in the same chunks.
        let mut spans = BTreeSet::new();
        for ranges in self.stored_at(at.first().copied()) {
            let is_at = at.iter().zip(ranges).all(|(number, range)| range.contains(number));
            let Some(next) = ranges.get(at.len()).filter(|_| is_at) else { continue };
            spans.insert((*next.start(), *next.end()));
        }
        let mut numbers = BTreeSet::new();
        for number in spans.into_iter().flat_map(|(start, end)| start..=end) {
            if numbers.insert(number) {
                lot.grow(bytes)?;
            }
            if numbers.len() > MOST_SIDE_BY_SIDE {
                let path = self.path.clone();
                return Err(failed(ViewError::TooManySideBySide { path, limit: MOST_SIDE_BY_SIDE }));
            }
        }
        let mut names: Vec<String> = numbers.iter().map(u64::to_string).collect();
        // As part of a key, a number is followed by the key's end or a slash, which comes before all digits.
        names.sort_unstable();
        Ok(names)
    }
}

/// Both ends along each dimension: of two stored chunks beside each other, both are in order.
fn ends(ranges: &[RangeInclusive<u64>]) -> impl Iterator<Item = (&u64, &u64)> {
    ranges.iter().map(|range| (range.start(), range.end()))
}

/// The chunks along a dimension that a stored chunk is in; `None` if that lies beyond the array's end.
fn overlap(coord: u64, stored: &ChunkAxis, shown: &ChunkAxis) -> Option<RangeInclusive<u64>> {
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
fn numbers(below: &str) -> Option<Vec<u64>> {
    let Some(numbers) = below.strip_suffix('/') else { return below.is_empty().then(Vec::new) };
    numbers.split('/').map(super::resolve_key::number).collect()
}
