//! Under which keys cells are stored, and how long they are there.

use std::sync::Arc;

use super::super::context::Context;
use super::super::{VectorError, dotted};
use super::{CellArray, Kind, short_keys};
use crate::array::{Array, ChunkData};
use crate::key::StoreKey;

/// Where a cell is stored.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The key: of the cell, or of the shard that it is a part of.
    pub key: StoreKey,
    /// Which part of a shard it is.
    pub shard: Option<ShardPlace>,
}

/// Which part of a shard a cell is.
#[derive(Clone, Debug)]
pub struct ShardPlace {
    /// The coordinates within the shard.
    pub inner: Vec<u64>,
    /// The number in the shard's index.
    number: usize,
}

impl CellArray {
    /// Where a cell is stored, by the rules. `None` if it lies outside the array.
    ///
    /// # Errors
    /// A key that would be too long.
    pub fn keys(&self, coord: &[i64]) -> Result<Option<Keys>, VectorError> {
        let array = match &self.kind {
            Kind::Children => {
                let key = self.path.child(&dotted(coord))?.prefix().key("c/0")?;
                return Ok(Some(Keys { key, shard: None }));
            }
            Kind::Ragged(array) | Kind::Dense(array) => array,
        };
        let Some(cell) = self.cell(coord) else { return Ok(None) };
        let chunk = chunk_of(array, &cell);
        let shard = self.is_sharded().then(|| place_in(array, &chunk, &cell)).flatten();
        Ok(Some(Keys { key: array.chunk_key(&chunk)?, shard }))
    }

    /// The key under which a cell is stored, if it is: the one by the rules, or the short one of the documents.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn stored_key(&self, context: &Context, coord: &[i64]) -> Result<Option<Keys>, VectorError> {
        let Some(keys) = self.keys(coord)? else { return Ok(None) };
        let (Kind::Dense(_), Some(cell)) = (&self.kind, self.cell(coord)) else { return Ok(Some(keys)) };
        let head = |key: StoreKey| async move {
            let info = context.store().head(&key).await;
            info.map_err(|source| VectorError::Store { key: key.to_string(), source })
        };
        let short = short_keys::short_key(&self.path, &cell)?;
        if head(keys.key.clone()).await?.is_none() && head(short.clone()).await?.is_some() {
            return Ok(Some(Keys { key: short, shard: None }));
        }
        Ok(Some(keys))
    }

    /// How many bytes a cell has as it is stored: of a shard, its part of it. `None` if it is not stored.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn encoded_bytes(&self, context: &Context, coord: &[i64]) -> Result<Option<u64>, VectorError> {
        let Some(keys) = self.stored_key(context, coord).await? else { return Ok(None) };
        let (Some(shard), Some(array), Some(cell)) = (&keys.shard, self.array(), self.cell(coord)) else {
            let info = context.store().head(&keys.key).await;
            let info = info.map_err(|source| VectorError::Store { key: keys.key.to_string(), source })?;
            return Ok(info.map(|info| info.size));
        };
        let key = array.stored_key(&chunk_of(array, &cell))?;
        let (source, chain) = (context.reader.source(), array.first_chain());
        let found = source.fetch_or_lookup(&key, chain, &context.trace).await?;
        let index = match (found.value, found.data) {
            (_, ChunkData::Index(index)) => index,
            (Some(value), _) => {
                let whole = 0..value.info.size;
                source.shard_index(&value, chain, whole, &context.trace).await?
            }
            (None, _) => return Ok(None),
        };
        Ok(index.get(shard.number).map(|range| range.end.saturating_sub(range.start)))
    }
}

/// The coordinates of the stored chunk that has a cell.
fn chunk_of(array: &Arc<Array>, cell: &[u64]) -> Vec<u64> {
    let edges = array.grid().chunk_shape().unwrap_or_default();
    let mut chunk: Vec<u64> = cell.iter().zip(&edges).map(|(at, edge)| at / (*edge).max(1)).collect();
    chunk.resize(array.metadata().shape.len(), 0);
    chunk
}

fn place_in(array: &Arc<Array>, chunk: &[u64], cell: &[u64]) -> Option<ShardPlace> {
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
    Some(ShardPlace { inner, number: usize::try_from(number).ok()? })
}
