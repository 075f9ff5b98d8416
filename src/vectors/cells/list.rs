//! Which cells hold a payload: as the array says, or as the store lists them.

use futures::StreamExt;
use serde_json::Value;

use super::super::context::Context;
use super::super::{Coord, VectorError, parse_dotted};
use super::{CellArray, Kind};
use crate::array::ChunkData;
use crate::codec::sharding_indexed::Sharding;
use crate::key::StorePrefix;
use crate::store::StoreError;

/// Most cells that are listed of an array.
const MOST_CELLS: usize = 1 << 21;
/// Most cells that are all taken for occupied, where nobody can say which are.
const MOST_UNKNOWN: u64 = 1 << 16;

/// Cells that hold a payload.
#[derive(Clone, Debug, Default)]
pub struct NonEmptyCells {
    /// Their coordinates, in order.
    pub cells: Vec<Coord>,
    /// Names that are no coordinates, or lie outside the grid.
    pub skipped: Vec<String>,
}

impl CellArray {
    /// The cells that hold a payload: those that the array names, or else those that are stored.
    ///
    /// # Errors
    /// Failures of the store; [`VectorError::TooMany`].
    pub async fn occupied(&self, context: &Context) -> Result<NonEmptyCells, VectorError> {
        match self.attributes.get("nonempty_chunks") {
            Some(Value::Array(names)) if matches!(self.kind, Kind::Ragged(_)) => {
                let (array, bytes) = (self.clone(), names.len() as u64 * 64);
                Ok(context.cpu.run_or_inline(bytes, move || array.named()).await?)
            }
            _ => self.stored(context).await,
        }
    }

    /// The cells that the array names.
    fn named(&self) -> NonEmptyCells {
        let mut occupied = NonEmptyCells::default();
        let names = self.attributes.get("nonempty_chunks").and_then(Value::as_array);
        for name in names.into_iter().flatten() {
            let coord = name.as_str().and_then(parse_dotted);
            match coord.filter(|coord| self.cell(coord).is_some()) {
                Some(coord) => occupied.cells.push(coord),
                None => occupied.skipped.push(name.to_string()),
            }
        }
        occupied.sorted()
    }

    /// The cells that are stored, whatever the array says.
    ///
    /// # Errors
    /// As [`CellArray::occupied`].
    pub async fn stored(&self, context: &Context) -> Result<NonEmptyCells, VectorError> {
        let listed = match &self.kind {
            Kind::Children => self.children(context).await,
            Kind::Ragged(_) | Kind::Dense(_) => self.listed(context).await,
        };
        match listed {
            Err(VectorError::Store { source: StoreError::NotListable, .. }) => self.all(),
            listed => listed.map(NonEmptyCells::sorted),
        }
    }

    async fn children(&self, context: &Context) -> Result<NonEmptyCells, VectorError> {
        let mut occupied = NonEmptyCells::default();
        let not_listable =
            || VectorError::Store { key: self.path.to_string(), source: StoreError::NotListable };
        for name in context.names(&self.path).await?.ok_or_else(not_listable)? {
            match parse_dotted(&name).filter(|coord| coord.len() == self.rank()) {
                Some(coord) => occupied.cells.push(coord),
                None => occupied.skipped.push(name),
            }
            check_count(occupied.cells.len())?;
        }
        Ok(occupied)
    }

    async fn listed(&self, context: &Context) -> Result<NonEmptyCells, VectorError> {
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
                occupied.skipped.push(below.to_owned());
                continue;
            };
            match array.first_chain().sharding() {
                Some(sharding) if self.is_sharded() => {
                    let cells = self.of_shard(context, &chunk, sharding).await?;
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

    /// The chunk that a short key names: its own coordinates, and zeros for what each chunk holds all of.
    fn short_coords(&self, below: &str) -> Option<Vec<u64>> {
        let (Kind::Dense(array), Some(numbers)) = (&self.kind, below.strip_prefix("c/")) else { return None };
        let mut chunk: Vec<u64> = numbers.split('/').map(str::parse).collect::<Result<_, _>>().ok()?;
        let is_short = chunk.len() == self.dims;
        chunk.resize(array.metadata().shape.len(), 0);
        is_short.then_some(chunk)
    }

    /// The cells in a box of the array, by its first and its lengths.
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
                .take(MOST_CELLS + 1)
                .collect();
        }
        cells.iter().filter_map(|cell| self.coord(cell)).collect()
    }

    /// The cells that a shard's index has.
    async fn of_shard(
        &self,
        context: &Context,
        shard: &[u64],
        sharding: &Sharding,
    ) -> Result<Vec<Coord>, VectorError> {
        let Some(array) = self.array() else { return Ok(Vec::new()) };
        let chain = array.first_chain();
        let key = array.stored_key(shard)?;
        let found = context.reader.source().fetch_or_lookup(&key, chain, &context.trace).await?;
        let index = match (found.value, found.data) {
            (_, ChunkData::Index(index)) => index,
            (Some(value), _) => {
                let whole = 0..value.info.size;
                context.reader.source().shard_index(&value, chain, whole, &context.trace).await?
            }
            (None, _) => return Ok(Vec::new()),
        };
        let edges = array.grid().chunk_shape().unwrap_or_default();
        let mut cells = Vec::new();
        for inner in 0..index.len() {
            if index.get(inner).is_none() {
                continue;
            }
            // Inner chunks are counted in the order of the shard's own dimensions.
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

    /// Every cell there is room for, where it cannot be told which of them are stored.
    fn all(&self) -> Result<NonEmptyCells, VectorError> {
        let grid = self.grid().unwrap_or_default();
        let count = grid.iter().fold(1_u128, |count, &length| count.saturating_mul(length.into()));
        if grid.is_empty() || count > MOST_UNKNOWN.into() {
            let estimate = u64::try_from(count).unwrap_or(u64::MAX);
            return Err(VectorError::TooMany {
                what: "cells of which it is not known which are stored",
                estimate,
                limit: MOST_UNKNOWN,
            });
        }
        let cells = self.cells_from(&vec![0; grid.len()], &grid);
        Ok(NonEmptyCells { cells, skipped: Vec::new() }.sorted())
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
    if cells > MOST_CELLS {
        return Err(VectorError::TooMany {
            what: "chunks",
            estimate: cells as u64,
            limit: MOST_CELLS as u64,
        });
    }
    Ok(())
}
