//! The store keys of cells, and the stored size of a cell.

use std::sync::Arc;

use super::cell_array::{CellArray, CellLayout};
use super::short_keys;
use crate::array::{Array, ChunkData};
use crate::key::StoreKey;
use crate::vectors::context::VectorContext;
use crate::vectors::{VectorError, format_coord};

/// The store key of a cell.
#[derive(Clone, Debug)]
pub struct CellKey {
    /// The key of the cell, or of the shard that contains it.
    pub key: StoreKey,
    /// The position in the shard, if the array is sharded.
    pub shard: Option<ShardPosition>,
}

/// The position of a cell in its shard.
#[derive(Clone, Debug)]
pub struct ShardPosition {
    /// The coordinates within the shard.
    pub inner_coords: Vec<u64>,
    /// The position in the shard index.
    index: usize,
}

impl CellArray {
    /// The key of a cell by the chunk key encoding of the array; `None` if the cell lies outside the array.
    ///
    /// # Errors
    /// [`VectorError::Key`] if the key would be too long.
    pub fn cell_key(&self, coord: &[i64]) -> Result<Option<CellKey>, VectorError> {
        let array = match &self.layout {
            CellLayout::ArrayPerCell => {
                let key = self.path.child(&format_coord(coord))?.prefix().key("c/0")?;
                return Ok(Some(CellKey { key, shard: None }));
            }
            CellLayout::VariableLength(array) | CellLayout::Dense(array) => array,
        };
        let Some(cell) = self.grid_index(coord) else { return Ok(None) };
        let chunk = chunk_coords(array, &cell);
        let shard = self.is_sharded().then(|| shard_position(array, &chunk, &cell)).flatten();
        Ok(Some(CellKey { key: array.chunk_key(&chunk)?, shard }))
    }

    /// The key under which a cell is actually stored: of a dense array, the short key of the documents is tried after
    /// the encoded one. A missing cell gives its encoded key.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn stored_cell_key(
        &self,
        context: &VectorContext,
        coord: &[i64],
    ) -> Result<Option<CellKey>, VectorError> {
        let Some(keys) = self.cell_key(coord)? else { return Ok(None) };
        let (CellLayout::Dense(_), Some(cell)) = (&self.layout, self.grid_index(coord)) else {
            return Ok(Some(keys));
        };
        let head = |key: StoreKey| async move {
            let info = context.store().head(&key).await;
            info.map_err(|source| VectorError::Store { key: key.to_string(), source })
        };
        let short = short_keys::short_key(&self.path, &cell)?;
        if head(keys.key.clone()).await?.is_none() && head(short.clone()).await?.is_some() {
            return Ok(Some(CellKey { key: short, shard: None }));
        }
        Ok(Some(keys))
    }

    /// The stored size of a cell in bytes, of a sharded one its part of the shard; `None` if it is not stored.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn encoded_bytes(
        &self,
        context: &VectorContext,
        coord: &[i64],
    ) -> Result<Option<u64>, VectorError> {
        let Some(keys) = self.stored_cell_key(context, coord).await? else { return Ok(None) };
        let (Some(shard), Some(array), Some(cell)) = (&keys.shard, self.array(), self.grid_index(coord))
        else {
            let info = context.store().head(&keys.key).await;
            let info = info.map_err(|source| VectorError::Store { key: keys.key.to_string(), source })?;
            return Ok(info.map(|info| info.size));
        };
        let key = array.stored_key(&chunk_coords(array, &cell))?;
        let (source, chain) = (context.reader.source(), array.first_chain());
        let found = source.fetch_or_lookup(&key, chain, &context.read_context).await?;
        let index = match (found.value, found.data) {
            (_, ChunkData::Index(index)) => index,
            (Some(value), _) => {
                let whole = 0..value.info.size;
                source.shard_index(&value, chain, whole, &context.read_context).await?
            }
            (None, _) => return Ok(None),
        };
        Ok(index.get(shard.index).map(|range| range.end.saturating_sub(range.start)))
    }
}

/// The coordinates of the stored chunk that contains a cell.
fn chunk_coords(array: &Arc<Array>, cell: &[u64]) -> Vec<u64> {
    let edges = array.grid().chunk_shape().unwrap_or_default();
    let mut chunk: Vec<u64> = cell.iter().zip(&edges).map(|(at, edge)| at / (*edge).max(1)).collect();
    chunk.resize(array.metadata().shape.len(), 0);
    chunk
}

fn shard_position(array: &Arc<Array>, chunk: &[u64], cell: &[u64]) -> Option<ShardPosition> {
    let sharding = array.first_chain().sharding()?;
    let edges = array.grid().chunk_shape()?;
    let within: Vec<u64> = cell
        .iter()
        .zip(chunk.iter().zip(&edges))
        .map(|(at, (chunk, edge))| at.saturating_sub(chunk.saturating_mul(*edge)))
        .collect();
    let (mut inner, mut number) = (vec![0; within.len()], 0_u64);
    let dimensions = sharding.order().iter().zip(sharding.chunks_per_shard()).zip(sharding.inner_shape());
    for ((&dimension, &count), &edge) in dimensions {
        let at = within.get(dimension)? / edge.max(1);
        *inner.get_mut(dimension)? = at;
        number = number.checked_mul(count)?.checked_add(at)?;
    }
    Some(ShardPosition { inner_coords: inner, index: usize::try_from(number).ok()? })
}
