//! [`ChunkListing`]: which chunks of a rechunked array exist, from a listing of the stored ones.
//!
//! A derived chunk exists if any of its stored chunks does, which a listing of the stored keys shows without a lookup of
//! each.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use futures::stream::TryStreamExt;

use super::list_item::ListItem;
use super::rechunked_array::RechunkedArray;
use super::rechunker::Rechunker;
use super::view::{ZARR_JSON, ZARRAY, ZATTRS};
use crate::array::ArrayError;
use crate::chunk::ChunkAxis;
use crate::cpu::DropOnPool;
use crate::key::{NodePath, StorePrefix};
use crate::store::{Reservation, StoreError};
use crate::views::error::{ViewError, to_store_error};

/// The most stored chunks of one array that a listing holds in memory.
const MAX_STORED_CHUNKS: usize = 1 << 20;
/// The most chunks along a dimension that a listing allows.
const MAX_ALONG_DIMENSION: usize = 1 << 17;
/// Bytes of a number as text, alone and as part of a key, with the allocations that hold it.
const ITEM_TEXT_BYTES: usize = 160;

/// The chunks of an array, derived from its stored chunks.
pub(in crate::views) struct ChunkListing {
    path: NodePath,
    is_in_v3: bool,
    rank: usize,
    /// For each stored chunk, the range of overlapping derived chunks along each dimension. Sorted.
    stored: DropOnPool<StoredRanges>,
    /// The memory of these ranges.
    _reservation: Reservation,
}

type StoredRanges = Vec<Vec<RangeInclusive<u64>>>;

impl ChunkListing {
    /// No chunks: an array that cannot be shown, of which only the document is listed. Reading that returns the error.
    pub(in crate::views) fn empty(rechunker: &Rechunker, path: NodePath) -> Self {
        let stored = DropOnPool::new(StoredRanges::new(), rechunker.cpu());
        Self { path, is_in_v3: true, rank: 0, stored, _reservation: Reservation::default() }
    }

    /// The chunks of an array that is shown at a path; the reservation is for what is held.
    pub(in crate::views) async fn new(
        rechunker: &Rechunker,
        mut reservation: Reservation,
        path: NodePath,
        rechunked: &RechunkedArray,
    ) -> Result<Self, StoreError> {
        let array = rechunked.array();
        let cpu = rechunker.cpu();
        let mut stored = DropOnPool::new(StoredRanges::new(), cpu);
        let rank = rechunked.grid().len();
        let factors = rechunked.factors();
        // A slot in a list with twice the capacity, and an allocation.
        let row_bytes = 2 * size_of::<Vec<u64>>() + rank * size_of::<RangeInclusive<u64>>() + 16;
        let prefix = array.path().prefix();
        let mut keys = rechunker.opener().hierarchy().store().list_prefix(prefix, None);
        while let Some(entry) = keys.try_next().await? {
            // Many entries may be ready at once; let other tasks run.
            tokio::task::consume_budget().await;
            let below = entry.key.as_str().strip_prefix(prefix.as_str()).unwrap_or_default();
            let Some(coords) = array.chunk_coords(below) else { continue };
            let ranges = coords.iter().zip(array.grid().axes()).zip(rechunked.grid()).zip(&factors);
            let ranges: Option<Vec<_>> = ranges
                .map(|(((&coord, stored), shown), &factor)| overlapping_chunks(coord, stored, shown, factor))
                .collect();
            reservation.grow(if ranges.is_some() { row_bytes as u64 } else { 0 })?;
            stored.extend(ranges);
            if stored.len() > MAX_STORED_CHUNKS {
                return Err(to_store_error(ViewError::TooManyChunks { path, limit: MAX_STORED_CHUNKS }));
            }
        }
        let bytes = (row_bytes * stored.len()) as u64;
        let is_reduced = factors.iter().any(|&factor| factor > 1);
        let sort = move || {
            stored.sort_unstable_by(|one, other| ends(one).cmp(ends(other)));
            if is_reduced {
                // Neighbours may be in the same chunks.
                stored.dedup();
            }
            stored
        };
        let stored =
            cpu.run_or_inline(bytes, sort).await.map_err(|error| to_store_error(ArrayError::from(error)))?;
        Ok(Self { is_in_v3: rechunked.has_v3_type(), rank, path, stored, _reservation: reservation })
    }

    /// The path of the array as shown.
    pub(in crate::views) fn path(&self) -> &NodePath {
        &self.path
    }

    /// The result of [`ChunkListing::items`], and a reservation of its memory.
    pub(in crate::views) async fn items_below(
        self: Arc<Self>,
        rechunker: &Rechunker,
        mut reservation: Reservation,
        prefix: &StorePrefix,
        below: String,
    ) -> Result<(Vec<ListItem>, Reservation), StoreError> {
        /// Estimated work for each stored chunk.
        const WORK_BYTES: usize = 128;
        let prefix = prefix.clone();
        let bytes = (WORK_BYTES * self.stored.len()) as u64;
        let work = move || {
            let items = self.items(&prefix, &below, &mut reservation)?;
            Ok((items, reservation))
        };
        let worked = rechunker.cpu().run_or_inline(bytes, work).await;
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

/// The derived chunks along a dimension that a stored chunk overlaps, where one shown element is made of `factor` stored
/// ones; `None` if that is beyond the array's end.
fn overlapping_chunks(
    coord: u64,
    stored: &ChunkAxis,
    shown: &ChunkAxis,
    factor: u64,
) -> Option<RangeInclusive<u64>> {
    let last = stored.length().checked_sub(1)?;
    let edge = shown.edge()?;
    let chunk = stored.chunk(coord);
    if coord >= stored.chunks() {
        return None;
    }
    let end = chunk.start.saturating_add(chunk.edge.saturating_sub(1)).min(last);
    Some(chunk.start / factor / edge..=end / factor / edge)
}

/// The numbers of a prefix such as `0/12/`.
fn parse_numbers(below: &str) -> Option<Vec<u64>> {
    let Some(numbers) = below.strip_suffix('/') else { return below.is_empty().then(Vec::new) };
    numbers.split('/').map(super::resolve_key::parse_number).collect()
}
