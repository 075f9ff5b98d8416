//! [`ListingSegment`]: what a view lists of one stored array and those that it declares, in the order of the keys.
//!
//! Chunks are known by the indexes of their shards alone: no data is read. Stored keys that are no chunk's are listed
//! among them as they are, and nodes that are stored below the array, of which there should be none, as the nodes they
//! are. All stored chunks are held in memory meanwhile, which the request's room must have, and no indexes but those that
//! are remembered anyway.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use futures::stream::{BoxStream, TryStreamExt};

use super::chunk_walk::{StoredChunks, Walk, Wanted};
use super::dependent_set::DependentSet;
use super::error::{ViewError, failed};
use super::geometry::Place;
use super::view::{TRIES, ViewStore, part_info};
use super::view_array::ViewArray;
use crate::array::{ArrayError, ReadContext, StoredKey};
use crate::chunk::ChunkCoords;
use crate::cpu::DropOnPool;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{ListEntry, Reservation, Store, StoreError, ValueInfo};

/// Listed keys, in their order.
pub(super) type Entries = BoxStream<'static, Result<ListEntry, StoreError>>;

/// Stored chunks of one family that are listed at most.
const MOST_STORED: usize = 4 << 20;

/// The documents that make a prefix a node.
const DOCUMENTS: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// Sorts what is stored below an array into chunks and others.
pub(crate) struct Sorter {
    family: Arc<DependentSet>,
    arrays: DropOnPool<Vec<(Arc<ViewArray>, StoredChunks)>>,
    count: usize,
    others: DropOnPool<VecDeque<ListEntry>>,
    /// The prefixes of nodes that are stored below the array.
    nodes: BTreeSet<String>,
    wanted: Wanted,
    /// What all this takes of memory.
    lot: Reservation,
}

impl Sorter {
    /// Of a family, these arrays and keys are wanted of a view.
    pub(crate) fn new(
        family: Arc<DependentSet>,
        arrays: impl IntoIterator<Item = Arc<ViewArray>>,
        wanted: Wanted,
        view: &ViewStore,
    ) -> Self {
        let arrays = arrays.into_iter().map(|shown| (shown, StoredChunks::new())).collect();
        let (arrays, others) =
            (DropOnPool::new(arrays, view.cpu()), DropOnPool::new(VecDeque::new(), view.cpu()));
        Self { family, arrays, count: 0, others, nodes: BTreeSet::new(), wanted, lot: view.lot() }
    }

    /// Whether a key is below the family's path.
    pub(crate) fn takes(&self, key: &StoreKey) -> bool {
        key.as_str().starts_with(self.family.path().prefix().as_str())
    }

    /// Adds what is stored under a key below the family's path. Keys come in order.
    pub(crate) fn add(&mut self, entry: ListEntry) -> Result<(), StoreError> {
        let key = entry.key.as_str();
        if DOCUMENTS.contains(&entry.key.name()) && entry.key.parent() != *self.family.path().prefix() {
            self.lot.grow(held_bytes::<String>(key.len()))?;
            self.nodes.insert(entry.key.parent().to_string());
        }
        let mut is_chunk = false;
        for (shown, chunks) in &mut *self.arrays {
            if let Some(coords) = shown.decode_stored(key) {
                is_chunk = true;
                let length = size_of_val(coords.as_slice()) + entry.info.version.tag().len();
                self.lot.grow(held_bytes::<(ChunkCoords, ValueInfo)>(length))?;
                self.count += usize::from(chunks.insert(coords, entry.info.clone()).is_none());
            }
        }
        if self.count > MOST_STORED {
            let path = self.family.path().clone();
            return Err(failed(ViewError::TooManyChunks { path, limit: MOST_STORED }));
        }
        let is_hidden = is_chunk && self.family.hides_chunks();
        if !is_hidden && self.wanted.has(key) && self.family.lists_as_stored(key) {
            self.lot.grow(held_bytes::<ListEntry>(key.len() + entry.info.version.tag().len()))?;
            self.others.push_back(entry);
        }
        Ok(())
    }

    /// What the view lists of it.
    pub(crate) async fn into_section(self, view: &ViewStore) -> Result<ListingSegment, StoreError> {
        let (view, bytes) = (view.clone(), held_bytes::<ListEntry>(0) * self.others.len() as u64);
        let cpu = view.cpu().clone();
        let sorted = cpu.run_or_inline(bytes, move || self.sorted(&view)).await;
        sorted.map_err(|error| failed(ArrayError::from(error)))
    }

    fn sorted(mut self, view: &ViewStore) -> ListingSegment {
        let nodes = outermost(&self.nodes);
        let is_nested = |key: &str| {
            let at = nodes.range(..=key).next_back();
            at.is_some_and(|at| key.starts_with(*at))
        };
        self.others.retain(|other| !is_nested(other.key.as_str()));
        let (mut sources, mut walks) = (BinaryHeap::new(), Vec::new());
        for (shown, chunks) in self.arrays.into_inner() {
            let prefix = shown.path().prefix();
            if is_nested(prefix.as_str()) {
                continue;
            }
            if self.family.declared(shown.path()).is_some()
                && let Ok(key) = prefix.key("zarr.json")
                && self.wanted.has(key.as_str())
            {
                sources.push(Source { from: key.to_string(), what: What::Document(key) });
            }
            sources.push(Source { from: prefix.to_string(), what: What::Walk(walks.len()) });
            walks.push(Walk::new(shown, chunks, self.wanted.clone()));
        }
        for node in nodes.into_iter().filter(|node| self.wanted.has_below(node)) {
            // What keys have been found below is a prefix.
            let Ok(prefix) = StorePrefix::parse(node) else { continue };
            let entries = view.list_prefix(&prefix, None);
            sources.push(Source { from: node.to_owned(), what: What::Nested(entries) });
        }
        let (view, trace, walks) = (view.clone(), view.trace(), DropOnPool::new(walks, view.cpu()));
        let (family, wanted, others, lot) = (self.family, self.wanted, self.others, self.lot);
        ListingSegment { view, trace, family, wanted, sources, walks, others, _lot: lot }
    }
}

/// What is listed of one family.
pub(crate) struct ListingSegment {
    view: ViewStore,
    trace: Arc<ReadContext>,
    family: Arc<DependentSet>,
    wanted: Wanted,
    sources: BinaryHeap<Source>,
    walks: DropOnPool<Vec<Walk>>,
    others: DropOnPool<VecDeque<ListEntry>>,
    _lot: Reservation,
}

/// Bytes of memory that an item takes with so many bytes of its own elsewhere, in a list or a map that grows.
fn held_bytes<T>(length: usize) -> u64 {
    /// What an allocation takes beside what is asked for, for the two that an item has at most.
    const ALLOCATIONS_BYTES: usize = 64;
    // Lists and maps have up to twice as many places as items.
    (2 * size_of::<T>() + length + ALLOCATIONS_BYTES) as u64
}

/// Where keys come from.
struct Source {
    /// None of them is before this text.
    from: String,
    what: What,
}

enum What {
    /// A document that is made.
    Document(StoreKey),
    /// The chunks of an array, by its place.
    Walk(usize),
    /// The same, of which the next is known.
    Chunk(usize, ListEntry),
    /// A node that is stored below the array.
    Nested(Entries),
    /// The same, of which the next key is known.
    NestedKey(Box<(ListEntry, Entries)>),
}

/// The prefixes that are in no other.
fn outermost(prefixes: &BTreeSet<String>) -> BTreeSet<&str> {
    let mut outermost: BTreeSet<&str> = BTreeSet::new();
    for prefix in prefixes {
        // What is in another follows it.
        if !outermost.last().is_some_and(|last| prefix.starts_with(last)) {
            outermost.insert(prefix);
        }
    }
    outermost
}

impl Ord for Source {
    /// The greatest is the one that comes first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.from.cmp(&self.from)
    }
}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Source {}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.from == other.from
    }
}

impl ListingSegment {
    /// The next key.
    pub(crate) async fn next(&mut self) -> Result<Option<ListEntry>, StoreError> {
        loop {
            // Many may be at hand, and others are to have their turn.
            tokio::task::consume_budget().await;
            let other_is_next = match (self.others.front(), self.sources.peek()) {
                (Some(other), Some(source)) => other.key.as_str() < source.from.as_str(),
                (other, _) => other.is_some(),
            };
            if other_is_next {
                let Some(other) = self.others.pop_front() else { return Ok(None) };
                return self.view.in_view(other).await.map(Some);
            }
            let Some(Source { what, .. }) = self.sources.pop() else { return Ok(None) };
            match what {
                What::Document(key) => {
                    if let Some(entry) = self.view.made(&self.family, key).await? {
                        return Ok(Some(entry));
                    }
                }
                What::Walk(place) => {
                    if let Some(entry) = self.next_chunk(place).await? {
                        self.put(entry.key.to_string(), What::Chunk(place, entry));
                    }
                }
                What::Chunk(place, entry) => {
                    self.put(entry.key.to_string(), What::Walk(place));
                    return Ok(Some(entry));
                }
                What::Nested(entries) => self.put_nested(entries).await?,
                What::NestedKey(nested) => {
                    let (entry, entries) = *nested;
                    self.put(entry.key.to_string(), What::Nested(entries));
                    if self.wanted.has(entry.key.as_str()) {
                        return Ok(Some(entry));
                    }
                }
            }
        }
    }

    fn put(&mut self, from: String, what: What) {
        self.sources.push(Source { from, what });
    }

    async fn put_nested(&mut self, mut entries: Entries) -> Result<(), StoreError> {
        if let Some(entry) = entries.try_next().await? {
            self.put(entry.key.to_string(), What::NestedKey(Box::new((entry, entries))));
        }
        Ok(())
    }

    /// Goes past all keys below a prefix.
    pub(crate) fn skip(&mut self, prefix: &StorePrefix) {
        // The first text behind all that begin with it: `0` follows `/`.
        let Some(behind) = prefix.as_str().strip_suffix('/').map(|name| format!("{name}0")) else { return };
        while self.others.front().is_some_and(|other| other.key.as_str() < behind.as_str()) {
            self.others.pop_front();
        }
        self.wanted.from.clone_from(&behind);
        while self.sources.peek().is_some_and(|source| source.from < behind) {
            match self.sources.pop().map(|source| source.what) {
                Some(What::Walk(place) | What::Chunk(place, _)) => {
                    if let Some(walk) = self.walks.get_mut(place) {
                        walk.skip_to(behind.clone());
                    }
                    self.put(behind.clone(), What::Walk(place));
                }
                // It may have keys behind: the next ones of it say so.
                Some(What::Nested(entries)) => self.put(behind.clone(), What::Nested(entries)),
                Some(What::NestedKey(nested)) => self.put(behind.clone(), What::Nested(nested.1)),
                Some(What::Document(_)) | None => {}
            }
        }
    }

    /// The next shown chunk of an array that is there.
    async fn next_chunk(&mut self, place: usize) -> Result<Option<ListEntry>, StoreError> {
        let Some(walk) = self.walks.get_mut(place) else { return Ok(None) };
        while let Some((coords, key)) = walk.next() {
            // The walk stays within the array; a key too long for a store is none.
            let (Some(at), Ok(key)) = (walk.shown().geometry().place(&coords), StoreKey::parse(&key)) else {
                continue;
            };
            if let Some(entry) = entry(&self.view, &self.trace, walk, key, &at).await? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

/// What is listed of a shown chunk.
async fn entry(
    view: &ViewStore,
    trace: &Arc<ReadContext>,
    walk: &Walk,
    key: StoreKey,
    place: &Place,
) -> Result<Option<ListEntry>, StoreError> {
    let Some(info) = walk.info(&place.stored) else { return Ok(None) };
    if place.numbers.is_empty() {
        return Ok(Some(ListEntry { key, info: info.clone() }));
    }
    let shown = walk.shown();
    let stored: StoredKey = shown.array().stored_key(&place.stored).map_err(failed)?;
    let mut value = stored.at(info.clone());
    for _ in 1..TRIES {
        match shown.part(view.source(), &value, None, place, trace).await {
            Ok(None) => return Ok(None),
            Ok(Some(part)) => return Ok(Some(ListEntry { key, info: part_info(&value.info, &part) })),
            // It changed since it was listed, or the listing says less of its version than it does itself.
            Err(error) if error.is_changed() => match stored.lookup_version(trace).await.map_err(failed)? {
                Some(now) => value = now,
                None => return Ok(None),
            },
            Err(error) => return Err(failed(error)),
        }
    }
    Err(StoreError::VersionChanged)
}
