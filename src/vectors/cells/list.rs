//! [`NonEmptyCells`]: lists the cells that hold a payload, from the array's attributes or from the store.

use futures::StreamExt;
use serde_json::Value;

use super::cell_array::{CellArray, CellLayout};
use crate::array::ChunkData;
use crate::codec::Sharded;
use crate::key::StorePrefix;
use crate::store::StoreError;
use crate::vectors::context::VectorContext;
use crate::vectors::{Coord, VectorError, parse_coord};

/// The largest number of cells that a listing may return.
const MAX_CELLS: usize = 1 << 21;
/// The largest number of cells that are assumed to be stored where the store cannot list.
const MAX_UNKNOWN: u64 = 1 << 16;

/// Cells that hold a payload.
#[derive(Clone, Debug, Default)]
pub struct NonEmptyCells {
    /// Their coordinates, sorted.
    pub cells: Vec<Coord>,
    /// Names that are not coordinates, or lie outside the grid.
    pub invalid_names: Vec<String>,
}

impl CellArray {
    /// The cells that hold a payload: those in the array's `nonempty_chunks`, or, where it has none, those that are
    /// stored.
    ///
    /// # Errors
    /// Failures of the store; [`VectorError::TooMany`].
    pub async fn non_empty_cells(&self, context: &VectorContext) -> Result<NonEmptyCells, VectorError> {
        match self.attributes.get("nonempty_chunks") {
            Some(Value::Array(names)) if matches!(self.layout, CellLayout::VariableLength(_)) => {
                let (array, bytes) = (self.clone(), names.len() as u64 * 64);
                Ok(context.cpu.run_or_inline(bytes, move || array.declared_cells()).await?)
            }
            _ => self.stored_cells(context).await,
        }
    }

    /// The cells in the array's `nonempty_chunks`.
    fn declared_cells(&self) -> NonEmptyCells {
        let mut occupied = NonEmptyCells::default();
        let names = self.attributes.get("nonempty_chunks").and_then(Value::as_array);
        for name in names.into_iter().flatten() {
            let coord = name.as_str().and_then(parse_coord);
            match coord.filter(|coord| self.grid_index(coord).is_some()) {
                Some(coord) => occupied.cells.push(coord),
                None => occupied.invalid_names.push(name.to_string()),
            }
        }
        occupied.sorted()
    }

    /// The cells that are stored, whatever `nonempty_chunks` contains.
    ///
    /// # Errors
    /// As [`CellArray::non_empty_cells`].
    pub async fn stored_cells(&self, context: &VectorContext) -> Result<NonEmptyCells, VectorError> {
        let listed = match &self.layout {
            CellLayout::ArrayPerCell => self.child_cells(context).await,
            CellLayout::VariableLength(_) | CellLayout::Dense(_) => self.listed_cells(context).await,
        };
        match listed {
            Err(VectorError::Store { source: StoreError::NotListable, .. }) => self.all_cells(),
            listed => listed.map(NonEmptyCells::sorted),
        }
    }

    async fn child_cells(&self, context: &VectorContext) -> Result<NonEmptyCells, VectorError> {
        let mut occupied = NonEmptyCells::default();
        let not_listable =
            || VectorError::Store { key: self.path.to_string(), source: StoreError::NotListable };
        for name in context.child_names(&self.path).await?.ok_or_else(not_listable)? {
            match parse_coord(&name).filter(|coord| coord.len() == self.rank()) {
                Some(coord) => occupied.cells.push(coord),
                None => occupied.invalid_names.push(name),
            }
            check_count(occupied.cells.len())?;
        }
        Ok(occupied)
    }

    async fn listed_cells(&self, context: &VectorContext) -> Result<NonEmptyCells, VectorError> {
        let mut occupied = NonEmptyCells::default();
        let Some(array) = self.array() else { return Ok(occupied) };
        let prefix = StorePrefix::parse(&format!("{}c/", self.path.prefix().as_str()))?;
        let start = self.path.prefix().as_str().len();
        let mut entries = context.store().list_prefix(&prefix, None);
        while let Some(entry) = entries.next().await {
            let entry = entry.map_err(|source| VectorError::Store { key: prefix.to_string(), source })?;
            let below = entry.key.as_str().get(start..).unwrap_or_default();
            let chunk = array.chunk_coords(below).or_else(|| self.short_coords(below));
            let Some(chunk) = chunk.filter(|chunk| array.grid().contains(chunk)) else {
                occupied.invalid_names.push(below.to_owned());
                continue;
            };
            match array.first_chain().sharding() {
                Some(sharding) if self.is_sharded() => {
                    let cells = self.cells_of_shard(context, &chunk, sharding).await?;
                    occupied.cells.extend(cells);
                }
                _ => {
                    let shape = array.grid().chunk_shape().unwrap_or_default();
                    let first: Vec<u64> =
                        chunk.iter().zip(&shape).map(|(at, edge)| at.saturating_mul(*edge)).collect();
                    let cells = self.cells_from(&first, &shape);
                    occupied.cells.extend(cells);
                }
            }
            check_count(occupied.cells.len())?;
        }
        Ok(occupied)
    }

    /// The chunk of a short key: the key's coordinates, then a zero for each dimension that a chunk spans whole.
    fn short_coords(&self, below: &str) -> Option<Vec<u64>> {
        let (CellLayout::Dense(array), Some(numbers)) = (&self.layout, below.strip_prefix("c/")) else {
            return None;
        };
        let mut chunk: Vec<u64> = numbers.split('/').map(str::parse).collect::<Result<_, _>>().ok()?;
        let is_short = chunk.len() == self.dims;
        chunk.resize(array.metadata().shape.len(), 0);
        is_short.then_some(chunk)
    }

    /// The cells in a box of the array, from its first index and its lengths.
    fn cells_from(&self, first: &[u64], lengths: &[u64]) -> Vec<Coord> {
        let rank = self.rank();
        let grid = self.grid().unwrap_or_default();
        let (Some(first), Some(lengths)) = (first.get(..rank), lengths.get(..rank)) else {
            return Vec::new();
        };
        let mut cells = vec![Vec::new()];
        for ((&start, &length), &end) in first.iter().zip(lengths).zip(&grid) {
            let stop = start.saturating_add(length).min(end);
            cells = cells
                .into_iter()
                .flat_map(|cell: Vec<u64>| (start..stop).map(move |at| [&cell[..], &[at]].concat()))
                .take(MAX_CELLS + 1)
                .collect();
        }
        cells.iter().filter_map(|cell| self.coord_at(cell)).collect()
    }

    /// The cells that a shard's index lists.
    async fn cells_of_shard(
        &self,
        context: &VectorContext,
        shard: &[u64],
        sharding: &dyn Sharded,
    ) -> Result<Vec<Coord>, VectorError> {
        let Some(array) = self.array() else { return Ok(Vec::new()) };
        let chain = array.first_chain();
        let key = array.stored_key(shard)?;
        let found = context.reader.source().fetch_or_lookup(&key, chain, &context.read_context).await?;
        let index = match (found.value, found.data) {
            (_, ChunkData::Index(index)) => index,
            (Some(value), _) => {
                let whole = 0..value.info.size;
                context.reader.source().shard_index(&value, chain, whole, &context.read_context).await?
            }
            (None, _) => return Ok(Vec::new()),
        };
        let edges = array.grid().chunk_shape().unwrap_or_default();
        let mut cells = Vec::new();
        for inner in 0..index.len() {
            if index.get(inner).is_none() {
                continue;
            }
            // The index numbers inner chunks in the dimension order of the shard.
            let mut first: Vec<u64> =
                shard.iter().zip(&edges).map(|(at, edge)| at.saturating_mul(*edge)).collect();
            let mut lengths = vec![1; first.len()];
            let mut rest = inner as u64;
            let dimensions =
                sharding.order().iter().zip(sharding.chunks_per_shard()).zip(sharding.inner_shape());
            for ((&dimension, &count), &edge) in dimensions.rev() {
                let at = (rest % count.max(1)).saturating_mul(edge);
                rest /= count.max(1);
                if let (Some(first), Some(length)) = (first.get_mut(dimension), lengths.get_mut(dimension)) {
                    *first = first.saturating_add(at);
                    *length = edge;
                }
            }
            cells.extend(self.cells_from(&first, &lengths));
        }
        Ok(cells)
    }

    /// Every cell of the grid, for stores that cannot list.
    fn all_cells(&self) -> Result<NonEmptyCells, VectorError> {
        let grid = self.grid().unwrap_or_default();
        let count = grid.iter().fold(1_u128, |count, &length| count.saturating_mul(length.into()));
        if grid.is_empty() || count > MAX_UNKNOWN.into() {
            let estimate = u64::try_from(count).unwrap_or(u64::MAX);
            return Err(VectorError::TooMany {
                what: "cells in a store that cannot list",
                estimate,
                limit: MAX_UNKNOWN,
            });
        }
        let cells = self.cells_from(&vec![0; grid.len()], &grid);
        Ok(NonEmptyCells { cells, invalid_names: Vec::new() }.sorted())
    }
}

impl NonEmptyCells {
    fn sorted(mut self) -> Self {
        self.cells.sort_unstable();
        self.cells.dedup();
        self
    }
}

fn check_count(cells: usize) -> Result<(), VectorError> {
    if cells > MAX_CELLS {
        return Err(VectorError::TooMany { what: "chunks", estimate: cells as u64, limit: MAX_CELLS as u64 });
    }
    Ok(())
}
