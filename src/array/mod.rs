//! Chunks in, elements out: plan → snapshot → fetch (async) → decode (cpu) → assemble.
//!
//! Zarr core 3.1, "Chunk grids"; Zarr codecs, "sharding-indexed" (partial reads). A selection's cost is known from
//! metadata alone ([`Plan`]); its versions are known before its bytes ([`Snapshot`]); its elements come band by band
//! in bounded memory ([`Reader`]). Reads ask a [`ChunkSource`] for decoded chunks and never learn whether there is a
//! cache: `cache` implements the trait from above. Encoding formats and HTTP are not this room's business.

mod coalesce;
mod error;
mod open;
mod plan;
mod read;
mod resolve;
mod snapshot;
mod source;
mod trace;

pub use error::ArrayError;
pub use open::{NodeId, NodeMemo, Opened, Opener, Opening};
pub use plan::{Plan, ReadLimits};
pub use read::Reader;
pub use snapshot::Snapshot;
pub use source::{ChunkSource, DirectSource, FetchOptions, StoredValue};
pub use trace::Trace;

use std::sync::Arc;

use crate::chunk::{ChunkGrid, ChunkKeyEncoding};
use crate::codec::{CodecChain, CodecLimits};
use crate::key::{NodePath, StoreKey};
use crate::metadata::ArrayMetadata;
use crate::store::SharedStore;

/// An array whose metadata is bound: nothing left to complain about but the bytes.
#[derive(Debug)]
pub struct Array {
    mount: Arc<str>,
    store: SharedStore,
    path: NodePath,
    metadata: Arc<ArrayMetadata>,
    grid: ChunkGrid,
    chunk_keys: ChunkKeyEncoding,
    chain: Arc<CodecChain>,
}

impl Array {
    /// Binds an array's metadata.
    ///
    /// # Errors
    /// [`ArrayError::Codecs`].
    pub fn bind(
        mount: Arc<str>,
        store: SharedStore,
        path: NodePath,
        metadata: Arc<ArrayMetadata>,
        limits: &CodecLimits,
    ) -> Result<Self, ArrayError> {
        let grid = ChunkGrid::new(&metadata.shape, &metadata.chunk_grid);
        let chain = CodecChain::bind(
            &metadata.codecs,
            &metadata.data_type,
            &grid.chunk_shape(),
            &metadata.fill_value,
            limits,
        )
        .map_err(|source| ArrayError::Codecs { path: path.clone(), source })?;
        let chunk_keys = ChunkKeyEncoding::new(metadata.chunk_key_encoding);
        Ok(Self { mount, store, path, metadata, grid, chunk_keys, chain: Arc::new(chain) })
    }

    /// The metadata.
    #[must_use]
    pub fn metadata(&self) -> &ArrayMetadata {
        &self.metadata
    }

    /// The grid of stored chunks (of shards, if the array is sharded).
    #[must_use]
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// The codecs, bound.
    #[must_use]
    pub fn chain(&self) -> &Arc<CodecChain> {
        &self.chain
    }

    /// The key of a stored chunk.
    ///
    /// # Errors
    /// [`ArrayError::ChunkKey`] if it would be longer than a key may be.
    pub fn chunk_key(&self, coords: &[u64]) -> Result<StoreKey, ArrayError> {
        self.path.prefix().key(&self.chunk_keys.encode(coords)).map_err(|source| ArrayError::ChunkKey {
            path: self.path.clone(),
            coords: coords.to_vec(),
            source,
        })
    }

    /// The shape, in the array's dimensions, of the smallest chunk that is decoded on its own: the innermost inner chunk
    /// of a sharded array, else the chunk.
    #[must_use]
    pub fn decoded_chunk_shape(&self) -> Vec<u64> {
        let mut shape = self.grid.chunk_shape();
        // Where each dimension of the current shard space stands in the array's.
        let mut dims: Vec<usize> = (0..shape.len()).collect();
        let mut chain = &self.chain;
        while let Some(sharding) = chain.sharding() {
            dims = sharding.order().iter().filter_map(|&dim| dims.get(dim).copied()).collect();
            for (&dim, &edge) in dims.iter().zip(sharding.inner_shape()) {
                if let Some(length) = shape.get_mut(dim) {
                    *length = edge;
                }
            }
            chain = sharding.inner_chain();
        }
        shape
    }
}
