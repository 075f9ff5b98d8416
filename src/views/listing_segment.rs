//! [`ListingSegment`]: the keys that a view lists for one stored array and the arrays that it declares, in order.
//!
//! Shard indexes alone say which view chunks exist: no data is read. Stored keys that are not chunks are merged in
//! unchanged. Nodes should not be stored below an array; those that are appear as the view shows them. The segment
//! holds all stored chunks in memory, on the memory budget of the request. It holds no shard index beyond those in the
//! cache.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use futures::stream::TryStreamExt;

use super::chunk_walk::{ChunkWalk, KeyFilter, StoredChunks};
use super::dependent_set::DependentSet;
use super::derived_store::Entries;
use super::error::{ViewError, to_store_error};
use super::geometry::StoredLocation;
use super::view::{MAX_ATTEMPTS, ViewStore, part_info};
use super::view_array::ViewArray;
use crate::array::{ArrayError, ReadContext, StoredKey};
use crate::chunk::ChunkCoords;
use crate::cpu::DropOnPool;
use crate::key::{StoreKey, StorePrefix};
use crate::store::{ListEntry, Reservation, Store, StoreError, ValueInfo};

/// The most stored chunks of one set of arrays that a listing holds.
const MAX_STORED_CHUNKS: usize = 4 << 20;

/// The documents that make a prefix a node.
const DOCUMENTS: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// Sorts the stored keys below an array into chunks and other values.
pub(crate) struct SegmentBuilder {
    dependents: Arc<DependentSet>,
    arrays: DropOnPool<Vec<(Arc<ViewArray>, StoredChunks)>>,
    count: usize,
    others: DropOnPool<VecDeque<ListEntry>>,
    /// The prefixes of nodes that are stored below the array.
    nodes: BTreeSet<String>,
    filter: KeyFilter,
    /// The memory of these collections.
    reservation: Reservation,
}

impl SegmentBuilder {
    /// A builder of the segment of these arrays of a set, limited to requested keys.
    pub(crate) fn new(
        dependents: Arc<DependentSet>,
        arrays: impl IntoIterator<Item = Arc<ViewArray>>,
        filter: KeyFilter,
        view: &ViewStore,
    ) -> Self {
        let arrays = arrays.into_iter().map(|array| (array, StoredChunks::new())).collect();
        let (arrays, others) =
            (DropOnPool::new(arrays, view.cpu()), DropOnPool::new(VecDeque::new(), view.cpu()));
        Self {
            dependents,
            arrays,
            count: 0,
            others,
            nodes: BTreeSet::new(),
            filter,
            reservation: view.reservation(),
        }
    }

    /// Whether a key is below the path of the set.
    pub(crate) fn contains(&self, key: &StoreKey) -> bool {
        key.as_str().starts_with(self.dependents.path().prefix().as_str())
    }

    /// Adds a stored key below the path of the set. Keys must come in order.
    pub(crate) fn add(&mut self, entry: ListEntry) -> Result<(), StoreError> {
        let key = entry.key.as_str();
        if DOCUMENTS.contains(&entry.key.name()) && entry.key.parent() != *self.dependents.path().prefix() {
            self.reservation.grow(entry_bytes::<String>(key.len()))?;
            self.nodes.insert(entry.key.parent().to_string());
        }
        let mut is_chunk = false;
        for (array, chunks) in &mut *self.arrays {
            if let Some(coords) = array.decode_stored(key) {
                is_chunk = true;
                let length = size_of_val(coords.as_slice()) + entry.info.version.tag().len();
                self.reservation.grow(entry_bytes::<(ChunkCoords, ValueInfo)>(length))?;
                self.count += usize::from(chunks.insert(coords, entry.info.clone()).is_none());
            }
        }
        if self.count > MAX_STORED_CHUNKS {
            let path = self.dependents.path().clone();
            return Err(to_store_error(ViewError::TooManyChunks { path, limit: MAX_STORED_CHUNKS }));
        }
        let is_hidden = is_chunk && self.dependents.hides_chunks();
        if !is_hidden && self.filter.matches(key) && self.dependents.lists_as_stored(key) {
            self.reservation.grow(entry_bytes::<ListEntry>(key.len() + entry.info.version.tag().len()))?;
            self.others.push_back(entry);
        }
        Ok(())
    }

    /// Builds the segment that the view lists.
    pub(crate) async fn build(self, view: &ViewStore) -> Result<ListingSegment, StoreError> {
        let (view, bytes) = (view.clone(), entry_bytes::<ListEntry>(0) * self.others.len() as u64);
        let cpu = view.cpu().clone();
        let segment = cpu.run_or_inline(bytes, move || self.into_segment(&view)).await;
        segment.map_err(|error| to_store_error(ArrayError::from(error)))
    }

    fn into_segment(mut self, view: &ViewStore) -> ListingSegment {
        let nodes = outermost(&self.nodes);
        let is_nested = |key: &str| {
            let at = nodes.range(..=key).next_back();
            at.is_some_and(|at| key.starts_with(*at))
        };
        self.others.retain(|other| !is_nested(other.key.as_str()));
        let (mut sources, mut walks) = (BinaryHeap::new(), Vec::new());
        for (array, chunks) in self.arrays.into_inner() {
            let prefix = array.path().prefix();
            if is_nested(prefix.as_str()) {
                continue;
            }
            if self.dependents.declared(array.path()).is_some()
                && let Ok(key) = prefix.key("zarr.json")
                && self.filter.matches(key.as_str())
            {
                sources
                    .push(QueuedSource { lower_bound: key.to_string(), source: EntrySource::Document(key) });
            }
            sources.push(QueuedSource {
                lower_bound: prefix.to_string(),
                source: EntrySource::Walk(walks.len()),
            });
            walks.push(ChunkWalk::new(array, chunks, self.filter.clone()));
        }
        for node in nodes.into_iter().filter(|node| self.filter.may_match_below(node)) {
            // A prefix of existing keys is always valid.
            let Ok(prefix) = StorePrefix::parse(node) else { continue };
            let entries = view.list_prefix(&prefix, None);
            sources.push(QueuedSource { lower_bound: node.to_owned(), source: EntrySource::Nested(entries) });
        }
        let (view, trace, walks) = (view.clone(), view.read_context(), DropOnPool::new(walks, view.cpu()));
        let (dependents, filter, others, reservation) =
            (self.dependents, self.filter, self.others, self.reservation);
        ListingSegment { view, trace, dependents, filter, sources, walks, others, _reservation: reservation }
    }
}

/// The listed keys of one set of arrays.
pub(crate) struct ListingSegment {
    view: ViewStore,
    trace: Arc<ReadContext>,
    dependents: Arc<DependentSet>,
    filter: KeyFilter,
    sources: BinaryHeap<QueuedSource>,
    walks: DropOnPool<Vec<ChunkWalk>>,
    others: DropOnPool<VecDeque<ListEntry>>,
    _reservation: Reservation,
}

/// Bytes of memory of an item in a growing list or map, where the item owns `length` bytes on the heap.
fn entry_bytes<T>(length: usize) -> u64 {
    /// The overhead of two allocations, the most that an item has.
    const ALLOCATIONS_BYTES: usize = 64;
    // Lists and maps have capacity for up to twice their items.
    (2 * size_of::<T>() + length + ALLOCATIONS_BYTES) as u64
}

/// A source of keys, ordered by its next key.
struct QueuedSource {
    /// No key of the source is before this text.
    lower_bound: String,
    source: EntrySource,
}

enum EntrySource {
    /// A generated document.
    Document(StoreKey),
    /// The chunks of an array, by its index.
    Walk(usize),
    /// As `Walk`, with the next chunk already known.
    Chunk(usize, ListEntry),
    /// A node that is stored below the array.
    Nested(Entries),
    /// As `Nested`, with the next key already known.
    NestedKey(Box<(ListEntry, Entries)>),
}

/// The prefixes that are not below others.
fn outermost(prefixes: &BTreeSet<String>) -> BTreeSet<&str> {
    let mut outermost: BTreeSet<&str> = BTreeSet::new();
    for prefix in prefixes {
        // A nested prefix sorts after the one around it.
        if !outermost.last().is_some_and(|last| prefix.starts_with(last)) {
            outermost.insert(prefix);
        }
    }
    outermost
}

impl Ord for QueuedSource {
    /// The greatest is the source with the first key, since a heap pops the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.lower_bound.cmp(&self.lower_bound)
    }
}

impl PartialOrd for QueuedSource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for QueuedSource {}

impl PartialEq for QueuedSource {
    fn eq(&self, other: &Self) -> bool {
        self.lower_bound == other.lower_bound
    }
}

impl ListingSegment {
    /// The next key.
    pub(crate) async fn next(&mut self) -> Result<Option<ListEntry>, StoreError> {
        loop {
            // Many entries may be ready at once; let other tasks run.
            tokio::task::consume_budget().await;
            let other_is_next = match (self.others.front(), self.sources.peek()) {
                (Some(other), Some(source)) => other.key.as_str() < source.lower_bound.as_str(),
                (other, _) => other.is_some(),
            };
            if other_is_next {
                let Some(other) = self.others.pop_front() else { return Ok(None) };
                return self.view.in_view(other).await.map(Some);
            }
            let Some(QueuedSource { source, .. }) = self.sources.pop() else { return Ok(None) };
            match source {
                EntrySource::Document(key) => {
                    if let Some(entry) = self.view.declared_entry(&self.dependents, key).await? {
                        return Ok(Some(entry));
                    }
                }
                EntrySource::Walk(index) => {
                    if let Some(entry) = self.next_chunk(index).await? {
                        self.enqueue(entry.key.to_string(), EntrySource::Chunk(index, entry));
                    }
                }
                EntrySource::Chunk(index, entry) => {
                    self.enqueue(entry.key.to_string(), EntrySource::Walk(index));
                    return Ok(Some(entry));
                }
                EntrySource::Nested(entries) => self.enqueue_nested(entries).await?,
                EntrySource::NestedKey(nested) => {
                    let (entry, entries) = *nested;
                    self.enqueue(entry.key.to_string(), EntrySource::Nested(entries));
                    if self.filter.matches(entry.key.as_str()) {
                        return Ok(Some(entry));
                    }
                }
            }
        }
    }

    fn enqueue(&mut self, lower_bound: String, source: EntrySource) {
        self.sources.push(QueuedSource { lower_bound, source });
    }

    async fn enqueue_nested(&mut self, mut entries: Entries) -> Result<(), StoreError> {
        if let Some(entry) = entries.try_next().await? {
            self.enqueue(entry.key.to_string(), EntrySource::NestedKey(Box::new((entry, entries))));
        }
        Ok(())
    }

    /// Skips all keys below a prefix.
    pub(crate) fn skip(&mut self, prefix: &StorePrefix) {
        // The first text after all those with this prefix: `0` follows `/`.
        let Some(lower_bound) = prefix.as_str().strip_suffix('/').map(|name| format!("{name}0")) else {
            return;
        };
        while self.others.front().is_some_and(|other| other.key.as_str() < lower_bound.as_str()) {
            self.others.pop_front();
        }
        self.filter.lower_bound.clone_from(&lower_bound);
        while self.sources.peek().is_some_and(|source| source.lower_bound < lower_bound) {
            match self.sources.pop().map(|source| source.source) {
                Some(EntrySource::Walk(index) | EntrySource::Chunk(index, _)) => {
                    if let Some(walk) = self.walks.get_mut(index) {
                        walk.skip_to(lower_bound.clone());
                    }
                    self.enqueue(lower_bound.clone(), EntrySource::Walk(index));
                }
                // The source may have keys after the prefix; its next key decides.
                Some(EntrySource::Nested(entries)) => {
                    self.enqueue(lower_bound.clone(), EntrySource::Nested(entries));
                }
                Some(EntrySource::NestedKey(nested)) => {
                    self.enqueue(lower_bound.clone(), EntrySource::Nested(nested.1));
                }
                Some(EntrySource::Document(_)) | None => {}
            }
        }
    }

    /// The next existing view chunk of an array.
    async fn next_chunk(&mut self, index: usize) -> Result<Option<ListEntry>, StoreError> {
        let Some(walk) = self.walks.get_mut(index) else { return Ok(None) };
        while let Some((coords, key)) = walk.next() {
            // The walk stays within the array. A key that is too long for a store is skipped.
            let (Some(location), Ok(key)) = (walk.array().geometry().locate(&coords), StoreKey::parse(&key))
            else {
                continue;
            };
            if let Some(entry) = chunk_entry(&self.view, &self.trace, walk, key, &location).await? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

/// The entry of a view chunk; `None` if it is absent from its shard.
async fn chunk_entry(
    view: &ViewStore,
    trace: &Arc<ReadContext>,
    walk: &ChunkWalk,
    key: StoreKey,
    location: &StoredLocation,
) -> Result<Option<ListEntry>, StoreError> {
    let Some(info) = walk.stored_info(&location.stored) else { return Ok(None) };
    if location.index_positions.is_empty() {
        return Ok(Some(ListEntry { key, info: info.clone() }));
    }
    let view_array = walk.array();
    let stored: StoredKey = view_array.array().stored_key(&location.stored).map_err(to_store_error)?;
    let mut value = stored.at_version(info.clone());
    for _ in 1..MAX_ATTEMPTS {
        match view_array.byte_range(view.source(), &value, None, location, trace).await {
            Ok(None) => return Ok(None),
            Ok(Some(part)) => return Ok(Some(ListEntry { key, info: part_info(&value.info, &part) })),
            // It changed since it was listed, or the listing gave a weaker version than a lookup does.
            Err(error) if error.is_changed() => {
                match stored.lookup_version(trace).await.map_err(to_store_error)? {
                    Some(now) => value = now,
                    None => return Ok(None),
                }
            }
            Err(error) => return Err(to_store_error(error)),
        }
    }
    Err(StoreError::VersionChanged)
}
